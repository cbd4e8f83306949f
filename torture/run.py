"""The torture: every way to damage a store, many times, each followed by a check of the result.

    python -m torture [--short] [--seed N] [--part NAME ...]      make torture, make torture-short
    python -m torture --part kill --seeds 17,42                   these trials again
    python -m torture --encrypted                                 on encrypted stores

A part is a module with `trials(seed, folder)`. The seeds of a run follow from its own seed, so a run can be repeated as
a whole, and a trial by itself. The last line is "N passed, N failed"; the exit code is 1 if any failed.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

from recollect.stores.sealing.secrets import SECRET_VARIABLE
from torture.trials import Trial, Trials


class Part(NamedTuple):
    """A part of the torture.

    module  has its `trials`
    short   how many seeds the short form tries; long, the long one
    alone   whether a trial wants all processors to itself
    trials  the name of the function, if a module has several
    """

    module: str
    short: int
    long: int
    alone: bool = False
    trials: str = "trials"


#: So many failures of a part are named; the rest are counted.
NAMED = 20
PARTS: dict[str, Part] = {
    "kill": Part("torture.kills", short=8, long=170),
    "erase": Part("torture.erasing", short=2, long=60),
    "power": Part("torture.power", short=4, long=45),
    "faults": Part("torture.io_faults", short=6, long=60),
    "branch-kill": Part("torture.branch_script", short=2, long=60, trials="killed"),
    "branch-power": Part("torture.branch_script", short=1, long=20, trials="without_power"),
    "branch-faults": Part("torture.branch_script", short=1, long=30, trials="with_faults"),
    "branch-concurrency": Part("torture.branch_concurrency", short=1, long=10, alone=True),
    "branch-postgres": Part("torture.branch_concurrency", short=0, long=10, alone=True, trials="on_postgres"),
    "interrupt": Part("torture.interrupts", short=6, long=60),
    "concurrency": Part("torture.concurrency", short=1, long=10, alone=True),
    "postgres": Part("torture.concurrency", short=0, long=10, alone=True, trials="on_postgres"),
    "damage": Part("torture.damage", short=2, long=16),
    "foreign": Part("torture.foreign", short=2, long=30),
    "opening": Part("torture.opening", short=1, long=12, alone=True),
    "migration": Part("torture.migrating", short=5, long=16),
    "mcp-kill": Part("torture.mcp", short=2, long=36),
    "mcp-shared": Part("torture.mcp", short=1, long=4, alone=True, trials="shared"),
    "mcp-minute": Part("torture.mcp", short=0, long=1, alone=True, trials="minute"),
    "serve-kill": Part("torture.serving", short=2, long=40),
    "input": Part("torture.fuzzing", short=25, long=300),
    "coverage": Part("torture.coverage", short=0, long=8),
}


def trials_of(name: str) -> Trials:
    """The trials of a part."""
    part = PARTS[name]
    trials: Trials = getattr(importlib.import_module(part.module), part.trials)
    return trials


def run_seed(name: str, seed: int) -> list[Trial]:
    """All trials of a seed. What is raised there is a failed trial, too: nothing ends the run."""
    with tempfile.TemporaryDirectory(prefix=f"recollect-{name}-") as folder:
        done: list[Trial] = []
        try:
            done.extend(trials_of(name)(seed, Path(folder)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this trial's
            import traceback

            at = traceback.extract_tb(error.__traceback__)[-1]
            done.append(Trial(seed, "raised", f"{type(error).__name__}: {error} ({at.name}, line {at.lineno})"))
        return done


def seeds_of(run_seed_: int, name: str, count: int) -> list[int]:
    """The seeds of a part in a run."""
    rng = random.Random(f"{run_seed_} {name}")
    return [rng.randrange(2**31) for _ in range(count)]


def run_part(name: str, seeds: Sequence[int], run_one: Callable[[str, int], list[Trial]] = run_seed) -> Iterator[Trial]:
    """The trials of many seeds, on all processors."""
    workers = 1 if PARTS[name].alone else min(len(seeds), os.cpu_count() or 1)
    # Forked children of a process with threads could hang: each worker begins afresh, and forks while it has none.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=faulthandler.enable) as pool:
        running = {seed: pool.submit(run_one, name, seed) for seed in seeds}
        for seed, future in running.items():
            try:
                yield from future.result()
            except BrokenProcessPool:  # the pool names neither the seed nor the signal; the worker prints where it was
                yield Trial(seed, "unfinished", "a worker process of the pool died, of this seed or of one beside it")


def _shares(wheres: Counter[str]) -> Iterator[tuple[str, int]]:
    """How often each moment was met; before the moments of a group ("GROUP: moment") how often, and its share."""
    groups = Counter[str]()
    for where, times in wheres.items():
        if ": " in where:
            groups[where.partition(": ")[0]] += times
    told = set()
    for where, times in sorted(wheres.items()):
        group = where.partition(": ")[0]
        if group in groups and group not in told:
            told.add(group)
            yield f"{group} ({groups[group] / sum(groups.values()):.0%})", groups[group]
        yield where, times


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--short", action="store_true", help="the short form, for every change")
    parser.add_argument("--seed", type=int, default=None, help="of the run; default: another each time")
    parser.add_argument("--part", action="append", choices=sorted(PARTS), help="only this one; may be repeated")
    parser.add_argument("--encrypted", action="store_true", help="on encrypted stores")
    parser.add_argument("--seeds", help="just these seeds, with commas between them; needs one --part")
    chosen = parser.parse_args(arguments)
    if chosen.seeds and len(chosen.part or ()) != 1:
        parser.error("--seeds needs one --part")
    if chosen.encrypted:
        with tempfile.TemporaryDirectory() as folder:
            os.environ[SECRET_VARIABLE] = os.path.join(folder, "secret")
            Path(folder, "secret").write_text(os.urandom(32).hex())
            return _run(chosen)
    return _run(chosen)


def _run(chosen: argparse.Namespace) -> int:
    seed = random.SystemRandom().randrange(2**31) if chosen.seed is None else chosen.seed
    stores = " on encrypted stores" if chosen.encrypted else ""
    print(f"seed {seed}, {'short' if chosen.short else 'long'} form{stores}", flush=True)
    passed = failed = 0
    for name in chosen.part or PARTS:
        part = PARTS[name]
        if chosen.seeds:
            seeds = [int(each) for each in chosen.seeds.split(",")]
        else:
            seeds = seeds_of(seed, name, part.short if chosen.short else part.long)
        if not seeds:
            continue
        begun, wheres, wrong = time.monotonic(), Counter[str](), 0
        for trial in run_part(name, seeds):
            wheres[trial.where] += 1
            if trial.problem:
                wrong += 1
            if trial.problem and wrong <= NAMED:
                print(f"FAILED {name} {trial.where}: {trial.problem}")
                print(f"       again: python -m torture --part {name} --seeds {trial.seed}")
        count = sum(wheres.values())
        print(f"{name}: {count} trials, {wrong} failed, {time.monotonic() - begun:.0f} s")
        for where, times in _shares(wheres):
            print(f"    {times:6d}  {where}")
        sys.stdout.flush()
        passed, failed = passed + count - wrong, failed + wrong
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
