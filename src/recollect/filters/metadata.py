"""The tests of a value in the metadata of a record: what each takes, and when it is true.

No comparison fails: numbers are compared with numbers and texts with texts, by code point; every other pair is simply
not in the order, so that it is neither above nor below. True and False are no numbers there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from recollect.arguments.checks import is_number
from recollect.text.unicode import fold

#: In place of a value that the metadata do not have.
ABSENT: Any = object()


class ValueTest(NamedTuple):
    """A test of a value.

    Attributes:
        holds: Returns whether a value of the metadata meets it, beside the value that the filter states.
        takes: What the filter must state; "" for any JSON value.
        is_taken: Returns whether a stated value is that.
    """

    holds: Callable[[Any, Any], bool]
    takes: str = ""
    is_taken: Callable[[Any], bool] = lambda value: True


def value_at(metadata: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return the value under a key, and under further keys in the objects that each has; ABSENT if there is none."""
    found: Any = metadata
    for key in path:
        if not isinstance(found, Mapping) or key not in found:
            return ABSENT
        found = found[key]
    return found


def _contains(found: Any, stated: Any) -> bool:
    if isinstance(found, str):
        return isinstance(stated, str) and fold(stated) in fold(found)
    if isinstance(found, Mapping):
        return isinstance(stated, str) and stated in found
    return isinstance(found, list) and stated in found


def _is_empty(found: Any, stated: Any) -> bool:
    return found is None or (isinstance(found, (str, list, Mapping)) and not found)


def _is_ordered(value: Any) -> bool:
    return isinstance(value, str) or is_number(value)


def _compared(compare: Callable[[Any, Any], bool]) -> ValueTest:
    def holds(found: Any, stated: Any) -> bool:
        if isinstance(stated, str):
            return isinstance(found, str) and compare(found, stated)
        return is_number(found) and compare(found, stated)

    return ValueTest(holds, "a number or a text", _is_ordered)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


#: The tests by their names.
TESTS = {
    "has": ValueTest(lambda found, stated: True, "no value", lambda value: value is None),
    "empty": ValueTest(_is_empty, "no value", lambda value: value is None),
    "equals": ValueTest(lambda found, stated: bool(found == stated)),
    "contains": ValueTest(_contains),
    "one_of": ValueTest(lambda found, stated: found in stated, "a list of values", _is_list),
    "any_of": ValueTest(
        lambda found, stated: isinstance(found, list) and any(each in found for each in stated), "a list", _is_list
    ),
    "all_of": ValueTest(
        lambda found, stated: isinstance(found, list) and all(each in found for each in stated), "a list", _is_list
    ),
    "above": _compared(operator.gt),
    "at_least": _compared(operator.ge),
    "below": _compared(operator.lt),
    "at_most": _compared(operator.le),
}
#: The tests that take no value.
WITHOUT_VALUE = ("has", "empty")
#: The tests that may stand together: those of a lower and of an upper end.
ENDS = (("above", "at_least"), ("below", "at_most"))
