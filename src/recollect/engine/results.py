"""Results of calls: outcomes of writes, hits of recall with their explanations, and what is similar; their JSON."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Protocol,
    TypeAlias,
    TypedDict,
    get_args,
    overload,
)

from recollect.arguments.json_form import Form, JsonForm, form_named, is_result, json_form, register_form
from recollect.common.reprs import ShownTable, line, short_id, shows_itself, table
from recollect.common.uncopied import Uncopied
from recollect.errors import ClosedError, InvalidRecordError, RecollectError, RejectedError, UnsupportedError, Verdict
from recollect.indexes.fixed_point import SHARE_BITS
from recollect.indexes.words.index import QueryTerm
from recollect.ledger.parts import RECORDS
from recollect.ledger.receipts import Receipt
from recollect.operations import At, ExecuteBatch, Operation, Per, WhenFull, plain
from recollect.operations import from_json as operation_from_json
from recollect.quoting import shown
from recollect.records.origins import Origin
from recollect.records.record import Record
from recollect.text.manner import STANDING_TAGS
from recollect.text.marks import marks

#: The effect of a write on a record.
Status: TypeAlias = Literal[
    "created", "updated", "unchanged", "forgotten", "rejected", "echo", "proposed", "quarantined"
]


class QuotaUse(TypedDict):
    """A quota and how much of it is used, in `MemoryStats`."""

    records: int | None
    bytes: int | None
    when_full: WhenFull
    per: Per | None
    low_water: float
    records_used: int
    bytes_used: int


class MemoryStats(TypedDict):
    """The result of `Memory.stats`, which describes the keys. The last four are absent within a scope."""

    namespace: str
    records: int
    kinds: dict[str, int]
    users: int
    conversations: int
    entities: int
    oldest: str | None
    newest: str | None
    parts: dict[str, int]
    seq: NotRequired[int]
    root: NotRequired[str]
    quota: NotRequired[QuotaUse]
    store: NotRequired[dict[str, Any]]


class VectorCounts(TypedDict):
    """The result of `Memory.vector_stats`, which describes the keys. The last two are absent within a scope."""

    model: str | None
    dimensions: int | None
    total: int
    embedded: int
    coverage: float
    failed: list[dict[str, str]]
    watermark: NotRequired[int | None]
    models: NotRequired[list[dict[str, Any]]]


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class Outcome(JsonForm, what="an outcome"):
    """The effect of a write on one record.

    Attributes:
        record: The record as it is stored now; after forgetting, its last version, or None if it was forgotten before.
        status: "created", "updated", "forgotten", or "unchanged" if the state already was as requested. "rejected": a
            policy does not allow the text, and nothing was stored. "echo": the text only repeats what this memory
            answered before, and was not stored again; `record` is then its first source. "proposed": what
            is asked for is not for the class of origin of the writer (docs/trust.md): to change or replace a record of
            a higher class, which stays, to be a standing instruction, or pinned. `record` was stored, and has that
            effect once it is endorsed (`Memory.endorse`). "quarantined": a policy keeps the record
            apart (`Memory.quarantine`); None if one like it was rejected there.
        differing: Fields for which another value was passed than the stored one, which was kept.
        asked_id: The requested id, if another text has it and the record got an id with a counter instead; of a
            proposal, the id of the record that it would change, if there is one.
        verdict: Why the text was rejected.
        sources: The ids of the records that an echo repeats.
    """

    record: Record | None
    status: Status
    differing: tuple[str, ...] = ()
    asked_id: str | None = None
    verdict: Verdict | None = None
    sources: tuple[str, ...] = ()

    def checked(self) -> Outcome:
        """Return the outcome, unless it is a rejection.

        Raises:
            RejectedError: A policy of the memory rejected the text.
        """
        if self.verdict is not None:
            raise RejectedError(self.verdict.policy, self.verdict.reason, *self.verdict.found)
        return self

    def _table(self) -> ShownTable:
        if self.record is None:
            reason = f": the text {self.verdict.reason}" if self.verdict else ""
            return ShownTable(f"Outcome {self.status}{reason}", ())
        return ShownTable(f"Outcome {self.status} {line(self.record.id)} {line(self.record.content)}", ())

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        out: dict[str, Any] = {"status": self.status, "record": self.record and record_json(self.record)}
        if self.differing:
            out["differing"] = list(self.differing)
        if self.asked_id:
            out["asked_id"] = self.asked_id
        if self.verdict:
            out["verdict"] = {**self.verdict._asdict(), "found": list(self.verdict.found)}
        if self.sources:
            out["sources"] = list(self.sources)
        return out


@dataclass(frozen=True, slots=True)
class Failed:
    """An item that was not stored.

    Attributes:
        item: The item as it was passed.
        index: Its index among the items, from 0.
        reason: The error.
    """

    item: Any
    index: int
    reason: RecollectError

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form. An item that has none is described by its `repr`."""
        return {"place": self.index, **self.reason.to_json(), "item": _item_json(self.item)}

    @classmethod
    @json_form("a failed item")
    def from_json(cls, data: Mapping[str, Any]) -> Failed:
        """Rebuild a failure from its JSON form."""
        return cls(_item_from_json(data["item"]), data["place"], RecollectError.from_json(data))


@is_result("a value with its count")
class ValueCount(NamedTuple):
    """A value of a field, and how many records have it."""

    value: Any
    records: int


@is_result()
@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The result of storing many items.

    Attributes:
        results: The outcomes, in the order of the items, without those that failed.
        failed: The items that were not stored.
    """

    results: tuple[Outcome, ...] = ()
    failed: tuple[Failed, ...] = ()

    def _table(self) -> ShownTable:
        counts = Counter(outcome.status for outcome in self.results)
        parts = [f"{counts[status]} {status}" for status in get_args(Status) if counts[status]]
        parts += [f"{len(self.failed)} failed"] if self.failed else []

        def row(each: Failed) -> tuple[str, ...]:
            return str(each.index), line(str(each.reason), 100), line(shown(each.item, 40))

        return table(f"Report {', '.join(parts) or 'empty'}", ("item", "reason", "value"), self.failed, row)

    def count(self, status: Status) -> int:
        """Return how many outcomes have a status, such as "created"."""
        return sum(outcome.status == status for outcome in self.results)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            **{status: self.count(status) for status in ("created", "updated", "unchanged")},
            "results": [outcome.to_json() for outcome in self.results],
            "failed": [failed.to_json() for failed in self.failed],
        }

    @classmethod
    @json_form("a report")
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """Rebuild a report from its JSON form."""
        return cls(tuple(map(Outcome.from_json, data["results"])), tuple(map(Failed.from_json, data["failed"])))


class Word(NamedTuple):
    """A word of the question that contributed to a hit's score.

    Attributes:
        word: The word in the question.
        like: The known word that replaced it because it is unknown or misspelt, or the member of the class that it
            names ("cat" for "pet"); else "".
        score: Its part of the hit's score.
        own: The part of `score` that comes from the record's own text.
        lent_by: Ids of the surrounding turns that the rest of `score` comes from.
        title: The part of `score` that comes from the titles above the record.
    """

    word: str
    like: str
    score: float
    own: float
    lent_by: tuple[str, ...]
    title: float = 0.0


@dataclass(frozen=True, slots=True)
class Why(JsonForm, what="an explanation"):
    """The explanation of a hit's score.

    Attributes:
        shares: The share of each signal. They add up to the score exactly.
        words: The words that matched, highest score first; after them the member of a class.
        replaces: Ids of the records that the record replaces.
        cosine: The similarity in meaning of the question and the record, 0 to 1: the cosine of their vectors. None if
            it adds nothing to the score: it is below the floor of the model, or one of them has no vector. Then a share
            "dense" comes from the surrounding turns.
    """

    shares: Mapping[str, float]
    words: tuple[Word, ...]
    replaces: tuple[str, ...] = ()
    cosine: float | None = None

    def __str__(self) -> str:
        shares = " + ".join(f"{name} {share:.3f}" for name, share in self.shares.items())
        words = ", ".join(self._reasons())
        out = f"{shares} ({words})" if words else shares
        return f"{out}; replaces {', '.join(map(short_id, self.replaces))}" if self.replaces else out

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        out: dict[str, Any] = {"shares": dict(self.shares), "words": [word._asdict() for word in self.words]}
        if self.replaces:
            out["replaces"] = list(self.replaces)
        if self.cosine is not None:
            out["cosine"] = self.cosine
        return out

    @property
    def meaning(self) -> str:
        """How close the hit, or a turn near it, is to the question in meaning, in words; "" if no vector says so."""
        if self.cosine is not None:
            return f"close in meaning, {self.cosine:.2f}"
        return "near turns that are close in meaning" if self.shares.get("dense") else ""

    def _reasons(self, most: int | None = None) -> list[str]:
        """Return the words that matched, the first `most` of them, and the similarity in meaning."""
        out = [_described(word) for word in self.words[:most]]
        return [*out, self.meaning] if self.meaning else out


def _described(word: Word) -> str:
    out = f"{word.word} as {word.like}" if word.like else word.word
    if word.lent_by and word.own == 0.0:
        out += f" from {short_id(word.lent_by[0])}"
    elif word.title and word.own == 0.0:
        out += " in the title"
    return out


class _Unread:
    """The part of a hit that says where its explanation and its record are, as long as those are not computed."""

    __slots__ = ("_late", "_unread")


class RecordSource(Protocol):
    """A source of the record of a hit, which decodes its bytes (`engine.read.record_loader.LateRecord`)."""

    @property
    def payload(self) -> bytes: ...
    def get(self) -> Record: ...


class WhySource(Protocol):
    """A source of the explanations of the hits of an answer (`engine.read.explaining`)."""

    def at(self, place: int) -> Why: ...


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class Hit(JsonForm, _Unread, what="a hit"):
    """A record that answers a question.

    Attributes:
        score: The sum of `why.shares`.
        confidence: The calibrated score, 0 to 1 (see docs/retrieval.md).
        why: The explanation of the score. It is computed, for all hits of the answer, when the first one is read.

    A record, too, may be decoded only when it is read.
    """

    record: Record
    score: float
    confidence: float
    why: Why

    if not TYPE_CHECKING:  # it would hide misspelt names from type checkers

        def __getattr__(self, name: str) -> Any:
            """Compute `why` or `record`. Python calls this only for attributes that are missing."""
            if name not in ("why", "record"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            of = "_unread" if name == "why" else "_late"
            source = getattr(self, of)
            if source is None:  # another thread has computed it meanwhile
                return object.__getattribute__(self, name)
            value = source[0].at(source[1]) if name == "why" else source.get()
            _SET[name](self, value)
            _SET[of](self, None)
            return value

    @property
    def origin(self) -> Origin:
        """The class of who said it, such as "user" or "web" (docs/trust.md).

        What a program does because of a hit should depend on it.
        """
        return self.record.effective_origin

    @property
    def is_proposal(self) -> bool:
        """True if the record would govern or replace others, and must be endorsed first: it is not the user's word."""
        record = self.record
        would = record.pinned or bool(record.supersedes) or any(tag in STANDING_TAGS for tag in record.tags)
        return would and not record.has_authority

    @property
    def marks(self) -> tuple[tuple[int, int], ...]:
        """The places of the matched words in `record.text`: start and end of each, in characters.

        They are for people: a word that is known in another form, or in another language, may not be marked.
        """
        words = [each.like or each.word for each in self.why.words if each.own or each.title]
        return marks(self.record.text, words, self.record.language)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which states the class of origin of what is not the word of the user or the owner."""
        out = JsonForm.to_json(self)
        return out if self.record.has_authority else {**out, "origin": self.origin}

    def _table(self) -> ShownTable:
        score, confidence, *rest = self._cells()
        return ShownTable(f"Hit {score}, confidence {confidence}: {'  '.join(rest).rstrip()}", ())

    def _cells(self) -> tuple[str, ...]:
        """Return what a table of hits shows of it: the columns are `_HIT_COLUMNS`."""
        words = line(", ".join(self.why._reasons(_MAX_WORDS)))
        record = self.record
        return f"{self.score:.3f}", f"{self.confidence:.2f}", line(record.id, 40), line(record.content), words


#: The functions that set the slots of a hit, frozen or not.
_SET: dict[str, Callable[[Hit, Any], None]] = {
    name: getattr(Hit, name).__set__ for name in ("record", "score", "confidence", "why", "_unread", "_late")
}


def payload_of(hit: Hit) -> bytes:
    """Return the canonical bytes of the record of a hit, without decoding it."""
    try:
        late: RecordSource | None = hit._late  # type: ignore[attr-defined]
    except AttributeError:
        late = None
    return hit.record.to_bytes() if late is None else late.payload


def hit_without_why(
    record: Record | RecordSource, score: float, confidence: float, source: WhySource, place: int
) -> Hit:
    """Return a hit whose explanation is computed when it is read.

    Args:
        record: The record, or what decodes it when it is read.
        score: Its score.
        confidence: The calibrated score.
        source: What computes the explanation.
        place: The place of the hit there.
    """
    hit = object.__new__(Hit)
    _SET["record" if isinstance(record, Record) else "_late"](hit, record)
    _SET["score"](hit, score)
    _SET["confidence"](hit, confidence)
    _SET["_unread"](hit, (source, place))
    return hit


@dataclass(frozen=True, slots=True)
class Plan(JsonForm, what="a plan"):
    """The processing of a question.

    Attributes:
        k: The maximum number of hits.
        terms: The terms that were searched for, including replacements of unknown words.
        weight: The weight of the question: the sum of the IDF of its terms, counting repeated terms.
        passed: Number of records that the question reaches, among those that the index admits for the filter.
        narrowed: Number of live records that the index admits for the filter, before scoring; None if there is no
            filter, or if the index cannot evaluate any part of it and it is evaluated for each hit.
        notes: Reasons why a signal was not used.
        vectors: The seq up to which every text has a vector; None if no embedder was used, and within a scope.
        closest: The greatest similarity in meaning of the question and any record, even one that is no hit: the cosine
            of their vectors, -1 to 1. None if no vectors were used. Confidence depends on it.
        floor: The cosine up to which a record counts as unrelated to the question: the embedder's, and most of what the
            median of the records is above it. None if no vectors were used.
        vector: The vector of the question that the records were compared with, for a receipt: its quantised components,
            two bytes each with the lower first, in base64. "" if there was none, and within a scope.
        kernels: The kernels that computed the scores, "native" or "numpy". Both give identical results, so plans that
            differ only in this are equal.
        dates: How the dates of the question were read: the phrases, and the days that they mean. "" if it names none.
    """

    question: str
    k: int
    terms: tuple[QueryTerm, ...]
    weight: float
    passed: int
    narrowed: int | None
    notes: tuple[str, ...] = ()
    vectors: int | None = None
    closest: float | None = None
    floor: float | None = None
    vector: str = field(default="", repr=False)
    kernels: str = field(default="numpy", compare=False)
    dates: str = ""


class LeftOut(NamedTuple):
    """A hit that a concise answer leaves out.

    Attributes:
        id: The id of its record.
        score: Its score.
        confidence: Its confidence.
        reason: Why it is left out.
    """

    id: str
    score: float
    confidence: float
    reason: str


_HIT_COLUMNS = ("score", "confidence", "id", "content", "words")
#: Maximum number of words of an explanation in a repr.
_MAX_WORDS = 6


@is_result()
@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class Hits(Sequence[Hit]):
    """The hits of a question, best first, and the snapshot that they were computed from. A sequence of `Hit`.

    Attributes:
        plan: How the question was processed.
        watermark: The seq of the commit that the index reflects; 0 within a scope.
        root: The root hash of the namespace at that commit, in hex; "" within a scope.
        standing: Standing instructions and preferences (records tagged "standing:..."), the most relevant first. They
            are separate from the hits and do not count towards `k`.
        token: The cursor within a scope; "" outside.
        reference: The time that expressions such as "yesterday" were relative to.
        time: The time that decided which records had expired; None within a scope.
        left_out: With `concise`, those of the best `k` hits that add too little, best first.
    """

    hits: tuple[Hit, ...]
    plan: Plan
    watermark: int
    root: str
    standing: tuple[Hit, ...] = field(default=())
    token: str = ""
    reference: datetime | None = field(default=None, compare=False)
    time: datetime | None = field(default=None, compare=False)
    left_out: tuple[LeftOut, ...] = ()
    _receipts: Callable[[Hits], Receipt] | None = field(default=None, init=False, compare=False)

    def bind(self, receipts: Callable[[Hits], Receipt]) -> None:
        """Set what writes the receipt. The memory calls it once, before anything else sees the hits."""
        object.__setattr__(self, "_receipts", receipts)

    @property
    def receipt(self) -> Receipt:
        """A receipt, as plain JSON: it binds the question and these hits to the commit that they were computed from.

        It can be read later too, whatever was committed since. `Memory.replay` and `recollect replay` ask the question
        again and compare. docs/receipts.md specifies it.

        Raises:
            ScopeError: The memory is scoped: a receipt covers the whole namespace.
            UnsupportedError: The question had a custom filter, or these hits come from a batch or from JSON, or are a
                copy.
            UnknownTargetError: The store has another history since: an older copy was restored.
            StoreError: The store failed.

        Cost:
            O(log n) for each hit, and that of `Memory.head`. Nothing if it is not read.
        """
        if self._receipts is None:
            why = (
                "hits of a batch, hits read from JSON, copies and pickles have none: read it from what recall returned"
            )
            raise UnsupportedError("a receipt", why)
        return self._receipts(self)

    def __getstate__(self) -> tuple[Any, ...]:
        return tuple(getattr(self, each.name) for each in fields(self) if each.init)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        for each, value in zip((each for each in fields(self) if each.init), state, strict=True):
            object.__setattr__(self, each.name, value)
        object.__setattr__(self, "_receipts", None)

    def _table(self) -> ShownTable:
        standing = f", {len(self.standing)} standing" if self.standing else ""
        left_out = f", {len(self.left_out)} left out" if self.left_out else ""
        title = f"Hits {len(self.hits)} for {line(shown(self.plan.question))}{standing}{left_out}"
        return table(title, _HIT_COLUMNS, self.hits, Hit._cells)

    @property
    def proposed(self) -> tuple[Hit, ...]:
        """Those of the hits that would govern or replace others if they were endorsed (`Memory.endorse`)."""
        return tuple(hit for hit in self.hits if hit.is_proposal)

    @property
    def cursor(self) -> str:
        """The cursor of the commit that the index reflects, for `changes(since=)` and `listen(since=)`."""
        return self.token or str(self.watermark)

    @overload
    def __getitem__(self, at: int) -> Hit: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Hit]: ...
    def __getitem__(self, at: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[at]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return self.json_with(Hit.to_json)

    def json_with(self, form: Callable[[Hit], Any]) -> dict[str, Any]:
        """Return the JSON form, with another form of each hit."""
        return {
            "question": self.plan.question,
            "hits": list(map(form, self.hits)),
            "standing": list(map(form, self.standing)),
            "watermark": self.watermark,
            "root": self.root,
            "cursor": self.cursor,
            "reference": None if self.reference is None else self.reference.isoformat(),
            "time": None if self.time is None else self.time.isoformat(),
            **({"notes": list(self.plan.notes)} if self.plan.notes else {}),
            **({} if self.plan.vectors is None else {"vectors": self.plan.vectors}),
            **({"left_out": [each._asdict() for each in self.left_out]} if self.left_out else {}),
            "plan": self.plan.to_json(),
        }

    @classmethod
    @json_form("hits")
    def from_json(cls, data: Mapping[str, Any]) -> Hits:
        """Rebuild hits from their JSON form."""
        return cls.from_json_with(data, Hit.from_json)

    @classmethod
    def from_json_with(cls, data: Mapping[str, Any], read: Callable[[Any], Hit]) -> Hits:
        """Rebuild hits from what `json_with` returns. `read` rebuilds each of them."""
        watermark = data["watermark"]
        reference, time = (
            None if data[name] is None else datetime.fromisoformat(data[name]) for name in ("reference", "time")
        )
        return cls(
            tuple(map(read, data["hits"])),
            Plan.from_json(data["plan"]),
            watermark,
            data["root"],
            tuple(map(read, data["standing"])),
            "" if data["cursor"] == str(watermark) else data["cursor"],
            reference,
            time,
            left_out=tuple(LeftOut(**each) for each in data.get("left_out", ())),
        )


def scored(hits: Iterable[Hit]) -> list[tuple[str, int]]:
    """Return the id and the score of hits as receipts have them: in units of 2^-30, which is exact."""
    return [(hit.record.id, int(hit.score * (1 << SHARE_BITS))) for hit in hits]


@is_result()
@shows_itself
class RecordList(list[Record]):
    """Records, as a list that knows where the next page begins.

    Attributes:
        cursor: What `find(after=)` takes for the records that follow. None if fewer records were found than the limit
            allows: then there are no others.
        committed: With `find(with_commit=True)`, when each record was last changed: the time of its last commit, in
            UTC and to the microsecond; in a batch, that of the last commit before it; None for a record that has none
            yet. Empty if it was not asked for.
    """

    def __init__(
        self,
        records: Iterable[Record] = (),
        cursor: str | None = None,
        committed: Iterable[datetime | None] = (),
    ) -> None:
        super().__init__(records)
        self.cursor = cursor
        self.committed = tuple(committed)

    def _table(self) -> ShownTable:
        def row(record: Record) -> tuple[str, ...]:
            time = "" if record.time is None else record.time.isoformat(" ", "minutes")
            return line(record.id, 40), line(record.kind, 20), time, line(record.content)

        more = "" if self.cursor is None else ", and a cursor"
        return table(f"RecordList {len(self)} records{more}", ("id", "kind", "time", "content"), self, row)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        out: dict[str, Any] = {"records": list(map(record_json, self)), "cursor": self.cursor}
        if self.committed:
            out["committed"] = [None if each is None else each.isoformat() for each in self.committed]
        return out

    @classmethod
    @json_form("a list of records")
    def from_json(cls, data: Mapping[str, Any]) -> RecordList:
        """Rebuild a list from its JSON form."""
        times = (None if each is None else datetime.fromisoformat(each) for each in data.get("committed", ()))
        return cls(map(record_from_json, data["records"]), data["cursor"], times)


@is_result()
class PartCounts(int):
    """A number of records, as an integer that knows in which parts of the memory they are or were.

    Attributes:
        parts: How many, by the name of the part: "records", or what a facet keeps. Parts without any are left out.
    """

    parts: Mapping[str, int]

    def __new__(cls, parts: Mapping[str, int]) -> PartCounts:
        counted = super().__new__(cls, sum(parts.values()))
        counted.parts = {name: count for name, count in parts.items() if count}
        return counted

    def __getnewargs__(self) -> tuple[Mapping[str, int]]:  # type: ignore[override]
        return (self.parts,)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"parts": dict(self.parts)}

    @classmethod
    @json_form("a number of records")
    def from_json(cls, data: Mapping[str, Any]) -> PartCounts:
        """Rebuild a number from its JSON form; that of earlier releases is an integer."""
        return cls({RECORDS: data} if isinstance(data, int) else data["parts"])


@is_result("a head")
class NamespaceHead(NamedTuple):
    """The newest state of a namespace.

    Attributes:
        seq: The number of the newest commit; 0 before the first.
        root: The root hash of the memory, as 64 hex digits: of its records and of what facets keep.
        log: The head of the log, as 64 hex digits; None if only the others were requested (`operations.ReadHead`).
        parts: The root hash of each part that is not empty by its name ("records" in any case), as 64 hex digits.
    """

    seq: int
    root: str
    log: str | None = None
    parts: Mapping[str, str] = MappingProxyType({})


@is_result("a moment")
class Moment(NamedTuple):
    """A moment in the history of a branch, which later commits do not change.

    Attributes:
        token: What names the moment in an `At` operation. It reveals nothing, also within a scope.
        time: The time that decides which records have expired: that of the commit, or the later one that was asked for.
    """

    token: str
    time: datetime


@dataclass(frozen=True)
class ExportedPart:
    """A part of the memory besides its records, in an export.

    Attributes:
        name: The name of the part, such as "terms".
        root: The root hash of its records, in hex; "" within a scope.
        count: The number of its records.
        records: Its records, by ascending id. They can be read once.
    """

    name: str
    root: str
    count: int
    records: Iterator[Record]


@is_result()
class Export(Uncopied):
    """A snapshot of a memory, read one record at a time. Close it, or leave its `with` block.

    From a server on HTTP, the records and the parts can be read in this order only; what is passed over is lost.

    Attributes:
        root: The root hash of the records, in hex; "" within a scope.
        count: The number of records.
        records: The records, by ascending id. They can be read once, until the export or the memory is closed.
        parts: The other parts that are not empty, by name.
    """

    def __init__(
        self,
        root: str,
        count: int,
        records: Iterable[Record],
        resources: ExitStack | None = None,
        parts: Iterable[ExportedPart] = (),
    ) -> None:
        self._opened = _Opened(resources or ExitStack())
        self.root = root
        self.count = count
        self.records: Iterator[Record] = _ExportedRecords(iter(records), self._opened)
        self.parts = tuple(replace(each, records=_ExportedRecords(each.records, self._opened)) for each in parts)

    def close(self) -> None:
        """Release the snapshot. Closing twice is allowed."""
        self._opened.close()

    def __enter__(self) -> Export:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, with all records that are not read yet."""
        records = list(map(record_json, self.records))  # first: see above
        parts = [
            {"name": each.name, "root": each.root, "count": each.count, "records": [*map(record_json, each.records)]}
            for each in self.parts
        ]
        return {"root": self.root, "count": self.count, "records": records, "parts": parts}

    @classmethod
    @json_form("an export")
    def from_json(cls, data: Mapping[str, Any]) -> Export:
        """Rebuild an export from its JSON form."""
        parts = [
            ExportedPart(each["name"], each["root"], each["count"], map(record_from_json, each["records"]))
            for each in data["parts"]
        ]
        return cls(data["root"], data["count"], map(record_from_json, data["records"]), parts=parts)


class _Opened:
    """The open files and views of an export; another thread may read it or close the memory meanwhile."""

    def __init__(self, resources: ExitStack) -> None:
        self._resources = resources
        self.lock = threading.Lock()
        self.is_closed = False

    def close(self) -> None:
        with self.lock:
            self.is_closed = True
            self._resources.close()


class _ExportedRecords:
    """The records of an export. Not a generator: that would end after an error, as if all records had been read."""

    def __init__(self, records: Iterator[Record], opened: _Opened) -> None:
        self._records = records
        self._opened = opened
        self._error: Exception | None = None

    def __iter__(self) -> _ExportedRecords:
        return self

    def __next__(self) -> Record:
        with self._opened.lock:
            if self._opened.is_closed:
                raise ClosedError("the export")
            if self._error is not None:
                raise self._error
            try:
                return next(self._records)
            except StopIteration:
                raise
            except Exception as error:
                self._error = error
                raise


def record_json(record: Record) -> dict[str, Any]:
    """Return the JSON form of a record, with its hash."""
    out = record.to_json()
    out["hash"] = record.hash
    return out


def record_from_json(data: Mapping[str, Any]) -> Record:
    """Rebuild a record from its JSON form with a hash, and verify the hash.

    Raises:
        InvalidRecordError: It is not the JSON form of a record, or the hash differs.
    """
    if not isinstance(data, Mapping):
        raise InvalidRecordError("record", data, "must be a JSON object")
    values = dict(data)
    expected = values.pop("hash", None)
    record = Record.from_json(values)
    if expected is not None and record.hash != expected:
        raise InvalidRecordError("hash", expected, f"must be that of the record, {record.hash}")
    return record


register_form(Record, Form(record_json, record_from_json))


def _item_json(item: Any) -> dict[str, Any]:
    """The JSON form of an item of `remember_all`, with its type; the `repr` of an item that has none."""
    try:
        match item:
            case str():
                return {"text": item}
            case Record():
                return {"record": item.to_json()}
            case Operation():
                return {"operation": item.to_json()}
            case Mapping():
                fields_json = plain(item)
                json.dumps(fields_json)  # raises if there is a value without a JSON form
                return {"fields": fields_json}
    except (RecollectError, TypeError, ValueError):
        pass
    return {"shown": shown(item)}


def _item_from_json(data: Mapping[str, Any]) -> Any:
    match data:
        case {"record": record}:
            return Record.from_json(record)
        case {"operation": operation}:
            return operation_from_json(operation)
    return next(iter(data.values()))


# The JSON form of the result of each operation, for executors in other processes.


def result_to_json(operation: Operation, result: Any) -> Any:
    """Return the JSON form of the result of an operation."""
    if isinstance(operation, ExecuteBatch):
        return [result_to_json(part, each) for part, each in zip(operation.operations, result, strict=True)]
    if isinstance(operation, At):
        operation = operation.operation
    return form_named(operation.result).to_json(result)


def result_from_json(operation: Operation, data: Any) -> Any:
    """Rebuild the result of an operation from its JSON form."""
    if isinstance(operation, ExecuteBatch):
        return [result_from_json(part, each) for part, each in zip(operation.operations, data, strict=True)]
    if isinstance(operation, At):
        operation = operation.operation
    return form_named(operation.result).from_json(data)


# The result of a search by similarity.

Measure = Literal["cosine", "confidence"]


class SimilarRecord(NamedTuple):
    """A record and how similar it is, 0 to 1."""

    record: Record
    similarity: float


@dataclass(frozen=True, slots=True)
class Similar(JsonForm, what="what is similar"):
    """Records that are similar to a text, most similar first.

    Attributes:
        measure: What the similarities are: "cosine" of the embedder's vectors, rounded to three digits, or, without
            vectors, the "confidence" of the hits of `recall`.
        found: The records, each with its similarity.
        notes: Why a text or the question has no vector.
    """

    measure: Measure
    found: tuple[SimilarRecord, ...]
    notes: tuple[str, ...] = ()
