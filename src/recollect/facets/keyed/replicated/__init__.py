"""Replicated values (state-based CRDTs) under keys of a keyed memory: register, add-wins set, counter and text log.

A state is a frozen value with one byte form. Replicas change their own copy and merge the copies of others: in any
order, any number of times, with the same bytes in the end. `Kept` and `AwaitedKept` keep a state under a key by
reading, merging and `cas`. Bytes that are not the one form of a state are refused whole, and nothing is changed.

**What a liar can do.** Keyed memory has no signatures: all who may write a key may write any state there.

- *Removing from a set what one has not seen* is refused by every replica. A set remembers how many tags each replica
  has made, and takes a tag that it counts but does not contain for a removed one. So a forged count would remove adds,
  even future ones. Therefore a count must come with a proof that only the replica itself can compute before it has
  published it, and that anyone can check who knows the replica's id (see `Chain`).
- *Speaking for the local replica* is refused where `own` names it: `merge` refuses a state that claims more of the
  local replica than the local copy knows, in all four types. After a restart, give the last copy to `Kept`; without
  one, the first state that is found counts as the replica's own past.
- *A tag on two elements, or a line of a log in two versions*: within a state of a set it is malformed. Between states,
  the lines of a log all stay (`TextLog.disputed` lists them), and in a set both elements under the tag count as
  removed. That takes a proof of the tag, so the liar has seen it and might have removed it anyway.

What is not prevented: a member that has seen an add may remove it, as any member may, or publish another element under
a tag that it has seen. It may stamp a register with a far future, and raise the entry of a third replica in a counter
or write a line in its name: no replica but that one can tell. It may flood a state with elements or lines. Against
these, sign the bytes of states, or give each replica a key that only it may write, and merge from these.
"""

from recollect.facets.keyed.replicated.kept import AwaitedKept, Kept
from recollect.facets.keyed.replicated.register import Counter, Register, Stamp
from recollect.facets.keyed.replicated.sets import AddTag, AddWinsSet, Chain
from recollect.facets.keyed.replicated.state import State
from recollect.facets.keyed.replicated.textlog import Line, TextLog

__all__ = [
    "AddTag",
    "AddWinsSet",
    "AwaitedKept",
    "Chain",
    "Counter",
    "Kept",
    "Line",
    "Register",
    "Stamp",
    "State",
    "TextLog",
]
