"""The reading operations, each written once: the present, a batch and the past are different `Reader`s."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from recollect.common.zones import name_of
from recollect.engine.family import chosen, without_kept
from recollect.engine.read.queries import Reading
from recollect.engine.read.suspicion import audit
from recollect.engine.read.tracing import lineage, taint
from recollect.engine.reader import CommittedReader, Reader, check_whole
from recollect.engine.results import Hits, RecordList, Similar
from recollect.engine.settings import sharing
from recollect.filters.tree import EVERYTHING
from recollect.ledger.commits import Branch
from recollect.ledger.proofs import Proof
from recollect.ledger.receipts import Receipt as ReceiptForm
from recollect.operations import (
    Changes,
    Count,
    DistinctValues,
    Find,
    FindSimilar,
    Get,
    GetAll,
    GetPolicies,
    GetQuota,
    Grep,
    Namespaces,
    Now,
    OpenExport,
    Operation,
    Prove,
    ReadHead,
    Recall,
    Receipt,
    Stats,
    ValidUntil,
    Zone,
)
from recollect.operations.retention import GetRetention
from recollect.operations.trust import Audit, TraceLineage, TraceTaint
from recollect.records.record import Record

#: Executes a reading operation on a `Reader`.
Read: TypeAlias = Callable[[Any, Any], Any]


def get(reader: Reader, operation: Get) -> Record | None:
    """Return the record that the scope shows under an id."""

    def read(reading: Reading) -> Record | None:
        record = reading.get(operation)
        if record is not None:
            reader.note_uses(reading, [record.id])
        return record

    return reader.on_view(read)


def get_all(reader: Reader, operation: GetAll) -> list[Record | None]:
    """Return the records that the scope shows under several ids."""

    def read(reading: Reading) -> list[Record | None]:
        records = reading.get_all(operation)
        reader.note_uses(reading, [record.id for record in records if record is not None])
        return records

    return reader.on_view(read)


def recall(reader: Reader, operation: Recall) -> Hits:
    """Return the hits of a question."""
    reader.intake.limits.check_question(operation.question)
    if operation.reference is None:
        operation = operation.with_reference(reader.now)
    notes = reader.embed_missing() if operation.wait_for_vectors else ()

    def read(reading: Reading) -> Hits:
        hits = reading.recall(operation)
        if hits:
            reader.note_uses(reading, (hit.record.id for hit in hits))
        more = notes + reading.notes
        return replace(hits, plan=replace(hits.plan, notes=hits.plan.notes + more)) if more else hits

    return reader.on_vectors(operation.question, read, asking=True)


def find_similar(reader: Reader, operation: FindSimilar) -> Similar:
    """Return what is most similar to a text: by the vectors, or without any by the words."""
    reader.intake.limits.check_question(operation.text)
    notes = reader.embed_candidates(operation.where) if operation.embed else ()

    def read(reading: Reading) -> Similar:
        found = reading.similar(operation)
        reader.note_uses(reading, [each.record.id for each in found.found])
        return replace(found, notes=notes + found.notes + reading.notes)

    return reader.on_vectors(operation.text, read)


def grep(reader: Reader, operation: Grep) -> RecordList:
    """Return the records that match a full-text query."""
    reader.intake.limits.check_query(operation.query)
    return reader.grep(operation)


def stats(reader: Reader, operation: Stats) -> dict[str, Any]:
    """Return counts of the records and of the other parts of the memory, and facts about the store."""

    def counted(part: Branch) -> int:
        everything = Count(where=without_kept(EVERYTHING, part))
        return reader.part(part).on_records(lambda reading: reading.count(everything))

    found = reader.on_records(lambda reading: reading.stats(operation))
    parts = chosen(reader.branch, operation.parts)
    counts = {name: found["records"] if part == reader.branch else counted(part) for name, part in parts.items()}
    found["parts"] = {name: count for name, count in counts.items() if count or parts[name] == reader.branch}
    if "quota" in found:
        for each in reader.on_view(lambda reading: sharing(reading.view, reading.branch)):
            for name, used in reader.part(each).on_records(Reading.used).items():
                found["quota"][name] += used
    return found


def prove(reader: CommittedReader, operation: Prove) -> Proof:
    """Return a proof that a record is stored or not."""
    check_whole(reader.scope, "a proof, which covers the whole namespace,")
    return reader.prove(operation)


def receipt(reader: CommittedReader, operation: Receipt) -> ReceiptForm:
    """Return the receipt of an answer."""
    check_whole(reader.scope, "a receipt, which covers the whole namespace,")
    return reader.receipt(operation)


def _on_view(query: Callable[[Reading, Any], Any]) -> Read:
    """Return what executes an operation that reads commits, settings, or records by their ids."""
    return lambda reader, operation: reader.on_view(lambda reading: query(reading, operation))


def _on_records(query: Callable[[Reading, Any], Any]) -> Read:
    """Return what executes an operation with a filter."""
    return lambda reader, operation: reader.on_records(lambda reading: query(reading, operation), operation)


#: How each reading operation of the engine is executed. Those of the facets are registered in `engine.facets`.
READS: dict[type[Operation], Read] = {
    Get: get,
    GetAll: get_all,
    Find: _on_records(Reading.find),
    Count: _on_records(Reading.count),
    DistinctValues: lambda reader, operation: reader.on_index(lambda reading: reading.values(operation)),
    Recall: recall,
    FindSimilar: find_similar,
    Grep: grep,
    ValidUntil: lambda reader, operation: reader.on_index(lambda reading: reading.valid_until(operation)),
    Stats: stats,
    ReadHead: _on_view(Reading.head),
    GetQuota: _on_view(Reading.quota),
    GetPolicies: _on_view(Reading.policies),
    GetRetention: _on_view(Reading.retention),
    Namespaces: _on_view(Reading.namespaces),
    Changes: _on_view(Reading.changes),
    OpenExport: lambda reader, operation: reader.export(operation.parts),
    Audit: lambda reader, operation: reader.on_index(lambda reading: audit(reading, operation)),
    TraceLineage: _on_view(lineage),
    TraceTaint: lambda reader, operation: reader.on_index(lambda reading: taint(reading, operation)),
    Prove: prove,
    Receipt: receipt,
    Now: lambda reader, operation: reader.now,
    Zone: lambda reader, operation: name_of(reader.intake.zone),
}
