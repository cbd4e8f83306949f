"""A plan: bytes in PostgreSQL, memory and nodes, computed from what a deployment needs and from measured constants."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recollect.sizing.constants import (
    SHARED_FROM,
    SHORT,
    cold_s,
    counted_bytes,
    recall_s,
    resident_bytes,
    value,
)
from recollect.sizing.needs import Needs

#: Share of a node's memory and of its processor time that a plan uses: the rest is for peaks, and for the system.
MEMORY_SHARE, PROCESSOR_SHARE = 0.8, 0.6
#: Rules of thumb, which nothing here has measured: what one primary of PostgreSQL is usually not asked to exceed.
PRIMARY_BYTES, PRIMARY_WRITES_PER_S = 2e12, 10_000
MAX_CONNECTIONS = 500
_DAY_S = 86_400
#: Bytes of a component of a vector: in memory, and in the table that nodes share.
_IN_MEMORY, _IN_TABLE = 2, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePlan:
    """What a deployment needs. Bytes are of one server and of all nodes together, unless said otherwise.

    Attributes:
        needs: What was asked.
        postgresql: Bytes of one server by part: versions, heads, trie pages, log, indexes, segments, vectors.
        postgresql_bytes: Their sum.
        compacted: The same parts without dead rows. A server whose autovacuum keeps up is between the two.
        compacted_bytes: Their sum.
        all_servers_bytes: The same with the standbys.
        wal_bytes_a_day: Bytes of the WAL that a day of single writes makes.
        active_namespaces: Namespaces whose indexes are in memory.
        index_bytes: Resident memory of their word indexes.
        index_bytes_counted: The same as the engine counts it, which the limit `index_bytes` of a memory is compared to.
        vector_bytes: Memory of their vectors.
        recall_cores: Processor time of recalls, in seconds a second; those that find no index in memory included.
        write_cores: The same of writes.
        server_cores: The same of the PostgreSQL server, for both.
        nodes_by_memory: Nodes that the memory needs.
        nodes_by_processor: Nodes that the processor time needs.
        nodes: The larger of them, and the spare ones.
        connections: Connections of all nodes to the server, at most.
        largest_namespace_a_process: Records of the largest namespace that a process should have: half of its memory.
        largest_cold_s: Processor time of its first recall on another node, from the shared table, in seconds.
        index_bytes_a_process: The limit `--index-bytes` that each process should be given.
        vector_bytes_a_process: The limit `--vector-bytes` that each process should be given; 0 without vectors.
        notes: What to know.
    """

    needs: Needs
    postgresql: dict[str, float]
    postgresql_bytes: float
    compacted: dict[str, float]
    compacted_bytes: float
    all_servers_bytes: float
    wal_bytes_a_day: float
    active_namespaces: float
    index_bytes: float
    index_bytes_counted: float
    vector_bytes: float
    recall_cores: float
    write_cores: float
    server_cores: float
    nodes_by_memory: int
    nodes_by_processor: int
    nodes: int
    connections: int
    largest_namespace_a_process: int
    largest_cold_s: float
    index_bytes_a_process: int
    vector_bytes_a_process: int
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"command": "size", **asdict(self)}


def stored_bytes(needs: Needs, *, compacted: bool = False) -> dict[str, float]:
    """Return the bytes of the tables in PostgreSQL by part, and of the indexes of all tables together.

    Args:
        compacted: Without dead rows and the space that they leave; else as a memory is while it grows.
    """
    written = "compacted" if compacted else "batches" if needs.batched else "single"
    longer = needs.text_chars - SHORT
    a_record = {part: value(f"{written}.{part}") for part in ("versions", "heads", "trie pages", "log", "indexes")}
    a_record["versions"] = max(a_record["versions"] / 2, a_record["versions"] + longer * value("character.versions"))
    # A smaller memory has no segment. Where sizes differ, larger ones have most of the records: all are counted.
    segments = max(value("segments") / 2, value("segments") + longer * value("character.segments"))
    a_record["segments"] = segments if needs.records >= SHARED_FROM else 0.0
    a_record["vectors"] = value("vectors") + needs.vectors * _IN_TABLE if needs.vectors else 0.0
    return {part: nbytes * needs.records for part, nbytes in a_record.items()}


def active_of(needs: Needs) -> float:
    """Return how many namespaces have their index in memory."""
    if needs.zipf is None:
        return needs.active * needs.namespaces
    from recollect.sizing.load import cached_for, zipf

    return cached_for(zipf(needs.namespaces, needs.zipf), needs.hit_rate)


def plan_of(needs: Needs) -> SizePlan:
    """Return the plan for what is needed.

    Cost: with `zipf`, in proportion to the namespaces: a second or two for a million.
    """
    parts, compacted = stored_bytes(needs), stored_bytes(needs, compacted=True)
    total, mean = sum(parts.values()), needs.records / needs.namespaces
    active = active_of(needs)
    index, counted = active * resident_bytes(mean, needs.text_chars), active * counted_bytes(mean, needs.text_chars)
    vectors = active * mean * needs.vectors * _IN_MEMORY
    usable = usable_bytes(needs.node_memory / needs.node_cores)
    cores = _cores(needs, mean)
    by_memory = math.ceil((index + vectors) / (usable * needs.node_cores)) if active else 1
    by_processor = math.ceil((cores[0] + cores[1]) / (needs.node_cores * PROCESSOR_SHARE))
    nodes = max(by_memory, by_processor, 1) + needs.spare
    a_record = resident_bytes(2.0, needs.text_chars) - resident_bytes(1.0, needs.text_chars)
    a_record += needs.vectors * _IN_MEMORY
    largest = int(usable / 2 / a_record)
    # Vectors and indexes share the memory of a process as they share that of all.
    for_indexes = index / (index + vectors) if vectors and active else 1.0
    plan = {
        "needs": needs,
        "postgresql": parts,
        "postgresql_bytes": total,
        "compacted": compacted,
        "compacted_bytes": sum(compacted.values()),
        "all_servers_bytes": total * (1 + needs.replicas),
        "wal_bytes_a_day": needs.writes_per_s * _DAY_S * wal_bytes(needs.text_chars),
        "active_namespaces": active,
        "index_bytes": index,
        "index_bytes_counted": counted,
        "vector_bytes": vectors,
        "recall_cores": cores[0],
        "write_cores": cores[1],
        "server_cores": (needs.recalls_per_s * value("server.recall") + needs.writes_per_s * value("server.write"))
        / 1e6,
        "nodes_by_memory": max(by_memory, 1),
        "nodes_by_processor": max(by_processor, 1),
        "nodes": nodes,
        "connections": nodes * needs.node_cores * connections_of_a_process(),
        "largest_namespace_a_process": largest,
        "largest_cold_s": float(cold_s("table", np.array([largest]))[0]),
        "index_bytes_a_process": int(
            for_indexes * index_limit(needs.node_memory / needs.node_cores, mean, needs.text_chars)
        ),
        "vector_bytes_a_process": int((1 - for_indexes) * usable),
    }
    return SizePlan(**plan, notes=tuple(_notes(needs, plan)))  # type: ignore[arg-type]


def usable_bytes(memory: float) -> float:
    """Return how much of the memory that a process may have is left for indexes and vectors."""
    return max(memory * MEMORY_SHARE - own_bytes(), memory / 10)


def own_bytes() -> float:
    """Return what a process needs besides indexes and vectors."""
    return value("process") + value("page cache")


def index_limit(memory: float, mean: float, text_chars: float) -> int:
    """Return the limit of word indexes, `index_bytes`, of a process with this memory.

    The engine compares the limit with bytes that it counts, which are not those that are resident.

    Args:
        mean: Mean number of records of a namespace.
    """
    return int(usable_bytes(memory) * counted_bytes(mean, text_chars) / resident_bytes(mean, text_chars))


def wal_bytes(text_chars: float) -> float:
    """Return the bytes of the WAL that a single write makes."""
    return max(value("wal") / 2, value("wal") + (text_chars - SHORT) * value("character.wal"))


def connections_of_a_process() -> int:
    """Return the connections that a process may have: those of its pool, and one more for each thing beside it."""
    return int(value("pool")) + int(value("beside the pool"))


def _cores(needs: Needs, mean: float) -> tuple[float, float]:
    """Return the processor time of recalls and of writes, in seconds a second."""
    sizes = np.array([mean])
    missing = 0.0 if needs.zipf is None else 1 - needs.hit_rate
    kind = "table" if mean >= SHARED_FROM else "built"
    recall = float(recall_s(sizes)[0]) + missing * float(cold_s(kind, sizes)[0])
    write = value("write.batches" if needs.batched else "write.single") / 1e6
    return needs.recalls_per_s * recall, needs.writes_per_s * write


def _notes(needs: Needs, plan: dict[str, Any]) -> list[str]:
    """Return what to know about a plan."""
    out = [
        "bytes are those of texts of sentences in English; other texts, tags and metadata need more: measure yours",
    ]
    mean = needs.records / needs.namespaces
    if plan["postgresql_bytes"] > PRIMARY_BYTES:
        out.append(
            "one primary of 2 to 4 TB is the limit that is usually recommended (not measured here): "
            "divide the namespaces among several stores"
        )
    if needs.writes_per_s >= PRIMARY_WRITES_PER_S:
        out.append(
            "10,000 writes/s and more are beyond one primary (a rule of thumb, not measured here): "
            "divide the namespaces among several stores"
        )
    if plan["connections"] > MAX_CONNECTIONS:
        out.append(f"more than {MAX_CONNECTIONS} connections: use a pooler (?pgbouncer=1), or a smaller ?pool=")
    if mean > plan["largest_namespace_a_process"]:
        out.insert(
            0,
            "the mean namespace is larger than one process should have, and a namespace has only one at a time, "
            "however many nodes there are: divide it, such as by user or agent",
        )
    if needs.zipf is None and needs.active < 1:
        out.append("recalls of namespaces that are not in memory are not in the processor time: state --zipf for that")
    if needs.zipf is not None and mean < SHARED_FROM:
        out.append(f"an index of fewer than {SHARED_FROM} records is built again whenever it was evicted")
    if needs.node_memory / needs.node_cores < 2 * own_bytes():
        out.append("the processes of a node need most of its memory themselves: use fewer cores or more memory")
    if needs.zipf is not None or needs.active < 1:
        out.append("sizes are taken as equal: --simulate has namespaces of very different sizes, and nodes that die")
    return out
