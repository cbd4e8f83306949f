"""A simulator of agents that share memory: under loss, delay, partitions, crashes and liars, the same on every run.

    from recollect.sim import Scenario, run

    result = run(Scenario.load("memory_swarm"), seed=7, trace="trace.jsonl")

A scenario says who takes part, with which memory, and what fails. The trace has every message and every use of memory,
with keys, sizes, scores and times, and never with a value; validators judge it.
"""

from recollect.sim.agents import Agent, AgentContext
from recollect.sim.recording import RecordedModel, Recorder
from recollect.sim.run import RunResult, run, run_async
from recollect.sim.scenario import Scenario, scenario_names
from recollect.sim.tasks import Seat
from recollect.sim.trace import read_trace

__all__ = [
    "Agent",
    "AgentContext",
    "RecordedModel",
    "Recorder",
    "RunResult",
    "Scenario",
    "Seat",
    "read_trace",
    "run",
    "run_async",
    "scenario_names",
]
