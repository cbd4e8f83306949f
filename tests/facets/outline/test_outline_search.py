"""Nodes are found by similarity, and an outline is written for a prompt with one node in focus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.mcp.clients import in_process

import recollect
from recollect import Memory
from recollect.cli.app import app
from recollect.errors import InvalidArgumentError, UnknownRecordError
from recollect.models.embedding.base import Supplied
from recollect.models.embedding.similarity import cosine
from recollect.operations import Now
from recollect.testing.loopback import beside

ORG = """* Boats
** TODO Sails :sea:
:PROPERTIES:
:ID: sails
:END:
They are of cotton.
** Oars
:PROPERTIES:
:ID: oars
:END:
They are of ash.
* Houses
** Roof
* Diary :private:
:PROPERTIES:
:ID: diary
:END:
Cotton sails, in secret.
** Deep
:PROPERTIES:
:ID: deep
:END:
Cotton sails, deeper.
"""


class Counting(Supplied):
    """An embedder that notes the texts that it embeds."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        super().__init__("counting/1", 2, vectors)
        self.embedded: list[str] = []
        self.fails = False
        self.missing: set[str] = set()

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[Any]:
        if self.fails:
            raise RuntimeError("no connection")
        self.embedded += [] if asking else texts
        return [
            None if each in self.missing else vector for each, vector in zip(texts, super().embed(texts), strict=True)
        ]


def nodes(*texts: str, **attributes: Any) -> dict[str, Any]:
    """Return a tree of nodes that have their text as id."""
    below = [{"type": "HEADLINE", "properties": {"ID": each, "TITLE": each, **attributes}} for each in texts]
    return {"type": "DOCUMENT", "properties": {"ID": "root"}, "contents": below}


pytestmark = pytest.mark.stores("memory", "loopback")


@pytest.fixture
def model() -> Counting:
    # Angles whose cosines to "east" are 1, 0.8, 0.6 and 0.
    return Counting({"east": [1, 0], "near": [4, 3], "far": [3, 4], "north": [0, 1], "asked": [1, 0]})


def ids(found: Sequence[Any]) -> list[str]:
    return [each.node.id for each in found]


class TestSearch:
    def test_without_an_embedder_it_is_the_confidence_of_the_words(self, memory: Memory) -> None:
        memory.outline.ingest_text(ORG, "org", "a.org")
        found = memory.outline.search("cotton sails")
        assert found.measure == "confidence"
        assert not found.notes
        assert ids(found)[0] in {"sails", "diary", "deep"}
        hits = beside(memory, "nodes").recall("cotton sails")
        assert [(each.node.id, each.similarity) for each in found] == [(hit.record.id, hit.confidence) for hit in hits]
        least = found[1].similarity
        assert ids(memory.outline.search("cotton sails", minimum=least))[:2] == ids(found)[:2]  # inclusive

    def test_with_an_embedder_it_is_the_cosine_and_the_minimum_is_inclusive(self, model: Counting) -> None:
        with recollect.open(":memory:", embedder=model) as memory:
            memory.outline.ingest(nodes("east", "near", "far", "north"))
            found = memory.outline.search("asked")
            assert found.measure == "cosine"
            assert not found.notes
            assert [(each.node.id, each.similarity) for each in found] == [
                ("east", 1.0), ("near", 0.8), ("far", 0.6), ("north", 0.0)
            ]  # fmt: skip
            assert ids(memory.outline.search("asked", minimum=0.6)) == ["east", "near", "far"]
            assert ids(memory.outline.search("asked", minimum=0.601)) == ["east", "near"]
            assert ids(memory.outline.search("asked", minimum=1.0)) == ["east"]
            assert ids(memory.outline.search("asked", 2)) == ["east", "near"]

    def test_equal_texts_are_embedded_once(self, model: Counting) -> None:
        with recollect.open(":memory:", embedder=model) as memory:
            twice = {**nodes("east"), "contents": [*nodes("near")["contents"], {"type": "B", "raw_content": "near"}]}
            memory.outline.ingest(twice)
            memory.outline.search("asked")
            memory.outline.search("asked")
            memory.outline.ingest({**nodes("near", "far"), "properties": {"ID": "other"}, "contents": []})
            memory.outline.ingest(nodes("near", "far"))
            memory.outline.search("asked")
            assert sorted(model.embedded) == ["far", "near"]

    def test_equally_similar_ones_come_newest_first(self, model: Counting) -> None:
        with recollect.open(":memory:", embedder=model, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as memory:
            same = [{"type": "A", "properties": {"ID": each}, "raw_content": "near"} for each in "dbca"]
            memory.outline.ingest({"type": "DOCUMENT", "properties": {"ID": "root"}, "contents": same})
            assert ids(memory.outline.search("asked", 3)) == ["a", "c", "b"]

    def test_only_marked_nodes_are_searched_where_marking_is_used(self, model: Counting) -> None:
        with recollect.open(":memory:", embedder=model) as memory:
            tree = nodes("east", "near")
            tree["contents"][1]["properties"]["EMBED"] = "t"
            tree["contents"][0]["properties"]["EMBED"] = "nil"
            memory.outline.ingest(tree)
            memory.outline.ingest({**nodes("far"), "properties": {"ID": "other"}})
            assert ids(memory.outline.search("asked")) == ["near"]
            assert model.embedded == ["near"]  # what is not searched is not sent to a model
            assert ids(memory.outline.search("asked", under="other")) == ["far"]  # no mark there
            assert not memory.outline.search("asked", under="other", marked=True)
            assert ids(memory.outline.search("asked", marked=False)) == ["east", "near", "far"]

    def test_no_tag_of_a_source_marks_a_node(self, memory: Memory) -> None:
        memory.outline.ingest_text("* boat one\n* boat two :@embed:\n", "org", "a.org")
        assert len(memory.outline.search("boat")) == 2
        assert not memory.outline.search("boat", marked=True)

    def test_it_stays_in_a_subtree_and_leaves_out_private_nodes(self, memory: Memory) -> None:
        memory.outline.ingest_text(ORG, "org", "a.org")
        boats = memory.outline.at_path(["Boats"])
        assert boats is not None
        assert ids(memory.outline.search("cotton sails", under=boats.id)) == ["sails"]
        assert ids(memory.outline.search("cotton sails", private=["private"])) == ["sails"]
        assert set(ids(memory.outline.search("cotton sails"))) == {"sails", "diary", "deep"}
        with pytest.raises(UnknownRecordError):
            memory.outline.search("sails", under="absent")

    def test_a_failing_embedder_is_said_and_the_words_are_used(self, model: Counting) -> None:
        with recollect.open(":memory:", embedder=model) as memory:
            memory.outline.ingest(nodes("east", "near"))
            model.fails = True
            found = memory.outline.search("near")
            assert (found.measure, ids(found)) == ("confidence", ["near"])
            assert "no connection" in found.notes[0]
            model.fails = False
            model.missing.add("near")
            found = memory.outline.search("asked")
            assert (found.measure, ids(found)) == ("cosine", ["east"])
            assert "1 texts could not be embedded" in found.notes[0]

    def test_a_past_moment_embeds_nothing(self, model: Counting) -> None:
        with recollect.open(":memory:", embedder=model) as memory:
            memory.outline.ingest(nodes("east", "near"))
            before = memory.execute(Now())
            memory.outline.search("asked", embed=True)
            memory.outline.ingest(nodes("far"))
            found = memory.at(before).outline.search("asked")
            assert ids(found) == ["east", "near"]
            assert "nothing is embedded at a past moment" in found.notes
            assert ids(memory.outline.search("asked")) == ["far"]

    def test_agrees_with_the_cosines_of_all_nodes(self) -> None:
        components = st.lists(st.integers(-9, 9), min_size=3, max_size=3)

        @settings(max_examples=some(30), deadline=None)
        @given(st.lists(components, min_size=1, max_size=8), components, st.floats(0, 1), st.integers(1, 9))
        def agrees(vectors: list[list[int]], asked: list[int], minimum: float, k: int) -> None:
            texts = {f"n{number}": vector for number, vector in enumerate(vectors)}
            own = Supplied("own/1", 3, {**texts, "asked": asked})
            with recollect.open(":memory:", embedder=own) as memory:
                memory.outline.ingest(nodes(*texts))
                found = memory.outline.search("asked", k, minimum=minimum)
            exact = {each: cosine(asked, vector) for each, vector in texts.items()}
            for each in found:
                assert abs(each.similarity - exact[each.node.id]) <= 0.001
            best = sorted(exact.values(), reverse=True)
            assert [each.similarity for each in found] == pytest.approx(best[: len(found)], abs=0.001)
            certain, possible = (sum(each >= minimum + slack for each in best) for slack in (0.001, -0.001))
            assert min(k, certain) <= len(found) <= min(k, possible)

        agrees()


class TestFocus:
    def test_the_focused_node_is_in_full_and_the_rest_by_title(self, memory: Memory) -> None:
        memory.outline.ingest_text(ORG, "org", "a.org")
        text = memory.outline.focus("sails")
        assert text == (
            "- (document)\n"
            "  - Boats\n"
            "    > Sails\n"
            "      : TODO: TODO\n"
            '      : TAGS: ["sea"]\n'
            "      | They are of cotton.\n"
            "    - Oars\n"
            "  - Houses\n"
            "    - Roof"
        )
        assert (text.full, text.omitted, text.private) == (("sails",), 0, 2)
        assert len(text.titles) == 5

    def test_without_a_node_it_is_the_titles_of_all_outlines(self, memory: Memory, model: Counting) -> None:
        assert memory.outline.focus() == ""
        memory.outline.ingest_text(ORG, "org", "a.org")
        memory.outline.ingest_text("* Cars\nfast\n** Wheels\n", "org", "b.org")
        whole = "\n".join(
            (
                "- (document)",
                "  - Boats",
                "    - Sails",
                "    - Oars",
                "  - Houses",
                "    - Roof",
                "- (document)",
                "  - Cars",
                "    - Wheels",
            )
        )
        text = memory.outline.focus()
        halves = {text, "\n".join(text.splitlines()[-6:] + text.splitlines()[:-6])}
        assert whole in halves | {"\n".join(text.splitlines()[3:] + text.splitlines()[:3])}
        assert (text.full, len(text.titles), text.omitted, text.private) == ((), 9, 0, 2)
        assert "secret" in memory.outline.focus(private=(), question="secret", minimum=0.0)
        short = memory.outline.focus(max_tokens=15)
        assert (short.tokens <= 15, short.omitted + len(short.titles)) == (True, 9)
        levels = [len(line) - len(line.lstrip()) for line in short.splitlines()]
        assert max(levels) < 4  # the uppermost first
        below = memory.outline.focus(under=memory.outline.at_path(["Boats"]).id)  # type: ignore[union-attr]
        assert below == "- Boats\n  - Sails\n  - Oars"
        with pytest.raises(InvalidArgumentError, match="is private"):
            memory.outline.focus(under="diary")
        with pytest.raises(UnknownRecordError):
            memory.outline.focus(under="nope")
        with recollect.open(":memory:", embedder=model) as other:
            other.outline.ingest(nodes("east", "near", "north", COLOUR="red"))
            found = other.outline.focus(question="east", minimum=0.8)
            assert (found.full, found.measure, found.count("COLOUR")) == (("east", "near"), "cosine", 2)
            assert ">" not in found

    def test_similar_nodes_are_in_full_too(self, model: Counting) -> None:
        with recollect.open(":memory:", embedder=model) as memory:
            memory.outline.ingest(nodes("east", "near", "north", COLOUR="red"))
            text = memory.outline.focus("east", minimum=0.8)
            assert text.full == ("east", "near")
            assert text.measure == "cosine"
            assert text.count(": COLOUR: red") == 2
            assert memory.outline.focus("east", minimum=0.801).full == ("east",)
            assert memory.outline.focus("east", k=0, minimum=0.0).full == ("east",)
            assert memory.outline.focus("east", question="north", k=1, minimum=0.5).full == ("east", "north")

    def test_private_nodes_and_what_is_below_them_never_appear(self, memory: Memory) -> None:
        memory.outline.ingest_text(ORG.replace(":private:", ":Private:"), "org", "a.org")
        text = memory.outline.focus("sails", question="cotton sails", minimum=0.0)
        assert not any(word in text for word in ("Diary", "secret", "Deep", "deeper"))
        assert text.private == 2
        for node in ("diary", "deep"):
            for under in (None, "deep"):
                with pytest.raises(InvalidArgumentError, match=r"is private|not below"):
                    memory.outline.focus(node, under=under)
        assert "secret" in memory.outline.focus("diary", private=())
        memory.outline.ingest_text("#+filetags: :x:private:\n* A\n:PROPERTIES:\n:ID: of-file\n:END:\n", "org", "b.org")
        with pytest.raises(InvalidArgumentError, match="is private"):
            memory.outline.focus("of-file")
        for number, tags in enumerate(("[a, 'Private']", "\n  - x\n  - private", "a #private", "private")):
            done = memory.outline.ingest_text(
                f"---\ntitle: x\ntags: {tags}\nother: y\n---\n# A\n", "markdown", f"{number}.md"
            )
            with pytest.raises(InvalidArgumentError, match="is private"):
                memory.outline.focus(done.root)
        public = memory.outline.ingest_text("---\ntags: [a, b-private]\nsee: private\n---\n# A\n", "markdown", "e.md")
        assert memory.outline.focus(public.root)
        memory.outline.ingest({"type": "HEADLINE", "properties": {"ID": "as-text", "tags": ":a:private:"}})
        with pytest.raises(InvalidArgumentError, match="is private"):
            memory.outline.focus("as-text")

    @pytest.mark.parametrize(
        ("form", "text"),
        [
            ("org", "* A\r\n* Secret :private:\r\ncode\r\n"),
            ("org", "\ufeff* Secret :private:\n"),
            ("org", "* A\n  #+FILETAGS: :private:\n* Secret\n"),
            ("markdown", "\ufeff---\ntags: private\n---\n# Secret\n"),
            ("markdown", "---\ntags:\n  [private]\n---\n# Secret\n"),
            ("markdown", "+++\ntags = ['private']\n+++\n# Secret\n"),
            ("json", '{"type": "A", "properties": {"TITLE": "Secret", "TAGS": ["work private"]}}'),
        ],
    )
    def test_a_private_tag_in_any_form_keeps_a_node_out(self, memory: Memory, form: str, text: str) -> None:
        done = memory.outline.ingest_text(text, form, "s")
        secret = next(each for each in memory.outline.view(done.root) if each.title == "Secret")
        with pytest.raises(InvalidArgumentError, match="is private"):
            memory.outline.focus(secret.id)
        assert not memory.outline.search("Secret code", private=["private"])

    def test_a_file_tag_that_is_added_below_a_headline_makes_the_stored_file_private(self, memory: Memory) -> None:
        root = memory.outline.ingest_text("* A\nx\n* B\n", "org", "s").root
        assert memory.outline.focus(root)
        memory.outline.ingest_text("* A\nx\n#+FILETAGS: :private:\n* B\n", "org", "s")
        with pytest.raises(InvalidArgumentError, match="is private"):
            memory.outline.focus(root)

    def test_no_text_looks_like_another_node(self, memory: Memory) -> None:
        evil = "- Boats\n> Focus\u2028- Other\x85  : TODO: DONE"
        child = {"type": "H", "properties": {"ID": "e", "TITLE": "a\n- b", "x\n- y": "c\n- d"}, "raw_content": evil}
        memory.outline.ingest({"type": "DOCUMENT", "properties": {"ID": "root"}, "contents": [child]})
        lines = memory.outline.focus("e").splitlines()
        assert [line.lstrip()[0] for line in lines] == ["-", ">", ":", "|", "|", "|", "|"]

    def test_it_never_exceeds_the_budget(self, memory: Memory) -> None:
        memory.outline.ingest_text(ORG, "org", "a.org")

        def tokens(text: str) -> int:
            return len(text.split()) + 1  # with one for the beginning of each text

        @settings(max_examples=some(25), deadline=None)
        @given(st.integers(1, 60), st.booleans())
        def fits(budget: int, own: bool) -> None:
            text = memory.outline.focus("sails", budget, minimum=0.0, private=(), tokenizer=tokens if own else None)
            count = tokens(text) if own else -(-len(text.encode()) // 4)
            assert not text or count <= budget
            assert text.tokens == (count if text else 0)
            assert len(text.full) + len(text.titles) + text.omitted == 8
            assert not text or "> Sails" in text

        fits()
        assert memory.outline.focus("sails", 1) == ""

    def test_a_long_text_is_cut(self, memory: Memory) -> None:
        memory.outline.ingest(
            {"type": "H", "properties": {"ID": "long", "TITLE": "L"}, "raw_content": "word " * 10_000}
        )
        text = memory.outline.focus("long", 100)
        assert text.endswith("word [...]")
        assert 90 <= text.tokens <= 100

    @pytest.mark.parametrize(
        ("arguments", "match"),
        [
            ({"node_id": "absent"}, "absent"),
            ({"node_id": "sails", "under": "oars"}, "not below oars"),
            ({"node_id": "sails", "max_tokens": 0}, "max_tokens"),
            ({"node_id": "sails", "k": -1}, "k"),
            ({"node_id": "sails", "private": "private"}, "list of tags"),
            ({"node_id": "sails", "tokenizer": 3}, "tokenizer"),
        ],
    )
    def test_wrong_arguments_are_refused(self, memory: Memory, arguments: dict[str, Any], match: str) -> None:
        memory.outline.ingest_text(ORG, "org", "a.org")
        with pytest.raises((InvalidArgumentError, UnknownRecordError), match=match):
            memory.outline.focus(**arguments)


def test_the_commands_search_and_focus(tmp_path: Path) -> None:
    (tmp_path / "a.org").write_text(ORG)
    db = str(tmp_path / "a.db")

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["outline", *arguments, "--db", db], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    source = str(tmp_path / "a.org")
    run("import", source)
    assert "Boats / Sails" in run("search", "cotton sails")
    found = json.loads(run("search", "cotton sails", "--under", source, "-k", "1", "--json", "--embedder", "hashed"))
    assert found["measure"] == "cosine"
    assert len(found["nodes"]) == 1
    assert "    > Sails" in run("focus", "sails", "--max-tokens", "100")
    assert json.loads(run("focus", "sails", "--json"))["private"] == 2
    assert run("focus").startswith("- (document)\n  - Boats\n    - Sails\n")


def test_an_agent_uses_outlines_over_mcp(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory, in_process(memory, ["outline"]) as server:
        done = server.ok("import_outline", text=ORG, format="org", source="a.org")
        assert done["added"] == 8
        assert [each["title"] for each in server.ok("show_outline", under=done["id"], depth=1)["nodes"]] == [
            "", "Boats", "Houses"
        ]  # without the private one  # fmt: skip
        found = server.ok("search_outline", text="cotton sails", k=1)
        assert found["measure"] == "confidence"
        assert len(found["nodes"]) == 1
        assert "> Sails" in server.ok("focus_outline", node_id="sails")["text"]
        skeleton = server.ok("focus_outline")["text"]
        assert ("  - Boats" in skeleton, "Diary" in skeleton) == (True, False)
        assert beside(memory, "nodes").log()[0].actor is not None


def test_a_model_uses_outlines_as_function_tools(memory: Memory) -> None:
    tools = memory.tools(only=["import_outline", "search_outline", "focus_outline"])
    done = tools.call("import_outline", {"text": ORG, "format": "org", "source": "a.org"})
    assert done["added"] == 8
    (found,) = tools.call("search_outline", {"text": "cotton", "k": 1, "under": "sails"})["results"]
    assert found["id"] == "sails"
    assert "> Sails" in tools.call("focus_outline", {"node_id": "sails", "max_tokens": 50})
    assert "    - Sails" in tools.call("focus_outline", {})
