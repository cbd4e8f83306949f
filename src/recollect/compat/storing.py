"""Writes of adapters whose frameworks get back all that they stored, whether it is worth remembering or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recollect import Batch
from recollect.errors import RejectedError
from recollect.operations import Remember, RememberAll


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
    unworthy = []
    for failed in batch.execute(RememberAll(items=tuple(operations), on_error="report")).failed:
        if not isinstance(failed.reason, RejectedError) or failed.reason.verdict.policy != "salience":
            raise failed.reason
        rejected = operations[failed.index]
        unworthy.append(replace(rejected, fields={**rejected.fields, "searchable": False}))
    if unworthy:
        batch.execute(RememberAll(items=tuple(unworthy), on_error="raise"))
