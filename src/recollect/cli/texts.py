"""The texts that commands read from files and from standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from recollect.errors import InvalidArgumentError, StoreIOError


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
