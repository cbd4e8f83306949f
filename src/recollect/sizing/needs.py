"""What a deployment must be able to do: the input of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.arguments.checks import is_number
from recollect.errors import InvalidArgumentError

GIB = 2**30
#: Namespaces above which the share of a Zipf load is not computed.
MAX_NAMESPACES = 10**8


def check(name: str, value: float, least: float, most: float) -> None:
    """Raise InvalidArgumentError unless a value is a number within limits.

    >>> check("nodes", 3, 1, 200)
    """
    if not is_number(value, least, most):
        raise InvalidArgumentError(name, value, f"must be a number from {_plain(least)} to {_plain(most)}")


def _plain(limit: float) -> str:
    return f"{int(limit):,}" if float(limit).is_integer() else f"{limit:g}"


def check_filled(records: int, namespaces: int) -> None:
    """Raise InvalidArgumentError unless there is a record for each namespace."""
    if records < namespaces:
        raise InvalidArgumentError("records", records, f"must be at least one for each of {namespaces:,} namespaces")


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What is stored, what is asked, and on which machines.

    Attributes:
        records: Records of all namespaces together.
        namespaces: The number of namespaces.
        text_chars: Mean length of a text, in characters.
        vectors: Components of a vector; 0 for no vectors.
        active: Share of the namespaces whose indexes are in the memory of nodes (0 to 1).
        zipf: The exponent of a Zipf load, in place of a share: as many are in memory as `hit_rate` needs.
        hit_rate: Share of recalls that find the index in memory (0 to 1); only with `zipf`.
        recalls_per_s: Recalls a second, of all nodes together, at the busiest time.
        writes_per_s: Single writes a second.
        batched: Records are written in batches of hundreds: fewer bytes than single writes.
        node_memory: Memory of a node, in bytes.
        node_cores: Cores of a node. Each has a process of its own, with its share of the memory.
        replicas: Standbys of the PostgreSQL server.
        spare: Nodes that may be lost without a lack of memory or processor time.

    Raises:
        InvalidArgumentError: A value is outside its range.
    """

    records: int
    namespaces: int = 1
    text_chars: float = 110.0
    vectors: int = 0
    active: float = 1.0
    zipf: float | None = None
    hit_rate: float = 0.95
    recalls_per_s: float = 0.0
    writes_per_s: float = 0.0
    batched: bool = False
    node_memory: int = 24 * GIB
    node_cores: int = 4
    replicas: int = 1
    spare: int = 1

    def __post_init__(self) -> None:
        check("namespaces", self.namespaces, 1, MAX_NAMESPACES)
        check("records", self.records, 1, 1e13)
        check_filled(self.records, self.namespaces)
        check("text_chars", self.text_chars, 1, 1e6)
        check("vectors", self.vectors, 0, 65_536)
        check("active", self.active, 0, 1)
        check("hit_rate", self.hit_rate, 0, 0.9999)
        check("recalls_per_second", self.recalls_per_s, 0, 1e7)
        check("writes_per_second", self.writes_per_s, 0, 1e7)
        check("node_memory", self.node_memory, GIB / 2, 2**44)
        check("node_cores", self.node_cores, 1, 1024)
        check("replicas", self.replicas, 0, 16)
        check("spare", self.spare, 0, 1000)
        if self.zipf is not None:
            check("zipf", self.zipf, 0, 3)
