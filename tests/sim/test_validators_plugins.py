"""The validators on real plugins: honest ones pass, and each broken one fails just the validator that names its fault.

A small loop drives each plugin, with a tracer of its own, so nothing here depends on the simulator.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.compat.nest import Blackboard, SemanticMemory
from recollect.compat.nest.plugins import HashedTrigrams
from recollect.keyed import Shelf
from recollect.sim.validators import Validation, validate_events, validate_trace

AGENTS = ("ann", "ben", "cas", "liar")
CAPACITY, TTL = 12, 4


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


class Tracer:
    """Calls a plugin for agents, and writes down what it did."""

    def __init__(self, plugin: Any, clock: Clock, **limits: int) -> None:
        self.plugin = plugin
        self.clock = clock
        header = {"kind": "scenario", "ts": 0.0, "limits": limits, "byzantine": ["liar"]}
        self.lines: list[dict[str, Any]] = [header, *({"kind": "start", "agent": each, "ts": 0.0} for each in AGENTS)]
        self.values: dict[str, dict[bytes, int]] = {}
        self.writes = 0
        self.events = plugin.shelf.subscribe(kinds=("evicted", "expired"), queue=10**6)

    def record(self, kind: str, agent: str, key: str, size: int, **more: Any) -> None:
        ts = float(self.clock.now)
        while (event := self.events.take()) is not None:
            self.lines.append({"kind": event.kind, "agent": "", "key": event.key, "size": event.size, "ts": ts})
        self.lines.append({"kind": kind, "agent": agent, "key": key, "size": size, "ts": ts, **more})

    def version(self, key: str, value: bytes | None) -> int:
        return 0 if value is None else self.values.get(key, {}).get(value, -1)

    def wrote(self, agent: str, key: str, value: bytes, **more: Any) -> None:
        self.writes += 1
        self.values.setdefault(key, {})[value] = self.writes
        self.record("written", agent, key, len(value), version=self.writes, **more)

    async def write(self, agent: str, key: str, value: bytes) -> None:
        await self.plugin.write(key, value)
        self.wrote(agent, key, value)

    async def read(self, agent: str, key: str) -> bytes | None:
        as_agent = getattr(self.plugin, "as_agent", None)
        if as_agent is not None:
            as_agent(agent)
        value: bytes | None = await self.plugin.read(key)
        self.record("read", agent, key, len(value or b""), version=self.version(key, value))
        return value

    async def cas(self, agent: str, key: str, expected: bytes | None, new: bytes) -> bool:
        done: bool = await self.plugin.cas(key, expected, new)
        was = self.version(key, expected)
        if done:
            self.wrote(agent, key, new, cas=True, was=was)
        else:
            self.record("cas_failed", agent, key, len(new), was=was)
        return done

    async def forget(self, agent: str, key: str) -> None:
        if await self.plugin.forget(key):
            self.record("forgotten", agent, key, 0)

    async def recall(self, agent: str, query: str) -> None:
        hits = await self.plugin.recall(query, 3)
        for rank, (key, value, score) in enumerate(hits, 1):
            self.record("recalled", agent, key, len(value), version=self.version(key, value), rank=rank, score=score)


async def live(tracer: Tracer, *, spies: bool) -> None:
    """Four agents use a memory for sixty ticks. One of them writes junk."""
    rng = random.Random(7)
    recalls = hasattr(tracer.plugin, "recall")
    for tick in range(60):
        tracer.clock.now = tick
        for agent in AGENTS if tick % 7 == 0 else ():
            await tracer.forget(agent, f"note/{agent}/{(tick + 1) % 5}")
        for agent in AGENTS:
            kind = "junk" if agent == "liar" else "note"
            key = f"{kind}/{agent}/{tick % 5}"
            text = "winner prize click offer" if agent == "liar" else f"the gate code of town {tick % 5} is {tick}"
            await tracer.write(agent, key, f"{text} [{agent} {tick}]".encode())
            await tracer.write(agent, f"private/{agent}/diary", f"dear diary [{agent} {tick}]".encode())
        for agent in AGENTS:
            other = rng.choice(AGENTS if spies else (agent,))
            await tracer.read(agent, f"private/{other}/diary")
            # Three reads, of which a stale one is the second.
            for _ in range(3):
                await tracer.read(agent, f"note/ann/{tick % 5}")
            await tracer.read(agent, f"note/ben/{(tick + 2) % 5}")
            if recalls and not spies and tick % 3 == 0:
                # What is private is left out, as the shared memory does not know it.
                await tracer.recall(agent, f"what is the gate code of town {tick % 5}?")
        # All read the counter before any of them swaps it: one succeeds.
        seen = [await tracer.read(agent, "counter/n") for agent in AGENTS]
        for agent, value in zip(AGENTS, seen, strict=True):
            new = f"{tick} [{agent} {tick}]".encode()
            if not await tracer.cas(agent, "counter/n", value, new) and await tracer.read(agent, "counter/n") is None:
                await tracer.write(agent, "counter/n", new)
    tracer.plugin.stats()
    tracer.record("stop", "", "", 0)
    tracer.lines.pop()


def judged(
    make: Callable[[Clock], Any], path: Path, limits: dict[str, Any] | None = None, *, spies: bool = False
) -> dict[str, Validation]:
    """The verdicts of all ten validators of memory on a plugin."""
    clock = Clock()
    tracer = Tracer(make(clock), clock, **(limits or {}))
    asyncio.run(live(tracer, spies=spies))
    trace = path / "trace.jsonl"
    trace.write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in tracer.lines), encoding="utf-8")
    found = validate_trace(trace, "memory_swarm") + validate_trace(trace, "poisoned_recall")
    return {each.name: each for each in found}


def failing(found: dict[str, Validation]) -> dict[str, str]:
    return {name: each.detail for name, each in found.items() if not each.passed}


class Public(HashedTrigrams):
    """Finds no private notes, as a memory with a space for each agent does."""

    def put(self, key: str, value: bytes) -> None:
        if not key.startswith("private/"):
            super().put(key, value)

    def drop(self, key: str) -> None:
        if not key.startswith("private/"):
            super().drop(key)


class JunkFirst(Public):
    """Ranks junk first, with the scores that it has."""

    def find(self, query: str, k: int, min_score: float) -> list[tuple[str, float]]:
        found = super().find(query, 10**6, min_score)
        return sorted(found, key=lambda each: not each[0].startswith("junk/"))[:k]


class JunkFirstAndLies(JunkFirst):
    """The same, with scores that hide it."""

    def find(self, query: str, k: int, min_score: float) -> list[tuple[str, float]]:
        return [(key, 1.0 - rank / 10) for rank, (key, _) in enumerate(super().find(query, k, min_score))]


def semantic(
    capacity: int | None = None,
    ttl: int | None = None,
    capacity_bytes: int | None = None,
    scorer: Callable[[], Any] = Public,
) -> Callable[[Clock], Any]:
    return lambda clock: SemanticMemory(capacity, ttl, clock, capacity_bytes=capacity_bytes, scorer=scorer())


def on_shelf(kind: type[Shelf], **options: Any) -> Callable[[Clock], Any]:
    """A semantic memory on another shelf."""

    def make(clock: Clock) -> Any:
        plugin = SemanticMemory()
        plugin.shelf = kind(now=clock, scorer=Public(), **options)
        return plugin

    return make


class TestHonestPlugins:
    def test_a_blackboard_passes(self, tmp_path: Path) -> None:
        found = judged(lambda clock: Blackboard(), tmp_path)
        assert len(found) == 10
        assert failing(found) == {}

    def test_a_semantic_memory_without_limits_passes(self, tmp_path: Path) -> None:
        found = judged(semantic(), tmp_path)
        assert failing(found) == {}
        assert not found["recall_honest"].detail.startswith("of 0")

    @pytest.mark.parametrize(
        "limits",
        [{"capacity": CAPACITY}, {"capacity_bytes": 500}, {"ttl": TTL}, {"capacity": CAPACITY, "ttl": 3}],
        ids=str,
    )
    def test_a_semantic_memory_with_limits_passes_and_they_are_reached(
        self, tmp_path: Path, limits: dict[str, Any]
    ) -> None:
        found = judged(semantic(**limits), tmp_path, limits)
        assert failing(found) == {}
        reached = "eviction_rate" if "ttl" not in limits else "expiry_exact"
        assert not found[reached].detail.startswith("0 ")


class LosesWrites(Blackboard):
    """Every ninth write says that it was done, and was not."""

    count = 0

    async def write(self, key: str, value: bytes, *, importance: float | None = None) -> None:
        self.count += 1
        if self.count % 9:
            await super().write(key, value)


class Corrupts(Blackboard):
    """Returns other bytes than were written, now and then."""

    count = 0

    async def read(self, key: str) -> bytes | None:
        self.count += 1
        value = await super().read(key)
        return value if value is None or self.count % 50 else value[::-1]


class IsStale(Blackboard):
    """The second of three reads returns what the key had before."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, bytes | None] = {}
        self.reads: dict[str, int] = {}

    async def write(self, key: str, value: bytes, *, importance: float | None = None) -> None:
        self.before[key] = await super().read(key)
        await super().write(key, value)

    async def read(self, key: str) -> bytes | None:
        self.reads[key] = self.reads.get(key, 0) + 1
        value = await super().read(key)
        stale = key.startswith("note/ann/") and self.reads[key] % 3 == 2
        return (self.before.get(key) or value) if stale else value


class HasCaches(Blackboard):
    """One agent is served by a cache that is never told of changes."""

    def __init__(self) -> None:
        super().__init__()
        self.agent = ""
        self.cached: dict[str, bytes | None] = {}

    def as_agent(self, agent: str) -> None:
        self.agent = agent

    async def read(self, key: str) -> bytes | None:
        value = await super().read(key)
        return self.cached.setdefault(key, value) if self.agent == "cas" and key.startswith("note/ann/") else value


class SwapsAlways(Blackboard):
    async def cas(self, key: str, expected: bytes | None, new: bytes, *, importance: float | None = None) -> bool:
        await self.write(key, new)
        return True


class SwapsNever(Blackboard):
    async def cas(self, key: str, expected: bytes | None, new: bytes, *, importance: float | None = None) -> bool:
        return False


class EvictsNewest(Shelf):
    def _make_room(self, size: int) -> None:
        while self._capacity is not None and len(self._entries) >= self._capacity:
            self._drop(next(reversed(self._ranks[self._order[-1]])), "evicted")


class ForgetsToSweep(Shelf):
    """A write sweeps nothing, so a live entry is evicted while an expired one squats."""

    writing = False

    def write(self, key: str, value: bytes, *, importance: float | None = None) -> None:
        self.writing = True
        super().write(key, value, importance=importance)
        self.writing = False

    def _sweep(self) -> None:
        if not self.writing:
            super()._sweep()


class ForgetsTheExpired(Shelf):
    """`forget` of an expired key answers True."""

    def forget(self, key: str) -> bool:
        ttl, self._ttl = self._ttl, None
        done = super().forget(key)
        self._ttl = ttl
        return done


class ServesEvicted(SemanticMemory):
    """Evicted entries are still read."""

    def __init__(self, now_fn: Callable[[], int]) -> None:
        super().__init__(CAPACITY, None, now_fn, scorer=Public())
        self.kept: dict[str, bytes] = {}

    async def write(self, key: str, value: bytes, *, importance: float | None = None) -> None:
        self.kept[key] = value
        await super().write(key, value)

    async def read(self, key: str) -> bytes | None:
        found = await super().read(key)
        return self.kept.get(key) if found is None and key.startswith("note/ben/") else found


CAPPED = {"capacity": CAPACITY}


class TestBrokenPlugins:
    @pytest.mark.parametrize(
        ("make", "limits", "name", "detail"),
        [
            (lambda clock: LosesWrites(), {}, "no_lost_write", "was never found, but an older one was"),
            (lambda clock: Corrupts(), {}, "no_lost_write", "that was never written"),
            (lambda clock: IsStale(), {}, "monotone_reads", "after version"),
            (lambda clock: SwapsAlways(), {}, "cas_linearizable", "replaced version"),
            (lambda clock: SwapsNever(), {}, "cas_linearizable", "but failed"),
            (lambda clock: HasCaches(), {}, "convergence", "cas last found version"),
            (semantic(), CAPPED, "capacity_respected", "above the capacity of 12 entries"),
            (semantic(13), CAPPED, "capacity_respected", "13 entries"),
            (semantic(), {"capacity_bytes": 500}, "capacity_respected", "500 bytes"),
            (ServesEvicted, CAPPED, "capacity_respected", "which had been evicted"),
            (semantic(11), CAPPED, "eviction_rate", "within the capacity of 12"),
            (on_shelf(EvictsNewest, capacity=CAPACITY), CAPPED, "eviction_rate", "was used less recently"),
            (semantic(None, TTL + 1), {"ttl": TTL}, "expiry_exact", "at an age of 4"),
            (semantic(None, TTL - 2), {"ttl": TTL}, "expiry_exact", "at an age of 2, before 4"),
            (on_shelf(ForgetsTheExpired, ttl=TTL), {"ttl": TTL}, "expiry_exact", "was forgotten at an age of 4"),
            (
                on_shelf(ForgetsToSweep, capacity=CAPACITY, ttl=2),
                {**CAPPED, "ttl": 2},
                "expiry_exact",
                "was evicted",
            ),
            (semantic(scorer=JunkFirst), {}, "recall_honest", "was shown junk of score"),
            (semantic(scorer=JunkFirstAndLies), {}, "recall_honest", "recalls contain an honest hit"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_just_the_validator_of_its_fault_fails(
        self, tmp_path: Path, make: Callable[[Clock], Any], limits: dict[str, Any], name: str, detail: str
    ) -> None:
        found = failing(judged(make, tmp_path, limits))
        assert found.keys() == {name}
        assert detail in found[name]

    @pytest.mark.parametrize("make", [Blackboard, SemanticMemory])
    def test_spies_in_a_memory_without_walls_are_seen(self, tmp_path: Path, make: Callable[[], Any]) -> None:
        assert failing(judged(lambda clock: make(), tmp_path, spies=True)).keys() == {"no_cross_agent_read"}

    def test_a_recall_that_shows_private_notes_is_seen(self, tmp_path: Path) -> None:
        async def ask(tracer: Tracer) -> None:
            await tracer.write("ann", "private/ann/diary", b"the gate code is 7")
            await tracer.recall("ben", "what is the gate code?")

        for make, seen in ((SemanticMemory, {"no_cross_agent_read"}), (semantic(), set())):
            clock = Clock()
            tracer = Tracer(make(clock) if seen == set() else make(), clock)  # type: ignore[call-arg,arg-type]
            asyncio.run(ask(tracer))
            found = validate_events(tracer.lines, "poisoned_recall")
            assert {each.name for each in found if not each.passed} - {"liveness"} == seen


class TestBrokenAgents:
    def test_a_swarm_that_never_uses_its_memory_is_not_alive(self, tmp_path: Path) -> None:
        clock = Clock()
        lines = Tracer(Blackboard(), clock).lines
        for tick in range(20):
            lines += [{"kind": "send", "agent": each, "to": "ann", "msg": "hi", "ts": tick} for each in AGENTS]
        path = tmp_path / "t.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        for scenario in ("memory_swarm", "eviction_storm", "expiration_storm", "concurrent_writers", "poisoned_recall"):
            found = {each.name: each for each in validate_trace(path, scenario)}
            assert failing(found) == {"liveness": "no honest agent used memory"}

    def test_an_agent_that_stops_acting_after_its_restart_is_not_alive(self, tmp_path: Path) -> None:
        clock = Clock()
        tracer = Tracer(Blackboard(), clock)
        asyncio.run(live(tracer, spies=False))
        cut = next(at for at, line in enumerate(tracer.lines) if line["ts"] == 30.0)
        later = [line for line in tracer.lines[cut:] if line["agent"] != "ben"]
        crash = [{"kind": kind, "agent": "ben", "ts": 30.0} for kind in ("crash", "restart")]
        path = tmp_path / "t.jsonl"
        path.write_text("".join(json.dumps(x) + "\n" for x in [*tracer.lines[:cut], *crash, *later]), encoding="utf-8")
        found = {each.name: each for each in validate_trace(path, "eviction_storm")}
        assert failing(found)["liveness"] == "ben did nothing after 30"
