"""Contexts and their items: the text for a prompt, and what went into it, what did not, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from recollect.arguments.checks import check_choice, check_count, check_text
from recollect.arguments.json_form import json_form
from recollect.engine.results import record_from_json, record_json
from recollect.records.record import Record

#: How a context is formatted (see `Memory.context`).
Style: TypeAlias = Literal["markdown", "xml", "messages", "llm4s"]
STYLES: tuple[Style, ...] = get_args(Style)
#: Why a record was considered.
Origin: TypeAlias = Literal["standing", "pinned", "hit", "neighbour", "glossary", "outline"]
#: What became of it.
Outcome: TypeAlias = Literal[
    "whole",
    "part",
    "duplicate",
    "not valid",
    "asked before",
    "not confident",
    "adds little",
    "untrusted",
    "no room",
    "no text",
]
#: What a context considers.
Part: TypeAlias = Literal["records", "glossary", "outline"]
PARTS: tuple[Part, ...] = get_args(Part)
#: The start and the end of a passage, in characters (code points) of the text of its record.
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ContextItem:
    """A record that was considered for a context.

    Attributes:
        origin: Why it was considered. "standing": a standing instruction or preference. "pinned": a pinned record.
            "hit": it answers the question. "neighbour": a turn next to a hit that explains it. "glossary": a term that
            the question names, with its definition as its text. "outline": a note that matches it, with its title.
        outcome: "whole": its text is in the context. "part": passages of it are. The others were left out.
            "duplicate": a chosen record says the same. "not valid": it does not hold at the time in question. "asked
            before": it only asks what the question asks. "not confident": no hit reaches `min_confidence`. "adds
            little": a concise context leaves it out beside the hits before it. "untrusted": the style "llm4s" cannot
            quote it. "no room": it did not fit in the budget,
            or in the share of its origin. "no text": it has no text.
        score: The score of the hit, or the similarity of the note; 0.0 if it is neither.
        spans: The passages that are in the context: start and end, in characters of `record.text`.
        tokens: The tokens of its entry. Headings, which several items share, are not included.
        duplicate_of: The id of the record that says the same, or None.
    """

    record: Record
    origin: Origin
    outcome: Outcome
    score: float = 0.0
    spans: tuple[Span, ...] = ()
    tokens: int = 0
    duplicate_of: str | None = None

    @property
    def included(self) -> bool:
        """True if the context has the text of the record, or passages of it."""
        return self.outcome in ("whole", "part")

    @property
    def passages(self) -> tuple[str, ...]:
        """The texts of the spans."""
        return tuple(self.record.text[start:end] for start, end in self.spans)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "record": record_json(self.record),
            "origin": self.origin,
            "outcome": self.outcome,
            "score": self.score,
            "spans": [list(span) for span in self.spans],
            "tokens": self.tokens,
            **({} if self.duplicate_of is None else {"duplicate_of": self.duplicate_of}),
        }

    @classmethod
    @json_form("an item of a context")
    def from_json(cls, data: Mapping[str, Any]) -> ContextItem:
        """Rebuild an item from its JSON form."""
        check_choice("origin", data["origin"], get_args(Origin))
        check_choice("outcome", data["outcome"], get_args(Outcome))
        check_count("tokens", data["tokens"], least=0)
        for span in data["spans"]:
            for place in span:
                check_count("span", place, least=0)
        return cls(
            record_from_json(data["record"]),
            data["origin"],
            data["outcome"],
            data["score"],
            tuple((start, end) for start, end in data["spans"]),
            data["tokens"],
            data.get("duplicate_of"),
        )


class Context(str):
    """A text for a prompt. A `str` that knows what it consists of.

    Attributes:
        items: The records that were considered: first those in the context, then those left out, each in the order in
            which they were considered.
        tokens: The number of tokens of the text, headings included.
        max_tokens: The budget.
    """

    items: tuple[ContextItem, ...]
    tokens: int
    max_tokens: int
    style: Style

    __slots__ = ("items", "max_tokens", "style", "tokens")

    def __new__(cls, text: str, items: tuple[ContextItem, ...], tokens: int, max_tokens: int, style: Style) -> Context:
        """Create a context. `Memory.context` does."""
        self = super().__new__(cls, text)
        self.items, self.tokens, self.max_tokens, self.style = items, tokens, max_tokens, style
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Context, (str(self), self.items, self.tokens, self.max_tokens, self.style)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The context as messages of a chat API: one message of the user, or none if the context is empty."""
        if self.style == "messages":
            messages: list[dict[str, str]] = json.loads(self) if self else []
            return messages
        return [{"role": "user", "content": str(self)}] if self else []

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "text": str(self),
            "tokens": self.tokens,
            "max_tokens": self.max_tokens,
            "style": self.style,
            "items": [item.to_json() for item in self.items],
        }

    @classmethod
    @json_form("a context")
    def from_json(cls, data: Mapping[str, Any]) -> Context:
        """Rebuild a context from its JSON form."""
        items = tuple(map(ContextItem.from_json, data["items"]))
        text, tokens, max_tokens, style = (data[name] for name in ("text", "tokens", "max_tokens", "style"))
        check_text("text", text, blank=True)
        check_count("tokens", tokens, least=0)
        check_count("max_tokens", max_tokens)
        check_choice("style", style, STYLES)
        return cls(text, items, tokens, max_tokens, style)
