"""Bad input guided by coverage: inputs that reach new code are kept and mutated further, by atheris (libFuzzer).

    python -m torture --part coverage --seeds 1,2,3

A trial is one target for some seconds, in its own process, whose code is instrumented at import. On systems and Python
versions without atheris a trial reports that; there `fuzzing` is the alternative.
"""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from torture.fuzz_targets import targets
from torture.fuzzing import tried
from torture.trials import Trial

#: How long a target is fed for each seed.
SECONDS = 30
#: Importing is what instruments, so nothing of ours may be imported before.
_RUN = """
import sys, atheris
with atheris.instrument_imports(include=["recollect"]):
    from torture import coverage
coverage.feed(atheris, *sys.argv[1:])
"""


def feed(atheris: object, name: str, folder: str, *options: str) -> None:
    """Feed a target until the time is over, or a failure ends the process. Called in a process of its own."""
    target = targets()[name]
    corpus, work = Path(folder) / "corpus", Path(folder) / "work"
    corpus.mkdir()
    work.mkdir()
    for number, example in enumerate(target.examples):
        (corpus / str(number)).write_bytes(example)

    def one(data: bytes) -> None:
        _, problem = tried(target, data, work)
        if problem:
            raise AssertionError(problem)

    # In the folder: where libFuzzer leaves the input that failed.
    os.chdir(folder)
    atheris.Setup(["recollect", *options, "-max_len=20000", "-rss_limit_mb=4096", str(corpus)], one)  # type: ignore[attr-defined]
    atheris.Fuzz()  # type: ignore[attr-defined]


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """One target, for some seconds."""
    name = random.Random(seed).choice(sorted(targets()))
    if importlib.util.find_spec("atheris") is None:
        yield Trial(seed, "atheris is not installed here: not led by coverage")
        return
    options = (f"-max_total_time={SECONDS}", f"-seed={seed}")
    command = [sys.executable, "-c", _RUN, name, str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    problem = ""
    if done.returncode:
        raised = [line for line in done.stderr.splitlines() if "AssertionError" in line or "ERROR:" in line]
        problem = "; ".join(raised[:3]) or done.stderr[-500:]
    yield Trial(seed, name, problem)
