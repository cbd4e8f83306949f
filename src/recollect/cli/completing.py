"""Completion in a shell: namespaces, ids of records, their owners, and the fields and values of filters.

A completion reads the store and never writes. What it cannot read, it does not complete: a shell shows no errors.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import Protocol

from click.shell_completion import CompletionItem

from recollect.cli.render import ids_that_begin
from recollect.common.regexes import regex
from recollect.errors import RecollectError
from recollect.filters.text_form import FIELDS
from recollect.memory import Memory

#: Maximum number of values that are offered.
_MOST = 50
#: The fields whose values are few, so that they are offered.
_LISTED = ("kind", "user", "agent", "conversation", "speaker", "role", "entity", "source", "tag")
_VALUE = regex(rf"(.*?\b({'|'.join(_LISTED)})\s*!?=\s*)([^\s()=]*)", re.DOTALL)
_FIELD = regex(r"(|.*[\s(])([a-z_]*)", re.DOTALL)


class Opens(Protocol):
    """The settings of a command, which open its memory."""

    def open(self, *, read_only: bool) -> Memory:
        """Open it."""


def namespaces(settings: Opens, incomplete: str) -> list[str]:
    """Return the namespaces of the store that begin like the word."""
    with suppress(RecollectError), settings.open(read_only=True) as memory:
        return [name for name in memory.namespaces() if name.startswith(incomplete)]
    return []


def branches(settings: Opens, incomplete: str) -> list[str]:
    """Return the branches of the namespace that begin like the word."""
    with suppress(RecollectError), settings.open(read_only=True) as memory:
        return [each.name for each in memory.branches() if each.name.startswith(incomplete)]
    return []


def ids(settings: Opens, incomplete: str) -> list[CompletionItem]:
    """Return the ids that begin like the word, each with the beginning of its text."""
    with suppress(RecollectError), settings.open(read_only=True) as memory:
        found = islice(ids_that_begin(memory, incomplete), _MOST)
        return [CompletionItem(record.id, help=" ".join(str(record.content).split())[:60]) for record in found]
    return []


def users(settings: Opens, incomplete: str) -> list[str]:
    """Return the users that begin like the word."""
    return _values(settings, "user", incomplete)


def agents(settings: Opens, incomplete: str) -> list[str]:
    """Return the agents that begin like the word."""
    return _values(settings, "agent", incomplete)


def conversations(settings: Opens, incomplete: str) -> list[str]:
    """Return the conversations that begin like the word."""
    return _values(settings, "conversation", incomplete)


def filters(settings: Opens, incomplete: str) -> list[str]:
    """Return what may follow in a filter: the names of fields, and the values of those that have few."""
    if (value := _VALUE.fullmatch(incomplete)) is not None:
        before, field, begun = value.groups()
        return [f"{before}{_quoted(each)}" for each in _values(settings, field, begun)]
    if (field_begun := _FIELD.fullmatch(incomplete)) is not None:
        before, begun = field_begun.groups()
        return [f"{before}{name}" for name in FIELDS if name.startswith(begun)]
    return []


def _values(settings: Opens, field: str, begun: str) -> list[str]:
    with suppress(RecollectError), settings.open(read_only=True) as memory:
        found = [each.value for each in memory.values(field)]
        return [each for each in found if isinstance(each, str) and each.startswith(begun)][:_MOST]
    return []


def _quoted(value: str) -> str:
    """Return a value as it stands in a filter."""
    if re.fullmatch(r"[\w./@+-]+", value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
