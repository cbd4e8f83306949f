"""Bytes and processor time of a store on PostgreSQL, from which `recollect size` computes (`recollect.sizing`).

In the database: bytes a record of each table and of its indexes, after batches, after small memories and after single
writes with their trimming; WAL bytes of a write; what machines share. In a node (`bench.node_sizes`): memory of a word
index and of an idle memory, and the processor time of a write, a recall and a first recall. The server is the one of
the tests, with fsync on, on the first core; nodes run on the last one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import recollect
from bench.corpus import cache_folder, corpus
from bench.cost import questions, turns
from bench.measuring import first_core, in_fresh_process, told, versions
from bench.node_sizes import WARM
from recollect.sizing.constants import CONSTANTS
from recollect.testing.postgres import PostgresServer, create_store

#: Characters of a short text and of a long one.
SHORT, LONG = 110, 1000
DIMENSION = 384
BATCH, SMALL = 500, 20
_NODE = "from bench.node_sizes import main; main()"


class RandomVectors:
    """An embedder that costs nothing: a random vector for each text, the same one each time."""

    name, dimension = "bench/random-384", DIMENSION

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        """Return a vector for each text."""
        seeds = [int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) for text in texts]
        return np.array([np.random.default_rng(seed).normal(size=DIMENSION) for seed in seeds], np.float32)


def texts_of(count: int, characters: int) -> Iterator[dict[str, Any]]:
    """Yield turns whose texts are sentences of this machine, joined and cut to a length."""
    sentences = iter(corpus().texts(count * (3 if characters < LONG else 14)))
    for number, turn in enumerate(turns(count)):
        text = f"{number}:"
        while len(text) < characters:
            text += " " + next(sentences)
        yield turn | {"content": text[:characters].rpartition(" ")[0]}


def measured(records: int) -> dict[str, Any]:
    """Return the figures.

    Args:
        records: The number of records of the largest memory; a tenth of them are written one by one.
    """
    logging.getLogger("recollect").setLevel(logging.ERROR)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=cache_folder())))
        with first_core():
            server = PostgresServer({"fsync": "on", "shared_buffers": "512MB", "max_wal_size": "8GB"})
            stack.callback(server.stop)
            server.start()
        found: dict[str, Any] = {"command": "sizes", "records": records}
        for name, characters in (("short", SHORT), ("long", LONG)):
            found[f"{characters} characters"] = _Ledgers(server, folder, name, characters).figures(records)
        found["vectors"] = _vectors(server, folder, records // 10)
        found["constants"] = {
            name: {"measured": measured, "constant": CONSTANTS[name].value}
            for name, measured in constants_of(found).items()
        }
        return {**found, "versions": {**versions(), "postgresql": str(server.execute("SHOW server_version")[0][0])}}


def constants_of(found: dict[str, Any]) -> dict[str, float]:
    """Return the measured figure of each constant of `recollect.sizing` that this command measures."""
    short, long = found[f"{SHORT} characters"], found[f"{LONG} characters"]
    node, longer = short["node"], LONG - SHORT
    out: dict[str, float] = {}
    for kind, figures in (("single", short["single writes"]), ("batches", short["batches"])):
        out |= {f"{kind}.{part}": nbytes for part, nbytes in parts_of(figures).items()}
    compacted = [parts_of(figures["compacted"]) for figures in (short["single writes"], short["batches"])]
    out |= {f"compacted.{part}": max(each[part] for each in compacted) for part in compacted[0]}
    # The texts of both are from 1 to `SHORT`, or to `LONG` characters: what differs is due to the length.
    out["character.versions"] = (
        parts_of(long["single writes"])["versions"] - parts_of(short["single writes"])["versions"]
    ) / longer
    out["segments"] = short["batches"]["segments"]["table"]
    out["character.segments"] = (long["batches"]["segments"]["table"] - out["segments"]) / longer
    vectors = found["vectors"]
    out["vectors"] = vectors["table"] + vectors["indexes"] - 4 * vectors["dimension"]
    wal = short["single writes"]["wal_bytes_a_write"]
    out |= {"wal": wal, "character.wal": (long["single writes"]["wal_bytes_a_write"] - wal) / longer}
    many = f"after {WARM} recalls"
    index, index_long = node["index a record"][many], long["node"]["index a record"][many]
    small = node["a small memory"]["after a recall"]
    for kind in ("counted", "resident"):
        out[f"index.{kind}"] = index[f"{kind}_bytes"]
        out[f"namespace.{kind}"] = small[f"{kind}_bytes"] - SMALL * index[f"{kind}_bytes"]
    out["character.index"] = (index_long["resident_bytes"] - index["resident_bytes"]) / longer
    out["process"] = node["process_bytes"]
    smaller, larger = node["recalls"].values()
    for size, figures in (("small", smaller), ("large", larger)):
        out[f"recall.{size}"] = figures["warm"]["node_ms"]
        for kind in ("built", "table", "file"):
            out[f"{kind}.{size}"] = figures[kind]["node_ms"] - figures["warm"]["node_ms"]
    out["write.single"] = short["single writes"]["node_us_a_write"]
    out["write.batches"] = short["batches"]["write_us_a_record"]
    out["server.write"] = short["single writes"]["server_us_a_write"]
    out["server.recall"] = node["server_us_a_recall"]
    return out


def parts_of(figures: dict[str, Any]) -> dict[str, float]:
    """Return bytes a record by the parts that a plan has."""
    tables_of = {"versions": ["versions"], "heads": ["heads"], "trie pages": ["nodes"], "log": ["commits", "changes"]}
    small = {"table": 0.0, "indexes": 0.0}  # too small to be listed
    found = {part: sum(figures.get(each, small)["table"] for each in names) for part, names in tables_of.items()}
    every = [each for names in tables_of.values() for each in names]
    return {**found, "indexes": sum(figures.get(each, small)["indexes"] for each in every)}


class _Ledgers:
    """The stores with texts of one length.

    Args:
        name: The beginning of the names of their schemas.
    """

    def __init__(self, server: PostgresServer, folder: Path, name: str, characters: int) -> None:
        self._server, self._folder, self._name, self._characters = server, folder, name, characters

    def figures(self, records: int) -> dict[str, Any]:
        """Return bytes a record of each table, and what a node needs."""
        some = max(SMALL, records // 10)
        # Long texts are there to see what depends on the text; the short ones are enough for what does not.
        many = records if self._characters == SHORT else max(some, records // 5)
        given = list(texts_of(many, self._characters))
        with told(f"{many} records of {self._characters} characters in batches"):
            batches = self._batches("batches", [given])
        with told(f"{some} records in memories of {SMALL}"):
            small = self._batches("small", [given[at : at + SMALL] for at in range(0, some, SMALL)])
        with told(f"{some} single writes"):
            single = self._single(given[:some])
        with told("nodes"):
            nodes = json.loads(in_fresh_process(_NODE, "index", self._address("batches"), str(many)))
            if self._characters == SHORT:
                nodes |= json.loads(in_fresh_process(_NODE, "idle", self._address("small"), str(some // SMALL)))
                nodes |= self._cold(many)
        return {"batches": batches, "small memories": small, "single writes": single, "node": nodes}

    def _address(self, kind: str) -> str:
        schema = f"{self._name}_{kind}"
        if not self._server.execute(f"SELECT FROM pg_namespace WHERE nspname = '{schema}'"):
            create_store(self._server.dsn, schema)
        return f"{self._server.dsn}&schema={schema}&cache={self._folder / schema}"

    def _batches(self, kind: str, memories: Sequence[Sequence[dict[str, Any]]]) -> dict[str, Any]:
        with recollect.open(self._address(kind), "0", embedder="none") as store:
            began = time.process_time()
            for number, given in enumerate(memories):
                memory = store.namespace(str(number))
                for first in range(0, len(given), BATCH):
                    memory.remember_all(given[first : first + BATCH])
            took = time.process_time() - began
            memory.recall(questions(1)[0])  # its index is built, and shared if it is large enough
        count = sum(map(len, memories))
        return {**self._tables(kind, count), "write_us_a_record": took / count * 1e6}

    def _single(self, given: Sequence[dict[str, Any]]) -> dict[str, Any]:
        server = self._server
        with recollect.open(self._address("single"), embedder="none") as memory:
            memory.remember("The first record")
            wal, before, began = _wal(server), processor_s(server), time.process_time()
            for turn in given:
                memory.remember(**turn)
            took, on_server = time.process_time() - began, processor_s(server) - before
            wal = _wal(server) - wal
        return {
            **self._tables("single", len(given)),
            "wal_bytes_a_write": wal / len(given),
            "node_us_a_write": took / len(given) * 1e6,
            "server_us_a_write": on_server / len(given) * 1e6,
        }

    def _tables(self, kind: str, count: int) -> dict[str, Any]:
        """Return bytes a record as they were written, and compacted: the rest is dead rows, which later ones use."""
        schema = f"{self._name}_{kind}"
        written = tables(self._server, schema, count)
        for (table,) in self._server.execute(f"SELECT relname FROM pg_stat_user_tables WHERE schemaname = '{schema}'"):
            self._server.execute(f"VACUUM FULL {schema}.{table}")
        return {**written, "compacted": tables(self._server, schema, count)}

    def _cold(self, largest: int) -> dict[str, Any]:
        """Return the processor time of recalls and first recalls, of a small memory and of the largest."""
        found = json.loads(in_fresh_process(_NODE, "cold", self._address("batches"), "0", str(largest)))
        address = self._address("medium")
        with recollect.open(address, "0", embedder="none") as memory:
            memory.remember_all(list(texts_of(min(largest, 1000), self._characters)))
        small = json.loads(in_fresh_process(_NODE, "cold", address, "0", str(min(largest, 1000))))
        before, count = processor_s(self._server), 200
        in_fresh_process(_NODE, "recalls", address, str(count))
        return {
            "recalls": {str(min(largest, 1000)): small, str(largest): found},
            "server_us_a_recall": (processor_s(self._server) - before) / count * 1e6,
        }


def tables(server: PostgresServer, schema: str, count: int) -> dict[str, Any]:
    """Return bytes a record of each table of a schema that has any, and of the indexes of each, by its name."""
    statement = (
        "SELECT relname, pg_table_size(relid), pg_indexes_size(relid) FROM pg_stat_user_tables "
        f"WHERE schemaname = '{schema}' ORDER BY relname"
    )
    rows = [(str(name), int(str(body)), int(str(index))) for name, body, index in server.execute(statement)]
    least = 65_536  # what is empty has some pages, too
    found: dict[str, Any] = {
        name: {"table": body / count, "indexes": index / count} for name, body, index in rows if body + index > least
    }
    return {**found, "sum": sum(body + index for _, body, index in rows) / count}


def _vectors(server: PostgresServer, folder: Path, count: int) -> dict[str, Any]:
    """Return the bytes of the shared vectors, for each text."""
    address = f"{create_store(server.dsn, 'vectors')}&cache={folder / 'vectors'}"
    with told(f"{count} vectors"), recollect.open(address, embedder=RandomVectors()) as memory:
        memory.remember_all(list(texts_of(count, SHORT)))
        memory.embed_all()
    return {"dimension": DIMENSION, **tables(server, "vectors", count)["vectors"]}


def _wal(server: PostgresServer) -> int:
    return int(str(server.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint")[0][0]))


def processor_s(server: PostgresServer) -> float:
    """Return the processor time of all processes of a server so far, in seconds, those that ended included."""
    total = 0
    for process in server.processes():
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended, and is counted in its parent
            continue
        total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")
