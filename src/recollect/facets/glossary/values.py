"""Arguments and results of a glossary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypedDict

from recollect.arguments.checks import check_text
from recollect.errors import DamagedStoreError, InvalidArgumentError
from recollect.facets.glossary.records import entry_of, term_ids
from recollect.records.record import Record
from recollect.text.unicode import nfc


class Listed(TypedDict):
    """A term as `list_all` returns it."""

    key: str
    value: str
    category: str
    aliases: list[str]
    description: str
    agent_id: str
    entry_id: str


class Recalled(Listed):
    """A term as `recall` returns it: with its score, on BM25's scale."""

    score: float


@dataclass(frozen=True, slots=True)
class TermVersion:
    """A version of a term.

    Attributes:
        seq: The number of the commit that wrote it.
        time: The time of the commit.
        cause: Why the term changed, such as "written" and "forgotten".
        term: The term after the commit; None if it was removed.
    """

    seq: int
    time: datetime
    cause: str
    term: Listed | None


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An occurrence of a term in a text.

    Attributes:
        start: The offset of its first character.
        end: The offset after its last one.
        text: What the text says there.
        name: The key or the alias that occurs, as the glossary writes it.
        terms: The terms that have this name; those with this key first.
    """

    start: int
    end: int
    text: str
    name: str
    terms: tuple[Listed, ...]


class StatedTerm(NamedTuple):
    """A term as a caller or a file states it.

    Attributes:
        key: The term.
        value: What it means.
        aliases: Its other names.
        description: More about it.
        expires: When it expires; None: never.
    """

    key: str
    value: str
    category: str
    aliases: tuple[str, ...]
    description: str
    expires: datetime | None = None


def stated(
    key: str, value: str, category: str, aliases: Sequence[str] | None = None, description: str | None = None
) -> StatedTerm:
    """Return a term, checked.

    Raises:
        InvalidArgumentError: A field is not text, or the key or the value is empty.
    """
    check_text("key", key)
    check_text("value", value)
    check_text("category", category, blank=True)
    check_text("description", description or "", blank=True)
    names = listed_texts("aliases", () if aliases is None else aliases)
    for name in names:
        check_text("aliases", name)
    return StatedTerm(nfc(key), value, category, tuple(map(nfc, names)), description or "")


def listed_texts(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return texts as a tuple. One text is no list of texts."""
    if isinstance(values, str):
        raise InvalidArgumentError(name, values, "must be a list of texts, not one text")
    return tuple(values)


def checked_ids(key: str, agent_id: str) -> tuple[str, ...]:
    """Return the id of a term and those that earlier releases gave it. Key and agent are checked."""
    check_text("key", key)
    check_text("agent_id", agent_id)
    return term_ids(agent_id, key)


def listed(record: Record) -> Listed:
    """Return the term of a record.

    Raises:
        DamagedStoreError: It is not that of a term.
    """
    entry = entry_of(record)
    if entry is None or record.agent is None:
        raise DamagedStoreError("the glossary", f"the record {record.id!r} is not a term")
    return {
        "key": entry.key,
        "value": entry.value,
        "category": entry.category,
        "aliases": list(entry.aliases),
        "description": entry.description,
        "agent_id": record.agent,
        "entry_id": record.id,
    }


def recalled(record: Record, score: float) -> Recalled:
    """Return the term of a record with its score."""
    return {**listed(record), "score": score}


def sorted_by_key(terms: list[Listed]) -> list[Listed]:
    """Return terms sorted by key, case-insensitively."""
    return sorted(terms, key=lambda term: (term["key"].casefold(), term["key"]))


def is_category(term: Mapping[str, object], category: str | None) -> bool:
    """Return whether a term is of a category; None: of any."""
    return category is None or term["category"] == category
