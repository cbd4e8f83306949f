"""The result of a bisection: the commit that changed an answer, and what became of each hit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from recollect.arguments.json_form import JsonForm, is_result
from recollect.common.reprs import ShownTable, line, short_id, shows_itself, table
from recollect.ledger.commits import Commit
from recollect.records.record import Record

#: Why a hit is not what it was.
Reason: TypeAlias = Literal[
    "new",
    "gone",
    "changed text",
    "changed class",
    "changed fields",
    "lapsed",
    "became valid",
    "displaced",
    "moved up",
    "rarer word",
    "commoner word",
    "neighbours",
    "score",
]


@is_result("a flip")
class Flip(NamedTuple):
    """Two commits whose answers were judged differently, and none between them.

    Attributes:
        good: The seq of the commit with the good answer.
        bad: The seq of the commit with the bad answer.
    """

    good: int
    bad: int

    @property
    def seq(self) -> int | None:
        """The commit that changed the answer; None if there are others between the two."""
        return max(self) if abs(self.good - self.bad) == 1 else None


@is_result("a changed word")
class ReweightedWord(NamedTuple):
    """A word of the question that adds another part to the score of a hit than before.

    Attributes:
        word: The word.
        before: Its part of the score before.
        after: Its part of the score after.
        records_before: Number of records that the word reaches before, with the turns around those that have it; None
            if they were not counted, as of all words but the one that changed the score most.
        records_after: The same after.
    """

    word: str
    before: float
    after: float
    records_before: int | None = None
    records_after: int | None = None

    def __str__(self) -> str:
        counted = self.records_before is not None and self.records_after is not None
        reached = f" ({self.records_before} -> {self.records_after} records)" if counted else ""
        return f"{self.word} {self.before:.3f} -> {self.after:.3f}{reached}"


@shows_itself
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HitChange(JsonForm, what="a change of a hit"):
    """What became of a hit between two answers, of which the earlier one is "before".

    Attributes:
        id: The id of its record.
        reason: "new": the commit stored the record. "gone": the commit removed it. "changed text", "changed class" (of
            origin) and "changed fields": the commit changed it. "lapsed": it is not valid any more, or expired.
            "became valid": it was not valid before. "displaced": records above it are new there. "moved up": records
            that were above it are not any more. "rarer word" and "commoner word": a word of the question has more, or
            less, weight. "neighbours": turns around it lend it other words. "score": another signal differs.
        cause: More about it: the cause of the change in the log, such as "forgotten", "expired", "evicted",
            "superseded" or "rolled back"; the fields that changed; why it lapsed. "" if there is no more.
        before: The record before; None if it was not live, or its text was erased.
        after: The record after.
        rank_before: Its rank among the first `k` hits before, from 1; None if it was not among them.
        rank_after: Its rank after.
        score_before: Its score before, also where it is not among the first `k` hits; None if it was no hit.
        score_after: Its score after.
        words: The words that changed its score, the greatest change first.
        by: The ids of the records that did it: that displace, supersede or lend to it.
    """

    id: str
    reason: Reason
    cause: str = ""
    before: Record | None = None
    after: Record | None = None
    rank_before: int | None = None
    rank_after: int | None = None
    score_before: float | None = None
    score_after: float | None = None
    words: tuple[ReweightedWord, ...] = ()
    by: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it in a line: the reason, what did it, the ranks, and the text."""
        by = f"by {', '.join(map(short_id, self.by))}" if self.by else ""
        ranks = f"rank {self.rank_before or 'none'} -> {self.rank_after or 'none'}"
        stated = (self.reason, self.cause, by, *map(str, self.words[:1]), ranks)
        return f"{', '.join(filter(None, stated))}: {self._text()}"

    def _text(self) -> str:
        before, after = ("" if each is None else line(each.content) for each in (self.before, self.after))
        return f"{before!r} -> {after!r}" if before and after and before != after else repr(after or before)

    def _table(self) -> ShownTable:
        return ShownTable(f"HitChange {line(self.id, 40)} {self}", ())


@shows_itself
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Bisected(JsonForm, what="a bisection"):
    """The result of `Memory.bisect`: two commits next to each other, of which one has a good answer and one a bad one.

    Attributes:
        question: The question.
        good: The seq of the commit with the good answer.
        bad: The seq of the commit with the bad answer.
        commit: The commit that changed the answer, with its actor and reason; None if that is not known, because
            those between `good` and `bad` could not be judged.
        calls: Number of recalls, those for the explanation included.
        skipped: The seqs of the commits that could not be judged.
        flips: All changes of the answer that were seen, the oldest first. More than one: the answer changed more often
            than once. One: perhaps it did not; only the judged commits are known.
        why: What became of each hit, those with the best ranks first.
    """

    question: str
    good: int
    bad: int
    commit: Commit | None
    calls: int
    skipped: tuple[int, ...] = ()
    flips: tuple[Flip, ...] = ()
    why: tuple[HitChange, ...] = ()

    @property
    def seq(self) -> int | None:
        """The seq of the commit that changed the answer; None if that is not known."""
        return Flip(self.good, self.bad).seq

    @property
    def flips_seen(self) -> int:
        """How often the answer changed, as far as commits were judged."""
        return len(self.flips)

    def __str__(self) -> str:
        if self.seq is not None:
            return f"commit {self.seq} is the {'first bad' if self.bad > self.good else 'first good'} one"
        first, last = sorted((self.good, self.bad))
        return f"one of the commits {first + 1} to {last}: those before {last} could not be judged"

    def _table(self) -> ShownTable:
        def row(each: HitChange) -> tuple[str, ...]:
            return line(each.id, 40), line(str(each), 160)

        times = f", {self.flips_seen} changes seen" if self.flips_seen > 1 else ""
        return table(f"Bisected {self} ({self.calls} recalls{times})", ("id", "why"), self.why, row)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, with `seq` and `flips_seen`."""
        return {"seq": self.seq, **JsonForm.to_json(self), "flips_seen": self.flips_seen}
