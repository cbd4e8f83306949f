"""Documents in pieces: the ids of their records, and which record a piece of an edited document is.

The id of a piece is its source and its name within it, such as the slug of its heading, so that it stays the same if
the document is edited elsewhere. A document that is stored again takes the place of what it was: a piece whose text is
the same stays the record that it is, even if it moved. What was added to a record by other means stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recollect.records.record import MAX_ID_BYTES, Record
from recollect.text.unicode import nfc

#: Bytes of a source that the ids of its pieces begin with, even if the ids are shortened (`bounded_id`).
_PREFIX_BYTES = 200
#: The metadata that belongs to a document.
_METADATA = ("source", "chunk_index", "headings", "continued", "title", "front_matter", "start", "end")
#: The counters at the end of an id.
_COUNTERS = re.compile(r"(?:-\d+)+$")


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
    """Return whether a record was stored as a piece of a document, by this or an earlier release."""
    if record.kind != "knowledge" or record.source is None or "chunk_index" not in record.metadata:
        return False
    start = nfc(f"{record.source}#").encode("utf-8")[:_PREFIX_BYTES].decode("utf-8", "ignore")
    return record.id.startswith(start)


def take_former(pieces: Sequence[Mapping[str, Any]], left: dict[str, Record]) -> list[Record | None]:
    """Return the former record of each piece, taken out of `left`; None for a piece that is new.

    It is the one with its id and text; otherwise one with its text, so that a piece that moved stays what it is;
    otherwise the one with its id; otherwise one whose id differs in the counter alone, as those of equal headings do.

    Args:
        pieces: The fields of the pieces, with "id" and "content".
        left: The former records by id. Those that remain belong to no piece any more.
    """
    out: list[Record | None] = []
    for piece in pieces:
        record = left.get(piece["id"])
        same = record is not None and record.content == piece["content"]
        out.append(left.pop(piece["id"]) if same else None)
    by_text: dict[Any, list[str]] = {}
    for record_id, record in left.items():
        by_text.setdefault(record.content, []).append(record_id)
    for at, piece in enumerate(pieces):
        if out[at] is None and (ids := by_text.get(piece["content"])):
            out[at] = left.pop(ids.pop(0))
    out = [left.pop(piece["id"], None) if each is None else each for piece, each in zip(pieces, out, strict=True)]
    by_name: dict[str, list[str]] = {}
    for record_id in left:
        by_name.setdefault(_COUNTERS.sub("", record_id), []).append(record_id)
    for at, piece in enumerate(pieces):
        if out[at] is None and (ids := by_name.get(_COUNTERS.sub("", piece["id"]))):
            out[at] = left.pop(ids.pop(0))
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
