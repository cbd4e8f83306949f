"""The plugins in the simulator NEST itself: `make test-nest` installs it from PyPI and runs these tests.

Its built-in scenarios use no memory, so their traces must be those of its own blackboard, to the byte. A scenario of
ours drives all calls through `ctx.plugins`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

nest = pytest.importorskip("nest_core", reason="run make test-nest")
pytestmark = [pytest.mark.nest, pytest.mark.filterwarnings("ignore")]

from nest_core.builtin_scenarios import builtin_path, list_builtin  # noqa: E402
from nest_core.layers.memory import Memory as NestMemory  # noqa: E402
from nest_core.plugins import PluginRegistry  # noqa: E402
from nest_core.runner import ScenarioRunner  # noqa: E402
from nest_core.scenario import ScenarioConfig  # noqa: E402
from nest_core.scenarios import register_scenario  # noqa: E402
from nest_core.sim.agent import StateMachineAgent  # noqa: E402
from nest_core.types import AgentId  # noqa: E402
from nest_core.validators import validate_trace  # noqa: E402

from recollect.compat.nest import Blackboard, RecollectMemory, SemanticMemory  # noqa: E402

OURS = {"semantic": SemanticMemory, "recollect": RecollectMemory, "recollect-blackboard": Blackboard}
FACTS = ("apples cost 4 at the harbour", "pears cost 7 at the station", "plums are sold out")
ROUNDS = 5


def run(config: Any, trace: Path) -> str:
    """Run a scenario, and return the hash of its trace."""
    config.output.trace = str(trace)
    config.output.report = None
    asyncio.run(ScenarioRunner(config).run())
    return hashlib.sha256(trace.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", OURS)
def test_its_registry_finds_our_plugins_by_name(name: str) -> None:
    plugin = PluginRegistry().resolve("memory", name)
    assert plugin is OURS[name]
    assert isinstance(plugin(), NestMemory)
    assert ("memory", name) in PluginRegistry().list_plugins("memory")


@pytest.mark.parametrize("plugin", OURS)
@pytest.mark.parametrize("scenario", list_builtin())
def test_a_built_in_scenario_has_the_trace_that_it_has_with_the_blackboard(
    scenario: str, plugin: str, tmp_path: Path
) -> None:
    hashes = []
    for number, name in enumerate(("blackboard", plugin, plugin)):
        text = builtin_path(scenario).read_text("utf-8")
        assert "  memory: blackboard\n" in text
        named = tmp_path / f"{number}.yaml"
        named.write_text(text.replace("  memory: blackboard\n", f"  memory: {name}\n"), "utf-8")
        config = ScenarioConfig.from_yaml(named)
        assert config.layers.memory == name
        hashes.append(run(config, tmp_path / f"{number}.jsonl"))
    assert len(set(hashes)) == 1
    judged = [[repr(each) for each in validate_trace(tmp_path / f"{number}.jsonl", scenario)] for number in range(2)]
    assert judged[0] == judged[1]  # some of its scenarios fail its own validators, with any memory


class Trader(StateMachineAgent):  # type: ignore[misc]
    """Writes facts, recalls them, swaps a counter that all share, and follows a key."""

    def __init__(self, agent_id: str, number: int, shared: Any, seen: list[Any]) -> None:
        self._id, self._number, self._shared, self._seen = agent_id, number, shared, seen
        self._values: Any = None

    def _memory(self, ctx: Any) -> Any:
        plugin = ctx.plugins["memory"]
        return self._shared(plugin)

    async def on_start(self, ctx: Any) -> None:
        memory = self._memory(ctx)
        assert isinstance(memory, NestMemory)
        self._values = memory.subscribe("news")
        self._next = asyncio.ensure_future(anext(self._values))
        await asyncio.sleep(0)
        await memory.write(f"fact/{self._id}", FACTS[self._number % len(FACTS)].encode())
        await ctx.schedule(1.0, b"0")

    async def on_message(self, ctx: Any, sender: Any, payload: bytes) -> None:
        memory, turn = self._memory(ctx), int(payload)
        while True:  # agents take turns, so the first attempt succeeds
            now = await memory.read("counter")
            if now is None:
                await memory.write("counter", b"0")
                continue
            if await memory.cas("counter", now, b"%d" % (int(now) + 1)):
                break
        assert not await memory.cas("counter", b"-1", b"0")
        if hasattr(memory, "recall"):
            hits = await memory.recall("what do apples cost?", k=2)
            self._seen.append([(hit.key, hit.value) for hit in hits])
            assert FACTS[0].encode() in [hit.value for hit in hits]
        if self._number == turn == 0:
            await memory.write("news", b"the harbour is closed")
        if turn + 1 < ROUNDS:
            await ctx.schedule(1.0, b"%d" % (turn + 1))

    async def on_stop(self, ctx: Any) -> None:
        await asyncio.sleep(0)
        for _ in range(100):  # a subscriber of a store is served by a thread
            if self._next.done():
                break
            await asyncio.sleep(0.01)
        self._seen.append(("news", await self._next))
        await self._values.aclose()


@pytest.mark.parametrize("name", OURS)
def test_agents_write_recall_swap_and_subscribe_through_the_plugins_of_their_context(name: str, tmp_path: Path) -> None:
    def traded(trace: Path) -> tuple[str, list[Any], Any]:
        made: list[Any] = []
        seen: list[Any] = []

        def shared(plugin: Callable[[], Any]) -> Any:
            if not made:
                made.append(plugin())
            return made[0]

        def factory(config: Any, plugins: dict[str, Any]) -> dict[Any, Any]:
            return {AgentId(f"t{n}"): Trader(f"t{n}", n, shared, seen) for n in range(config.agents.count)}

        register_scenario("recollect-trade", factory)
        config = ScenarioConfig.from_dict(
            {
                "name": "trade",
                "agents": {"count": 6},
                "layers": {"memory": name},
                "task": {"type": "recollect-trade"},
                "seed": 7,
            }
        )
        digest = run(config, trace)
        return digest, seen, made[0]

    first, second = traded(tmp_path / "1.jsonl"), traded(tmp_path / "2.jsonl")
    assert first[:2] == second[:2]
    assert asyncio.run(first[2].read("counter")) == b"%d" % (6 * ROUNDS)
    assert first[1].count(("news", b"the harbour is closed")) == 6


def test_each_agent_can_have_a_memory_of_its_own(tmp_path: Path) -> None:
    for plugin in OURS.values():
        one, other = plugin("agent-1"), plugin("agent-2")
        asyncio.run(one.write("k", b"v"))
        assert asyncio.run(other.read("k")) is None
