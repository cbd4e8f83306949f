"""Eight processes of eight threads each on one file, and what the harness must not be blind to."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import fresh
from tests.examples import FULL, in_torture
from torture.run import run_part

PROBLEMS = """
from torture.concurrency import trials
print("; ".join(trial.problem for trial in trials(1, folder) if trial.problem))
"""


@pytest.mark.promise("concurrent.linearizable")
@pytest.mark.promise("concurrent.log")
@in_torture
def test_many_processes_and_threads_lose_nothing_and_see_one_history() -> None:
    done = list(run_part("concurrency", [1]))
    assert [trial for trial in done if trial.problem] == []
    assert sum("linearizable" in trial.where for trial in done) == 8


CONTROLS = {
    "a counter raised without a condition": (
        """
        def careless(self, counter):
            record = self._memory.get(counter)
            self._memory.update(counter, content=str(c._count(record) + 1))
            self.lines.append({"raised": counter})
        c.Worker._raise_counter = careless
        """,
        "counter",
    ),
    "an expectation that a state as asked for satisfies": (
        """
        from recollect.memory import Memory
        from recollect.errors import ConflictError
        real = Memory.update
        def update(self, id, **changes):
            try:
                return real(self, id, **changes)
            except ConflictError as error:
                if error.satisfied:
                    return self.get(id)
                raise
        Memory.update = update
        """,
        "counter",
    ),
    "a pool that trusts a flag": (
        """
        from recollect.stores.sqlite import store
        store.has_snapshot = lambda connection: connection.in_transaction
        c.LONGEST_S = 5  # calls never end that wait for a state which their own snapshot hides
        """,
        "a process failed",
    ),
    "a read that gives what was there before": (
        """
        from recollect.memory import Memory
        real, seen = Memory.get, {}
        Memory.get = lambda self, id: seen.setdefault(id, real(self, id)) if id in c.REGISTERS else real(self, id)
        """,
        "is not",
    ),
    "a pair that is written in two commits": (
        """
        from contextlib import contextmanager
        from recollect.memory import Memory
        Memory.batch = contextmanager(lambda self, **given: iter([self]))
        """,
        "in half",
    ),
    "a writer that does not wait": ("c.TIMEOUT_S = 0.0", "StoreBusyError"),
}


@pytest.mark.parametrize("name", CONTROLS if FULL else list(CONTROLS)[:1])
def test_the_harness_notices(tmp_path: Path, name: str) -> None:
    broken, found = CONTROLS[name]
    lines = [line[8:] if line.startswith("        ") else line for line in broken.splitlines()]
    code = "import torture.concurrency as c\nc.PROCESSES = c.THREADS = 4\n" + "\n".join(lines) + PROBLEMS
    # (Some break the rules only if two calls meet, which a busy machine may prevent in a run.)
    folders = [tmp_path / str(number) for number in range(4)]
    for folder in folders:
        folder.mkdir()
    assert any(found in fresh.run(code, folder) for folder in folders)
