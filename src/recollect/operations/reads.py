"""The operations that read records, commits and facts."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, get_args

from recollect.arguments.checks import (
    check_choice,
    check_count,
    check_flag,
    check_seconds,
    check_share,
    check_text,
    check_timeout,
    is_number,
)
from recollect.errors import InvalidArgumentError, InvalidFilterError
from recollect.filters.text_form import check_filter, metadata_path
from recollect.filters.tree import EVERYTHING, TEXT_FIELDS, Everything, Filter
from recollect.operations.base import READ, Operation, checked_ids, checked_parts, listed_ids
from recollect.records.frozen import altered
from recollect.records.record import check_instant, record_id
from recollect.text.languages import check_tag
from recollect.text.unicode import nfc

#: The fields whose values are listed, besides the metadata.
VALUE_FIELDS = ("tag", *(name for name in TEXT_FIELDS if name != "id"))
_LARGEST = sys.float_info.max
#: Thirty days, in seconds.
MONTH_S = 2_592_000.0
#: The orders in which records can be found. Ties always end with the id.
Order: TypeAlias = Literal["newest", "oldest", "importance", "position", "last", "id"]
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True, kw_only=True)
class Get(Operation, name="get", right=READ, result="Record | None"):
    """Read the record of an id. The result is the record, or None."""

    id: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", record_id(self.id))


@dataclass(frozen=True, kw_only=True)
class GetAll(Operation, name="get_all", right=READ, result="list[Record | None]"):
    """Read the records of several ids. The result is a list with the record of each id, in their order, or None."""

    ids: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", listed_ids(self.ids))


@dataclass(frozen=True, kw_only=True)
class Find(Operation, name="find", right=READ, result="RecordList"):
    """Find the records that match, in an order. The result is a `RecordList`.

    Attributes:
        where: Only records that match are returned.
        limit: Maximum number of records.
        after: Only records after the page whose cursor this is.
        with_commit: Return the times of their last commits, too.
    """

    where: Filter = field(default_factory=Everything)
    limit: int | None = None
    order: Order = "newest"
    after: str | None = None
    with_commit: bool = False

    def __post_init__(self) -> None:
        check_filter(self.where)
        check_count("limit", self.limit, optional=True)
        check_choice("order", self.order, ORDERS)
        if self.after is not None:
            check_text("after", self.after)
        check_flag("with_commit", self.with_commit)


@dataclass(frozen=True, kw_only=True)
class Count(Operation, name="count", right=READ, result="int"):
    """Count the records that match. The result is their number."""

    where: Filter = field(default_factory=Everything)

    def __post_init__(self) -> None:
        check_filter(self.where)


@dataclass(frozen=True, kw_only=True)
class DistinctValues(Operation, name="values", right=READ, result="list[ValueCount]"):
    """List the distinct values of a field. The result is a list of `ValueCount`, sorted by value.

    Attributes:
        field: "tag", the name of a text field, or `meta.KEY` or `meta[KEY][KEY]` as in the text form of filters.
        prefix: Only texts that begin with this.
        where: Only records that match count.
        limit: Maximum number of values.
        after: Only values after this one.
    """

    field: str
    prefix: str = ""
    where: Filter = EVERYTHING
    limit: int | None = None
    after: bool | float | str | None = None

    def __post_init__(self) -> None:
        self.source  # noqa: B018 - checks it
        check_text("prefix", self.prefix, blank=True)
        if not isinstance(self.source, tuple):  # names, and not what the metadata says
            object.__setattr__(self, "prefix", nfc(self.prefix))
        check_filter(self.where)
        if self.limit is not None:
            check_count("limit", self.limit)
        if isinstance(self.after, str):
            check_text("after", self.after, blank=True)
        elif not (self.after is None or isinstance(self.after, bool) or is_number(self.after, -_LARGEST, _LARGEST)):
            raise InvalidArgumentError("after", self.after, "must be a value: a text, a number or a truth value")

    @property
    def source(self) -> str | tuple[str, ...]:
        """The field: its name, or the keys of a value in the metadata."""
        if self.field in VALUE_FIELDS:
            return self.field
        rule = f"must be one of {', '.join(VALUE_FIELDS)}, or meta.KEY"
        try:
            path = metadata_path(self.field) if isinstance(self.field, str) else None
        except InvalidFilterError as error:
            path, rule = None, str(error.args[1])
        if path is None:
            raise InvalidArgumentError("field", self.field, rule)
        keys = (path,) if isinstance(path, str) else path
        for key in keys:
            check_text("field", key, blank=True)
        return keys


@dataclass(frozen=True, kw_only=True)
class ValidUntil(Operation, name="valid_until", right=READ, result="dict[str, datetime]"):
    """Find out when records stop being valid. The result is a dict of datetimes by id.

    Attributes:
        ids: The ids of the records.
    """

    ids: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", checked_ids(self.ids))


#: The threshold of `min_confidence="auto"`: it keeps 95 of 100 right first hits of the development data, and refuses as
#: many questions that the memory cannot answer as one threshold can (scripts/fit_threshold.py; docs/retrieval.md).
AUTO_CONFIDENCE = 0.31
#: A confidence from which on something counts as an answer, 0 to 1, or "auto".
MinConfidence: TypeAlias = float | Literal["auto"]


def least_confidence(value: MinConfidence) -> float:
    """Return the number that a least confidence means.

    Raises:
        InvalidArgumentError: The value is not "auto" or a number from 0 to 1.
    """
    if isinstance(value, str):
        if value != "auto":
            raise InvalidArgumentError("min_confidence", value, 'must be a number from 0 to 1, or "auto"')
        return AUTO_CONFIDENCE
    check_share("min_confidence", value)
    return value


@dataclass(frozen=True, kw_only=True)
class Recall(Operation, name="recall", right=READ, result="Hits"):
    """Find the records that answer a question best. The result is `Hits`.

    Attributes:
        k: Maximum number of hits.
        where: Only records that match are hits.
        reference: The time to which words such as "yesterday" in the question refer. None: now.
        min_confidence: Hits with a lower confidence are left out; 0 to 1, or "auto" for `AUTO_CONFIDENCE`.
        language: The language of the question, a BCP 47 tag. None: the memory's, or else detected.
        wait_for_vectors: Embed the texts that have no vector first.
        recency: What is added to the score of a record of the reference time, 0 to 1.
        recency_half_life: Age in seconds at which half of that is added.
        importance: What is added to the score of a record of importance 1, 0 to 1.
        importance_half_life: Age in seconds at which half of that is added. None: age makes no difference.
        concise: Return only those of the best `k` hits that add something to the ones before them.
    """

    question: str
    k: int = 10
    where: Filter = field(default_factory=Everything)
    reference: datetime | None = None
    min_confidence: MinConfidence = 0.0
    language: str | None = None
    wait_for_vectors: bool = False
    recency: float = 0.0
    recency_half_life: float = MONTH_S
    importance: float = 0.0
    importance_half_life: float | None = None
    concise: bool = False

    def __post_init__(self) -> None:
        check_text("question", self.question)
        for name in ("recency", "importance"):
            check_share(name, getattr(self, name))
            half_life = getattr(self, f"{name}_half_life")
            if isinstance(half_life, timedelta):
                half_life = half_life.total_seconds()
                object.__setattr__(self, f"{name}_half_life", half_life)
            if half_life is not None or name == "recency":
                check_seconds(f"{name}_half_life", half_life)
        if self.concise is not False:
            check_flag("concise", self.concise)
        if self.wait_for_vectors is not False:
            check_flag("wait_for_vectors", self.wait_for_vectors)
        if self.reference is not None:
            reference = check_instant("reference", self.reference)
            if not isinstance(self.reference, datetime):
                object.__setattr__(self, "reference", reference)
        if self.language is not None:
            check_tag(self.language)
        if self.min_confidence or type(self.min_confidence) is not float:
            least_confidence(self.min_confidence)
        check_count("k", self.k)
        check_filter(self.where)

    def with_reference(self, reference: datetime) -> Recall:
        """Return a copy with a reference time that has a time zone. Nothing is validated again."""
        return altered(self, reference=reference)


@dataclass(frozen=True, kw_only=True)
class FindSimilar(Operation, name="find_similar", right=READ, result="Similar"):
    """Find the records that are most similar to a text, from a minimum similarity on. The result is `Similar`.

    Attributes:
        k: Maximum number of records.
        minimum: The least similarity, inclusive; 0 to 1.
        where: Only records that match are found.
        embed: Embed those texts of them that have no vector first.
    """

    text: str
    k: int = 10
    minimum: float = 0.0
    where: Filter = field(default_factory=Everything)
    embed: bool = False

    def __post_init__(self) -> None:
        check_text("text", self.text)
        check_count("k", self.k)
        check_share("minimum", self.minimum)
        check_filter(self.where)
        check_flag("embed", self.embed)


@dataclass(frozen=True, kw_only=True)
class Grep(Operation, name="grep", right=READ, result="RecordList"):
    """Find the records whose text matches a full-text query, newest first. The result is a `RecordList`.

    Attributes:
        query: Words, "phrases", prefix*, and, or, not, parentheses.
        limit: Maximum number of records.
        where: Only records that match are returned.
    """

    query: str
    limit: int = 20
    where: Filter = field(default_factory=Everything)

    def __post_init__(self) -> None:
        check_text("query", self.query)
        check_count("limit", self.limit)
        check_filter(self.where)


@dataclass(frozen=True, kw_only=True)
class Changes(Operation, name="changes", right=READ, result="list[Commit]", in_batch=False, in_past=True):
    """List the commits after a cursor or a seq. The result is a list.

    Attributes:
        since: A seq, or the cursor of a commit.
        limit: Maximum number of commits.
        id: Only commits that changed this record.
        newest_first: List the newest commits first, instead of the oldest.
        where: Only changes of records that match before or after, and only commits that have such changes.
        parts: The parts of the memory that are concerned, by name: "records", or what a facet keeps. None: all.
    """

    since: int | str = 0
    limit: int | None = None
    id: str | None = None
    newest_first: bool = False
    where: Filter = field(default_factory=Everything)
    parts: Collection[str] | None = None

    def __post_init__(self) -> None:
        check_filter(self.where)
        object.__setattr__(self, "parts", checked_parts(self.parts))
        if self.id is not None:
            object.__setattr__(self, "id", record_id(self.id))
        if not isinstance(self.since, str):
            check_count("since", self.since, least=0)
        check_count("limit", self.limit, optional=True)
        check_flag("newest_first", self.newest_first)


@dataclass(frozen=True, kw_only=True)
class Wait(Operation, name="wait", right=READ, result="bool", in_batch=False):
    """Wait until there is a commit after a cursor or a seq. The result is whether there is one.

    Attributes:
        since: A seq, or the cursor of a commit.
        timeout: Maximum number of seconds to wait.
    """

    since: int | str
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not isinstance(self.since, str):
            check_count("since", self.since, least=0)
        check_timeout(self.timeout)


@dataclass(frozen=True, kw_only=True)
class Stats(Operation, name="stats", right=READ, result="dict"):
    """Count the records and describe the store. The result is a dict.

    Attributes:
        parts: The parts of the memory that are concerned, by name: "records", or what a facet keeps. None: all.
    """

    parts: Collection[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", checked_parts(self.parts))


@dataclass(frozen=True, kw_only=True)
class Namespaces(Operation, name="namespaces", right=READ, result="list[str]"):
    """List the names of the store's namespaces."""


@dataclass(frozen=True, kw_only=True)
class ReadHead(Operation, name="head", right=READ, result="NamespaceHead"):
    """Read the newest commit and the root of the namespace. The result is a `NamespaceHead`.

    Attributes:
        log: Also return the head of the log.
    """

    log: bool = False

    def __post_init__(self) -> None:
        check_flag("log", self.log)


@dataclass(frozen=True, kw_only=True)
class Prove(Operation, name="prove", right=READ, result="dict", in_batch=False, in_past=True):
    """Prove that a record is present or that its id is absent. The result is a dict (`ledger.proofs`).

    Attributes:
        at: The seq of the commit after which it is; None: the newest.
        part: The part of the memory that is looked into: "records", or the name of what a facet keeps. None: the first
            one that has the id, or else the records.
    """

    id: str
    at: int | None = None
    part: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", record_id(self.id))
        check_count("at", self.at, least=0, optional=True)
        if self.part is not None:
            check_text("part", self.part)


@dataclass(frozen=True, kw_only=True)
class ProveLog(Operation, name="prove_log", right=READ, result="dict", in_batch=False):
    """Prove that the log begins with an earlier log. The result is a dict (`ledger.proofs`).

    Attributes:
        old: The seq of the last commit of the earlier log.
        new: The seq of the last commit of the later log; None: the newest.
    """

    old: int
    new: int | None = None

    def __post_init__(self) -> None:
        check_count("old", self.old, least=0)
        check_count("new", self.new, least=0, optional=True)


@dataclass(frozen=True, kw_only=True)
class GetQuota(Operation, name="get_quota", right=READ, result="Quota | None"):
    """Read the quota of the namespace. The result is a `Quota`, or None."""


@dataclass(frozen=True, kw_only=True)
class GetPolicies(Operation, name="get_policies", right=READ, result="Policies"):
    """Read the policies of the namespace. The result is a `Policies`."""


@dataclass(frozen=True, kw_only=True)
class OpenExport(Operation, name="export", right=READ, result="Export", in_batch=False, in_past=True):
    """Open a snapshot of all live records. The result is an `Export`, which must be closed.

    Attributes:
        parts: The parts of the memory that are concerned, by name: "records", or what a facet keeps. None: all.
    """

    parts: Collection[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", checked_parts(self.parts))


@dataclass(frozen=True, kw_only=True)
class Now(Operation, name="now", right=READ, result="datetime"):
    """Read the clock of the memory. The result is a datetime."""


@dataclass(frozen=True, kw_only=True)
class Zone(Operation, name="zone", right=READ, result="str"):
    """Read the name of the time zone of the store (`recollect.common.zones`). The result is a text."""
