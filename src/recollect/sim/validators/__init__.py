"""Validators: judge a run only by its trace, with a name, a verdict and a reason each.

`validate_trace` reads a trace once and shows each event to the validators of its scenario, together with what memory
must contain at this moment by the events before it. A validator fails on what the trace proves, and says in its detail
how much it has checked and which bound it applies: a run in which nothing happened passes most of them, and fails
`liveness`.
"""

from recollect.sim.validators.checks import TraceCheck, Validation
from recollect.sim.validators.scenarios import SCENARIOS, validate_events, validate_trace

__all__ = ["SCENARIOS", "TraceCheck", "Validation", "validate_events", "validate_trace"]
