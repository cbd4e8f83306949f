"""The terms of a glossary as records: of the kind "term", with the key, category, aliases and description as metadata.

A term is identified by its agent and its key in lower case, both in NFC, so a key in another casing or Unicode form is
the same term.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from recollect.records.record import Record
from recollect.text.unicode import nfc, normalized

#: The kind of a term.
TERM = "term"
#: The agent whose glossary the tools of a model use if none is named.
DEFAULT_AGENT = "shared"
#: The names of ids of agents and keys with a "::", which the usual names would confuse with others.
_AMBIGUOUS = uuid.uuid5(uuid.NAMESPACE_DNS, "terms.recollect")
_BETWEEN = "::"


class Entry(NamedTuple):
    """The entry of a glossary for a term.

    Attributes:
        key: The term.
        value: What it means.
        aliases: Its other names.
        description: More about it.
    """

    key: str
    value: str
    category: str
    aliases: tuple[str, ...]
    description: str

    @property
    def text(self) -> str:
        """All of its text, which recall searches."""
        return "\n".join((self.key, self.value, *self.aliases, self.description))


def term_id(agent: str, key: str) -> str:
    """Return the id of a term.

    >>> term_id("compliance_bot", "PII")
    '31a291a0-e30d-5413-bc06-d7748a4c8b49'
    >>> term_id("a::b", "c") == term_id("a", "b::c")
    False
    """
    return term_ids(agent, key)[0]


def term_ids(agent: str, key: str) -> tuple[str, ...]:
    """Return the id of a term, and those that earlier releases derived from names in another Unicode form than NFC."""
    agents, keys = ((nfc(name), normalized("NFD", name)) for name in (agent, key))
    return tuple(dict.fromkeys(_term_id(one, other.lower()) for one in agents for other in keys))


def _term_id(agent: str, key: str) -> str:
    if _BETWEEN in agent or _BETWEEN in key or agent.endswith(":") or key.startswith(":"):
        return str(uuid.uuid5(_AMBIGUOUS, f"{len(agent)}{_BETWEEN}{agent}{_BETWEEN}{key}"))
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{agent}{_BETWEEN}{key}"))


def term_fields(
    agent: str, key: str, value: str, category: str, aliases: Sequence[str], description: str
) -> dict[str, Any]:
    """Return the fields of a term's record, `content` and `id` among them."""
    return {
        "id": term_id(agent, key),
        "kind": TERM,
        "agent": agent,
        "content": value,
        "metadata": {"key": key, "category": category, "aliases": list(aliases), "description": description},
    }


def entry_of(record: Record) -> Entry | None:
    """Return what a record says about a term; None if it is not a term's."""
    said = record.metadata
    key, category, description = (said.get(name) for name in ("key", "category", "description"))
    aliases: Any = said.get("aliases")
    if record.kind != TERM or not isinstance(record.content, str) or not isinstance(aliases, (list, tuple)):
        return None
    if not (isinstance(key, str) and isinstance(category, str) and isinstance(description, str)):
        return None
    if not all(isinstance(alias, str) for alias in aliases):
        return None
    return Entry(nfc(key), record.content, category, tuple(map(nfc, aliases)), description)
