"""Replaced records: a live record that another live record replaces is not valid from the start of the other one on.

`supersedes` of a record names what it replaces. It is valid, and counts, from its `valid_from`, or else its time, or,
if it has neither, always. A record replaces those of its own user and agent, or, if it has none, those of anyone:
all who may read the replaced one may read it, too. A record of a lower class of origin than another one replaces it
only once it is endorsed: until then, its link is a proposal. Where the middle of a chain was forgotten, its last
version says what it replaced. Records that replace each other in a circle replace nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from recollect.common.deadlines import check
from recollect.common.regexes import regex
from recollect.engine.index.filter_terms import links_term, origin_term
from recollect.engine.read.log import last_effect
from recollect.engine.read.record_loader import Records
from recollect.engine.scope import linked_id, scopes_of
from recollect.errors import InvalidRecordError
from recollect.indexes.documents.columns import NO_TIME, NONE, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.words.index import WordView
from recollect.indexes.words.segment import POSITION_BITS
from recollect.ledger.commits import Branch
from recollect.records.origins import ORIGINS, OWNER, RANKS, UNKNOWN, USER
from recollect.records.record import Record
from recollect.stores.base import ReadView

#: An id that was made from the content of a record.
_MADE = regex("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOTHING: Ints = np.zeros(0, dtype=np.int64)
#: The name under which links are cached with the rows of a table.
_CACHE = "supersedes"
#: Maximum number of forgotten records that are looked up in the history, those of the newest links first.
_MOST_FORGOTTEN = 1000


class _Links(NamedTuple):
    """The links of documents, dead ones included: documents stand for versions, so links never change.

    Attributes:
        read: The documents whose links these are, ascending.
        heirs: The document of each link.
        targets: The ids under which the record that each link names may be stored.
        numbers: The document of that record when it was last looked up, or NONE.
    """

    read: Ints
    heirs: Ints
    targets: tuple[tuple[str, ...], ...]
    numbers: Ints


_NO_LINKS = _Links(_NOTHING, _NOTHING, (), _NOTHING)


class Replacements(NamedTuple):
    """The replacements among live documents: which by which, and from when.

    Attributes:
        numbers: The replaced documents, ascending; one for each that replaces it.
        heirs: The documents that replace them.
        since: From when, in microseconds since 1970; NO_TIME: always.
        replacing: The documents that name others as replaced, ascending, and when each begins.
    """

    numbers: Ints
    heirs: Ints
    since: Ints
    replacing: tuple[Ints, Ints]

    def later(self, time: int) -> Ints:
        """Return the documents that replace others from a later time on, ascending."""
        numbers, begins = self.replacing
        out: Ints = numbers[begins >= time]
        return out

    def before(self, time: int) -> Ints:
        """Return the documents that are replaced at a time, ascending."""
        numbers = self.numbers[self.since <= time]
        out: Ints = numbers[np.diff(numbers, prepend=NONE) != 0]
        return out

    def heirs_of(self, number: int) -> list[int]:
        """Return the documents that replace a document."""
        begin, end = self.numbers.searchsorted([number, number + 1])
        heirs: list[int] = self.heirs[begin:end].tolist()
        return heirs

    def since_of(self, number: int) -> int | None:
        """Return from when a document is replaced, or None if it is not."""
        begin, end = self.numbers.searchsorted([number, number + 1])
        return int(self.since[begin:end].min()) if end > begin else None


NONE_REPLACED = Replacements(_NOTHING, _NOTHING, _NOTHING, (_NOTHING, _NOTHING))


def replaced(view: ReadView, branch: Branch, words: WordView) -> Replacements:
    """Return what is replaced among the live documents of an index.

    Args:
        view: The view of the store.
        words: The index at that view, without expired records.

    Cost:
        O(links), and on first use, the records that have one are read. Nothing if no record has one.
    """
    term = links_term("supersedes")
    if not words.in_use(term):  # most stores stop here
        return NONE_REPLACED
    table = words.table
    found: list[Replacements] = table.derived.get(_CACHE, [])
    if not found:
        found = [_replaced(view, branch, words, words.occurrences(term) >> POSITION_BITS)]
        table.derived[_CACHE] = found
    return found[0]


def _replaced(view: ReadView, branch: Branch, words: WordView, heirs: Ints) -> Replacements:
    table = words.table
    links = _links(view, branch, table, heirs)
    usable = (links.heirs < table.count) & table.alive[np.minimum(links.heirs, table.count - 1)]
    of, numbers = links.heirs[usable], _now(links, table, usable)
    forgotten = numbers == NONE
    if forgotten.any():
        names = np.flatnonzero(usable)[forgotten].tolist()
        more = list(_through(view, branch, table, [(int(links.heirs[at]), links.targets[at]) for at in names]))
        extra = np.array(more, dtype=np.int64).reshape(-1, 3)
        of, numbers = np.concatenate([of[~forgotten], extra[:, 0]]), np.concatenate([numbers[~forgotten], extra[:, 1]])
        through = np.concatenate([np.full(int((~forgotten).sum()), RANKS[OWNER]), extra[:, 2]])
    else:
        through = np.full(len(of), RANKS[OWNER])
    may = of != numbers
    for column in (table.user, table.agent):
        may &= (column[of] == column[numbers]) | (column[of] == NONE)
    if may.any():
        ranks = _ranks(words)
        may &= np.minimum(ranks[of], through) >= ranks[numbers]
    of, numbers = _without_circles(of[may], numbers[may])
    order = np.lexsort((of, numbers))
    of, numbers = of[order], numbers[order]
    return Replacements(numbers, of, _begins(of, table), (heirs, _begins(heirs, table)))


def _ranks(words: WordView) -> Ints:
    """Return the rank of the class of origin of each document."""
    ranks: Ints = np.full(words.table.count, RANKS[USER], dtype=np.int64)
    for origin in ORIGINS:
        if (term := origin_term(origin)) is not None and words.in_use(term):
            ranks[words.having([term])] = RANKS[origin]
    return ranks


def _begins(heirs: Ints, table: Table) -> Ints:
    """Return from when documents replace others."""
    begins: Ints = np.where(table.valid_from[heirs] == NO_TIME, table.micros[heirs], table.valid_from[heirs])
    return begins


def _links(view: ReadView, branch: Branch, table: Table, heirs: Ints) -> _Links:
    """Return the links of at least these documents. Those that are new are read and cached."""
    rows = table.rows
    known: _Links = rows.kept.get(_CACHE, _NO_LINKS)
    missing = np.setdiff1d(heirs, known.read)
    if not len(missing):
        return known
    pairs: list[tuple[int, tuple[str, ...]]] = []
    for number, record in Records(view, branch, table).all(missing):
        pairs += [(number, ids) for ids in _linked(record)]
    links = _Links(
        np.union1d(known.read, missing),
        np.concatenate([known.heirs, np.array([number for number, _ in pairs], dtype=np.int64)]),
        (*known.targets, *(ids for _, ids in pairs)),
        np.concatenate([known.numbers, np.array([_number(ids, table) for _, ids in pairs], dtype=np.int64)]),
    )
    rows.kept[_CACHE] = links
    return links


def _linked(record: Record) -> Iterator[tuple[str, ...]]:
    """Yield for each record that a record replaces the ids under which it may be stored.

    The link is written as the record's scope shows the id, and which scope that was is not stored.
    """
    for each in record.supersedes:
        if _MADE.fullmatch(each):  # no id that anybody chose
            yield (each,)
            continue
        ids = [linked_id(record.id, each)]
        for scope in scopes_of(record):
            with suppress(InvalidRecordError):  # it is too long for an id of that scope, or is one of a scope itself
                ids.append(scope.qualified(each))
        yield tuple(dict.fromkeys(id_ for id_ in (*ids, each) if id_ is not None))


def _number(ids: Iterable[str], table: Table) -> int:
    """Return the first live document with one of some ids, or NONE."""
    return next((number for each in ids if (number := table.number(each)) != NONE), NONE)


def _now(links: _Links, table: Table, usable: np.typing.NDArray[np.bool_]) -> Ints:
    """Return the live documents that some links name, or NONE."""
    numbers = links.numbers[usable]
    inside = (numbers != NONE) & (numbers < table.count)
    stale = ~inside
    stale[inside] = ~table.alive[numbers[inside]]
    names = np.flatnonzero(usable)
    for at in np.flatnonzero(stale).tolist():
        numbers[at] = _number(links.targets[names[at]], table)
    return numbers


def _through(
    view: ReadView, branch: Branch, table: Table, dangling: Iterable[tuple[int, tuple[str, ...]]]
) -> Iterator[tuple[int, int, int]]:
    """Yield for links that name a record which is no longer live the live documents that this one had replaced.

    With each is the least rank of the classes of origin of the records between: none of them replaces what is above it.
    """
    known: dict[str, tuple[int, list[tuple[str, ...]]]] = {}
    for heir, target in sorted(dangling, reverse=True):
        waiting, seen = [(target, RANKS[OWNER])], set[tuple[tuple[str, ...], int]]()
        while waiting:
            ids, rank = waiting.pop()
            if (ids, rank) in seen:
                continue
            seen.add((ids, rank))
            if (number := _number(ids, table)) != NONE:
                yield heir, number, rank
                continue
            for each in ids:
                if each not in known and len(known) < _MOST_FORGOTTEN:
                    check()
                    known[each] = _last_links(view, branch, each)
                own, links = known.get(each, (rank, []))
                waiting += [(link, min(rank, own)) for link in links]


def _last_links(view: ReadView, branch: Branch, record_id: str) -> tuple[int, list[tuple[str, ...]]]:
    """Return what the last version of a record that is no longer live replaced, and the rank of its class of origin.

    Nothing, if that version was erased.
    """
    found = last_effect(view, branch, record_id)
    version = None if found is None else found[1].before
    payload = None if version is None else view.payload(branch, version)
    if payload is None:
        return RANKS[UNKNOWN], []
    record = Record.load(payload)
    return RANKS[record.effective_origin], list(_linked(record))


def _without_circles(heirs: Ints, targets: Ints) -> tuple[Ints, Ints]:
    """Return the links that are part of no circle.

    Most links name an older document, which makes a circle impossible. Otherwise, what no remaining record replaces and
    what replaces no remaining record is taken away until nothing changes: the circles remain, and what connects them.
    """
    if (heirs > targets).all():
        return heirs, targets
    left = np.ones(len(heirs), dtype=np.bool_)
    while left.any():
        on = left & np.isin(heirs, targets[left]) & np.isin(targets, heirs[left])
        if (on == left).all():
            break
        left = on
    return heirs[~left], targets[~left]
