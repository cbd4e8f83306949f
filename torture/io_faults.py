"""Faults of the disk: during a run an operation on a file fails, once or for a while.

A seed determines the run (`script`) and the fault: the kind of operation, the files, the n-th call, the error, and
whether the next calls fail too. Callers must see only our own errors. Acknowledged data is stored; refused data is
stored completely or not at all. If the error says that nothing was changed, nothing was, also for a process that opens
the files at that moment, as after a crash. When the fault is over, the memory continues or refuses, and one that is
opened again continues.
"""

from __future__ import annotations

import errno
import random
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from recollect.errors import (
    CommitInDoubtError,
    DamagedStoreError,
    NotAStoreError,
    RecollectError,
    StoreError,
)
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from torture.power import NAME, answers, quiet, small
from torture.recording import recorded
from torture.script import Script, Step, failing_store, lead, play
from torture.trials import Trial, fast_folder, store_at

#: What fails, and how. Asking for a file's size does not: SQLite can do without the answer in the middle of a commit,
#: goes on, and apsw raises the error all the same, which no system's own error would be.
FAULTS = (
    ("read", errno.EIO),
    ("write", errno.EIO),
    ("write", errno.ENOSPC),
    ("sync", errno.EIO),
    ("open", errno.EMFILE),
    ("open", errno.EACCES),
    ("truncate", errno.EIO),
    ("access", errno.EACCES),
    ("remove", errno.EACCES),
    ("create", errno.ENOSPC),
    ("create", errno.EACCES),
    ("replace", errno.EIO),
    ("make_folder", errno.EACCES),
)
#: Steps of a run.
STEPS = 14


class Fault:
    """An operation that fails at its `nth` turn, and from then on for the rest of the step where it `persists`."""

    def __init__(self, kind: str, code: int, nth: int, *, persists: bool) -> None:
        self.kind, self.code, self.nth, self.persists = kind, code, nth, persists
        self.turns: Counter[str] = Counter()
        self.happened = self.over = False
        self._lock = threading.Lock()

    def __call__(self, kind: str, path: str) -> int | None:
        with self._lock:
            if self.over:
                return None
            self.turns[kind] += 1
            if kind != self.kind or self.turns[kind] < self.nth or (self.happened and not self.persists):
                return None
            self.happened = True
            return self.code

    def __str__(self) -> str:
        return f"{self.kind} {errno.errorcode[self.code]}{', for a while' if self.persists else ''}"


class Run:
    """One run with one fault.

    problem  what was wrong first; "" for nothing
    refused  whether the handle refused to go on once the fault was over, so that another was opened
    """

    def __init__(self, script: Script, folder: Path, fault: Fault) -> None:
        self._script = script
        self._folder = folder
        self._fault = fault
        self._model = script.model()
        self._memory: Memory | None = None
        self.problem = ""
        self.refused = False

    def do(self) -> None:
        """All of it."""
        with self._model, small(), quiet(), recorded(self._folder, self._fault):
            try:
                for number, step in enumerate(self._script.steps):
                    self._script.set_clock(number)
                    self._do(step)
                    if self.problem:
                        return
            finally:
                self._fault.over = True
                if self._memory is not None:
                    self._memory.close()
            self._look(self._folder, {self._script.state_of(self._model).roots}, "at the end")

    def _open(self) -> Memory:
        if self._memory is None:
            self._memory = self._script.memory(failing_store(store_at(self._folder / NAME)))
        return self._memory

    def _do(self, step: Step) -> None:
        told: list[str] = []
        refused: dict[str, RecollectError] = {}
        errors: list[RecollectError] = []
        try:
            if step.reopens:
                memory, self._memory = self._open(), None
                memory.close()
            else:
                done = play(step, self._open(), told.append, refused.__setitem__)
                errors += [failed.reason for failed in getattr(done, "failed", ())[:1]]
        except RecollectError as raised:
            errors.append(raised)
        errors += refused.values()
        if not errors:
            lead(step, self._model)
            return
        for error in errors:
            self._judge(error)
        self._fault.over = self._fault.over or self._fault.happened
        in_doubt = step.stays or any(isinstance(error, CommitInDoubtError) for error in errors)
        # A step of several threads may be held in part: of those records that were told to be, or are in doubt.
        if not step.at_once and not in_doubt:
            self._crash({self._script.state_of(self._model).roots}, f"after {step.name} was refused: {errors[0]}")
        stored = self._held()
        if step.at_once:
            self._problem_if(told, lambda each: each not in stored, "was told to be held, and is not")
            sure = [each for each, error in refused.items() if not isinstance(error, CommitInDoubtError)]
            self._problem_if(sure, lambda each: each in stored, "was refused, and is held")
            lead(step, self._model, stored.__contains__)
        elif in_doubt and not self._as_the_model():
            lead(step, self._model)
        if not self._as_the_model():
            self._found(f"{step.name} was refused, and is held, or is held in part: {errors[0]}")

    def _as_the_model(self) -> bool:
        return self._script.state_of(self._open()).roots == self._script.state_of(self._model).roots

    def _held(self) -> set[str]:
        """The ids of what is held, now that the fault is over."""
        try:
            return {record.id for record in self._open().find()}
        except RecollectError:
            self.refused = True
            if self._memory is not None:
                self._memory.close()
                self._memory = None
            return {record.id for record in self._open().find()}

    def _judge(self, error: RecollectError) -> None:
        """An error is of the store, says of a write what state things are in, and does not blame the store's bytes."""
        if not isinstance(error, StoreError) or isinstance(error, (DamagedStoreError, NotAStoreError)):
            self._found(f"{type(error).__name__}: {error}")
        stated = any(words in str(error) for words in ("nothing was", "none was", "not changed", "may or may not"))
        if error.unchanged and not stated:
            self._found(f"the message does not say what state things are in: {error}")

    def _crash(self, allowed: set[tuple[str, ...]], when: str) -> None:
        """Open the files as they lie there now, as after a crash: shared memory is gone, all else is there."""
        if not (self._folder / NAME).exists():
            return
        copy = self._folder.with_name(f"{self._folder.name}-copy")
        copy.mkdir()
        for path in self._folder.glob(f"{NAME}*"):
            if path.is_file() and not path.name.endswith("-shm"):
                shutil.copy(path, copy)
        self._look(copy, allowed, f"as after a crash, {when}")
        shutil.rmtree(copy)

    def _look(self, folder: Path, allowed: set[tuple[str, ...]], when: str) -> None:
        """Look at the store in a folder: sound, one of these roots, and answering as from indexes made anew."""
        path = folder / NAME
        try:
            with open_memory(path, embedder="none") as memory:
                problems: list[str] = memory.check()
                if self._script.state_of(memory).roots not in allowed:
                    problems.append(f"its root is not the model's ({memory.seq} commits)")
                given = [answers(each) for each in self._script.memories(memory)]
            shutil.rmtree(f"{path}.index", ignore_errors=True)
            with open_memory(path, embedder="none") as memory:
                if [answers(each) for each in self._script.memories(memory)] != given:
                    problems.append("recall or grep does not answer as from an index made anew")
        except RecollectError as error:
            problems = [f"{type(error).__name__}: {error}"]
        if problems:
            self._found(f"{when}: {'; '.join(problems)}")

    def _problem_if(self, ids: list[str], wrong: Callable[[str], bool], what: str) -> None:
        for each in filter(wrong, ids):
            self._found(f"record {each} {what}")

    def _found(self, problem: str) -> None:
        self.problem = self.problem or problem


def trials(seed: int, folder: Path, script: Script | None = None) -> Iterator[Trial]:
    """A run without a fault, which tells how often there is what to fail, and then runs with one each."""
    rng = random.Random(seed)
    script = script or Script(seed, STEPS)
    none = Fault("", 0, 0, persists=False)
    with fast_folder(folder) as fast:
        run = run_with(script, fast, none)
        yield Trial(seed, "no fault", run.problem)
        for kind, code in FAULTS:
            nth = rng.randrange(none.turns[kind]) + 1 if none.turns[kind] else 1
            fault = Fault(kind, code, nth, persists=rng.random() < 0.5)
            run = run_with(script, fast, fault)
            where = str(fault) + (": the handle refused to go on" if run.refused else "")
            yield Trial(seed, where if fault.happened else f"{kind}: no turn", run.problem)


def run_with(script: Script, folder: Path, fault: Fault) -> Run:
    """A run in a folder of its own."""
    place = folder / "run"
    place.mkdir()
    run = Run(script, place, fault)
    run.do()
    shutil.rmtree(place)
    return run
