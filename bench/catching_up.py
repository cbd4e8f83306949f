"""The cost of a commit of another process: the time until a reader's index has caught up, and what each follower reads.

One memory writes and another reads: a new record, a changed one, a turn of a conversation, a forgotten record. Only the
catching up is timed, not the recall. Then each follower of the log (`engine.follower`) catches up with commits of one
new record each; the rows that its queries return are counted.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import recollect
from bench import stores
from bench.corpus import cache_folder, corpus, questions
from bench.measuring import milliseconds, percentiles, versions
from recollect.engine.scope import Scope
from recollect.engine.settings import quota_of
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import Live
from recollect.models.embedding.hashed import Hashed
from recollect.stores.base import Transaction
from recollect.stores.sqlite.view import SqliteView
from recollect.testing.loopback import core_of

ROUNDS = 100
#: Number of commits that each follower catches up with.
FOLLOWED = 20


class _UndoneError(Exception):
    """Rolls a transaction back."""


def catching_up(records: int) -> dict[str, Any]:
    """Latencies of catching up with each kind of commit, beside those of a reader with nothing to catch up with."""
    source = corpus()
    kept = stores.plain(source, records)
    asked = questions(source.texts(records), 1)[0]
    times: dict[str, list[float]] = {"nothing": [], "remember": [], "update": [], "turn": [], "forget": []}
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        shutil.copytree(kept.parent, folder, dirs_exist_ok=True)
        path = Path(folder) / kept.name
        with recollect.open(path, durability="normal") as writer, recollect.open(path) as reader:
            reader.recall(asked)

            def catch_up() -> None:
                """Bring the index up to date, as recall does before it queries it."""
                with core_of(reader).store.read() as view:
                    core_of(reader).keeper.view(view, reader._branch)

            def caught_up(kind: str) -> None:
                times[kind].append(milliseconds(catch_up))

            for at in range(ROUNDS):
                caught_up("nothing")
                record = writer.remember(f"The harbour master wrote entry {at} into the book of the port")
                caught_up("remember")
                writer.update(record.id, content=f"The harbour master changed entry {at} of the book")
                caught_up("update")
                writer.remember(f"I said this as number {at}", kind="conversation", conversation=f"c{at % 5}")
                caught_up("turn")
                writer.forget(record.id)
                caught_up("forget")
        followers = _followers(path)
    return {
        "command": "catch-up",
        "records": records,
        **{kind: {**percentiles(taken), "max_ms": max(taken)} for kind, taken in times.items()},
        "followers": followers,
        **source.to_json(),
        "versions": versions(),
    }


def _followers(path: Path) -> dict[str, dict[str, float]]:
    """Return the median time and the rows read of each follower, when another process has committed one record."""
    branch, everywhere, rows = Branch("default"), Scope(), [0]
    real_rows, real_row = SqliteView._rows, SqliteView._row

    def counted_rows(view: SqliteView, *arguments: Any) -> Iterator[tuple[Any, ...]]:
        for row in real_rows(view, *arguments):
            rows[0] += 1
            yield row

    def counted_row(view: SqliteView, *arguments: Any) -> tuple[Any, ...] | None:
        row = real_row(view, *arguments)
        rows[0] += row is not None
        return row

    with (
        recollect.open(path, durability="normal") as writer,
        recollect.open(path, embedder=Hashed()) as reader,
        patch.multiple(SqliteView, _rows=counted_rows, _row=counted_row),
    ):
        writer.set_quota(records=2**40, when_full="least recent")
        writer.remember_all([{"content": f"turn {at}", "conversation": "c", "kind": "conversation"} for at in range(9)])
        core = core_of(reader)
        assert core.vectors is not None
        vectors = core.vectors
        model = vectors.model()
        with core.store.read() as view:
            now = view.head(branch).micros
            quota = quota_of(view, branch)
        assert quota is not None
        vectors.store.put(model, branch.namespace, {bytes(32): np.ones(model.dimension, dtype=np.float32)})

        def embedded() -> None:
            """Note that every text has a vector, as `embed_all` does."""
            with core.store.read() as view:
                head = view.head(branch)
            vectors.store.reach(model, branch, head.seq, head.root.hash)

        embedded()

        def words() -> None:
            with core.store.read() as view:
                core.keeper.view(view, branch)

        def in_transaction(work: Callable[[Transaction], object]) -> Callable[[], None]:
            def run() -> None:
                with suppress(_UndoneError), core.store.write(branch) as transaction:
                    work(transaction)
                    raise _UndoneError

            return run

        def trie(transaction: Transaction) -> None:
            taken = core._tries.take(transaction, branch, branch)
            taken.update({"id": Live(b"x" * 32, 1)}, transaction)

        calls: dict[str, Callable[[], object]] = {
            "words": words,
            "full text": lambda: reader.grep("nothinghasthisword"),
            "vectors": lambda: vectors._candidates(core.store, branch, everywhere, model),
            "usage totals": in_transaction(
                lambda transaction: core._usage_totals.current(transaction, branch, quota, clean=True)
            ),
            "tries": in_transaction(trie),
            "turns": in_transaction(lambda transaction: core._turns.live(transaction, branch, everywhere, "c", now)),
        }
        out: dict[str, dict[str, float]] = {}
        for name, call in calls.items():
            first = milliseconds(call)
            embedded()
            times, read = [], []
            for at in range(FOLLOWED):
                writer.remember(f"The harbour master wrote entry {at} of {name} into the book of the port")
                rows[0] = 0
                times.append(milliseconds(call))
                read.append(rows[0])
                embedded()
            out[name] = {"first_ms": first, "p50_ms": statistics.median(times), "rows": max(read)}
        return out
