"""Runs a scenario: builds its agents, memory and network, and lets the virtual time pass until all is quiet.

One process and one thread run all agents. The same scenario with the same seed gives the same trace, byte for byte, on
every machine and version of Python, as long as agents draw from their generators and ask no clock of their own.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO

from recollect.arguments.checks import is_integer
from recollect.errors import InvalidArgumentError, StoreIOError, UnsupportedError
from recollect.sim.agents import Agent, AgentContext
from recollect.sim.byzantine import Byzantine
from recollect.sim.dice import child, choose
from recollect.sim.engine import AgentEvent, Driver, Queue
from recollect.sim.memory import TracedMemory, Versions, WatchedPlugin, plugin_maker
from recollect.sim.network import Network, members
from recollect.sim.scenario import Crash, Scenario
from recollect.sim.tasks import Chat, Seat, task_of
from recollect.sim.tasks.base import shared_out
from recollect.sim.trace import TraceWriter

_LIMITS = ("capacity", "capacity_bytes", "ttl")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run.

    Attributes:
        name: The scenario.
        agents: Number of agents.
        byzantine: The names of the Byzantine ones.
        events: Number of messages, timers, crashes and restarts.
        time: The virtual time at the end.
        ended: "quiet", if nothing was left to happen, or "time", if the duration was over.
        counts: Number of events in the trace, by kind.
        memory: The statistics of the memory; {} if each agent has its own, or the plugin has none.
        sha256: The hash of the trace; "" if none was written.
    """

    name: str
    seed: int
    agents: int
    byzantine: tuple[str, ...]
    events: int
    time: float
    ended: Literal["quiet", "time"]
    counts: Mapping[str, int]
    memory: Mapping[str, int] = field(default_factory=dict)
    sha256: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        out = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**out, "byzantine": list(self.byzantine), "counts": dict(self.counts), "memory": dict(self.memory)}


def run(
    scenario: Scenario | Mapping[str, Any],
    seed: int | None = None,
    trace: str | Path | TextIO | None = None,
    *,
    agents: Callable[[Seat], Agent] | None = None,
    memory: Callable[..., Any] | None = None,
    chat: Chat | None = None,
) -> RunResult:
    """Run a scenario, and return what it came to.

    Args:
        scenario: The scenario, or the mapping that `Scenario.read` takes.
        seed: The seed; None: that of the scenario.
        trace: Where to write the trace: a path, or a text file that is open; None: nowhere.
        agents: Returns the agent for a seat, in place of those of the scenario's task.
        memory: The class of the memory plugin, in place of the one that the scenario names.
        chat: What the agents of the brain "chat" ask.

    Raises:
        InvalidArgumentError: The scenario or an argument is invalid. Nothing was run.
        StoreIOError: The trace cannot be written.
        UnsupportedError: An event loop is running in this thread.
    """
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise UnsupportedError("run", "an event loop is running in this thread: await run_async instead")
    return asyncio.run(run_async(scenario, seed, trace, agents=agents, memory=memory, chat=chat))


async def run_async(
    scenario: Scenario | Mapping[str, Any],
    seed: int | None = None,
    trace: str | Path | TextIO | None = None,
    *,
    agents: Callable[[Seat], Agent] | None = None,
    memory: Callable[..., Any] | None = None,
    chat: Chat | None = None,
) -> RunResult:
    """Run a scenario in a running event loop. See `run`."""
    for name, given in (("agents", agents), ("memory", memory), ("chat", chat)):
        if given is not None and not callable(given):
            raise InvalidArgumentError(name, given, "must be a class or a function")
    if trace is not None and not isinstance(trace, (str, Path)) and not hasattr(trace, "write"):
        raise InvalidArgumentError("trace", trace, "must be a path or a text file that is open")
    read = scenario if isinstance(scenario, Scenario) else Scenario.read(scenario)
    if seed is not None and not is_integer(seed, 0):
        raise InvalidArgumentError("seed", seed, "must be an integer of at least 0")
    chosen = read.seed if seed is None else seed
    if trace is None or not isinstance(trace, (str, Path)):
        return await _Simulation(read, chosen, TraceWriter(trace), agents, memory, chat).run()
    # Before the file is opened: a wrong scenario must not leave an empty one.
    _Simulation(read, chosen, TraceWriter(None), agents, memory, chat).close()
    part = Path(f"{trace}.part")  # so that a run that fails leaves a former trace as it was
    try:
        try:
            with part.open("w", encoding="utf-8", newline="\n") as file:
                result = await _Simulation(read, chosen, TraceWriter(file), agents, memory, chat).run()
            os.replace(part, trace)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StoreIOError(str(trace), error.strerror or str(error)) from error
    return result


class _Simulation:
    """A scenario with all that takes part in it."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        trace: TraceWriter,
        agents: Callable[[Seat], Agent] | None,
        memory: Callable[..., Any] | None,
        chat: Chat | None,
    ) -> None:
        self._scenario, self._seed, self._trace = scenario, seed, trace
        self._queue, self._driver = Queue(), Driver()
        seats, self._make = _cast(scenario, agents, chat)
        self._seats = {seat.name: seat for seat in seats}
        recalls = agents is None and task_of(scenario.task).recalls
        roles = {seat.name: seat.role for seat in seats}
        names = list(roles)
        master = random.Random(seed)
        # In this order, whatever fails: turning one failure on changes no agent's draws.
        self._failing = child(master)
        rngs = [child(master) for _ in names]
        share = scenario.failures.byzantine_agents
        liars = choose(self._failing, names, max(1, int(len(names) * share))) if share and names else []
        self._byzantine = set(liars)
        self._crashes = [(crash, self._crashing(crash, roles)) for crash in scenario.failures.crashes]
        network = Network(self._queue, trace, self._failing, scenario.failures, roles)
        self._stores = self._open(names, memory)
        store = self._stores[0] if self._stores else None
        if recalls and store is not None and not callable(getattr(store.plugin, "recall", None)):
            rule = (
                f"has no recall, which the task {scenario.task} needs: choose semantic, or another memory that has it"
            )
            raise InvalidArgumentError("layers.memory", scenario.memory.use, rule)
        self._contexts: dict[str, AgentContext] = {}
        for number, name in enumerate(names):
            own = self._stores[number] if scenario.memory.per_agent else store
            assert own is not None
            self._contexts[name] = AgentContext(name, rngs[number], TracedMemory(own, name), self._queue, network)
        self._network = network
        self._agents: dict[str, Agent | None] = {name: self._agent(name) for name in names}

    async def run(self) -> RunResult:
        """Let the time pass."""
        self._header()
        for name in self._contexts:
            self._trace.record("start", name, 0.0)
        for crash, names in self._crashes:
            for name in names:
                self._queue.push(crash.at, "crash", name)
                if crash.restart_after is not None:
                    self._queue.push(crash.at + crash.restart_after, "restart", name)
        try:
            events = await self._let_pass()
            return self._result(events)
        finally:
            self._driver.stop()
            self.close()

    def close(self) -> None:
        """Close the plugins."""
        for store in self._stores:
            store.close()

    async def _let_pass(self) -> int:
        for name, agent in self._agents.items():
            if agent is not None:
                await self._driver.run(name, agent.on_start(self._contexts[name]))
                await self._driver.settle()
        events = 0
        while (event := self._queue.take(self._scenario.ticks)) is not None:
            events += 1
            await self._happen(event)
            await self._driver.settle()
        for name, agent in self._agents.items():
            if agent is not None:
                self._trace.record("stop", name, self._queue.clock.now)
                await self._driver.run(name, agent.on_stop(self._contexts[name]))
        for store in self._stores:
            store.end()
        return events

    async def _happen(self, event: AgentEvent) -> None:
        name, agent = event.agent, self._agents.get(event.agent)
        if event.kind == "deliver":
            if self._network.arrives(event, agent is not None) and agent is not None:
                await self._driver.run(name, agent.on_message(self._contexts[name], event.sender, event.payload))
        elif event.kind == "timer":
            if agent is not None and event.life == self._contexts[name].life:
                text = event.payload.decode("utf-8", "replace")
                self._trace.record("timer", name, event.time, msg=text, size=len(event.payload))
                await self._driver.run(name, agent.on_message(self._contexts[name], name, event.payload))
        elif event.kind == "crash":
            if agent is not None:
                self._trace.record("crash", name, event.time)
                self._agents[name] = None
                self._contexts[name].life += 1
                self._driver.stop(name)
        elif agent is None:
            self._trace.record("restart", name, event.time)
            again = self._agents[name] = self._agent(name)
            await self._driver.run(name, again.on_restart(self._contexts[name]))

    def _agent(self, name: str) -> Agent:
        honest, failures = self._make(self._seats[name]), self._scenario.failures
        if not all(callable(getattr(honest, call, None)) for call in ("on_start", "on_message", "on_stop")):
            raise InvalidArgumentError("agents", honest, f"must return an agent, for {name}")
        if name not in self._byzantine:
            return honest
        return Byzantine(honest, failures.behaviours, self._failing, failures.flood, failures.poison)

    def _crashing(self, crash: Crash, roles: Mapping[str, str]) -> list[str]:
        if crash.share:
            names = list(roles)
            return choose(self._failing, names, max(1, int(len(names) * crash.share))) if names else []
        found = list(members(crash.agent, roles)) if crash.agent in roles else []
        if crash.role:
            found = [name for name, role in roles.items() if role == crash.role]
        if not found:
            field_, value = ("role", crash.role) if crash.role else ("agent", crash.agent)
            raise InvalidArgumentError(f"{crash.path}.{field_}", value, f"is no {field_} of this scenario")
        return found

    def _open(self, names: list[str], given: Callable[..., Any] | None) -> list[WatchedPlugin]:
        versions = Versions(self._trace, self._queue.clock)
        make = plugin_maker(self._scenario.memory, self._queue.clock, given)
        if self._scenario.memory.per_agent:
            return [WatchedPlugin(make(name), versions, name) for name in names]
        return [WatchedPlugin(make(None), versions)]

    def _header(self) -> None:
        scenario = self._scenario
        self._trace.header(
            name=scenario.name,
            seed=self._seed,
            task=scenario.task,
            limits={name: scenario.memory.options[name] for name in _LIMITS if name in scenario.memory.options},
            byzantine=sorted(self._byzantine),
            roles={name: seat.role for name, seat in self._seats.items()},
            memory=scenario.memory.use,
            per_agent=scenario.memory.per_agent,
            ticks=scenario.ticks,
        )

    def _result(self, events: int) -> RunResult:
        stats: Mapping[str, int] = {}
        if not self._scenario.memory.per_agent and callable(getattr(self._stores[0].plugin, "stats", None)):
            stats = self._stores[0].plugin.stats()
        return RunResult(
            name=self._scenario.name,
            seed=self._seed,
            agents=len(self._contexts),
            byzantine=tuple(sorted(self._byzantine)),
            events=events,
            time=self._queue.clock.now,
            ended="time" if len(self._queue) else "quiet",
            counts=dict(sorted(self._trace.counts.items())),
            memory=dict(stats),
            sha256=self._trace.sha256,
        )


def _cast(
    scenario: Scenario, agents: Callable[[Seat], Agent] | None, chat: Chat | None
) -> tuple[list[Seat], Callable[[Seat], Agent]]:
    """Return the seats of a scenario, and what makes the agent for one."""
    if scenario.brain == "chat" and chat is None:
        rule = "must be a function that answers messages, for the brain chat (on the command line: --recording)"
        raise InvalidArgumentError("chat", chat, rule)
    if scenario.brain == "chat" and agents is None and scenario.task != "chat":
        raise InvalidArgumentError("agents.brain", "chat", f"is for the task chat, and this one is {scenario.task}")
    settings: Mapping[str, Mapping[str, Any]]
    if agents is None:
        task = task_of(scenario.task)
        make, roles = task.make, task.roles_of(scenario)
        settings = task.settings_of(scenario, roles)
    else:
        make = agents
        roles = scenario.roles or shared_out(10 if scenario.count is None else scenario.count, {"agent": 1})
        settings = {role.name: {**scenario.config, **role.config} for role in roles}
    peers = {role.name: [f"{role.name}-{number}" for number in range(role.count)] for role in roles}
    brain = chat if scenario.brain == "chat" else None
    seats = [
        Seat(name=name, role=role, index=number, peers=peers, settings=settings[role], chat=brain)
        for role, names in peers.items()
        for number, name in enumerate(names)
    ]
    return seats, make
