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
from datetime import UTC, timezone, tzinfo
from decimal import Context
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from recollect.engine.index import document_of
from recollect.engine.read import recall, replaced, validity
from recollect.indexes import fixed_point, parameters
from recollect.indexes.documents import columns
from recollect.indexes.kernels import factors, types, with_numpy
from recollect.indexes.scoring import (
    dense,
    members,
    neighbours,
    order_and_summary,
    priors,
    ranking,
    rivals,
    scores,
    signals,
    times,
)
from recollect.indexes.words import compounds, fuzzy, index, postings, surface_forms, titles
from recollect.text import (
    _unicode14,
    answers,
    asking,
    change,
    classes,
    date_matching,
    date_phrases,
    date_spans,
    dates,
    english,
    events,
    folding,
    frames,
    languages,
    likeness,
    manner,
    requests,
    unicode,
    words,
)

#: Raise it when the same constants give other scores. tests/test_receipts.py fails if this was forgotten.
_REVISION = 12
_MODULES: tuple[ModuleType, ...] = (
    _unicode14,
    answers,
    asking,
    change,
    classes,
    date_matching,
    date_phrases,
    date_spans,
    dates,
    english,
    events,
    folding,
    frames,
    languages,
    likeness,
    manner,
    requests,
    unicode,
    words,
    fixed_point,
    parameters,
    columns,
    factors,
    types,
    with_numpy,
    dense,
    members,
    neighbours,
    order_and_summary,
    priors,
    ranking,
    rivals,
    scores,
    signals,
    times,
    compounds,
    fuzzy,
    index,
    postings,
    surface_forms,
    titles,
    document_of,
    recall,
    replaced,
    validity,
)
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
        "KERNELS",
        "UNBOUNDED",
        "M",
    )
)
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")


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
    for module in _MODULES:
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
    if isinstance(value, re.Pattern):
        return f"re({value.pattern!r}, {value.flags})"
    if isinstance(value, Context):
        return f"Context({value.prec}, {value.rounding})"
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, timezone):
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
