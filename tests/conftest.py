"""Fixtures and settings that all tests share."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.examples import PROFILE, some

import recollect
from recollect.engine.engine import Engine
from recollect.memory import opening
from recollect.stores.memory import MemoryStore
from recollect.testing import Loopback, machine, memory_on

# The same examples on every run of CI; the long form searches further and differently.
settings.register_profile(
    "ci",
    max_examples=some(100),
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# What `make test-all` runs (`tests.examples`).
settings.register_profile("full", settings.get_profile("ci"))
settings.register_profile(
    "long", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow], stateful_step_count=80
)
# What the developer's shell names is no part of what is tested.
os.environ["RECOLLECT_ZONE"] = "UTC"
for variable in (
    "LLM_EMBEDDING_MODEL",
    "RECOLLECT_BRANCH",
    "RECOLLECT_EMBEDDER",
    "RECOLLECT_INDEX_BYTES",
    "RECOLLECT_KEY_FILE",
    "RECOLLECT_NAMESPACE",
    "RECOLLECT_USER",
    "RECOLLECT_VECTOR_BYTES",
):
    os.environ.pop(variable, None)
settings.load_profile(PROFILE)
# With RECOLLECT_TEST_EXECUTOR=loopback, every memory that the tests open passes its operations through JSON bytes; with
# "socket" or "http" a server in this process executes them.
EXECUTOR = os.environ.get("RECOLLECT_TEST_EXECUTOR", "")
OVER_LOOPBACK = EXECUTOR != ""
# With RECOLLECT_TEST_STORE=postgres, every store that the tests open has its ledger on a server: one for each path.
STORE = os.environ.get("RECOLLECT_TEST_STORE", "")


# The temporary files of tests are in memory where the system has a folder with enough room: power cuts and the failures
# of disks are simulated, and what a killed process wrote is there in either. A variable that is set already counts.
IN_MEMORY = "/dev/shm"
if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > 4 * 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", IN_MEMORY)


def _behind(engine: Engine) -> Any:
    from tests import doors  # needs the extra "server", which some environments of tests do not have

    return Loopback(engine) if EXECUTOR == "loopback" else doors.BehindDoor(engine, EXECUTOR)


if OVER_LOOPBACK:
    for module in (opening, machine):
        setattr(module, "Engine", lambda *args, **kwargs: _behind(Engine(*args, **kwargs)))  # noqa: B010 - for mypy


if STORE == "postgres":
    from tests.on_postgres import open_store

    setattr(opening, "open_store", open_store)  # noqa: B010 - for mypy


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what uses the fixture `memory` below on each of the stores that its marker names."""
    defined = metafunc._arg2fixturedefs.get("memory")
    if defined and (defined[-1].func.__module__ == __name__ or "memory" in defined[-1].argnames):
        marker = metafunc.definition.get_closest_marker("stores")
        unknown = set(marker.args if marker else ()) - {"memory", "sqlite", "loopback"}
        assert not unknown, f"{metafunc.definition.nodeid}: no such stores: {unknown}"
        metafunc.parametrize("memory", (marker and marker.args) or ("memory",), indirect=True)


@pytest.fixture
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Memory]:
    """A new memory. `@pytest.mark.stores("memory", "sqlite", "loopback", clock=...)` names its stores and its clock.

    Without a marker it is in memory: a behaviour is tested on one store, unless the store can change it.
    """
    marker = request.node.get_closest_marker("stores")
    options = dict(marker.kwargs) if marker else {}
    if isinstance(options.get("clock"), type):
        options["clock"] = options["clock"]()
    if request.param == "loopback":
        with memory_on(MemoryStore(), loopback=True, **options) as opened:
            yield opened
    else:
        with recollect.open(tmp_path / "a.db" if request.param == "sqlite" else ":memory:", **options) as opened:
            yield opened


def pytest_sessionfinish() -> None:
    """Remove the sockets of the doors."""
    if EXECUTOR in ("socket", "http"):
        from tests import doors

        doors.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Over another executor, skip what only works in this process, as do custom filters, and the second of two stores.

    The client does not know which store the server has, so what is tested with a file is not tested in memory too.
    On a server of PostgreSQL, skip what looks at files.
    """
    for item in items:
        if STORE and item.get_closest_marker("files"):
            item.add_marker(pytest.mark.skip(reason="looks at the files of a store"))
    if not OVER_LOOPBACK:
        return
    names = {item.nodeid for item in items}
    for item in items:
        if item.get_closest_marker("in_process"):
            item.add_marker(pytest.mark.skip(reason="cannot be sent to another process"))
        elif "[memory" in item.nodeid and item.nodeid.replace("[memory", "[sqlite") in names:
            item.add_marker(pytest.mark.skip(reason="tested with a file"))


def pytest_collection_finish() -> None:
    """Keep what is loaded by now, so no full collection need look at it again: there are thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of evaluation data. Skipped where RECOLLECT_DATA is not set; a failure where it is set but absent."""
    named = os.environ.get("RECOLLECT_DATA")
    if not named:
        pytest.skip("RECOLLECT_DATA is not set: no evaluation data")
    folder = Path(named)
    assert folder.is_dir(), f"RECOLLECT_DATA names {folder}, which is not there"
    return folder
