"""`Place`: where, for whom and why an operation is executed."""

from __future__ import annotations

from typing import NamedTuple

from recollect.engine.scope import Scope
from recollect.ledger.commits import Branch


class Place(NamedTuple):
    """Where, for whom and why an operation is executed.

    Attributes:
        branch: The branch to read or write.
        scope: The scope of the caller.
        actor: Who makes the change; recorded in the commit.
        reason: Why the change is made; recorded in the commit.
        key: The idempotency key of a write: repeated within a day, it gives its first answer and writes nothing.
    """

    branch: Branch = Branch("default")
    scope: Scope = Scope()
    actor: str | None = None
    reason: str | None = None
    key: str | None = None
