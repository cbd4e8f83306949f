"""Stores that fail on purpose, at a chosen step of a transaction.

Steps are counted over all transactions, before they are executed: each `put`, `drop`, `add_node` and `append`, and the
commit at the end. A commit that was applied in part shows as a difference after the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from recollect.errors import StoreError, StoreFullError
from recollect.ledger.commits import Branch
from recollect.stores.base import Store, Transaction, View
from recollect.stores.derived.files import DerivedFiles
from recollect.stores.values import Backup, CheckReport

STEPS = ("put", "drop", "put_removed", "add_node", "append", "erase", "thin", "redact", "put_snapshot", "set_setting")


class SteppedStore:
    """A store that calls `on_step(number, name)` before each step of a transaction, and passes on what that raises."""

    def __init__(self, inner: Store, on_step: Callable[[int, str], object]) -> None:
        self.inner = inner
        self.path = inner.path
        self.key = inner.key
        self.id_key = inner.id_key
        self.zone = inner.zone
        self.capabilities = inner.capabilities
        self.steps = 0
        self._on_step = on_step

    def step(self, name: str) -> None:
        self.steps += 1
        self._on_step(self.steps, name)

    def read(self) -> AbstractContextManager[View]:
        return self.inner.read()

    @contextmanager
    def write(self, branch: Branch, *, shared: bool = False, ids: Sequence[str] = ()) -> Iterator[Transaction]:
        with self.inner.write(branch, shared=shared, ids=ids) as transaction:
            stepped: Any = _Stepped(transaction, self)
            yield stepped
            self.step("commit")

    def version(self) -> int:
        return self.inner.version()

    def derived(self) -> DerivedFiles:
        return self.inner.derived()

    def owned_by_caller(self) -> bool:
        return self.inner.owned_by_caller()

    def renew(self, error: StoreError) -> bool:
        return self.inner.renew(error)

    def back_up(self, path: str, *, verify: bool, force: bool) -> Backup:
        return self.inner.back_up(path, verify=verify, force=force)

    def facts(self) -> dict[str, Any]:
        return self.inner.facts()

    def check(self) -> CheckReport:
        return self.inner.check()

    def copies_with(self, branch: Branch, versions: Sequence[bytes]) -> tuple[str, ...]:
        return self.inner.copies_with(branch, versions)

    def truncate(self) -> bool:
        self.step("truncate")
        return self.inner.truncate()

    def compact(self) -> bool:
        self.step("compact")
        return self.inner.compact()

    def probe(self) -> None:
        self.inner.probe()

    def close(self) -> None:
        self.inner.close()


class _Stepped:
    """A transaction that reports each call of a writing method."""

    def __init__(self, inner: Transaction, store: SteppedStore) -> None:
        self._inner = inner
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in STEPS:
            return method

        def stepped(*args: Any, **options: Any) -> Any:
            self._store.step(name)
            return method(*args, **options)

        return stepped


class FaultyStore(SteppedStore):
    """A store that raises once, at step `fail_at` (from 1); by default StoreFullError."""

    def __init__(self, inner: Store, *, fail_at: int, error: Callable[[], BaseException] | None = None) -> None:
        self.failed_in: str | None = None

        def on_step(number: int, name: str) -> None:
            if number == fail_at:
                self.failed_in = name
                raise error() if error else StoreFullError(inner.path, "injected")

        super().__init__(inner, on_step)
