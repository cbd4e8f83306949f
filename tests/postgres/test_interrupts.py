"""Ctrl-C while threads share a commit on PostgreSQL: what was acknowledged is stored, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest
from tests.postgres.test_round_trips import together
from torture.interrupts import Interruption

import recollect
from recollect.errors import CommitInDoubtError
from recollect.memory import Memory
from recollect.stores.postgres import session, writer
from recollect.stores.postgres.writer import MemoryWriter
from recollect.stores.sql import group_writer
from recollect.stores.sql.group_writer import GroupWriter
from recollect.stores.write_queue import Ticket

pytestmark = [
    pytest.mark.postgres,
    # Where Python itself closes what is not used any more, an interruption is swallowed and reported by a warning.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
FILES = (group_writer.__file__, writer.__file__, session.__file__)
#: At most so many lines of these files are interrupted, of the 200 to 300 that a thread comes to.
MOST = 600


@pytest.fixture
def memory(address: str) -> Iterator[Memory]:
    with recollect.open(address, embedder="none", timeout=60) as memory:
        yield memory


def problems(memory: Memory, threads: int, stride: int) -> list[str]:
    """Interrupt one thread of some that share a commit, at one line after another, and return what was wrong then."""
    out: list[str] = []
    for at in range(1, MOST, stride):
        interruption = Interruption(at, files=FILES)
        expected: set[str] = set()

        def second(interruption: Interruption = interruption, at: int = at) -> None:
            with suppress(CommitInDoubtError):
                interruption.strikes(lambda: memory.remember(f"second {at}"))

        def other(name: str, at: int = at, expected: set[str] = expected) -> None:
            with suppress(CommitInDoubtError):  # the commit that they share was interrupted
                expected.add(memory.remember(f"{name} {at}").text)

        calls: list[Callable[[], object]] = [partial(other, "first"), second, partial(other, "third")]
        try:
            together(memory, calls[1:2] if threads == 1 else calls[:threads])
            expected.add(memory.remember(f"after {at}").text)
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            return [*out, f"{interruption.line}: {error!r}"]
        found = {record.text for record in memory.find()}
        if not expected <= found:
            out.append(f"{interruption.line}: {sorted(expected - found)} are not stored")
        if not interruption.line:
            break
    else:
        raise AssertionError("the thread comes to more lines")
    return out + memory.check()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_interrupted_thread_takes_no_other_along(memory: Memory, threads: int) -> None:
    memory.remember("before")
    assert problems(memory, threads, stride=3) == []


def test_control_a_part_that_counts_before_its_numbers_are_known_is_found(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted_first(self: MemoryWriter, ticket: Ticket) -> None:
        GroupWriter._end_part(self, ticket)
        interruptible()
        self._last = self._current

    def interruptible() -> None:
        raise KeyboardInterrupt

    memory.remember("before")
    with monkeypatch.context() as patch:
        patch.setattr(MemoryWriter, "_end_part", counted_first)
        with pytest.raises(KeyboardInterrupt):
            memory.remember("first")
    with pytest.raises(recollect.RecollectError):
        memory.remember("after")
