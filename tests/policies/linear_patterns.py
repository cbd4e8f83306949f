"""A check that a regular expression takes at most linear time, by its form."""

from __future__ import annotations

from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

#: More than this, and a bounded repeat is no bound in practice.
_MOST = 200


def faults(pattern: str, flags: int = 0) -> list[str]:
    """Return why a pattern may take more than linear time; [] if it cannot.

    A bounded pattern takes at most a constant number of steps from each position. An unbounded repeat must be
    possessive, and all after it optional, so that what it read is consumed and not read again from another position.
    """
    return _of_sequence(parser.parse(pattern, flags), last=True, repeated=1)


def _of_sequence(items: Any, *, last: bool, repeated: int) -> list[str]:
    found: list[str] = []
    nodes = list(items)
    for at, (op, value) in enumerate(nodes):
        tail = last and all(_is_optional(each) for each in nodes[at + 1 :])
        found += _of_node(op, value, last=tail, repeated=repeated)
    return found


def _is_optional(node: Any) -> bool:
    op, value = node
    return op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT) and value[0] == 0


def _of_node(op: Any, value: Any, *, last: bool, repeated: int) -> list[str]:
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        least, most, inner = value
        if most == ops.MAXREPEAT:
            faults = [] if op is ops.POSSESSIVE_REPEAT and last else ["an unbounded repeat that can be tried again"]
            return faults + _of_sequence(inner, last=True, repeated=1)
        ways = 1 if op is ops.POSSESSIVE_REPEAT else most - least + 1
        faults = [f"a repeat of {most}"] if most > _MOST else []
        faults += [f"{repeated * ways} ways"] if repeated * ways > 5000 else []
        once = op is ops.POSSESSIVE_REPEAT and most == 1
        return faults + _of_sequence(inner, last=last and once, repeated=repeated * ways)
    if op is ops.SUBPATTERN:
        return _of_sequence(value[3], last=last, repeated=repeated)
    if op is ops.ATOMIC_GROUP:
        return _of_sequence(value, last=last, repeated=repeated)
    if op is ops.BRANCH:
        return [fault for each in value[1] for fault in _of_sequence(each, last=last, repeated=repeated)]
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return _of_sequence(value[1], last=False, repeated=repeated)
    if op is ops.GROUPREF_EXISTS:
        return [fault for each in value[1:] if each for fault in _of_sequence(each, last=last, repeated=repeated)]
    return []
