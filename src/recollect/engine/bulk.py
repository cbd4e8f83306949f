"""Bulk writes: many items in several commits, so that no commit is large and a failure loses only what follows it."""

from __future__ import annotations

from recollect.common.deadlines import checked
from recollect.engine.core import Core
from recollect.engine.results import Failed, Outcome, Report
from recollect.engine.scope import Place
from recollect.engine.settings import NONE, policies_of
from recollect.engine.write.admission import Admission
from recollect.engine.write.batch import Writing, drafts_of
from recollect.engine.write.drafts import Draft
from recollect.engine.write.messages import Addition
from recollect.engine.write.replay import KnownTurns
from recollect.errors import ClosedError, DamagedStoreError, DeadlineError, RecollectError, StoreError
from recollect.operations import AddMessages, RememberAll
from recollect.stores.write_queue import REPEATS

#: Number of items per commit in bulk writes.
BULK = 1000


def remember_all(core: Core, place: Place, operation: RememberAll) -> Report:
    """Check all items, then store the valid ones."""
    now = core.now()
    with core.read(place.branch) as view:
        admission = Admission(policies_of(view, place.branch))
    drafts, failed = drafts_of(operation, place.scope, now, core.intake, admission)
    if operation.on_error == "raise":
        with core.writing(place) as writing:
            heard = writing.writer.listened([each for _, each in drafts])
            return Report(tuple(writing.remember_drafts(list(map(writing.writer.admitted, heard)))))
    return _in_parts(core, place, _Items(operation, drafts, failed))


def add_messages(core: Core, place: Place, operation: AddMessages) -> Report:
    """Store the turns that are not stored yet."""
    return _in_parts(core, place, _Turns(Addition(operation, place.scope, core.now(), core.intake, place.origin)))


class _Items:
    """The items of a `RememberAll`, stored part by part.

    Attributes:
        done: Whether all parts are committed.
    """

    def __init__(self, operation: RememberAll, drafts: list[tuple[int, Draft]], failed: list[Failed]) -> None:
        self._operation = operation
        self._drafts = drafts
        self._failed = failed
        self._results: list[Outcome] = []
        self._policies = NONE
        self._known: KnownTurns | None = None
        self._start = 0

    @property
    def done(self) -> bool:
        return self._start >= len(self._drafts)

    def stage(self, writing: Writing) -> Report:
        """Store the next part; it counts once it is committed."""
        drafts = self._drafts
        admission = writing.writer.admission
        if admission.policies != self._policies:
            self._policies, self._known = admission.policies, None
            self._drafts[self._start :], rejected = admission.drafts(self._drafts[self._start :], self._operation.items)
            self._failed.extend(rejected)
        part = self._drafts[self._start : self._start + BULK]
        writing.writer.look_up([each for _, each in part])
        # Find replayed turns among all items, since a conversation may be longer than a commit. Repeat it if others
        # have written turns since the previous part: they may be of the same conversation.
        if self._known is None or writing.writer.outdated(self._known):
            self._known = writing.writer.find_replay([each for _, each in self._drafts])
            if not self._start:
                self._drafts = writing.listened(drafts, self._drafts, self._known.repeated)
                part = self._drafts[:BULK]
        outcomes: list[Outcome] = []
        refused: list[Failed] = []
        for number, (index, each) in enumerate(checked(part), self._start):
            try:
                outcomes.append(writing.remember_draft(each, self._known.repeated.get(number)))
            except (StoreError, DeadlineError):
                raise
            except RecollectError as error:
                refused.append(Failed(self._operation.items[index], index, error))
        return Report(tuple(outcomes), tuple(refused))

    def committed(self, report: Report, seq: int) -> None:
        """Note that the part is committed."""
        assert self._known is not None
        self._known = self._known._replace(seq=seq)
        self._results.extend(report.results)
        self._failed.extend(report.failed)
        self._start += BULK

    def look_again(self) -> None:
        """Discard what was read of the store."""
        self._known = None

    def ended(self, error: RecollectError | None) -> Report:
        """Return the outcomes; the items that are not committed failed because of the error."""
        if error is not None:
            items = self._operation.items
            self._failed.extend(Failed(items[index], index, error) for index, _ in self._drafts[self._start :])
        return Report(tuple(self._results), tuple(sorted(self._failed, key=lambda item: item.index)))


class _Turns:
    """The turns of an `AddMessages`, stored part by part.

    Attributes:
        done: Whether all parts are committed.
    """

    def __init__(self, addition: Addition) -> None:
        self._addition = addition
        self._results: list[Outcome] = []
        self._failed: list[Failed] = []
        self._known: dict[int, Outcome] | None = None
        self._start = self._after = self._seq = 0

    @property
    def done(self) -> bool:
        return self._start >= len(self._addition.turns)

    def stage(self, writing: Writing) -> Report:
        """Store the next part; it counts once it is committed."""
        # Compare the list once: its own first part must not be taken for what was stored before. If others have
        # written meanwhile, they may have stored the rest of it.
        obeyed = self._addition.obey(writing.writer.admission)
        if obeyed or self._known is None or writing.writer.seq != self._seq:
            self._known = writing.writer.known_turns(self._addition, self._start)
        self._after, report = writing.add(self._addition, self._known, BULK, self._start)
        return report

    def committed(self, report: Report, seq: int) -> None:
        """Note that the part is committed."""
        self._results.extend(report.results)
        self._failed.extend(report.failed)
        self._start, self._seq = self._after, seq

    def look_again(self) -> None:
        """Discard what was read of the store."""
        self._known = None

    def ended(self, error: RecollectError | None) -> Report:
        """Return the outcomes; the turns that are not committed failed because of the error."""
        if error is not None:
            turns = self._addition.turns
            self._failed.extend(Failed(turns[index], index, error) for index in range(self._start, len(turns)))
        return Report(tuple(self._results), tuple(self._failed))


def _in_parts(core: Core, place: Place, items: _Items | _Turns) -> Report:
    """Store items part by part. After an error of the store, earlier parts are committed and no others are stored."""
    renewals = 0
    while not items.done:
        try:
            with core.writing(place) as writing:
                report = items.stage(writing)
        except (StoreError, ClosedError, DeadlineError) as error:
            if renewals < REPEATS and isinstance(error, DamagedStoreError) and core.store.renew(error):
                renewals += 1  # another SQLite had written pages: this part again
                items.look_again()
                continue
            return items.ended(error)
        items.committed(report, writing.seq)
    return items.ended(None)
