"""Whose records a call reads or writes: the arguments `user=`, `agent=` and `conversation=`, with one meaning.

A call that reads takes the records of a user and those that belong to no user, so that what is shared is found too. A
call that forgets takes only those of the user. Names are compared in NFC, as records have them, and never parsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypedDict, cast

from recollect.arguments.checks import check_text
from recollect.errors import ScopeError
from recollect.filters import any_of, has
from recollect.filters.tree import Filter, Is
from recollect.text.unicode import nfc


class NamedOwners(TypedDict, total=False):
    """The owners that a call names, as its arguments."""

    user: str
    agent: str
    conversation: str


class Owners(NamedTuple):
    """Whose records a call is about; None: no matter whose."""

    user: str | None = None
    agent: str | None = None
    conversation: str | None = None

    @classmethod
    def checked(cls, scope: Mapping[str, str], user: object, agent: object, conversation: object) -> Owners:
        """Return the owners that a call names, and those that the scope of the memory fixes.

        Raises:
            InvalidArgumentError: A name is not text, or is empty.
            ScopeError: The scope fixes another name.
        """
        given: dict[str, Any] = {"user": user, "agent": agent, "conversation": conversation}
        for name, value in given.items():
            if value is None:
                continue
            check_text(name, value)
            given[name] = value = nfc(value)
            if scope.get(name) not in (None, value):
                raise ScopeError(f"{name} {value!r}", ", ".join(f"{key}={each}" for key, each in scope.items()))
        return cls(**(given | dict(scope)))

    @property
    def named(self) -> NamedOwners:
        """The names that are not None, by field."""
        named: Any = dict(self._items())
        return cast("NamedOwners", named)

    @property
    def readable(self) -> list[Filter]:
        """The conditions on what may be read: of each owner, or without one."""
        return [any_of(Is(name, (value,)), ~has(name)) for name, value in self._items()]

    @property
    def own(self) -> list[Filter]:
        """The conditions on what belongs to the owners."""
        return [Is(name, (value,)) for name, value in self._items()]

    @property
    def governing(self) -> list[Filter]:
        """The conditions on standing instructions and pinned records: without a user, only those of no user."""
        return self.readable if self.user is not None else [*self.readable, ~has("user")]

    def _items(self) -> Iterator[tuple[str, str]]:
        return ((name, value) for name, value in self._asdict().items() if value is not None)
