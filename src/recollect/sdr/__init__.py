"""Sparse distributed representations (SDRs): texts as 4096 bits by their character trigrams, and a memory of them.

    from recollect.sdr import SDRMemory

    with SDRMemory("notes.db") as memory:
        memory.store("Database connection pool exhausted", {"host": "db1"})
        memory.query("conection pool", limit=3)

The same text has the same bits on every machine, in every language, whatever PYTHONHASHSEED is.
"""

from recollect.facets.sdr.index.encoding import normalised
from recollect.memory.sdr.sdr import Sdr, SdrHit
from recollect.memory.sdr.texts import SdrText
from recollect.sdr.codes import encode, explain, hamming, overlap, rule_score
from recollect.sdr.memory import SDRMemory
from recollect.sdr.table import read_table, write_table

__all__ = [
    "SDRMemory",
    "Sdr",
    "SdrHit",
    "SdrText",
    "encode",
    "explain",
    "hamming",
    "normalised",
    "overlap",
    "read_table",
    "rule_score",
    "write_table",
]
