"""The power cut: the files of a store as they could be after a power cut at any point of a run, and their contents.

A seed determines a run of calls of every kind, which is recorded once (`recording`): every write and sync of the
database, its WAL and the index files, and the acknowledgements between them. Then the power is cut at many points, each
time with another choice of what the disk had written (`disk`); the files are created in a separate folder and opened as
usual. With durability "full" every acknowledged commit must be there; with "normal" the newest may be missing. In both
the contents are those after some commit, `check()` finds no problem, recall and grep answer as with rebuilt indexes,
and the store can be written to and opened again.

A second cut, while a store is opened after the first, changes none of this. The interleaving of threads does not follow
from the seed; everything else does.
"""

from __future__ import annotations

import logging
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from recollect.engine import housekeeping
from recollect.engine.index import keeper as indexing
from recollect.errors import RecollectError
from recollect.memory import Memory, RecollectWarning
from recollect.memory.opening import open as open_memory
from recollect.stores import roots
from recollect.stores.sqlite import checkpoints as sqlite_checkpoints
from recollect.stores.values import Durability
from torture.disk import MODES, Disk, Event, write_out
from torture.recording import recorded
from torture.script import AGENT, Script, State, failing_store, play, state_of
from torture.trials import Trial, fast_folder, store_at

NAME = "power.db"
#: Cuts of a run with durability "full", and of one with "normal".
FULL_CUTS, NORMAL_CUTS = 50, 15
#: Cuts while a store is opened again after one.
SECOND_CUTS = 10


@dataclass(frozen=True)
class Recording:
    """A run that was recorded.

    states   of the store after each commit, whether of records, terms or outlines; before the first, that of nothing
    problem  in which way the run itself went wrong; "" for none
    begin    so many events tell only what was there before
    """

    events: list[Event]
    states: list[State]
    problem: str = ""
    begin: int = 0

    def syncs(self) -> list[int]:
        """The places of the events that make something durable."""
        return [place for place, event in enumerate(self.events) if event.kind in ("sync", "sync_folder")]

    def without(self, *places: int) -> Recording:
        """The same run, if the disk had not done some of it."""
        events = list(self.events)
        for place in places:
            events[place] = Event("nothing")
        return Recording(events, self.states, self.problem, self.begin)


@contextmanager
def small() -> Iterator[None]:
    """Checkpoints after few pages, segments of few records, pages of old roots dropped after few commits.

    So a short run has many of each.
    """
    constants = (
        (sqlite_checkpoints, "PAGES", 40),
        (sqlite_checkpoints, "LONG", 320),
        (indexing, "KEPT_FROM", 10),
        (indexing, "MERGED_FROM", 10),
        (indexing, "MERGED_REMOVED_FROM", 10),
        (roots, "KEPT_EVERY", 12),
        (roots, "STEP_COMMITS", 3),
        (housekeeping, "STEP_COMMITS", 3),
    )
    before = [getattr(module, name) for module, name, _ in constants]
    for module, name, value in constants:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(constants, before, strict=True):
            setattr(module, name, value)


def record(seed: int, folder: Path, durability: Durability = "full") -> Recording:
    """Do the run of a seed in a folder that is empty, and write down what it does."""
    script = Script(seed)
    expected = script.roots()
    with small(), recorded(folder) as recorder:
        store = failing_store(store_at(folder / NAME, durability=durability))
        problem = ""
        memory = script.memory(store)
        marks: list[State] = []
        try:
            for number, step in enumerate(script.steps):
                script.set_clock(number)
                if step.reopens:
                    memory.close()
                    memory = script.memory(failing_store(store_at(folder / NAME, durability=durability)))
                else:
                    play(step, memory, lambda record_id: recorder.acknowledge(record_id=record_id))
                marks.append(state_of(memory))
                recorder.acknowledge(marks[-1].commits)
                if marks[-1].roots != expected[number + 1]:
                    problem = problem or f"after step {number} ({step.name}) the root is not the model's"
            states = _states(memory, [State((0,) * len(expected[0]), expected[0])], marks)
            place = {state.seqs[0]: number for number, state in reversed([*enumerate(states)])}
            ids = {change.id: place[commit.seq] for commit in reversed(memory.changes()) for change in commit.changes}
            problem = "; ".join(filter(None, (problem, *memory.check())))
        finally:
            memory.close()
        events = [
            event._replace(at=ids[event.path]) if event.kind == "acknowledge" and event.path else event
            for event in recorder.events
        ]
    return Recording(events, states, problem)


def _states(memory: Memory, known: list[State], marks: list[State]) -> list[State]:
    """The states after each commit: those known, and those on the way to the last mark."""
    states = known.copy()
    for commit in memory.changes(since=known[-1].seqs[0]):
        if marks and commit.seq <= marks[-1].seqs[0]:
            states.append(states[-1].after(commit))
    return states


def record_again(recording: Recording, rng: random.Random, folder: Path) -> Recording:
    """Cut the power at a random moment, and write down what is done when the store is opened again and written to."""
    disk = Disk()
    for event in recording.events[: rng.randrange(len(recording.events) // 2, len(recording.events))]:
        disk.take(event)
    write_out(disk.cut(rng, rng.choice(MODES)), folder)
    with small(), quiet(), recorded(folder) as recorder:
        recorder.note_there()
        recorder.acknowledge(disk.acknowledged)
        begin = len(recorder.events)
        with open_memory(folder / NAME, embedder="none") as memory:
            answers(memory)
            known = recording.states[: state_of(memory).commits + 1]
            for number in range(3):
                memory.remember(f"fact {number} of the harbour, again", id=f"again {number}")
                recorder.acknowledge(state_of(memory).commits)
            states = _states(memory, known, [state_of(memory)])
    return Recording(recorder.events, states, begin=begin)


def moments(recording: Recording, rng: random.Random, count: int) -> list[int]:
    """So many places to cut at: half right before or after something is made durable or acknowledged, some while the
    file is made, the rest anywhere."""
    begin, last = recording.begin, len(recording.events)
    kinds = [event.kind for event in recording.events]
    marks = [place for place in range(begin, last) if kinds[place] in ("sync", "acknowledge")]
    first = kinds.index("acknowledge", begin)
    chosen = []
    for number in range(count):
        if number % 2 and marks:
            chosen.append(rng.choice(marks) + rng.randrange(2))
        else:
            chosen.append(rng.randrange(begin, first if number % 3 == 0 else last) + 1)
    return sorted(chosen)


def cuts(
    recording: Recording,
    rng: random.Random,
    folder: Path,
    count: int,
    *,
    full: bool = True,
    modes: tuple[str, ...] = MODES,
    examine: Callable[[Path, list[State], int], str] | None = None,
) -> Iterator[tuple[str, str]]:
    """Cut the power so often: (mode, what was wrong with what was left, "" for nothing) of each."""
    disk, taken = Disk(), 0
    settles = rng.choice((0, 0.002, 0.02))  # how often the disk writes something of its own accord
    for moment in moments(recording, rng, count):
        while taken < moment:
            disk.take(recording.events[taken])
            taken += 1
            if rng.random() < settles:
                disk.settle(rng)
        mode = rng.choice(modes)
        with left_by(disk.cut(rng, mode), folder) as path, quiet():
            problem = (examine or problem_in)(path, recording.states, disk.acknowledged if full else 0)
        yield mode, problem and f"at event {moment} of {len(recording.events)}: {problem}"


@contextmanager
def left_by(cut: dict[str, bytes | None], folder: Path) -> Iterator[Path]:
    """The path of the store that a cut left, in a folder of its own while the block runs."""
    place = folder / "cut"
    place.mkdir()
    try:
        write_out(cut, place)
        yield place / NAME
    finally:
        shutil.rmtree(place)


def problem_in(path: Path, states: list[State], acknowledged: int) -> str:
    """Return the fault of the store at a path, "" for none. It must have at least this many commits.

    A warning is a fault, too: nobody else wrote to the store.
    """
    if not path.exists():
        return "the file is gone" if acknowledged else ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RecollectWarning)
            return _problem_of_opened(path, states, acknowledged)
    except (RecollectError, RecollectWarning) as error:
        return f"{type(error).__name__}: {error}"


def _problem_of_opened(path: Path, states: list[State], acknowledged: int) -> str:
    with open_memory(path, embedder="none") as memory:
        problem = _problem(memory, states, acknowledged)
        if problem:
            return problem
        given = answers(memory)
    shutil.rmtree(f"{path}.index", ignore_errors=True)
    with open_memory(path, embedder="none") as memory:
        if answers(memory) != given:
            return "recall or grep does not answer as from a rebuilt index"
        memory.remember("after the power came back", id="after")
        memory.glossary.memorize("power", "came back", "", AGENT)
        code = memory.sdr.store("the power came back")
        memory.keyed.write("power", b"came back")
        lit = memory.outline.ingest_text("* power\n", "org", "after.org").root
        last = state_of(memory)
    with open_memory(path, embedder="none") as memory:
        found = (
            memory.get("after"),
            memory.glossary.get("power", AGENT),
            memory.outline.get(lit),
            memory.sdr.get(code),
            memory.keyed.read("power"),
        )
        if state_of(memory) != last or None in found:
            return "what was written after the power came back is lost"
        return "; ".join(memory.check())


def _problem(memory: Memory, states: list[State], acknowledged: int) -> str:
    now = state_of(memory)
    if now.commits < acknowledged:
        return f"it has {now.commits} commits, and {acknowledged} were acknowledged"
    if now not in states or _states(memory, states[:1], states[1 : now.commits + 1]) != states[: now.commits + 1]:
        return "its logs are not the beginning of the logs that were written"
    return "; ".join(memory.check())


def answers(memory: Memory) -> object:
    """What a memory finds by recall, grep and sparse codes, and what its glossary and outlines have."""
    found = [(hit.record.id, hit.score) for hit in memory.recall("which fact is part of the harbour?", 20)]
    grepped = [record.id for record in memory.grep("fact")]
    stored = [record.id for record in memory.find(order="id") if "fact" in record.text.split()]
    glossary = memory.glossary
    terms = glossary.recall("which fact is of pier 3?", AGENT), glossary.annotate("from pier 1 to Pier 4", AGENT)
    # As JSON, which every tree has: not every one can be written as org.
    nodes = [(memory.outline.hash(root.id), memory.outline.to_text(root.id, "json")) for root in memory.outline.roots()]
    codes = memory.sdr.texts(), memory.sdr.query("which fact is of 3?"), memory.sdr.stats()
    names = memory.keyed.keys()
    keys = [(name, memory.keyed.read(name)) for name in names], memory.keyed.recall("which fact?")
    return found, sorted(grepped), sorted(grepped) == stored, terms, nodes, codes, keys


@contextmanager
def quiet() -> Iterator[None]:
    """Let warnings of damaged indexes, which are meant here, not be printed."""
    log = logging.getLogger("recollect")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """Two recorded runs, and the power cut many times in each."""
    with fast_folder(folder) as fast:
        runs: tuple[tuple[Durability, int], ...] = (("full", FULL_CUTS), ("normal", NORMAL_CUTS))
        for durability, count in runs:
            rng = random.Random(f"{seed} {durability}")
            place = fast / durability
            place.mkdir()
            recording = record(seed, place, durability)
            yield Trial(seed, f"{durability}: the run itself", recording.problem)
            for mode, problem in cuts(recording, rng, fast, count, full=durability == "full"):
                yield Trial(seed, f"{durability}: {mode}", problem)
            if durability == "full":
                (fast / "again").mkdir()
                again = record_again(recording, rng, fast / "again")
                for mode, problem in cuts(again, rng, fast, SECOND_CUTS):
                    yield Trial(seed, f"opening again: {mode}", problem)
