"""Ids on the command line: short forms in tables, and commands that accept the beginning of an id.

Only ids in the form of a UUID are shortened, which Recollect derives. An id that a person chose is shown in full: its
beginning may be the id of another record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from recollect.errors import AmbiguousIdError
from recollect.memory import Memory
from recollect.text.unicode import nfc

#: Minimum length of the beginning of an id, shown and accepted. A short word is more likely another id than a prefix.
_SHOWN, _ACCEPTED = 8, 4
_PAGE = 5000
#: Maximum number of candidates that are listed.
_NAMED = 5
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return the form of each id in a table: a UUID is cut to a beginning that is unique among the ids.

    >>> list(short_ids(["07da8130-e45f-5a7b-9c1d-0123456789ab", "07da8130-e45f-6a7b-9c1d-0123456789ab"]).values())
    ['07da8130-e45f-5', '07da8130-e45f-6']
    """
    ordered = sorted(set(ids))
    out = {}
    for before, each, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        length = max(_SHOWN, _shared(before, each) + 1, _shared(each, after) + 1)
        out[each] = each[:length] if _UUID.fullmatch(each) else each
    return out


def _shared(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def whole_id(memory: Memory, text: str, *, in_log: bool = False) -> str:
    """Return the id that `text` is, or of which it is the beginning. If there is none, return `text`.

    An id that the log has is never taken for the beginning of another: what was forgotten stays forgotten.

    Args:
        memory: The memory.
        text: An id or its beginning, of 4 characters or more.
        in_log: Whether ids of forgotten records count, too.

    Raises:
        AmbiguousIdError: Several ids begin like this.

    Cost:
        A look-up for a whole id. Otherwise the records whose ids sort before it are read, about 10 microseconds each;
        with `in_log`, the whole log.
    """
    beginning = nfc(text)
    if len(beginning) < _ACCEPTED or memory.get(text) is not None or memory.changes(id=text, limit=1):
        return text
    found = set(_stored(memory, beginning))
    if in_log:
        changed = (change.id for commit in memory.changes() for change in commit.changes)
        found.update(each for each in changed if each.startswith(beginning))
    if len(found) > 1:
        more = [f"{len(found) - _NAMED} more"] if len(found) > _NAMED else []
        raise AmbiguousIdError(text, ", ".join([*sorted(found)[:_NAMED], *more]))
    return found.pop() if found else text


def _stored(memory: Memory, beginning: str) -> Iterable[str]:
    last = beginning.encode("utf-8", "surrogatepass")
    cursor: str | None = None
    while True:
        page = memory.find(order="id", limit=_PAGE, after=cursor)
        for record in page:
            if record.id.startswith(beginning):
                yield record.id
            elif record.id.encode("utf-8") > last:
                return
        cursor = page.cursor
        if cursor is None:
            return
