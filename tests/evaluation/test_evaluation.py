"""The instrument: metrics with known values, data sets with known flaws, and runs that say what they measured."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.cli.app import app
from recollect.errors import ImportFormatError, InvalidArgumentError
from recollect.evaluation import datasets
from recollect.evaluation.answerability import answerability, reliability, renamed
from recollect.evaluation.contexts import content_words, coverage, covered
from recollect.evaluation.datasets import EvaluationQuestion
from recollect.evaluation.run import auroc, differing, evaluate, means, measured, mistyped, paired_difference
from recollect.memory.context.filling import Filling
from recollect.records.record import Record

Write = Callable[[str, Any], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, data: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data), encoding="utf-8")
        return path

    return write


def conversation(name: str, speakers: tuple[str, str], *lines: str, qa: list[dict[str, Any]]) -> dict[str, Any]:
    turns = [
        {"speaker": speakers[place % 2], "dia_id": f"D1:{place + 1}", "text": line} for place, line in enumerate(lines)
    ]
    talk = {"speaker_a": speakers[0], "speaker_b": speakers[1], "session_1": turns, "session_1_date_time": WHEN}
    return {"sample_id": name, "conversation": talk, "qa": qa}


WHEN = "1:56 pm on 8 May, 2023"


@pytest.fixture
def talks(write: Write) -> Path:
    first = conversation(
        "one",
        ("Ana", "Bob"),
        "I planted tomatoes behind the shed.",
        "My brother drives a tram in Lisbon.",
        "The cat is called Miso.",
        qa=[
            {"question": "What did Ana plant?", "evidence": ["D1:1"], "category": 4},
            {"question": "Who drives a tram?", "evidence": ["D:1:02; D9:9"], "category": 1},
            {"question": "What did Bob sing?", "evidence": ["D7:7"], "category": 5},
        ],
    )
    second = conversation(
        "two",
        ("Cleo", "Dan"),
        "The violin lessons begin in autumn.",
        "I sold the old kayak.",
        qa=[{"question": "What did Dan sell?", "evidence": ["D1:2"], "category": 4}],
    )
    return write("talks.json", [first, second])


class TestMetrics:
    def test_have_the_values_of_their_definitions(self) -> None:
        found = measured(["a", "x", "b", "y"], ["a", "b", "c"], {"a": "s1", "b": "s2", "c": "s2", "x": "s3"}.get)
        assert found["recall@5"] == pytest.approx(2 / 3)
        assert found["hit@5"] == 1.0
        assert found["recall_all@50"] == 0.0
        assert found["mrr"] == 1.0
        # By hand: gains at ranks 1 and 3, over the three that could be had.
        ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
        assert found["ndcg@10"] == pytest.approx((1 + 1 / math.log2(4)) / ideal)
        assert (found["session_any@1"], found["session_all@1"], found["session_all@3"]) == (1.0, 0.0, 1.0)

    def test_of_a_ranking_without_evidence_are_zero(self) -> None:
        found = measured(["x"], ["a"], lambda _: None)
        assert set(found.values()) == {0.0}
        assert measured([], ["a"], lambda _: None) == found

    def test_means_say_how_many_and_pass_over_what_is_missing(self) -> None:
        assert means([{"a": 1.0}, {"a": 0.0, "b": 1.0}]) == {"n": 2, "a": 0.5, "b": 1.0}

    @pytest.mark.parametrize(
        ("positive", "negative", "area"),
        [([1.0], [0.0], 1.0), ([0.0], [1.0], 0.0), ([0.5], [0.5], 0.5), ([0.1, 0.4, 0.35, 0.8], [0.35], 0.625)],
    )
    def test_auroc_has_known_values(self, positive: list[float], negative: list[float], area: float) -> None:
        assert auroc(positive, negative) == pytest.approx(area)

    @given(*[st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=12)] * 2)
    def test_auroc_is_the_chance_to_be_above(self, positive: list[float], negative: list[float]) -> None:
        wins = [(one > other) + (one == other) / 2 for one in positive for other in negative]
        assert auroc(positive, negative) == pytest.approx(np.mean(wins))

    def test_the_bootstrap_covers_the_mean_and_repeats(self) -> None:
        ours, theirs = [1.0, 1.0, 0.0, 1.0] * 20, [0.0, 1.0, 0.0, 1.0] * 20
        found = paired_difference(ours, theirs)
        assert found == paired_difference(ours, theirs)
        assert found["mean"] == 0.25
        # The standard error of a proportion of 1/4 in 80 is 0.048.
        assert found["low"] == pytest.approx(0.25 - 1.96 * 0.0484, abs=0.02)
        assert found["high"] == pytest.approx(0.25 + 1.96 * 0.0484, abs=0.02)
        assert paired_difference(ours, ours) == {"mean": 0.0, "low": 0.0, "high": 0.0}

    def test_reliability_weighs_both_kinds_alike(self) -> None:
        bins = reliability([0.95] * 10, [0.95] * 1 + [0.05] * 9)
        assert [(each["low"], round(each["answerable"], 3)) for each in bins] == [(0.0, 0.0), (0.9, round(1 / 1.1, 3))]


class TestCoverage:
    """The rule of the specification: a whole turn counts, a part if it has every content word of the answer."""

    TURN = Record(id="D1:1", content="I planted 12 tomatoes behind the barn. The cat is called Miso.")

    @pytest.mark.parametrize(
        ("answer", "part", "expected"),
        [
            ("12 tomatoes", TURN.text, (1.0, 1.0)),
            ("Tomatoes, twelve or 12", "I planted 12 tomatoes", (1.0, 0.0)),
            ("12 tomatoes", "I planted tomatoes", (0.0, 0.0)),
            ("nothing of it", "Miso planted", (0.0, 0.0)),  # no word of the answer: those of the question count
            ("nothing of it", "planted behind the barn", (1.0, 0.0)),
        ],
    )
    def test_has_the_values_of_the_rule(self, answer: str, part: str, expected: tuple[float, float]) -> None:
        question = EvaluationQuestion("one", "What was planted by the barn?", "4", ("D1:1",), answer=answer)
        assert covered(question, {"D1:1": self.TURN}, {"D1:1": part}) == expected
        assert covered(question, {"D1:1": self.TURN}, {}) == (0.0, 0.0)

    def test_content_words_are_those_of_the_rule(self) -> None:
        assert content_words("She's at the Tomatoes, 7 of us; an ox") == {"tomat", "7"}

    def test_a_budget_that_has_no_room_covers_nothing_and_a_large_one_everything(self, talks: Path) -> None:
        data = datasets.locomo(talks)
        with recollect.open(":memory:") as memory:
            data.fill(memory)
            found = coverage(data, memory, (1, 60, 1000), peers=["fts5"]).to_json()
        assert found["methods"]["context"]["covered"][0] == 0.0
        assert found["methods"]["context"]["covered"][-1] == 100.0
        assert found["methods"]["fts5, plain top k"]["covered"] == [0.0, 100.0, 100.0]
        assert {name: row["n"] for name, row in found["by_namespace"].items()} == {"one": 2, "two": 1}

    def test_a_context_that_gives_nothing_covers_nothing(self, talks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Filling, "fill", lambda *_: None)
        data = datasets.locomo(talks)
        with recollect.open(":memory:") as memory:
            data.fill(memory)
            assert coverage(data, memory, (1000,)).to_json()["methods"]["context"]["covered"] == [0.0]


class TestTypos:
    def test_hit_long_content_words_only_and_each_once(self) -> None:
        text = "Where should the telescope stand, and when are they there?"
        wrong = mistyped(text, 1.0)
        assert wrong != text
        changed = [(one, other) for one, other in zip(text.split(), wrong.split(), strict=True) if one != other]
        assert [one for one, _ in changed] == ["telescope", "stand,"]
        assert mistyped(text, 1.0) == wrong
        assert mistyped(text, 1.0, seed=1) != wrong
        assert mistyped(text, 0.0) == text

    def test_hit_about_as_many_as_they_should(self) -> None:
        words = [f"{first}oatman" for first in "abcdefghijklmnopqrstuvwxyz"] * 8
        hit = sum(mistyped(f"{word} {place}", 0.3).split()[0] != word for place, word in enumerate(words))
        assert 0.2 < hit / len(words) < 0.4


class TestDataSets:
    def test_evidence_is_repaired_and_what_is_left_without_any_is_not_asked(self, talks: Path) -> None:
        data = datasets.locomo(talks)
        assert [each.evidence for each in data.asked] == [("D1:1",), ("D1:2", "D9:9"), ("D7:7",), ("D1:2",)]
        with recollect.open(":memory:") as memory:
            found = evaluate(data, memory)
        assert [answer.asked.evidence for answer in found.answers["recollect"]] == [("D1:1",), ("D1:2",), ("D1:2",)]
        assert found.skipped == 1

    def test_beams_evidence_is_found_however_it_is_nested(self, write: Write, tmp_path: Path) -> None:
        chat = [{"batch_number": 1, "turns": [[{"role": "user", "id": number, "content": f"line {number}"}]]}
                for number in (3, 5)]  # fmt: skip
        write("chats/1/chat.json", chat)
        questions = {
            "update": [{"question": "line?", "source_chat_ids": "{'a': [3], 'b': [5, 9]}"}],
            "abstention": [{"question": "what?"}],
        }
        write("chats/1/probing_questions/probing_questions.json", questions)
        data = datasets.beam(tmp_path / "chats")
        evidence = {each.category: each.evidence for each in data.asked}
        assert evidence == {"update": ("3", "5", "9"), "abstention": ()}
        with recollect.open(":memory:") as memory:
            found = evaluate(data, memory)
            assert found.answers["recollect"][0].metrics["recall@5"] == 1.0
            assert len(answerability(data, memory).abstention) == 1
        with pytest.raises(ImportFormatError):
            datasets.beam(tmp_path / "missing")

    def test_memdaily_is_stored_and_asked_by_task(self, write: Write) -> None:
        task = {
            "tid": 4,
            "message_list": [
                {
                    "mid": 0,
                    "message": "我下个月去看园艺展览。",
                    "time": "2024年04月01日 周一 08:30",
                },
                {"mid": 1, "message": "今天天气很好。", "time": "2024年04月02日 周二 08:30"},
            ],
            "question_list": [{"question": "园艺展览在哪个月？", "target_step_id": [0]}],
        }
        path = write("events.json", [task])
        with recollect.open(":memory:") as memory:
            found = evaluate(datasets.memdaily(path), memory)
            assert memory.namespaces() == ["events-4"]
            printed = memory.namespace("events-4").get("0")
            assert printed is not None
            assert printed.time is not None
            assert printed.time.isoformat() == "2024-04-01T08:30:00+00:00"
        assert found.summary()["overall"]["mrr"] == 1.0

    @pytest.mark.parametrize(
        "wrong", ["{", "[1]", '{"a": 1}', '[{"qa": [1]}]', '[{"qa": [{"category": 1}]}]', "null", "[" * 100_000]
    )
    def test_what_is_no_data_set_is_said_so(self, tmp_path: Path, wrong: str) -> None:
        path = tmp_path / "wrong.json"
        path.write_text(wrong)
        with pytest.raises(ImportFormatError):
            datasets.locomo(path)
        if wrong != "[1]":
            with pytest.raises(ImportFormatError):
                datasets.memdaily(path)


class TestRuns:
    def test_the_names_of_speakers_are_exchanged(self) -> None:
        asked = EvaluationQuestion("one", "Did Ana tell Bob's sister about Anabel?", "1", ("x",), ("Ana", "Bob"))
        assert renamed(asked, ("Cleo", "Dan")) == "Did Cleo tell Dan's sister about Anabel?"
        assert renamed(EvaluationQuestion("one", "Did Ana?", "1", ()), ("Cleo", "Dan")) == "Did Ana?"

    def test_the_wrong_conversation_is_less_sure(self, talks: Path) -> None:
        with recollect.open(":memory:") as memory:
            data = datasets.locomo(talks)
            data.fill(memory)
            found = answerability(data, memory)
        assert len(found.own) == len(found.wrong) == 3
        assert found.to_json()["auroc_wrong_conversation"] == 1.0

    def test_peers_are_asked_the_same_in_the_same_run(self, talks: Path) -> None:
        with recollect.open(":memory:") as memory:
            found = evaluate(datasets.locomo(talks), memory, peers=["fts5", "bm25s"])
        for name in ("fts5", "bm25s"):
            assert [answer.asked for answer in found.answers[name]] == [
                answer.asked for answer in found.answers["recollect"]
            ]
            assert found.summary(name)["overall"]["recall@5"] > 0
        assert set(found.to_json()["compared"]) == {"fts5", "bm25s"}

    def test_wrong_arguments_are_refused(self, talks: Path) -> None:
        for arguments in ({"peers": ["nobody"]}, {"typos": 1.5}):
            with recollect.open(":memory:") as memory, pytest.raises(InvalidArgumentError):
                evaluate(datasets.locomo(talks), memory, **arguments)


class TestCommand:
    def run(self, *arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result.stdout

    def test_json_has_the_keys_and_metrics_that_are_promised(self, talks: Path, tmp_path: Path) -> None:
        lines, plot = tmp_path / "lines.jsonl", tmp_path / "plot.svg"
        arguments = [
            "eval",
            "locomo",
            str(talks),
            "--json",
            "--answerability",
            "--compare",
            "fts5",
            "--context",
            "9,500",
        ]
        found = json.loads(self.run(*arguments, "--per-question", str(lines), "--plot", str(plot)))
        assert {"overall", "by_category", "config", "versions", "compared", "answerability"} <= found.keys()
        assert {"recall@5", "recall@10", "hit@10", "mrr", "ndcg@10", "n"} <= found["overall"].keys()
        assert found["context"]["budgets"] == [9, 500]
        assert set(found["context"]["methods"]) == {"context", "recall, plain top k", "fts5, plain top k"}
        assert found["overall"]["n"] == 3
        assert set(found["by_category"]) == {"1", "4", "1-4"}
        assert found["by_category"]["1-4"]["n"] == 3
        assert [json.loads(line)["recall@5"] for line in lines.read_text().splitlines()] == [1.0, 1.0, 1.0]
        assert plot.read_text().lstrip().startswith("<?xml")

    def test_what_cannot_be_measured_or_written_is_reported_before_the_work(self, talks: Path, write: Write) -> None:
        silent = conversation("one", ("Ana", "Bob"), "I planted tomatoes.", qa=[])
        self.run("eval", "locomo", str(write("silent.json", [silent])), code=1)
        for option in ("--per-question", "--plot"):
            self.run("eval", "locomo", str(talks), option, str(talks.parent / "missing" / "x.svg"), code=1)

    def test_budgets_are_numbers(self, talks: Path) -> None:
        self.run("eval", "locomo", str(talks), "--context", "500,many", code=2)
        self.run("eval", "locomo", str(talks), "--context", "0", code=1)

    def test_typing_errors_can_be_compared_with_a_clean_run(self, talks: Path, tmp_path: Path) -> None:
        clean, typed = tmp_path / "clean.jsonl", tmp_path / "typed.jsonl"
        self.run("eval", "locomo", str(talks), "--per-question", str(clean))
        self.run("eval", "locomo", str(talks), "--typos", "1", "--per-question", str(typed))
        assert [each.question for each in differing(clean, typed)] == [
            json.loads(one)["question"]
            for one, other in zip(clean.read_text().splitlines(), typed.read_text().splitlines(), strict=True)
            if json.loads(one)["recall@10"] != json.loads(other)["recall@10"]
        ]

    def test_the_table_names_what_was_measured(self, talks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "140")
        shown = self.run("eval", "locomo", str(talks), "--typos", "0.3", "--context", "500")
        for part in (
            "recall@10",
            "1 multi-hop",
            "4 single-hop",
            "sessions: any@1",
            "ms per query",
            "evidence in a context",
        ):
            assert part in shown

    def test_the_difference_of_two_runs_names_the_questions(self, talks: Path, tmp_path: Path) -> None:
        before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
        self.run("eval", "locomo", str(talks), "--per-question", str(before))
        rows = [json.loads(line) for line in before.read_text().splitlines()]
        rows[1]["recall@10"] = 0.0
        after.write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert [(each.question, each.before, each.after) for each in differing(before, after)] == [
            ("Who drives a tram?", 1.0, 0.0)
        ]
        assert "0 questions better, 1 worse" in self.run("eval", "--diff", str(before), str(after))
        after.write_text(json.dumps(rows[0]) + "\n")
        self.run("eval", "--diff", str(before), str(after), code=1)
        self.run("eval", "--diff", str(before), str(talks), code=1)
        self.run("eval", code=2)


def test_the_glossary_is_evaluated_beside_its_peers_and_the_sentences_of_a_fold_are_unknown(tmp_path: Path) -> None:
    pytest.importorskip("bm25s")
    candidates = {"RF": ["random forest", "radio frequency"], "DE": ["differential evolution"]}
    meant = [
        ("RF", "random forest", "trees vote"),
        ("RF", "radio frequency", "antennas send"),
        ("DE", "differential evolution", "x"),
    ]
    sentences = [
        {"tokens": [*words.split(), short], "acronym": len(words.split()), "expansion": expansion}
        for short, expansion, words in meant * 5
    ]
    (tmp_path / "diction.json").write_text(json.dumps(candidates))
    (tmp_path / "dev.json").write_text(json.dumps(sentences))
    result = CliRunner().invoke(app, ["eval", "glossary", str(tmp_path), "--json"])
    found = json.loads(result.stdout)
    assert found["n"] == 15
    assert found["methods"]["recollect"] == found["methods"]["bm25s"] == {"accuracy@1": 1.0, "accuracy@3": 1.0}
    assert found["methods"]["most frequent"]["accuracy@1"] < 1.0
    # What only one fold has cannot be learnt from the others.
    (tmp_path / "dev.json").write_text(json.dumps([*sentences[1:2] * 4, sentences[0]]))
    found = json.loads(CliRunner().invoke(app, ["eval", "glossary", str(tmp_path), "--json"]).stdout)
    assert found["methods"]["most frequent"]["accuracy@1"] == 0.8
    for text in ("{}", '[{"tokens": ["RF"], "acronym": 3, "expansion": "x"}]', "["):
        (tmp_path / "dev.json").write_text(text)
        result = CliRunner().invoke(app, ["eval", "glossary", str(tmp_path)])
        assert result.exit_code == (0 if text == "{}" else 1), result.output
