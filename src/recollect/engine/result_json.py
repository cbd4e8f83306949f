"""The JSON form of the result of each operation, for executors in other processes."""

from __future__ import annotations

from typing import Any

from recollect.arguments.json_form import form_named
from recollect.operations import At, ExecuteBatch, Operation


def result_to_json(operation: Operation, result: Any) -> Any:
    """Return the JSON form of the result of an operation."""
    if isinstance(operation, ExecuteBatch):
        return [result_to_json(part, each) for part, each in zip(operation.operations, result, strict=True)]
    if isinstance(operation, At):
        operation = operation.operation
    return form_named(operation.result).to_json(result)


def result_from_json(operation: Operation, data: Any) -> Any:
    """Rebuild the result of an operation from its JSON form."""
    if isinstance(operation, ExecuteBatch):
        return [result_from_json(part, each) for part, each in zip(operation.operations, data, strict=True)]
    if isinstance(operation, At):
        operation = operation.operation
    return form_named(operation.result).from_json(data)
