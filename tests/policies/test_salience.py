"""Salience: what is worth remembering, by rules in nine languages, and the policy that rejects the rest."""

from __future__ import annotations

import asyncio
import os
import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import in_full, some
from tests.exports import exported
from tests.mcp.clients import in_process

import recollect
from recollect import Memory
from recollect.cli.app import app
from recollect.errors import InvalidArgumentError, RejectedError
from recollect.ledger.commits import RESERVED
from recollect.operations import GetPolicies
from recollect.policies import LEVELS, Judgement, judge
from recollect.policies.salience import SCORES, _narrates
from recollect.sdr import SDRMemory

WORDS = tomllib.loads((files("recollect.policies") / "salience_words.toml").read_text("utf-8"))
DATA = os.environ.get("RECOLLECT_DATA")
#: What the specification names, word for word, and one text for each rule and language.
REASONS = {
    "let me check...": "narration",
    "starting analysis...": "narration",
    "src/recollect/cli/app.py": "path",
    "/etc/nginx/nginx.conf:12:4": "path",
    "C:\\Users\\ana\\notes.txt": "path",
    "~/.ssh/config": "path",
    "`setup.py` `tests/`": "path",
    "7 chars": "short",
    "8 chars!": "other",
    "": "short",
    " \n\t ": "short",
    "Error 500 on login": "signal",
    "The incident was resolved at noon.": "signal",
    "We decided to use PostgreSQL.": "signal",
    "Ana keeps her bicycle in the yard behind the house of her aunt.": "fact",
    "Ana has a bicycle.": "other",
    "Which of the three houses at the lake did she buy in the end, and why?": "other",
    "Ok, now let me check the logs. Then I'll look at the config.": "narration",
    "Let me check the error log": "narration",
    "Let me check the logs. The port is 8080 on the new server.": "other",
    "Let me know when you are free": "other",
    "https://example.com/a/b.html": "other",
    "and/or maybe": "other",
    "Ich werde nun die Logs pr\u00fcfen.": "narration",
    "Die Ursache war ein voller Datentr\u00e4ger.": "signal",
    "Je vais v\u00e9rifier les journaux.": "narration",
    "Elle pr\u00e9f\u00e8re le th\u00e9.": "signal",
    "Voy a revisar los registros.": "narration",
    "Su cumplea\u00f1os es en mayo.": "signal",
    "Fammi controllare i log.": "narration",
    "Abbiamo risolto il problema.": "signal",
    "Vou verificar os registros.": "narration",
    "Ela \u00e9 al\u00e9rgica a nozes.": "signal",
    "Laat me even kijken.": "narration",
    "De storing is opgelost.": "signal",
    "\u8ba9\u6211\u68c0\u67e5\u4e00\u4e0b\u65e5\u5fd7\u3002": "narration",
    "\u4ed6\u559c\u6b22\u732b": "signal",
    "\u4ed6\u6709\u732b": "other",
    "\u307e\u305a\u78ba\u8a8d\u3057\u307e\u3059\u3002": "narration",
    "\u5f7c\u5973\u306e\u8a95\u751f\u65e5\u306f\u4e94\u6708\u3067\u3059": "signal",
}
NARRATION = "Let me check the logs..."


@pytest.mark.parametrize(("text", "reason"), REASONS.items())
def test_the_rules_decide_in_their_order(text: str, reason: str) -> None:
    verdict = judge(text)
    assert (verdict.reason, verdict.score) == (reason, SCORES[reason])
    assert verdict.accepted == (reason in ("other", "fact", "signal"))
    assert judge(text, "strict").accepted == (reason in ("fact", "signal"))
    assert judge(text, "off").accepted


@pytest.mark.parametrize("language", WORDS)
def test_every_word_of_a_language_acts(language: str) -> None:
    words = WORDS[language]
    pairs = [(start, then) for each in words["narration"] for start in each["starts"] for then in each["then"]]
    between = " " if words["spaces"] else ""
    for narration in (*words["alone"], *(f"{start}{between}{then}" for start, then in pairs)):
        assert judge(f"{narration}{between}xyz...").reason == "narration", narration
        assert judge(narration.upper() + "!").reason in ("narration", "short"), narration
        assert not _narrates(f"x{narration}")
    for signal in words["signals"]:
        assert judge(f"qqq {signal.rstrip('*')} qqq qqq").reason == "signal", signal


def test_width_case_and_white_space_make_no_difference() -> None:
    wide = "\uff2c\uff25\uff34 \uff2d\uff25\uff0c".replace("\uff0c", "") + "  check\tthe\u00a0logs\u2026"
    assert judge(wide).reason == "narration"
    assert judge("fixed\n\n\n") == judge("fixed") == Judgement(False, 0.0, "short")
    assert judge("wi\ufb01 fixed") == judge("WIFI   FIXED")


@pytest.mark.parametrize("text", [None, 3, b"bytes"])
def test_what_is_not_text_is_an_error(text: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="must be text"):
        judge(text)
    with pytest.raises(InvalidArgumentError, match="must be one of off, normal, strict"):
        judge("text", "loose")  # type: ignore[arg-type]


@settings(max_examples=some(400))
@given(st.text(max_size=80) | st.text("./\\:a ~1?\u8ba9\u6211", max_size=40), st.sampled_from(LEVELS))
def test_every_text_gets_a_verdict_and_stricter_accepts_less(text: str, level: Any) -> None:
    verdict = judge(text, level)
    assert verdict == judge(text, level)
    assert 0 <= verdict.score <= 1
    assert judge(text, "off").accepted >= judge(text, "normal").accepted >= judge(text, "strict").accepted


@pytest.mark.parametrize("part", [".", "./", "a.", ":1", "let me ", "a/", "\u8ba9", "'", "x'"])
def test_the_work_grows_linearly_with_a_hostile_text(part: str) -> None:
    # Ten times the text that a quadratic rule would take minutes for.
    assert judge(part * (300_000 // len(part)) + "\x00").score in SCORES.values()


pytestmark = pytest.mark.stores("memory")


def test_the_library_judges_nothing_until_a_policy_says_so(memory: Memory) -> None:
    assert memory.execute(GetPolicies()).salience == "off"
    assert memory.remember(NARRATION).content == NARRATION
    memory.set_policies(salience="normal")
    with pytest.raises(RejectedError, match="the text narrates a step of the work") as raised:
        memory.remember("Let me read the file.")
    assert raised.value.verdict == ("salience", "narrates a step of the work and states nothing", ("narration",))
    assert memory.count() == 1


@pytest.mark.promise("policy.refused")
@pytest.mark.parametrize(
    ("text", "why"),
    [(NARRATION, "narration"), ("src/a.py", "path"), ("ok", "short"), ("Ana has a bicycle.", "other")],
)
def test_a_rejection_says_why_in_every_call(text: str, why: str, memory: Memory) -> None:
    memory.remember("The first text.", id="first")
    memory.set_policies(salience="strict")
    before = exported(memory)
    message = {"role": "user", "content": text}
    writes: tuple[Callable[[], object], ...] = (
        lambda: memory.remember(text),
        lambda: memory.record_user_fact(text, user="ana"),
        lambda: memory.update("first", content=text),
        lambda: memory.supersede("first", text),
    )
    for write in writes:
        with pytest.raises(RejectedError) as raised:
            write()
        assert raised.value.verdict.found == (why,)
    with pytest.warns(recollect.RecollectWarning):
        failed = memory.remember_all([text]).failed + memory.add_messages([message], conversation="chat").failed
    assert [each.reason.args[-1] for each in failed] == [why, why]
    assert exported(memory) == before
    assert memory.update("first", importance=0.9).importance == 0.9  # the text, which is short, is not touched


def test_both_policies_apply_and_each_is_set_beside_the_other(memory: Memory) -> None:
    memory.set_policies(redaction="redact", salience="normal")
    assert memory.execute(GetPolicies()) == recollect.Policies(redaction="redact", salience="normal")
    with pytest.raises(RejectedError):
        memory.remember(NARRATION)
    assert memory.remember("the password is hunter2").content == "the password is ***REDACTED***"
    memory.set_policies()
    assert memory.execute(GetPolicies()) == recollect.Policies()


def test_relations_and_what_facets_store_are_not_judged(memory: Memory) -> None:
    memory.set_policies(salience="strict")
    assert memory.relate("Ada", "met", "Bob").kind == "relation"
    for what in set(RESERVED) - {"sdrs"}:
        beside = Memory(memory._executor, memory._branch.reserved(what))
        assert beside.remember("PII", id="PII").content == "PII"


DOCUMENT = f"* Plan\n{NARRATION}\n* ok\nsrc/a.py\n"


def test_a_document_a_value_and_a_definition_are_stored_as_they_are(memory: Memory) -> None:
    """A document must stay whole, a value is bytes, and a definition is short: only the memory's texts are judged."""
    memory.set_policies(salience="strict")
    with pytest.raises(RejectedError):
        memory.remember(NARRATION)  # the policy is in force
    done = memory.outline.ingest_text(DOCUMENT, "org", source="notes.org")
    assert memory.outline.to_text(done.root, "org") == DOCUMENT
    memory.keyed.write("plan", NARRATION.encode())
    assert memory.keyed.read("plan") == NARRATION.encode()
    memory.glossary.memorize("ok", NARRATION, "", "bot", aliases=["src/a.py"])
    assert memory.glossary.list_all("bot")[0]["value"] == NARRATION


def test_what_is_not_judged_is_redacted_all_the_same(memory: Memory) -> None:
    secret, without = "the password is hunter2", "the password is ***REDACTED***"
    memory.set_policies(redaction="redact", salience="strict")
    memory.keyed.write("plan", secret.encode())
    memory.glossary.memorize("login", secret, "", "bot")
    node = memory.outline.ingest_text(f"* {secret}\n", "org", source="notes.org").root
    assert memory.keyed.read("plan") == without.encode()
    assert memory.glossary.list_all("bot")[0]["value"] == without
    assert memory.outline.to_text(node, "org") == f"* {without}\n"


class TestSparseTexts:
    """The salience filter of sdr-memory stands before every text, at each door, if the policy says so."""

    def test_without_a_policy_every_text_is_stored(self, memory: Memory) -> None:
        assert memory.sdr.store(NARRATION) == 1

    @pytest.mark.promise("policy.refused")
    @pytest.mark.parametrize(
        ("text", "why"),
        [(NARRATION, "narration"), ("src/a.py", "path"), ("ok", "short"), ("Ana has a bicycle.", "other")],
    )
    def test_a_text_that_is_not_worth_remembering_is_rejected_as_by_remember(
        self, text: str, why: str, memory: Memory
    ) -> None:
        first = memory.sdr.store("the outage was caused by a full disk")
        memory.set_policies(salience="strict")
        writes: tuple[Callable[[], object], ...] = (
            lambda: memory.sdr.store(text),
            lambda: memory.sdr.store_many([("We decided to use PostgreSQL.", None), (text, None)]),
            lambda: memory.sdr.update(first, text),
            lambda: memory.sdr.restore([{"id": 9, "text": text, "metadata": {}, "created_ts": 1.0, "updated_ts": 1.0}]),
        )
        before = memory.sdr.texts()
        with pytest.raises(RejectedError) as of_remember:
            memory.remember(text)
        for write in writes:
            with pytest.raises(RejectedError) as raised:
                write()
            assert raised.value.args == of_remember.value.args
            assert raised.value.verdict.found == (why,)
        assert memory.sdr.texts() == before
        assert memory.sdr.update(first, metadata={"host": "web1"})  # the text is not touched
        assert memory.sdr.store("We decided to use PostgreSQL.") == 2  # no number was given to what was rejected

    def test_a_store_of_sparse_texts_has_the_policies_of_its_memory(self) -> None:
        with SDRMemory(":memory:") as sdr:
            assert sdr.store(NARRATION) == 1
            sdr.memory.set_policies(salience="normal")
            with pytest.raises(RejectedError, match="narrates"):
                sdr.store(NARRATION)
            assert sdr.store("The disk is full") == 2

    def test_a_scope_and_an_awaited_call_judge_too(self, memory: Memory) -> None:
        memory.set_policies(salience="normal")
        with pytest.raises(RejectedError):
            memory.scoped(user="ana").sdr.store(NARRATION)

        async def store() -> int:
            async with recollect.AsyncMemory(memory) as awaited:
                return await awaited.sdr.store(NARRATION)

        with pytest.raises(RejectedError):
            asyncio.run(store())

    def test_the_tool_of_a_client_says_why_and_stores_nothing(self, memory: Memory) -> None:
        memory.set_policies(salience="normal")
        with in_process(memory, ["sdr"]) as server:
            message = server.refused("store_text", text=NARRATION)
            assert "rejected by the salience policy of this memory: the text narrates" in message
            assert server.ok("store_text", text="The disk is full") == {"id": 1}

    def test_the_command_says_what_changes_the_policy(self, tmp_path: Path) -> None:
        def run(*arguments: str) -> Result:
            return CliRunner().invoke(app, [*arguments, "--db", str(tmp_path / "a.db")])

        assert run("sdr", "store", NARRATION).exit_code == 0
        assert run("policies", "--salience", "normal").exit_code == 0
        rejected = run("sdr", "store", NARRATION)
        assert rejected.exit_code != 0
        assert "recollect policies" in rejected.output
        assert run("policies", "--salience", "off").exit_code == 0
        assert run("sdr", "store", NARRATION).exit_code == 0


@pytest.mark.skipif(DATA is None, reason="RECOLLECT_DATA is not set")
@pytest.mark.parametrize("name", ["locomo", pytest.param("beam", marks=in_full)])  # whose turns are long
def test_evidence_of_the_development_conversations_is_accepted(name: str) -> None:
    from bench.salience import measured

    from recollect.evaluation.datasets import beam, locomo

    assert DATA is not None
    data = beam(Path(DATA, "beam", "100K")) if name == "beam" else locomo(Path(DATA, "locomo", "locomo5-dev.json"))
    found = measured(data, "normal")
    assert found.evidence > 400
    assert found.lost <= 0.02 * found.evidence
    assert measured(data, "strict").lost > found.lost  # the measure is able to find lost evidence
