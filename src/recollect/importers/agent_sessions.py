"""Sessions of the OpenAI Agents SDK, as `recollect.compat.openai_agents.RecollectSession` stores them.

After the import, a RecollectSession with the id of a session returns its items in their order, and recall finds its
messages. A session is stored as a whole, and only behind items that are the same: two histories are never mixed. The
SDK need not be installed.

AdvancedSQLiteSession has branches. The main one is the session; each other one is a session of its own, named after the
session and the branch ("chat/branch"), with the tag `other-branch`. Recall does not find a second time what it has in
common with a branch before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.compat.item_log import ITEM, ItemLog
from recollect.compat.session_items import session_log
from recollect.compat.storing import stored_each
from recollect.errors import RecollectError, StoreError
from recollect.importers.base import Damage, Item, NamedImporter, Omission, Stored, format_error, parse_json
from recollect.importers.databases import Database, opened, quoted, text_of
from recollect.operations import GetPolicies, Remember
from recollect.quoting import printable
from recollect.records.factories import OTHER_BRANCH
from recollect.records.messages.values import UnreadableError, instant

if TYPE_CHECKING:
    from recollect.memory import Batch, Memory

#: The columns of a table of messages, and of one of sessions. The tables can have any names.
_MESSAGES, _SESSIONS = ("id", "session_id", "message_data", "created_at"), ("session_id", "created_at", "updated_at")
#: The table of an AdvancedSQLiteSession that says in which branches a message is, and where.
_STRUCTURE = "message_structure"
_PLACES = ("id", "session_id", "message_id", "branch_id", "sequence_number")
#: Tables of an AdvancedSQLiteSession that have nothing else than numbers for its own use.
_NUMBERS = ("branch_reservations", "session_clear_generations")
_MAIN = "main"
_OWNERS = ("user", "agent")


class AgentSessions(NamedImporter):
    """A file with tables such as `agent_messages(id, session_id, message_data, created_at)`."""

    name = "openai-sessions"
    summary = "OpenAI Agents SDK: the file of SQLiteSession, branches included; sessions, for RecollectSession"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | Omission]:
        with opened(path) as database:
            tables = [name for name in database.tables if database.has(name, *_MESSAGES) and name != _STRUCTURE]
            if not tables:
                rule = f"is another SQLite file: it has no table with the columns {', '.join(_MESSAGES)}"
                raise format_error(path, "", rule)
            structure = _owner_of_structure(database)
            for table in (*tables, *([_STRUCTURE] if structure else ())):
                database.need(table)
            try:
                there = {
                    row[0]
                    for table in tables
                    for row in database.rows(f"SELECT DISTINCT session_id FROM {quoted(table)}")
                }
            except UnreadableError as error:
                raise format_error(path, "", str(error)) from None
            self.check_wanted(path, sorted(name for name in there if isinstance(name, str)), "session")
            claimed: dict[str, str] = {}
            for table in tables:
                branched = table == structure
                try:
                    yield from self._sessions(database, table, claimed, branched=branched)
                    if branched:
                        yield Omission("messages that are in no branch", _unplaced(database, table))
                except UnreadableError as error:
                    yield Damage(f"the rest of the table {printable(table)}", str(error))
            known = [name for name in database.tables if database.has(name, *_SESSIONS)]
            yield from database.others((*known, *tables, *_NUMBERS, *([_STRUCTURE] if structure else ())))

    def _sessions(
        self, database: Database, table: str, claimed: dict[str, str], *, branched: bool
    ) -> Iterator[Item | Damage | Omission]:
        """Yield the items of the sessions of a table.

        Args:
            database: The database.
            table: The table.
            claimed: The histories that were read so far, by the names of their sessions here. Two histories with one
                name are never mixed: the second is not imported.
            branched: Whether the table has branches.

        Raises:
            UnreadableError: The file is damaged.
        """
        found = database.rows(_branched(table) if branched else _plain(table))
        not_wanted = 0
        for session, rows in groupby(found, lambda row: row[0]):
            if self.wanted and session not in self.wanted:
                not_wanted += sum(1 for _ in rows)
                continue
            seen: set[int] = set()
            for branch, messages in groupby(rows, lambda row: row[1]):
                history = printable(f"table {table}, session {session!r}, branch {branch or _MAIN!r}"[:200])
                here = str(session) if branch in (None, _MAIN) else f"{session}/{branch}"
                if (first := claimed.setdefault(here, history)) != history:
                    number = sum(1 for _ in messages)
                    yield Damage(
                        history, f"its {number} messages would be in the session of {first}: rename one of them"
                    )
                    continue
                for position, (_, _, number, data, created) in enumerate(messages):
                    place = printable(f"session {session!r}, message {number}"[:200])
                    try:
                        name = text_of(session, "session_id")
                        other = "" if branch in (None, _MAIN) else text_of(branch, "branch_id")
                        item = _SessionItem(
                            f"{name}/{other}" if other else name,
                            position,
                            parse_json(text_of(data, "message_data")),
                            None if created is None else instant(created, UTC),
                            is_other=bool(other),
                            is_copy=number in seen,
                        )
                    except UnreadableError as error:
                        yield Damage(place, str(error))
                    else:
                        group = f"session {item.session}"
                        yield Item(namespace=None, fields={"item": item}, place=place, form=_TURNS, group=group)
                    seen.add(number)
        yield Omission("messages of other sessions", not_wanted)


def _plain(table: str) -> str:
    return f"SELECT session_id, NULL, id, message_data, created_at FROM {quoted(table)} ORDER BY session_id, id"


def _branched(table: str) -> str:
    """Return the query for the messages of a table of AdvancedSQLiteSession, the main branch of a session first.

    A session without places was written by an SQLiteSession.
    """
    name = quoted(table)
    return f"""
        SELECT session, branch, id, data, created FROM (
            SELECT m.session_id AS session, s.branch_id AS branch, m.id AS id, m.message_data AS data,
                m.created_at AS created, s.sequence_number AS place, s.id AS number
            FROM {_STRUCTURE} s JOIN {name} m ON m.id = s.message_id AND m.session_id = s.session_id
            UNION ALL
            SELECT m.session_id, NULL, m.id, m.message_data, m.created_at, m.id, 0 FROM {name} m
            WHERE NOT EXISTS (SELECT 1 FROM {_STRUCTURE} s WHERE s.session_id = m.session_id)
        )
        ORDER BY session, branch IS NOT NULL AND branch <> '{_MAIN}', branch, place, number"""


def _unplaced(database: Database, table: str) -> int:
    """Return the number of messages that are in no branch of their session, though others of it are."""
    ((count,),) = database.rows(f"""
        SELECT count(*) FROM {quoted(table)} m
        WHERE EXISTS (SELECT 1 FROM {_STRUCTURE} s WHERE s.session_id = m.session_id)
        AND NOT EXISTS (SELECT 1 FROM {_STRUCTURE} s WHERE s.session_id = m.session_id AND s.message_id = m.id)""")
    return int(count)


def _owner_of_structure(database: Database) -> str | None:
    """Return the table of messages to which the branches belong; None if there are none."""
    if not database.has(_STRUCTURE, *_PLACES):
        return None
    try:
        keys = list(database.rows(f"PRAGMA foreign_key_list({_STRUCTURE})"))
    except UnreadableError:
        return None
    owners = [row[2].lower() for row in keys if row[3] == "message_id"]
    return next((name for name in database.tables if name.lower() in owners), None)


class _SessionItem(NamedTuple):
    """An item of a session of the source.

    Attributes:
        session: The id of the session.
        position: Its position in it, with those of damaged items.
        value: The item.
        time: When it was added.
        is_other: Whether it is in another branch than the main one.
        is_copy: Whether a branch before this one has the same message.
    """

    session: str
    position: int
    value: Any
    time: datetime | None
    is_other: bool
    is_copy: bool


@dataclass(frozen=True)
class _AsTurns:
    """The form of the records of RecollectSession. `fields` has the item, and the defaults of the import."""

    def store(self, memory: Memory, items: Sequence[Item]) -> list[Stored]:
        out: list[Stored] = []
        owners = {name: items[0].fields.get(name) for name in _OWNERS}
        with memory.batch() as batch:
            for session, group in groupby(items, lambda item: item.fields["item"].session):
                own = list(group)
                try:
                    log = session_log(memory, session, **owners)
                except RecollectError as error:  # the memory is that of another user
                    out += [error] * len(own)
                else:
                    out += _stored(batch, log, own)
        return out


def _stored(batch: Batch, log: ItemLog, items: Sequence[Item]) -> list[Stored]:
    """Store the items of one session, unless the memory has other ones in their places."""
    from recollect.engine.results import Outcome

    policies = batch.execute(GetPolicies())
    out: list[Stored] = [None] * len(items)
    operations: dict[int, Remember] = {}
    for at, item in enumerate(items):
        try:
            operations[at] = _operation(log, item, policies)
        except StoreError:
            raise
        except RecollectError as error:
            out[at] = error
        except RecursionError:
            out[at] = UnreadableError("is nested too deeply")
    stored = log.by_position(batch)
    there = {at: stored.get(items[at].fields["item"].position) for at in operations}
    others = False
    for at, record in there.items():
        if record is not None:
            is_same = record.metadata.get(ITEM) == operations[at].fields["metadata"][ITEM]
            others = others or not is_same
            out[at] = Outcome(record, "unchanged") if is_same else _OTHERS
    new = {at: operation for at, operation in operations.items() if there[at] is None}
    for at, result in zip(new, [_OTHERS] * len(new) if others else stored_each(batch, list(new.values())), strict=True):
        out[at] = result
    return out


_OTHERS = UnreadableError("this memory has other items of the session: import it for another user, or into another one")


def _operation(log: ItemLog, item: Item, policies: Any) -> Remember:
    own: _SessionItem = item.fields["item"]
    operation = log.operation(own.position, own.value, policies)
    defaults: Mapping[str, Any] = {name: value for name, value in item.fields.items() if name != "item"}
    fields = {**defaults, **operation.fields}
    if own.time is not None:
        fields["time"] = own.time
    if own.is_copy:
        fields["searchable"] = False
    if own.is_other:
        fields["tags"] = [*fields.get("tags", ()), OTHER_BRANCH]
    return replace(operation, fields=fields, standing=False)


_TURNS = _AsTurns()
