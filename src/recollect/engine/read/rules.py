"""The digest of everything that decides a score: constants, tables, stemmer and layout. Receipts contain it.

It covers the constants of the modules that read texts and compute scores, whatever their names, so a new one is covered
without being listed. Constants that only decide how fast an answer is, or how much memory it takes, are left out. A
change of the code itself is covered by `_REVISION`.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Iterator, Mapping, Set
from datetime import UTC, timedelta, timezone, tzinfo
from decimal import Context
from fractions import Fraction
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from recollect.common.regexes import LazyRegex, regex
from recollect.engine.index import document_of

#: Raise it when the same constants give other scores. tests/engine/test_receipts.py fails if this was forgotten.
_REVISION = 15
#: The modules with the constants, in the order in which they enter the digest.
_MODULES = (
    "text._unicode14 text.answers text.asking text.background text.change text.classes text.dates.distances "
    "text.dates.grammar text.dates.holidays text.dates.hours text.dates.lexicon text.dates.lists text.dates.meanings "
    "text.dates.naming text.dates.relations text.dates.rules text.dates.spans text.dates.times "
    "text.english text.events text.folding text.frames text.languages "
    "text.likeness text.manner text.signs text.requests text.unicode text.words indexes.fixed_point indexes.parameters "
    "indexes.documents.columns indexes.kernels.factors indexes.kernels.types indexes.kernels.with_numpy "
    "indexes.scoring.dense indexes.scoring.members indexes.scoring.nearest indexes.scoring.neighbours "
    "indexes.scoring.order_and_summary indexes.scoring.priors indexes.scoring.ranking indexes.scoring.rivals "
    "indexes.scoring.scores indexes.scoring.signals indexes.scoring.speakers indexes.scoring.times "
    "indexes.words.compounds indexes.words.fuzzy indexes.words.index indexes.words.novelty indexes.words.postings "
    "indexes.words.surface_forms indexes.words.titles engine.index.document_of engine.read.concise engine.read.recall "
    "engine.read.replaced engine.read.validity"
).split()
#: Constants that change no answer: sizes of caches, of blocks and of estimates.
_OF_SPEED = frozenset(
    (
        "_MAX_CACHED",
        "_MAX_PAYLOAD_BYTES",
        "_SPARE",
        "_SHORT",
        "_FEW",
        "_SHORT_RUN",
        "_ROW_BYTES",
        "_WAITING_BYTES",
        "_BLOCK",
        "_BATCH",
        "_DOCUMENT_BYTES",
        "_TERM_BYTES",
        "_NEW_TERM_BYTES",
        "_NAMES",
        "_OF_REQUESTS",
        "_COUNT_BITS",
        "_COUNT",
        "_WITH_RIVALS",
        "_STANDING_FIRST",
        "_FEW_STANDING",
        "KERNELS",
        "MARGIN",
        "UNBOUNDED",
        "WEIGHED_BITS",
        "M",
    )
)
_CONSTANT = regex(r"_?[A-Z][A-Z0-9_]*")


def digest(zone: tzinfo = UTC) -> str:
    """Return the digest of the rules for a store of a time zone, as 64 hex digits.

    Cost:
        A few milliseconds.
    """
    hashed = hashlib.sha256(f"recollect.rules.1 {_REVISION} {document_of.rules(False, zone)}".encode())
    for name, value in constants():
        hashed.update(f"\n{name} = {_form(value)}".encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def constants() -> Iterator[tuple[str, Any]]:
    """Yield the constants that decide a score, each with its full name."""
    for module in (import_module(f"recollect.{name}") for name in _MODULES):
        for name in sorted(vars(module)):
            if _CONSTANT.fullmatch(name) and name not in _OF_SPEED:
                yield f"{module.__name__}.{name}", vars(module)[name]


def _form(value: Any) -> str:
    """Return a text for a constant that is the same in every process, and differs for every other value.

    Raises:
        TypeError: There is none for a value of this type.
    """
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}({_form(value.value)})"
    if value is None or isinstance(value, (bool, int, float, str, bytes, Fraction)):
        return repr(value)
    if isinstance(value, LazyRegex):
        return f"re({value.pattern!r}, {value.stated_flags})"
    if isinstance(value, re.Pattern):
        return f"re({value.pattern!r}, {value.flags})"
    if isinstance(value, Context):
        return f"Context({value.prec}, {value.rounding})"
    if isinstance(value, (type, FunctionType)):
        return value.__name__
    if isinstance(value, (timezone, timedelta)):
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_form(key)}: {_form(item)}' for key, item in value.items())}}}"
    if isinstance(value, Set):
        return f"set({', '.join(sorted(map(_form, value)))})"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_form, value))})"
    raise TypeError(f"a constant of type {type(value).__name__} has no canonical form")
