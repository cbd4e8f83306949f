"""The settings of a namespace: its quota, policies and retention, and how they are stored, as JSON outside the ledger.

A reserved namespace has the settings of its owner, but those that are its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, NamedTuple

from recollect.arguments.checks import MAX_COUNT, is_integer
from recollect.arguments.json_form import JsonForm
from recollect.engine.facets import JUDGED, OWN_QUOTAS
from recollect.errors import DamagedStoreError, InvalidArgumentError, RecollectError
from recollect.ledger.commits import Branch
from recollect.operations import SCOPED, WHEN_FULL, Per, Redaction, SetPolicies, WhenFull, check_low_water
from recollect.operations.retention import Retention
from recollect.operations.upkeep import Handling
from recollect.policies import CATEGORIES, Level
from recollect.records.origins import Origin
from recollect.stores.base import ReadView, Transaction, View


def _key(name: str, branch: Branch, own: bool) -> str:
    return f"{name}/{branch.namespace if own else branch.owner.namespace}"


def read_setting(view: ReadView, branch: Branch, name: str, build: type[Any], *, own: bool = False) -> Any:
    """Return a setting, built from its fields; None if it is not set.

    Args:
        view: A view of the store.
        name: The name of the setting.
        build: Builds it.
        own: Whether it applies only to a reserved namespace.

    Raises:
        DamagedStoreError: What is stored is invalid.
    """
    text = view.setting(_key(name, branch, own))
    if text is None:
        return None
    try:
        return build(**json.loads(text))
    except (ValueError, TypeError, RecollectError) as error:
        raise DamagedStoreError("the store", f"the {name} of {branch.namespace!r} cannot be read: {error}") from None


def write_setting(
    transaction: Transaction, branch: Branch, name: str, fields: Mapping[str, Any] | None, *, own: bool = False
) -> None:
    """Store the fields of a setting; None removes it. See `read_setting`."""
    transaction.set_setting(_key(name, branch, own), None if fields is None else json.dumps(fields))


# The quota of a namespace: what it is, and how it is stored. `write.quotas` enforces it.

_QUOTA = "quota"
REFUSE: WhenFull = "refuse"
LEAST_RECENT: WhenFull = "least recent"
OLDEST: WhenFull = "oldest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota(JsonForm, what="a quota"):
    """The quota of a namespace.

    Attributes:
        records: Maximum number of live records; None: no limit.
        bytes: Maximum size of the live records, in bytes of their canonical encoding; None: no limit.
        when_full: What happens to a write that exceeds the quota. "refuse": it raises QuotaError. "least recent": the
            least recently used (written, got or recalled) records are evicted. "least important": the least important
            ones are evicted, and among these the least recently used. "oldest": those with the earliest time, and
            before them those without a time. Expired records are removed first; pinned records are never evicted.
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
    found: Quota | None = own if own is not None else read_setting(view, branch, _QUOTA, Quota)
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
    found: Quota | None = read_setting(view, branch, _QUOTA, Quota, own=True)
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
    write_setting(transaction, branch, _QUOTA, fields, own=_can_have_own(branch))


# The policies of a namespace: what every text must obey, whichever process writes it.
#
# They are read inside the transaction of each write. `write.admission` applies them.

_POLICIES = "policies"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies(JsonForm, what="policies"):
    """The policies of a namespace.

    Attributes:
        redaction: What happens to a text that contains something of `categories`, in its content or its metadata.
            "keep": it is stored as it is. "redact": it is stored with asterisks instead. "refuse": it is rejected.
        categories: See `recollect.policies.redact`.
        salience: How strictly the content of a record is judged. What is not worth remembering is rejected: see
            `recollect.policies.judge`.
        origins: What happens to records of classes of origin below the user's: "store", "quarantine" or "refuse". The
            records of classes that it does not name are stored.
        flagged: What happens to a record of such a class whose text looks like an attack (`recollect.policies.flags`).
        record_origins: Whether classes of origin are recorded: that of the writer, and the least one of what a record
            derives from. Otherwise each record has the class that its fields imply.

    Raises:
        InvalidArgumentError: A value is invalid.
    """

    redaction: Redaction = "keep"
    categories: tuple[str, ...] = CATEGORIES
    salience: Level = "off"
    origins: Mapping[Origin, Handling] = field(default_factory=dict)
    flagged: Handling = "store"
    record_origins: bool = True

    def __post_init__(self) -> None:
        checked = SetPolicies(**{each.name: getattr(self, each.name) for each in fields(self)})
        object.__setattr__(self, "categories", checked.categories)
        object.__setattr__(self, "origins", checked.origins)


#: The fields that earlier releases do not know.
_NEWER = ("origins", "flagged", "record_origins")
#: The policies of a namespace that has set none.
NONE = Policies()


def policies_of(view: ReadView, branch: Branch) -> Policies:
    """Return the policies of a branch's namespace, or of the one that this belongs to.

    What is stored beside its records, such as the terms of a glossary, is judged by its salience only if its facet says
    so (`Facet.judged`).

    Raises:
        DamagedStoreError: The stored policies are invalid.
    """
    found: Policies | None = read_setting(view, branch, _POLICIES, Policies)
    policies = NONE if found is None else found
    unjudged = branch.is_reserved and branch.reserved_name not in JUDGED
    return replace(policies, salience="off") if unjudged else policies


def set_policies(transaction: Transaction, branch: Branch, policies: Policies) -> None:
    """Store policies; the default ones remove the setting."""
    out = policies.to_json()
    for each in _NEWER:
        if getattr(policies, each) == getattr(NONE, each):
            del out[each]  # a release that does not know it reads the others
    write_setting(transaction, branch, _POLICIES, None if policies == NONE else out)


# The retention of a namespace: how long its records stay. `retaining` applies it, and no ordinary write reads it.

_RETENTION = "retention"
#: How far former versions have been examined: a setting of each part, with a seq for each branch.
_EXAMINED = "thinned"
_NO_RETENTION = Retention()
#: For how long a process knows whether a rule counts uses (`counts_uses`), in microseconds: most reads ask nothing.
KNOWN_FOR = 60_000_000


def retention_of(view: ReadView, branch: Branch) -> Retention:
    """Return the retention of a branch's namespace.

    Raises:
        DamagedStoreError: The stored retention is invalid.
    """
    found: Retention | None = read_setting(view, branch, _RETENTION, Retention)
    return _NO_RETENTION if found is None else found


def set_retention(transaction: Transaction, branch: Branch, retention: Retention) -> None:
    """Store a retention; without rules and `keep_versions`, it is removed.

    All former versions are examined again by it: what a hold has kept may be due now.
    """
    write_setting(transaction, branch, _RETENTION, retention.to_json() if retention else None)
    for each in branch.family:
        transaction.set_setting(_examined_key(each), None)


def counts_uses(view: ReadView, branch: Branch) -> bool:
    """Return whether the namespace has a rule by which the last use of a record counts, so that uses must be noted."""
    return not branch.is_reserved and any(each.since == "used" for each in retention_of(view, branch).rules)


def examined(view: ReadView, branch: Branch) -> int:
    """Return the commit up to which all former versions that are due have been thinned; 0: none."""
    return _examined(view, branch).get(branch.name, 0)


def set_examined(transaction: Transaction, branch: Branch, seq: int) -> None:
    """Note the commit up to which all former versions that are due have been thinned."""
    transaction.set_setting(_examined_key(branch), json.dumps({**_examined(transaction, branch), branch.name: seq}))


def _examined_key(branch: Branch) -> str:
    return f"{_EXAMINED}/{branch.namespace}"


def _examined(view: ReadView, branch: Branch) -> dict[str, int]:
    """Return how far each branch of a namespace has been examined. Without a valid note, it is examined again."""
    try:
        noted = json.loads(view.setting(_examined_key(branch)) or "{}")
    except ValueError:
        return {}
    return {name: seq for name, seq in noted.items() if is_integer(seq, 0)} if isinstance(noted, dict) else {}


# The merges of branches: up to which commit a branch was merged into another one.

#: The settings of merges: `merge/NAMESPACE`, a control character before the name of the branch that was written, and
#: one before that of the merged one.
_MERGES, _MARK, _AFTER_MARK = "merge/", "\x1f", "\x20"


class Taken(NamedTuple):
    """What a branch has of another one that was merged into it.

    Attributes:
        seq: The newest commit of the other branch that was merged.
        at: The first commit of this branch that has what was merged.
        base: What both had in common when it was merged: a branch, and the number of a commit. None if that is not
            known, as of a copy of the store.
    """

    seq: int
    at: int
    base: tuple[str, int] | None = None


def set_merged(transaction: Transaction, branch: Branch, into: Branch, taken: Taken) -> None:
    """Note that a branch was merged into another one."""
    transaction.set_setting(_merge_setting(into, branch), json.dumps(taken._asdict()))


def merged_upto(view: View, branch: Branch, into: Branch) -> Taken | None:
    """Return what another branch has of a branch that was merged into it; None if it was not."""
    written = view.setting(_merge_setting(into, branch))
    return None if written is None else _taken(written, branch.name)


def merged_into(view: View, into: Branch) -> dict[Branch, Taken]:
    """Return what a branch has of each that was merged into it."""
    first = f"{_MERGES}{into.namespace}{_MARK}{into.name}"
    found = {
        each.removeprefix(first + _MARK): written
        for each, written in view.settings(first + _MARK, first + _AFTER_MARK).items()
    }
    return {Branch(into.namespace, name): _taken(written, name) for name, written in found.items()}


def merged_elsewhere(view: View, branch: Branch) -> dict[Branch, Taken]:
    """Return what other branches have of one that was merged into them."""
    found = (name.removeprefix(f"{_MERGES}{branch.namespace}{_MARK}").split(_MARK) for name in merges_of(view, branch))
    into = (Branch(branch.namespace, name) for name, merged in found if merged == branch.name)
    return {each: taken for each in into if (taken := merged_upto(view, branch, each)) is not None}


def _taken(written: str, name: str) -> Taken:
    try:
        noted = json.loads(written)
        seq, at, base = noted["seq"], noted["at"], noted["base"]
        if not (is_integer(seq, 0) and is_integer(at, 0)):
            raise TypeError("it is no number")
        return Taken(seq, at, None if base is None else (str(base[0]), int(base[1])))
    except (ValueError, TypeError, LookupError):
        raise DamagedStoreError("the store", f"what was merged of branch {name!r} cannot be read") from None


def _merge_setting(into: Branch, branch: Branch) -> str:
    return f"{_MERGES}{into.namespace}{_MARK}{into.name}{_MARK}{branch.name}"


# The erasures of other copies of the store: which commits repeat them.

#: The settings of repeated erasures: `repeated/NAMESPACE`, a control character, and the number of the commit.
_REPEATED = "repeated/"


def repeated_by(view: View, main: Branch) -> dict[int, dict[str, frozenset[bytes]]]:
    """Return which commits of the main branch of a namespace repeat erasures of other copies of the store.

    Returns:
        By the number of the commit, the entries of the commits that erased each record, by part and redacted id.
    """
    first = f"{_REPEATED}{main.namespace}{_MARK}"
    found = view.settings(first, f"{_REPEATED}{main.namespace}{_AFTER_MARK}")
    try:
        return {
            int(name.removeprefix(first)): {
                item: frozenset(map(bytes.fromhex, entries)) for item, entries in json.loads(written).items()
            }
            for name, written in found.items()
        }
    except (ValueError, TypeError, AttributeError):
        raise DamagedStoreError("the store", "which erasures of other copies are repeated cannot be read") from None


def set_repeated(transaction: Transaction, main: Branch, seq: int, items: Mapping[str, Set[bytes]]) -> None:
    """Note that a commit of the main branch repeats erasures of another copy of the store. See `repeated_by`."""
    written = {item: sorted(each.hex() for each in entries) for item, entries in items.items()}
    transaction.set_setting(f"{_REPEATED}{main.namespace}{_MARK}{seq}", json.dumps(written))


def merges_of(view: View, memory: Branch) -> dict[str, str]:
    """Return the settings of all merges of a namespace, by name."""
    return view.settings(f"{_MERGES}{memory.namespace}{_MARK}", f"{_MERGES}{memory.namespace}{_AFTER_MARK}")
