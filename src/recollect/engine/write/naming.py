"""Which stored id stands behind the id that a caller names, inside a transaction.

Outside of scopes they are one. Within a scope, an id that was chosen there is stored in a qualified form
(`Scope.qualified`); one that is derived from what a record says is stored as it is, since it follows from the scope's
own fields, and so is one that a record had before it came into the scope. No record is given an id, or moved, so that a
scope would show two records under one id; but for a move from a scope that must not know of the other one, where the
id then gives the scope's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from recollect.engine.scope import Scope, scopes_of
from recollect.engine.write.drafts import Draft
from recollect.errors import InvalidRecordError, RecordExistsError
from recollect.operations import SCOPED
from recollect.records.record import Record

Known = Callable[[str], bool]


class Naming:
    """The ids of a scope.

    known      whether a stored id was ever in use
    live       the live record of a stored id, whatever its scope
    qualified  whether any live record has a qualified id
    """

    def __init__(
        self, scope: Scope, known: Known, live: Callable[[str], Record | None], qualified: Callable[[], bool]
    ) -> None:
        self._scope = scope
        self._known = known
        self._live = live
        self._qualified = qualified

    def candidate_ids(self, draft: Draft) -> Iterator[str]:
        """The stored ids that a draft will first be looked up under."""
        yield draft.record.id
        if self._scope.fixed:
            with suppress(InvalidRecordError):  # it is too long to be chosen here
                yield self._scope.qualified(draft.record.id)

    def stored(self, record_id: str) -> Iterator[str]:
        """The stored ids that the scope shows as this one."""
        return self._scope.stored_ids(record_id, self._known)

    def find(self, record_id: str) -> Record | None:
        """The live record that the scope shows under an id."""
        if not self._scope.fixed:
            return self._live(record_id)
        for stored in self.stored(record_id):
            record = self._live(stored) if self._known(stored) else None
            if record is not None and self._scope.admits(record):
                return record
        return None

    def was_used(self, record_id: str, draft: Draft) -> bool:
        """Whether the scope has ever shown a record under an id that a draft may get."""
        if not self._scope.fixed:
            return self._known(record_id)
        if draft.is_derived(record_id):  # none but those of the scope have it
            return any(self._known(each) for each in self.stored(record_id))
        if any(self._known(each) for each in self.stored(record_id) if each != record_id):
            return True
        return self.find(record_id) is not None

    def free(self, record_id: str, draft: Draft) -> str:
        """Under which id a draft is stored that the scope is to show under `record_id`.

        Raises: RecordExistsError: another scope shows a record under it; InvalidRecordError: too long for this one.
        """
        if not self._scope.fixed:
            if (shadowing := self.shadowing(record_id, draft)) is not None:
                raise RecordExistsError(shadowing.id, shadowing.hash)
            return record_id
        if draft.is_derived(record_id) and (not self._known(record_id) or self._live(record_id) is None):
            return record_id
        for stored in self.stored(record_id):
            if stored != record_id and (not self._known(stored) or self._live(stored) is None):
                return stored
        return self._scope.qualified(record_id)  # which raises

    def shadowing(self, record_id: str, draft: Draft) -> Record | None:
        """The record that a scope would show under the same id as a draft that is written from outside."""
        if self._scope.fixed or not draft.own_id:
            return None
        return self._other(record_id, draft.record)

    def check_move(self, existing: Record, record: Record) -> None:
        """Raises: RecordExistsError where a record is moved into a scope that shows another under its id.

        From within a scope that is said of narrower ones only: of what others have it must not be told.
        """
        if all(getattr(existing, name) == getattr(record, name) for name in SCOPED):
            return
        if (other := self._other(record.id, record)) is not None:
            shown = self._scope.shown(other)
            raise RecordExistsError(shown.id, shown.hash)

    def _other(self, record_id: str, record: Record) -> Record | None:
        """Another live record that a scope within ours, in which `record` lies, shows as it would `record_id`."""
        for scope in scopes_of(record) if self._qualified() else ():
            if not set(scope.fixed) >= set(self._scope.fixed):
                continue
            for stored in scope.stored_ids(scope.shown_id(record_id), self._known):
                existing = self._live(stored) if stored != record_id and self._known(stored) else None
                if existing is not None and scope.admits(existing):
                    return existing
        return None
