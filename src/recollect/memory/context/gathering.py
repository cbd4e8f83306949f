"""Gathering: the records that are considered for a context, collected by public calls of the memory.

The order of candidates is that in which they get room: standing instructions and preferences, pinned records, then hits
by what they are worth for their length.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from recollect.calls.calls import Calls
from recollect.calls.namespace import NamespaceCalls
from recollect.calls.owners import Owners
from recollect.engine.read.concise import concise
from recollect.engine.results import Hit, Hits
from recollect.filters import all_of, has, origin_at_least
from recollect.filters.tree import Filter, Is
from recollect.memory.context.validity import NOT_ABANDONED
from recollect.memory.context.values import Origin, Span
from recollect.records.origins import UNTRUSTED
from recollect.records.record import Record
from recollect.text.asking import is_about_questions, only_asks
from recollect.text.manner import standing_spans
from recollect.text.words import language_of, terms

if TYPE_CHECKING:
    from recollect.facets.glossary.operations import Annotation
    from recollect.facets.glossary.records import Entry

#: Minimum number of hits that are considered, and the tokens of the budget for each one of more. With half as many,
#: coverage at 2,000 tokens is up to 0.4 per cent lower.
HITS = 200
#: Number of hits of which a concise context has those that add something.
CONCISE_HITS = 10
_TOKENS_PER_HIT = 20
#: Maximum number of pinned records that are considered, the most important first.
PINNED = 50
#: Only the word of the user and the owner is always in a context.
_PINNED = all_of(has("pinned"), has("searchable"), origin_at_least("user"))
#: A hit is worth its score divided by its length to this power. So a short text precedes a long one of nearly equal
#: score, but no text is chosen because it is short.
_LENGTH_POWER = 0.25
#: Bytes of an entry besides its text, for the length.
_ENTRY_BYTES = 40
#: A long answer lends this part of its score to the turn before it, which is the question or the request that led to
#: it: the turn says in few words what the answer is about.
_LENT = 0.3
#: A text with the first share of the budget is long: it is given by passages, of the second share in all, and is worth
#: as much as a text of their length.
LONG_SHARE = 0.5
EXCERPT_SHARE = 0.1
#: UTF-8 bytes of a token, roughly.
BYTES_PER_TOKEN = 4
#: Bytes of a text that is a long answer.
_LONG_BYTES = 800


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record that is considered.

    Attributes:
        origin: Why it is considered.
        score: The score of the hit; 0.0 if it is none.
        words: The words of the question that it matched, and their parts of the score.
        explained_by: The id of the turn that its score mostly comes from; None if its own words matched.
        part: The passages that it is considered for; empty for the whole text.
        confidence: That of the hit; 0.0 if it is none.
    """

    record: Record
    origin: Origin
    score: float
    words: Mapping[str, float]
    explained_by: str | None
    part: tuple[Span, ...] = ()
    confidence: float = 0.0

    @property
    def is_untrusted(self) -> bool:
        """True for what tools, documents or the web say, or nobody knows who: it is shown apart."""
        return self.record.effective_origin in UNTRUSTED

    @property
    def key(self) -> str | tuple[str, tuple[Span, ...]]:
        """The identity of the candidate: a record may be considered for a part, and as a whole."""
        return (self.record.id, self.part) if self.part else self.record.id


class Gathered(NamedTuple):
    """The candidates of a context, each kind in the order in which they get room.

    A record may be among several of them: what does not fit in the share of pinned records is still a hit.

    Attributes:
        standing: Standing instructions and preferences.
        pinned: Pinned records.
        hits: What answers the question.
        reference: The time of the question.
        terms: The terms that it names.
        notes: The notes that match it.
        ranked: The hits as recall ranks them.
    """

    standing: list[Candidate]
    pinned: list[Candidate]
    hits: list[Candidate]
    reference: datetime
    terms: Sequence[Candidate] = ()
    notes: Sequence[Candidate] = ()
    ranked: Sequence[Hit] = ()

    def little(self) -> set[str]:
        """Return the ids of the hits that a concise context leaves out: those that add little, and those after them."""
        ids = {each.record.id for each in self.hits}
        kept, _ = concise([hit for hit in self.ranked if hit.record.id in ids][:CONCISE_HITS])
        return ids - {hit.record.id for hit in kept}

    @property
    def all(self) -> list[Candidate]:
        """All candidates."""
        return [*self.standing, *self.pinned, *self.terms, *self.notes, *self.hits]

    def without(self, ids: Collection[str]) -> Gathered:
        """Return the candidates without some records."""

        def kept(some: list[Candidate]) -> list[Candidate]:
            return [each for each in some if each.record.id not in ids]

        return self._replace(standing=kept(self.standing), pinned=kept(self.pinned), hits=kept(self.hits))


def gathered(
    calls: Calls,
    question: str,
    max_tokens: int,
    owners: Owners,
    where: Filter,
    time: datetime | None,
    others: Sequence[str] = (),
) -> Gathered:
    """Return what is considered for a context.

    Args:
        others: The question in other words. A record counts as for the one that it answers best.
    """
    where = all_of(where, NOT_ABANDONED)
    count = max(HITS, max_tokens // _TOKENS_PER_HIT)
    hits = calls.recall(question, count, all_of(where, *owners.readable), reference=time)
    best = {hit.record.id: hit for hit in hits}
    for other in others:
        for hit in calls.recall(other, count, all_of(where, *owners.readable), reference=time):
            if hit.record.id not in best or hit.score > best[hit.record.id].score:
                best[hit.record.id] = hit
    ranked = sorted(best.values(), key=lambda hit: -hit.score) if others else list(hits)
    governing = all_of(where, *owners.governing)
    standing = [_candidate(hit, "standing") for hit in _standing(calls, hits, question, owners, governing, time)]
    pinned = [
        _candidate(best[record.id], "pinned") if record.id in best else Candidate(record, "pinned", 0.0, {}, None)
        for record in calls.find(all_of(_PINNED, governing), limit=PINNED, order="importance")
    ]
    found = [_candidate(hit, "hit") for hit in by_worth(ranked, max_tokens)]
    assert hits.reference is not None, "recall sets it"
    governing_all = _own_first(standing, owners.user), _own_first(pinned, owners.user)
    return Gathered(*governing_all, found, hits.reference, ranked=tuple(ranked))


def _standing(
    calls: Calls, hits: Hits, question: str, owners: Owners, governing: Filter, time: datetime | None
) -> Sequence[Hit]:
    """Return the standing instructions and preferences that may be shown."""
    if owners.user is not None or all(hit.record.user is None for hit in hits.standing):
        return hits.standing
    return calls.recall(question, 1, governing, reference=time).standing  # those of users had taken the places


def _own_first(found: list[Candidate], user: str | None) -> list[Candidate]:
    """Put the records of the user before those of no user."""
    return sorted(found, key=lambda each: each.record.user is None) if user is not None else found


def by_worth(hits: Sequence[Hit], max_tokens: int) -> list[Hit]:
    """Return hits by what they are worth for their length; equal ones in their order."""
    scores = [hit.score for hit in hits]
    sizes = [len(hit.record.text.encode("utf-8")) for hit in hits]
    turns = {_turn(hit.record): number for number, hit in enumerate(hits) if hit.record.position is not None}
    for number, hit in enumerate(hits):
        if sizes[number] > _LONG_BYTES and hit.record.position is not None:
            before = turns.get((*_turn(hit.record)[:2], hit.record.position - 1))
            if before is not None:
                scores[before] += _LENT * hit.score
    budget = BYTES_PER_TOKEN * max_tokens
    shown = [EXCERPT_SHARE * budget if size >= LONG_SHARE * budget else size for size in sizes]
    worth = [score / (size + _ENTRY_BYTES) ** _LENGTH_POWER for score, size in zip(scores, shown, strict=True)]
    return [hits[number] for number in sorted(range(len(hits)), key=lambda number: -worth[number])]


def _turn(record: Record) -> tuple[str | None, str | None, int | None]:
    return record.conversation, record.session, record.position


def _candidate(hit: Hit, origin: Origin) -> Candidate:
    """Return a hit as a candidate."""
    words = hit.why.words
    lent: dict[str, float] = {}
    for word in words:
        for lender in word.lent_by[:1]:  # the greatest part comes from the first
            lent[lender] = lent.get(lender, 0.0) + word.score - word.own
    own = sum(word.own + word.title for word in words)
    lender, part = max(lent.items(), key=lambda each: each[1], default=("", 0.0))
    return Candidate(
        hit.record,
        origin,
        hit.score,
        {word.like or word.word: word.score for word in words},
        lender if part > own else None,
        standing_spans(hit.record.text) if origin == "standing" else (),  # a turn stands for what it instructs
        hit.confidence,
    )


# Asking again: what a user asked an assistant before is no answer, so a context leaves it out.
#
# Only turns of a user without a name are left out. Between people, the question says what the answer next to it is
# about.

#: The part of the words of the shorter of two questions that nearly equal ones share.
_SHARED = (2, 3)


def asked_before(question: str) -> Callable[[Record], bool]:
    """Return a function that returns whether a record is a turn of a user that asks nearly what a question asks.

    Of a question about questions, no turn does.
    """
    if is_about_questions(question):
        return lambda record: False
    language = language_of(question)
    asked = {term for term, _ in terms(question, language)}

    def is_asked(record: Record) -> bool:
        to_assistant = record.kind == "conversation" and record.role == "user" and record.speaker is None
        if not to_assistant or not only_asks(record.text):
            return False
        words = {term for term, _ in terms(record.text, language)}
        least, all_of = _SHARED
        return len(asked & words) * all_of >= min(len(asked), len(words)) * least

    return is_asked


# What lies beside the records and helps to answer a question: the terms that it names, and the notes that match.

#: Maximum number of notes that are considered, and the least similarity of their vectors. Without an embedder, it is a
#: confidence, of which the least is that for "auto".
_NOTES, _LEAST_COSINE = 20, 0.5
#: Maximum number of other names of terms that are asked for, of characters of one, and of a question.
_OTHER_NAMES, _LONGEST_NAME, _LONGEST = 4, 60, 4000


class NamedTerms(NamedTuple):
    """The terms that a question names.

    Attributes:
        terms: Their definitions.
        questions: The question with another name in the place of one that it uses, for records that use that one.
    """

    terms: list[Candidate]
    questions: list[str]


def terms_named(terms: NamespaceCalls, question: str, owners: Owners) -> NamedTerms:
    """Return the terms that a question names by their key or an alias: those of the agent, then those of all agents."""
    from recollect.facets.glossary.operations import AnnotateTerms
    from recollect.facets.glossary.records import DEFAULT_AGENT, entry_of

    agents = dict.fromkeys(each for each in (owners.agent, DEFAULT_AGENT) if each is not None)
    found: dict[str, Candidate] = {}
    questions: dict[str, None] = {}
    for agent in agents:
        annotations: list[Annotation] = terms.execute(AnnotateTerms(agent=agent, text=question))
        used = {each.name.casefold() for each in annotations}
        for each in annotations:
            for record in each.records:
                term = entry_of(record)
                if term is None or not _is_readable(record, owners):
                    continue
                found.setdefault(record.id, Candidate(_definition(record, term), "glossary", 0.0, {}, None))
                for name in (term.key, *term.aliases):
                    if name.casefold() not in used and len(name) <= _LONGEST_NAME:
                        questions[question[: each.start] + name + question[each.end :]] = None
    return NamedTerms(list(found.values()), list(questions)[:_OTHER_NAMES] if len(question) <= _LONGEST else [])


def _definition(record: Record, term: Entry) -> Record:
    """Return the record of a term with its definition as its text."""
    aliases = f" ({', '.join(term.aliases)})" if term.aliases else ""
    more = f"\n{term.description}" if term.description else ""
    return record.changed(content=f"{term.key}{aliases}: {term.value}{more}".strip())


def _is_readable(record: Record, owners: Owners) -> bool:
    """Return whether a record belongs to the user and the conversation, or to none; the agent was asked for."""
    return all(each.matches(record) for each in owners._replace(agent=None).readable)


def notes_matching(nodes: NamespaceCalls, question: str, owners: Owners, least: float) -> list[Candidate]:
    """Return the notes that match a question, best first, with their title. Private ones are left out."""
    from recollect.facets.outline.reading import PRIVATE
    from recollect.facets.outline.searching import OutlineSearches

    found = OutlineSearches(nodes).search(question, _NOTES, minimum=least, private=PRIVATE)
    least = _LEAST_COSINE if found.measure == "cosine" else least
    similar = {each.node.id: each for each in found if each.similarity >= least and each.node.content}
    records = {record.id: record for record in nodes.find(Is("id", tuple(similar)))} if similar else {}
    return [
        Candidate(
            records[node_id].changed(content=(each.node.content or "").strip()), "outline", each.similarity, {}, None
        )
        for node_id, each in similar.items()
        if node_id in records and _is_readable(records[node_id], owners)
    ]
