"""Scopes: a view of a namespace narrowed to a user, an agent or a conversation.

A scope is a condition that is ANDed to everything a caller reads and written into everything a caller writes. It can
be narrowed further and never lifted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from recollect.errors import InvalidArgumentError, ScopeError
from recollect.filters.tree import AllOf, Filter, Is
from recollect.records.record import Record


class Scope(NamedTuple):
    """The fields that are fixed, by name. Of none: the whole namespace."""

    fixed: tuple[tuple[str, str], ...] = ()

    def narrowed(self, **wanted: str | None) -> Scope:
        """This scope with more fields fixed. Raises: ScopeError for another value of a field that is fixed."""
        fixed = dict(self.fixed)
        for name, value in wanted.items():
            if value is None:
                continue
            if not isinstance(value, str) or not value:
                raise InvalidArgumentError(name, value, "must be text that is not empty")
            if fixed.setdefault(name, value) != value:
                raise ScopeError(f"{name} {value!r}", str(self))
        return Scope(tuple(sorted(fixed.items())))

    @property
    def filter(self) -> Filter:
        """The condition that records in the scope meet."""
        return AllOf.of(*(Is(name, (value,)) for name, value in self.fixed))

    def admits(self, record: Record) -> bool:
        """Whether the record lies in the scope."""
        return all(getattr(record, name) == value for name, value in self.fixed)

    def fill(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields for a write, with those of the scope filled in. Raises: ScopeError where one says otherwise."""
        out = dict(fields)
        for name, value in self.fixed:
            if out.get(name) not in (None, value):
                raise ScopeError(f"{name} {out[name]!r}", str(self))
            out[name] = value
        return out

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.fixed) or "of the whole namespace"
