"""The memory tool of Anthropic's SDK (`memory_20250818`), whose files are records of a memory.

    from anthropic import Anthropic
    from recollect.compat.anthropic import RecollectMemoryTool

    with RecollectMemoryTool("agent.db", user="ana") as tool:
        runner = Anthropic().beta.messages.tool_runner(
            model=MODEL, max_tokens=1024, tools=[tool], messages=[{"role": "user", "content": "I like coffee"}]
        )
        runner.until_done()

Claude reads and writes files below /memories. Each command that changes them is one commit, with what it reads, so two
edits at the same time are both kept, or one gets an error. The files of a user are a scope: no command reaches those of
another user. `recall` finds the notes, `history` and `revert` show and undo what the model did, and `erase` removes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from recollect.compat.files import FileChanges, FileEntry, Files, PathError
from recollect.compat.opening import Closing, Place, opened
from recollect.compat.threads import completed
from recollect.errors import ClosedError, InvalidRecordError, MissingExtraError, QuotaError, RejectedError

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
except ImportError:
    raise MissingExtraError("recollect.compat.anthropic", "anthropic", "anthropic") from None

__all__ = ["AsyncRecollectMemoryTool", "RecollectMemoryTool"]

ROOT = "/memories"
MAX_LINES = 999_999
#: How many lines before and after a change are shown.
CONTEXT_LINES = 2
_UNITS = "BKMG"
#: What a command must have, besides its name.
_REQUIRED = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}


class RecollectMemoryTool(Closing, BetaAbstractMemoryTool):
    """Files of Claude's memory tool, stored as records. Can be used from several threads.

    The commands raise ToolError, whose text the model gets, if a command cannot be executed or the memory refuses the
    text (its limits, its quota, its policies). A refused command changes nothing. Other errors, such as a StoreError,
    are raised as they are.

    Args:
        memory: A memory, also of `recollect.connect`; a path or address that `recollect.open` takes; or the address of
            a server.
        user: The user whose files they are; no command reaches those of others. None: files of no user, or of the
            scope of the memory.
        agent: The agent whose files they are; None as for `user`.
        cache_control: The cache control of the tool's definition, for the Messages API.
        **options: Arguments of `recollect.open`; only for a path.

    Raises:
        InvalidArgumentError: An argument is invalid.
        RecollectError: What `recollect.open` or `recollect.connect` raises.

    Cost:
        A command that changes files is one durable commit. `view` of a file reads one record. See `Files` for folders.
    """

    def __init__(
        self,
        memory: Place,
        *,
        user: str | None = None,
        agent: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        **options: Any,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._opened = opened(memory, **options)
        self._stored = Files(self._opened.scoped(user=user, agent=agent), actor="anthropic", root=ROOT)

    @property
    def _files(self) -> Files:
        if self._opened.closed:
            raise ClosedError("the memory tool")
        return self._stored

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return the lines of a file with their numbers, or list a folder, two levels deep and without hidden names.

        The size of a folder is that of all files below it. A range has a first and a last line, from 1; a last line of
        -1 is the end of the file.

        Raises:
            ToolError: The path is invalid or does not exist, or the file has more than 999,999 lines.
        """
        _check(command)
        path = self._path(command.path)
        text = self._files.text(path)
        if text is None:
            return self._listing(command.path, path)
        lines = text.split("\n")
        if len(lines) > MAX_LINES:
            raise ToolError(f"File {command.path} exceeds maximum line limit of {MAX_LINES:,} lines.")
        first, last = 1, len(lines)
        if command.view_range and len(command.view_range) == 2:
            first, end = max(1, command.view_range[0]), command.view_range[1]
            last = last if end == -1 else max(0, end)
        return f"Here's the content of {command.path} with line numbers:\n{_numbered(lines, first, last)}"

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Store a new file. The folders above it exist from then on.

        Raises:
            ToolError: The path is invalid or exists, a folder above it is a file, or the text is refused.
        """
        _check(command)
        path = self._path(command.path)
        with self._change("create") as change:
            try:
                change.create(path, command.file_text)
            except FileExistsError:
                raise ToolError(f"File {command.path} already exists") from None
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file, and return the lines around the change.

        Raises:
            ToolError: There is no such file, the text does not occur or occurs more than once, or the new text is
                refused.
        """
        _check(command)
        path, old = self._path(command.path), command.old_str
        with self._change("str_replace") as change:
            text = _text(change, path, command.path)
            if old == "" or old not in text:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
                )
            if text.count(old) > 1:
                lines = ", ".join(map(str, _lines_of(old, text)))
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
                    "Please ensure it is unique"
                )
            before, _, after = text.partition(old)
            text = f"{before}{command.new_str or ''}{after}"
            change.write(path, text)
        line = before.count("\n") + 1
        around = _numbered(text.split("\n"), max(1, line - CONTEXT_LINES), line + CONTEXT_LINES)
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{around}"

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert a text as lines of their own after a line of a file, 0 for its beginning.

        Line ends at the end of the text are not inserted, and the file ends with one afterwards.

        Raises:
            ToolError: There is no such file or line, or the new text is refused.
        """
        _check(command)
        path = self._path(command.path)
        with self._change("insert") as change:
            lines = _text(change, path, command.path).split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            text = "\n".join(lines)
            change.write(path, text if text.endswith("\n") else f"{text}\n")
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with all that is below it. The history stays, until it is erased.

        Raises:
            ToolError: The path is invalid, is /memories itself, or does not exist.
        """
        _check(command)
        path = self._path(command.path)
        if path == ROOT:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        with self._change("delete") as change:
            if not change.delete(path):
                raise ToolError(f"The path {command.path} does not exist")
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or a folder with all that is below it, in one commit.

        Raises:
            ToolError: A path is invalid, the old one is /memories itself or does not exist, the new one exists or lies
                below the old one, or a folder above it is a file.
        """
        _check(command)
        old, new = self._path(command.old_path), self._path(command.new_path)
        if old == ROOT:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        with self._change("rename") as change:
            try:
                change.move(old, new)
            except FileExistsError:
                raise ToolError(f"The destination {command.new_path} already exists") from None
            except FileNotFoundError:
                raise ToolError(f"The path {command.old_path} does not exist") from None
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Delete all files, in one commit. Other records, and the files of other users, stay."""
        with self._change("clear_all_memory") as change:
            change.delete(ROOT)
        return "All memory cleared"

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    def _path(self, text: str) -> str:
        try:
            return self._files.path(text)
        except PathError as error:
            raise ToolError(str(error)) from None

    @contextmanager
    def _change(self, command: str) -> Iterator[FileChanges]:
        """Change files in one commit. What a model can correct is raised as a ToolError, and undoes all of it."""
        try:
            with self._files.change(command) as change:
                yield change
        except NotADirectoryError as error:
            raise ToolError(f"The path {error} is not a directory.") from None
        except (InvalidRecordError, PathError, QuotaError, RejectedError) as error:
            raise ToolError(str(error)) from error

    def _listing(self, shown: str, folder: str) -> str:
        entries = self._files.entries(folder)
        if not entries and folder != ROOT:
            raise ToolError(f"The path {shown} does not exist. Please provide a valid path.")
        lines = [f"{_size(sum(entry.size for entry in entries))}\t{shown}"]
        lines += [f"{_size(size)}\t{folder}/{name}" for name, size in _two_levels(folder, entries)]
        header = f"Here're the files and directories up to 2 levels deep in {shown}, excluding hidden items:"
        return "\n".join([header, *lines])


def _check(command: Any) -> None:
    """Raise ToolError for a command that lacks a parameter, or has one of another type than its definition says."""
    for name in _REQUIRED[command.command]:
        value, kind = getattr(command, name, None), int if name == "insert_line" else str
        if not isinstance(value, kind) or isinstance(value, bool):
            what = "an integer" if kind is int else "a text"
            raise ToolError(f"The parameter `{name}` of {command.command} must be {what}, got {value!r}.")


class AsyncRecollectMemoryTool(BetaAsyncAbstractMemoryTool):
    """`RecollectMemoryTool` for asyncio, with the same arguments, commands, results and errors.

    The commands run in threads. It can be used from several event loops. If the caller of a command is cancelled, the
    command is completed before the cancellation takes effect.
    """

    def __init__(
        self,
        memory: Place,
        *,
        user: str | None = None,
        agent: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        **options: Any,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = RecollectMemoryTool(memory, user=user, agent=agent, **options)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file or list a folder. See `RecollectMemoryTool.view`."""
        return await completed(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Store a new file. See `RecollectMemoryTool.create`."""
        return await completed(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file. See `RecollectMemoryTool.str_replace`."""
        return await completed(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines into a file. See `RecollectMemoryTool.insert`."""
        return await completed(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file or a folder. See `RecollectMemoryTool.delete`."""
        return await completed(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file or a folder. See `RecollectMemoryTool.rename`."""
        return await completed(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """Delete all files. See `RecollectMemoryTool.clear_all_memory`."""
        return await completed(self._tool.clear_all_memory)

    async def close(self) -> None:
        """Close the tool after its last command. See `RecollectMemoryTool.close`."""
        await completed(self._tool.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _text(change: FileChanges, path: str, shown: str) -> str:
    """Return the text of a file that is to be edited.

    Raises:
        ToolError: There is no such file.
    """
    text = change.text(path)
    if text is not None:
        return text
    if change.is_folder(path):
        raise ToolError(f"The path {shown} is not a file.")
    raise ToolError(f"The path {shown} does not exist. Please provide a valid path.")


def _numbered(lines: list[str], first: int, last: int) -> str:
    width = len(str(MAX_LINES))
    return "\n".join(f"{number:>{width}}\t{line}" for number, line in enumerate(lines[first - 1 : last], first))


def _lines_of(part: str, text: str) -> Iterator[int]:
    """Yield the line of each occurrence, also of those that overlap."""
    line, since, at = 1, 0, text.find(part)
    while at != -1:
        line += text.count("\n", since, at)
        yield line
        since, at = at, text.find(part, at + 1)


def _size(count: int) -> str:
    """Return a number of bytes as the listing shows it.

    >>> [_size(count) for count in (0, 1, 1023, 1024, 1536, 2 * 1024**2)]
    ['0B', '1B', '1023B', '1K', '1.5K', '2M']
    """
    unit = min(max(count.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    size = count / 1024**unit
    return f"{size:.0f}{_UNITS[unit]}" if size.is_integer() else f"{size:.1f}{_UNITS[unit]}"


def _two_levels(folder: str, entries: list[FileEntry]) -> Iterator[tuple[str, int]]:
    """Yield names below a folder, sorted within each folder, with sizes. The name of a folder ends with a slash."""
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    for entry in entries:
        names = tuple(entry.path[len(folder) + 1 :].split("/"))
        for depth in range(1, min(2, len(names)) + 1):
            sizes[names[:depth]] = sizes.get(names[:depth], 0) + entry.size
        folders.update(names[:depth] for depth in range(1, min(2, len(names) - 1) + 1))
    for names in sorted(sizes):
        if not any(name.startswith(".") for name in names):
            yield "/".join(names) + ("/" if names in folders else ""), sizes[names]
