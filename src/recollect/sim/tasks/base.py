"""The base of tasks: the seat of an agent in a scenario, the description of a task, and agents that take turns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from recollect.errors import InvalidArgumentError
from recollect.sim.agents import Agent, AgentContext
from recollect.sim.dice import between
from recollect.sim.fields import ScenarioFields
from recollect.sim.scenario import Role, Scenario

#: Answers a conversation: a list of {"role": ..., "content": ...}.
Chat: TypeAlias = Callable[[list[dict[str, str]]], str]
_TURN = b"turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The seat of an agent: what it needs to know of the scenario to do its task.

    Attributes:
        index: Its number in its role, from 0.
        peers: The names of the agents of each role.
        settings: What the task is set to.
        chat: What a brain asks; None if the brain is a state machine.
    """

    name: str
    role: str
    index: int
    peers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    settings: Mapping[str, int] = field(default_factory=dict)
    chat: Chat | None = None

    def others(self, role: str) -> list[str]:
        """Return the names of the agents of a role, without this one."""
        return [name for name in self.peers.get(role, ()) if name != self.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task.

    Attributes:
        make: Returns the agent for a seat.
        roles: The roles, each with its share of the agents of a scenario that names none.
        settings: The settings, all of them integers, each with its default and the least that it can be.
        recalls: Whether the agents need a memory that has `recall`.
    """

    make: Callable[[Seat], Agent]
    roles: Mapping[str, int]
    settings: Mapping[str, tuple[int, int]]
    recalls: bool = False

    def roles_of(self, scenario: Scenario) -> tuple[Role, ...]:
        """Return the roles of a scenario, or those of this task.

        Raises:
            InvalidArgumentError: A role is none of this task.
        """
        for number, role in enumerate(scenario.roles):
            if role.name not in self.roles:
                known = ", ".join(self.roles)
                raise InvalidArgumentError(f"agents.roles[{number}].name", role.name, f"must be one of {known}")
        return scenario.roles or shared_out(10 if scenario.count is None else scenario.count, self.roles)

    def settings_of(self, scenario: Scenario, roles: Sequence[Role]) -> dict[str, dict[str, int]]:
        """Return the settings for each role.

        Raises:
            InvalidArgumentError: A setting is unknown or wrong.
        """
        self._read("task.config", scenario.config)
        return {
            role.name: self._read(f"agents.roles[{number}].config", {**scenario.config, **role.config})
            for number, role in enumerate(roles)
        }

    def _read(self, path: str, config: Mapping[str, object]) -> dict[str, int]:
        fields = ScenarioFields(path, config)
        out = {name: fields.integer(name, default, least) for name, (default, least) in self.settings.items()}
        fields.end()
        return out


def shared_out(count: int, shares: Mapping[str, int]) -> tuple[Role, ...]:
    """Return roles by their shares of a number of agents. The last role gets what remains."""
    total, left = sum(shares.values()), count
    out: list[Role] = []
    for name, share in shares.items():
        number = left if len(out) == len(shares) - 1 else count * share // total
        out.append(Role(name=name, count=number))
        left -= number
    return tuple(out)


class Paced(Agent):
    """An agent that takes a number of turns, some ticks apart.

    Args:
        seat: Its seat, whose settings have "rounds", the number of turns.
        pause: The least and the most ticks between two turns.
    """

    def __init__(self, seat: Seat, pause: tuple[int, int] = (1, 3)) -> None:
        self.seat = seat
        self._pause = pause
        self._left = seat.settings["rounds"]

    @abstractmethod
    async def turn(self, ctx: AgentContext) -> None:
        """Take a turn."""

    async def heard(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Take a message of another agent, or another timer."""

    async def on_start(self, ctx: AgentContext) -> None:
        """Plan the first turn."""
        await self._plan(ctx)

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Take a turn, or a message."""
        if sender != ctx.agent_id or payload != _TURN:
            await self.heard(ctx, sender, payload)
            return
        self._left -= 1
        await self.turn(ctx)
        await self._plan(ctx)

    async def _plan(self, ctx: AgentContext) -> None:
        if self._left > 0:
            await ctx.schedule(between(ctx.rng, *self._pause), _TURN)


def count_in(value: bytes | None) -> int:
    """Return the number at the beginning of a value such as b"7 [agent-1 3]"; 0 if there is none.

    >>> count_in(b"7 [agent-1 3]"), count_in(b"x"), count_in(None)
    (7, 0, 0)
    """
    digits = (value or b"").partition(b" ")[0]
    return int(digits) if digits.isdigit() and len(digits) < 16 else 0
