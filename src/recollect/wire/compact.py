"""Hits as clients of this package get them over a socket: the bytes of each record, and explanations as lists.

The JSON form of hits has each field of a record by its name, so that any program can read it. To write it and to build
the records again takes longer than the recall. A client that says so gets the canonical bytes of the records instead,
which it decodes and checks when a record is read, and builds an explanation when that is read.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from typing import Any

from recollect.arguments.checks import is_number
from recollect.arguments.json_form import json_form
from recollect.engine.results import Hit, Hits, Why, Word, hit_without_why, payload_of
from recollect.errors import CodecError, InvalidOperationError
from recollect.records.record import Record

#: The key that says that a result is in this form, with its version.
COMPACT = "compact"
_VERSION = 1


def compact_form(hits: Hits) -> dict[str, Any]:
    """Return hits in this form, for `wire.encode`."""
    return {COMPACT: _VERSION, **hits.json_with(_compact_hit)}


def is_compact(result: object) -> bool:
    """Return whether a result is in this form."""
    return isinstance(result, Mapping) and result.get(COMPACT) == _VERSION


@json_form("hits")
def hits_of(data: Mapping[str, Any]) -> Hits:
    """Rebuild hits. Raise InvalidOperationError if they are not in this form; of a record and an explanation, later."""
    whys = _SentWhys(())
    found: list[Any] = []

    def read(stated: Any) -> Hit:
        match stated:
            case [str(payload), score, confidence, Mapping(), [*_], [*_], _] if is_number(score) and is_number(
                confidence
            ):
                found.append(stated)
                return hit_without_why(
                    SentRecord(a2b_base64(payload, strict_mode=True)), score, confidence, whys, len(found) - 1
                )
        raise ValueError(stated)

    hits = Hits.from_json_with(data, read)
    whys.sent = found
    return hits


def _compact_hit(hit: Hit) -> list[Any]:
    why = hit.why
    payload = b2a_base64(payload_of(hit), newline=False).decode("ascii")
    return [payload, hit.score, hit.confidence, dict(why.shares), why.words, why.replaces, why.cosine]


class SentRecord:
    """A record whose bytes a server has sent.

    Attributes:
        payload: The bytes.
    """

    __slots__ = ("_record", "payload")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self._record: Record | None = None

    def get(self) -> Record:
        """Return the record.

        Raises:
            InvalidOperationError: The bytes are not those of a valid record.
        """
        if self._record is None:
            try:
                self._record = Record.from_bytes(self.payload)
            except CodecError as error:
                raise InvalidOperationError("hits", f"have a record that is none: {error}") from None
        return self._record


class _SentWhys:
    """The explanations of the hits of an answer, as lists.

    Attributes:
        sent: Each hit as it was sent.
    """

    __slots__ = ("sent",)

    def __init__(self, sent: Sequence[Any]) -> None:
        self.sent = sent

    def at(self, place: int) -> Why:
        """Return the explanation of the hit at a place.

        Raises:
            InvalidOperationError: It is none.
        """
        return _why_of(self.sent[place])


@json_form("an explanation")
def _why_of(sent: Sequence[Any]) -> Why:
    shares, words, replaces, cosine = sent[3:]
    if not all(map(is_number, shares.values())) or not (cosine is None or is_number(cosine)) or not _are_ids(replaces):
        raise ValueError(sent)
    return Why(shares, tuple(map(_word_of, words)), tuple(replaces), cosine)


def _word_of(sent: Any) -> Word:
    match sent:
        case [str(word), str(like), score, own, list(lent_by), title] if all(
            map(is_number, (score, own, title))
        ) and _are_ids(lent_by):
            return Word(word, like, score, own, tuple(lent_by), title)
    raise ValueError(sent)


def _are_ids(value: Sequence[Any]) -> bool:
    return all(isinstance(each, str) for each in value)
