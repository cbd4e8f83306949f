"""The operations that concern a store as a whole: quotas, vectors, checks and backups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from recollect.arguments.checks import check_choice, check_count, check_flag, file_path, is_number
from recollect.errors import InvalidArgumentError
from recollect.operations.base import ADMIN, READ, SCOPED, WRITE, Operation, Per
from recollect.policies import CATEGORIES, LEVELS, Level
from recollect.policies.redaction import check_categories
from recollect.records.origins import ORIGINS, OWNER, USER, Origin, check_origin

#: What a write that exceeds the quota can do.
WhenFull: TypeAlias = Literal["refuse", "least recent", "least important", "oldest"]
WHEN_FULL: tuple[WhenFull, ...] = get_args(WhenFull)


def check_low_water(value: object, when_full: WhenFull) -> None:
    """Raise InvalidArgumentError unless it is the low-water mark of a quota, or 1 if nothing is evicted."""
    if not is_number(value, 0, 1) or value == 0:
        raise InvalidArgumentError("low_water", value, "must be a number above 0 and at most 1")
    if value != 1 and when_full == WHEN_FULL[0]:
        raise InvalidArgumentError("low_water", value, "requires a quota that evicts, such as when_full='least recent'")


@dataclass(frozen=True, kw_only=True)
class SetQuota(Operation, name="set_quota", right=ADMIN, result="None", in_batch=False):
    """Set the quota of the namespace (`engine.settings.Quota`); without `records` and `bytes`, remove it."""

    records: int | None = None
    bytes: int | None = None
    when_full: WhenFull = "refuse"
    per: Per | None = None
    low_water: float = 1.0

    def __post_init__(self) -> None:
        check_count("records", self.records, optional=True)
        check_count("bytes", self.bytes, optional=True)
        check_choice("when_full", self.when_full, WHEN_FULL)
        if self.per is not None:
            check_choice("per", self.per, SCOPED)
        for name, default in (("when_full", WHEN_FULL[0]), ("per", None), ("low_water", 1.0)):
            if self.records is self.bytes is None and getattr(self, name) != default:
                value = getattr(self, name)
                rule = "requires records or bytes: a quota is set as a whole"
                raise InvalidArgumentError(name, value, rule)
        check_low_water(self.low_water, self.when_full)
        object.__setattr__(self, "low_water", float(self.low_water))


#: What a memory can do with a text that contains what its policy does not allow.
Redaction: TypeAlias = Literal["keep", "redact", "refuse"]
REDACTIONS: tuple[Redaction, ...] = get_args(Redaction)
#: The classes of origin whose texts a policy can keep away: those of anybody but the user and the owner.
_JUDGED = tuple(each for each in ORIGINS if each not in (OWNER, USER))
#: What can happen to a text by who said it, or because it looks like an attack.
Handling: TypeAlias = Literal["store", "quarantine", "refuse"]
HANDLINGS: tuple[Handling, ...] = get_args(Handling)


@dataclass(frozen=True, kw_only=True)
class SetPolicies(Operation, name="set_policies", right=ADMIN, result="None", in_batch=False):
    """Set the policies of the namespace (`engine.settings.Policies`), all of them."""

    redaction: Redaction = "keep"
    categories: tuple[str, ...] = CATEGORIES
    salience: Level = "off"
    origins: Mapping[Origin, Handling] = field(default_factory=dict)
    flagged: Handling = "store"
    record_origins: bool = True

    def __post_init__(self) -> None:
        check_choice("redaction", self.redaction, REDACTIONS)
        check_choice("salience", self.salience, LEVELS)
        object.__setattr__(self, "categories", check_categories(self.categories))
        if not isinstance(self.origins, Mapping):
            raise InvalidArgumentError("origins", self.origins, 'must map classes of origin, as {"web": "quarantine"}')
        for origin, handling in self.origins.items():
            check_origin("origins", origin, _JUDGED)
            check_choice("origins", handling, HANDLINGS)
        found = {each: self.origins[each] for each in ORIGINS if self.origins.get(each, "store") != "store"}
        object.__setattr__(self, "origins", found)
        check_choice("flagged", self.flagged, HANDLINGS)
        check_flag("record_origins", self.record_origins)
        if not self.record_origins and (found or self.flagged != "store"):
            raise InvalidArgumentError("record_origins", False, "excludes policies by the class of origin")


@dataclass(frozen=True, kw_only=True)
class EmbedAll(Operation, name="embed_all", right=WRITE, result="int", in_batch=False, atomic=False):
    """Embed every text that has no vector. The result is their number.

    Attributes:
        batch_size: Number of texts that are passed to the embedder at a time.
        progress: Called with the number of records processed so far and the total. It has no JSON form.
    """

    batch_size: int = 100
    progress: Callable[[int, int], object] | None = None

    def __post_init__(self) -> None:
        check_count("batch_size", self.batch_size)
        if self.progress is not None and not callable(self.progress):
            raise InvalidArgumentError("progress", self.progress, "must be a function of two numbers")


@dataclass(frozen=True, kw_only=True)
class VectorStats(Operation, name="vector_stats", right=READ, result="dict", in_batch=False):
    """Count the records that have a vector. The result is a dict."""


@dataclass(frozen=True, kw_only=True)
class Check(Operation, name="check", right=ADMIN, result="CheckReport", in_batch=False, atomic=False, of_store=True):
    """Check the whole store. The result is a `CheckReport`."""


@dataclass(frozen=True, kw_only=True)
class Compact(Operation, name="compact", right=ADMIN, result="Compacted", in_batch=False, atomic=False, of_store=True):
    """Give the free space of the store back to the system. The result is a `Compacted`."""


@dataclass(frozen=True, kw_only=True)
class BackUp(Operation, name="backup", right=ADMIN, result="Backup", in_batch=False, atomic=False, of_store=True):
    """Copy the store to a file. The result is a `Backup`.

    Attributes:
        path: The file, on the machine that has the store.
        verify: Check the copy completely before it takes the place of the file at `path`.
        force: Replace any file; otherwise only an older backup is replaced.
    """

    path: str
    verify: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", file_path("path", self.path))
        for name in ("verify", "force"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgumentError(name, getattr(self, name), "must be true or false")


@dataclass(frozen=True, kw_only=True)
class Probe(Operation, name="probe", right=ADMIN, result="None", in_batch=False, atomic=False, of_store=True):
    """Write a value outside the ledger, durably, and read it back. The result is None."""
