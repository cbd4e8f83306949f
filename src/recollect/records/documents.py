"""Documents in pieces: the ids of their records, and which record a piece of an edited document is.

The id of a piece is its source and its name within it, such as the slug of its heading, so that it stays the same if
the document is edited elsewhere. A document that is stored again takes the place of what it was: a piece whose text is
the same stays the record that it is, even if it moved. What was added to a record by other means stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from recollect.common.regexes import regex
from recollect.records.identity import numbered_ids
from recollect.records.names import MAX_ID_BYTES
from recollect.records.record import Record
from recollect.text.unicode import nfc

#: Bytes of a source that the ids of its pieces begin with, even if the ids are shortened (`bounded_id`).
_PREFIX_BYTES = 200
#: The metadata that belongs to a document.
_METADATA = (
    "source", "chunk_index", "headings", "continued", "title", "aliases", "front_matter", "links", "embedded",
    "caption", "start", "end",
)  # fmt: skip
#: What an id that was chosen in a scope begins with, as callers outside of the scope see it (`engine.scope`).
_QUALIFIER = regex(r"@[^/]*/")
#: The counters at the end of an id.
_COUNTERS = regex(r"(?:-\d+)+$")


class PieceNames:
    """The names of a document's pieces, each once."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}
        self._section = ""

    def of(self, name: str, part: int) -> str:
        """Return the name of a piece: with a counter if an earlier one has it, and with the number of a further part.

        >>> names = PieceNames()
        >>> [names.of(name, part) for name, part in (("a", 0), ("a", 1), ("a", 0), ("a-2", 0))]
        ['a', 'a/2', 'a-2', 'a-2-2']
        """
        if part:
            return f"{self._section}/{part + 1}"
        unique = name
        while unique in self._used:
            counter = self._next[name] = self._next.get(name, 1) + 1
            unique = f"{name}-{counter}"
        self._used.add(unique)
        self._section = unique
        return unique


def piece_id(source: str, name: str) -> str:
    """Return the id of the piece of a source that has a name."""
    return bounded_id(f"{source}#{name}")


def bounded_id(text: str) -> str:
    """Return `text` as the id of a record: unchanged if it is short enough, otherwise its beginning and a digest.

    >>> bounded_id("notes.txt#3"), len(bounded_id("long" * 100))
    ('notes.txt#3', 255)
    """
    raw = nfc(text).encode("utf-8", "surrogatepass")  # `Record` rejects a lone surrogate
    if len(raw) <= MAX_ID_BYTES:
        return nfc(text)
    digest = hashlib.sha256(raw).hexdigest()[:32]
    return raw[: MAX_ID_BYTES - len(digest) - 1].decode("utf-8", "ignore") + "~" + digest


def is_piece(record: Record) -> bool:
    """Return whether a record was stored as a piece of a document, by this or an earlier release, in any scope."""
    if record.kind != "knowledge" or record.source is None or "chunk_index" not in record.metadata:
        return False
    start = nfc(f"{record.source}#").encode("utf-8")[:_PREFIX_BYTES].decode("utf-8", "ignore")
    return record.id.startswith(start) or _unqualified(record.id).startswith(start)


def take_former(pieces: Sequence[Mapping[str, Any]], left: dict[str, Record]) -> list[Record | None]:
    """Return the former record of each piece, taken out of `left`; None for a piece that is new.

    It is the one with its id and text; otherwise one with its text, so that a piece that moved stays what it is;
    otherwise the one with its id; otherwise one whose id differs only in the counter, as those of equal headings do.
    The scope in which an id was chosen only decides between ids that are equal otherwise.

    Args:
        pieces: The fields of the pieces, with "id" and "content".
        left: The former records by id. Those that remain belong to no piece any more.
    """
    out: list[Record | None] = [None] * len(pieces)
    for key in _KEYS:
        if not left:
            break
        by_key: dict[Any, list[str]] = {}
        for record in sorted(left.values(), key=_order):
            by_key.setdefault(key(record.id, record.content), []).append(record.id)
        for at, piece in enumerate(pieces):
            if out[at] is None and (ids := by_key.get(key(piece["id"], piece["content"]))):
                out[at] = left.pop(ids.pop(0))
    return out


def _order(record: Record) -> tuple[int, int, str]:
    """Return the sort key of a former record: pieces with the same text keep their order."""
    start = record.metadata.get("start")
    return (start if isinstance(start, int) else 0, len(record.id), record.id)


def _unqualified(record_id: str) -> str:
    return _QUALIFIER.sub("", record_id, count=1)


#: What the id and the content of a piece and of its former record have in common, the best first.
_KEYS: tuple[Callable[[str, Any], Any], ...] = (
    lambda record_id, content: (record_id, content),
    lambda record_id, content: (_unqualified(record_id), content),
    lambda record_id, content: content,
    lambda record_id, content: record_id,
    lambda record_id, content: _unqualified(record_id),
    lambda record_id, content: _COUNTERS.sub("", _unqualified(record_id)),
)


def free_ids(
    pieces: Sequence[Mapping[str, Any]],
    former: Sequence[Record | None],
    stored: Callable[[Iterable[str]], Iterable[Record]],
    is_own: Callable[[Record], bool],
) -> list[str]:
    """Return the id under which to store each piece: that of its former record, or one that nothing else has.

    An id that has the text of another owner is not free: storing the same text there would change nothing.

    Args:
        pieces: The fields of the pieces, with "id" and "content".
        former: Their former records (`take_former`).
        stored: Returns the stored records that have one of some ids.
        is_own: Returns whether a record has the user, agent and conversation of the pieces.
    """
    out = [piece["id"] if record is None else record.id for piece, record in zip(pieces, former, strict=True)]
    used = set(out)
    unchecked = [at for at, record in enumerate(former) if record is None]
    candidates = {at: numbered_ids(out[at]) for at in unchecked}
    while unchecked:
        found = {record.id: record for record in stored([out[at] for at in unchecked])}
        taken = {
            at: record
            for at in unchecked
            if (record := found.get(out[at])) and not (is_own(record) and record.content == pieces[at]["content"])
        }
        for at in taken:
            out[at] = next(each for each in candidates[at] if each not in used)
            used.add(out[at])
        unchecked = list(taken)
    return out


def with_added(fields: Mapping[str, Any], former: Record, former_tags: Iterable[str] = ()) -> dict[str, Any]:
    """Return the fields of a piece with the metadata and tags that were added to its former record.

    Args:
        fields: The fields of the piece.
        former: Its former record.
        former_tags: The tags that the document gave to it.
    """
    added = {name: value for name, value in former.metadata.items() if name not in _METADATA}
    tags = set(former.tags) - set(former_tags) | set(fields.get("tags", ()))
    return {**fields, "metadata": {**added, **fields["metadata"]}, "tags": tuple(tags)}
