"""Files that commands read and write: written completely or not at all, never over a store or another kind of file."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeVar

from recollect.errors import InvalidArgumentError, StoreIOError
from recollect.stores.sealing.exports import SealedWriter
from recollect.stores.sealing.keys import Unlocked
from recollect.stores.sqlite.header import part_path


def text_of(path: Path) -> str:
    """Return the text of a file, or of standard input for "-".

    Raises:
        InvalidArgumentError: It is not UTF-8.
        StoreIOError: It cannot be read.
    """
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidArgumentError("path", str(path), "is not UTF-8 text") from None
    except OSError as error:
        raise StoreIOError(str(path), error.strerror or str(error)) from None


T = TypeVar("T")
#: The files of a store, by what follows its path.
_OF_A_STORE = ("", "-wal", "-shm", ".keys")


def write_file(
    path: Path,
    write: Callable[[TextIO], T],
    store: str,
    *,
    replaces: Callable[[Path], bool],
    kind: str,
    force: str = "",
    keys: Unlocked | None = None,
) -> T:
    """Write a file next to `path`, rename it when it is complete, and return what `write` returns.

    Args:
        path: The file.
        write: Writes its contents.
        store: The path of the store that is open.
        replaces: Returns whether an existing file may be replaced.
        kind: What is written, with an article, for messages.
        force: The option that replaces any file, for messages; "" for none.
        keys: The data keys with which it is encrypted; None writes it as it is.

    Raises:
        InvalidArgumentError: The path is that of the store, no regular file, or that of another kind of file.
        StoreIOError: Writing failed; what was at the path is still there.
    """
    if any(str(path.absolute()) == store + suffix or _same(path, store + suffix) for suffix in _OF_A_STORE):
        raise InvalidArgumentError("path", str(path), "is the store itself: give another path")
    if os.path.exists(path) and not path.is_file():
        raise InvalidArgumentError("path", str(path), "is not a regular file: give another path")
    if os.path.exists(path) and not replaces(path):
        or_force = f", or {force}" if force else ""
        raise InvalidArgumentError("path", str(path), f"exists and is not {kind}: give another path{or_force}")
    part = Path(part_path(str(path)))
    try:
        try:
            # Readable only by its owner, as the store is, regardless of the umask and of the replaced file.
            descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                binary: Any = file if keys is None else SealedWriter(file, keys)
                text = io.TextIOWrapper(binary, encoding="utf-8", newline="\n")
                written = write(text)
                text.flush()
                if keys is not None:
                    binary.end()
                text.detach()
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StoreIOError(str(path), error.strerror or str(error)) from error
    return written


def _same(one: Path, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
