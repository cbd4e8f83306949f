"""The design of keyed memory, line by line, through the plugins for NEST.

Lines that other tests have in the same words are not repeated here: golden scores, limits, expiry, subscriptions and
the registry (`tests/compat/test_nest.py`), plugins by vectors (`test_nest_vectors.py`), traces of NEST's own runner
(`tests/nest`), scenarios and validators (`tests/sim`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires

import pytest
from tests.paths import ROOT

from recollect.compat.nest import Blackboard, PluginRegistry, RecallHit, SemanticMemory

PAGE = (ROOT / "docs" / "keyed.md").read_text("utf-8")
#: The names that the design has for later, and what they need besides this package.
FUTURE = ("openai_embeddings", "anthropic_embeddings", "faiss", "chroma")


def required() -> set[str]:
    """Return the names of the packages that an installation without extras has."""
    named = (each.partition(";") for each in requires("recollect") or ())
    found = [re.match(r"[\w.-]+", name) for name, _, condition in named if "extra" not in condition]
    return {each[0].lower().replace("_", "-") for each in found if each} | {"recollect"}


def packages_of(modules: list[str]) -> set[str]:
    """Return the packages that have modules, besides the standard library."""
    having = packages_distributions()
    tops = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    return {each.lower().replace("_", "-") for top in tops for each in having.get(top, ())}


def loaded_by(statement: str) -> set[str]:
    """Return the packages that a statement loads, in a process of its own, besides those that Python begins with."""
    program = (
        "import json, sys\nbefore = set(sys.modules)\n"
        f"{statement}\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return packages_of(json.loads(done.stdout.splitlines()[-1]))


def test_the_plugins_load_nothing_that_an_installation_without_extras_lacks() -> None:
    """The design wants no new dependencies. This package has its own, and no plugin adds one until it is named."""
    loaded = loaded_by("from recollect.compat.nest import SemanticMemory; SemanticMemory('writer-0')")
    assert loaded - required() <= {"cffi", "pycparser"}  # what the required ones need themselves
    assert "numpy" in loaded
    assert packages_of(["pytest.x", "json"]) == {"pytest"}  # the measure sees what is more
    assert "needs no package besides those of an installation without extras" in PAGE


@pytest.mark.parametrize("name", ["blackboard", "semantic", "recollect", "recollect-blackboard", *FUTURE])
def test_a_plugin_is_found_by_its_name_in_a_scenario(name: str) -> None:
    plugin = PluginRegistry().resolve("memory", name)
    assert all(hasattr(plugin, each) for each in ("read", "write", "subscribe", "cas"))


def test_what_needs_a_server_of_its_own_is_refused_with_the_reason() -> None:
    with pytest.raises(KeyError, match="pgvector"):
        PluginRegistry().resolve("memory", "pgvector")
    assert "`pgvector` is refused" in PAGE


def test_a_hit_is_a_dataclass_as_the_design_exports_it() -> None:
    hit = RecallHit(key="a", value=b"b", score=0.5)
    assert dataclasses.asdict(hit) == {"key": "a", "value": b"b", "score": 0.5}


def test_a_subscriber_that_is_late_gets_every_value() -> None:
    async def late() -> int:
        memory = Blackboard()
        events = memory.subscribe("plan")
        first = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        for number in range(3000):  # more than any queue of a subscription
            await memory.write("plan", str(number).encode())
        seen = 1 if await first == b"0" else 0
        while seen < 3000:
            await anext(events)
            seen += 1
        return seen

    assert asyncio.run(late()) == 3000


def test_what_has_expired_takes_no_room_of_what_is_live() -> None:
    async def squatted() -> list[bytes | None]:
        now = 0
        memory = SemanticMemory(capacity=2, ttl=10, now_fn=lambda: now)
        await memory.write("old", b"a")
        now = 5
        await memory.write("live", b"b")
        now = 12  # "old" is due, "live" is not
        await memory.write("new", b"c")
        return [await memory.read(key) for key in ("old", "live", "new")]

    assert asyncio.run(squatted()) == [None, b"b", b"c"]
