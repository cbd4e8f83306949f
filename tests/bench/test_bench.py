"""The measurements: texts and questions repeat, each command prints what programs read, and no figure is judged."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.__main__ import ONCE
from bench.catching_up import catching_up
from bench.corpus import CACHE_VARIABLE, TEXTS_VARIABLE, corpus, gathered, questions, varied
from bench.dialogues import DATA_VARIABLE, dialogues
from bench.filtering import filters
from bench.namespaces import many_namespaces
from bench.once import PACKAGES, _last, once
from bench.once_worker import KINDS
from bench.pauses import pauses
from bench.peers import PEERS, PeerMissingError
from bench.plotting import latencies, plot, stages
from bench.recall import recalls
from bench.sdrs import packed_rows, scanned
from bench.sentences import sentences, sentences_of
from bench.stalls import stalls
from bench.traces import traces
from tests.examples import FULL, in_full
from torture.worst_cases import Case

import bench
from bench import feed as feeding
from bench import past as past_recall
from bench import poison as poisoning
from recollect.facets.sdr.index.encoding import encoded, encoded_all, packed
from recollect.facets.sdr.index.index import SdrIndex
from recollect.text.words import terms

NOUNS = "lighthouse ferry harbour baker orchard violin glacier library saddle teapot compass meadow".split()
VERBS = "remembers follows carries describes".split()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which a small folder of texts is all that the machine has."""
    folder = tmp_path_factory.mktemp("machine")
    texts = folder / "doc"
    texts.mkdir()
    output = [f"The old {one} {verb} every {other} of the year." for one in NOUNS for other in NOUNS for verb in VERBS]
    (texts / "plain.txt").write_text("\n".join(output), encoding="utf-8")
    (texts / "module.py").write_text('"""A docstring says what the module is for."""\n# A comment says why it is so.\n')
    (texts / "page.html").write_text(
        "<p>A <b>page</b> of the manual is here.</p><pre>This is code and is not read.</pre>"
    )
    (texts / "tool.1.gz").write_bytes(gzip.compress(b".SH NAME\n.PP\nThe \\fBtool\\fR does what you ask.\n"))
    (texts / "data.bin").write_bytes(b"This would be a sentence in a file of data.")
    return {TEXTS_VARIABLE: str(texts), CACHE_VARIABLE: str(folder / "cache")}


@pytest.fixture
def here(machine: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same for this process; gives the folder of texts."""
    for name, value in machine.items():
        monkeypatch.setenv(name, value)
    return Path(machine[TEXTS_VARIABLE])


def printed(machine: dict[str, str], *arguments: str) -> Any:
    """The JSON of a command that is run as people run it."""
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments, "--json"],
        cwd=Path(bench.__file__).parent.parent,
        env={**os.environ, **machine},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def are_latencies(figures: dict[str, Any]) -> bool:
    return bool(0 < figures["p50_ms"] <= figures["p95_ms"] <= figures["p99_ms"])


def test_sentences_are_read_from_docstrings_comments_pages_and_manuals(here: Path) -> None:
    found = {path.name: list(sentences_of(path)) for path in here.iterdir()}
    assert found["module.py"] == ["A docstring says what the module is for.", "A comment says why it is so."]
    assert found["page.html"] == ["A page of the manual is here."]
    assert found["tool.1.gz"] == ["The tool does what you ask."]
    assert found["data.bin"] == []


def test_what_is_no_sentence_is_left_out() -> None:
    assert list(sentences("x = 1; y = 2; z = 3 4 5 6. Four words are few. no end to this at all")) == []


def test_the_corpus_is_the_same_every_time_and_a_smaller_one_begins_a_larger(here: Path) -> None:
    found = corpus()
    assert found.distinct == len(NOUNS) ** 2 * len(VERBS) + 4
    texts = found.texts(found.distinct + 100)
    assert len(set(texts)) == found.distinct + 100
    assert texts[:50] == found.texts(50)
    assert texts[: found.distinct] == gathered([here])
    assert corpus().identity == found.identity
    assert list(islice(varied(texts[: found.distinct]), 100)) == texts[found.distinct :]


def test_too_few_sentences_to_vary_are_an_error_and_no_endless_search() -> None:
    with pytest.raises(ValueError, match=TEXTS_VARIABLE):
        list(varied(["The only sentence that there is."]))


def test_questions_are_3_to_10_words_of_one_text_and_ask_for_something(here: Path) -> None:
    texts = corpus().texts(300)
    asked = questions(texts, 200)
    assert asked == questions(texts, 200)
    assert asked != questions(texts, 200, seed=9)
    bags = [set(text.rstrip(".").split()) for text in texts]
    for question in asked:
        words = question.split()
        assert 3 <= len(words) <= 10
        assert any(terms(question))
        assert any(set(words) <= bag for bag in bags)
    assert any("the" in question.split() for question in asked)  # as people ask


def test_traces_are_compared_in_every_round_without_an_sdk_and_with_one() -> None:
    found = traces(100, 2)
    assert (found["records"], found["questions"], found["rounds"]) == (100, 2, 21)
    for arm in ("no_sdk", "sdk", "again"):
        assert 0 < found[arm]["ratio_min"] <= found[arm]["ratio"] <= found[arm]["ratio_max"]


@pytest.mark.skipif(not FULL, reason="takes five seconds: make test-all")
def test_recall_prints_our_figures_the_peers_and_the_ratio(machine: dict[str, str]) -> None:
    found = printed(machine, "recall", "--records", "300", "--peers", "fts5", "--questions", "10")
    assert (found["records"], found["questions"]) == (300, 10)
    assert are_latencies(found["recollect"])
    assert are_latencies(found["fts5"])
    assert found["recollect"]["cold_ms"] > 0
    assert found["ratio"] == {"fts5": found["fts5"]["p50_ms"] / found["recollect"]["p50_ms"]}
    assert found["distinct_sentences"] == len(NOUNS) ** 2 * len(VERBS) + 4


def test_write_prints_one_write_beside_the_disk_many_and_threads(machine: dict[str, str]) -> None:
    found = printed(machine, "write", "--records", "300")
    assert found["ratio"] == found["recollect_ms"] / found["raw_fsync_ms"]
    assert 0 < found["bulk_per_s"] < found["bulk_store_per_s"]
    assert found["threads8_per_s"] > 0
    assert are_latencies(found["recollect"])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read where Linux tells it")
@pytest.mark.skipif(not FULL, reason="takes five seconds: make test-all")
def test_open_prints_the_first_answer_and_memory(machine: dict[str, str]) -> None:
    found = printed(machine, "open", "--records", "300", "--runs", "1")
    assert found["records"] == 300
    assert found["open_ms"] > 0
    assert found["open_and_first_recall_ms"] > 0
    assert found["process_start_to_answer_ms"] > 0
    assert found["rss_bytes_per_record"] == (found["rss_bytes"] - found["rss_empty_bytes"]) / 300


@in_full
@pytest.mark.usefixtures("here")
def test_the_other_measurements_have_their_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    assert many_namespaces(3)["ratio"] > 0
    mixed = pauses(200)
    assert sum(mixed[name]["n"] for name in ("remember", "update", "forget")) == 200
    assert mixed["recall"]["n"] == 2
    assert mixed["worst_ms"] >= mixed["p999_ms"]
    stalled = stalls(300, 1)
    assert stalled["recalls"] > 0
    assert stalled["commits"] > stalled["writes"] > 0  # those of the other process, too
    assert stalled["stalls"]["all"] == stalled["stalls"]["while_the_machine_stalled"] + stalled["stalls"]["own"]
    by_user, by_others = {"0.1%", "1%", "10%", "50%"}, {"tag 1%", "metadata 1%", "importance 1%", "newest 1%"}
    others = {"all but a tag's 1%", "contains", "find by tag", "count by tag"}
    assert set(filters(300, 5)["ratio"]) == by_user | by_others | others
    caught_up = catching_up(300)
    assert all(caught_up[kind]["p50_ms"] > 0 for kind in ("nothing", "remember", "update", "turn", "forget"))
    monkeypatch.setattr(past_recall, "COMMITS", 6)
    of_the_past = past_recall.pasts(300, 3)
    assert min(of_the_past[name] for name in ("first_ms", "neighbour_ms", "past_p50_ms", "ratio")) > 0


@pytest.mark.skipif(not FULL, reason="takes five seconds: make test-all")
def test_the_feed_is_measured_with_the_listeners_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "COMMITS", 5)
    monkeypatch.setattr(feeding, "FOREIGN", 2)
    found = feeding.feeds(3)
    assert found["threads"] <= 2
    assert found["views_of_a_commit"]["heard"] >= 1
    assert min(found[name]["p50_ms"] for name in ("commit_to_callback", "commit_of_another_process_to_callback")) > 0


@in_full
def test_poison_names_the_dearest_texts_and_compares_them_with_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poisoning, "cases", lambda: [Case("signs", "\ufdfa"), Case("one word", "a"), Case("nul", "\0")])
    found = poisoning.poison(3000)
    assert (found["texts"], len(found["worst"])) == (3, 3)
    assert [row["time_ratio"] for row in found["worst"]] == sorted(
        (row["time_ratio"] for row in found["worst"]), reverse=True
    )
    assert found["plain_bytes_a_byte"] > 1
    assert all(row["memory_ratio"] >= 0 and row["longest_hold_ms"] >= 0 for row in found["worst"])


@in_full
def test_sdr_prints_searching_beside_reading_all_rows_and_beside_a_scan(machine: dict[str, str]) -> None:
    found = printed(machine, "sdr", "--records", "300", "--questions", "5")
    assert found["records"] == 300
    assert found["ratio_overlap"] == found["read_all_rows_ms"] / found["overlap_p50_ms"]
    assert found["ratio_hamming"] == found["read_all_rows_ms"] / found["hamming_p50_ms"]
    assert found["encode_per_s"] > 0
    assert found["scan_ms"] > 0


@pytest.mark.usefixtures("here")
def test_the_scan_that_sdrs_are_set_beside_finds_the_same() -> None:
    texts = corpus().texts(200)
    found, index = encoded_all(texts), SdrIndex()
    index.add_all(range(len(texts)), found)
    for question in questions(texts, 5):
        row = np.frombuffer(packed(encoded(question)), dtype=np.uint64)
        best = index.nearest(encoded(question), 10)
        assert scanned(packed_rows(found), row) == [(hit.number, hit.hamming) for hit in best]


@in_full
def test_vectors_prints_the_scan_beside_reading_and_how_much_it_finds(machine: dict[str, str]) -> None:
    found = printed(machine, "vectors", "--records", "300", "--questions", "5")
    assert found["ratio"] == found["scan_p50_ms"] / found["read_all_rows_ms"]
    assert found["recall_at_10"] > 0.9


@pytest.mark.usefixtures("here")
@pytest.mark.usefixtures("here")
def test_a_peer_that_is_not_there_is_reported_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rank_bm25", None)
    with pytest.raises(PeerMissingError, match="pip install rank-bm25"):
        PEERS["rank_bm25"](["a text"], Path())
    found = recalls(300, ["rank_bm25", "fts5"], 5)
    assert "pip install" in found["rank_bm25"]["missing"]
    assert set(found["ratio"]) == {"fts5"}


def test_an_unknown_peer_is_answered_with_the_known_ones() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "recall", "--peers", "fts5,nosuch"],
        cwd=Path(bench.__file__).parent.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "nosuch: peers are fts5" in done.stderr
    assert set(ONCE) == set(PACKAGES) == set(KINDS)


@pytest.mark.usefixtures("here")
def test_an_environment_that_cannot_be_made_is_the_peers_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    assert "cannot be installed" in once(300, ["chromadb"])["peers"]["chromadb"]["failed"]
    assert _last("a\nb\n\n") == "b"


@pytest.mark.usefixtures("here")
def test_results_are_drawn(tmp_path: Path) -> None:
    results = [recalls(size, ["fts5"], 5) for size in (200, 300)]
    for result in results:
        (tmp_path / f"{result['records']}.json").write_text(json.dumps(result))
    assert [size for size, _ in latencies(results)["fts5"]] == [200, 300]
    written = plot([tmp_path], tmp_path / "plots")
    assert [path.name for path in written] == ["latency.svg"]
    assert "recollect" in written[0].read_text()


def test_the_parts_of_recalls_over_conversations_are_drawn_by_size() -> None:
    parts = {size: {"records": size / 100, "the rest": 1.0} for size in (30, 20)}
    results: list[dict[str, Any]] = [
        {"command": "recall", "corpus": "conversations (LoCoMo)", "records": size, "recollect": {"stages_ms": each}}
        for size, each in parts.items()
    ]
    results.append({**results[0], "corpus": "sentences"})

    assert stages(results) == {"records": [(20, 0.2), (30, 0.3)], "the rest": [(20, 1.0), (30, 1.0)]}


class TestDialogues:
    @pytest.fixture(params=["LoCoMo", "generated"])
    def origin(self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.delenv(DATA_VARIABLE, raising=False)
        if request.param == "LoCoMo":
            turns = [
                {"speaker": "Ana", "text": f"Ana saw the {one} and a {other}."} for one in NOUNS for other in NOUNS
            ]
            sample = {"sample_id": "c1", "conversation": {"session_1": turns, "session_1_date_time": "noon"}}
            asked = [{"question": f"Did Ana see the {one}?"} for one in NOUNS]
            (tmp_path / "locomo").mkdir()
            (tmp_path / "locomo" / "locomo5-dev.json").write_text(json.dumps([{**sample, "qa": asked}]))
            monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
        return str(request.param)

    def test_turns_and_questions_repeat_and_a_store_of_fewer_is_the_beginning_of_one_of_more(self, origin: str) -> None:
        one, other = dialogues(), dialogues()
        assert one.origin == origin
        assert one.turns(5000) == other.turns(5000)
        assert one.turns(5000)[:300] == one.turns(300)
        assert one.identity == other.identity
        assert one.questions(2000) == other.questions(2000) != one.questions(2000, seed=3)
        assert len(one.questions(2000)) == 2000

    def test_a_variation_is_of_others_in_other_words(self, origin: str) -> None:
        found = dialogues()
        written = len([turn for turn in found.turns(5000) if "/" not in turn.conversation])
        first, second = found.turns(2 * written)[:written], found.turns(2 * written)[written:]
        assert not {turn.speaker for turn in first} & {turn.speaker for turn in second}
        assert not {turn.session for turn in first} & {turn.session for turn in second}
        words = [{*turn.text.lower().split()} for turn in (*first, *second)]
        pairs = list(zip(words[:written], words[written:], strict=True))
        shared = sum(len(one & other) for one, other in pairs) / sum(len(one) for one, _ in pairs)
        assert 0.5 < shared < 0.98

    def test_recall_measures_them_and_the_first_questions_apart(self, origin: str, here: Path) -> None:
        found = recalls(300, ["fts5"], 20, "conversations")
        assert found["corpus"] == f"conversations ({origin})"
        assert {"p50_ms", "p95_ms", "p99_ms"} <= found["recollect"]["first_200"].keys()
        assert found["ratio"]["fts5"] > 0
        assert min(found["recollect"]["stages_ms"].values()) > 0

    def test_recall_measures_them_in_several_namespaces(self, origin: str, here: Path) -> None:
        found = recalls(300, ["fts5"], 10, "conversations", namespaces=3)
        assert (found["namespaces"], found["ratio"]) == (3, {})
        assert found["recollect"]["p50_ms"] > 0
