"""The kill test: a writing process is killed; what it acknowledged is stored, and nothing is stored in part.

A seed determines a run of calls of every kind (`script`). A child process executes it on its own store, and reports
through a pipe what it begins, what was acknowledged, and what it has finished. The kill is a real SIGKILL: at the n-th
operation on a file (the database, its WAL or an index file, in any thread), within a transaction, or from outside at a
random time. Then the store is opened again.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from recollect.errors import RecollectError, StoreFullError
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.testing.faults import SteppedStore
from torture.power import answers, quiet, small
from torture.recording import recorded
from torture.script import FAILING, Script, lead, play
from torture.trials import Trial, store_at

NAME = "killed.db"
#: So many kills for each seed.
KILLS = 12
#: Steps that write nothing to the ledger.
_READING = ("ask", "reopen")
#: What a commit is made of: half of the kills are there.
_COMMITTING = ("transaction", "write the", "sync the")
#: A kill from outside comes at most so long after the child told of something: a write takes about that.
_LATEST_S = 0.002


@dataclass
class Told:
    """What a child told before its end.

    begun, done   how many steps
    ids           of records that it was told to be held, in the step that was not done yet
    counts        how many times it had come to what it can be killed at, by name
    where         at what it was killed by itself; "" where it was not
    """

    begun: int = 0
    done: int = 0
    ids: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    where: str = ""

    def take(self, line: str) -> None:
        """Take a line of the child's."""
        match line.split(" ", 1):
            case ["begun", number]:
                self.begun = int(number) + 1
            case ["done", number]:
                self.done = int(number) + 1
                self.ids.clear()
            case ["held", record_id]:
                self.ids.add(record_id)
            case ["killed", where]:
                self.where = where
            case ["counted", counts]:
                self.counts = json.loads(counts)


class _Child:
    """The run, in the child process. It kills itself when it comes to something of a name for the n-th time."""

    def __init__(self, script: Script, folder: Path, pipe: int, name: str, nth: int) -> None:
        self._script = script
        self._folder = folder
        self._pipe = pipe
        self._name, self._nth = name, nth
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def _tell(self, line: str) -> None:
        os.write(self._pipe, f"{line}\n".encode())

    def _come_to(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1
            if name == self._name and self._counts[name] == self._nth:
                self._tell(f"killed {name}")
                os.kill(os.getpid(), signal.SIGKILL)

    def _on_file(self, kind: str, path: str) -> None:
        self._come_to(f"{kind} {_kind_of(path)}")

    def _on_step(self, _number: int, name: str) -> None:
        self._come_to(f"transaction: {name}")
        if name == "commit" and threading.current_thread().name == FAILING:
            raise StoreFullError(str(self._folder), "injected")

    def _open(self) -> Memory:
        return self._script.memory(SteppedStore(store_at(self._folder / NAME), self._on_step))

    def run(self) -> None:
        with small(), quiet(), recorded(self._folder, self._on_file):
            memory = self._open()
            for number, step in enumerate(self._script.steps):
                self._script.set_clock(number)
                self._tell(f"begun {number}")
                if step.reopens:
                    memory.close()
                    memory = self._open()
                else:
                    play(step, memory, lambda record_id: self._tell(f"held {record_id}"))
                self._tell(f"done {number}")
            memory.close()
        self._tell(f"counted {json.dumps(self._counts)}")


def _kind_of(path: str) -> str:
    if path.endswith("-wal"):
        return "the log"
    return "an index file" if ".index" in path else "the database"


def child(
    script: Script, folder: Path, *, at: tuple[str, int] = ("", 0), when: Callable[[Told], bool] | None = None
) -> Told:
    """Run a child to its end, or to its being killed.

    at    what it kills itself at, and at which of its turns
    when  asked after each line that the child tells: True has it killed from outside, now

    Raises: AssertionError where it ended by itself in another way than it should.
    """
    reading, writing = os.pipe()
    # Forked, as starting Python takes longer than the run; nobody else is at work in this process.
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            _Child(script, folder, writing, *at).run()
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    told = Told()
    with os.fdopen(reading, encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                told.take(line.rstrip("\n"))
            if when is not None and when(told):
                os.kill(pid, signal.SIGKILL)
                when = None
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, "the child failed"
    return told


def problem_in(path: Path, script: Script, told: Told) -> str:
    """What is wrong with the store that a child left; "" where nothing is."""
    if not path.exists():
        return "the file is gone" if told.done else ""
    # As it was when the child was killed: what a handle has once seen expire stays so, whatever its clock says later.
    script.set_clock(max(told.begun - 1, 0))
    try:
        with open_memory(path, embedder="none", clock=script.now) as memory:
            problem = _problem(memory, script, told) or "; ".join(memory.check())
            if problem:
                return problem
            found = [answers(each) for each in script.memories(memory)]
        shutil.rmtree(f"{path}.index", ignore_errors=True)
        with open_memory(path, embedder="none", clock=script.now) as memory:
            if [answers(each) for each in script.memories(memory)] != found:
                return "recall or grep does not answer as from an index made anew"
            memory.remember("after the kill", id="after")
            return "; ".join(memory.check())
    except RecollectError as error:
        return f"{type(error).__name__}: {error}"


def _problem(memory: Memory, script: Script, told: Told) -> str:
    """Whether it holds all that was done, and of the step under way all or nothing of each call."""
    lost = [record_id for record_id in told.ids if memory.get(record_id) is None]
    if lost:
        return f"{lost} were acknowledged and are not held"
    with script.model() as model:
        for number, step in enumerate(script.steps[: told.done]):
            script.set_clock(number)
            lead(step, model)
        allowed = {script.state_of(model).roots}
        if told.begun > told.done:
            script.set_clock(told.done)
            lead(script.steps[told.done], model, lambda record_id: memory.get(record_id) is not None)
            allowed.add(script.state_of(model).roots)
    if script.state_of(memory).roots in allowed:
        return ""
    return f"its roots are not those after {told.done} steps, nor those after one more"


def trials(seed: int, folder: Path, script: Script | None = None) -> Iterator[Trial]:
    """A run that ends well, which tells how much there is to be killed at; then the same run, killed many times."""
    rng = random.Random(seed)
    script = script or Script(seed)
    whole = folder / "whole"
    whole.mkdir()
    run = child(script, whole)
    yield Trial(seed, "no kill", problem_in(whole / NAME, script, run))
    for number in range(KILLS):
        place = folder / f"kill-{number}"
        place.mkdir()
        if number % 4:
            often = number % 4 != 3
            name = rng.choice(sorted(name for name in run.counts if not often or name.startswith(_COMMITTING)))
            told = child(script, place, at=(name, rng.randrange(run.counts[name]) + 1))
        else:
            told = child(script, place, when=_moment(rng, script))
        under_way = told.begun > told.done and script.steps[told.done].name not in _READING
        with quiet():
            problem = problem_in(place / NAME, script, told)
        within = "inside a write" if under_way else "elsewhere"
        yield Trial(seed, f"{within}: {told.where or 'from outside'}", problem and f"kill {number}: {problem}")
        shutil.rmtree(place)


def _moment(rng: random.Random, script: Script) -> Callable[[Told], bool]:
    """Some time after a step that writes has begun."""
    writing = [number for number, step in enumerate(script.steps) if step.name not in _READING]
    step, wait_s = rng.choice(writing), rng.random() * _LATEST_S

    def when(told: Told) -> bool:
        if told.begun <= step:
            return False
        time.sleep(wait_s)
        return True

    return when
