"""The operations on receipts: what binds an answer to a commit, and asking the question again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.arguments.checks import check_count, check_text
from recollect.errors import InvalidArgumentError
from recollect.operations.base import READ, Operation
from recollect.operations.reads import Recall
from recollect.records.record import check_instant


@dataclass(frozen=True, kw_only=True)
class Receipt(Operation, name="receipt", right=READ, result="dict", in_batch=False, in_past=True):
    """Write the receipt of an answer. The result is plain JSON (`ledger.receipts`).

    Attributes:
        operation: The question, with its reference time.
        time: The time of the answer, which decided which records had expired.
        seq: The commit that the answer was computed from.
        root: The root after it, as 64 hex digits.
        vectors: The seq up to which every text had a vector; None if no vectors were used.
        hits: The id and the score of each hit, the score in units of 2^-30.
        standing: The same of the standing instructions and preferences.
    """

    operation: Recall
    time: datetime
    seq: int
    root: str
    vectors: int | None = None
    hits: Sequence[Sequence[Any]] = ()
    standing: Sequence[Sequence[Any]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.operation, Recall) or self.operation.reference is None:
            raise InvalidArgumentError("operation", self.operation, "must be a recall with a reference time")
        object.__setattr__(self, "time", check_instant("time", self.time))
        check_count("seq", self.seq, least=0)
        check_count("vectors", self.vectors, least=0, optional=True)
        check_text("root", self.root)
        for name in ("hits", "standing"):
            listed = tuple(map(tuple, getattr(self, name)))
            if not all(len(each) == 2 and type(each[0]) is str and type(each[1]) is int for each in listed):
                raise InvalidArgumentError(name, getattr(self, name), "must be pairs of an id and a score")
            object.__setattr__(self, name, listed)


@dataclass(frozen=True, kw_only=True)
class Replay(Operation, name="replay", right=READ, result="Replayed", in_batch=False):
    """Ask the question of a receipt again, as of its commit. The result is a `Replayed`.

    Attributes:
        receipt: The receipt.
    """

    receipt: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.receipt, Mapping):
            raise InvalidArgumentError("receipt", self.receipt, "must be a JSON object")
