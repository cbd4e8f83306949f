"""Items of LangGraph's SqliteStore, as `recollect.compat.langgraph.RecollectStore` stores them.

After the import, a RecollectStore on the memory returns them, with their times and times to live. An item that was put
here later than in the source stays as it is. LangGraph need not be installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.compat.langgraph_items import CREATED, StoredItem, stored_form
from recollect.compat.objects import VALUE
from recollect.compat.storing import stored_each
from recollect.errors import RecollectError, StoreError
from recollect.importers.base import Damage, Item, Omission, Stored, parse_json
from recollect.importers.databases import opened, text_of
from recollect.operations import SCOPED, GetPolicies, Now, Remember
from recollect.quoting import printable
from recollect.records.messages.values import UnreadableError, instant, kind_of

if TYPE_CHECKING:
    from recollect.memory import Batch, Memory
    from recollect.records.record import Record

_TABLE = "store"
_COLUMNS = ("prefix", "key", "value", "created_at", "updated_at")
#: The columns that migrations added.
_LIVES = ("expires_at", "ttl_minutes")
#: The tables of the store besides its items: versions of its schema, and vectors.
_MIGRATIONS, _VECTORS = ("store_migrations", "vector_migrations"), "store_vectors"
#: Everything of an item is indexed, as where a store states no fields.
_INDEXED = ("$",)


class LangGraphStore:
    """A file with the table `store(prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)`."""

    name = "langgraph"
    summary = "LangGraph: the file of a SqliteStore; items, for RecollectStore"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | Omission]:
        with opened(path) as database:
            database.need(_TABLE, *_COLUMNS)
            lives = [name if database.has(_TABLE, name) else f"NULL AS {name}" for name in _LIVES]
            query = f"SELECT {', '.join((*_COLUMNS, *lives))} FROM {_TABLE} ORDER BY prefix, key"
            try:
                for row in database.rows(query):
                    place = printable(f"item {row[1]!r} of {row[0]!r}"[:200])
                    try:
                        yield Item(namespace=None, fields={"item": _put(row)}, place=place, form=_ITEMS)
                    except UnreadableError as error:
                        yield Damage(place, str(error))
            except UnreadableError as error:
                yield Damage(f"the rest of the table {_TABLE}", str(error))
            try:
                yield Omission("vectors", database.count(_VECTORS))
            except UnreadableError as error:
                yield Damage(f"the table {_VECTORS}", str(error))
            yield from database.others((_TABLE, _VECTORS, *_MIGRATIONS))


class _Put(NamedTuple):
    """An item as it was last put in the source."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    created: datetime
    updated: datetime
    expires: datetime | None
    minutes: float | None


def _put(row: tuple[Any, ...]) -> _Put:
    """Return the item of a row. Raises UnreadableError."""
    prefix, key, value, created, updated, expires, minutes = row
    namespace = tuple(text_of(prefix, "prefix").split("."))  # a label has no period
    if not all(namespace):
        raise UnreadableError("its namespace has an empty label")
    parsed = parse_json(text_of(value, "value"))
    if not isinstance(parsed, dict):
        raise UnreadableError(f"its value is {kind_of(parsed)}, not an object")
    if minutes is not None and not (isinstance(minutes, (int, float)) and minutes > 0):
        raise UnreadableError("its ttl_minutes is not a number above 0")
    return _Put(
        namespace,
        text_of(key, "key"),
        parsed,
        # SQLite's times have no offset, and are in UTC.
        instant(created, UTC),
        instant(updated, UTC),
        None if expires is None else instant(expires, UTC),
        None if minutes is None else float(minutes),
    )


@dataclass(frozen=True)
class _AsItems:
    """The form of the records of RecollectStore. `fields` has the item, and the defaults of the import."""

    def store(self, memory: Memory, items: Sequence[Item]) -> list[Stored]:
        owners = {name: items[0].fields[name] for name in SCOPED if items[0].fields.get(name) is not None}
        try:
            # Where there are owners, a store on the scoped memory returns them.
            place = memory.scoped(**owners) if owners else memory
        except RecollectError as error:
            return [error] * len(items)
        with place.batch() as batch:
            return _stored(batch, items)


def _stored(batch: Batch, items: Sequence[Item]) -> list[Stored]:
    policies, now = batch.execute(GetPolicies()), batch.execute(Now())
    out: list[Stored] = [None] * len(items)
    forms: dict[int, StoredItem] = {}
    seen: set[str] = set()
    for at, item in enumerate(items):
        put: _Put = item.fields["item"]
        try:
            form = stored_form(put.namespace, put.key, put.value, _INDEXED, put.minutes, policies)
            if form.id in seen:
                raise UnreadableError("is there a second time")
            seen.add(form.id)
            forms[at] = form
        except UnreadableError as error:
            out[at] = error
        except StoreError:
            raise
        except RecollectError as error:
            out[at] = error
        except RecursionError:
            out[at] = UnreadableError("is nested too deeply")
    there = dict(zip(forms, batch.get_all([form.id for form in forms.values()]), strict=True)) if forms else {}
    operations: dict[int, Remember] = {}
    for at, form in forms.items():
        put, before = items[at].fields["item"], there[at]
        if before is not None and not _is_newer(put, before):
            out[at] = _unchanged(before, form)
        elif put.expires is None or put.expires > now:
            try:
                operations[at] = _operation(form, put, before, items[at].fields)
            except StoreError:
                raise
            except RecollectError as error:
                out[at] = error
    for at, result in zip(operations, stored_each(batch, list(operations.values())), strict=True):
        out[at], before = result, there[at]
        is_stored = not isinstance(result, RecollectError)
        if is_stored and before is not None and before.expires is not None and items[at].fields["item"].expires is None:
            batch.update(before.id, expires=None)
    return out


def _is_newer(put: _Put, stored: Record) -> bool:
    """Return whether an item was put later than the one that is stored, or read later, which lets it live longer."""
    if stored.time is None or stored.time < put.updated:
        return True
    is_same = stored.time == put.updated
    return is_same and None not in (put.expires, stored.expires) and put.expires > stored.expires  # type: ignore[operator]


def _unchanged(stored: Record, form: StoredItem) -> Stored:
    from recollect.engine.results import Outcome

    is_same = stored.metadata.get(VALUE) == form.fields["metadata"][VALUE]
    return Outcome(stored, "unchanged", () if is_same else ("content",))


def _operation(form: StoredItem, put: _Put, before: Record | None, stated: Mapping[str, Any]) -> Remember:
    """Return the operation that stores an item in the place of what is under its id."""
    own = dict(form.fields)
    content = own.pop("content")
    created = put.created
    if before is not None and CREATED in before.metadata:
        created = min(created, datetime.fromisoformat(before.metadata[CREATED]))
    own["metadata"] = {**own["metadata"], CREATED: created.isoformat()}
    defaults = {name: value for name, value in stated.items() if name != "item"}
    tags = [*own["tags"], *defaults.get("tags", ())]
    fields = {**defaults, **own, "tags": tags, "time": put.updated, "expires": put.expires}
    return Remember(content=content, id=form.id, fields=fields, if_exists="update", standing=False)


_ITEMS = _AsItems()
