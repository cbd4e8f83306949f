"""The network between agents, and how it fails: loss, delay, duplication, late messages, and partitions.

Every decision is drawn from one generator. Between two agents messages keep their order, unless one is late
(`message_reorder`). Whether a message is lost is decided when it arrives, as in the simulator that this follows. A
message that crosses a partition when it is sent or when it arrives is lost.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from recollect.errors import InvalidArgumentError
from recollect.sim.dice import below, between, happens
from recollect.sim.engine import AgentEvent, Queue
from recollect.sim.scenario import Failures, Partition
from recollect.sim.trace import TraceWriter

#: Maximum number of ticks that a late message takes more than others.
_LATE = 5


class Network:
    """Sends messages between agents, and decides what becomes of them.

    Args:
        queue: The events to come.
        trace: Where messages are recorded.
        rng: Where failures are drawn from.
        failures: What fails.
        roles: The role of each agent.
    """

    def __init__(
        self, queue: Queue, trace: TraceWriter, rng: random.Random, failures: Failures, roles: Mapping[str, str]
    ) -> None:
        self._queue = queue
        self._trace = trace
        self._rng = rng
        self._failures = failures
        self._names = list(roles)
        self._known = set(roles)
        self._partitions = [(each, _groups(each, roles)) for each in failures.partitions]
        self._messages = 0
        self._last: dict[tuple[str, str], float] = {}  # when the last message between two agents arrives

    def send(self, sender: str, to: str, payload: bytes) -> None:
        """Send a message."""
        checked_payload(payload)
        corr = self._number()
        now = self._queue.clock.now
        self._trace.record("send", sender, now, corr=corr, msg=_text(payload), size=len(payload), to=to)
        self._post(sender, to, payload, corr)

    def broadcast(self, sender: str, payload: bytes, altered: Callable[[bytes], bytes] | None = None) -> None:
        """Send a message to all others.

        Args:
            sender: Who sends it.
            payload: The message.
            altered: Returns what one receiver gets in its place.
        """
        checked_payload(payload)
        corr = self._number()
        now = self._queue.clock.now
        self._trace.record("broadcast", sender, now, corr=corr, msg=_text(payload), size=len(payload))
        for name in self._names:
            if name != sender:
                self._post(sender, name, payload if altered is None else altered(payload), corr)

    def arrives(self, event: AgentEvent, up: bool) -> bool:
        """Return whether a message arrives, and record it.

        Args:
            event: The message.
            up: Whether the receiver can take it.
        """
        why = self._loss(event, up)
        fields = {"from": event.sender, "msg": _text(event.payload), "size": len(event.payload), "corr": event.corr}
        if why:
            self._trace.record("dropped", event.agent, event.time, why=why, **fields)
        else:
            self._trace.record("receive", event.agent, event.time, **fields)
        return not why

    def _loss(self, event: AgentEvent, up: bool) -> str:
        """Return why a message is lost; "" if it is not."""
        if event.agent not in self._known:
            return "unknown"
        if happens(self._rng, self._failures.message_drop):
            return "drop"
        for partition, groups in self._partitions:
            if any(_active(partition, time) for time in (event.sent_at, event.time)):
                one, other = groups.get(event.sender), groups.get(event.agent)
                if one is not None and other is not None and one != other:
                    return "partition"
        return "" if up else "down"

    def _post(self, sender: str, to: str, payload: bytes, corr: str) -> None:
        failures, now = self._failures, self._queue.clock.now
        for _ in range(2 if happens(self._rng, failures.message_duplicate) else 1):
            least, most = failures.delay
            arrival = now + (least if least == most else between(self._rng, least, most))
            if happens(self._rng, failures.message_reorder):
                arrival += 1 + below(self._rng, _LATE)
            elif least != most:
                arrival = max(arrival, self._last.get((sender, to), 0.0))
                self._last[sender, to] = arrival
            self._queue.push(arrival, "deliver", to, sender=sender, payload=payload, corr=corr, sent_at=now)

    def _number(self) -> str:
        self._messages += 1
        return f"corr-{self._messages}"


def _groups(partition: Partition, roles: Mapping[str, str]) -> dict[str, int]:
    """Return the group of each agent that is in one."""
    out: dict[str, int] = {}
    for number, group in enumerate(partition.groups):
        for at, name in enumerate(group):
            found = members(name, roles)
            path = f"{partition.path}.groups[{number}][{at}]"
            if not found:
                raise InvalidArgumentError(path, name, "is no agent, and no role")
            for each in found:
                if out.setdefault(each, number) != number:
                    raise InvalidArgumentError(path, name, f"contains {each}, which another group contains, too")
    return out


def members(name: str, roles: Mapping[str, str]) -> Sequence[str]:
    """Return the agents that a name of an agent or a role stands for."""
    return [name] if name in roles else [each for each, role in roles.items() if role == name]


def _active(partition: Partition, time: float) -> bool:
    return partition.begin <= time and (partition.until is None or time < partition.until)


def checked_payload(payload: object) -> None:
    """Raise InvalidArgumentError if this is no message."""
    if not isinstance(payload, bytes):
        raise InvalidArgumentError("payload", payload, "must be bytes")


def _text(payload: bytes) -> str:
    return payload.decode("utf-8", "replace")
