"""What a process wrote last, at hand for its indexes."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from tests.unit import strategies as own

from recollect.engine.encoding import document_of
from recollect.engine.recent import Recent
from recollect.indexes.merkle import Root
from recollect.records.record import Record
from recollect.stores.base import Change, Commit, Head, Line

LINE, OTHER = Line("tea"), Line("boats")
ANA, BEN = Record(id="ana", content="Ana likes tea"), Record(id="ben", content="Ben likes boats")


def commit(seq: int, line: Line = LINE, root: bytes = b"") -> Commit:
    return Commit(
        namespace=line.namespace,
        branch=line.branch,
        seq=seq,
        parents=(),
        micros=seq,
        actor=None,
        reason=None,
        root=Root(root or root_of(seq)),
        changes=(Change("x", None, None, "written"),),
    )


def root_of(seq: int) -> bytes:
    return bytes([seq]) * 32


def head(seq: int) -> Head:
    return Head(seq, Root(root_of(seq)), seq)


def recent(*written: Mapping[str, Record | None], budget_bytes: int = 2**20) -> Recent:
    out = Recent(budget_bytes)
    for seq, each in enumerate(written, 1):
        out.note(commit(seq), each)
    return out


def test_what_came_since_is_what_the_last_commit_left_of_each_id() -> None:
    kept = recent({"ana": ANA}, {"ben": BEN, "ana": None}, {"cy": None})
    assert kept.since(LINE, 0, head(3)) == {"ana": None, "ben": BEN, "cy": None}
    assert kept.since(LINE, 2, head(3)) == {"cy": None}
    assert kept.since(LINE, 0, head(1)) == {"ana": ANA}


def test_where_another_process_wrote_in_between_the_store_must_tell() -> None:
    kept = recent({"ana": ANA})
    kept.note(commit(3), {"ben": BEN})
    assert kept.since(LINE, 0, head(3)) is None
    assert kept.since(LINE, 1, head(3)) is None
    assert kept.since(LINE, 2, head(3)) == {"ben": BEN}
    assert kept.since(LINE, 0, head(2)) is None
    assert kept.since(OTHER, 0, head(1)) is None


def test_a_history_that_was_given_up_is_not_told() -> None:
    kept = recent({"ana": ANA}, {"ben": BEN})
    assert kept.since(LINE, 0, Head(2, Root(b"\7" * 32), 2)) is None
    kept.note(commit(2, root=b"\7" * 32), {"cy": None})
    assert kept.since(LINE, 0, Head(2, Root(b"\7" * 32), 2)) == {"ana": ANA, "cy": None}


def test_what_an_index_has_is_let_go_and_nothing_else() -> None:
    kept = recent({"ana": ANA}, {"ben": BEN}, {"cy": None})
    kept.note(commit(1, OTHER), {"ana": ANA})
    kept.drop(LINE, 0, 2)
    kept.drop(LINE, 2**40, 2**50)
    assert kept.since(LINE, 2, head(3)) == {"cy": None}
    assert kept.since(LINE, 1, head(3)) is None
    kept.drop(LINE, 0, 2**60)
    assert kept.since(LINE, 2, head(3)) is None
    assert kept.since(OTHER, 0, head(1)) == {"ana": ANA}


def test_beyond_its_budget_the_oldest_is_let_go() -> None:
    large = Record(id="large", content="tea " * 300)
    kept = recent({"ana": ANA}, {"large": large}, {"large": large}, budget_bytes=6500)
    assert kept.since(LINE, 0, head(3)) is None
    assert kept.since(LINE, 1, head(3)) == {"large": large}
    kept = recent({"large": large}, budget_bytes=1000)
    assert kept.since(LINE, 0, head(1)) is None


@given(own.record_fields())
def test_a_record_gives_the_same_document_before_it_is_written_and_after_it_is_read(fields: dict[str, object]) -> None:
    record = Record(**fields)  # type: ignore[arg-type]
    assert document_of(record) == document_of(Record.load(record.to_bytes()))
