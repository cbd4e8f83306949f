"""How large a deployment on PostgreSQL must be: computed from measured constants, and simulated.

    from recollect.sizing import Needs, plan_of

    plan_of(Needs(records=1_000_000_000, namespaces=1_000_000)).nodes

`constants` has every figure that this relies on, with the command that measured it. `plan` computes bytes, memory and
nodes. `simulation` replays a load over nodes that die and join, to find what a plan cannot say: how often an index is
in the memory of the node that is asked.
"""

from recollect.sizing.constants import CONSTANTS, Constant
from recollect.sizing.needs import Needs
from recollect.sizing.phases import Load, Phase, Simulated
from recollect.sizing.plan import SizePlan, index_limit, plan_of
from recollect.sizing.simulation import simulate

__all__ = [
    "CONSTANTS",
    "Constant",
    "Load",
    "Needs",
    "Phase",
    "Simulated",
    "SizePlan",
    "index_limit",
    "plan_of",
    "simulate",
]
