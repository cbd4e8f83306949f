"""The notebooks of Pydantic AI agents in a memory: a store for the `Memory` capability of Pydantic AI's harness.

    from pydantic_ai import Agent
    from pydantic_ai_harness import Memory
    from recollect.compat.pydantic_ai import RecollectMemoryStore

    store = RecollectMemoryStore("agent.db")
    agent = Agent(MODEL, capabilities=[Memory(store, namespace="ana")])

The files are those of `compat.files`, as the memory tool of Anthropic's SDK has them: `recall` finds notes, `history`
and `revert` show and undo what a model did, and `erase` removes it. Each change is one commit with its receipt: a file
changes only from the version that was read, and an operation that is repeated has happened once.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import secrets
from collections.abc import Mapping
from datetime import timedelta

import recollect
from recollect import Batch, Hit, Record
from recollect.common.regexes import regex
from recollect.compat.files import FileChanges, Files, path_of, text_of
from recollect.compat.opening import Closing, Place, opened
from recollect.compat.stored_json import loaded, safe_name, stored, unlettered
from recollect.compat.threads import completed
from recollect.errors import InvalidArgumentError, MissingExtraError
from recollect.operations import GetPolicies

try:
    from pydantic_ai_harness.memory import (
        MemoryConflictError,
        MemoryFile,
        MemoryMutation,
        MemoryOperation,
        MemoryOperationConflictError,
        MemorySearchMatch,
        MemorySearchResult,
    )
except ImportError as error:
    raise MissingExtraError("recollect.compat.pydantic_ai", "pydantic-ai", "pydantic-ai-harness") from error

__all__ = ["RecollectMemoryStore"]

_NAME = "pydantic-ai"
#: A name in a path, and the longest metadata of a write, as the stores of the harness have them.
_SEGMENT = regex(r"[A-Za-z0-9_.-]{1,200}")
_MAX_METADATA_CHARS = 4096
_ROOT = regex(r"(/[A-Za-z0-9_.-]+)+")
#: The kind of the records that say what an operation did.
_RECEIPT = "operation"
#: The names in their metadata, and of what a file has besides its text: the token of a version is new with each write,
#: so that a version never comes back with its text.
_FINGERPRINT, _RESULT_VERSION, _EXISTED = "fingerprint", "version", "existed"
_TOKEN, _OPERATION, _NOTE = "token", "operation", "note"


class RecollectMemoryStore(Closing):
    """A `MemoryStore` of Pydantic AI's harness that records metadata and searches, too.

    It can be used from several event loops, threads and processes at the same time. If the caller of a change is
    cancelled, the change is completed first.

    Args:
        memory: A memory, also of `recollect.connect`; a path or address that `recollect.open` takes; or the address of
            a server.
        user: The user whose files they are; None: files of no user, or of the scope of the memory.
        agent: The agent whose files they are; None as for `user`.
        root: The folder of the memory in which all paths are. The memory tool of Anthropic's SDK has "/memories".
        receipts_live: How long a repeated operation is recognised.

    Raises:
        InvalidArgumentError: An argument is invalid.
        ScopeError: The memory is scoped to another user or agent.
        RecollectError: The memory cannot be opened.

    Cost:
        A change is one durable commit. A read is a look-up. `search` is a recall; see `Files` for lists.
    """

    def __init__(
        self,
        memory: Place = ":memory:",
        *,
        user: str | None = None,
        agent: str | None = None,
        root: str = "/memories",
        receipts_live: timedelta = timedelta(days=30),
    ) -> None:
        if not isinstance(root, str) or not _ROOT.fullmatch(root) or posixpath.normpath(root) != root:
            rule = 'must be an absolute path of letters, digits, "_", "." and "-", such as "/memories"'
            raise InvalidArgumentError("root", root, rule)
        self._opened = opened(memory)
        self._root = root
        self._receipts_live = receipts_live
        self._scoped = self._opened.scoped(user=user, agent=agent)
        self._files = Files(self._scoped, actor=_NAME, root=root)

    @property
    def memory(self) -> recollect.Memory:
        """The memory with the files: its history, `context`, `erase` and all other calls."""
        return self._opened.memory

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        """Return a file with up to `max_chars` characters of its text, or None if there is none.

        Raises:
            ValueError: The path is invalid, or `max_chars` is not positive.
            StoreError: The store failed.
        """
        _check_path(path)
        if max_chars <= 0:
            raise ValueError("max_chars must be positive")
        record = await completed(self._files.record, self._path(path))
        return None if record is None else _file(record, max_chars)

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        """Return what an operation did when it was first asked for, or None if it was not.

        Raises:
            MemoryOperationConflictError: Another operation had its id.
            StoreError: The store failed.
        """
        return await completed(self._done, operation, None)

    async def write(
        self, path: str, content: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Create or replace a file, in one commit.

        Args:
            path: Its path.
            content: Its text.
            expected_version: The version that was read; None: there must be no such file.
            operation: What recognises a repetition, which changes nothing and returns the first result.

        Raises:
            ValueError: The path is invalid, or is a folder, or a folder of it is a file.
            MemoryConflictError: The file has another version.
            MemoryOperationConflictError: Another operation had this id.
            RecollectError: The memory refuses the text: its limits, its quota, its policies; or the store failed.
        """
        return await completed(self._change, path, content, expected_version, operation, None)

    async def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Create or replace a file as `write` does, with metadata of this write, which `read` returns.

        Raises:
            TypeError: The metadata has other keys or values than texts.
            ValueError: The metadata is longer than 4,096 characters as JSON. Others: those of `write`.
        """
        _check_metadata(metadata)
        return await completed(self._change, path, content, expected_version, operation, metadata)

    async def delete(
        self, path: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Delete a file, in one commit. Its history stays, until it is erased. The errors are those of `write`."""
        return await completed(self._change, path, None, expected_version, operation, None)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """Return the first paths that begin with a text, sorted.

        Raises:
            ValueError: The prefix is no beginning of a path, or `limit` is not positive.
            StoreError: The store failed.
        """
        _check_prefix(prefix)
        if limit <= 0:
            raise ValueError("limit must be positive")
        return (await completed(self._paths, prefix))[:limit]

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> MemorySearchResult:
        """Return the files directly below a prefix that answer a query, best first, then those named like it.

        Args:
            prefix: A folder with its "/", or "".
            query: What to look for, as for `Memory.recall`.
            limit: Maximum number of files.
            max_files: The number of files of which `scanned` counts; all are searched.
            max_chars: Maximum number of characters of all paths and snippets together.
            max_file_chars: The number of characters of a file from which a snippet is taken.

        Raises:
            ValueError: The prefix is no beginning of a path.
            StoreError: The store failed.
        """
        _check_prefix(prefix)
        if not query.split() or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return MemorySearchResult(matches=[], scanned=0, truncated=False)
        return await completed(self._search, prefix, query, limit, max_files, max_chars, max_file_chars)

    # In a thread

    def _path(self, path: str) -> str:
        return self._files.path(f"{self._root}/{path}")

    def _paths(self, prefix: str) -> list[str]:
        folder = prefix.rpartition("/")[0]
        entries = self._files.entries(self._path(folder) if folder else self._root)
        paths = (entry.path.removeprefix(f"{self._root}/") for entry in entries)
        return sorted(path for path in paths if path.startswith(prefix))

    def _change(
        self,
        path: str,
        text: str | None,
        expected: str | None,
        operation: MemoryOperation | None,
        metadata: Mapping[str, str] | None,
    ) -> MemoryMutation:
        _check_path(path)
        what = "delete" if text is None else "write"
        with self._files.change(what) as changes:
            batch = changes.batch
            if operation is not None and (done := self._done(operation, batch)) is not None:
                return done
            full = self._path(path)
            record = self._files.record(full, batch)
            if (None if record is None else _version(record)) != expected:
                raise MemoryConflictError(f"memory path {path!r} changed before {what}")
            version = None
            if text is not None:
                version = _version(self._written(changes, full, text, record, operation, metadata, batch))
            elif record is not None:
                changes.delete(full)
            result = MemoryMutation(version=version, replayed=False, existed=record is not None)
            if operation is not None:
                self._keep(batch, operation, result)
            return result

    def _written(
        self,
        changes: FileChanges,
        path: str,
        text: str,
        record: Record | None,
        operation: MemoryOperation | None,
        metadata: Mapping[str, str] | None,
        batch: Batch,
    ) -> Record:
        own = {
            _TOKEN: secrets.token_hex(8),
            _OPERATION: None if operation is None else safe_name(operation.id),
            _NOTE: stored(dict(metadata), batch.execute(GetPolicies())) if metadata else None,
        }
        try:
            return changes.create(path, text, own) if record is None else changes.write(path, text, own)
        except (FileExistsError, NotADirectoryError) as error:
            name = path.removeprefix(f"{self._root}/")
            raise ValueError(f"memory path {name!r} is a folder, or lies below a file: {error}") from error

    def _done(self, operation: MemoryOperation, batch: Batch | None) -> MemoryMutation | None:
        receipt = (batch or self._scoped).get(self._receipt_id(operation))
        if receipt is None:
            return None
        if receipt.metadata[_FINGERPRINT] != _digest(operation.fingerprint):
            raise MemoryOperationConflictError(f"operation id {operation.id!r} was used with other arguments")
        version, existed = receipt.metadata[_RESULT_VERSION], receipt.metadata[_EXISTED]
        return MemoryMutation(version=version, replayed=True, existed=existed)

    def _keep(self, batch: Batch, operation: MemoryOperation, result: MemoryMutation) -> None:
        batch.remember(
            "",
            id=self._receipt_id(operation),
            kind=_RECEIPT,
            source=_NAME,
            searchable=False,
            ttl=self._receipts_live,
            metadata={
                _FINGERPRINT: _digest(operation.fingerprint),
                _RESULT_VERSION: result.version,
                _EXISTED: result.existed,
            },
            if_exists="update",
        )

    def _receipt_id(self, operation: MemoryOperation) -> str:
        scope = self._scoped.scope
        return f"operation-{_digest(repr([self._root, sorted(scope.items()), operation.id]))}"

    def _search(
        self, prefix: str, query: str, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> MemorySearchResult:
        start = f"{self._root}/{prefix}"

        def is_child(path: str) -> bool:
            return path.startswith(start) and "/" not in path.removeprefix(start)

        paths = [f"{self._root}/{path}" for path in self._paths(prefix)]
        children = list(filter(is_child, paths))
        folder = start.rpartition("/")[0]
        hits = self._files.recalled(folder, query, is_child, limit + 1)
        found: list[tuple[str, float, str]] = [(path_of(hit.record), hit.confidence, _around(hit)) for hit in hits]
        terms = query.lower().split()
        known = {path for path, _, _ in found}
        for path in children:
            if path not in known and any(term in path.removeprefix(start).lower() for term in terms):
                record = self._files.record(path)
                found += [] if record is None else [(path, 0.0, text_of(record))]
        matches: list[MemorySearchMatch] = []
        remaining = max_chars
        for path, score, text in found[:limit]:
            name = path.removeprefix(start)
            if remaining <= len(name):
                break
            snippet = _cut(text[:max_file_chars], remaining - len(name))
            remaining -= len(name) + len(snippet)
            matches.append(MemorySearchMatch(path=path.removeprefix(f"{self._root}/"), snippet=snippet, score=score))
        return MemorySearchResult(
            matches=matches, scanned=min(len(children), max_files), truncated=len(matches) < len(found)
        )


def _check_path(path: str) -> None:
    """Check a path as the harness does.

    Raises:
        ValueError: It is invalid.
    """
    if not all(_SEGMENT.fullmatch(each) and ".." not in each and each != "." for each in path.split("/")):
        raise ValueError(f"invalid memory path: {path!r}")


def _check_prefix(prefix: str) -> None:
    if prefix:
        _check_path(prefix.removesuffix("/"))


def _check_metadata(metadata: Mapping[str, str] | None) -> None:
    if not all(isinstance(each, str) for pair in (metadata or {}).items() for each in pair):
        raise TypeError("memory metadata keys and values must be texts")
    if len(json.dumps(dict(metadata or {}), ensure_ascii=False, separators=(",", ":"))) > _MAX_METADATA_CHARS:
        raise ValueError(f"memory metadata is longer than {_MAX_METADATA_CHARS} characters as JSON")


def _file(record: Record, max_chars: int) -> MemoryFile:
    text = text_of(record)
    operation, note = record.metadata.get(_OPERATION), record.metadata.get(_NOTE)
    return MemoryFile(
        content=text[:max_chars],
        version=_version(record),
        operation_id=None if operation is None else unlettered(operation),
        truncated=len(text) > max_chars,
        metadata=None if note is None else loaded(note),
    )


def _version(record: Record) -> str:
    return record.hash[:32]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _around(hit: Hit) -> str:
    """Return the text of a file from a little before the first word that was found."""
    text = text_of(hit.record)
    first = hit.marks[0][0] if isinstance(hit.record.content, str) and hit.marks else 0
    line = text.rfind("\n", 0, first) + 1
    return text[line:] if line == 0 else f"...{text[line:]}"


def _cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters, with a mark where it was cut."""
    return text if len(text) <= most else f"{text[: most - 3]}..." if most > 3 else text[:most]
