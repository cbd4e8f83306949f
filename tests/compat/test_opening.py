"""The opening of memories for adapters: once per process, closed by the last user."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import recollect
from recollect.compat.opening import opened
from recollect.errors import ClosedError, InvalidArgumentError


def test_two_users_of_a_place_share_a_memory_until_the_last_has_closed_it(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    one, other = opened(tmp_path / "a.db"), opened(str(tmp_path / "link.db"))
    assert one.memory is other.memory
    one.close()
    one.close()
    other.memory.remember("it is open", id="a")
    other.close()
    with pytest.raises(ClosedError):
        other.memory.get("a")
    third = opened(tmp_path / "a.db")
    assert third.memory is not one.memory
    assert third.memory.get("a") is not None
    third.close()


def test_a_relative_path_is_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, other = opened("a.db"), opened(tmp_path / "a.db")
    assert one.memory is other.memory
    one.close()
    other.close()


def test_memories_in_memory_are_apart() -> None:
    one, other = opened(":memory:"), opened(":memory:")
    assert one.memory is not other.memory
    one.close()
    other.memory.remember("it is open")
    other.close()


def test_a_memory_that_is_passed_stays_open() -> None:
    with recollect.open(":memory:") as memory:
        opened(memory).close()
        memory.remember("it is open")


def test_a_place_is_not_open_with_two_sets_of_options(tmp_path: Path) -> None:
    one = opened(tmp_path / "a.db", language="de")
    with pytest.raises(InvalidArgumentError, match="differ"):
        opened(tmp_path / "a.db")
    same = opened(tmp_path / "a.db", language="de")
    assert same.memory is one.memory
    one.close()
    same.close()
    opened(tmp_path / "a.db").close()


def test_the_error_of_other_options_shows_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with recollect.open(":memory:") as memory:
        monkeypatch.setattr(recollect, "open", lambda path, **options: memory)
        address = "postgresql://ana:secret@localhost/x"
        entry = opened(address)
        with pytest.raises(InvalidArgumentError) as caught:
            opened(address, read_only=True)
        entry.close()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("wrong", [None, 3, b"a.db", [":memory:"]])
def test_what_is_no_place_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgumentError, match="memory"):
        opened(wrong)  # type: ignore[arg-type]


def test_options_need_a_place() -> None:
    with recollect.open(":memory:") as memory, pytest.raises(InvalidArgumentError, match="open already"):
        opened(memory, language="de")


def test_what_cannot_be_opened_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no store")
    for _ in range(2):
        with pytest.raises(recollect.errors.NotAStoreError):
            opened(tmp_path / "a.db")


def test_many_threads_open_and_close_one_place(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def use(number: int) -> None:
        try:
            for turn in range(5):
                one = opened(tmp_path / "a.db")
                one.memory.remember(f"{number} {turn}", id=f"{number} {turn}")
                one.close()
        except BaseException as error:  # noqa: BLE001 - it is reported
            errors.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with recollect.open(tmp_path / "a.db") as memory:
        assert memory.count() == 30


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_opens_the_place_itself(tmp_path: Path) -> None:
    parent = opened(tmp_path / "a.db")
    parent.memory.remember("of the parent", id="a")
    child = os.fork()
    if not child:
        status = 1
        try:
            own = opened(tmp_path / "a.db")
            parent.close()  # which is not the child's
            own.memory.remember("of the child", id="b")
            own.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert parent.memory.get("b") is not None
    parent.close()
