"""A pytest plugin that runs the tests of Anthropic's file system tool with ours in its place.

What a test reads and writes below `base_path` it reads and writes through the tool.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.compat.anthropic import AsyncRecollectMemoryTool, RecollectMemoryTool

_tools: dict[str, RecollectMemoryTool] = {}


class _File:
    """A path of a test below `memory_root`, whose file is in the memory."""

    def __init__(self, tool: RecollectMemoryTool, path: str) -> None:
        self._tool = tool
        self._path = path

    def __truediv__(self, name: str) -> _File:
        return _File(self._tool, f"{self._path}/{name}")

    def write_bytes(self, data: bytes) -> None:
        self._tool.call({"command": "create", "path": self._path, "file_text": data.decode()})

    def read_bytes(self) -> bytes:
        text = self._tool._files.text(self._path)
        assert text is not None
        return text.encode()

    def is_dir(self) -> bool:
        return self._tool._files.is_folder(self._path)

    def mkdir(self, *, parents: bool, exist_ok: bool) -> None:
        """Do nothing: a folder exists while there is a file in it."""


class _AwaitedFolder:
    """`memory_root` of the asynchronous tool."""

    def __init__(self, base_path: str, folder: _File) -> None:
        self._base_path = base_path
        self._folder = folder

    def __str__(self) -> str:
        return self._base_path

    async def is_dir(self) -> bool:
        return self._folder.is_dir()


class Tool(RecollectMemoryTool):
    """Our tool with the constructor and the attributes of the file system tool."""

    def __init__(self, base_path: str) -> None:
        super().__init__(":memory:", embedder="none")
        self.base_path = base_path
        self.memory_root = _File(self, "/memories")
        _tools[base_path] = self


class AsyncTool(AsyncRecollectMemoryTool):
    """Our asynchronous tool with the constructor and the attributes of the file system tool."""

    def __init__(self, base_path: str) -> None:
        super().__init__(":memory:", embedder="none")
        self.base_path = base_path
        self.memory_root = _AwaitedFolder(base_path, _File(self._tool, "/memories"))
        _tools[base_path] = self._tool


def snapshot(base_path: str) -> dict[str, str]:
    """Return the texts of all files by their paths, as the tests read them from the file system."""
    files = _tools[base_path]._files
    texts = {entry.path: files.text(entry.path) for entry in files.entries("/memories")}
    return {path.removeprefix("/"): text for path, text in texts.items() if text is not None}


def path(text: str, *names: str) -> _File | Path:
    """Return what the tests make of `str(memory_root)`, or a path of the file system."""
    return _File(_tools[text], "/memories") if text in _tools and not names else Path(text, *names)


@pytest.fixture(autouse=True)
def _ours(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put our tools in the place of those that the tests import."""
    monkeypatch.setattr(request.module, "BetaLocalFilesystemMemoryTool", Tool)
    monkeypatch.setattr(request.module, "BetaAsyncLocalFilesystemMemoryTool", AsyncTool)
    monkeypatch.setattr(request.module, "get_directory_snapshot", snapshot)
    monkeypatch.setattr(request.module, "Path", path)
    yield
    while _tools:
        _tools.popitem()[1].close()
