"""The quota of a namespace: what it is, and how it is stored. `write.quotas` enforces it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from recollect.arguments.checks import MAX_COUNT, is_integer
from recollect.arguments.json_form import JsonForm
from recollect.engine.facets import OWN_QUOTAS
from recollect.engine.settings import read_setting, write_setting
from recollect.errors import InvalidArgumentError
from recollect.ledger.commits import Branch
from recollect.operations import SCOPED, WHEN_FULL, Per, WhenFull, check_low_water
from recollect.stores.base import ReadView, Transaction

_NAME = "quota"
REFUSE: WhenFull = "refuse"
LEAST_RECENT: WhenFull = "least recent"
LEAST_IMPORTANT: WhenFull = "least important"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota(JsonForm, what="a quota"):
    """The quota of a namespace.

    Attributes:
        records: Maximum number of live records; None: no limit.
        bytes: Maximum size of the live records, in bytes of their canonical encoding; None: no limit.
        when_full: What happens to a write that exceeds the quota. "refuse": it raises QuotaError. "least recent": the
            least recently used (written, got or recalled) records are evicted. "least important": the least important
            ones are evicted, and among these the least recently used. Expired records are removed first; pinned
            records are never evicted.
        per: "user", "agent" or "conversation": the quota applies to each of them separately, and to all records
            without one together; None: to the namespace as a whole.
        low_water: The share of an exceeded limit, above 0 and at most 1, down to which a write evicts.

    Raises:
        InvalidArgumentError: A value is invalid.
    """

    records: int | None = None
    bytes: int | None = None
    when_full: WhenFull = REFUSE
    per: Per | None = None
    low_water: float = 1.0

    def __post_init__(self) -> None:
        for name in ("records", "bytes"):
            value = getattr(self, name)
            if value is not None and not is_integer(value, 1, MAX_COUNT - 1):
                raise InvalidArgumentError(name, value, "must be an integer of at least 1, or None for no limit")
        if self.when_full not in WHEN_FULL:
            raise InvalidArgumentError("when_full", self.when_full, f"must be one of {', '.join(WHEN_FULL)}")
        if self.per is not None and self.per not in SCOPED:
            raise InvalidArgumentError("per", self.per, f"must be one of {', '.join(SCOPED)}, or None")
        check_low_water(self.low_water, self.when_full)
        object.__setattr__(self, "low_water", float(self.low_water))

    def mark(self, limit: int) -> int:
        """Return the total down to which a write evicts that exceeds a limit.

        >>> Quota(records=10, when_full="least recent", low_water=0.29).mark(100)
        29
        """
        return int(limit * Fraction(repr(self.low_water)))  # the decimal as it was written: 100 * 0.29 is below 29


def quota_of(view: ReadView, branch: Branch) -> Quota | None:
    """Return the quota of a branch's namespace, or of the one that this belongs to; None if it has none.

    Raises:
        DamagedStoreError: The stored quota is invalid.
    """
    own = _own_quota(view, branch)
    found: Quota | None = own if own is not None else read_setting(view, branch, _NAME, Quota)
    return found


def sharing(view: ReadView, branch: Branch) -> list[Branch]:
    """Return the other branches whose records count towards the quota of a branch."""
    if _own_quota(view, branch) is not None:
        return []
    return [each for each in branch.family if each != branch and _own_quota(view, each) is None]


def _own_quota(view: ReadView, branch: Branch) -> Quota | None:
    """Return the quota that keyed memory has apart from that of its owner; None if it has none."""
    if not _can_have_own(branch):
        return None
    found: Quota | None = read_setting(view, branch, _NAME, Quota, own=True)
    return found


def _can_have_own(branch: Branch) -> bool:
    return branch.reserved_name in OWN_QUOTAS


def set_quota(transaction: Transaction, branch: Branch, quota: Quota | None) -> None:
    """Store a quota; None, or a quota without limits, removes it."""
    fields: dict[str, Any] | None = None
    if quota is not None and not (quota.records is quota.bytes is None):
        fields = asdict(quota)
        if quota.low_water == 1:
            del fields["low_water"]  # a release that does not know it reads the quota; with one, it refuses it
    write_setting(transaction, branch, _NAME, fields, own=_can_have_own(branch))
