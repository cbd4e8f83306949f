"""Why the hits of a question differ between two moments: one reason for each hit.

A reason is looked for in this order: what the commits between the moments did to the record itself; time, which ends
and begins validities; the records of the commits that are now above it, or were; and then the words and the other
signals of its own score, which depend on how many records have a word and on the turns around the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from recollect.engine.history_results import ChangedRecord
from recollect.engine.results import Hit, Hits, Word
from recollect.filters import valid_at
from recollect.ledger.commits import KEPT, Change, Commit
from recollect.memory.bisection.values import HitChange, Reason, ReweightedWord
from recollect.records.origins import RANKS
from recollect.records.record import Record, aware

#: The fields that say from when to when a record is valid.
_OF_VALIDITY = {"valid_from", "valid_to"}
#: The signals whose shares are the sums of what words add.
_OF_WORDS = {"words", "trigram", "context", "title", "member"}


class AsOf(Protocol):
    """What is asked about one of the two moments."""

    @property
    def hits(self) -> Hits:
        """The first hits of the question."""

    def among(self, ids: Sequence[str]) -> Iterable[Hit]:
        """Return the hits among these records, whatever their rank."""

    def records(self, ids: Sequence[str]) -> Mapping[str, Record | None]:
        """Return the records with these ids; None for one that is not live."""

    def superseding(self, record_id: str) -> Sequence[Record]:
        """Return the live records that replace one."""

    def reached(self, word: str) -> int:
        """Return how many records a word reaches."""


class _State(NamedTuple):
    """A hit at one of the moments.

    Attributes:
        record: Its record; None if it is not live.
        rank: Its rank among the first hits, from 1; None if it is none of them.
        hit: The hit; None if the question does not find the record.
    """

    record: Record | None
    rank: int | None
    hit: Hit | None

    @property
    def score(self) -> float | None:
        """The score of the hit."""
        return None if self.hit is None else self.hit.score


class _Finding(NamedTuple):
    """A reason, with what `HitChange` says about it."""

    reason: Reason
    cause: str = ""
    by: tuple[str, ...] = ()
    words: tuple[ReweightedWord, ...] = ()


def changes_of(before: AsOf, after: AsOf, commits: Sequence[Commit]) -> tuple[HitChange, ...]:
    """Return what became of each of the first hits of two moments, the best ranks first.

    Hits with the same rank and record are left out, unless all are the same: then those are returned whose scores
    differ.

    Args:
        before: The earlier moment.
        after: The later moment.
        commits: The commits between them, the oldest first.
    """
    ids = list(dict.fromkeys(hit.record.id for moment in (after, before) for hit in moment.hits))
    sides = _states(before, ids), _states(after, ids)
    pairs = {each: (sides[0][each], sides[1][each]) for each in ids}
    differing = [each for each, (old, new) in pairs.items() if (old.rank, old.record) != (new.rank, new.record)]
    rescored = [each for each, (old, new) in pairs.items() if old.score != new.score]
    explained = _Explained(before, after, sides, _net(commits))
    return tuple(explained.change(each) for each in differing or rescored)


def _net(commits: Sequence[Commit]) -> dict[str, Change]:
    """Return the effect of all commits on each id; the cause is that of the last one."""
    net: dict[str, Change] = {}
    for commit in commits:
        for each in commit.changes:
            if each.cause == KEPT:
                continue
            first = net.get(each.id, each)
            net[each.id] = each._replace(before=first.before)
    return {each.id: each for each in net.values() if each.before != each.after}


def _states(moment: AsOf, ids: Sequence[str]) -> dict[str, _State]:
    ranked = {hit.record.id: (rank, hit) for rank, hit in enumerate(moment.hits, 1)}
    others = [each for each in ids if each not in ranked]
    found = {hit.record.id: hit for hit in moment.among(others)} if others else {}
    records = {**moment.records(others), **{each: hit.record for each, (_, hit) in ranked.items()}}
    return {each: _State(records[each], *ranked.get(each, (None, found.get(each)))) for each in ids}


class _Explained:
    """The reasons of the hits between two moments.

    Args:
        before: The earlier moment.
        after: The later moment.
        sides: The hits at both, by id.
        changed: What the commits between did to each id.
    """

    def __init__(
        self,
        before: AsOf,
        after: AsOf,
        sides: tuple[Mapping[str, _State], Mapping[str, _State]],
        changed: Mapping[str, Change],
    ) -> None:
        self._before = before
        self._after = after
        self._sides = sides
        self._changed = changed
        self._times = _time_of(before.hits), _time_of(after.hits)
        self._counted: dict[str, tuple[int, int]] = {}

    def change(self, record_id: str) -> HitChange:
        """Return what became of a hit, with its reason."""
        before, after = (side[record_id] for side in self._sides)
        found = next(self._findings(record_id, before, after))
        return HitChange(
            id=record_id,
            reason=found.reason,
            cause=found.cause,
            before=before.record,
            after=after.record,
            rank_before=before.rank,
            rank_after=after.rank,
            score_before=before.score,
            score_after=after.score,
            words=found.words,
            by=found.by,
        )

    def _findings(self, record_id: str, before: _State, after: _State) -> Iterator[_Finding]:
        """Yield the reasons, the one that counts first."""
        yield from self._of_itself(record_id, before.record, after.record)
        assert before.record is not None
        is_rescored = before.score != after.score
        if is_rescored:  # or else the question names a time of its own
            yield from self._of_time(before.record)
        above = self._above(before, self._sides[0]), self._above(after, self._sides[1])
        rose = before.rank is None or (after.rank is not None and after.rank < before.rank)
        reason: Reason = "moved up" if rose else "displaced"
        others = above[0] - above[1] if rose else above[1] - above[0]
        of_commits = others & self._changed.keys()
        if of_commits and before.rank != after.rank:
            yield _Finding(reason, by=tuple(sorted(of_commits)))
        if is_rescored:
            yield self._of_score(before.hit, after.hit)
        yield _Finding(reason, by=tuple(sorted(others)))

    def _of_itself(self, record_id: str, before: Record | None, after: Record | None) -> Iterator[_Finding]:
        """Yield the reason if the commits changed the record, or if it is live at one of the moments only."""
        change = self._changed.get(record_id)
        if before is None or after is None:
            if change is None:  # no commit removed it: reads leave out what has expired
                yield _Finding("lapsed", "expired") if after is None else _Finding("new")
            elif after is None:
                yield _Finding("gone", change.cause, self._merged_into(record_id))
            else:
                yield _Finding("new", "" if change.cause == "written" else change.cause)
        elif change is not None and before != after:
            fields = set(ChangedRecord(before=before, after=after).fields)
            if "content" in fields:
                yield _Finding("changed text", "" if change.cause == "written" else change.cause)
            if before.effective_origin != after.effective_origin:
                yield _Finding("changed class", f"{before.effective_origin} -> {after.effective_origin}")
            if _OF_VALIDITY & fields:
                yield from self._of_time(before, after)
            yield _Finding("changed fields", ", ".join(sorted(fields)))

    def _merged_into(self, record_id: str) -> tuple[str, ...]:
        """Return the records of the commits that a merge put in the place of one."""
        if self._changed[record_id].cause != "superseded":
            return ()
        written = [each.id for each in self._changed.values() if each.after is not None]
        records = self._after.records(written).values()
        return tuple(each.id for each in records if each is not None and record_id in each.derived_from)

    def _of_time(self, before: Record, after: Record | None = None) -> Iterator[_Finding]:
        """Yield the reason if the record is valid at one of the moments only, or begins to replace others."""
        after = after or before
        heirs = self._heirs(self._before, before, 0), self._heirs(self._after, after, 1)
        was_valid = not heirs[0] and valid_at(self._times[0]).matches(before)
        is_valid = not heirs[1] and valid_at(self._times[1]).matches(after)
        if was_valid and not is_valid:
            yield _Finding("lapsed", "superseded" if heirs[1] else "valid_to", tuple(sorted(heirs[1])))
        elif is_valid and not was_valid:
            yield _Finding("became valid", "" if heirs[0] else "valid_from", tuple(sorted(heirs[0])))
        elif after.supersedes and not _begun(before, self._times[0]) and _begun(after, self._times[1]):
            yield _Finding("became valid", "supersedes", after.supersedes)

    def _heirs(self, moment: AsOf, record: Record, side: int) -> set[str]:
        """Return the records that replace one at a moment (`engine.read.replaced`)."""
        time = self._times[side]
        found = (each for each in moment.superseding(record.id) if _may_replace(each, record))
        return {each.id for each in found if _begun(each, time)}

    @staticmethod
    def _above(state: _State, side: Mapping[str, _State]) -> set[str]:
        """Return the ids of the first hits above a hit, which are all of them if it is none of them."""
        ranks = {each: other.rank for each, other in side.items() if other.rank is not None}
        return {each for each, rank in ranks.items() if state.rank is None or rank < state.rank}

    def _of_score(self, before: Hit | None, after: Hit | None) -> _Finding:
        """Return the reason in the hit's own score: in a word, in the turns around it, or in another signal."""
        words = _words(before, after)
        deltas = {each: (new.own - old.own, _lent(new) - _lent(old)) for each, (old, new) in words.items()}
        # Words with equal changes are ordered by name, so that the result is the same everywhere.
        order = sorted(deltas, key=lambda each: (-max(map(abs, deltas[each])), each))
        signals = _signals(before, after)
        greatest = max((abs(new - old) for old, new in signals.values()), default=0.0)
        if not order or greatest > max(map(abs, deltas[order[0]])):
            stated = (f"{name} {old:.3f} -> {new:.3f}" for name, (old, new) in signals.items())
            return _Finding("score", ", ".join(stated))
        own, lent = deltas[order[0]]
        old, new = words[order[0]]
        changes = [
            ReweightedWord(each, words[each][0].score, words[each][1].score) for each in order if any(deltas[each])
        ]
        lenders = set(old.lent_by) | set(new.lent_by)
        if abs(lent) > abs(own) and (by := (lenders & self._changed.keys()) | (set(old.lent_by) ^ set(new.lent_by))):
            return _Finding("neighbours", by=tuple(sorted(by)), words=tuple(changes))
        reached = self._count(order[0])
        changes[0] = changes[0]._replace(records_before=reached[0], records_after=reached[1])
        return _Finding("rarer word" if own + lent > 0 else "commoner word", words=tuple(changes))

    def _count(self, word: str) -> tuple[int, int]:
        """Return how many records a word reaches at both moments."""
        if word not in self._counted:
            self._counted[word] = self._before.reached(word), self._after.reached(word)
        return self._counted[word]


def _words(before: Hit | None, after: Hit | None) -> dict[str, tuple[Word, Word]]:
    """Return the words of a hit at both moments. What a word adds to no score is 0."""
    sides = [{each.like or each.word: each for each in (hit.why.words if hit else ())} for hit in (before, after)]
    nothing = Word("", "", 0.0, 0.0, ())
    return {each: (sides[0].get(each, nothing), sides[1].get(each, nothing)) for each in sides[0] | sides[1]}


def _lent(word: Word) -> float:
    return word.score - word.own


def _signals(before: Hit | None, after: Hit | None) -> dict[str, tuple[float, float]]:
    """Return the shares of a hit's score that differ, without those that consist of its words."""
    old, new = ({} if hit is None else hit.why.shares for hit in (before, after))
    shares = {each: (old.get(each, 0.0), new.get(each, 0.0)) for each in {**old, **new} if each not in _OF_WORDS}
    return {each: pair for each, pair in shares.items() if pair[0] != pair[1]}


def _may_replace(heir: Record, record: Record) -> bool:
    """Return whether a record that names another one in `supersedes` has its owner and the class to replace it."""
    is_trusted = RANKS[heir.effective_origin] >= RANKS[record.effective_origin]
    return is_trusted and heir.user in (None, record.user) and heir.agent in (None, record.agent)


def _begun(record: Record, time: datetime) -> bool:
    """Return whether what a record replaces is replaced at a time."""
    begin = record.valid_from or record.time
    return begin is None or begin <= time


def _time_of(hits: Hits) -> datetime:
    """Return the time that the validity of hits was judged by."""
    assert hits.reference is not None, "every recall states it"
    return aware("reference", hits.reference)
