"""Filling: which candidates go into a context, whole or in part, so that it never exceeds its budget.

Candidates get room one after the other. One that does not fit is shortened to passages or left out, and the next ones
are tried, so that a long text never hides the shorter ones behind it. Sizes of parts are added up; what a tokenizer of
the caller counts need not add up, so the finished text is counted, and the last entries are removed until it fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, TypeAlias

from recollect.memory.context.excerpts import LONGEST, joined, passages, without_repeated_code
from recollect.memory.context.gathering import BYTES_PER_TOKEN, EXCERPT_SHARE, LONG_SHARE, Candidate, Gathered
from recollect.memory.context.styles import EntryHeading, StyledEntry, body_of, layout
from recollect.memory.context.values import Context, ContextItem, Outcome, Span, Style
from recollect.records.origins import implied
from recollect.records.record import Record
from recollect.text.asking import only_asks
from recollect.text.words import language_of, stem, terms

#: Share of the budget that is kept for standing instructions and preferences, for pinned records, and for terms; its
#: least number of tokens, and the share of a small budget that this may be.
GOVERNING_SHARE = 0.1
_LEAST_GOVERNING = 40
_MOST_GOVERNING = 0.25
#: Share of the budget that is kept for notes.
NOTES_SHARE = 0.25
#: Share of the budget of what tools, documents and the web say, while there is something else that fits.
UNTRUSTED_SHARE = 0.25
#: Tokens of the smallest entry, and of the smallest excerpt.
_LEAST_TOKENS = 3
_LEAST_EXCERPT = 20
#: The least share of a text that remains without repeated code, roughly: a text that is longer is not tried.
_LEAST_OF_CODE = 0.3
#: Tokens of a hit that may need another turn to be understood, and of the turn that is added.
_TERSE = 15
_SHORT = 60
#: A text of more characters for each token of the budget does not fit, whatever a tokenizer makes of it.
_MOST_PER_TOKEN = 100
#: Maximum number of characters of long texts that are searched for passages, except those of the last of them.
_MOST_READ = 4_000_000


#: What identifies a candidate (`Candidate.key`).
Key: TypeAlias = str | tuple[str, tuple[Span, ...]]


class Filling:
    """A context that is being filled.

    Args:
        max_tokens: The budget.
        size: Returns the size of a part in tokens, not rounded.
        candidates: All candidates.
        fetch: Returns the turn with an id as a candidate; None if it may not be read.
        zone: The time zone in which times are shown.
        ended: Returns until when a record was valid; None if it still is.
        title_of: Returns the title of a conversation; "" if it has none.
        left_out: Candidates that cannot be chosen, and why.
        of_user: Whether the context is that of one user.
    """

    def __init__(
        self,
        style: Style,
        max_tokens: int,
        size: Callable[[str], float],
        candidates: Sequence[Candidate],
        fetch: Callable[[str], Candidate | None],
        zone: tzinfo,
        ended: Callable[[Record], datetime | None] = lambda record: None,
        left_out: Sequence[tuple[Candidate, Outcome]] = (),
        title_of: Callable[[str], str] = lambda conversation: "",
        *,
        of_user: bool,
    ) -> None:
        self._style, self._max_tokens, self._size, self._fetch = style, max_tokens, size, fetch
        self._by_key = {each.key: each for each in candidates}
        self._layout = layout(style, (text for each in candidates for text in _texts(each.record)))
        self._places = places_of(candidates, zone, ended, title_of, of_user=of_user)
        self._left = max_tokens - size(self._layout.whole("\n"))
        self._entries: dict[Key, StyledEntry] = {}  # of the chosen candidates, in the order in which they were chosen
        self._items: dict[Key, ContextItem] = {}
        self._headings: set[tuple[Any, ...]] = set()
        self._sizes: dict[str, float] = {}
        self._unread = _MOST_READ
        self._reserved: dict[Key, float] = {}  # room for passages, in tokens
        self._chosen = Chosen(zone)
        self._share = math.inf  # the room for texts of tools, documents and the web, in tokens
        for candidate, outcome in left_out:
            self._leave_out(candidate, outcome)

    def fill(self, found: Gathered) -> None:
        """Give candidates room.

        First each kind gets its share of the budget. What is left of it then goes to those that did not fit, first
        whole, then in part, so that nothing is left out while there is room for it; what tools, documents and the web
        say comes last.
        """
        share = min(max(GOVERNING_SHARE * self._max_tokens, _LEAST_GOVERNING), _MOST_GOVERNING * self._max_tokens)
        for governing in (found.standing, found.pinned, found.terms):
            self._add_whole(governing, self._left - share)
        self._add_whole(found.notes, self._left - NOTES_SHARE * self._max_tokens)
        others = [each for each in found.all if each.is_untrusted]
        if len(others) < len(found.hits):
            self._share = UNTRUSTED_SHARE * self._max_tokens
        self._add_whole(found.hits, 0.0)
        self._share = math.inf
        self._add_long()
        for some in ([each for each in found.all if not each.is_untrusted], others):
            self._add_whole(some, 0.0)
            for each in self._missing(some):
                self._add_passages(each, self._left)

    def _size_of(self, record: Record) -> float:
        """Return the size of a record's text in tokens; infinite if it is so long that it need not be counted."""
        size = self._sizes.get(record.id)
        if size is None:
            too_long = len(record.text) > _MOST_PER_TOKEN * self._max_tokens
            size = self._sizes[record.id] = math.inf if too_long else self._size(record.text)
        return size

    def _fits(self, candidate: Candidate) -> bool:
        """Return whether a text may fit. Whether it does depends on its entry, which is not made for a long text."""
        return bool(candidate.part) or self._size_of(candidate.record) <= self._left

    def _missing(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates that did not fit so far."""
        items = self._items
        return [each for each in candidates if (item := items.get(each.key)) is None or item.outcome == "no room"]

    def _add_whole(self, candidates: Sequence[Candidate], kept: float) -> None:
        """Add those candidates that fit, as far as `kept` tokens remain."""
        kept = max(kept, 0.0)
        self._left -= kept
        for each in self._missing(candidates):
            if each.key not in self._entries:  # it may have come with the hit that it explains
                self._try(each)
        self._left += kept

    def _reserve(self, candidate: Candidate) -> None:
        """Reserve room for passages of a long text that does not fit, within a small share of the budget in all.

        A short text that fits as a whole is more likely to be an answer. When all of them have had their chance,
        `_add_long` divides what is left among the long ones.
        """
        if self._size_of(candidate.record) < LONG_SHARE * self._max_tokens or candidate.key in self._reserved:
            return
        room = min(EXCERPT_SHARE * self._max_tokens - sum(self._reserved.values()), self._left)
        if candidate.is_untrusted:
            room = min(room, self._share)
        if room >= _LEAST_EXCERPT:
            self._reserved[candidate.key] = room
            self._left -= room
            self._share -= room if candidate.is_untrusted else 0.0

    def _add_long(self) -> None:
        """Add the passages of long texts that room was reserved for."""
        reserved, self._reserved = list(self._reserved.items()), {}
        for number, (key, room) in enumerate(reserved):
            extra = self._left / (len(reserved) - number)
            self._left += room
            self._add_passages(self._by_key[key], room + extra)

    def _try(self, candidate: Candidate) -> None:
        """Add a candidate and the turn that explains it, or what fits of them."""
        text, before = text_of(candidate), self._left
        if not text.strip():
            self._leave_out(candidate, "no text")
        elif self._left < _LEAST_TOKENS:
            self._leave_out(candidate, "no room")
        elif candidate.is_untrusted and self._size_of(candidate.record) > self._share:
            self._leave_out(candidate, "no room")
            if not candidate.part:
                self._reserve(candidate)
        elif self._fits(candidate) and self._add(candidate, _whole(candidate)):
            if candidate.is_untrusted:
                self._share -= before - self._left  # with its headings
            self._explain(candidate)
        elif not self._add_without_code(candidate):
            self._leave_out(candidate, "no room")
            if not candidate.part:
                self._reserve(candidate)

    def _add(self, candidate: Candidate, spans: tuple[Span, ...]) -> bool:
        """Add passages of a candidate, or leave them out as a duplicate; return False if they do not fit."""
        record = candidate.record
        whole = spans == ((0, len(record.text)),)
        text = text_of(candidate) if whole else joined(record.text, spans)
        if candidate.part:
            text = " ".join(record.text[start:end] for start, end in spans)
        entry = self._layout.entry(record, text, self._places(candidate))
        new: dict[tuple[Any, ...], float] = {}
        for depth, heading in enumerate(entry.headings, 1):
            path = tuple(each.key for each in entry.headings[:depth])
            if path not in self._headings:
                new[path] = self._size(heading.opening + heading.closing)
        tokens = self._size(entry.block)
        if tokens + sum(new.values()) > self._left:
            return False
        if (same := self._chosen.add(record, text)) is not None:
            self._leave_out(candidate, "duplicate", same)
            return True
        self._left -= tokens + sum(new.values())
        self._headings |= new.keys()
        self._entries[candidate.key] = entry
        outcome: Outcome = "whole" if whole else "part"
        self._items.pop(candidate.key, None)  # it may have been left out of a smaller share
        self._items[candidate.key] = ContextItem(
            record, candidate.origin, outcome, candidate.score, spans, math.ceil(tokens)
        )
        return True

    def _add_without_code(self, candidate: Candidate) -> bool:
        """Add a text without code that repeats its words, and return whether it fits."""
        if candidate.part or self._left < _LEAST_OF_CODE * self._size_of(candidate.record):
            return False
        spans = without_repeated_code(candidate.record.text)
        return spans is not None and self._add(candidate, spans)

    def _add_passages(self, candidate: Candidate, room: float) -> None:
        """Add the passages of a text that match the question, as far as there is room."""
        text = "" if candidate.part else candidate.record.text
        room = min(room, self._left) - self._size(self._bare(candidate))
        if room >= _LEAST_EXCERPT and len(text) > LONGEST and self._unread > 0:
            self._unread -= len(text)
            spans = passages(text, candidate.words, int(BYTES_PER_TOKEN * room))
            if spans:
                self._add(candidate, spans)

    def _bare(self, candidate: Candidate) -> str:
        """Return the entry of a candidate without its text, and its headings."""
        entry = self._layout.entry(candidate.record, "", self._places(candidate))
        return "".join(heading.opening + heading.closing for heading in entry.headings) + entry.block

    def _explain(self, candidate: Candidate) -> None:
        """Add the turn that a hit mostly got its score from, since the hit by itself does not say what it is about."""
        if candidate.explained_by is None or candidate.explained_by in self._entries:
            return
        if candidate.record.id not in self._entries:  # a part explains itself
            return
        if self._size_of(candidate.record) > _TERSE:
            return
        found = self._by_key.get(candidate.explained_by) or self._fetch(candidate.explained_by)
        if found is not None and self._size_of(found.record) <= _SHORT:
            self._add(found, _whole(found))

    def _leave_out(self, candidate: Candidate, outcome: Outcome, same: str | None = None) -> None:
        self._items[candidate.key] = ContextItem(
            candidate.record, candidate.origin, outcome, candidate.score, duplicate_of=same
        )

    def count(self, count: Callable[[str], int]) -> bool:
        """Set the room that is left by counting the finished text; return whether it is much more than was known."""
        before, self._left = self._left, self._max_tokens - count(self._text(self._entries))
        return self._left > before + _LEAST_EXCERPT

    def _text(self, entries: Mapping[Key, StyledEntry]) -> str:
        return self._layout.whole(body_of(list(entries.values())))

    def finished(self, count: Callable[[str], int]) -> Context:
        """Return the context, of at most `max_tokens` as `count` returns them."""
        entries, items = dict(self._entries), dict(self._items)
        while (tokens := count(text := self._text(entries))) > self._max_tokens and entries:
            last, _ = entries.popitem()
            item = items.pop(last)
            items[last] = ContextItem(item.record, item.origin, "no room", item.score)
        if tokens > self._max_tokens:  # even an empty context has tokens
            text, tokens = "", count("")
        shown = {items[key].record.id for key in entries}
        for key, item in items.items():
            if item.duplicate_of is not None and item.duplicate_of not in shown:
                items[key] = ContextItem(item.record, item.origin, "no room", item.score)
        ordered = [*(items[key] for key in entries)]
        ordered += [item for key, item in items.items() if key not in entries]
        return Context(text, tuple(ordered), tokens, self._max_tokens, self._style)


def text_of(candidate: Candidate) -> str:
    """Return the text of a record as a context shows it: with the caption of a picture that the question is about."""
    record = candidate.record
    caption = record.metadata.get("caption")
    if not isinstance(caption, str) or not caption.strip() or caption in record.text:
        return record.text
    if not record.text.strip():
        return f"[image: {caption}]"
    language = language_of(caption)
    asked = {stem(word, language) for word in candidate.words}
    return (
        f"{record.text} [image: {caption}]"
        if any(term in asked for term, _ in terms(caption, language))
        else record.text
    )


def _texts(record: Record) -> Iterator[str]:
    """Yield the texts of a record that a context may show."""
    yield record.text
    if isinstance(caption := record.metadata.get("caption"), str):
        yield caption


def _whole(candidate: Candidate) -> tuple[Span, ...]:
    return candidate.part or ((0, len(candidate.record.text)),)


# Duplicates: entries that say nothing that a chosen one does not say.
#
# A record repeats another if both have the same words in the same order, apart from case, blanks and punctuation, and
# are of the same user and speaker and about the same entity. Turns must be of the same day, too: "I paid the rent
# today" of another month is another event; but a turn that only asks says the same on any day. Nothing that differs in
# a word, a number or a sign is ever folded.

#: Punctuation at the ends of words that makes no difference. Signs such as + - # < $ do.
_PUNCTUATION = ".,;:!?…\"'“”„‘’«»()[]"


class Chosen:
    """The chosen records by what they say.

    Args:
        zone: The time zone in which a turn is on a day.
    """

    def __init__(self, zone: tzinfo = UTC) -> None:
        self._zone = zone
        self._ids: dict[tuple[Any, ...], str] = {}

    def add(self, record: Record, text: str) -> str | None:
        """Add a record, unless a chosen one says the same: then return the id of that one.

        Args:
            text: What is shown of it.

        >>> chosen, said = Chosen(), "Ana moved to Oslo in May 2021."
        >>> [chosen.add(Record(id=text, content=text), text) for text in (said, "Ana moved to Oslo in May 2022.")]
        [None, None]
        >>> chosen.add(Record(id="c", content="ana moved to Oslo, in May 2021!"), "ana moved to Oslo, in May 2021!")
        'Ana moved to Oslo in May 2021.'
        """
        words = (word.strip(_PUNCTUATION) for word in text.casefold().split())
        day = (
            record.time.astimezone(self._zone).date()
            if record.time is not None and record.kind == "conversation" and not only_asks(text)
            else None
        )
        who = (record.user, record.speaker or record.role, record.entity, record.metadata.get("success"))
        key = (*who, day, " ".join(filter(None, words)))
        same = self._ids.setdefault(key, record.id)
        return None if same == record.id else same


# Places: the section of each record of a context, and the order of conversations, sessions and documents.

_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
Session = tuple[str, str]


def places_of(
    candidates: Sequence[Candidate],
    zone: tzinfo,
    ended: Callable[[Record], datetime | None],
    title_of: Callable[[str], str],
    *,
    of_user: bool,
) -> Callable[[Candidate], EntryHeading]:
    """Return a function that returns the place of a candidate, also of a neighbour that is not in the list.

    Sessions and conversations are ordered by the time of their first turn among the candidates, documents by their best
    passage.

    Args:
        candidates: All candidates.
        zone: The time zone in which times are shown.
        ended: Returns until when a record was valid; None if it still is.
        title_of: Returns the title of a conversation; "" if it has none.
        of_user: Whether they are those of one user, who need not be named.
    """
    sessions: dict[Session, datetime] = {}
    conversations: dict[str, datetime] = {}
    documents: dict[str, int] = {}
    others: dict[tuple[str, str], int] = {}
    ranks = {each.key: rank for rank, each in enumerate(candidates)}
    for rank, each in enumerate(candidates):
        record = each.record
        if each.is_untrusted:
            others.setdefault((record.effective_origin, from_where(record)), rank)
        elif (session := _session(record)) is not None:
            time = record.time or _LONG_AGO
            sessions[session] = min(time, sessions.get(session, time))
            conversations[session[0]] = min(time, conversations.get(session[0], time))
        elif record.source is not None:
            documents.setdefault(record.source, rank)

    def place(candidate: Candidate) -> EntryHeading:
        return where(candidate)._replace(until=ended(candidate.record))

    def where(candidate: Candidate) -> EntryHeading:
        record = candidate.record
        rank = ranks.get(candidate.key, len(ranks))
        owner = "" if of_user else record.user or ""
        time = None if record.time is None else record.time.astimezone(zone)
        origin = "" if record.has_authority else record.effective_origin
        if candidate.is_untrusted:
            key = (record.effective_origin, from_where(record))
            apart = (others.get(key, rank), *key)
            return EntryHeading("untrusted", rank, time, None, apart, owner, title=key[1], origin=origin)
        if candidate.origin in ("standing", "pinned", "glossary", "outline"):
            return EntryHeading(candidate.origin, rank, time, owner=owner)
        if (session := _session(record)) is not None:
            first = sessions.get(session, record.time or _LONG_AGO)
            group = (conversations.get(session[0], first), session[0], first, session[1])
            began = None if first == _LONG_AGO else first.astimezone(zone)
            stated = origin if origin != implied(record.role, None, record.kind) else ""
            return EntryHeading(
                "conversations", rank, time, began, group, owner, title=title_of(session[0]), origin=stated
            )
        if record.kind == "knowledge" and record.source is not None:
            return EntryHeading(
                "documents", rank, time, None, (documents.get(record.source, rank), record.source), owner
            )
        # Entities and tasks are of the assistant's class, and do not say so.
        stated = origin if record.origin is not None and record.role is None else ""
        return EntryHeading("facts", rank, time, owner=owner, origin=stated)

    return place


def from_where(record: Record) -> str:
    """Return what a record is from that neither the user nor the assistant said: its source, tool or conversation."""
    if record.source is not None:
        return record.source
    tool = record.speaker or record.metadata.get("name")
    return tool if isinstance(tool, str) else record.conversation or ""


def _session(record: Record) -> Session | None:
    """Return the session of a turn; None for other records."""
    if record.kind != "conversation" or record.conversation is None:
        return None
    return record.conversation, record.session or ""
