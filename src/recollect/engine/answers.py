"""The first answers to writes that carry an idempotency key, so that a repeated write gives its first answer.

An answer is stored in the transaction of its write, outside the ledger: both are durable, or neither is. It is kept
for at least a day and at most two. Its name contains the day, the namespace, and a digest of the branch, the scope and
the key, so a key that another scope uses is another one. An erasure removes the contents of the answers of its
namespace; that they were given stays known, so that nothing is written twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from recollect.engine.scope import Scope
from recollect.errors import DamagedStoreError, IdempotencyError
from recollect.ledger.commits import Branch
from recollect.operations import Operation
from recollect.stores.base import Transaction

_DAY = 86_400_000_000
#: The prefix of the names of answers among the settings of a store, and the first text after all names with it.
_PREFIX, _END = "answer/", "answer0"
#: Maximum number of old answers that one write removes.
_REMOVED_AT_ONCE = 500


class Answers:
    """The answers to the writes of a branch and a scope, within a transaction.

    Args:
        transaction: The transaction of the write.
        branch: The branch.
        scope: The scope of the caller.
        micros: The time of the write, in microseconds since 1970.
    """

    def __init__(self, transaction: Transaction, branch: Branch, scope: Scope, micros: int) -> None:
        self._transaction = transaction
        self._branch = branch
        self._scope = scope
        self._day = micros // _DAY

    def find(self, key: str, operation: Operation, read: Callable[[Any], Any]) -> tuple[bool, Any]:
        """Return whether a write with this key has an answer, and the answer.

        Args:
            key: The idempotency key.
            operation: The write.
            read: Builds an answer from its JSON form.

        Raises:
            IdempotencyError: The key belongs to another write, or its answer was erased.
            DamagedStoreError: What is stored is no answer.
        """
        for day in (self._day, self._day - 1):
            text = self._transaction.setting(self._name(day, key))
            if text is None:
                continue
            try:
                stored = json.loads(text)
                digest, erased = stored["operation"], "answer" not in stored
            except (ValueError, TypeError, KeyError) as error:
                raise DamagedStoreError("the store", f"the answer to a write cannot be read: {error}") from None
            if digest != _digest(operation):
                raise IdempotencyError(key, "belongs to another write of this day")
            if erased:
                raise IdempotencyError(key, "belongs to a write that was executed, and its answer was erased since")
            return True, read(stored["answer"])
        return False, None

    def note(self, key: str, operation: Operation, answer: Any) -> None:
        """Store the answer to a write in its JSON form."""
        stored = {"operation": _digest(operation), "answer": answer}
        self._transaction.set_setting(self._name(self._day, key), json.dumps(stored, separators=(",", ":")))

    def remove_old(self) -> bool:
        """Remove some answers that are older than a day, and return whether there may be more."""
        end = f"{_PREFIX}{max(self._day - 1, 0):06d}/"
        names = self._transaction.setting_names(_PREFIX, end, _REMOVED_AT_ONCE)
        for name in names:
            self._transaction.set_setting(name, None)
        return len(names) == _REMOVED_AT_ONCE

    def day(self) -> int:
        """The day, counted from 1970."""
        return self._day

    def _name(self, day: int, key: str) -> str:
        parts = [*self._branch, [list(each) for each in self._scope.fixed], key]
        return f"{_PREFIX}{max(day, 0):06d}/{_of_namespace(self._branch)}/{_sha256(parts)}"


def erase_answers(transaction: Transaction, branch: Branch) -> None:
    """Remove the contents of all answers of a namespace, and of those that belong to it."""
    own = f"/{_of_namespace(branch)}/"
    for name in transaction.setting_names(_PREFIX, _END):
        if own in name:
            stored = json.loads(transaction.setting(name) or "{}")
            transaction.set_setting(name, json.dumps({"operation": stored.get("operation")}))


def _of_namespace(branch: Branch) -> str:
    return _sha256([branch.owner.namespace])[:16]


def _digest(operation: Operation) -> str:
    return _sha256(operation.to_json())


def _sha256(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
