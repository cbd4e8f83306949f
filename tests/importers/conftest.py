"""Parts that the importers' tests share: a memory with a standing clock, and files to import."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Memory, Record
from recollect.evaluation import DATASET_IMPORTERS
from recollect.importers import IMPORTERS, ImportReport, import_path

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]
Turns = Callable[..., list[Record]]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with recollect.open(":memory:", clock=lambda: NOW) as memory:
        yield memory


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file: text and bytes as they are, anything else as JSON."""

    def write(name: str, value: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, bytes):
            path.write_bytes(value)
        else:
            path.write_bytes((value if isinstance(value, str) else json.dumps(value)).encode())
        return path

    return write


@pytest.fixture
def run(memory: Memory) -> Run:
    """Import a path into the memory by a format's name."""

    def run(name: str, path: Path, /, **options: Any) -> ImportReport:
        return import_path(memory, {**DATASET_IMPORTERS, **IMPORTERS}[name], path, **options)

    return run


@pytest.fixture
def turns(memory: Memory) -> Turns:
    """The records of a namespace, in order of their positions."""

    def turns(namespace: str = "default") -> list[Record]:
        return memory.namespace(namespace).find(order="position")

    return turns
