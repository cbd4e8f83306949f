"""`Duplicates`: records of one owner that say the same, found by their words and never merged unasked.

Two records are "exact" duplicates if they have the same words in the same order, apart from case, blanks and
punctuation; "near" ones if most runs of three letters are the same, as after a correction; and "restated" ones if they
have the same content words in another order or form. Texts that differ in a number, a negation, a name or a sign (C++
and C, O+ and O-) are never duplicates, however similar they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias, Unpack, get_args

from recollect import filters as f
from recollect.arguments.checks import check_choice, check_flag
from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls, changed
from recollect.common.deadlines import checked
from recollect.common.reprs import ShownTable, line, shows_itself, table
from recollect.engine.results import record_json
from recollect.errors import InvalidArgumentError
from recollect.filters.text_form import Where, check_filter
from recollect.memory.manager.distinctions import Apart, apart_in
from recollect.operations import Merge
from recollect.records.factories import OTHER_BRANCH
from recollect.records.record import Fields, Record
from recollect.text.folding import folded
from recollect.text.summaries import Statement, statement

#: How similar duplicates are, from the most to the least.
Likeness: TypeAlias = Literal["exact", "near", "restated"]
LIKENESSES: tuple[Likeness, ...] = get_args(Likeness)
#: Shares of common trigrams and of common words from which on texts are duplicates.
NEAR, RESTATED = Fraction(8, 10), Fraction(9, 10)
#: Minimum number of content words for texts to be restated: with fewer, the order may be all that they say.
_FEWEST_WORDS = 3
#: What belongs to the record rather than to its text. Duplicates have the same.
_OWNERS = ("kind", "user", "agent", "speaker", "entity")
_TURN = "conversation"


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class DuplicateGroup:
    """Records that say the same.

    Attributes:
        likeness: "exact", "near" or "restated": that of the two least similar of them.
        records: The records, oldest first.
    """

    likeness: Likeness
    records: tuple[Record, ...]

    def _table(self) -> ShownTable:
        return table(
            f"{len(self.records)} {self.likeness} duplicates",
            ("id", "text"),
            self.records,
            lambda record: (line(record.id, 40), line(record.content, 80)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"likeness": self.likeness, "records": [record_json(record) for record in self.records]}


class _Said(NamedTuple):
    """A record, and the statements of its text.

    Attributes:
        what: What its text states.
        exact: What must be the same in all duplicates: the owner, numbers, negations and signs.
    """

    record: Record
    what: Statement
    exact: Hashable


@all_named
class Duplicates(Calls):
    """The call that finds records that say the same."""

    def duplicates(
        self,
        where: Where | None = None,
        *,
        likeness: Likeness = "restated",
        turns: bool = False,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> list[DuplicateGroup]:
        """Return the groups of records that say the same. Nothing is changed: `merge` replaces a group by one record.

            for group in memory.duplicates():
                memory.merge(group.records, group.records[-1].content)

        Duplicates have the same kind, user, agent, speaker and entity. They never differ in a number, in a negation, in
        a name or in a sign such as those of C++ and -5.

        Args:
            where: Only records that match this filter or text form of one.
            likeness: How different they may be. "exact": in case, blanks and punctuation. "near": also in a few
                letters. "restated": also in the order and the form of words.
            turns: Look at turns of conversations, too, except those that were abandoned (with the tag `other-branch`);
                people say the same more than once.
            user: Only records of this user and those without a user, as for `recall`.
            agent: Only records of this agent and those without an agent.
            conversation: Only records of this conversation and those without one.

        Returns:
            The groups, those with the oldest records first.

        Raises:
            InvalidArgumentError: An argument is invalid.
            ScopeError: This memory is scoped to another user, agent or conversation.
            StoreError: The store failed.

        Cost:
            Reads the records, and compares those that share a rare word: about a tenth of a millisecond for each.
        """
        check_choice("likeness", likeness, LIKENESSES)
        check_flag("turns", turns)
        condition = self._read(where, user, agent, conversation)
        check_filter(condition)
        left_out = f.tag(OTHER_BRANCH) if turns else f.kind(_TURN)
        records = self.find(condition & ~left_out, order="oldest")
        return found_in(records, likeness, apart_in(self))


def found_in(
    records: Iterable[Record], likeness: Likeness = "restated", apart: Apart | None = None
) -> list[DuplicateGroup]:
    """Return the groups of duplicates among records.

    Args:
        records: The records, in the order of the result.
        likeness: How different they may be.
        apart: Returns whether two records were stated not to be the same: these are never in one group.
    """
    said = [_said(record) for record in checked(records) if record.searchable and record.text]
    group_of: dict[int, int] = {}
    members = {at: [each.record] for at, each in enumerate(said)}
    worst: dict[int, int] = defaultdict(int)

    def root(at: int) -> int:
        while group_of.get(at, at) != at:
            at = group_of[at]
        return at

    for rank, name in enumerate(LIKENESSES[: LIKENESSES.index(likeness) + 1]):
        for one, other in _PAIRS[name](said):
            first, second = sorted((root(one), root(other)))
            if first != second and not (
                apart and any(apart(each, another) for each in members[first] for another in members[second])
            ):
                group_of[second] = first
                members[first] += members.pop(second)
                worst[first] = max(rank, worst[first], worst[second])
    place = {each.record.id: at for at, each in enumerate(said)}
    return [
        DuplicateGroup(LIKENESSES[worst[at]], tuple(sorted(group, key=lambda record: place[record.id])))
        for at, group in members.items()
        if len(group) > 1
    ]


def _said(record: Record) -> _Said:
    what = statement(str(record.content), record.language)
    owner = tuple(getattr(record, name) for name in _OWNERS)
    differing = (what.numbers, what.negations, what.signs, str(record.metadata.get("success")))
    return _Said(record, what, (*owner, *differing))


def _exact(said: Sequence[_Said]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of texts with the same words in the same order; texts without words are the same text."""
    first: dict[Hashable, int] = {}
    for at, each in enumerate(said):
        words = each.what.marked or folded(str(each.record.content))
        same = first.setdefault((each.exact, words), at)
        if same != at:
            yield same, at


def _near(said: Sequence[_Said]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of texts that have most runs of three letters in common."""
    return _with_same_names(said, _similar([(each.exact, _trigrams(each.what.words)) for each in said], NEAR))


def _restated(said: Sequence[_Said]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of texts that have the same content words."""
    few: frozenset[str] = frozenset()
    stems = [(each.exact, of if len(of := frozenset(each.what.stems)) >= _FEWEST_WORDS else few) for each in said]
    return _with_same_names(said, _similar(stems, RESTATED))


def _with_same_names(said: Sequence[_Said], pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of which each text has the names of the other. (A name that begins a sentence is not known.)"""
    for one, other in pairs:
        first, second = said[one].what, said[other].what
        if first.names <= set(second.words) and second.names <= set(first.words):
            yield one, other


def _trigrams(words: Sequence[str]) -> frozenset[str]:
    text = f" {' '.join(words)} "
    return frozenset(text[at : at + 3] for at in range(len(text) - 2))


def _similar(features: Sequence[tuple[Hashable, frozenset[str]]], threshold: Fraction) -> Iterator[tuple[int, int]]:
    """Yield the pairs of sets whose Jaccard similarity reaches a threshold.

    Only pairs that share one of their rarest elements are compared: two sets that reach it must.

    Source:
        Chaudhuri, Ganti, Kaushik: A primitive operator for similarity joins in data cleaning, ICDE 2006 (prefixes).
    """
    counts: dict[str, int] = defaultdict(int)
    for _, elements in features:
        for element in elements:
            counts[element] += 1
    index: dict[tuple[int, str], list[int]] = defaultdict(list)
    first: dict[tuple[int, frozenset[str]], int] = {}
    # A number in the place of what must be the same: that has all numbers of a text, and would be hashed for each word.
    of: dict[Hashable, int] = {}
    for at, (same_in, elements) in enumerate(checked(features)):
        exact = of.setdefault(same_in, len(of))
        if not elements:
            continue
        same = first.setdefault((exact, elements), at)
        if same != at:
            yield same, at
            continue
        prefix = len(elements) - -(-len(elements) * threshold.numerator // threshold.denominator) + 1
        rarest = sorted(elements, key=lambda element: (counts[element], element))[:prefix]
        candidates = dict.fromkeys(each for element in rarest for each in index[exact, element])
        for each in candidates:
            other = features[each][1]
            common = len(elements & other)
            if common * threshold.denominator >= (len(elements) + len(other) - common) * threshold.numerator:
                yield each, at
        for element in rarest:
            index[exact, element].append(at)


_PAIRS: dict[Likeness, Callable[[Sequence[_Said]], Iterator[tuple[int, int]]]] = {
    "exact": _exact,
    "near": _near,
    "restated": _restated,
}


# `Merges`: one record in the place of several, and the fields that it takes over from them.

#: The fields that a merged record has if all of its sources have the same value.
_COMMON = ("kind", "role", "speaker", "user", "agent", "conversation", "session", "entity", "source", "parent")
_COMMON_TOO = ("language", "trust", "media_type")


def merged_fields(sources: Sequence[Record]) -> dict[str, Any]:
    """Return the fields of a record that takes the place of others.

    It has what all of them have in common, the latest time, the highest importance, all tags, and of the metadata the
    first value of each name. A turn takes the last position of its sources.

    Args:
        sources: The records, in order.
    """
    fields: dict[str, Any] = {}
    for name in (*_COMMON, *_COMMON_TOO):
        values = {getattr(source, name) for source in sources}
        if len(values) == 1:
            fields[name] = values.pop()
    metadata: dict[str, Any] = {}
    for source in sources:
        for name, value in source.metadata.items():
            metadata.setdefault(name, value)
    fields |= {
        "time": max((source.time for source in sources if source.time is not None), default=None),
        "importance": max((each.importance for each in sources if each.importance is not None), default=None),
        "tags": tuple(dict.fromkeys(tag for source in sources for tag in source.tags)),
        "metadata": metadata,
        "pinned": any(source.pinned for source in sources) or None,
    }
    positions = [source.position for source in sources if source.position is not None]
    if positions and "conversation" in fields:
        fields["position"] = max(positions)
    return {name: value for name, value in fields.items() if value not in (None, (), {})}


@all_named
class Merges(Calls):
    """The call that replaces records by one."""

    def merge(self, sources: Sequence[str | Record], content: str | bytes, **fields: Unpack[Fields]) -> Record:
        """Replace records by a new one that is derived from them, and return it.

            one = memory.remember("Ana likes tea", user="ana")
            two = memory.remember("Ana likes green tea most", user="ana")
            memory.merge([one, two], "Ana likes tea, green tea most")

        The new record is stored, its `derived_from` has the ids of all sources, and the sources go, with the cause
        "superseded": one commit, which `revert` takes back. Their versions stay in the history.

        Args:
            sources: The records, or their ids. A record that was changed since it was read is a ConflictError.
            content: The text of the new record, or bytes with a `media_type`.
            **fields: Fields of the new record. Those that are not passed are taken over: what all sources have in
                common, the latest time, the highest importance, all tags, and the first value of each name in their
                metadata.

        Raises:
            UnknownRecordError: There is no live record with one of the ids.
            ConflictError: A source was changed meanwhile; nothing was changed.
            InvalidArgumentError: There is no source, or an argument is invalid.
            InvalidRecordError: A field has an invalid value or exceeds a limit.
            ScopeError: The new record would lie outside the scope.
            QuotaError: The new record does not fit in the quota.
            RejectedError: A policy of the memory does not allow the text (`set_policies`).
            StoreError: The store failed.

        Cost:
            One durable commit, in proportion to the number of sources.
        """
        if isinstance(sources, (str, Record)) or not isinstance(sources, Sequence) or not sources:
            raise InvalidArgumentError("sources", sources, "must be a list of records or ids")
        hashes: dict[str, str | None] = {}
        records = []
        for each in sources:
            record = each if isinstance(each, Record) else self.get(each)
            if record is not None:
                records.append(record)
            hashes[str(each) if record is None else record.id] = None if record is None else record.hash
        operation = Merge(content=content, sources=hashes, fields={**merged_fields(records), **fields})
        return changed(self.execute(operation))
