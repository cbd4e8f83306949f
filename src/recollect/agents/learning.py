"""`Learner`: facts out of conversations by a language model of the caller's, kept current, with their history.

Nothing of this is on the write path. After a conversation, or every few turns, a model is shown the turns that are new
and what is known, and states facts. What it states is checked against the turns (`recollect.text.grounding`), compared
with the known facts of the same owner, and added, confirmed, or put in the place of what was true before. All facts of
one reply are one commit with a record of the kind "learning", which names the turns that were read. So a failure
changes nothing, the same turns are not read twice, and `revert` of the commit takes back the facts and lets the turns
be read again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from typing import Any

from recollect import filters as f
from recollect.agents.checking import FactCheck, TurnsToRead
from recollect.agents.comparison import LEARNED, FactComparison, derived_id, ends_after, facts_of, since_of
from recollect.agents.learned import Cost, LearnedFact, LearnReport, Unlearned, joined
from recollect.arguments.checks import check_count
from recollect.calls.calls import zone_of_store
from recollect.calls.tokens import counter
from recollect.errors import InvalidArgumentError, ModelError, RecollectError, RejectedError
from recollect.memory import Memory
from recollect.memory.batch import Batch
from recollect.memory.manager.contradictions import ATTRIBUTE, LEARNING, VALUE
from recollect.models.learning import FactReader, PromptLine
from recollect.operations import Now, ReadHead
from recollect.records import factories
from recollect.records.record import Record

_log = logging.getLogger("recollect")
#: Known facts that are shown with turns, and turns that are read at a time.
_KNOWN, _MOST_TURNS = 40, 40
_USER = "user"


class Learner:
    """Learns facts from the turns of conversations with a language model.

        learner = Learner(memory, "openai/gpt-4o-mini")
        report = learner.learn(conversation="chat-1")

    A fact is a record of the kind "user_fact" or "entity". Its metadata has "attribute" and "value", its `derived_from`
    the turns that state it, and its `valid_from` the time from which it is true. It belongs to the user and the agent
    of these turns. It is never a standing instruction.

    Args:
        memory: The memory, perhaps scoped to a user.
        model: A model, a function from a prompt to a reply, or "provider/model" text (`recollect.models`).
        window: The window of the model in tokens, if `model` is a function or a text; default: 8,192.

    Raises:
        InvalidArgumentError: An argument is invalid.
    """

    def __init__(self, memory: Memory, model: Any, *, window: int | None = None) -> None:
        if not isinstance(memory, Memory):
            raise InvalidArgumentError("memory", memory, "must be a memory")
        self._memory = memory
        self._reader = FactReader(model, window=window)
        self._tokens = counter(None)

    @property
    def name(self) -> str:
        """The model and the version of the prompt."""
        return self._reader.name

    def learn(
        self,
        *,
        conversation: str | None = None,
        user: str | None = None,
        min_turns: int = 1,
        dry_run: bool = False,
        strict: bool = False,
    ) -> LearnReport:
        """Read the turns that were not read yet, and store the facts that they state.

        Args:
            conversation: Only the turns of this conversation; default: of all.
            user: Only the turns of this user; default: of all users. Those of different users are never read together.
            min_turns: The fewest new turns of a user in a conversation that are read.
            dry_run: Ask the model, and store nothing.
            strict: Raise the error of a model that fails. What was learned before stays. Otherwise it is in
                `report.failed`.

        Returns:
            What became of the facts.

        Raises:
            InvalidArgumentError: An argument is invalid.
            ModelError: With `strict`: the model failed, or its reply cannot be read. Nothing of these turns is stored.
            RejectedError: With `strict`: the policies of the memory refused a part of a change. The same.
            StoreError: The store failed.

        Cost:
            One call of the model for about 40 turns, one durable commit each, and some milliseconds for each turn that
            is new. Without a `conversation`, all turns are read to see which are new: some 40 microseconds each.
        """
        for name, text in (("conversation", conversation), ("user", user)):
            if text is not None and (not isinstance(text, str) or not text):
                raise InvalidArgumentError(name, text, "must be text that is not empty")
        check_count("min_turns", min_turns, least=1)
        report = LearnReport()
        for name in [conversation] if conversation is not None else self._conversations(user):
            for part in self._parts(name, user, min_turns):
                found = self._learned(part, dry_run=dry_run)
                report = joined(report, found)
                if found.failed:
                    if strict:
                        raise found.failed[0].error
                    break
        return report

    # Which turns

    def _conversations(self, user: str | None) -> list[str]:
        said = f.kind("conversation") & f.role("user")
        return [str(each.value) for each in self._memory.values("conversation", where=said, user=user)]

    def _parts(self, conversation: str, user: str | None, min_turns: int) -> Iterator[TurnsToRead]:
        """Yield the turns of a conversation that are not read yet, by owner, as many at a time as a model is shown."""
        here = f.conversation(conversation)
        spoken = here & f.kind("conversation") & f.role("user", "assistant") & ~f.tag(factories.OTHER_BRANCH)
        turns = [each for each in self._memory.find(spoken, order="position") if isinstance(each.content, str)]
        read = _read(self._memory, conversation)
        owners = dict.fromkeys((each.user, each.agent) for each in turns if each.role == _USER)
        for owner in owners:
            if user is not None and owner[0] != user:
                continue
            own = [each for each in turns if each.user == owner[0] and each.agent in (owner[1], None)]
            new = [each for each in own if each.role == _USER and each.agent == owner[1] and each.id not in read]
            if len(new) >= min_turns:
                yield from self._split(TurnsToRead(conversation, *owner, own, frozenset(each.id for each in new)))

    def _split(self, part: TurnsToRead) -> Iterator[TurnsToRead]:
        """Yield a part in pieces that fit in the window, each with a few turns before its first new one."""
        room, zone = self._reader.room // 2, zone_of_store(self._memory)
        first = last = next(at for at, each in enumerate(part.turns) if each.id in part.new)
        size = 0
        for at in range(first, len(part.turns)):
            length = _line(part.turns[at], zone, room).size
            if at > first and (size + length > room or at - first >= _MOST_TURNS):
                yield part.between(first, at)
                first, size = at, 0
            size += length
            last = at
        yield part.between(first, last + 1)

    def _lines(self, part: TurnsToRead, zone: tzinfo) -> list[PromptLine]:
        """Return the lines of the turns. The few before the first new one have less room: they say what is meant."""
        room = self._reader.room // 2
        first = next(at for at, each in enumerate(part.turns) if each.id in part.new)
        return [
            _line(each, zone, room if at >= first else room // 16)._replace(number=at + 1)
            for at, each in enumerate(part.turns)
        ]

    # Asking and storing

    def _learned(self, part: TurnsToRead, *, dry_run: bool) -> LearnReport:
        """Ask the model about some turns, and store what it states."""
        new = [each for each in part.turns if each.id in part.new]
        if not new:
            return LearnReport()
        zone = zone_of_store(self._memory)
        known = self._known(part, zone)
        began = time.monotonic()
        shown = [_known_line(each, zone)._replace(number=at) for at, each in enumerate(known, 1)]
        prompt = self._reader.filled(self._lines(part, zone), shown)
        try:
            asked = self._reader(prompt)
        except ModelError as error:
            cost = Cost(1, self._tokens(prompt), 0, time.monotonic() - began)
            return LearnReport(failed=(Unlearned(part.conversation, error),), cost=cost)
        cost = Cost(1, self._tokens(prompt), self._tokens(asked.reply), time.monotonic() - began)
        check = FactCheck(part, known, zone)
        checked = [check(each) for each in asked.facts]  # before the commit begins, so that no writer waits for it
        seq: int | None = None
        facts: list[LearnedFact] = []
        try:
            with self._memory.batch(actor="learner", reason=self.name) as batch:
                if not part.new.isdisjoint(_read(batch, part.conversation)):
                    return LearnReport(cost=cost)  # another process has read them meanwhile
                seq = None if self._memory.scope else batch.execute(ReadHead()).seq + 1
                compare = FactComparison(batch, part, self.name, zone)
                facts = [each if isinstance(each, LearnedFact) else compare(each) for each in checked]
                facts += [LearnedFact("refused", "", reason=reason) for reason in asked.unread]
                batch.remember(**_learning(part, new, facts, self._reader))
                if dry_run:
                    raise _DryRun
        except _DryRun:
            seq = None
        except RejectedError as error:  # in the middle of a change: nothing of these turns was stored
            return LearnReport(failed=(Unlearned(part.conversation, error),), cost=cost)
        return LearnReport(tuple(facts), len(new), () if seq is None else (seq,), cost=cost)

    def _known(self, part: TurnsToRead, zone: tzinfo) -> list[Record]:
        """Return known facts of the owner: those that resemble what was said, and the newest ones."""
        facts = facts_of(part)
        now: datetime = self._memory.execute(Now())
        question = " ".join(str(each.content) for each in part.turns if each.id in part.new)[-2000:]
        hits = self._memory.recall(question, _KNOWN // 2, facts)
        found = [*(hit.record for hit in hits), *self._memory.find(facts, limit=_KNOWN, order="newest")]
        chosen = {each.id: each for each in found if ends_after(each, now)}
        room, out = self._reader.room // 4, []
        for each in list(chosen.values())[:_KNOWN]:
            room -= _known_line(each, zone).size
            if room < 0:
                break
            out.append(each)
        return out


class LearningBeside:
    """Learns from one conversation while it goes on, in a thread of its own, so that no reply waits for it.

    Args:
        learner: The learner.
        conversation: The conversation.
        every: The number of turns of the user after which what is new is read.
    """

    def __init__(self, learner: Learner, conversation: str, every: int) -> None:
        self._learner, self._conversation, self._every = learner, conversation, every
        self._lock = threading.Lock()  # one run at a time
        self._said = 0
        self._thread: threading.Thread | None = None

    def said(self) -> None:
        """Note that a turn of the user was recorded. If there are enough of them, read them, beside the caller."""
        self._said += 1
        if self._said < self._every or (self._thread is not None and self._thread.is_alive()):
            return
        self._said = 0
        self._thread = threading.Thread(target=self._run, name="recollect-learning", daemon=True)
        self._thread.start()

    def finish(self) -> LearnReport:
        """Wait for a run that is in progress, read what is new, and return what became of it."""
        with self._lock:
            self._said = 0
            return self._learned()

    def wait(self) -> None:
        """Wait for a run that is in progress."""
        if self._thread is not None:
            self._thread.join()

    def _learned(self) -> LearnReport:
        report = self._learner.learn(conversation=self._conversation)
        for each in report.failed:
            _log.warning("nothing was learned from %r: %s", each.conversation, each.error)
        return report

    def _run(self) -> None:
        try:
            with self._lock:
                self._learned()
        except RecollectError as error:  # what is not read stays unread, and is read by the next run
            _log.warning("nothing was learned from %r: %s", self._conversation, error)


class _DryRun(Exception):
    """A dry run is over."""


def _read(calls: Memory | Batch, conversation: str) -> frozenset[str]:
    """Return the ids of the turns of a conversation that were read."""
    # By position: of a conversation, that is an index, and by id it is a scan.
    found = calls.find(f.kind(LEARNING) & f.conversation(conversation), order="position")
    return frozenset(turn for each in found for turn in each.derived_from)


def _learning(
    part: TurnsToRead, new: Sequence[Record], facts: Sequence[LearnedFact], reader: FactReader
) -> dict[str, Any]:
    """Return the fields of the record that says which turns were read."""
    counts = {name: sum(each.status == name for each in facts) for name in dict.fromkeys(each.status for each in facts)}
    stored = ", ".join(f"{number} {name}" for name, number in counts.items()) or "no facts"
    owner = {name: value for name, value in (("user", part.user), ("agent", part.agent)) if value is not None}
    return {
        "id": derived_id(*sorted(part.new)),
        "content": f"{len(new)} {'turn was' if len(new) == 1 else 'turns were'} read: {stored}.",
        "kind": LEARNING,
        "time": max((each.time for each in new if each.time is not None), default=None),
        "conversation": part.conversation,
        "derived_from": tuple(each.id for each in new),
        "searchable": False,
        "metadata": {LEARNED: reader.name, "facts": counts},
        **owner,
    }


def _line(turn: Record, zone: tzinfo, room: int) -> PromptLine:
    """Return the line of a turn, of at most `room` bytes: the end of a longer text is left out."""
    said = {} if turn.time is None else {"time": turn.time.astimezone(zone).isoformat(timespec="minutes")}
    speaker = {} if not turn.speaker else {"name": turn.speaker}
    line = PromptLine.of("turn", {"role": turn.role or _USER, **speaker, **said, "text": str(turn.content)})
    text = line.fields["text"]
    while line.size > room and text:
        text = text[: len(text) * room // (line.size + 1)]
        line = line._replace(fields={**line.fields, "text": f"{text} ..."})
    return line


def _known_line(record: Record, zone: tzinfo) -> PromptLine:
    about = record.metadata.get("entity_name")
    fields = {"about": about if isinstance(about, str) else _USER, "fact": str(record.content)}
    for name in (ATTRIBUTE, VALUE):
        if isinstance(value := record.metadata.get(name), str):
            fields[name] = value
    return PromptLine.of("known", fields | {"since": since_of(record).astimezone(zone).date().isoformat()})
