"""Recognition of a conversation that is passed again, so that only its new turns are stored.

Agents pass their whole list of messages after each one. So that this costs comparing them, and not reading the whole
conversation again, its turns are cached and caught up from the log. Expired turns are included, since turns expire
without a commit; they are left out at each use.

The cache is a state machine over commits: a value belongs to a tag, the seq and root of a commit. Invariant: the value
equals what reading all turns at that commit returns.

- Start: read the turns of the conversation.
- Catch up from tag to head: read the ids that the log names as changed since, remove their turns and add those that are
  turns of the conversation now. The log names every change, so the result equals a new reading. `Follower` compares the
  root of the tagged commit first: a restored or replaced file does not match, and the value is read again.
- Discard: the changes are more than the turns, a record is corrupt, or the value exceeds the budget.

The value is used under the write lock only, and a transaction that has written reads the store instead, so an undone
transaction leaves nothing in the cache. Turns that come last are appended in place, in constant time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from recollect.engine.follower import Follower
from recollect.engine.results import Outcome
from recollect.engine.scope import Scope
from recollect.engine.write.alignment import align
from recollect.engine.write.drafts import CONVERSATION, Draft
from recollect.filters.tree import AllOf, Filter, Is
from recollect.ledger.commits import KEPT, ROLLED_BACK, Branch, Head
from recollect.ledger.merkle import redacted_id
from recollect.records.codec import microseconds
from recollect.records.factories import OTHER_BRANCH, SUMMARY, is_summary
from recollect.records.identity import fact_key, text_key
from recollect.records.record import Record
from recollect.stores.base import Transaction, View
from recollect.stores.values import expired

#: Memory limit of the cached turns, and the approximate memory of one in addition to its encoded and decoded bytes.
_CACHED_BYTES, _TURN_BYTES = 2**25, 1200
#: The roles of a system prompt, of a person, and of a result of a tool.
SYSTEM, USER, TOOL = "system", "user", "tool"
_NO_EXPIRY = -(2**63)  # a time at which nothing has expired


class Repeated(NamedTuple):
    """The stored turn that a draft repeats.

    Attributes:
        record: The record; None if it was forgotten, and is not stored again.
        head: The newest commit when it was read.
    """

    record: Record | None
    head: Head


class KnownTurns(NamedTuple):
    """The drafts that repeat stored turns, because a conversation is passed again, as of a commit.

    Attributes:
        repeated: Index of the draft -> the stored turn.
        seq: The seq of the commit.
        conversations: The conversations of the drafts.
        turns: The ids of the stored turns that were not forgotten.
    """

    repeated: dict[int, Repeated]
    seq: int
    conversations: frozenset[str]
    turns: frozenset[str]


class StoredTurn(NamedTuple):
    """A turn of a conversation, with what is computed once for it.

    Attributes:
        order: The sort key within a conversation, as `stores.values.in_order` sorts by position.
        said: The author and the text (`said_by`).
        unchanged: The outcome of storing it again.
    """

    order: tuple[int, int, bytes]
    record: Record
    said: Hashable
    unchanged: Outcome

    @classmethod
    def of(cls, record: Record, scope: Scope) -> StoredTurn:
        """Return the turn of a record that a scope shows."""
        position = -1 if record.position is None else record.position
        micros = _NO_EXPIRY if record.time is None else microseconds(record.time)
        return cls(
            (position, micros, record.id.encode("utf-8")),
            record,
            said_by(record.role, record.speaker, record.content),
            Outcome(scope.shown(record), "unchanged"),
        )


def said_by(role: str | None, speaker: str | None, content: str | bytes) -> Hashable:
    """Return what equal messages have in common: their author and text."""
    return role, speaker, text_key(content)


class Said(NamedTuple):
    """The turns of a conversation with one user and agent.

    Attributes:
        turns: The turns that are not system prompts, in order.
        keys: What was said in each (`said_by`).
        prompts: The system prompts, by what they say.
        summaries: The summaries of turns, by their text.
        abandoned: The ids of turns of branches that were left.
    """

    turns: list[StoredTurn]
    keys: list[Hashable]
    prompts: dict[Hashable, StoredTurn]
    summaries: dict[Hashable, StoredTurn]
    abandoned: set[str]


class Conversation:
    """The turns of a conversation in a scope, in order of position. They are added at the end in constant time.

    Attributes:
        nbytes: Their approximate memory, in bytes.
    """

    def __init__(self, turns: Iterable[StoredTurn] = ()) -> None:
        self.turns: list[StoredTurn] = []
        self.nbytes = 0
        self._ids: set[str] = set()
        self._expiring = False
        self._said: dict[tuple[str | None, str | None], Said] = {}
        self._extend(sorted(turns, key=itemgetter(0)))

    def replace(self, ids: Collection[str], turns: Iterable[StoredTurn]) -> Conversation:
        """Return the conversation without the turns with these ids and with others: this object, or a new one.

        Cost:
            O(turns that are added) if they come last and no other is removed; otherwise O(all turns).
        """
        added = sorted(turns, key=itemgetter(0))
        if not self._ids.isdisjoint(ids):
            return Conversation([*(turn for turn in self.turns if turn.record.id not in ids), *added])
        if added and self.turns and added[0].order < self.turns[-1].order:
            return Conversation([*self.turns, *added])
        self._extend(added)
        return self

    def _extend(self, added: list[StoredTurn]) -> None:
        self.turns += added
        self._ids.update(turn.record.id for turn in added)
        self.nbytes += sum(_TURN_BYTES + 2 * len(turn.record.to_bytes()) for turn in added)
        self._expiring = self._expiring or any(turn.record.expires is not None for turn in added)
        for (user, agent), said in self._said.items():
            _say(said, (turn for turn in added if turn.record.user == user and turn.record.agent == agent))

    def live(self, now: int) -> Conversation:
        """Return the conversation without expired turns."""
        return Conversation(turn for turn in self.turns if not expired(turn.record, now)) if self._expiring else self

    def said(self, user: str | None, agent: str | None) -> Said:
        """Return the turns of a user and an agent."""
        found = self._said.get((user, agent))
        if found is None:
            found = self._said[user, agent] = Said([], [], {}, {}, set())
            _say(found, (turn for turn in self.turns if turn.record.user == user and turn.record.agent == agent))
        return found


def _say(said: Said, turns: Iterable[StoredTurn]) -> None:
    for turn in turns:
        if turn.record.kind == SUMMARY:
            if is_summary(turn.record):  # and no record of a kind with this name
                said.summaries[text_key(turn.record.content)] = turn
        elif turn.record.role == SYSTEM:
            said.prompts[turn.said] = turn
        else:
            if OTHER_BRANCH in turn.record.tags:
                said.abandoned.add(turn.record.id)
            said.turns.append(turn)
            said.keys.append(turn.said)


#: A branch, the scope of the caller, and a conversation.
_Key = tuple[Branch, Scope, str]


class TurnCache(Follower[_Key, Conversation]):
    """The turns of conversations that were passed before. The caller must hold the write lock."""

    def __init__(self) -> None:
        super().__init__(_CACHED_BYTES)

    def live(self, transaction: Transaction, branch: Branch, scope: Scope, conversation: str, now: int) -> Conversation:
        """Return the live turns of a conversation in a scope at the newest commit.

        Cost:
            At first, reads the conversation; later, the records changed since.
        """
        key = branch, scope, conversation
        entry = self.at(transaction, branch, key, newest=True)
        assert entry is not None
        assert entry.value is not None
        turns = entry.value
        if not turns.turns or turns.nbytes > _CACHED_BYTES:  # nothing to save, or too much for the cache
            self.discard(key, entry)
        return turns.live(now)

    def start(self, view: View, branch: Branch, key: _Key) -> Conversation:
        """Read the turns."""
        records = view.select(branch, turns_of(*key[1:]), order="position", now=_NO_EXPIRY)
        return Conversation(StoredTurn.of(record, key[1]) for record in records)

    def catch_up(
        self, value: Conversation, view: View, branch: Branch, key: _Key, tag: tuple[int, bytes]
    ) -> Conversation | None:
        """Read the turns that were changed; None if there are so many changes that reading all is cheaper."""
        if view.head(branch).seq - tag[0] > len(value.turns):
            return None
        changed = set(view.changed(branch, tag[0]))
        if len(changed) > len(value.turns):
            return None
        stored = view.several(branch, list(changed))
        records = {each: Record.load(version.payload) for each, version in stored.items()}
        if any(each != record.id for each, record in records.items()):
            return None  # corrupt: reading the conversation raises the error
        where = turns_of(*key[1:])
        turns = [StoredTurn.of(record, key[1]) for record in records.values() if where.matches(record)]
        return value.replace(changed, turns)

    def nbytes(self, value: Conversation) -> int:
        """Return the approximate memory of the turns."""
        return value.nbytes


def turns_of(scope: Scope, conversation: str) -> Filter:
    """Return the filter of the turns of a conversation in a scope, and of their summaries."""
    return AllOf.of(scope.filter, Is("conversation", (conversation,)), Is("kind", (CONVERSATION, SUMMARY)))


@dataclass(frozen=True)
class TurnSearch:
    """The sources of `find_replay`, as a transaction sees them.

    Attributes:
        scope: The scope of the caller.
        now: The time that decides which records have expired, in microseconds since 1970.
        known: Returns whether a stored id was ever in use.
        find: Returns the live record that the scope shows under an id.
        written: The ids that the transaction has written.
        cache: The cached turns.
    """

    transaction: Transaction
    branch: Branch
    scope: Scope
    now: int
    known: Callable[[str], bool]
    find: Callable[[str], Record | None]
    written: Collection[str]
    cache: TurnCache

    def turns(self, conversation: str) -> Conversation:
        """Return the live turns of a conversation."""
        if not self.written:
            return self.cache.live(self.transaction, self.branch, self.scope, conversation, self.now)
        where = turns_of(self.scope, conversation)  # the cache lacks what the transaction has written
        records = self.transaction.select(self.branch, where, order="position", now=self.now)
        return Conversation(StoredTurn.of(record, self.scope) for record in records)

    def was_forgotten(self, record_id: str) -> bool:
        """Return whether a derived id had a record in the scope and has none now, other than by a rollback.

        An id that was redacted is the same one: what was erased must not come back because a list is passed again.
        """
        if self.find(record_id) is not None:
            return False
        logged = [each for each in (record_id, redacted_id(record_id)) if self.known(each)]
        if not logged:
            return False
        if record_id in self.written:
            return True
        if logged[0] == record_id and self._was_rolled_back(record_id):
            return False  # it was not forgotten: the memory returned to a moment before the message
        if not self.scope.fixed:
            return True
        # A caller outside of the scope may have used this id for a record of another scope.
        return any(self._was_admitted(each) for each in logged)

    def _was_admitted(self, logged_id: str) -> bool:
        """Return whether an id from the log had a record in the scope, or one that was erased: its scope is unknown."""
        commits = self.transaction.commits(self.branch, 0, None, logged_id)
        versions = {change.after for commit in commits for change in commit.changes if change.id == logged_id}
        payloads = (self.transaction.payload(self.branch, version) for version in versions if version is not None)
        return any(payload is None or self.scope.admits(Record.load(payload)) for payload in payloads)

    def _was_rolled_back(self, record_id: str) -> bool:
        """Return whether a record was removed by a rollback, and by nothing else since it was last written."""
        commits = self.transaction.commits(self.branch, 0, None, record_id, newest_first=True)
        changes = (
            change for commit in commits for change in commit.changes if change.id == record_id and change.cause != KEPT
        )
        newest = next(changes, None)
        if newest is None or newest.cause != ROLLED_BACK or newest.after is not None:
            return False
        before = next((change for change in changes if change.cause != ROLLED_BACK), None)
        return before is not None and before.after is not None


def find_replay(drafts: Sequence[Draft], search: TurnSearch) -> KnownTurns:
    """Find the drafts that repeat stored turns, because a conversation is passed again (`alignment`).

    Turns that were forgotten stay forgotten. All other drafts are new turns, as if they were passed one by one.
    """
    by_conversation: dict[str, list[int]] = {}
    for index, draft in enumerate(drafts):
        if draft.is_appended:
            assert draft.record.conversation is not None
            by_conversation.setdefault(draft.record.conversation, []).append(index)
    out: dict[int, Repeated] = {}
    head = search.transaction.head(search.branch)
    for conversation, indexes in by_conversation.items():
        existing = [turn for turn in search.turns(conversation).turns if turn.record.kind == CONVERSATION]
        if not existing:
            continue
        turns = [drafts[index].record for index in indexes]
        ordinals = ordinals_of([turn.id for turn in turns])

        def was_forgotten(
            at: int, near: int, indexes: Sequence[int] = indexes, ordinals: Sequence[int] = ordinals
        ) -> bool:
            return search.was_forgotten(drafts[indexes[at]].derived_id(ordinals[at]))

        found = align([fact_key(turn.record) for turn in existing], [fact_key(turn) for turn in turns], was_forgotten)
        for at, place in found.items():
            out[indexes[at]] = Repeated(None if place is None else existing[place].record, head)
    ids = frozenset(each.record.id for each in out.values() if each.record is not None)
    return KnownTurns(out, head.seq, frozenset(by_conversation), ids)


def ordinals_of(keys: Sequence[Hashable]) -> list[int]:
    """Return how many equal keys precede each key.

    >>> ordinals_of(["ok", "boat", "ok", "ok"])
    [0, 0, 1, 2]
    """
    counts: Counter[Hashable] = Counter()
    out = []
    for key in keys:
        out.append(counts[key])
        counts[key] += 1
    return out


def outdated(replay: KnownTurns, transaction: Transaction, branch: Branch) -> bool:
    """Return whether other commits have changed turns of the conversations since the replay was computed."""
    if transaction.head(branch).seq == replay.seq:
        return False
    changed = transaction.changed(branch, replay.seq)
    if not replay.turns.isdisjoint(changed):
        return True
    records = (Record.load(stored.payload) for stored in transaction.several(branch, changed).values())
    return any(record.conversation in replay.conversations for record in records)
