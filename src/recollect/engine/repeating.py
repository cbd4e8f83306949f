"""Writes with an idempotency key: executed once, in one transaction with their answer, and then only answered."""

from __future__ import annotations

from typing import Any

from recollect.engine.answers import Answers
from recollect.engine.core import Core
from recollect.engine.handlers import batch_place, execute_in_batch, handler_of
from recollect.engine.results import result_from_json, result_to_json
from recollect.engine.scope import Place
from recollect.engine.settings import policies_of
from recollect.errors import UnsupportedError
from recollect.operations import ExecuteBatch, Operation, check_key
from recollect.records.codec import microseconds


def execute_once(core: Core, place: Place, operation: Operation) -> Any:
    """Execute a write unless one with this key was executed within the last day; return the first answer.

    What otherwise takes several commits, such as storing 10,000 records, is one commit.

    Raises:
        InvalidArgumentError: The key is no text of 1 to 255 bytes.
        UnsupportedError: The operation is not a write that can be part of a batch.
        IdempotencyError: The key belongs to another write, or its answer was erased.
    """
    check_key(place.key)
    key, expect_head = str(place.key), None
    if not operation.can_have_key:
        raise UnsupportedError("an idempotency key", f"{operation.name} is not a write that can be part of a batch")
    if isinstance(operation, ExecuteBatch):
        place, expect_head = batch_place(place, operation), operation.expect_head
    branch, now = place.branch, core.now()
    shared = handler_of(operation).is_short(operation)
    with core.writing(place, shared=shared, now=now) as writing:
        answers = Answers(writing.transaction, branch, place.scope, microseconds(now), core.store.key)
        known, answer = answers.find(key, operation, lambda data: result_from_json(operation, data))
        if known:
            return answer
        if isinstance(operation, ExecuteBatch):
            if expect_head is not None:
                writing.check_head(expect_head)
            result: Any = [execute_in_batch(writing, each) for each in operation.operations]
        else:
            result = execute_in_batch(writing, operation)
        policies = policies_of(writing.transaction, branch)
        answers.note(key, operation, result_to_json(operation, result), policies)
        if core.answers_cleaned != answers.day() and not answers.remove_old():
            core.answers_cleaned = answers.day()
        return result
