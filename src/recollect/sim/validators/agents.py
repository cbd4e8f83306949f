"""Validators of what agents experience: they agree, get on, keep private notes private, and recall honestly."""

from __future__ import annotations

from recollect.sim.validators.checks import TraceCheck
from recollect.sim.validators.events import REMOVALS, TraceEvent
from recollect.sim.validators.history import MemoryHistory

#: Begins the keys of the private notes of an agent, before its name and another "/".
PRIVATE = "private/"
#: Least share of the recalls with hits in which an honest hit is among these, and in which the first hit is honest. In
#: the built-in scenario a quarter of the agents, and so of those who know an answer, are liars who know the questions:
#: recall by words finds the truth in 70 to 90 per cent, and first in 45 to 60.
SOME_HONEST, FIRST_HONEST = 0.6, 0.35
#: A life that begins in this last part of a run need not act.
_LATE = 0.1
_MEMORY = ("read", "written", "recalled", "cas_failed", "forgotten")
_ACTS = (*_MEMORY, "send", "broadcast")


class Convergence(TraceCheck):
    """After the last change of a key, all honest agents find the same there, each in its last read."""

    name = "convergence"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._last: dict[str, dict[str, int]] = {}  # key -> honest agent -> version
        self._shared = 0

    def see(self, event: TraceEvent) -> None:
        if event.kind == "written" or event.kind in REMOVALS:
            self._last.pop(event.key, None)
        elif event.finds and (event.version or 0) >= 0 and self.history.honest(event.agent):
            entry = self.history.entry_of(event)
            if event.version or entry is None or not self.history.is_due(entry, event.ts):
                self._last.setdefault(event.key, {})[event.agent] = event.version or 0

    def end(self) -> None:
        for key in sorted(self._last):
            by_agent = self._last[key]
            self._shared += len(by_agent) > 1
            if len(set(by_agent.values())) > 1:
                least, most = (pick(by_agent, key=lambda each: (by_agent[each], each)) for pick in (min, max))
                self.fault(
                    f"{least} last found version {by_agent[least]} of {key!r}, {most} version {by_agent[most]}, "
                    "with no change between"
                )

    def checked(self) -> str:
        return f"{self._shared} keys that several honest agents read after the last change: 0 differ"


class Liveness(TraceCheck):
    """Honest agents use memory, act in each life, and are not shut out by a cas that always fails.

    A life begins with a start or a restart. It need not act if it ends in a crash, or begins in the last tenth of the
    run.
    """

    name = "liveness"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._idle: dict[str, float] = {}  # agents that have not acted in this life -> when it began
        self._lives = self._operations = 0
        self._began: float | None = None
        self._ended = 0.0
        self._failed: dict[str, int] = {}
        self._wrote: set[str] = set()

    def see(self, event: TraceEvent) -> None:
        if event.kind not in ("scenario", "stop"):
            self._began = event.ts if self._began is None else self._began
            self._ended = event.ts
        if not self.history.honest(event.agent):
            return
        if event.kind == "hung":
            self.fault(f"{event.fields.get('call')} of {event.key!r} by {event.agent} never returned")
        if event.kind in ("start", "restart"):
            self._lives += 1
            self._idle[event.agent] = event.ts
        elif event.kind == "crash":
            self._idle.pop(event.agent, None)
        elif event.kind in _ACTS:
            self._idle.pop(event.agent, None)
            self._operations += event.kind in _MEMORY
            if event.kind == "written":
                self._wrote.add(event.agent)
            elif event.kind == "cas_failed":
                self._failed[event.agent] = self._failed.get(event.agent, 0) + 1

    def end(self) -> None:
        if not self._operations:
            self.fault("no honest agent used memory")
        began = self._began or 0.0
        late = self._ended - _LATE * (self._ended - began)
        for agent, since in self._idle.items():
            if since <= late:
                self.fault(f"{agent} did nothing after {since:g}")
        for agent, failures in self._failed.items():
            if agent not in self._wrote:
                self.fault(f"each cas of {agent} failed, {failures} in all, and it wrote nothing")

    def checked(self) -> str:
        return f"{self._operations} memory operations of honest agents; each of {self._lives} lives acted"


class NoCrossAgentRead(TraceCheck):
    """No agent, honest or not, is shown a value of a key that begins with "private/", another agent, and "/"."""

    name = "no_cross_agent_read"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._private = 0

    def see(self, event: TraceEvent) -> None:
        shown = event.finds or event.kind == "notified"
        if not (shown and event.key.startswith(PRIVATE) and event.version != 0):
            return
        self._private += 1
        owner, slash, _ = event.key.removeprefix(PRIVATE).partition("/")
        if slash and owner != event.agent:
            self.fault(f"{event.agent} was shown {event.key!r}")

    def checked(self) -> str:
        return f"{self._private} private values shown, each to its owner only"


class RecallHonest(TraceCheck):
    """Junk, which Byzantine agents wrote, does not displace what honest agents recall.

    Of their recalls, at least 60 per cent contain an honest hit, and at least 35 per cent begin with one. No junk comes
    before an honest hit with a higher score.
    """

    name = "recall_honest"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._junk: set[int] = set()
        self._hits: list[tuple[bool, float]] = []  # of the recall that is being read: whether it is junk, and its score
        self._asks = ""
        self._recalls = self._first = self._some = 0

    def see(self, event: TraceEvent) -> None:
        if event.kind == "written" and event.agent in self.history.byzantine:
            self._junk.add(event.version or 0)
        if event.kind != "recalled" or event.rank <= 1 or event.agent != self._asks:
            self._close()
        if event.kind == "recalled" and event.rank == 0 and self.history.honest(event.agent):
            self._recalls += 1  # and nothing was found
        if event.kind == "recalled" and event.rank > 0 and self.history.honest(event.agent):
            self._asks = event.agent
            self._hits.append((event.version in self._junk, event.score))

    def _close(self) -> None:
        if not self._hits:
            return
        self._recalls += 1
        self._first += not self._hits[0][0]
        self._some += not all(junk for junk, _ in self._hits)
        best = float("-inf")
        for junk, score in reversed(self._hits):
            if junk and score < best:
                self.fault(f"{self._asks} was shown junk of score {score:g} before an honest hit of score {best:g}")
                break
            best = best if junk else max(best, score)
        self._hits.clear()

    def end(self) -> None:
        self._close()
        for count, least, what in (
            (self._some, SOME_HONEST, "contain an honest hit"),
            (self._first, FIRST_HONEST, "begin with an honest hit"),
        ):
            if count < least * self._recalls:
                self.fault(f"{count} of {self._recalls} recalls {what}, fewer than {least:.0%}")

    def checked(self) -> str:
        return (
            f"of {self._recalls} recalls of honest agents, {self._some} contain an honest hit (at least "
            f"{SOME_HONEST:.0%}) and {self._first} begin with one (at least {FIRST_HONEST:.0%}); {len(self._junk)} "
            "entries were junk"
        )
