"""The first answers to writes that carry an idempotency key, so that a repeated write gives its first answer.

An answer is stored in the transaction of its write, outside the ledger: both are durable, or neither is. It is kept
for at least a day and at most two. Its name contains the day and a digest of the branch, the scope and the key, so a
key that another scope uses is another one. It has a digest of the write, too, by which another write with the same key
is noticed. Nothing of a text that a policy redacts or rejects is in either: what the policy finds is left out before,
so two writes that differ only there are taken for one. Digests are keyed with the store's key. An erasure removes
contents and digests of the answers of its namespace; that they were given stays known, so that nothing is written
twice.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from typing import Any

from recollect.engine.scope import Scope
from recollect.engine.settings import NONE, Policies
from recollect.errors import DamagedStoreError, IdempotencyError, RejectedError
from recollect.ledger.commits import Branch
from recollect.operations import Operation
from recollect.policies import judge, redact_json
from recollect.stores.base import Transaction

_DAY = 86_400_000_000
#: The prefix of the names of answers among the settings of a store, and the first text after all names with it.
_PREFIX, _END = "given/", "given0"
#: The same for answers of earlier releases, which had digests without a key.
_FORMER, _FORMER_END = "answer/", "answer0"
#: Maximum number of old answers that one write removes.
_REMOVED_AT_ONCE = 500
#: What stands for a text that a policy rejects.
_REJECTED = "\0rejected"
#: The fields of operations whose texts are judged by their salience.
_JUDGED = ("content", "text")


class Answers:
    """The answers to the writes of a branch and a scope, within a transaction.

    Args:
        transaction: The transaction of the write.
        scope: The scope of the caller.
        micros: The time of the write, in microseconds since 1970.
        key: The store's key.
    """

    def __init__(self, transaction: Transaction, branch: Branch, scope: Scope, micros: int, key: bytes) -> None:
        self._transaction = transaction
        self._branch = branch
        self._scope = scope
        self._day = micros // _DAY
        self._key = key

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
                if not stored:
                    raise IdempotencyError(key, "belongs to a write that was executed, and its answer was erased since")
                digest, answer = stored["operation"], stored["answer"]
                policies = Policies.from_json(stored.get("policies", {}))
            except (ValueError, TypeError, KeyError) as error:
                if isinstance(error, IdempotencyError):
                    raise
                raise DamagedStoreError("the store", f"the answer to a write cannot be read: {error}") from None
            if digest != self._digest(after_policies(operation.to_json(), policies)):
                raise IdempotencyError(key, "belongs to another write of this day")
            return True, read(answer)
        return False, None

    def note(self, key: str, operation: Operation, answer: Any, policies: Policies) -> None:
        """Store the answer to a write.

        Args:
            key: The idempotency key.
            operation: The write.
            answer: The answer in its JSON form. Items that were not stored are kept as the policies leave them.
            policies: The policies that it was executed under.
        """
        stored: dict[str, Any] = {"operation": self._digest(after_policies(operation.to_json(), policies))}
        if policies != NONE:
            stored["policies"] = policies.to_json()
            answer = _without_rejected(answer, policies)
        stored["answer"] = answer
        self._transaction.set_setting(self._name(self._day, key), json.dumps(stored, separators=(",", ":")))

    def remove_old(self) -> bool:
        """Remove some answers that are older than a day, and return whether there may be more."""
        end = f"{_PREFIX}{max(self._day - 1, 0):06d}/"
        removed = self._transaction.remove_settings(_PREFIX, end, _REMOVED_AT_ONCE)
        removed += self._transaction.remove_settings(_FORMER, _FORMER_END, _REMOVED_AT_ONCE)
        return removed >= _REMOVED_AT_ONCE

    def day(self) -> int:
        """The day, counted from 1970."""
        return self._day

    def _name(self, day: int, key: str) -> str:
        parts = [*self._branch, [list(each) for each in self._scope.fixed], key]
        return f"{_PREFIX}{max(day, 0):06d}/{_of_namespace(self._branch, self._key)}/{self._digest(parts)}"

    def _digest(self, data: Any) -> str:
        return _keyed(data, self._key)


def erase_answers(transaction: Transaction, branch: Branch, key: bytes) -> None:
    """Remove the contents of all answers of a namespace, and of those that belong to it, and all of earlier releases.

    Args:
        branch: A branch of the namespace.
        key: The store's key.
    """
    own = f"/{_of_namespace(branch, key)}/"
    for name in transaction.setting_names(_PREFIX, _END):
        if own in name:
            transaction.set_setting(name, "{}")
    transaction.remove_settings(_FORMER, _FORMER_END)


def after_policies(data: Any, policies: Policies) -> Any:
    """Return the JSON form of an operation, or a part of it, without what policies redact or reject.

    >>> after_policies({"content": "the password is hunter2"}, Policies(redaction="redact"))
    {'content': 'the password is ***REDACTED***'}
    >>> after_policies({"content": "the password is hunter2"}, Policies(redaction="refuse"))
    {'content': '\\x00rejected'}
    """
    if policies.redaction == "keep" and policies.salience == "off":
        return data

    def of(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {each: of(part, each) for each, part in value.items()}
        if isinstance(value, list):
            return [of(part, name) for part in value]
        if not isinstance(value, str):
            return value
        if policies.salience != "off" and name in _JUDGED and not judge(value, policies.salience).accepted:
            return _REJECTED
        if policies.redaction == "keep":
            return value
        redacted, found = redact_json({name: value}, policies.categories)
        return _REJECTED if found and policies.redaction == "refuse" else redacted[name]

    return of(data)


def _without_rejected(answer: Any, policies: Policies) -> Any:
    """Return an answer without the items that a policy rejected, and without what it redacts in others that failed."""
    if isinstance(answer, list):  # that of a batch
        return [_without_rejected(each, policies) for each in answer]
    if not isinstance(answer, dict) or not isinstance(answer.get("failed"), list):
        return answer
    rejected = {"text": "an item that a policy rejected"}
    failed = [
        {**each, "item": rejected} if each.get("error") == RejectedError.code else after_policies(each, policies)
        for each in answer["failed"]
    ]
    return {**answer, "failed": failed}


def _of_namespace(branch: Branch, key: bytes) -> str:
    return _keyed([branch.owner.namespace], key)[:16]


def _keyed(data: Any, key: bytes) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hmac.digest(key, b"recollect.given.1\0" + text.encode(), "sha256").hex()
