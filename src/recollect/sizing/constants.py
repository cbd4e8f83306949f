"""Measured constants: bytes and processor time of one record, namespace, recall or write.

Each was measured by one command, which prints the figure beside the constant. Bytes are the larger figures of two runs,
rounded up. Times are those of the run beside which nothing else ran; beside other work, writes took a fifth longer.
They are of one machine and of English sentences: repeat the command on yours before you rely on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Times = NDArray[Any]
#: A number of records, or an array of such.
N = TypeVar("N", float, NDArray[Any])

COMMAND = "python -m bench sizes"
MACHINE = "x86-64 (AMD EPYC, 2 virtual cores), Python 3.11.7, PostgreSQL 18.6, NumPy 2.4.6, November 2026"
#: Characters of the texts that the figures "a record" are of.
SHORT = 110
#: Records from which on an index is saved and shared (`KEPT_FROM` of the engine).
SHARED_FROM = 100
#: The two sizes of memories whose recalls were measured.
SMALL, LARGE = 1_000, 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One figure.

    Attributes:
        value: The figure, rounded up.
        unit: What it is of.
        machine: What it was measured on; "" if it is no measurement.
        command: The command that measures it again, or where it is defined.
    """

    value: float
    unit: str
    machine: str = MACHINE
    command: str = COMMAND


#: The units.
_RECORD, _CHARACTER, _CORE = "bytes a record", "bytes a character more than 110", "processor time, microseconds"
_MILLIS = "processor time, milliseconds"
_MEMORY = "bytes of memory"


def _measured(values: dict[str, float], unit: str) -> dict[str, Constant]:
    return {name: Constant(value=each, unit=unit) for name, each in values.items()}


CONSTANTS: dict[str, Constant] = {
    # Tables in PostgreSQL, as 10,000 single writes to one memory left them, with their dead rows.
    **_measured(
        {
            "single.versions": 330,
            "single.heads": 200,
            "single.trie pages": 1500,
            "single.log": 360,
            "single.indexes": 670,
            # The same of 100,000 records in batches of 500.
            "batches.versions": 330,
            "batches.heads": 200,
            "batches.trie pages": 840,
            "batches.log": 140,
            "batches.indexes": 560,
            # Either, once VACUUM FULL has removed the dead rows.
            "compacted.versions": 320,
            "compacted.heads": 200,
            "compacted.trie pages": 270,
            "compacted.log": 280,
            "compacted.indexes": 450,
            "segments": 780,
            "vectors": 650,  # besides four bytes for each component
        },
        _RECORD,
    ),
    **_measured({"wal": 5300}, "bytes a single write"),
    **_measured(
        {"character.versions": 1.2, "character.segments": 3.8, "character.index": 3.8, "character.wal": 1.2}, _CHARACTER
    ),
    # A node. An idle namespace has 20 records and was read; what writing keeps of it is in the page cache.
    **_measured({"index.counted": 760, "index.resident": 850}, _RECORD),
    **_measured({"namespace.counted": 125_000, "namespace.resident": 98_000}, "bytes a namespace"),
    **_measured({"process": 85_000_000}, _MEMORY),
    # Recalls with a loaded index, and what the first one takes besides, at 1,000 and at 100,000 records.
    **_measured({"recall.small": 1.7, "recall.large": 3.5}, _MILLIS),
    **_measured({"built.small": 300, "built.large": 30_000}, _MILLIS),
    **_measured({"table.small": 8.5, "table.large": 120}, _MILLIS),
    **_measured({"file.small": 5.3, "file.large": 80}, _MILLIS),
    **_measured({"write.single": 1700, "write.batches": 280, "server.write": 1500, "server.recall": 500}, _CORE),
    # Not measured, but defined.
    "page cache": Constant(value=2**26, unit=_MEMORY, machine="", command="PAGE_BYTES of stores/postgres/pages.py"),
    "pool": Constant(value=8, unit="connections", machine="", command="?pool= of the address of a store"),
    "beside the pool": Constant(
        value=2, unit="connections", machine="", command="one to watch, one to share segments (stores/postgres)"
    ),
}


def value(name: str) -> float:
    """Return the value of a constant."""
    return CONSTANTS[name].value


def resident_bytes(records: N, text_chars: float) -> N:
    """Return the memory of the index of a namespace with this number of records, in resident bytes."""
    return value("namespace.resident") + records * _index(value("index.resident"), text_chars)


def counted_bytes(records: N, text_chars: float) -> N:
    """Return the same as the engine counts it, which compares it with its limit `index_bytes`."""
    return value("namespace.counted") + records * _index(value("index.counted"), text_chars)


def _index(a_record: float, text_chars: float) -> float:
    # A short text has words, too: half of a text of 110 characters is the least.
    return max(a_record / 2, a_record + (text_chars - SHORT) * value("character.index"))


def recall_s(records: Times) -> Times:
    """Return the processor time of a recall of a memory whose index is loaded, in seconds.

    Between the sizes that were measured, and beyond them, it grows by the same time for each tenfold.
    """
    small, large = value("recall.small"), value("recall.large")
    tenfolds = np.log10(np.maximum(records, SMALL) / SMALL)
    return np.asarray((small + (large - small) * tenfolds / np.log10(LARGE / SMALL)) / 1e3, np.float64)


def cold_s(kind: str, records: Times) -> Times:
    """Return the processor time that a first recall takes besides, in seconds: a straight line through two sizes.

    Args:
        kind: "built" from the ledger, loaded from the shared "table", or from the node's "file".
    """
    small, large = value(f"{kind}.small"), value(f"{kind}.large")
    slope = (large - small) / (LARGE - SMALL)
    return np.asarray(np.maximum(small + (records - SMALL) * slope, 0) / 1e3, np.float64)
