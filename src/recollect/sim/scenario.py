"""A scenario: who takes part, with which memory, at what task, what fails, and for how long.

    name: example                                  # required; all others have defaults
    agents: {roles: [{name: writer, count: 8}, {name: watcher, count: 1, config: {}}], brain: state-machine}
    layers: {memory: {use: semantic, capacity: 100, ttl: 50, per_agent: false}}
    task: {type: concurrent_writers, config: {rounds: 10}}
    failures:
      message_drop: 0.1                            # and message_duplicate, message_reorder
      message_delay: {least: 1, most: 3}           # ticks
      network_partition: {groups: [[writer], [watcher-0]], from: 10, until: 50}
      byzantine_agents: 0.1
      byzantine: {behaviours: [lie, equivocate, replay, flood, poison], flood: 2, poison: 4}
      crashes: [{agent: writer-0, at: 20, restart_after: 5}, {share: 0.1, at: 30}]
    duration: "ticks: 1000"
    output: {trace: trace.jsonl, report: memory.svg}
    seed: 7

It is read from YAML or from a mapping, and cannot exist in a broken state: a wrong value is an error that names the
field by its dotted path. What depends on the task or the plugin (its settings, its options, the names of agents) is
checked when the scenario is run, before anything happens.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import yaml

from recollect.common.regexes import regex
from recollect.errors import ImportFormatError, InvalidArgumentError
from recollect.sim.fields import ScenarioFields, checked_text

Behaviour: TypeAlias = Literal["lie", "equivocate", "replay", "flood", "poison"]
BEHAVIOURS: tuple[Behaviour, ...] = get_args(Behaviour)
BRAINS = ("state-machine", "chat")
#: Maximum number of agents, of all roles together.
MAX_AGENTS = 1_000_000
#: Maximum size of the file of a scenario, in bytes.
_MAX_BYTES = 1 << 18
_DURATION = regex(r"ticks:\s*([0-9]{1,15})\s*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A number of agents of one kind, and what its task is set to for them."""

    name: str
    count: int
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLayer:
    """The memory plugin of a scenario, its options, and whether each agent has one of its own."""

    use: str = "blackboard"
    options: Mapping[str, Any] = field(default_factory=dict)
    per_agent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """From one time until another (None: for ever), no message passes from one group to another one.

    The groups contain names of agents or roles. An agent in none is connected to all.
    """

    path: str
    groups: tuple[tuple[str, ...], ...]
    begin: float = 0.0
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """Agents (one, those of a role, or a share of all) stop at a time, and start again some ticks later, or never."""

    path: str
    at: float
    agent: str = ""
    role: str = ""
    share: float = 0.0
    restart_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """The faults of a scenario. Rates are probabilities of each message.

    Attributes:
        message_drop: A message is lost.
        message_duplicate: It arrives twice.
        message_reorder: It is late, so that later ones arrive before it. All others keep their order.
        delay: The least and the most ticks that a message takes.
        byzantine_agents: Share of the agents that are Byzantine; above 0, at least one is.
        behaviours: What these do.
        flood: Number of entries of junk that one of them writes each time it acts, if it floods.
        poison: Number of false answers that one of them keeps in memory, if it poisons.
        partitions: Partitions of the network.
        crashes: Crashes of agents.
    """

    message_drop: float = 0.0
    message_duplicate: float = 0.0
    message_reorder: float = 0.0
    delay: tuple[int, int] = (1, 1)
    byzantine_agents: float = 0.0
    behaviours: tuple[Behaviour, ...] = ("lie",)
    flood: int = 2
    poison: int = 4
    partitions: tuple[Partition, ...] = ()
    crashes: tuple[Crash, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario. `Scenario.load` reads a file or a built-in one, `Scenario.read` a mapping.

    Attributes:
        count: Number of agents; None: 10, or the sum of the roles.
        brain: "state-machine", or "chat": a chat model that `run` is given.
        roles: The roles; (): those of the task, in its proportions.
        memory: The memory layer.
        layers: The other layers, which are not used.
        config: The settings of the task.
        failures: What fails.
        ticks: The duration.
        metrics: Names that are not used.
        trace: Where the command line writes the trace.
        report: Where the command line writes the picture.
        seed: The seed, unless another one is passed.
    """

    name: str
    description: str = ""
    tier: int = 1
    count: int | None = None
    brain: str = "state-machine"
    roles: tuple[Role, ...] = ()
    memory: MemoryLayer = MemoryLayer()
    layers: Mapping[str, Any] = field(default_factory=dict)
    task: str = "marketplace"
    config: Mapping[str, Any] = field(default_factory=dict)
    failures: Failures = Failures()
    ticks: int = 10_000
    metrics: tuple[str, ...] = ()
    trace: str | None = None
    report: str | None = None
    seed: int = 0

    @staticmethod
    def read(data: object) -> Scenario:
        """Read a scenario from a mapping, as YAML has it.

        Raises:
            InvalidArgumentError: A field is missing, unknown or wrong; the message names it by its dotted path.
        """
        return _scenario(ScenarioFields("", data))

    @staticmethod
    def load(source: str | Path) -> Scenario:
        """Read a scenario from a YAML file, or a built-in one by its name.

        Raises:
            ImportFormatError: The file cannot be read, or is not YAML.
            InvalidArgumentError: A field is missing, unknown or wrong; the message names it by its dotted path.
        """
        return Scenario.read(_yaml_of(source))


def scenario_names() -> list[str]:
    """Return the names of the built-in scenarios."""
    return sorted(each.name.removesuffix(".yaml") for each in _folder().iterdir() if each.name.endswith(".yaml"))


def _folder() -> Any:
    return files("recollect.sim") / "scenarios"


class _Loader(yaml.SafeLoader):
    """Reads plain YAML: without aliases, which can stand for more than fits in memory, and without repeated names."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="aliases are not supported", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        out = super().construct_mapping(node, deep)
        if len(out) < len(node.value):
            raise yaml.MarkedYAMLError(problem="a name occurs twice in this mapping", problem_mark=node.start_mark)
        return out


def _yaml_of(source: str | Path) -> object:
    name = str(source)
    try:
        if isinstance(source, str) and source in scenario_names():
            data = (_folder() / f"{source}.yaml").read_bytes()
        else:
            with open(source, "rb") as file:
                data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        known = ", ".join(scenario_names())
        raise ImportFormatError(name, "", f"is no file, and no built-in scenario: those are {known}") from None
    except (OSError, ValueError) as error:
        raise ImportFormatError(name, "", f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MAX_BYTES:
        raise ImportFormatError(name, "", f"is larger than {_MAX_BYTES} bytes")
    try:
        return yaml.load(data.decode("utf-8"), _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = "" if mark is None else f"line {mark.line + 1}"
        raise ImportFormatError(name, where, f"is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise ImportFormatError(name, "", f"is not YAML: {type(error).__name__}") from None


def _scenario(top: ScenarioFields) -> Scenario:
    agents, task, output = top.below("agents"), top.below("task"), top.below("output")
    memory, layers = _layers(top.below("layers"))
    roles = tuple(_role(ScenarioFields(path, each)) for path, each in agents.items("roles"))
    out = Scenario(
        name=top.text("name"),
        description=top.text("description", ""),
        tier=top.integer("tier", 1, 1, 2),
        count=_count(agents, roles),
        brain=_one_of(agents, "brain", "state-machine", BRAINS),
        roles=roles,
        memory=memory,
        layers=layers,
        task=task.text("type", "marketplace"),
        config=task.below("config").rest(),
        failures=_failures(top.below("failures")),
        ticks=_ticks(top),
        metrics=top.texts("metrics"),
        trace=_path(output, "trace"),
        report=_path(output, "report"),
        seed=top.integer("seed", 0),
    )
    # These choose a language model in the original. Here the caller passes one.
    for name in ("llm_model", "llm_provider", "template"):
        agents.raw(name)
    for each in (agents, task, output, top):
        each.end()
    return out


def _role(fields: ScenarioFields) -> Role:
    out = Role(
        name=fields.text("name"),
        count=fields.integer("count", 1, 0, MAX_AGENTS),
        config=fields.below("config").rest(),
    )
    fields.raw("prompt_template")
    fields.end()
    return out


def _count(agents: ScenarioFields, roles: tuple[Role, ...]) -> int | None:
    names = [role.name for role in roles]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InvalidArgumentError(agents.at(f"roles[{number}].name"), name, "is the name of another role, too")
    total = sum(role.count for role in roles)
    count = agents.raw("count")
    if count is None:
        count = total if roles else None
    elif agents.integer("count", 0, 0, MAX_AGENTS) != total and roles:
        raise InvalidArgumentError(agents.at("count"), count, f"must be the sum of the roles, {total}, or be left out")
    return None if count is None else int(count)


def _one_of(fields: ScenarioFields, name: str, default: str, known: tuple[str, ...]) -> str:
    value = fields.text(name, default)
    if value not in known:
        raise InvalidArgumentError(fields.at(name), value, f"must be one of {', '.join(known)}")
    return value


def _path(fields: ScenarioFields, name: str) -> str | None:
    return fields.text(name, "") or None


def _ticks(top: ScenarioFields) -> int:
    value = top.raw("duration")
    if value is None:
        return 10_000
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found[1]) < 1:
        raise InvalidArgumentError(top.at("duration"), value, 'must have the form "ticks: N", with an N of at least 1')
    return int(found[1])


#: The layers that a scenario of the original can name. Only the memory is used here.
_LAYERS = frozenset(
    "transport comms identity registry auth trust payments coordination negotiation memory privacy datafacts".split()
)


def _layers(fields: ScenarioFields) -> tuple[MemoryLayer, dict[str, Any]]:
    for name in fields.data:
        if name not in _LAYERS:
            raise InvalidArgumentError(fields.at(str(name)), fields.data[name], "is no layer of a scenario")
    memory = fields.raw("memory")
    if memory is None:
        return MemoryLayer(), fields.rest()
    if isinstance(memory, str):
        return MemoryLayer(use=checked_text(fields.at("memory"), memory)), fields.rest()
    options = ScenarioFields(fields.at("memory"), memory)
    use, per_agent = options.text("use"), options.flag("per_agent")
    for limit in ("capacity", "capacity_bytes"):
        options.integer(limit, 1, 1)
    if options.number("ttl", 1.0) == 0.0:
        raise InvalidArgumentError(options.at("ttl"), 0, "must be above 0")
    rest = ScenarioFields(options.path, memory)
    rest.raw("use"), rest.raw("per_agent")
    known = {name: value for name, value in rest.rest().items() if value is not None}
    return MemoryLayer(use=use, options=known, per_agent=per_agent), fields.rest()


def _failures(fields: ScenarioFields) -> Failures:
    delay, byzantine = fields.below("message_delay"), fields.below("byzantine")
    least = delay.integer("least", 1)
    most = delay.integer("most", max(1, least))
    if most < least:
        raise InvalidArgumentError(delay.at("most"), most, f"must be at least {delay.at('least')}, {least}")
    behaviours: list[Behaviour] = []
    for path, each in byzantine.items("behaviours"):
        if each not in BEHAVIOURS:
            raise InvalidArgumentError(path, each, f"must be one of {', '.join(BEHAVIOURS)}")
        behaviours.append(each)
    partition = fields.raw("network_partition")
    path = fields.at("network_partition")
    if isinstance(partition, (list, tuple)):
        partitions = tuple(_partition(ScenarioFields(f"{path}[{at}]", each)) for at, each in enumerate(partition))
    else:
        partitions = () if partition is None else (_partition(ScenarioFields(path, partition)),)
    out = Failures(
        message_drop=fields.rate("message_drop"),
        message_duplicate=fields.rate("message_duplicate"),
        message_reorder=fields.rate("message_reorder"),
        delay=(least, most),
        byzantine_agents=fields.rate("byzantine_agents"),
        behaviours=tuple(each for each in BEHAVIOURS if each in behaviours) or ("lie",),
        flood=byzantine.integer("flood", 2, 1),
        poison=byzantine.integer("poison", 4, 1),
        partitions=partitions,
        crashes=tuple(_crash(ScenarioFields(path, each)) for path, each in fields.items("crashes")),
    )
    for each in (delay, byzantine, fields):
        each.end()
    return out


def _partition(fields: ScenarioFields) -> Partition:
    groups = []
    for path, each in fields.items("groups"):
        if not isinstance(each, (list, tuple)):
            raise InvalidArgumentError(path, each, "must be a list of names of agents or roles")
        groups.append(tuple(checked_text(f"{path}[{at}]", name) for at, name in enumerate(each)))
    if len(groups) < 2:
        rule = (
            "must have two groups or more: agents of different groups do not reach each other, and all reach the rest"
        )
        raise InvalidArgumentError(fields.at("groups"), fields.data.get("groups"), rule)
    begin = fields.number("from", 0.0) or 0.0
    until = fields.number("until", None)
    if until is not None and until <= begin:
        raise InvalidArgumentError(fields.at("until"), until, f"must be after {fields.at('from')}, {begin:g}")
    fields.end()
    return Partition(path=fields.path, groups=tuple(groups), begin=begin, until=until)


def _crash(fields: ScenarioFields) -> Crash:
    agent, role, share = fields.text("agent", ""), fields.text("role", ""), fields.rate("share")
    if sum(map(bool, (agent, role, share))) != 1:
        raise InvalidArgumentError(fields.path, fields.data, "must have exactly one of agent, role and share")
    at, after = fields.number("at", None), fields.number("restart_after", None)
    if at is None:
        raise InvalidArgumentError(fields.at("at"), at, "must be a number of at least 0")
    if after == 0:
        raise InvalidArgumentError(fields.at("restart_after"), after, "must be above 0")
    fields.end()
    return Crash(path=fields.path, at=at, agent=agent, role=role, share=share, restart_after=after)
