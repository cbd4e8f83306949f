"""Records of a source that has ids of its own and changes them: a later import updates what an earlier one stored.

The states that a source has of a record are stored in their order, each as a version, so that the history of the record
names them. Of a record that is stored already, only the states after those that its history has are: so importing the
same source again changes nothing, also if the record was changed here since. What was added to it stays: tags and
metadata that the source does not state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from recollect.errors import RecollectError, StoreError
from recollect.importers.base import Item, Stored
from recollect.operations import GetPolicies, Remember, RememberAll
from recollect.policies import redact
from recollect.records.messages.values import UnreadableError

if TYPE_CHECKING:
    from recollect.engine.results import Outcome
    from recollect.memory import Batch, Memory
    from recollect.records.record import Record

#: The owners of a record. An id of another owner's record is another record's.
_OWNERS = ("user", "agent")


@dataclass(frozen=True)
class VersionedItems:
    """Items whose fields are those of records. Those of a group are the states of one record, the oldest first."""

    def store(self, memory: Memory, items: Sequence[Item]) -> list[Stored]:
        results: list[Stored] = [None] * len(items)
        policies = memory.execute(GetPolicies())
        waiting = [_Waiting(at, operation) for at, operation in _operations(items, results)]
        ids = list(dict.fromkeys(each.operation.id for each in waiting if each.operation.id is not None))
        there = {record.id: record for record in memory.get_all(ids) if record is not None} if ids else {}
        rounds: list[list[_Waiting]] = []
        for _, found in groupby(waiting, lambda each: items[each.at].group or str(each.at)):
            record = [*found]
            stored = there.get(record[0].operation.id or "")
            for number, each in enumerate(_new(memory, record, stored, policies, results)):
                if number == len(rounds):
                    rounds.append([])
                rounds[number].append(each)
        for states in rounds:  # a commit has one version of a record
            with memory.batch() as batch:
                _write(batch, states, results)
        return results


@dataclass(slots=True)
class _Waiting:
    """A state that may have to be stored.

    Attributes:
        at: The number of its item.
        operation: The operation that stores it.
        apart: Whether what is stored under its id is another record.
    """

    at: int
    operation: Remember
    apart: bool = False


def _operations(items: Sequence[Item], results: list[Stored]) -> list[tuple[int, Remember]]:
    """Return the operation of each item that is valid, and note the errors of the others."""
    from recollect.calls.calls import remember_operation

    out = []
    for at, item in enumerate(items):
        try:
            out.append((at, remember_operation({**item.fields, "standing": False})))
        except StoreError:
            raise
        except RecollectError as error:
            results[at] = error
    return out


def _new(
    memory: Memory, states: list[_Waiting], stored: Record | None, policies: Any, results: list[Stored]
) -> list[_Waiting]:
    """Return the states to store of a record, and note that the others are there."""
    from recollect.engine.results import Outcome

    if stored is None:
        return states
    last = states[-1]
    texts = [_as_stored(each.operation.content, policies) for each in states]
    had = [stored.content]
    if texts[-1] != stored.content or texts[-1] in texts[:-1]:
        had = [version.record.content for version in memory.history(stored.id) if version.record is not None] or had
    is_known = any(text in had for text in texts)
    if not _is_same(stored, last.operation, known=is_known):  # it gets an id of its own, as texts of other owners do
        for each in states[:-1]:
            results[each.at] = UnreadableError("is an earlier version of what got another id, which has only the last")
        last.apart = True
        return [last]
    known = len(texts)
    if texts[-1] != stored.content or texts[-1] in texts[:-1]:  # otherwise it is in its last state
        known = _known(texts, had)
    is_other = known == len(states) and stored.content != texts[-1]  # it was changed here
    for each in states[:known]:
        results[each.at] = Outcome(stored, "unchanged", ("content",) if is_other and each is last else ())
    if known == len(states):
        return [] if is_other else [last]  # which also compares its other fields
    return states[known:]


def _known(texts: Sequence[str | bytes], had: Sequence[str | bytes]) -> int:
    """Return how many of the texts of a source a record has had already.

    >>> _known(["tea", "mate", "tea"], ["tea", "mate"])  # it is tea again since
    2
    >>> _known(["tea", "mate"], ["tea", "mate", "coffee"])
    2
    >>> _known(["tea", "mate", "coffee"], ["mate"])  # from a source that has the last text only
    2
    """
    known = 0
    for text in had:
        known += known < len(texts) and text == texts[known]
    return known or max((number for number, text in enumerate(texts, 1) if text in had), default=0)


def _is_same(stored: Record, operation: Remember, *, known: bool) -> bool:
    """Return whether a source means the record that has its id, and not another one by chance.

    Args:
        stored: The record.
        operation: What the source states.
        known: Whether the record has had a text of the source. Then an owner that only one of the two states is that of
            both: mem0's history names none.
    """
    if stored.kind != operation.fields.get("kind", "knowledge"):
        return False
    pairs = [(getattr(stored, name), operation.fields.get(name)) for name in _OWNERS]
    return all(one == other or (known and None in (one, other)) for one, other in pairs)


def _as_stored(content: str | bytes, policies: Any) -> str | bytes:
    if isinstance(content, bytes) or policies.redaction != "redact":
        return content
    return redact(content, policies.categories).text


def _write(batch: Batch, states: Sequence[_Waiting], results: list[Stored]) -> None:
    """Store one state of each record."""
    ids = [each.operation.id for each in states if each.operation.id is not None]
    there = {record.id: record for record in batch.get_all(ids) if record is not None} if ids else {}
    operations = [
        each.operation if each.apart else _updating(each.operation, there.get(each.operation.id or ""))
        for each in states
    ]
    report = batch.execute(RememberAll(items=tuple(operations), on_error="report"))
    failed: dict[int, RecollectError | UnreadableError] = {each.index: each.reason for each in report.failed}
    outcomes = iter(report.results)
    for number, each in enumerate(states):
        result: Outcome | RecollectError | UnreadableError
        result = failed[number] if number in failed else next(outcomes)
        if isinstance(result, StoreError):
            raise result
        results[each.at] = result


def _updating(operation: Remember, stored: Record | None) -> Remember:
    """Return the operation for a record as it is stored: with what was added to it, if another text replaces it."""
    if stored is None or not _is_same(stored, operation, known=True):
        return operation
    if stored.content == operation.content and all(
        getattr(stored, name) is not None or operation.fields.get(name) is None for name in _OWNERS
    ):
        return operation
    fields = dict(operation.fields)
    fields["metadata"] = {**stored.metadata, **fields.get("metadata", {})}
    if isinstance(tags := fields.get("tags", ()), (list, tuple)):  # anything else is refused later, by the record
        fields["tags"] = [*stored.tags, *(tag for tag in tags if tag not in stored.tags)]
    return Remember(
        content=operation.content, id=operation.id, fields=fields, if_exists="update", standing=operation.standing
    )


#: The form of all of them.
VERSIONS = VersionedItems()
