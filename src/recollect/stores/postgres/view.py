"""Views and transactions of the PostgreSQL store: how the statements of `stores.sql` reach a session.

A view is a REPEATABLE READ transaction. A write is READ COMMITTED, behind the lock of the memory's row: what it reads
after that is what the writer before it has committed. Nothing is read in the statement that locks: it would be of the
moment before the lock was granted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recollect.common.deadlines import checked, current
from recollect.errors import DamagedStoreError, ReadOnlyStoreError, StaleReadError, StoreIOError
from recollect.ledger.commits import MAIN, RESERVED, Branch, Commit, Head, reserved_namespace
from recollect.ledger.merkle import version_hash
from recollect.records.record import Record
from recollect.stores.freshness import FRESHNESS, least_of
from recollect.stores.postgres.dialect import rewritten
from recollect.stores.postgres.history import SeenHistory
from recollect.stores.postgres.pages import PageCache
from recollect.stores.postgres.schema import BRANCHED_FORMAT
from recollect.stores.postgres.session import BACKEND, SERVER_RUN, Backend, Session
from recollect.stores.postgres.wire import Statement
from recollect.stores.sql.columns import SETTING
from recollect.stores.sql.continued import OWN
from recollect.stores.sql.transaction import SqlTransaction
from recollect.stores.sql.view import BRANCH, CHANGED, HAS_ERASED, ROOT_AT, Numbers, SqlView
from recollect.stores.values import RemovedPayload, Resolved

#: How many rows a cursor fetches first if it is not known how many are read, and at most.
_FIRST_ROWS, _MOST_ROWS = 100, 2000
#: How many ids of other threads are looked up at once.
_MOST_AHEAD = 100
#: How many commits behind a follower of the log may be for all that it asks to be read in one round trip.
_MOST_BEHIND = 1000
#: A number of a version or a page is that of its memory's row times 2 to the power of this, plus a count.
NUMBER_BITS = 33
#: The branches of a family with their newest commits.
_HEADS = (
    "SELECT n.name, b.name, b.number, n.number, c.seq, c.time, c.root, c.entry, c.page, c.parts, "
    "b.base_branch, b.base_seq, b.kept FROM namespaces n "
    "JOIN branches b ON b.namespace = n.number LEFT JOIN LATERAL "
    "(SELECT * FROM commits k WHERE k.branch = b.number ORDER BY k.seq DESC LIMIT 1) c ON TRUE WHERE n.name = ANY(?) "
    "AND b.name = ?"
)
# A limit makes the planner look up each id in an index. To join the tables, it reads the whole branch where nothing has
# been analyzed yet.
_ASKED = (
    "FROM unnest(?::text[]) WITH ORDINALITY AS asked(id, place) "
    "LEFT JOIN LATERAL (SELECT version, expires FROM heads WHERE branch = ? AND id = asked.id LIMIT 1) h ON TRUE "
    "LEFT JOIN LATERAL (SELECT hash, payload FROM versions WHERE number = h.version LIMIT 1) v ON TRUE "
)
ROWS_OF = f"SELECT asked.id, v.hash, v.payload {_ASKED} WHERE h.version IS NOT NULL ORDER BY asked.place"
RESOLVED = (
    "SELECT asked.id, h.version IS NOT NULL, v.hash, v.payload, h.expires <= ?, h.version IS NOT NULL OR k.known "
    f"{_ASKED}"
    "LEFT JOIN LATERAL (SELECT TRUE AS known FROM changes WHERE branch = ? AND id = asked.id LIMIT 1) k ON TRUE "
    "ORDER BY asked.place"
)
#: The ids that are not live, and whether each is known. Nothing is decoded: what is corrupt concerns those who read it.
_AHEAD = (
    "SELECT asked.id, k.known FROM unnest(?::text[]) AS asked(id) "
    "LEFT JOIN LATERAL (SELECT TRUE AS live FROM heads WHERE branch = ? AND id = asked.id LIMIT 1) h ON TRUE "
    "LEFT JOIN LATERAL (SELECT TRUE AS known FROM changes WHERE branch = ? AND id = asked.id LIMIT 1) k ON TRUE "
    "WHERE h.live IS NULL"
)
_STANDBYS = "current_setting('synchronous_standby_names')"
_LOCK = (
    f"SELECT number, next_version, next_page, erased, {_STANDBYS}, {BACKEND} FROM namespaces WHERE name = ? FOR UPDATE"
)
LIMITS = (
    "SELECT set_config('lock_timeout', $1, TRUE), set_config('idle_in_transaction_session_timeout', $2, TRUE), "
    # More than is asked for may be set for the server or the role.
    "set_config('synchronous_commit', CASE WHEN $3 = 'on' AND current_setting('synchronous_commit') = 'remote_apply' "
    "THEN 'remote_apply' ELSE $3 END, TRUE)"
)


def family_of(owner: str) -> list[str]:
    """Return the names of the namespaces of a memory."""
    return [owner, *(reserved_namespace(owner, each) for each in RESERVED)]


class Prefetch:
    """The settings that transactions and views of this process have asked for, so that later ones read them at once.

    A setting of a memory is known by what stands before the name of the memory: `quota/` of `quota/ana`.
    """

    _MOST = 16

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, bool], None] = {}

    def note(self, name: str, owner: str) -> None:
        """Note that a setting was read."""
        of_memory = name.endswith(f"/{owner}")
        if "/" in name and not of_memory:
            return  # of one call, such as the answer to a key
        kind = name[: -len(owner)] if of_memory else name
        if len(self._kinds) < self._MOST:
            self._kinds.setdefault((kind, of_memory))

    def names(self, owner: str) -> list[str]:
        """Return the names of the settings that are read at once for a memory."""
        return [kind + owner if of_memory else kind for kind, of_memory in list(self._kinds)]


class StoreContext(NamedTuple):
    """What all views and transactions of a store use.

    Attributes:
        path: The address without secrets.
        schema: The schema of its tables.
        key: The store's key.
        trusted: As in `SqlView`.
        pages: Pages of the trie.
        history: What this process has seen of the log.
        prefetch: Which settings are read at once.
        replicated: Whether writes are refused while no standby must confirm a commit.
        limits: The values of `LIMITS`.
    """

    path: str
    schema: str
    key: bytes
    trusted: int
    pages: PageCache
    history: SeenHistory
    prefetch: Prefetch
    limits: tuple[str, str, str]
    replicated: bool


class _Since(NamedTuple):
    """What a view knows about a commit and those after it: its root, whether any erased, and the ids that changed."""

    root: bytes | None
    erased: bool
    changed: list[str]


class PostgresView(SqlView):
    """A snapshot view. The session begins a transaction with the first statement."""

    def __init__(self, session: Session, context: StoreContext) -> None:
        super().__init__(context.path, context.key, context.trusted, True)
        self._session = session
        self._context = context
        self._settings: dict[str, str | None] = {}
        self._server: str | None = None  # the run of the server that it reads from
        self._since_of: dict[tuple[Branch, int], _Since] = {}
        self._first_expiry: dict[Branch, int | None] = {}

    def _rewritten(self, sql: str) -> str:
        return rewritten(sql, self._context.schema)

    def _rows(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        rows = self._session.rows(self._rewritten(sql), parameters)
        return iter(rows if current() is None else checked(rows))

    def _row(self, sql: str, parameters: tuple[Any, ...]) -> tuple[Any, ...] | None:
        rows = self._session.rows(self._rewritten(sql), parameters)
        return rows[0] if rows else None

    def _many(self, sql: str, parameters: tuple[Any, ...], first: int | None = None) -> Iterator[tuple[Any, ...]]:
        session, lending = self._session, self._session.lending
        name = session.new_cursor()
        size = min(first or _FIRST_ROWS, _MOST_ROWS)
        declare = f"DECLARE {name} NO SCROLL CURSOR FOR {self._rewritten(sql)}"
        rows = self._session.several([(declare, parameters), (f"FETCH {size} FROM {name}", ())])[1]
        try:
            while True:
                yield from rows if current() is None else checked(rows)
                if len(rows) < size:
                    return
                if session.lending != lending:
                    raise StoreIOError(self._path, "its rows were read after the view had ended")
                size = min(4 * size, _MOST_ROWS)
                rows = self._session.rows(f"FETCH {size} FROM {name}")
        finally:
            if session.lending == lending and not session.failed:
                session.stage(f"CLOSE {name}", [()])

    def _rows_of(self, branch: int | None, ids: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        return self._sql(ROWS_OF, (list(ids), branch))

    def _resolved_rows(self, branch: int | None, ids: tuple[str, ...], now: int) -> Iterator[tuple[Any, ...]]:
        return self._rows(RESOLVED, (now, list(ids), branch, branch))

    def _first(self, owner: Branch) -> list[Statement]:
        """Return the statements that read the heads of a memory and its settings."""
        names = [SETTING + name for name in self._context.prefetch.names(owner.namespace)]
        return [
            (self._rewritten(_HEADS), (family_of(owner.namespace), owner.name)),
            (self._rewritten("SELECT name, value FROM meta WHERE name = ANY(?)"), (names,)),
        ]

    def _note_first(
        self,
        owner: Branch,
        before: Mapping[Branch, tuple[int, bytes]],
        heads: Sequence[tuple[Any, ...]],
        settings: Sequence[tuple[Any, ...]],
    ) -> None:
        """Cache what `_first` has read. `before` is the history that was seen before that."""
        for name in family_of(owner.namespace):
            self._note_head(Branch(name, owner.name), None)
        for namespace, branch, *row in heads:
            self._note_head(Branch(namespace, branch), row)
        self._context.history.note(owner, before, self._heads)
        if (freshness := FRESHNESS.get()) is not None and owner.name == MAIN:
            head = self._heads.get(owner)
            freshness.note(owner.namespace, 0 if head is None else head.seq)
        self._settings.update(dict.fromkeys(self._context.prefetch.names(owner.namespace)))
        self._settings.update({str(name).removeprefix(SETTING): str(value) for name, value in settings})

    def _look_up(self, branch: Branch) -> None:
        owner = branch.owner
        # What a view that has begun earlier does not have is not lost.
        before = self._context.history.of(owner) if self._session.begins else {}
        self._note_first(owner, before, *self._session.several(self._first(owner)))
        least, head = least_of(owner.namespace) if owner.name == MAIN else 0, self._heads.get(owner)
        if least > (0 if head is None else head.seq):
            # How many there are is not for a scope.
            raise StaleReadError(self._path, f"it lacks commits of {owner.namespace!r}")
        if branch not in self._numbers:
            self._note_head(branch, None)

    def _numbers_of(self, branch: Branch) -> Numbers | None:
        if branch not in self._numbers:
            self._look_up(branch)
        return self._numbers[branch]

    def setting(self, name: str) -> str | None:
        if name not in self._settings:
            self._settings[name] = super().setting(name)
        for branch in self._numbers:
            self._context.prefetch.note(name, branch.owner.namespace)
            break
        return self._settings[name]

    def node(self, page: int) -> bytes:
        body = self._context.pages.get(self._server_run(), page)
        if body is None:
            body = super().node(page)
            self._keep_pages({page: body})
        return body

    def nodes(self, pages: Sequence[int]) -> dict[int, bytes]:
        server = self._server_run()
        out = {page: body for page in pages if (body := self._context.pages.get(server, page)) is not None}
        missing = [page for page in pages if page not in out]
        if missing:
            found = super().nodes(missing)
            self._keep_pages(found)
            out |= found
        return out

    def _server_run(self) -> str:
        """Return the run of the server, for the cache of pages: few reads need pages, so it is asked only by them."""
        if self._server is None:
            self._server = str(self._session.rows(f"SELECT {SERVER_RUN}")[0][0])
        return self._server

    def _keep_pages(self, pages: dict[int, bytes]) -> None:
        self._context.pages.put(self._server_run(), pages)

    # Catching up

    def _since(self, branch: Branch, seq: int) -> _Since | None:
        """Return what a follower of the log asks about a commit and those after it; None to ask for each by itself."""
        head = self.head(branch)
        if not max(0, head.seq - _MOST_BEHIND) <= seq < head.seq:
            return None
        if (branch, seq) not in self._since_of:
            number = self._branch(branch)
            asked = (
                (ROOT_AT, (number, seq)),
                (HAS_ERASED, (number, seq)),
                (CHANGED, (number, seq)),
                ("SELECT min(expires) FROM heads WHERE branch = ? AND expires IS NOT NULL", (number,)),
            )
            roots, erased, changed, expiries = self._session.several(
                [(self._rewritten(sql), parameters) for sql, parameters in asked]
            )
            self._since_of[branch, seq] = _Since(
                self._root(*roots[0]).hash if roots else None,
                bool(erased),
                list(dict.fromkeys(row[0] for row in changed)),
            )
            self._first_expiry[branch] = expiries[0][0]
        return self._since_of[branch, seq]

    def root_at(self, branch: Branch, seq: int) -> bytes | None:
        if self._is_continued(branch):
            return super().root_at(branch, seq)
        head = self.head(branch)
        if seq and seq == head.seq:
            return head.root.hash
        found = self._since(branch, seq)
        return super().root_at(branch, seq) if found is None else found.root

    def has_erased(self, branch: Branch, since: int) -> bool:
        if self._is_continued(branch):
            return super().has_erased(branch, since)
        found = self._since(branch, since)
        return super().has_erased(branch, since) if found is None else found.erased

    def _is_continued(self, branch: Branch) -> bool:
        return branch.name != MAIN and self._of_base(branch) is not None

    def changed(self, branch: Branch, since: int) -> list[str]:
        if self._is_continued(branch):
            return super().changed(branch, since)
        found = self._since(branch, since)
        return super().changed(branch, since) if found is None else found.changed

    def next_expiry(self, branch: Branch, after: int) -> int | None:
        if branch in self._first_expiry:
            first = self._first_expiry[branch]
            if first is None or first > after:
                return first
        return super().next_expiry(branch, after)

    # Checking

    def counts_of_commits(self) -> tuple[int, int]:
        """Return the number of commits, and of those whose roots have no stored pages."""
        found = self._row("SELECT count(*), count(*) - count(page) FROM commits", ())
        return (0, 0) if found is None else (int(found[0]), int(found[1]))

    def counts_of_removed(self) -> dict[str, int]:
        """Return the number of versions without payload, by cause."""
        return {
            str(cause): int(number)
            for cause, number in self._rows("SELECT cause, count(*) FROM removed_payloads GROUP BY cause")
        }

    def wrong_versions(self) -> list[str]:
        """Describe the versions whose payload does not match their hash."""
        problems = []
        sql = "SELECT number, hash, payload FROM versions WHERE payload IS NOT NULL"
        for number, digest, payload in self._many(sql, ()):
            try:
                right = version_hash(Record.load(payload).id, payload, self._key) == digest
            except (ValueError, AttributeError):
                right = False
            if not right:
                problems.append(f"version {number} does not match its hash")
        return problems


class PostgresTransaction(SqlTransaction, PostgresView):
    """A `Transaction`, of one memory.

    Args:
        session: The session that begins a transaction with the first statement, or has one that earlier parts wrote in.
        context: What all use.
        owner: The name of the memory.
        former: The transaction of the part before, which has the lock already.
        lookups: Returns the ids that threads that wait are going to look up in a branch. What the tables say of them is
            read with what this part looks up itself, so that a part of a shared commit seldom waits for the server.
            None: no other part follows.
    """

    _branched_format = str(BRANCHED_FORMAT)
    _locked: bool

    def __init__(
        self,
        session: Session,
        context: StoreContext,
        owner: str,
        former: PostgresTransaction | None = None,
        lookups: Callable[[Branch], list[str]] | None = None,
    ) -> None:
        super().__init__(session, context)
        self._owner = owner
        self._lookups = lookups
        self._read_ahead: dict[tuple[int | None, str], bool] = {}  # ids without a head: whether they are known
        self._ahead: list[str] = []  # ids to read ahead with the next look-up
        self._unknown: set[tuple[int | None, str]] = set()  # ids that no commit has named
        self.written: dict[int, bytes] = {}  # pages, which are cached once they are committed
        self.before: dict[Branch, Head] = {}  # the newest commits when the lock was granted
        self._made: dict[tuple[Branch, int], bytes] = {}  # the roots of the commits since, of all parts
        self._made_erase = False  # whether one of them erases something
        self._locked = former is not None and former._locked
        if former is None or not former._locked:
            self._memory = self._first_version = self._first_page = 0
            self._erased = False
            self._next_due: int | None = None
        else:
            self._memory, self._erased, self._next_due = former._memory, former._erased, former._next_due
            self._numbers, self._heads = dict(former._numbers), dict(former._heads)
            self._server = former._server
            self.before = former.before
            self._made, self._made_erase = dict(former._made), former._made_erase
            self._settings = dict(former._settings)
            self._next_version, self._next_page = former._next_version, former._next_page
            self._first_version, self._first_page = former._first_version, former._first_page
            self._newest_before = self._next_version - 1
            self.written = dict(former.written)
            self._read_ahead = {key: known for key, known in former._read_ahead.items() if key not in former._written}

    @property
    def after(self) -> dict[Branch, Head]:
        """The newest commits that it leads to."""
        return {branch: head for branch, head in self._heads.items() if not branch.name.startswith(OWN)}

    def committed(self) -> None:
        """Keep the pages that it has written, once it is committed, and note that its commits were seen."""
        if self._locked:
            self._context.pages.put(self._server_run(), self.written)
        for name in {branch.name for branch in self.after}:
            self._context.history.note(Branch(self._owner, name), {}, self._heads)

    # Beginning

    def lock(self) -> None:
        """Lock the memory, and read what every write needs, in one round trip unless the memory is new."""
        if self._locked:
            return
        owner = Branch(self._owner)
        seen = self._context.history.of(owner)
        lock = (self._rewritten(_LOCK), (self._owner,))
        due = (
            "SELECT min(h.expires) FROM heads h JOIN branches b ON b.number = h.branch "
            "JOIN namespaces n ON n.number = b.namespace WHERE n.name = ANY(?) AND h.expires IS NOT NULL"
        )
        statements = [lock, *self._first(owner), (self._rewritten(due), (family_of(self._owner),))]
        rows, heads, settings, expiries = self._session.several(statements)
        if not rows:
            create = "INSERT INTO namespaces (name) VALUES (?) ON CONFLICT DO NOTHING"
            self._session.stage(self._rewritten(create), [(self._owner,)])
            rows, heads, settings, expiries = self._session.several(statements)
        self._memory, next_version, next_page, self._erased, standbys, *backend = rows[0]
        if self._context.replicated and not standbys:
            rule = "no standby must confirm a commit (synchronous_standby_names is empty), and the address requires it"
            raise ReadOnlyStoreError(self._path, rule)
        self._session.backend = Backend(*backend)
        self._server = self._session.backend.server_run
        base = self._memory << NUMBER_BITS
        self._next_version = self._first_version = base + next_version
        self._next_page = self._first_page = base + next_page
        self._newest_before = self._next_version - 1
        self._next_due = expiries[0][0]
        self._locked = True
        self._note_first(owner, seen, heads, settings)
        self.before = dict(self._heads)

    def check_open(self) -> None:
        """Raise StoreIOError if an error has ended the transaction."""
        if self._locked and self._session.failed:
            raise StoreIOError(self._path, "an earlier error rolled the transaction back")

    def _rows(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        self.lock()
        self.check_open()
        return iter(self._session.rows(self._rewritten(sql), parameters))

    def _row(self, sql: str, parameters: tuple[Any, ...]) -> tuple[Any, ...] | None:
        self.lock()
        self.check_open()
        return super()._row(sql, parameters)

    def _many(self, sql: str, parameters: tuple[Any, ...], first: int | None = None) -> Iterator[tuple[Any, ...]]:
        self.lock()
        self.check_open()
        self.flush()
        return PostgresView._many(self, sql, parameters, first)

    def _write(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self.lock()
        self.check_open()
        self._session.stage(self._rewritten(sql), rows)

    def _look_up(self, branch: Branch) -> None:
        self.lock()
        if branch not in self._numbers:
            row = self._branch_row(branch)
            self._note_head(branch, row)
            self.before.setdefault(branch, self._heads[branch])

    def _branch_row(self, branch: Branch) -> tuple[Any, ...] | None:
        return self._row(BRANCH.format(self._parts_column, ""), branch)

    def head(self, branch: Branch) -> Head:
        self.lock()
        return super().head(branch)

    # Reading

    def _since(self, branch: Branch, seq: int) -> None:
        return None  # what it writes itself changes the answers

    def root_at(self, branch: Branch, seq: int) -> bytes | None:
        self.lock()
        before = self.before.get(branch)
        if before is not None and seq and seq == before.seq:
            return before.root.hash
        return self._made.get((branch, seq)) or super().root_at(branch, seq)

    def has_erased(self, branch: Branch, since: int) -> bool:
        self.lock()
        before = self.before.get(branch)
        if before is not None and since >= before.seq and not self._made_erase:
            return False  # so a part that follows another one's in the same commit asks nothing
        return super().has_erased(branch, since)

    def setting(self, name: str) -> str | None:
        self.lock()
        return PostgresView.setting(self, name)

    def set_setting(self, name: str, value: str | None) -> None:
        super().set_setting(name, value)
        self._settings[name] = value

    def remove_settings(self, first: str, before: str, limit: int | None = None) -> int:
        # What another transaction is removing is left to it, so that no memory waits for the writer of another one.
        sql = (
            "DELETE FROM meta WHERE name IN (SELECT name FROM meta WHERE name >= ? AND name < ? "
            "ORDER BY name LIMIT ? FOR UPDATE SKIP LOCKED) RETURNING name"
        )
        bounds = SETTING + first, SETTING + before
        names = [str(name).removeprefix(SETTING) for (name,) in self._sql(sql, (*bounds, limit))]
        for name in names:
            self._settings.pop(name, None)
        return len(names)

    def resolve(self, branch: Branch, record_ids: Sequence[str], now: int) -> dict[str, Resolved]:
        number = self._branch(branch)
        keys = [(number, each) for each in record_ids]
        if all(key in self._read_ahead and key not in self._written for key in keys):
            self._absent.update(keys)
            out = {key[1]: Resolved(self._read_ahead[key], None, False) for key in keys}
        else:
            waiting = () if self._lookups is None else self._lookups(branch)
            self._ahead = [each for each in waiting if (number, each) not in self._read_ahead][:_MOST_AHEAD]
            out = super().resolve(branch, record_ids, now)
        self._unknown.update((number, each) for each, found in out.items() if not found.known)
        return out

    def _resolved_rows(self, branch: int | None, ids: tuple[str, ...], now: int) -> Iterator[tuple[Any, ...]]:
        if not self._ahead:
            return super()._resolved_rows(branch, ids, now)
        self.lock()
        self.check_open()
        ahead, self._ahead = self._ahead, []
        asked = (RESOLVED, (now, list(ids), branch, branch)), (_AHEAD, (ahead, branch, branch))
        rows, absent = self._session.several([(self._rewritten(sql), parameters) for sql, parameters in asked])
        self._read_ahead.update(((branch, record_id), bool(known)) for record_id, known in absent)
        return iter(rows)

    def due(self, branch: Branch, now: int, limit: int) -> list[str]:
        self.lock()
        if (self._next_due is None or self._next_due > now) and not self._puts_expiring:
            return []
        return super().due(branch, now, limit)

    def node(self, page: int) -> bytes:
        return self.written[page] if page in self.written else super().node(page)

    def nodes(self, pages: Sequence[int]) -> dict[int, bytes]:
        own = {page: self.written[page] for page in pages if page in self.written}
        return own | super().nodes([page for page in pages if page not in own])

    def _keep_pages(self, pages: dict[int, bytes]) -> None:
        # Those that it has written itself are not committed, and another transaction may use their numbers.
        self._context.pages.put(
            self._server_run(), {page: body for page, body in pages.items() if page < self._first_page}
        )

    # Writing

    @property
    def _puts_expiring(self) -> bool:
        return self._next_due == _SOON

    def put(self, branch: Branch, record: Record, stored: Any) -> int:
        if record.expires is not None:
            self._next_due = _SOON  # it stays so after a flush
        return super().put(branch, record, stored)

    def _version_number(self, version: tuple[int, bytes], key: tuple[int | None, str]) -> int:
        if key in self._unknown and not self._erased and version not in self._versions and not self._written.get(key):
            self._next_version += 1
            return self._next_version - 1
        return super()._version_number(version, key)

    def add_node(self, body: bytes) -> int:
        self.lock()
        page = super().add_node(body)
        self.written[page] = body
        return page

    def erase(self, branch: Branch, record_id: str, versions: Sequence[bytes], *, redact: bool) -> None:
        super().erase(branch, record_id, versions, redact=redact)
        self._read_ahead.clear()  # what commits name has changed
        self._note_erased()

    def thin(self, branch: Branch, record_id: str, versions: Sequence[bytes]) -> None:
        super().thin(branch, record_id, versions)
        self._read_ahead.clear()
        self._note_erased()

    def take_heads(self, branch: Branch) -> dict[str, bytes]:
        self._next_due = _SOON  # some that the base has removed may be due
        return super().take_heads(branch)

    def continue_from(self, branch: Branch, base: Branch, seq: int) -> None:
        super().continue_from(branch, base, seq)
        self._note_erased()  # from now on a version may be there of an id that no commit of a branch names

    def put_removed(self, branch: Branch, version: bytes, removed: RemovedPayload) -> int:
        out = super().put_removed(branch, version, removed)
        self._read_ahead.clear()
        self._note_erased()
        return out

    def append(self, commit: Commit, replaced: Sequence[int] = ()) -> None:
        super().append(commit, replaced)
        branch = Branch(commit.namespace, commit.branch)
        number = self._branch(branch)
        self._made[branch, commit.seq] = commit.root.hash
        self._made_erase = self._made_erase or any(change.cause == "erased" for change in commit.changes)
        for change in commit.changes if self._read_ahead else ():
            self._read_ahead.pop((number, change.id), None)

    def _note_erased(self) -> None:
        """Note that a version may be there of an id that no commit names."""
        if not self._erased:
            self._erased = True
            self._write("UPDATE namespaces SET erased = TRUE WHERE number = ?", [(self._memory,)])

    def finish(self) -> None:
        super().finish()
        if not self._locked:
            return
        base = self._memory << NUMBER_BITS
        if max(counter - base for counter in (self._next_version, self._next_page)) >= 1 << NUMBER_BITS:
            raise DamagedStoreError(self._path, f"{self._owner!r} has used all numbers of pages or versions")

    def note_numbers(self) -> None:
        """Stage which numbers are free from now on: once for all parts of a commit, before it is committed."""
        if self._locked and (self._next_version, self._next_page) != (self._first_version, self._first_page):
            base = self._memory << NUMBER_BITS
            counters = (self._next_version - base, self._next_page - base, self._memory)
            self._write("UPDATE namespaces SET next_version = ?, next_page = ? WHERE number = ?", [counters])


#: In place of the first expiry: the transaction has put a record that expires, so the tables decide.
_SOON = -(2**63)
