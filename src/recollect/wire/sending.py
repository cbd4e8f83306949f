"""Sending an operation of which some items may have no JSON form: these are reported like items that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recollect.engine.results import Failed, Report
from recollect.errors import RecollectError
from recollect.operations import Operation, RememberAll


def send_all(operation: Operation, send: Callable[[Operation], Any]) -> Any:
    """Send an operation and return its result.

    Args:
        operation: The operation.
        send: Sends an operation, and returns its result.

    Raises:
        UnsupportedError: It has no JSON form, for another reason than an item of a report.
    """
    if not isinstance(operation, RememberAll) or operation.on_error == "raise":
        return send(operation)
    indexes: list[int] = []  # of the items that can be sent
    failed: list[Failed] = []
    for index, item in enumerate(operation.items):
        try:
            item.to_json()
            indexes.append(index)
        except RecollectError as error:
            failed.append(Failed(item, index, error))
    report = send(RememberAll(items=tuple(operation.items[index] for index in indexes)) if failed else operation)
    failed.extend(each._replace(place=indexes[each.place]) for each in report.failed)
    return Report(report.results, tuple(sorted(failed, key=lambda each: each.place)))
