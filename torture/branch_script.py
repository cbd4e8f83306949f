"""A run of calls on the branches of a memory, determined by a seed: kills, power cuts and faults of the disk beside it.

The steps create branches, write to them, merge them by each rule, drop them, roll them back, and erase from any of
them. Each is one transaction, so what is left of it after a kill is all or nothing, in all branches together. The state
of a run is that of all branches, with all parts; a store in memory gives the expected ones.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from recollect import filters as f
from recollect.errors import BranchInUseError, BranchLimitError, RecollectError, UnknownRecordError
from recollect.memory import Memory, RecollectWarning
from recollect.memory.opening import open as open_memory
from recollect.stores.values import Durability
from torture import io_faults, kills
from torture.power import FULL_CUTS, NAME, NORMAL_CUTS, Recording, answers, cuts, small
from torture.recording import recorded
from torture.script import AGENT, Script, State, Step, state_of
from torture.trials import Trial, fast_folder, store_at

#: Records that the branches have in common have these ids, so that merges meet conflicts.
_IDS = 12
#: Steps of a run with faults: enough for several branches and merges.
FAULT_STEPS = 18


class BranchScript(Script):
    """The steps of a seed on branches."""

    def __init__(self, seed: int, count: int = 40) -> None:
        super().__init__(seed, 0)
        rng = random.Random(f"branches {seed}")
        self.steps = [*(_first(number) for number in range(4)), *(_step(rng, number) for number in range(4, count))]

    def memories(self, memory: Memory) -> list[Memory]:
        """All branches."""
        return [memory.on(each.name) for each in memory.branches()]

    def state_of(self, memory: Memory) -> State:
        """The state of all branches, with where they begin and what was merged."""
        listed = memory.branches()
        states = [state_of(memory.on(each.name)) for each in listed]
        roots = [root for each, state in zip(listed, states, strict=True) for root in (repr(each), *state.roots)]
        return State(tuple(seq for state in states for seq in state.seqs), tuple(roots))


def _first(number: int) -> Step:
    text = f"fact {number} of the harbour"
    return Step("remember", lambda memory: memory.remember(text, id=f"r{number}", if_exists="update"))


def _picked(memory: Memory, share: float) -> Memory:
    """One of the branches, by a share of one."""
    names = [each.name for each in memory.branches()]
    return memory.on(names[int(share * len(names))])


def _step(rng: random.Random, number: int) -> Step:
    one, other = rng.random(), rng.random()
    record_id, text = f"r{rng.randrange(_IDS)}", f"fact {rng.randrange(30)} of {number}"
    match rng.randrange(24):
        case 0 | 1 | 2:
            return Step("branch", lambda memory: _begin(_picked(memory, one), f"b{number}", other))
        case 3 | 4 | 5 | 6:
            rule = rng.choice(("ours", "theirs", "newest", "list"))
            return Step("merge", lambda memory: _merge(_picked(memory, one), _picked(memory, other), rule))
        case 7 | 20:
            return Step("drop", lambda memory: _drop(memory, _picked(memory, one)))
        case 8 | 9:
            redact = rng.random() < 0.4
            return Step("erase", lambda memory: _erase(_picked(memory, one), record_id, redact))
        case 10:
            where = f.contains(f"fact {number % 5}")
            return Step("erase where", lambda memory: _picked(memory, one).erase(where, parts=["records"]))
        case 11:
            return Step("rollback", lambda memory: _rollback(_picked(memory, one), other))
        case 12:
            return Step("reopen", reopens=True)
        case 13:
            return Step("ask", lambda memory: [_picked(memory, one).recall("which fact?"), memory.grep("fact")])
        case 14:
            return Step("forget", lambda memory: _picked(memory, one).forget(record_id, missing="ignore"))
        case 15:
            return Step("write a key", lambda memory: _picked(memory, one).keyed.write("berth", text.encode()))
        case 16:
            term = f"pier {number % 4}"
            return Step("term", lambda memory: _picked(memory, one).glossary.memorize(term, text, "place", AGENT))
        case 17:
            return Step("codes", lambda memory: _picked(memory, one).sdr.store_many([(text, {"n": number})]))
        case 18:
            texts = [f"{text}, part {part}" for part in range(9)]
            return Step("bulk", lambda memory: _picked(memory, one).remember_all(texts))
        case 19:
            return Step("compact", lambda memory: memory.compact())
        case _:
            return Step(
                "remember", lambda memory: _picked(memory, one).remember(text, id=record_id, if_exists="update")
            )


def _begin(memory: Memory, name: str, share: float) -> None:
    with suppress(BranchLimitError):  # too deep
        memory.branch(name, at=None if share < 0.5 else int(share * memory.seq))


def _merge(into: Memory, other: Memory, rule: str) -> None:
    if into.branch_name != other.branch_name:
        into.merge_branch(other.branch_name, on_conflict=rule)  # type: ignore[arg-type]


def _drop(memory: Memory, branch: Memory) -> None:
    if branch.branch_name != "main":
        with suppress(BranchInUseError):
            memory.drop_branch(branch.branch_name)


def _erase(memory: Memory, record_id: str, redact: bool) -> None:
    with suppress(UnknownRecordError):
        memory.erase(record_id, redact=redact)


def _rollback(memory: Memory, share: float) -> None:
    memory.rollback(int(share * (memory.seq + 1)), parts=["records"])


# Kills and faults


def killed(seed: int, folder: Path) -> Iterator[Trial]:
    """A run that ends well, and the same run, killed many times."""
    yield from kills.trials(seed, folder, BranchScript(seed))


def with_faults(seed: int, folder: Path) -> Iterator[Trial]:
    """A run without a fault, and runs with one each."""
    yield from io_faults.trials(seed, folder, BranchScript(seed, FAULT_STEPS))


# Power cuts


def without_power(seed: int, folder: Path) -> Iterator[Trial]:
    """Two recorded runs, and the power cut many times in each."""
    with fast_folder(folder) as fast:
        runs: tuple[tuple[Durability, int], ...] = (("full", FULL_CUTS), ("normal", NORMAL_CUTS))
        for durability, count in runs:
            rng = random.Random(f"{seed} {durability}")
            place = fast / durability
            place.mkdir()
            script = BranchScript(seed)
            recording = record(script, place, durability)
            yield Trial(seed, f"{durability}: the run itself", recording.problem)
            full, examine = durability == "full", Examiner(script)
            for mode, problem in cuts(recording, rng, fast, count, full=full, examine=examine):
                yield Trial(seed, f"{durability}: {mode}", problem)


def record(script: Script, folder: Path, durability: Durability = "full") -> Recording:
    """Record a run. Its states are those after each step, and a step is acknowledged by its number."""
    with small(), recorded(folder) as recorder:
        memory = script.memory(store_at(folder / NAME, durability=durability))
        problem = ""
        with script.model() as model:
            states = [script.state_of(model)]
            try:
                for number, step in enumerate(script.steps, 1):
                    script.set_clock(number)
                    if step.reopens:
                        memory.close()
                        memory = script.memory(store_at(folder / NAME, durability=durability))
                    elif step.do is not None:
                        step.do(memory)
                        step.do(model)
                    recorder.acknowledge(number)
                    states.append(script.state_of(model))
                    if script.state_of(memory) != states[-1]:
                        problem = problem or f"after step {number} ({step.name}) the branches are not the model's"
                problem = "; ".join(filter(None, (problem, *memory.check())))
            finally:
                memory.close()
    return Recording(recorder.events, states, problem)


class Examiner:
    """Returns the fault of the store at a path, "" for none: it must have one of the states from one on."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def __call__(self, path: Path, states: list[State], acknowledged: int) -> str:
        if not path.exists():
            return "the file is gone" if acknowledged else ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RecollectWarning)
                return self._problem(path, states, acknowledged)
        except (RecollectError, RecollectWarning) as error:
            return f"{type(error).__name__}: {error}"

    def _problem(self, path: Path, states: list[State], acknowledged: int) -> str:
        script = self._script
        with open_memory(path, embedder="none") as memory:
            if script.state_of(memory) not in states[acknowledged:]:
                return f"the branches are as after none of the steps from {acknowledged} on"
            if problems := memory.check():
                return "; ".join(problems)
            found = [answers(each) for each in script.memories(memory)]
        with open_memory(path, embedder="none") as memory:
            if [answers(each) for each in script.memories(memory)] != found:
                return "a branch answers otherwise when the store is opened again"
            for each in script.memories(memory):
                each.remember("after the power came back", id="after", if_exists="update")
            return "; ".join(memory.check())
