"""Edits at the same time: both are kept, or one gets an error, between threads, event loops and processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("recollect.compat.anthropic", exc_type=ImportError)

from anthropic.lib.tools import ToolError, _beta_builtin_memory_tool

import recollect
from recollect.compat.anthropic import AsyncRecollectMemoryTool, RecollectMemoryTool
from recollect.compat.files import FileChanges

NOTE = "/memories/plan.md"
EDITS = [("day: Monday", "day: Friday"), ("seat: aisle", "seat: window")]


def replace(tool: Any, old: str, new: str) -> str:
    return str(tool.call({"command": "str_replace", "path": NOTE, "old_str": old, "new_str": new}))


def create(tool: Any, text: str) -> None:
    tool.call({"command": "create", "path": NOTE, "file_text": text})


def lines(tool: Any) -> list[str]:
    return [line[7:] for line in str(tool.call({"command": "view", "path": NOTE})).split("\n")[1:]]


def test_control_the_tool_of_the_sdk_loses_an_edit_between_its_read_and_its_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = _beta_builtin_memory_tool.BetaLocalFilesystemMemoryTool(base_path=str(tmp_path))
    create(tool, "day: Monday\nseat: aisle")
    both_have_read = threading.Barrier(2)
    write = _beta_builtin_memory_tool._atomic_write_file

    def write_after_both_have_read(target_path: Path, content: str) -> None:
        both_have_read.wait()
        write(target_path, content)

    monkeypatch.setattr(_beta_builtin_memory_tool, "_atomic_write_file", write_after_both_have_read)
    with ThreadPoolExecutor() as threads:
        answers = list(threads.map(lambda edit: replace(tool, *edit), EDITS))
    assert all("has been edited" in answer for answer in answers)  # both report success
    assert sorted(lines(tool)) in (["day: Friday", "seat: aisle"], ["day: Monday", "seat: window"])  # one is lost


def test_an_edit_between_the_read_and_the_write_of_another_is_kept(
    tool: RecollectMemoryTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tool, "day: Monday\nseat: aisle")
    write = FileChanges.write
    begun: list[threading.Thread] = []

    def write_after_the_other_has_begun(self: FileChanges, path: str, text: str) -> None:
        if not begun:
            begun.append(threading.Thread(target=replace, args=(tool, *EDITS[1])))
            begun[0].start()  # it waits for the lock, or has it next
        write(self, path, text)

    monkeypatch.setattr(FileChanges, "write", write_after_the_other_has_begun)
    replace(tool, *EDITS[0])
    begun[0].join()
    assert lines(tool) == ["day: Friday", "seat: window"]


def test_edits_of_many_threads_are_all_kept(place: recollect.Memory) -> None:
    threads = 6
    tools = [RecollectMemoryTool(place, user="ana") for _ in range(threads)]
    create(tools[0], "\n".join(f"line {n}" for n in range(threads)))
    together = threading.Barrier(threads)

    def edit(n: int) -> str:
        together.wait()
        return replace(tools[n], f"line {n}", f"done {n}")

    with ThreadPoolExecutor(threads) as pool:
        assert all("has been edited" in answer for answer in pool.map(edit, range(threads)))
    assert lines(tools[0]) == [f"done {n}" for n in range(threads)]


def test_of_two_edits_of_the_same_text_one_gets_an_error(place: recollect.Memory) -> None:
    tools = [RecollectMemoryTool(place, user="ana") for _ in range(2)]
    create(tools[0], "day: Monday")
    together = threading.Barrier(2)

    def edit(n: int) -> str:
        together.wait()
        try:
            return replace(tools[n], "Monday", f"day {n}")
        except ToolError as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(edit, range(2)))
    assert sorted("did not appear verbatim" in answer for answer in answers) == [False, True]
    winner = next(n for n, answer in enumerate(answers) if "has been edited" in answer)
    assert lines(tools[0]) == [f"day: day {winner}"]


def test_of_two_files_with_one_path_one_is_created(place: recollect.Memory) -> None:
    tools = [RecollectMemoryTool(place, user="ana") for _ in range(2)]
    together = threading.Barrier(2)

    def attempt(n: int) -> bool:
        together.wait()
        path = (NOTE, f"{NOTE}/below")[n]  # a file, and a folder of the same name
        try:
            tools[n].call({"command": "create", "path": path, "file_text": "x"})
        except ToolError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(attempt, range(2))) == [False, True]


EDITOR = """
import sys
from recollect.compat.anthropic import RecollectMemoryTool
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with RecollectMemoryTool(path, user="ana", embedder="none") as tool:
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(count):
        command = {"command": "insert", "path": "/memories/plan.md", "insert_line": 0, "insert_text": f"{name} {n}"}
        tool.call(command)
"""


def test_edits_of_two_processes_are_all_kept(tmp_path: Path) -> None:
    path, count = tmp_path / "agent.db", 10
    with RecollectMemoryTool(path, user="ana", embedder="none") as tool:
        create(tool, "")
    editors = [
        subprocess.Popen(
            [sys.executable, "-c", EDITOR, str(path), name, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    for editor in editors:
        assert editor.stdout is not None
        assert editor.stdout.readline() == "ready\n"
    for editor in editors:
        assert editor.stdin is not None
        editor.stdin.write("go\n")
        editor.stdin.flush()
    for editor in editors:
        editor.communicate()
        assert editor.returncode == 0
    with RecollectMemoryTool(path, user="ana", embedder="none") as tool:
        assert sorted(lines(tool)) == sorted(["", *(f"{name} {n}" for name in "ab" for n in range(count))])


def test_an_edit_that_has_begun_is_completed_if_its_caller_is_cancelled(
    place: recollect.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    write = FileChanges.write

    def wait_and_write(self: FileChanges, path: str, text: str) -> None:
        begun.set()
        go_on.wait()
        write(self, path, text)

    async def cancelled() -> None:
        tool = AsyncRecollectMemoryTool(place, user="ana")
        edit = {"command": "str_replace", "path": NOTE, "old_str": "Monday", "new_str": "Friday"}
        task = asyncio.create_task(tool.call(edit))
        await asyncio.to_thread(begun.wait)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await tool.close()

    with RecollectMemoryTool(place, user="ana") as tool:
        create(tool, "day: Monday")
        monkeypatch.setattr(FileChanges, "write", wait_and_write)
        asyncio.run(cancelled())
        assert lines(tool) == ["day: Friday"]


def test_an_error_between_the_read_and_the_write_leaves_no_lock(
    tool: RecollectMemoryTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: FileChanges, path: str, text: str) -> None:
        raise KeyboardInterrupt

    create(tool, "day: Monday")
    with monkeypatch.context() as patched:
        patched.setattr(FileChanges, "write", fail)
        with pytest.raises(KeyboardInterrupt):
            replace(tool, "Monday", "Friday")
    assert lines(tool) == ["day: Monday"]
    replace(tool, "Monday", "Friday")


def test_one_tool_serves_several_event_loops(place: recollect.Memory) -> None:
    loops = 3
    tool = AsyncRecollectMemoryTool(place, user="ana")

    async def edit(part: int) -> None:
        texts = (f"{part}-{n}" for n in range(3))
        commands = [
            {"command": "insert", "path": NOTE, "insert_line": 0, "insert_text": text, "note": part} for text in texts
        ]
        await asyncio.gather(*(tool.call(command) for command in commands))

    asyncio.run(awaited(lambda: tool.call({"command": "create", "path": NOTE, "file_text": ""})))
    with ThreadPoolExecutor(loops) as threads:
        list(threads.map(lambda part: asyncio.run(edit(part)), range(loops)))
    with RecollectMemoryTool(place, user="ana") as reader:
        assert sorted(lines(reader)) == sorted(["", *(f"{part}-{n}" for part in range(loops) for n in range(3))])
    asyncio.run(tool.close())


async def awaited(call: Callable[[], Any]) -> Any:
    return await call()
