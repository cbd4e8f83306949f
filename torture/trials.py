"""The building blocks of the torture: trials, each determined by its seed alone, so that it can be repeated."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.sealing.secrets import secret_or_default
from recollect.stores.sqlite.store import SqliteStore


@dataclass(frozen=True)
class Trial:
    """How one trial went.

    seed     repeats it: `python -m torture --part PART --seeds SEED`
    where    the moment at which something was done to the store, in a word or two: the report counts them
    problem  what was wrong afterwards; "" for nothing
    """

    seed: int
    where: str
    problem: str = ""


#: The trials of a seed, done in a folder of their own that is empty.
Trials = Callable[[int, Path], Iterator[Trial]]


def store_at(path: Path, **options: Any) -> SqliteStore:
    """A store, encrypted where the torture is that of encrypted ones. Its roots are those of a model in memory."""
    return SqliteStore(path, key=PUBLIC_KEY, secret=secret_or_default(None), **options)


_IN_MEMORY = Path("/dev/shm")


@contextmanager
def fast_folder(folder: Path) -> Iterator[Path]:
    """A folder for files that are made anew for each trial: in memory where the system has such, else within this."""
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else folder) as name:
        yield Path(name)
