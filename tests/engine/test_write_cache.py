"""The write cache: what a process wrote last, cached for its indexes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC

from hypothesis import given
from tests.indexes import strategies as own

from recollect.engine.index.caches import WriteCache, Written
from recollect.engine.index.document_of import document_of
from recollect.ledger.commits import Branch, Change, Commit, Head
from recollect.ledger.merkle import EMPTY, Root
from recollect.records.record import Record

BRANCH, OTHER = Branch("tea"), Branch("boats")
ANA, BEN = Record(id="ana", content="Ana likes tea"), Record(id="ben", content="Ben likes boats")


def commit(seq: int, branch: Branch = BRANCH, root: bytes = b"") -> Commit:
    return Commit(
        namespace=branch.namespace,
        branch=branch.name,
        seq=seq,
        parents=(),
        micros=seq,
        actor=None,
        reason=None,
        root=Root(root or root_of(seq)),
        changes=(Change("x", None, None, "written"),),
    )


def root_of(seq: int) -> bytes:
    return bytes([seq]) * 32 if seq else EMPTY


def head(seq: int) -> Head:
    return Head(seq, Root(root_of(seq)), seq)


def recent(*written: Mapping[str, Record | None], budget_bytes: int = 2**20) -> WriteCache:
    out = WriteCache(budget_bytes)
    for seq, each in enumerate(written, 1):
        out.note(commit(seq), root_of(seq - 1), each)
    return out


def since(kept: WriteCache, seq: int, upto: Head, branch: Branch = BRANCH) -> Written | None:
    return kept.since(branch, seq, root_of(seq), upto)


def test_what_came_since_is_what_the_last_commit_left_of_each_id() -> None:
    kept = recent({"ana": ANA}, {"ben": BEN, "ana": None}, {"cy": None})
    assert since(kept, 0, head(3)) == {"ana": None, "ben": BEN, "cy": None}
    assert since(kept, 2, head(3)) == {"cy": None}
    assert since(kept, 0, head(1)) == {"ana": ANA}


def test_where_another_process_wrote_in_between_the_store_must_tell() -> None:
    kept = recent({"ana": ANA})
    kept.note(commit(3), root_of(2), {"ben": BEN})
    assert since(kept, 0, head(3)) is None
    assert since(kept, 1, head(3)) is None
    assert since(kept, 2, head(3)) == {"ben": BEN}
    assert since(kept, 0, head(2)) is None
    assert since(kept, 0, head(1), OTHER) is None


def test_a_history_that_was_given_up_is_not_reported() -> None:
    kept = recent({"ana": ANA}, {"ben": BEN}, {"cy": None})
    other = b"\7" * 32
    assert since(kept, 0, Head(2, Root(other), 2)) is None
    # A copy was put back that another process took further: the second commit is theirs, the third follows it.
    kept.note(commit(3), other, {"cy": None})
    assert since(kept, 0, head(3)) is None
    assert since(kept, 1, head(3)) is None
    assert kept.since(BRANCH, 2, other, head(3)) == {"cy": None}
    assert kept.since(BRANCH, 2, root_of(2), head(3)) is None  # an index that stands in the old history


def test_what_an_index_has_is_let_go_and_nothing_else() -> None:
    kept = recent({"ana": ANA}, {"ben": BEN}, {"cy": None})
    kept.note(commit(1, OTHER), EMPTY, {"ana": ANA})
    kept.drop(BRANCH, 2)
    assert since(kept, 2, head(3)) == {"cy": None}
    assert since(kept, 1, head(3)) is None
    kept.drop(BRANCH, 2**60)
    assert since(kept, 2, head(3)) is None
    assert since(kept, 0, head(1), OTHER) == {"ana": ANA}
    kept.clear()
    assert since(kept, 0, head(1), OTHER) is None


def test_beyond_its_budget_the_line_that_was_written_to_the_longest_ago_is_let_go() -> None:
    large = Record(id="large", content="tea " * 300)
    kept = recent({"large": large}, budget_bytes=8000)
    kept.note(commit(1, OTHER), EMPTY, {"large": large})
    assert since(kept, 0, head(1)) == {"large": large}
    kept.note(commit(2, OTHER), root_of(1), {"large": large})
    assert since(kept, 0, head(1)) is None
    assert since(kept, 0, head(2), OTHER) == {"large": large}
    kept.note(commit(3, OTHER), root_of(2), {"large": large})
    assert since(kept, 0, head(3), OTHER) is None


def test_what_is_forgotten_and_what_metadata_is_made_of_are_counted() -> None:
    forgotten = recent({f"r{at}": None for at in range(1000)}, budget_bytes=100_000)
    assert since(forgotten, 0, head(1)) is None
    bushy = Record(id="bushy", content="tea", metadata={f"k{at}": {} for at in range(300)})
    kept = recent({"bushy": bushy}, budget_bytes=20_000)
    assert since(kept, 0, head(1)) is None


@given(own.record_fields())
def test_a_record_gives_the_same_document_before_it_is_written_and_after_it_is_read(fields: dict[str, object]) -> None:
    record = Record(**fields)  # type: ignore[arg-type]
    assert document_of(record, UTC) == document_of(Record.load(record.to_bytes()), UTC)
