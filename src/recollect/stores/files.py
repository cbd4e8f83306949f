"""What is done to files without SQLite: one place for it, so that a test can stand between.

`recollect.testing.recording` puts its own in place of these functions, to write down what they do or to let them fail;
so they are called by the module's name. All raise OSError and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def create(path: str, *, anew: bool = False) -> None:
    """Make an empty file with mode 0600 where there is none; with `anew`, there must be none."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | (os.O_EXCL if anew else 0), 0o600))


def write(path: str, parts: Iterable[bytes | memoryview]) -> None:
    """Make a file with mode 0600 of these parts; there must be none."""
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        for part in parts:
            file.write(part)


def read(path: str, most: int = -1) -> NDArray[np.uint8]:
    """The bytes of a file; no more than the first so many, where that is not -1."""
    return np.fromfile(path, dtype=np.uint8, count=most)


def replace(path: str, by: str) -> None:
    """Let a file be the one that has been at `by`, in one step."""
    os.replace(by, path)


def remove(path: str) -> None:
    os.unlink(path)


def make_folder(path: str, *, lasting: bool = False) -> None:
    """Make a folder with mode 0700, and those above it, where they are missing.

    lasting  a power cut does not undo it: without that, what is made in it is lost with it, durable or not
    """
    made = []
    above = path
    while not os.path.isdir(above):
        made.append(above)
        above = os.path.dirname(above)
    os.makedirs(path, mode=0o700, exist_ok=True)
    for each in made if lasting else ():
        sync_folder(os.path.dirname(each))


def sync_folder(path: str) -> None:
    """Make durable which files a folder has."""
    if os.name == "nt":  # there a folder cannot be opened, and its entries are durable with the files
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
