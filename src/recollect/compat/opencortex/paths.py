"""Paths: that of the memory, and the last part of one."""

from __future__ import annotations

import os
from pathlib import Path

from recollect.errors import InvalidArgumentError

#: The variables with the path of the memory: that of opencortex, and the one of earlier versions of this module.
_VARIABLES = ("MEMORY_SNAPSHOT_PATH", "OPENCORTEX_MEMORY")


def memory_path(variable: str | None = None) -> Path:
    """Return the path of the memory: the value of an environment variable, or a file in the user's data folder.

    The file need not exist: an empty memory is created there.

    Args:
        variable: The name of the variable; default: MEMORY_SNAPSHOT_PATH, or else OPENCORTEX_MEMORY. "~" in its value
            is the user's folder; an empty one counts as not set.

    Raises:
        InvalidArgumentError: The name is no text, or is empty.
    """
    if variable is not None and (not isinstance(variable, str) or not variable):
        raise InvalidArgumentError("variable", variable, "must be the name of an environment variable")
    for each in _VARIABLES if variable is None else (variable,):
        if value := os.environ.get(each):
            return Path(value).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("opencortex", appauthor=False)) / "memory.db"


def file_name_nondirectory(path: str | os.PathLike[str]) -> str:
    """Return what follows the last slash of a path.

    >>> file_name_nondirectory("/home/ana/notes.org"), file_name_nondirectory("notes.org"), file_name_nondirectory("a/")
    ('notes.org', 'notes.org', '')

    Raises:
        InvalidArgumentError: It is not the path of a file.
    """
    try:
        text = os.fspath(path)
    except TypeError:
        raise InvalidArgumentError("path", path, "must be a path") from None
    if not isinstance(text, str):
        raise InvalidArgumentError("path", path, "must be a text")
    return text.rpartition("/")[2]
