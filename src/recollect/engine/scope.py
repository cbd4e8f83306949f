"""Scopes: views of a namespace that are restricted to a user, an agent or a conversation.

A scope is a condition that is ANDed to everything a caller reads and written into everything a caller writes. It can be
narrowed further but never widened. Within it, other records seem not to exist: an id that is chosen in a scope is
stored in a qualified form, so that it never collides with ids chosen elsewhere, and returned as it was chosen.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations, count
from typing import Any, Literal, NamedTuple

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError, InvalidRecordError, ScopeError
from recollect.filters.tree import AllOf, AnyOf, Custom, Filter, Is, Not, Nothing
from recollect.ledger.commits import Branch
from recollect.operations import SCOPED
from recollect.records.names import MAX_ID_BYTES
from recollect.records.origins import USER, Origin
from recollect.records.record import Record, RecordId
from recollect.text.unicode import nfc

#: The first character of a qualified id: `@user=ana/note`, or `@user=ana&2/note` if the record with the first id has
#: left the scope.
QUALIFIED_PREFIX = "@"
#: A longer qualifier, in bytes, is replaced by a digest, so that there is room for the id itself.
_MAX_QUALIFIER_BYTES = 100
_RESERVED = regex("[%&/=\\x00-\\x1f\\x7f-\\x9f\ud800-\udfff]")
_QUALIFIER = regex(f"({QUALIFIED_PREFIX}[a-z]+=[^&/]*(?:&[a-z]+=[^&/]*)*)(?:&[0-9]+)?/")
_NUMBER_AND_ID = regex(rf"(?:&(?:[2-9]|[1-9][0-9]+))?/([^{QUALIFIED_PREFIX}].*)", re.DOTALL)


class Scope(NamedTuple):
    """A restriction to records with certain field values.

    Attributes:
        fixed: (name, value) of each fixed field, sorted by name. If empty, the scope is the whole namespace.
    """

    fixed: tuple[tuple[str, str], ...] = ()

    def narrowed(self, **fields: str | None) -> Scope:
        """Return this scope with more fields fixed.

        Raises:
            InvalidArgumentError: A value is not a non-empty text.
            ScopeError: A field is fixed to another value already.
        """
        fixed = dict(self.fixed)
        for name, value in fields.items():
            if value is None:
                continue
            if not isinstance(value, str) or not value:
                raise InvalidArgumentError(name, value, "must be text that is not empty")
            value = nfc(value)  # as records have it
            if fixed.setdefault(name, value) != value:
                raise ScopeError(f"{name} {value!r}", str(self))
        return Scope(tuple(sorted(fixed.items())))

    @property
    def filter(self) -> Filter:
        """The condition that the records in the scope match."""
        return AllOf.of(*(Is(name, (value,)) for name, value in self.fixed))

    def admits(self, record: Record) -> bool:
        """Return whether a record lies in the scope."""
        return all(getattr(record, name) == value for name, value in self.fixed)

    def fill(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a write with those of the scope filled in.

        Raises:
            ScopeError: A field has another value than the scope requires.
        """
        out = dict(fields)
        for name, value in self.fixed:
            if out.get(name) != value and _composed(out.get(name)) not in (None, value):
                raise ScopeError(f"{name} {out[name]!r}", str(self))
            out[name] = value
        return out

    # Ids

    def qualified(self, record_id: str, number: int = 1) -> RecordId:
        """Return the form in which an id that is chosen in this scope is stored.

        Raises:
            InvalidRecordError: The id is too long or begins with `QUALIFIED_PREFIX`.
        """
        if record_id.startswith(QUALIFIED_PREFIX):
            raise InvalidRecordError(
                "id", record_id, f"begins with {QUALIFIED_PREFIX}, which is not allowed for an id chosen in a scope"
            )
        prefix = f"{_qualifier(self.fixed)}{'' if number == 1 else f'&{number}'}/"
        limit = MAX_ID_BYTES - len(prefix.encode("utf-8"))
        if len(record_id.encode("utf-8")) > limit:
            raise InvalidRecordError("id", record_id, f"is longer than {limit} bytes, the limit in the scope {self}")
        return RecordId(prefix + record_id)

    def shown_id(self, record_id: str) -> str:
        """Return a stored id as this scope shows it: unqualified if it was chosen here, else unchanged."""
        if not self.fixed or not record_id.startswith(QUALIFIED_PREFIX):
            return record_id
        qualifier = _qualifier(self.fixed)
        found = _NUMBER_AND_ID.fullmatch(record_id, len(qualifier)) if record_id.startswith(qualifier) else None
        return record_id if found is None else found[1]

    def shown(self, record: Record) -> Record:
        """Return a stored record as this scope shows it."""
        shown = self.shown_id(record.id)
        return record if shown == record.id else record.changed(id=shown)

    def stored_ids(self, record_id: str, known: Callable[[str], bool]) -> Iterator[str]:
        """Yield the stored ids that this scope shows as `record_id`, and the first such id that was never in use.

        Ids that were chosen here come first. A record may also have moved into the scope under its unqualified id.

        Args:
            record_id: The id as the scope shows it.
            known: Returns whether a stored id was ever in use.
        """
        if self.fixed:
            yield from self._qualified_ids(record_id, known)
        if self.shown_id(record_id) == record_id:  # else it is an id qualified by this scope, which it never shows
            yield record_id

    def _qualified_ids(self, record_id: str, known: Callable[[str], bool]) -> Iterator[str]:
        for number in count(1):
            try:
                stored = self.qualified(record_id, number)
            except InvalidRecordError:
                return
            yield stored
            if not known(stored):
                return

    def stored_form(self, where: Filter, known: Callable[[str], bool]) -> Filter:
        """Translate a filter on records as this scope shows them into a filter on stored records."""
        if not self.fixed:
            return where
        match where:
            case Is("id", values):
                stored = tuple(dict.fromkeys(each for value in values for each in self.stored_ids(value, known)))
                return Is("id", stored) if stored else Nothing()
            case Custom(predicate):
                return Custom(lambda record: predicate(self.shown(record)))
            case AllOf(parts):
                return AllOf(tuple(self.stored_form(part, known) for part in parts))
            case AnyOf(parts):
                return AnyOf(tuple(self.stored_form(part, known) for part in parts))
            case Not(part):
                return Not(self.stored_form(part, known))
        return where

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.fixed) or "of the whole namespace"


def qualifier_of(record_id: str) -> str:
    """Return the qualifier of an id that was chosen in a scope, up to the slash; "" of any other id.

    >>> qualifier_of("@user=ana&2/note"), qualifier_of("note")
    ('@user=ana/', '')
    """
    found = _QUALIFIER.match(record_id)
    return f"{found[1]}/" if found else ""


def unqualified(record_id: str) -> str:
    """Return an id without its qualifier, as it was chosen in its scope.

    >>> unqualified("@user=ana&2/note"), unqualified("note")
    ('note', 'note')
    """
    found = _QUALIFIER.match(record_id)
    return record_id[found.end() :] if found else record_id


def linked_id(record_id: str, link: str | None) -> str | None:
    """Return the id that a link of a record names, such as its parent, for a reader who sees the record's id like this.

    The writer of the link saw the ids of a scope, if the record's own id was chosen in one.

    >>> linked_id("@user=ana/note", "plan"), linked_id("note", "plan")
    ('@user=ana/plan', 'plan')
    """
    return None if link is None else qualifier_of(record_id) + link


def scopes_of(record: Record) -> list[Scope]:
    """Return the scopes that contain a record, except the whole namespace: at most 7."""
    fields = [(name, value) for name in sorted(SCOPED) if (value := getattr(record, name)) is not None]
    return [Scope(fixed) for size in range(1, len(fields) + 1) for fixed in combinations(fields, size)]


@lru_cache(maxsize=256)
def _qualifier(fixed: tuple[tuple[str, str], ...]) -> str:
    """Return the prefix of the ids chosen in a scope, up to the number or the slash."""
    escaped = (f"{name}={_RESERVED.sub(lambda found: f'%{ord(found[0]):02X}', value)}" for name, value in fixed)
    qualifier = nfc(QUALIFIED_PREFIX + "&".join(escaped))
    if len(qualifier.encode("utf-8")) <= _MAX_QUALIFIER_BYTES:
        return qualifier
    return f"{QUALIFIED_PREFIX}scope={hashlib.sha256(qualifier.encode('utf-8')).hexdigest()[:32]}"


def _composed(value: object) -> object:
    return nfc(value) if isinstance(value, str) else value


# Where, for whom and why an operation is executed.


#: How a server knows a client.
Client = Literal["", "mcp", "token"]
MCP: Client = "mcp"
BY_TOKEN: Client = "token"


class Place(NamedTuple):
    """The place of an operation: where, for whom and why it is executed.

    Attributes:
        branch: The branch to read or write.
        scope: The scope of the caller.
        actor: Who makes the change; recorded in the commit.
        reason: Why the change is made; recorded in the commit.
        key: The idempotency key of a write: repeated within a day, it gives its first answer and writes nothing.
        origin: The class of origin of the writer: no record gets a higher one, and none of a higher one is changed.
        client: How a server knows the client that the actor names: "mcp" or "token"; "": not at all.
    """

    branch: Branch = Branch("default")
    scope: Scope = Scope()
    actor: str | None = None
    reason: str | None = None
    key: str | None = None
    origin: Origin = USER
    client: Client = ""
