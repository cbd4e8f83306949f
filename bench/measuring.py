"""Tools of the measurements: one core, percentiles, the memory of a process, and the versions of what was measured."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import numpy

import recollect

#: Libraries that start threads of their own ask these; one core is one thread.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ROOT = Path(__file__).parent.parent
#: The cores that this process might use when it started; none where the system does not tell.
CORES = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


def one_core() -> None:
    """Pin this process, and those that it starts, to the last core that it may use."""
    if hasattr(os, "sched_setaffinity"):  # Linux; elsewhere the figures are of whatever core there is
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


@contextmanager
def first_core() -> Iterator[None]:
    """Pin what is started in the block to the first core that this process might use when it started."""
    if not CORES:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES[:1])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def milliseconds(call: Callable[..., object], *arguments: object) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    call(*arguments)
    return (time.perf_counter() - began) * 1000


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of all do not exceed.

    >>> percentile([4.0, 1.0, 3.0, 2.0], 0.5), percentile([1.0, 2.0, 3.0], 0.99)
    (2.0, 3.0)
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """The figures that every latency is told in."""
    return {f"p{share}_ms": percentile(values, share / 100) for share in (50, 95, 99)}


def resident_bytes() -> int:
    """The resident memory of this process, as Linux tells it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not tell the resident memory in /proc/self/status")


def in_fresh_process(code: str, *arguments: str) -> str:
    """What a Python process of its own prints, which runs `code` with the repository's modules at hand."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def repeated(call: Callable[[], float], at_most: int, seconds: float) -> list[float]:
    """What a slow measurement gives, as often as fits into so many seconds, and once in any case."""
    began = time.perf_counter()
    out = [call()]
    while len(out) < at_most and (time.perf_counter() - began) * (len(out) + 1) / len(out) < seconds:
        out.append(call())
    return out


@contextmanager
def told(what: str) -> Iterator[None]:
    """Say on stderr what is being prepared, and how long it took: preparing is never part of a figure."""
    print(f"{what} ...", end="", file=sys.stderr, flush=True)
    began = time.perf_counter()
    yield
    print(f" {time.perf_counter() - began:.1f} s", file=sys.stderr)


def versions() -> dict[str, str]:
    """What a figure was measured with, and what else the machine did.

    An interpreter that was built without optimisations takes up to a third longer, and some builds do not tell: so the
    time of a fixed loop is stated, too.
    """
    stated = sysconfig.get_config_var("CONFIG_ARGS") or ""
    options = [each for each in ("--enable-optimizations", "--with-lto", "--with-pydebug") if each in stated]
    return {
        "recollect": recollect.__version__,
        "python": platform.python_version(),
        "python_build": f"{platform.python_compiler()}, {' '.join(options) or 'no options'}",
        "python_loop_ms": f"{min(milliseconds(_loop) for _ in range(9)):.1f}",
        "sqlite": apsw.sqlite_lib_version(),
        "numpy": numpy.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": ", ".join(f"{each:.2f}" for each in (*LOAD, *_load())) + " (of a minute: before and after)",
    }


def _loop() -> int:
    """Do what interpreters do, always the same."""
    found: dict[str, int] = {}
    for number in range(50_000):
        key = f"k{number % 100}"
        found[key] = found.get(key, 0) + number
    return len(found)


def _load() -> tuple[float, ...]:
    """The mean number of processes that wanted a core in the last minute; empty where the system does not tell."""
    return os.getloadavg()[:1] if hasattr(os, "getloadavg") else ()


#: The load of the machine when this process started.
LOAD = _load()


def processor_seconds(command: Sequence[str]) -> float:
    """The processor time of a process, from its start to its end."""
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime


#: The unit of starts: a process that imports NumPy and ends.
IMPORT_NUMPY = (sys.executable, "-c", "import numpy")


def shown(figures: dict[str, Any], indent: int = 0) -> Iterator[str]:
    """The lines of a result for people."""
    for name, value in figures.items():
        if isinstance(value, dict):
            yield f"{' ' * indent}{name}"
            yield from shown(value, indent + 2)
        else:
            number = f"{value:.2f}" if isinstance(value, float) else str(value)
            yield f"{' ' * indent}{name:{34 - indent}}{number:>14}"
