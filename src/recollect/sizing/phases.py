"""What a simulation is given, and what it returns: loads, events and phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recollect.errors import InvalidArgumentError
from recollect.sizing.constants import SHARED_FROM
from recollect.sizing.needs import check, check_filled

#: The most recalls between two events: a second of the simulation for each two million.
MAX_RECALLS = 50_000_000
MAX_NODES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is simulated.

    Attributes:
        records: Records of all namespaces together.
        namespaces: The number of namespaces.
        zipf: Exponent of the load: the n-th namespace is asked in proportion to 1 / n^zipf.
        recalls_per_s: Recalls a second, of all nodes together.
        nodes: The number of nodes at the beginning.
        index_bytes: The limit of the word indexes of a node, as the engine counts them.
        events: What happens at the end of each phase: "die", "join", or "nodes=K".
        interval_s: Seconds from one event to the next.
        by_load: The namespaces that are asked most have the most records; else size and load are independent.
        text_chars: Mean length of a text, in characters.
        shared_from: Records from which on an index is in a node's folder and in the table that nodes share.
        folder_s: How long nodes have had their folders at the beginning, in seconds.
        seed: The seed of sizes, recalls and arrivals.

    Raises:
        InvalidArgumentError: A value is outside its range, or no node would be left.
    """

    records: int = 1_000_000_000
    namespaces: int = 1_000_000
    zipf: float = 1.1
    recalls_per_s: float = 300.0
    nodes: int = 12
    index_bytes: int = 2**31
    events: tuple[str, ...] = ("die", "join")
    interval_s: float = 1800.0
    by_load: bool = False
    text_chars: float = 110.0
    shared_from: int = SHARED_FROM
    folder_s: float = 86_400.0
    seed: int = 0

    def __post_init__(self) -> None:
        check("namespaces", self.namespaces, 1, 10**7)
        check("records", self.records, 1, 10**12)
        check_filled(self.records, self.namespaces)
        check("zipf", self.zipf, 0.0, 3.0)
        check("nodes", self.nodes, 1, MAX_NODES)
        check("recalls_per_second", self.recalls_per_s, 0.1, 1e6)
        check("interval", self.interval_s, 1.0, 1e6)
        check("text_chars", self.text_chars, 1.0, 1e6)
        check("seed", self.seed, 0, 2**63)
        if self.recalls_per_s * self.interval_s > MAX_RECALLS:
            rule = f"must have at most {MAX_RECALLS} recalls in a phase: lower the recalls a second, or the interval"
            raise InvalidArgumentError("interval", self.interval_s, rule)
        node_counts(self.nodes, self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """From one event to the next.

    Attributes:
        event: The event at its beginning; "start" for the first phase.
        nodes: The number of nodes.
        namespaces_max_over_mean: Namespaces of the node that has the most, in units of the mean.
        recalls_max_over_mean: The same for recalls.
        busiest: Share of the time that the busiest node works; 1.0 or more means that its queue grows.
        moved: Namespaces that the event moved to another node.
        moved_between_living: Those of them whose old node goes on, and whose new one is no new node.
        moved_hot: Those of them whose index was in the memory of the old node.
        hit_rate_first: Share of recalls that found the index in memory, in the first sixtieth of the phase.
        hit_rate: The same in the second half of the phase.
        recovered_s: Seconds until the rate is within a point of that before the event; None if that is not reached.
        built_per_s: Indexes built, a second; the first recall of a namespace on a node.
        table_per_s: Indexes loaded from the shared table, a second.
        file_per_s: Indexes loaded from the node's folder, a second.
        cold_cores: Processor time of all these, in seconds a second.
        p50_ms: Median time of a recall, waiting included.
        p99_ms: The 99th percentile.
        hit_rates: The rate in each sixtieth of the phase.
        begun_s: When the phase begins, in seconds.
    """

    event: str
    nodes: int
    namespaces_max_over_mean: float
    recalls_max_over_mean: float
    busiest: float
    moved: int
    moved_between_living: int
    moved_hot: int
    hit_rate_first: float
    hit_rate: float
    recovered_s: float | None
    built_per_s: float
    table_per_s: float
    file_per_s: float
    cold_cores: float
    p50_ms: float
    p99_ms: float
    begun_s: float
    hit_rates: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The result of a simulation.

    Attributes:
        load: What was simulated.
        largest: Records of the largest namespace.
        cached: Namespaces whose indexes are in memory at the beginning.
        phases: The phases, in order.
    """

    load: Load
    largest: int
    cached: int
    phases: tuple[Phase, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which `python -m bench plot` draws."""
        return {"command": "size --simulate", **asdict(self)}


def node_counts(nodes: int, events: Sequence[str]) -> list[int]:
    """Return the number of nodes in each phase.

    >>> node_counts(12, ["die", "join", "nodes=16"])
    [12, 11, 12, 16]

    Raises:
        InvalidArgumentError: An event is unknown, or no node is left.
    """
    counts = [nodes]
    for event in events:
        _, is_count, number = event.partition("nodes=")
        if event == "die" or event == "join":
            counts.append(counts[-1] + (1 if event == "join" else -1))
        elif is_count and number.isascii() and number.isdigit() and len(number) < 4:
            counts.append(int(number))
        else:
            raise InvalidArgumentError("event", event, "must be die, join or nodes=K, such as nodes=16")
        check(f"nodes after {event}", counts[-1], 1, MAX_NODES)
    return counts
