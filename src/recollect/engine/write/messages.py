"""Adding messages: the turns of a list that are not stored yet, as drafts.

An agent passes its whole list of messages each time, so the stored turns are recognised by comparing keys with those
that are cached (`TurnCache`), and only new turns become drafts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from recollect.engine.results import Outcome
from recollect.engine.scope import Scope
from recollect.engine.settings import NONE
from recollect.engine.write.admission import Admission
from recollect.engine.write.drafts import CONVERSATION, Draft, Intake, draft
from recollect.engine.write.edits import align_with_branches, edits, is_summary_prompt
from recollect.engine.write.replay import SYSTEM, USER, Said, StoredTurn, TurnSearch, ordinals_of, said_by
from recollect.errors import RecollectError, RejectedError
from recollect.operations import AddMessages, Remember
from recollect.records.factories import SUMMARY, SUMMARY_ROLE
from recollect.records.identity import derived_conversation, derived_id, identified, text_key
from recollect.records.messages import Turn
from recollect.records.messages.tools import begins, exchange, origins_of
from recollect.records.names import composed
from recollect.records.origins import RANKS, Origin, implied, least
from recollect.records.origins import USER as USER_ORIGIN
from recollect.records.record import Record, instant, located, located_fields

_FORGOTTEN = Outcome(None, "unchanged")


class Addition:
    """The turns of an `AddMessages` operation in a scope.

    Args:
        scope: The scope of the caller.
        now: The time of turns for which no time is stated. Later turns are newer, by a microsecond each.
        intake: The settings for new records.
        origin: The class of origin of the writer.

    Raises:
        ScopeError: A field lies outside the scope.
        InvalidRecordError: A field that all turns share is invalid.
    """

    def __init__(
        self, operation: AddMessages, scope: Scope, now: datetime, intake: Intake, origin: Origin = USER_ORIGIN
    ) -> None:
        self.turns = operation.turns
        self._origin, self._tool_origins = origin, operation.tool_origins
        self._replayed: frozenset[int] = frozenset()  # the turns that are stored
        self._before: tuple[Record, ...] = ()  # the last stored turns, which the first of these may repeat
        self._judged: set[int] = set()  # the turns that the policies may put into quarantine
        self._admitted: Sequence[Turn] = operation.turns  # as the policies of the namespace allow them
        self._rejected: dict[int, RejectedError] = {}
        self._policies = NONE
        self._scope = scope
        self._intake = intake
        stated = composed({name: value for name, value in operation.fields.items() if value is not None})
        fields = located_fields(stated, intake.zone)
        owner = scope.fill({name: value for name, value in fields.items() if name not in ("time", "tags")})
        self._user, self._agent = owner.get("user"), owner.get("agent")
        self._names_conversation = "conversation" not in owner and bool(self.turns)
        if self._names_conversation:
            fields["conversation"] = self._derived_conversation()
        identified(content="any", kind=CONVERSATION, **scope.fill(fields))  # raises for a field of all turns
        self.conversation: str = fields.get("conversation") or owner.get("conversation", "")
        self._session = owner.get("session")
        self._time = instant("time", fields.pop("time", now))
        self._fields: dict[str, Any] = {**fields, "kind": CONVERSATION}
        self._summaries: dict[int, tuple[str, ...]] = {}  # the turns that are summaries, and what each replaces
        #: The stored turns that the list has left, and those that it has come back to (`edits`).
        self.abandoned: list[Record] = []
        self.resumed: list[Record] = []

    def obey(self, admission: Admission) -> bool:
        """Apply the policies of the namespace to the turns, and return whether that changed something."""
        if admission.policies == self._policies:
            return False
        self._policies, self._rejected, self._judged = admission.policies, {}, set()
        admitted = list(self.turns)
        for index, turn in enumerate(self.turns):
            try:
                admitted[index] = admission.turn(turn)
            except RejectedError as error:
                self._rejected[index] = error
        self._admitted = admitted
        self._judge(admission)
        if self._names_conversation:
            self.conversation = self._fields["conversation"] = self._derived_conversation()
        self.__dict__.pop("_said", None)
        self.__dict__.pop("_ordinals", None)
        return True

    def _judge(self, admission: Admission) -> None:
        """Note which turns the policies refuse for who said them or how they look, or may put into quarantine."""
        self.__dict__.pop("_origins", None)
        if not admission.keeps_away:
            return
        for index, turn in enumerate(self._admitted):
            origin = least((implied(turn.role, None, CONVERSATION), self._origin, *self._stated(index)))
            handling, why, *found = admission.handling(origin, turn.content)
            if handling == "refuse" and index not in self._rejected:
                self._rejected[index] = RejectedError("origin", why, *found)
            elif RANKS[origin] < RANKS[USER_ORIGIN]:
                self._judged.add(index)

    @cached_property
    def _origins(self) -> Sequence[Origin | None] | None:
        if not self._policies.record_origins:
            return None
        return origins_of(self._admitted, self._tool_origins, self._before, self._replayed)

    def _stated(self, index: int) -> tuple[Origin, ...]:
        """Return the class of origin of a turn, if its role does not say so."""
        origin = None if self._origins is None else self._origins[index]
        return () if origin is None else (origin,)

    def _derived_conversation(self) -> str:
        said = [(turn.role, turn.content) for index, turn in enumerate(self._admitted) if index not in self._rejected]
        said = said or [(turn.role, turn.content) for turn in self.turns]
        return _conversation(self._user, self._agent, said, self._intake.id_key)

    def draft(self, index: int) -> Draft:
        """Return the draft of a turn.

        Raises:
            RecollectError: The turn is invalid, exceeds a limit, or is rejected by a policy.
        """
        if index in self._rejected:
            raise self._rejected[index]
        turn = self._admitted[index]
        time = self._time + timedelta(microseconds=index)
        if turn.time is not None:
            time = located("time", turn.time, self._intake.zone)
        fields = {**self._fields, "role": turn.role, "time": time}
        if index in self._summaries:
            fields |= {"kind": SUMMARY, "role": SUMMARY_ROLE, "supersedes": self._summaries[index]}
        elif turn.speaker is not None:
            fields["speaker"] = turn.speaker
        if turn.metadata:
            fields["metadata"] = turn.metadata
        if self._origins is not None and (stated := self._stated(index)):
            fields["origin"] = least((stated[0], self._origin))
        return draft(Remember(content=turn.content, fields=fields), self._scope, self._time, self._intake)

    def known(
        self, search: TurnSearch, is_apart: Callable[[str], bool], start: int = 0, apart: TurnSearch | None = None
    ) -> dict[int, Outcome]:
        """Return the outcomes of the turns from index `start` on that are stored or were forgotten, by their index.

        Args:
            search: Finds stored turns.
            is_apart: Returns whether the turn with an id was put into quarantine and not released.
            start: The first index.
            apart: Finds turns in quarantine, where there may be some.
        """
        stored = search.turns(self.conversation).said(self._user, self._agent)
        kept = [] if apart is None or start else apart.turns(self.conversation).said(self._user, self._agent).turns
        if not stored.turns and not stored.prompts:
            if not start:
                self._follow(stored.turns, kept, {}, None)
            return {}

        answers: dict[tuple[int, tuple[str | None, ...]], bool] = {}

        def was_forgotten(index: int, near: int) -> bool:
            # The session of a turn is part of its derived id, and may be that of its neighbours.
            around = (each.record.session for each in stored.turns[max(near - 1, 0) : near + 1])
            sessions = tuple(dict.fromkeys((self._session, *around)))
            if (index, sessions) not in answers:
                answers[index, sessions] = any(map(search.was_forgotten, self._ids(index, sessions)))
            return answers[index, sessions]

        # A system prompt may change from call to call and stays first in a list that is trimmed, so it is known
        # wherever it was stored, and says nothing about the other turns.
        indexes: Sequence[int] = range(start, len(self.turns))
        away = self._rejected.keys() | self._kept_apart(is_apart)
        prompts = [index for index in indexes if self.turns[index].role == SYSTEM and index not in away]
        keys = self._said[start:]
        if prompts or away:
            # These turns are not stored, so the others follow each other without them.
            indexes = [index for index in indexes if self.turns[index].role != SYSTEM and index not in away]
            keys = [self._said[index] for index in indexes]
        left = frozenset[int]()
        if stored.abandoned:
            left = frozenset(n for n, turn in enumerate(stored.turns) if turn.record.id in stored.abandoned)
        questions = (n for n, turn in enumerate(stored.turns) if turn.record.role == USER and n not in left)
        places = align_with_branches(
            stored.keys,
            left,
            keys,
            lambda at, near: was_forgotten(indexes[at], near),
            one_exchange=next(questions, None) is None or next(questions, None) is None,
        )
        known = {
            indexes[at]: _FORGOTTEN if place is None else stored.turns[place].unchanged for at, place in places.items()
        }
        if not start:  # a rest of the list says nothing about what it lacks
            known |= self._edited(search, stored, left, indexes, places, prompts)
        for index in prompts:
            if index in known:
                continue
            if prompt := stored.prompts.get(self._said[index]):
                known[index] = prompt.unchanged
            elif was_forgotten(index, 0):
                known[index] = _FORGOTTEN
        if not start:
            new = next((index for index in indexes if index not in known), len(self.turns))
            last = max((place for at, place in places.items() if place is not None and indexes[at] < new), default=None)
            self._follow(stored.turns, kept, known, last)
        return known

    def _follow(
        self, stored: Sequence[StoredTurn], kept: Sequence[StoredTurn], known: Mapping[int, Outcome], last: int | None
    ) -> None:
        """Note what the first new turn follows, and so may repeat: also what the list leaves out of that exchange.

        Args:
            stored: The stored turns.
            kept: Those in quarantine.
            known: The turns of the list that are stored, by their index.
            last: The place of the last stored turn before the first new one; None: it follows all of them.
        """
        end = len(stored) if last is None else last + 1
        while end < len(stored) and not begins(stored[end].record.role, stored[end].record.effective_origin):
            end += 1
        turns = [*stored[:end]]
        if kept:
            turns += [turn for turn in kept if end == len(stored) or turn.order < stored[end].order]
            turns.sort(key=lambda turn: turn.order)
        self._before, self._replayed = exchange(turn.record for turn in reversed(turns)), frozenset(known)
        self.__dict__.pop("_origins", None)

    def _kept_apart(self, is_apart: Callable[[str], bool]) -> set[int]:
        """Return the turns that are in quarantine, or were rejected there."""
        return {index for index in self._judged if any(map(is_apart, self._ids(index, (self._session,))))}

    def _edited(
        self,
        search: TurnSearch,
        stored: Said,
        left: frozenset[int],
        indexes: Sequence[int],
        places: Mapping[int, int | None],
        prompts: Sequence[int],
    ) -> dict[int, Outcome]:
        """Note what the list says about stored turns, and return the outcomes of summaries that are known."""
        self.abandoned, self.resumed, self._summaries = [], [], {}
        if len(places) == len(indexes) and not prompts:  # nothing is new
            return {}
        found = edits(stored.turns, left, [self._admitted[index] for index in indexes], places)
        summaries = [indexes[at] for at in found.summaries]
        if min((place for place in places.values() if place is not None), default=0):  # the list is trimmed
            said = (index for index in prompts if self._said[index] not in stored.prompts)
            summaries += [index for index in said if is_summary_prompt(self._admitted[index].content)]
        self.abandoned = [stored.turns[place].record for place in sorted(found.abandoned)]
        self.resumed = [stored.turns[place].record for place in sorted(left.intersection(places.values()))]
        known = {indexes[at]: stored.turns[place].unchanged for at, place in found.cut.items()}
        for index in summaries:
            summary = stored.summaries.get(text_key(self._admitted[index].content))
            if summary is not None:
                known[index] = summary.unchanged
                continue
            records = [turn.unchanged.record for turn in stored.summaries.values() if turn.unchanged.record is not None]
            replaced = {each for record in records for each in record.supersedes}
            self._summaries[index] = tuple(record.id for record in records if record.id not in replaced)
            with suppress(RecollectError):  # an invalid one is reported when it is stored
                if search.was_forgotten(self.draft(index).derived_id()):
                    known[index] = _FORGOTTEN
        return known

    @cached_property
    def _said(self) -> list[Hashable]:
        return [said_by(turn.role, turn.speaker, turn.content) for turn in self._admitted]

    @cached_property
    def _ordinals(self) -> Sequence[int]:
        return ordinals_of(self._said)

    def _ids(self, index: int, sessions: Sequence[str | None]) -> list[str]:
        """Return the ids that a turn would have in sessions."""
        turn, out = self._admitted[index], list[str]()
        for session in sessions:
            fields = {**self._fields, "role": turn.role, "speaker": turn.speaker, "session": session}
            try:
                record = identified(self._intake.id_key, content=turn.content, **self._scope.fill(fields))
            except RecollectError:  # invalid, so it was never stored
                continue
            out.append(derived_id(record, self._ordinals[index], self._intake.id_key))
        return out


def with_conversations(
    items: Sequence[Remember], scope: Scope, id_key: bytes | None, admission: Admission
) -> Sequence[Remember]:
    """Return items, in which messages without a conversation share one, derived from the first of the same owners.

    It is derived from the text that the policies of the namespace allow, as by `Addition`.
    """
    if not any(map(_lacks_conversation, items)) or any(name == "conversation" for name, _ in scope.fixed):
        return items
    owners: dict[int, tuple[Any, Any]] = {}
    said: dict[tuple[Any, Any], list[tuple[str, str]]] = {}
    for index, item in enumerate(items):
        if _lacks_conversation(item) and isinstance(item.content, str):
            with suppress(RecollectError):  # an invalid item is reported when it is drafted
                owner = composed(scope.fill(item.fields))
                key = owners[index] = owner.get("user"), owner.get("agent")
                said.setdefault(key, []).append((item.fields["role"], admission.text(item.content)))
    out = list(items)
    names: dict[tuple[Any, Any], str] = {}
    for key, messages in said.items():
        with suppress(RecollectError):
            names[key] = _conversation(*key, messages, id_key)
    for index, key in owners.items():
        if key in names:
            out[index] = replace(items[index], fields={**items[index].fields, "conversation": names[key]})
    return out


def _conversation(user: str | None, agent: str | None, said: Sequence[tuple[str, str]], id_key: bytes | None) -> str:
    """Return the name of a conversation without one, derived from its owners and its first role and text.

    System prompts come first in many conversations, so they do not name one if it has other messages.
    """
    role, content = next((each for each in said if each[0] != SYSTEM), said[0])
    return derived_conversation(user, agent, role, content, id_key)


def _lacks_conversation(item: Remember) -> bool:
    fields = item.fields
    return (
        not item.exact
        and fields.get("kind") == CONVERSATION
        and fields.get("role") is not None
        and not fields.get("conversation")
    )
