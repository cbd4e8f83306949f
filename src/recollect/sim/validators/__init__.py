"""Validators: judge a run only by its trace, with a name, a verdict and a reason each.

`validate_trace` reads a trace once and shows each event to the validators of its scenario, together with what memory
must contain at this moment by the events before it. A validator fails on what the trace proves, and says in its detail
how much it has checked and which bound it applies: a run in which nothing happened passes most of them, and fails
`liveness`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from recollect.sim.validators.agents import Convergence, Liveness, NoCrossAgentRead, RecallHonest
from recollect.sim.validators.checks import TraceCheck, Validation
from recollect.sim.validators.consistency import CasLinearizable, MonotoneReads, NoLostWrite
from recollect.sim.validators.events import TraceEvent, events_of, read_events
from recollect.sim.validators.history import MemoryHistory
from recollect.sim.validators.limits import CapacityRespected, EvictionRate, ExpiryExact
from recollect.sim.validators.marketplace import AllResponded, NoDoubleSell, PriceAgreement

__all__ = ["SCENARIOS", "TraceCheck", "Validation", "validate_events", "validate_trace"]

#: The validators of each scenario, in the order of their verdicts.
SCENARIOS: dict[str, tuple[type[TraceCheck], ...]] = {
    "marketplace": (NoDoubleSell, AllResponded, PriceAgreement),
    # Its share of junk is not bounded, so what is recalled there may be junk.
    "memory_swarm": (
        NoLostWrite,
        MonotoneReads,
        CasLinearizable,
        CapacityRespected,
        EvictionRate,
        ExpiryExact,
        Convergence,
        Liveness,
        NoCrossAgentRead,
    ),
    "eviction_storm": (NoLostWrite, MonotoneReads, CapacityRespected, EvictionRate, Liveness),
    "expiration_storm": (NoLostWrite, MonotoneReads, CapacityRespected, ExpiryExact, Liveness),
    "concurrent_writers": (NoLostWrite, MonotoneReads, CasLinearizable, Convergence, Liveness, NoCrossAgentRead),
    "poisoned_recall": (NoLostWrite, MonotoneReads, CapacityRespected, Liveness, NoCrossAgentRead, RecallHonest),
}


def validate_trace(path: str | PathLike[str], scenario: str) -> list[Validation]:
    """Judge a trace.

    Args:
        path: The file of the trace.
        scenario: The type of its task, such as "marketplace".

    Returns:
        A verdict of each validator of this scenario, in the order of `SCENARIOS`; none for an unknown scenario.

    Raises:
        ImportFormatError: The file cannot be read, or a line of it is no event.
    """
    checks = SCENARIOS.get(scenario, ())
    return _judged(read_events(path), checks) if checks else []


def validate_events(lines: Iterable[Mapping[str, Any]], scenario: str) -> list[Validation]:
    """Judge the events of a trace, as objects. See `validate_trace`."""
    return _judged(events_of(lines), SCENARIOS.get(scenario, ()))


def _judged(events: Iterable[TraceEvent], kinds: Iterable[type[TraceCheck]]) -> list[Validation]:
    history = MemoryHistory()
    checks = [kind(history) for kind in kinds]
    for event in events:
        for check in checks:
            check.see(event)
        history.apply(event)
    for check in checks:
        check.end()
    return [check.verdict() for check in checks]
