"""Writes of adapters whose frameworks get back all that they stored, whether it is worth remembering or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.errors import RecollectError, RejectedError, StoreError
from recollect.operations import Remember, RememberAll

if TYPE_CHECKING:
    from recollect import Batch, Outcome


def store_all(batch: Batch, operations: Sequence[Remember]) -> None:
    """Store records in a batch. What is not worth remembering is stored, too, and recall does not find it.

    Args:
        batch: The batch; it cannot be committed if this raises.
        operations: What to store.

    Raises:
        RejectedError: Another policy than salience does not allow a text.
        RecollectError: What `Memory.remember` raises, the first error of all.

    Cost:
        That of `remember_all`.
    """
    for each in stored_each(batch, operations):
        if isinstance(each, RecollectError):
            raise each


def stored_each(batch: Batch, operations: Sequence[Remember]) -> list[Outcome | RecollectError]:
    """Store records as `store_all` does, and return the outcome or the error of each.

    Raises:
        StoreError: The store failed; the batch cannot be committed.
    """
    out = _stored(batch, operations)
    unworthy = [at for at, each in enumerate(out) if _is_unworthy(each)]
    again = [replace(operations[at], fields={**operations[at].fields, "searchable": False}) for at in unworthy]
    for at, each in zip(unworthy, _stored(batch, again) if again else (), strict=True):
        out[at] = each
    return out


def _stored(batch: Batch, operations: Sequence[Remember]) -> list[Outcome | RecollectError]:
    report = batch.execute(RememberAll(items=tuple(operations), on_error="report"))
    failed = {each.index: each.reason for each in report.failed}
    for reason in failed.values():
        if isinstance(reason, StoreError):
            raise reason
    outcomes = iter(report.results)
    return [failed[at] if at in failed else next(outcomes) for at in range(len(operations))]


def _is_unworthy(result: Outcome | RecollectError) -> bool:
    return isinstance(result, RejectedError) and result.verdict.policy == "salience"
