"""`RecollectStore`: a LangGraph `BaseStore` whose items are records of a memory.

The reads of a batch see the state before it, and its writes are one commit. Where an item can expire, it is never
returned afterwards, swept or not.
"""

from __future__ import annotations

import concurrent.futures
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Self, TypeAlias

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    validate_op_namespace,
)

import recollect
from recollect import Record
from recollect import filters as f
from recollect.compat.conditions import bound, check, fits
from recollect.compat.langchain_embedder import ConfiguredEmbedder
from recollect.compat.langgraph.sweeping import Sweeper, swept
from recollect.compat.langgraph_items import (
    CREATED,
    KIND,
    TTL,
    StoredItem,
    id_of,
    is_path,
    item_of,
    namespace_in,
    namespace_in_metadata,
    put_at,
    stored_form,
    tag_of,
)
from recollect.compat.objects import value_of
from recollect.compat.opening import Closing, Opened, Place, opened
from recollect.compat.searching import Condition, Searcher
from recollect.compat.storing import store_all
from recollect.compat.threads import completed
from recollect.errors import AccessError, ReadOnlyStoreError, StoreBusyError
from recollect.operations import GetPolicies, Now, Remember

#: The namespace and the key of an item.
_Place: TypeAlias = tuple[tuple[str, ...], str]
_log = logging.getLogger("recollect.compat.langgraph")
#: The actor of the commits.
ACTOR = "langgraph"
_OWNERS = ("user", "agent", "conversation")
#: A time to live is renewed when more than this share of it has passed.
_RENEWED = 0.1
_MINUTE_S = 60.0
_SWEEP_MINUTES = 5.0


class RecollectStore(Closing, BaseStore):
    """A store of items for LangGraph.

    Args:
        memory: A memory, also of `recollect.connect`, which stays open; or a path or address, which is opened here and
            closed by `close`.
        index: The configuration of the index. Every store can search without one. "fields" (or "text_fields") are the
            paths of the texts to index; default: all of the value. "embed" and "dims" are an embedding model, which
            recall then uses besides the words; only for a path.
        ttl: The configuration of times to live: "default_ttl", "refresh_on_read" and "sweep_interval_minutes".
            Expired items are never returned ("omit_expired" is always on).

    Raises:
        ValueError: "embed" is configured and the memory is open already.
        RecollectError: The memory cannot be opened.
    """

    supports_ttl = True

    def __init__(self, memory: Place, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None) -> None:
        self.ttl_config = ttl
        self.index_config = None if index is None else dict(index)
        self.embeddings: Any = None
        options: dict[str, Any] = {}
        if index is not None and index.get("embed") is not None:
            if isinstance(memory, recollect.Memory):
                raise ValueError(
                    "index['embed'] needs a path: open the memory with recollect.open(embedder=...) instead"
                )
            self.embeddings = ensure_embeddings(index["embed"])
            options["embedder"] = ConfiguredEmbedder(index["embed"], self.embeddings, index.get("dims"))
        fields = (index or {}).get("fields") or (index or {}).get("text_fields")
        self._paths: list[str] = list(fields) if fields else ["$"]
        self._opened: Opened = opened(memory, **options)
        # Without a scope, it neither gets nor replaces the items of scopes: so its searches do not find them either.
        others = (name for name in _OWNERS if name not in self._opened.memory.scope)
        self._own = f.all_of(f.kind(KIND), *(~f.has(name) for name in others))
        self._searcher = Searcher(self._opened.memory, waits=self.embeddings is not None)
        self._sweeper = Sweeper(self._opened.memory)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> Iterator[Self]:
        """Open a store at a path or address for a `with` block. The arguments and errors are those of the class."""
        with cls(conn_string, index=index, ttl=ttl) as store:
            yield store

    @property
    def memory(self) -> recollect.Memory:
        """The memory with the items: its history, `context`, `erase` and all other calls."""
        return self._opened.memory

    def setup(self) -> None:
        """Load the index of the memory, or build it where there is none, so that no search has to.

        The first search with a query does the same. Without the index, other searches read the items.

        Raises:
            StoreError: The store failed.

        Cost:
            That of the first `recall`: to read a file, or in proportion to the texts of the memory.
        """
        self.memory.values("kind", limit=1)

    def close(self) -> None:
        """Stop the sweeper, and close the memory if this store opened it and no other one uses it."""
        self._sweeper.stop()
        self._opened.close()

    # The two calls on which all others are built

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations: the reads on the state before the batch, then all writes in one commit.

        Of several puts of one key the last is stored.

        Raises:
            InvalidNamespaceError: A label of a namespace is invalid; nothing was written.
            ValueError: A filter, a limit or a time to live is invalid; nothing was written.
            TypeError: A value is not JSON, or a key is no text; nothing was written.
            RecollectError: The store failed; nothing was written.

        Cost:
            A get is a look-up. A put is a part of one durable commit. A search without a query reads the items that it
            returns and those it skips; with a filter, those for which the index cannot decide it, too.
        """
        operations = list(ops)
        puts: dict[_Place, PutOp] = {}
        for op in operations:
            self._check(op)
            if isinstance(op, PutOp):
                puts[tuple(op.namespace), op.key] = op
        # As JSON now: what is none is refused before any write, and what the caller changes afterwards is not stored.
        values = {key: None if op.value is None else json.dumps(dict(op.value)) for key, op in puts.items()}
        results = self._read(operations)
        if puts:
            self._write(puts, values)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations as `batch` does, in a thread. If this is cancelled, a batch that began is completed."""
        return await completed(self.batch, list(ops))

    # Expiry

    def sweep_ttl(self) -> int:
        """Remove expired records of the memory and return how many. They are not returned anyhow.

        Raises:
            ScopeError: The memory is a scope, which cannot be swept by itself.
            StoreError: The store failed.

        Cost:
            A durable commit for each 1,000 records.
        """
        return swept(self.memory)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> concurrent.futures.Future[None]:
        """Call `sweep_ttl` now and then periodically in a thread, until `stop_ttl_sweeper` or `close`.

        Args:
            sweep_interval_minutes: The interval; default: that of the configuration, or else 5.

        Returns:
            A future that is done when the sweeper has stopped; at once if no times to live are configured. Cancelling
            it stops the sweeper.

        Raises:
            ScopeError: The memory is a scope, which cannot be swept by itself.
        """
        if not self.ttl_config:
            future: concurrent.futures.Future[None] = concurrent.futures.Future()
            future.set_result(None)
            return future
        minutes = sweep_interval_minutes or self.ttl_config.get("sweep_interval_minutes") or _SWEEP_MINUTES
        return self._sweeper.start(float(minutes) * _MINUTE_S)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; return whether it has stopped within `timeout` seconds (None: wait for it)."""
        return self._sweeper.stop(timeout)

    # Reading

    def _read(self, operations: Sequence[Op]) -> list[Result]:
        ids = [id_of(op.namespace, op.key) for op in operations if isinstance(op, GetOp)]
        got = iter(self.memory.get_all(ids) if len(ids) > 1 else [self.memory.get(each) for each in ids])
        results: list[Result] = []
        read: list[Record] = []
        for op in operations:
            if isinstance(op, GetOp):
                record = next(got)
                results.append(None if record is None else item_of(record, Item))
                if record is not None and op.refresh_ttl:
                    read.append(record)
            elif isinstance(op, SearchOp):
                found = self._search(op)
                results.append([item_of(record, SearchItem, score=score) for record, score in found])
                if op.refresh_ttl:
                    read += [record for record, _ in found]
            elif isinstance(op, ListNamespacesOp):
                results.append(self._namespaces(op))
            else:
                results.append(None)
        self._renew(read)
        return results

    def _search(self, op: SearchOp) -> list[tuple[Record, float | None]]:
        where, conditions = self._own, op.filter or {}
        if op.namespace_prefix:
            where &= f.tag(tag_of(op.namespace_prefix))
        if conditions:
            where &= bound(conditions)
        if not op.limit:
            return []
        wanted, count = Condition(where, partial(_fits, conditions) if conditions else None), op.offset + op.limit
        if not op.query or not op.query.strip():
            return [(record, None) for record in self._searcher.newest(wanted, count)[op.offset :]]
        found = self._searcher.filled(op.query, wanted, count)[op.offset :]
        return [(record, hit.score if hit else 0.0 if record.searchable else None) for record, hit in found]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """Return the namespaces that have an item, sorted."""
        conditions = op.match_conditions or ()
        first = next((_literal(each.path) for each in conditions if each.match_type == "prefix"), ())
        where = self._own if not first else self._own & f.tag(tag_of(first))
        every = set()
        for each in self.memory.values("source", where=where):
            source = str(each.value)
            if is_path(source):
                every.add(namespace_in(source))
                continue
            for record in self.memory.find(where & f.source(source), limit=1):
                every.add(namespace_in_metadata(record))
        matching = {
            namespace if op.max_depth is None else namespace[: op.max_depth]
            for namespace in every
            if all(_matches(condition, namespace) for condition in conditions)
        }
        return sorted(matching)[op.offset : op.offset + op.limit]

    def _renew(self, records: Sequence[Record]) -> None:
        """Let items that were read live on, if more than a tenth of their time has passed.

        Where nothing can be written, they expire as if they had not been read: a read does not fail for it.
        """
        expiring = [record for record in records if TTL in record.metadata]
        if not expiring or not _due(expiring, self.memory.execute(Now())):
            return
        try:
            with self.memory.batch(actor=ACTOR, reason="refresh_ttl") as batch:
                # Read again: what was put meanwhile has a time to live of its own, or none.
                current = [record for record in batch.get_all([each.id for each in expiring]) if record is not None]
                for seconds, ids in _due(current, batch.execute(Now())).items():
                    batch.touch(ids, ttl=seconds)
        except (AccessError, ReadOnlyStoreError, StoreBusyError) as error:
            _log.warning("times to live were not renewed: %s", error)

    # Writing

    def _check(self, op: Op) -> None:
        """Raise an error for an operation that cannot be executed, before any is."""
        validate_op_namespace(op)
        if isinstance(getattr(op, "namespace", getattr(op, "namespace_prefix", ())), str):
            raise TypeError("a namespace is a tuple of labels, not a text")
        if isinstance(op, (GetOp, PutOp)):
            if not isinstance(op.key, str):
                raise TypeError(f"a key is a text, not {type(op.key).__name__}")
            if isinstance(op, PutOp) and op.value is not None and not isinstance(op.value, Mapping):
                raise TypeError(f"a value is a dictionary, not {type(op.value).__name__}")
        elif isinstance(op, (SearchOp, ListNamespacesOp)):
            if op.limit < 0 or op.offset < 0:
                raise ValueError(f"limit and offset must be 0 or more, got {op.limit} and {op.offset}")
            if isinstance(op, SearchOp):
                check(op.filter or {})
            elif op.max_depth is not None and op.max_depth < 0:
                raise ValueError(f"max_depth must be 0 or more, got {op.max_depth}")
        else:
            raise TypeError(f"unknown operation {type(op).__name__}")
        if isinstance(op, PutOp) and op.ttl is not None:
            if not isinstance(op.ttl, (int, float)):
                raise TypeError(f"ttl is a number of minutes, not {type(op.ttl).__name__}")
            if not op.ttl > 0:
                raise ValueError(f"ttl must be more than 0 minutes, got {op.ttl}")

    def _stored(self, op: PutOp, value: str, policies: Any) -> StoredItem:
        paths = self._paths if op.index is None else None if op.index is False else op.index
        return stored_form(tuple(op.namespace), op.key, json.loads(value), paths, op.ttl, policies)

    def _write(self, puts: Mapping[_Place, PutOp], values: Mapping[_Place, str | None]) -> None:
        gone = [id_of(*key) for key, value in values.items() if value is None]
        with self.memory.batch(actor=ACTOR, reason="put" if len(gone) < len(puts) else "delete") as batch:
            if gone:
                batch.forget_all(gone)
            if len(gone) == len(puts):
                return
            now, policies = batch.execute(Now()), batch.execute(GetPolicies())
            kept = [self._stored(puts[key], value, policies) for key, value in values.items() if value is not None]
            pairs = list(zip(kept, batch.get_all([stored.id for stored in kept]), strict=True))
            for stored, old in pairs:
                if old is not None and old.expires is not None and stored.minutes is None:
                    batch.update(old.id, expires=None)
            store_all(batch, [_remembered(*pair, now) for pair in pairs])


def _due(records: Iterable[Record], now: datetime) -> dict[float, list[str]]:
    """Return the ids of the records to renew, by the seconds that they live."""
    due: dict[float, list[str]] = {}
    for record in records:
        if TTL in record.metadata and record.expires is not None:
            seconds = record.metadata[TTL] * _MINUTE_S
            if (record.expires - now).total_seconds() < seconds * (1 - _RENEWED):
                due.setdefault(seconds, []).append(record.id)
    return due


def _remembered(stored: StoredItem, before: Record | None, now: datetime) -> Remember:
    """Return the operation that stores an item in the place of what is under its id."""
    created, updated = put_at(now, before)
    fields = dict(stored.fields)
    fields["metadata"] = {**fields["metadata"], CREATED: created.isoformat()}
    fields["time"] = updated
    content = fields.pop("content")
    return Remember(
        content=content,
        id=stored.id,
        fields=fields,
        if_exists="update",
        standing=False,
        ttl=None if stored.minutes is None else stored.minutes * _MINUTE_S,
    )


def _fits(conditions: Mapping[str, Any], record: Record) -> bool:
    return fits(value_of(record), conditions)


def _literal(path: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of a pattern before its first wildcard."""
    return tuple(path[: list(path).index("*")]) if "*" in path else tuple(path)


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Return whether a namespace begins or ends with a path, in which "*" is any one label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
