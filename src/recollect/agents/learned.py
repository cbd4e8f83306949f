"""The report of `Learner.learn`: what became of each fact that a model stated, what failed, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from recollect.common.reprs import ShownTable, line, shows_itself, table
from recollect.engine.results import record_json
from recollect.errors import RecollectError
from recollect.models.learning import StatedFact
from recollect.records.record import Record

#: What became of a fact that a model stated.
Status: TypeAlias = Literal["added", "confirmed", "replaced", "ended", "contradiction", "refused"]


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class LearnedFact:
    """A fact that a model stated, and what became of it.

    Attributes:
        status: "added"; "confirmed": it was known, and nothing was stored; "replaced": it was put in the place of
            another one, which stays as history; "ended": the known fact holds until a day; "contradiction": it was
            stored beside one with which it disagrees; "refused": it was not stored.
        text: The fact, as the model states it.
        attribute: What it is the value of; "" if the model names none.
        value: The value of the attribute, in the words of the turns; the whole fact if the model names none.
        sources: The ids of the turns that state it.
        record: The record of the fact; of one that was confirmed or ended, the known one; None if it was refused.
        other: The record that it replaced, disagrees with, or was not allowed to end.
        reason: Why it was refused, or what of it was left out.
    """

    status: Status
    text: str
    attribute: str = ""
    value: str = ""
    sources: tuple[str, ...] = ()
    record: Record | None = None
    other: Record | None = None
    reason: str = ""

    def _table(self) -> ShownTable:
        return ShownTable(f"{self.status}: {line(self.text)} {line(self.reason)}".rstrip(), ())

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "status": self.status,
            "text": self.text,
            "attribute": self.attribute,
            "value": self.value,
            "sources": list(self.sources),
            "record": None if self.record is None else record_json(self.record),
            "other": None if self.other is None else record_json(self.other),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Cost:
    """What asking models cost.

    Attributes:
        calls: The number of requests.
        prompt_tokens: The tokens of the prompts, estimated as a quarter of their bytes.
        reply_tokens: The tokens of the replies.
        seconds: How long the models took.
    """

    calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.reply_tokens + other.reply_tokens,
            self.seconds + other.seconds,
        )


class Unlearned(NamedTuple):
    """Turns that were not learned from.

    Attributes:
        conversation: The name of their conversation.
        error: Why.
    """

    conversation: str
    error: RecollectError


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class LearnReport:
    """The result of `Learner.learn`.

    Attributes:
        facts: What the models stated, in order, and what became of it.
        turns: The number of turns that were read.
        commits: The numbers of the commits, each of which `revert` takes back; none in a dry run or within a scope.
        failed: Conversations of which turns were not read; they are read by the next call.
        cost: What the models were asked.
    """

    facts: tuple[LearnedFact, ...] = ()
    turns: int = 0
    commits: tuple[int, ...] = ()
    failed: tuple[Unlearned, ...] = ()
    cost: Cost = field(default_factory=Cost)

    def having(self, status: Status) -> list[LearnedFact]:
        """Return the facts of which this became."""
        return [each for each in self.facts if each.status == status]

    def _table(self) -> ShownTable:
        def row(each: LearnedFact) -> tuple[str, ...]:
            return each.status, line(each.text, 80), line(each.reason, 60)

        cost = f"{self.cost.calls} calls, {self.cost.prompt_tokens + self.cost.reply_tokens:,} tokens"
        title = f"{len(self.facts)} facts of {self.turns} turns, {cost}"
        return table(title, ("status", "fact", "reason"), self.facts, row)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "facts": [each.to_json() for each in self.facts],
            "turns": self.turns,
            "commits": list(self.commits),
            "failed": [{"conversation": each.conversation, "error": each.error.to_json()} for each in self.failed],
            "cost": {
                "calls": self.cost.calls,
                "prompt_tokens": self.cost.prompt_tokens,
                "reply_tokens": self.cost.reply_tokens,
                "seconds": round(self.cost.seconds, 3),
            },
        }


def refused(stated: StatedFact, reason: str, sources: Sequence[Record] = ()) -> LearnedFact:
    ids = tuple(each.id for each in sources)
    return LearnedFact("refused", stated.fact, stated.attribute, stated.value, ids, reason=reason)


def noted(found: LearnedFact, note: str) -> LearnedFact:
    return LearnedFact(
        found.status, found.text, found.attribute, found.value, found.sources, found.record, found.other, note
    )


def joined(one: LearnReport, other: LearnReport) -> LearnReport:
    return LearnReport(
        one.facts + other.facts,
        one.turns + other.turns,
        one.commits + other.commits,
        one.failed + other.failed,
        one.cost + other.cost,
    )
