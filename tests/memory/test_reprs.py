"""The display of results: in a prompt, in a notebook and with rich; short, escaped and bounded."""

from __future__ import annotations

import io
import pickle
from html.parser import HTMLParser
from typing import Any

import pytest
from rich.console import Console

import recollect
from recollect.testing import TickingClock

HOSTILE = "<script>alert('x')</script> & \x1b[31m\n\u202e \"quoted\" [bold]markup[/bold]"


class Texts(HTMLParser):
    """The tags and texts of an HTML fragment."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def memory() -> recollect.Memory:
    opened = recollect.open(":memory:", clock=TickingClock())
    opened.remember_all(
        [
            {"content": "Who is the mason?", "speaker": "Mara", "kind": "conversation", "conversation": "c"},
            {"content": "A tall Breton.", "speaker": "Tobias", "kind": "conversation", "conversation": "c"},
        ]
    )
    return opened


def results(memory: recollect.Memory) -> list[Any]:
    report = memory.remember_all(["Said before", {"no": "content"}, "x" * 2_000_000])
    return [memory.recall("mason"), memory.recall("mason")[0], memory.find(limit=2), report, report.results[0]]


def test_hits_are_lines_of_score_content_and_the_words_that_matched(memory: recollect.Memory) -> None:
    first, second, third = repr(memory.recall("who is the mason?")).splitlines()
    assert first == "<Hits 2 for 'who is the mason?':"
    for line, text in ((second, "A tall Breton."), (third, "Who is the mason?")):
        assert text in line
        assert "mason" in line
    assert repr(memory.recall("zzz")) == "<Hits 0 for 'zzz'>"
    hit = memory.recall("mason")[0]
    assert repr(hit).startswith(f"<Hit {hit.score:.3f}, confidence {hit.confidence:.2f}: ")
    assert len(repr(hit).splitlines()) == 1


def test_a_report_counts_and_names_what_failed(memory: recollect.Memory) -> None:
    report = memory.remember_all(["One", "Two", {"no": "content"}])
    first, second = repr(report).splitlines()
    assert first == "<Report 2 created, 1 failed:"
    assert 'needs a "content"' in second
    assert repr(memory.remember_all([])) == "<Report empty>"
    assert repr(report.results[0]).startswith("<Outcome created ")
    assert repr(report.results[0]).endswith("One>")


def test_records_are_lines_and_a_list_says_that_there_are_more(memory: recollect.Memory) -> None:
    memory.remember_all([f"Note {number}" for number in range(30)])
    shown = repr(memory.find(limit=20)).splitlines()
    assert shown[0] == "<RecordList 20 records, and a cursor:"
    assert len(shown) == 12
    assert shown[-1].strip() == "... and 10 more>"
    assert repr(memory.find("nothing")) == "<RecordList 0 records>"


def test_everything_stays_short_however_long_the_content_is(memory: recollect.Memory) -> None:
    memory.remember_all(["mason " * 100_000, "mason\n" * 100_000], on_error="raise")
    memory.remember("x", metadata={"k": ["v" * 500_000]}, tags=[f"t{n}" for n in range(1000)])
    for result in [*results(memory), *memory.find()]:
        assert len(repr(result)) < 3000
        assert len(result._repr_html_()) < 10_000
        assert sum(len(str(part)) for part in result.__rich_repr__()) < 10_000


def test_content_is_never_markup(memory: recollect.Memory) -> None:
    record = memory.remember(HOSTILE, id="<b>id</b>", tags=["<i>"], user="<u>", metadata={"<p>": "<p>"})
    report = memory.remember_all([{"<script>": "<script>"}])
    shown: list[Any] = [memory.recall("<script> alert quoted"), memory.find(), record, report]
    for result in shown:
        html = Texts(result._repr_html_())
        assert html.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
        assert "<script>" in html.text
        for text in (html.text, repr(result)):
            assert "\x1b" not in text
            assert "\u202e" not in text


def test_rich_shows_the_same_and_reads_no_markup(memory: recollect.Memory) -> None:
    memory.remember(HOSTILE)
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=False)
    for result in [*results(memory), memory.recall("quoted"), *memory.find()]:
        console.print(result)
    assert "A tall Breton." in out.getvalue()
    assert "[bold]markup[/bold]" in out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_a_lender_is_named_by_a_short_id(memory: recollect.Memory) -> None:
    lender, hit = sorted(memory.recall("who is the mason?"), key=lambda hit: hit.record.position or 0)
    assert f"mason from {lender.record.id[:8]}…" in str(hit.why)
    assert lender.record.id not in str(hit.why)
    assert hit.why.words[0].lent_by == (lender.record.id,)


def test_a_list_of_records_survives_pickling_with_its_cursor(memory: recollect.Memory) -> None:
    found = memory.find(limit=1)
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.cursor, type(again)) == (found, found.cursor, recollect.RecordList)
