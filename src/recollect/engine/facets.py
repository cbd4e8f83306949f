"""The registry of facets: what lies beside the records, such as a glossary or outlines, each in a folder of its own.

The engine knows a facet by what it registers here. Its operations are executed like every other one: in the present, in
a batch and in the past (`engine.reader.Reader`), on an index that is derived from records and caught up by the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Self

from recollect.engine.follower import Sized
from recollect.ledger.commits import reserve
from recollect.operations.base import Operation, defined_in
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import ReadView


class FacetIndex(NamedTuple):
    """An index that a facet derives from records.

    Attributes:
        name: Its name in statistics.
        budget_bytes: Limit on the memory of all indexes of this kind together, in bytes.
    """

    name: str
    budget_bytes: int


class Execution(NamedTuple):
    """How the operations of a facet are executed: `EXECUTION` in the module that the facet names.

    Attributes:
        reads: How each of them is executed on a `Reader`.
        index_at: Returns the index of a key, derived from the records of a view that are valid at a time (microseconds
            since 1970). The key has a `branch`, and says which records the index has.
    """

    reads: Mapping[type[Operation], Callable[[Any, Any], Any]]
    index_at: Callable[[ReadView, Any, int], Sized]


@dataclass(frozen=True)
class Facet:
    """The description of a facet for the engine. The facet itself is imported when one of its operations is used.

    Attributes:
        package: The package of the facet. If the facet has operations, they are in its module `operations`.
        reserved: The name of the namespace of its records; None: it has none of its own.
        called: What its records are called, for people.
        index: Its index, if it has one.
        executed_by: The module of the package that executes its operations (`Execution`), if it has any.
        names: The kinds of its records whose texts are names or numbers: no policy judges them.
        judged: Whether its texts are judged by their salience, as those of the memory are. A text that is only found by
            itself can be left out; a document, a definition or a value cannot.
        kept: The kinds of its records that stay when others are forgotten, restored or erased, such as a counter.
        own_quota: Whether its records can have a quota of their own.
        shared: Whether every writer may change its records, whatever their class of origin: they are values that
            programs share, and in no context.
        named: Whether a record is found by a name that only one can have, from which its id follows.
        trees: Whether its records are the nodes of trees (`Record.parent`).
        counter: The id of the record that counts the others, whose ids are numbers.
    """

    package: str
    reserved: str | None = None
    called: str = ""
    index: FacetIndex | None = None
    executed_by: str | None = None
    names: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    own_quota: bool = False
    judged: bool = False
    shared: bool = False
    named: bool = False
    trees: bool = False
    counter: str | None = None

    def execution(self) -> Execution:
        """Return how the operations of the facet are executed. It has some."""
        execution: Execution = import_module(f"{self.package}.{self.executed_by}").EXECUTION
        return execution

    def index_at(self, view: ReadView, key: Any, now: int) -> Sized:
        """Return the index of a key (`Execution.index_at`)."""
        return self.execution().index_at(view, key, now)


#: The facets, in the order in which they were registered.
FACETS: list[Facet] = []
#: The kinds of records whose texts are names, the reserved namespaces that can have a quota of their own, those whose
#: texts are judged by their salience, and those whose records every writer may change.
NAMES: set[str] = set()
OWN_QUOTAS: set[str] = set()
JUDGED: set[str] = set()
SHARED: set[str] = set()


def register(*facets: Facet) -> None:
    """Add facets. Stores that are open already do not have them."""
    for facet in facets:
        FACETS.append(facet)
        if facet.executed_by is not None:
            defined_in(f"{facet.package}.operations")
        NAMES.update(facet.names)
        if facet.reserved is not None:
            reserve(facet.reserved)
            OWN_QUOTAS.update([facet.reserved] if facet.own_quota else [])
            JUDGED.update([facet.reserved] if facet.judged else [])
            SHARED.update([facet.reserved] if facet.shared else [])


def facet_of(part: str) -> Facet | None:
    """Return the facet that keeps a part of a memory; None for the records."""
    return next((facet for facet in FACETS if facet.reserved == part), None)


def called(part: str) -> str:
    """Return what the records of a part of a memory are called, for people."""
    facet = facet_of(part)
    return part if facet is None else facet.called


def read_of(kind: type[Operation]) -> Callable[[Any, Any], Any] | None:
    """Return how an operation of a facet is executed on a `Reader`; None if it is not one of a facet."""
    package = kind.__module__.rpartition(".")[0]
    owner = next((facet for facet in FACETS if facet.package == package and facet.executed_by is not None), None)
    return None if owner is None else owner.execution().reads.get(kind)


class ExpiringIndex:
    """The base of an index that is derived from records one by one, and shows those that are valid at a time.

    It is changed in place: a caller locks it.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self._expiring: dict[str, tuple[int, Record]] = {}  # the records that expire, with their ends
        self._hidden: set[str] = set()  # those of them that have expired
        for record in records:
            self.put(record)

    def put(self, record: Record) -> None:
        """Insert a record, or replace it."""
        self.remove(record.id)
        if self._insert(record) and record.expires is not None:
            self._expiring[record.id] = microseconds(record.expires), record

    def remove(self, record_id: str) -> None:
        """Remove a record, if it is there."""
        self._expiring.pop(record_id, None)
        self._hidden.discard(record_id)
        self._discard(record_id)

    def at(self, now: int) -> Self:
        """Return the index without the records that have expired at a time, in microseconds since 1970.

        The time may be before that of the last call: a batch reads as of the time at which it began.
        """
        for record_id, (end, record) in self._expiring.items():
            if end <= now and record_id not in self._hidden:
                self._hidden.add(record_id)
                self._discard(record_id)
            elif end > now and record_id in self._hidden:
                self._hidden.remove(record_id)
                self._insert(record)
        return self

    def _insert(self, record: Record) -> bool:
        """Insert a record that is not there; False if the index does not show it."""
        raise NotImplementedError

    def _discard(self, record_id: str) -> None:
        """Remove a record, if it is there."""
        raise NotImplementedError
