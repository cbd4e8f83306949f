"""Filling: which candidates go into a context, whole or in part, so that it never exceeds its budget.

Candidates get room one after the other. One that does not fit is shortened to passages or left out, and the next ones
are tried, so that a long text never hides the shorter ones behind it. Sizes of parts are added up; what a tokenizer of
the caller counts need not add up, so the finished text is counted, and the last entries are removed until it fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from recollect.memory.context.duplicates import Chosen
from recollect.memory.context.excerpts import joined, passages, without_repeated_code
from recollect.memory.context.gathering import Candidate
from recollect.memory.context.places import places_of
from recollect.memory.context.styles import Entry, body_of, layout
from recollect.memory.context.values import Context, ContextItem, Outcome, Span, Style
from recollect.records.record import Record
from recollect.text.words import language_of, stem, terms

#: Share of the budget that passages of long texts may take, and the share from which on a text is long.
EXCERPT_SHARE = 0.1
LONG_SHARE = 0.5
#: Tokens of the smallest excerpt, and of the smallest entry.
_LEAST_EXCERPT = 12
_LEAST_TOKENS = 3
#: The least share of a text that remains without repeated code, roughly: a text that is longer is not tried.
_LEAST_OF_CODE = 0.3
#: Tokens of a hit that may need another turn to be understood, and of the turn that is added.
_TERSE = 15
_SHORT = 60
#: UTF-8 bytes for each token, to choose passages. They are then counted.
_BYTES_PER_TOKEN = 4


class Filling:
    """A context that is being filled.

    Args:
        style: The style.
        max_tokens: The budget.
        size: Returns the size of a part in tokens, not rounded.
        candidates: All candidates.
        fetch: Returns the turn with an id as a candidate; None if it may not be read.
    """

    def __init__(
        self,
        style: Style,
        max_tokens: int,
        size: Callable[[str], float],
        candidates: Sequence[Candidate],
        fetch: Callable[[str], Candidate | None],
    ) -> None:
        self._style, self._max_tokens, self._size, self._fetch = style, max_tokens, size, fetch
        self._by_id = {each.record.id: each for each in candidates}
        self._layout = layout(style, (text for each in candidates for text in _texts(each.record)))
        self._places = places_of(candidates)
        self._left = max_tokens - size(self._layout.whole("\n"))
        self._excerpts = EXCERPT_SHARE * max_tokens
        self._entries: dict[str, Entry] = {}  # of the chosen records, in the order in which they were chosen
        self._items: dict[str, ContextItem] = {}
        self._headings: set[tuple[Any, ...]] = set()
        self._chosen = Chosen()

    def fill(self, candidates: Sequence[Candidate], share: float = 1.0) -> None:
        """Give candidates room, one after the other, within a share of the budget."""
        kept = max(self._left - share * self._max_tokens, 0.0)
        self._left -= kept
        for each in candidates:
            if each.record.id not in self._entries:
                self._try(each)
        self._left += kept

    def _try(self, candidate: Candidate) -> None:
        """Add a candidate and the turn that explains it, or what fits of them."""
        text = text_of(candidate)
        if not text.strip():
            self._leave_out(candidate, "no text")
        elif self._left < _LEAST_TOKENS:
            self._leave_out(candidate, "no room")
        elif self._size(text) <= self._left and self._add(candidate, _whole(candidate)):
            self._explain(candidate)
        elif not self._shorten(candidate):
            self._leave_out(candidate, "no room")

    def _add(self, candidate: Candidate, spans: tuple[Span, ...]) -> bool:
        """Add passages of a candidate, or leave them out as a duplicate; return False if they do not fit."""
        record = candidate.record
        whole = spans == _whole(candidate)
        text = text_of(candidate) if whole else joined(record.text, spans)
        entry = self._layout.entry(record, text, self._places(candidate))
        new: dict[tuple[Any, ...], float] = {}
        for depth, heading in enumerate(entry.headings, 1):
            path = tuple(each.key for each in entry.headings[:depth])
            if path not in self._headings:
                new[path] = self._size(heading.opening + heading.closing)
        tokens = self._size(entry.block)
        if tokens + sum(new.values()) > self._left:
            return False
        if (same := self._chosen.add(record.id, text)) is not None:
            self._leave_out(candidate, "duplicate", same)
            return True
        self._left -= tokens + sum(new.values())
        self._headings |= new.keys()
        self._entries[record.id] = entry
        outcome: Outcome = "whole" if whole else "part"
        self._items.pop(record.id, None)  # it may have been left out of a smaller share
        self._items[record.id] = ContextItem(
            record, candidate.origin, outcome, candidate.score, spans, math.ceil(tokens)
        )
        return True

    def _shorten(self, candidate: Candidate) -> bool:
        """Add passages of a text that does not fit, and return whether any do.

        They are all of it but code that repeats its words, or else those that match the question. These take a small
        share of the budget in all: a short text that fits as a whole is more likely to be an answer.
        """
        text = candidate.record.text
        size = self._size(text)
        if (
            self._left >= _LEAST_OF_CODE * size
            and (spans := without_repeated_code(text))
            and self._add(candidate, spans)
        ):
            return True
        if size < LONG_SHARE * self._max_tokens:
            return False
        room = min(self._excerpts, self._left - self._size(self._bare(candidate)))
        if room < _LEAST_EXCERPT:
            return False
        before = self._left
        spans = passages(text, candidate.words, int(_BYTES_PER_TOKEN * room))
        if not spans or not self._add(candidate, spans):
            return False
        self._excerpts -= before - self._left
        return True

    def _bare(self, candidate: Candidate) -> str:
        """Return the entry of a candidate without its text, and its headings."""
        entry = self._layout.entry(candidate.record, "", self._places(candidate))
        return "".join(heading.opening + heading.closing for heading in entry.headings) + entry.block

    def _explain(self, candidate: Candidate) -> None:
        """Add the turn that a hit mostly got its score from, since the hit alone does not say what it is about."""
        if candidate.explained_by is None or candidate.explained_by in self._entries:
            return
        if candidate.record.id not in self._entries:
            return
        if self._size(candidate.record.text) > _TERSE:
            return
        found = self._by_id.get(candidate.explained_by) or self._fetch(candidate.explained_by)
        if found is not None and self._size(found.record.text) <= _SHORT:
            self._add(found, _whole(found))

    def _leave_out(self, candidate: Candidate, outcome: Outcome, same: str | None = None) -> None:
        self._items[candidate.record.id] = ContextItem(
            candidate.record, candidate.origin, outcome, candidate.score, duplicate_of=same
        )

    def finished(self, count: Callable[[str], int]) -> Context:
        """Return the context, of at most `max_tokens` as `count` returns them."""
        entries = dict(self._entries)
        while True:
            text = self._layout.whole(body_of(list(entries.values())))
            tokens = count(text)
            if tokens <= self._max_tokens or not entries:
                break
            last, _ = entries.popitem()
            item = self._items.pop(last)
            self._items[last] = ContextItem(item.record, item.origin, "no room", item.score)
        if tokens > self._max_tokens:  # even an empty context has tokens
            text, tokens = "", count("")
        items = [*(self._items[record_id] for record_id in entries)]
        items += [item for record_id, item in self._items.items() if record_id not in entries]
        return Context(text, tuple(items), tokens, self._max_tokens, self._style)


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
    return ((0, len(candidate.record.text)),)
