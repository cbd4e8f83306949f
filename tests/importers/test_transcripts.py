"""Transcripts of coding agents, in the form in which Claude Code and the Codex CLI write them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.errors import ImportFormatError
from recollect.importers import IMPORTERS, import_path
from recollect.importers.base import UnreadFile
from recollect.importers.transcripts import MOST_OF_RESULT
from recollect.records.record import Record

SESSION = "0b5c1d3e-1111-4222-8333-444455556666"
THREAD = "019a2d7a-41c4-78b1-b7cc-a45d62a89cd5"
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


class Transcript:
    """A transcript that is being written."""

    def __init__(self, *lines: dict[str, Any]) -> None:
        self.lines = list(lines)

    def write(self, path: Path, end: str = "") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines) + end)
        return path


class Claude(Transcript):
    """One of Claude Code."""

    def __init__(self) -> None:
        super().__init__(
            {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION},
            {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        )

    def add(self, kind: str, uuid: str, parent: str | None, content: Any = None, **more: Any) -> Claude:
        message = {} if content is None else {"message": {"role": kind, "content": content, **more.pop("message", {})}}
        about = {"cwd": "/home/ana/app", "sessionId": SESSION, "version": "2.1.202", "gitBranch": "main"}
        self.lines.append(
            {
                "parentUuid": parent,
                "isSidechain": False,
                **about,
                "type": kind,
                **message,
                "uuid": uuid,
                "timestamp": f"2026-11-01T10:{len(self.lines):02}:00.000Z",
                **more,
            }
        )
        return self

    def answer(self, uuid: str, parent: str, own: str, *blocks: dict[str, Any]) -> Claude:
        return self.add("assistant", uuid, parent, list(blocks), message={"id": own, "model": "claude-x"})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def result(call: str, content: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call, "content": content}]


def session() -> Claude:
    """A session in which two tools run at once, which is rewound once, and compacted."""
    out = Claude()
    out.add("user", "u0", None, "<local-command-caveat>Caveat</local-command-caveat>", isMeta=True)
    out.add("user", "u1", "u0", f"Fix the login test. The key is {KEY}.", origin={"kind": "human"})
    out.add("attachment", "x1", "u1", attachment={"type": "todo"})
    out.answer("a1", "x1", "msg_1", {"type": "thinking", "thinking": "a secret thought", "signature": "s"})
    out.answer("a2", "a1", "msg_1", text("I will look at the test."))
    out.answer("a3", "a2", "msg_1", {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "tea " * 1250}})
    out.answer("a4", "a3", "msg_1", {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "pytest"}})
    out.add("user", "r1", "a3", result("t1", "def test_login(): " + "x" * 9000), toolUseResult={"file": "y" * 9000})
    out.add("user", "r2", "a4", result("t2", [text("1 failed")]))
    out.answer("a5", "r2", "msg_2", text("The clock is not frozen: I freeze it."))
    out.add("system", "s1", "a5", subtype="stop_hook_summary")
    reminder = "<system-reminder>be brief</system-reminder>"
    out.add("user", "u2", "s1", [text(reminder), text("We decided to use freezegun everywhere.")])
    out.answer("a6", "u2", "msg_3", text("Noted."))
    out.add("user", "u3", "s1", "We decided to use time-machine everywhere.")
    out.answer("a7", "u3", "msg_4", text("Noted: time-machine."))
    out.add("system", "c1", None, subtype="compact_boundary", logicalParentUuid="a7")
    out.add("user", "c2", "c1", "This session is being continued from a previous conversation.", isCompactSummary=True)
    out.add("user", "n1", "c2", "<task-notification>done</task-notification>", origin={"kind": "task-notification"})
    out.add("user", "u4", "n1", "Ship it on Friday.")
    out.add("user", "side", None, "Explore the repository", isSidechain=True, agentId="x")
    out.lines.append({"type": "ai-title", "aiTitle": "Fix the login test", "sessionId": SESSION})
    return out


class Codex(Transcript):
    """One of the Codex CLI."""

    def add(self, payload: dict[str, Any], kind: str = "response_item") -> Codex:
        time = f"2026-11-02T11:{len(self.lines):02}:00.000Z"
        self.lines.append({"timestamp": time, "type": kind, "payload": payload})
        return self

    def says(self, role: str, content: str) -> Codex:
        kind = "output_text" if role == "assistant" else "input_text"
        return self.add({"type": "message", "role": role, "content": [{"type": kind, "text": content}]})


def thread() -> Codex:
    """A session in which a tool runs, and one turn is rolled back."""
    out = Codex()
    about = {"id": THREAD, "cwd": "/home/ana/app", "cli_version": "0.124.0", "git": {"branch": "main"}}
    out.add(about, "session_meta")
    out.says("developer", "<permissions instructions>").says("user", "<environment_context>x</environment_context>")
    out.says("user", "Which port does the API use?")
    out.add({"type": "user_message", "message": "Which port does the API use?"}, "event_msg")
    out.add({"type": "reasoning", "summary": [], "encrypted_content": "zzz"})
    out.says("assistant", "I look at the environment.")
    out.add({"type": "function_call", "name": "shell", "arguments": '{"command": ["env"]}', "call_id": "c1"})
    out.add({"type": "function_call_output", "call_id": "c1", "output": f"PORT=8443 API_KEY={KEY}"})
    out.says("assistant", "The API uses port 8443.").says("user", "Change it to 9000.").says("assistant", "Done.")
    out.add({"type": "thread_rolled_back", "num_turns": 1}, "event_msg")
    out.says("user", "Keep 8443, and document it.")
    out.add({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "c2"})
    out.add({"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"})
    return out.says("assistant", "Documented.")


@pytest.fixture
def memory() -> Iterator[recollect.Memory]:
    with recollect.open(":memory:") as memory:
        yield memory


def turns(memory: recollect.Memory, *, other: bool = False) -> list[Record]:
    """The turns of the branch that goes on, or of the others, in their order."""
    found = memory.find("tag=other-branch" if other else "not tag=other-branch", order="position", limit=100)
    return list(found)


def said(memory: recollect.Memory, *, other: bool = False) -> list[tuple[str | None, str]]:
    return [(turn.role, str(turn.content).split("\n")[0][:40]) for turn in turns(memory, other=other)]


def test_a_session_of_claude_code_becomes_a_conversation(memory: recollect.Memory, tmp_path: Path) -> None:
    path = session().write(tmp_path / f"{SESSION}.jsonl", end='{"type": "user", "par')
    report = import_path(memory, IMPORTERS["claude-code"], path)
    assert not report.damaged
    assert said(memory) == [
        ("user", "Fix the login test. The key is ***REDACT"),
        ("assistant", "I will look at the test."),
        ("assistant", f'[calls Read {{"path": "{"tea " * 5}'[:40]),
        ("assistant", '[calls Bash {"command": "pytest"}]'),
        ("tool", "def test_login(): xxxxxxxxxxxxxxxxxxxxxx"),
        ("tool", "1 failed"),
        ("assistant", "The clock is not frozen: I freeze it."),
        ("user", "We decided to use time-machine everywhere"[:40]),
        ("assistant", "Noted: time-machine."),
        ("user", "Ship it on Friday."),
    ]
    assert said(memory, other=True) == [("user", "We decided to use freezegun everywhere."), ("assistant", "Noted.")]
    assert {turn.conversation for turn in turns(memory)} == {SESSION}
    assert [turn.position for turn in turns(memory)] == list(range(10))
    assert all(turn.time is not None and turn.time.day == 1 for turn in turns(memory))
    first = turns(memory)[0]
    assert first.id == "u1"
    assert first.metadata["conversation"] == {
        "program": "claude-code",
        "title": "Fix the login test",
        "cwd": "/home/ana/app",
        "gitBranch": "main",
        "version": "2.1.202",
    }
    omitted = report.left_out
    assert omitted["secrets, which are hidden"] == 1
    assert omitted["texts of the program itself"] == 3
    assert omitted["turns of subagents"] == 1


def test_nothing_secret_nor_the_most_of_a_result_is_stored(memory: recollect.Memory, tmp_path: Path) -> None:
    import_path(memory, IMPORTERS["claude-code"], session().write(tmp_path / "a.jsonl"))
    import_path(memory, IMPORTERS["codex"], thread().write(tmp_path / "b.jsonl"))
    stored = json.dumps([record.to_json() for record in memory.find(limit=100)])
    assert KEY not in stored
    assert "a secret thought" not in stored
    assert "yyyy" not in stored
    (long,) = [turn for turn in turns(memory) if "characters" in turn.metadata]
    assert long.metadata["characters"] == 9018
    assert len(str(long.content)) < MOST_OF_RESULT + 100
    assert "tea " * 250 in stored
    assert "tea " * 260 not in stored


def test_a_damaged_line_leaves_the_turns_before_it_on_the_branch(memory: recollect.Memory, tmp_path: Path) -> None:
    path = session().write(tmp_path / "a.jsonl")
    lines = path.read_text().splitlines()
    broken = next(at for at, line in enumerate(lines) if '"uuid": "a5"' in line)
    path.write_text("\n".join([*lines[:broken], lines[broken][:50], *lines[broken + 1 :]]) + "\n")
    report = import_path(memory, IMPORTERS["claude-code"], path)
    assert [each.place for each in report.damaged] == [f"line {broken + 1}"]
    assert said(memory)[0] == ("user", "Fix the login test. The key is ***REDACT")
    assert len(said(memory)) == 9


def test_a_secret_in_a_title_is_hidden_and_half_an_emoji_replaced(memory: recollect.Memory, tmp_path: Path) -> None:
    whole = session()
    whole.lines.append({"type": "custom-title", "customTitle": f"Rotate {KEY}", "sessionId": SESSION})
    whole.add("user", "u5", "u4", "half of it: \ud83d")
    import_path(memory, IMPORTERS["claude-code"], whole.write(tmp_path / "a.jsonl"))
    assert turns(memory)[0].metadata["conversation"]["title"] == "Rotate ***REDACTED***"
    assert said(memory)[-1] == ("user", "half of it: \ufffd")


def test_only_what_the_program_wrote_is_left_out_of_a_message(memory: recollect.Memory, tmp_path: Path) -> None:
    reminder = "<system-reminder>be brief</system-reminder>"
    whole = session()
    parts = [text("[Request interrupted by user]"), text("<command-name>/clear</command-name>"), text("Use UTC.")]
    whole.add("user", "u5", "u4", parts)
    whole.answer("a8", "u5", "msg_5", text(f"A reminder looks like {reminder} there."))
    whole.answer("a9", "a8", "msg_6", {"type": "tool_use", "id": "t9", "name": "Read", "input": {}})
    whole.add("user", "r9", "a9", result("t9", [text(f"the file\n{reminder}")]))
    whole.add("user", "u6", "r9", "[Request interrupted by user for tool use]")
    report = import_path(memory, IMPORTERS["claude-code"], whole.write(tmp_path / "a.jsonl"))
    assert [str(turn.content) for turn in turns(memory)[-4:]] == [
        "Use UTC.",
        f"A reminder looks like {reminder} there.",
        "[calls Read]",
        "the file",
    ]
    assert report.left_out["texts of the program itself"] == 4


def test_what_the_user_wrote_in_another_form_than_a_message_is_a_turn(memory: recollect.Memory, tmp_path: Path) -> None:
    """Forms that real transcripts of Claude Code 2.1 have."""
    whole = Claude()
    command = "<command-message>show</command-message>\n<command-name>/show</command-name>\n"
    whole.add("user", "u1", None, f"{command}<command-args>the port, please</command-args>", origin={"kind": "human"})
    whole.add("user", "u2", "u1", f"{command}<command-args></command-args>")
    queued = {
        "type": "queued_command",
        "prompt": "Also the host.",
        "commandMode": "prompt",
        "origin": {"kind": "human"},
    }
    done = {"type": "queued_command", "prompt": "<task-notification>", "commandMode": "task-notification"}
    for uuid, before, attachment in (("q1", "u2", queued), ("q2", "q1", done)):
        whole.add("attachment", uuid, before, attachment=attachment)
    selected = "<ide_selection>The user selected the lines 7 to 7 from a.py</ide_selection>"
    whole.add("user", "u3", "q2", [{"type": "text", "text": selected}, {"type": "text", "text": "Rename this."}])
    whole.add("user", "u4", "u3", '<teammate-message teammate_id="b">done</teammate-message>')
    whole.add("user", "u5", "u4", 'Another Claude session sent a message:\n<agent-message from="b">')
    report = import_path(memory, IMPORTERS["claude-code"], whole.write(tmp_path / "a.jsonl"))
    assert [turn.content for turn in turns(memory)] == ["/show the port, please", "Also the host.", "Rename this."]
    assert report.left_out == {"texts of the program itself": 3}


def test_words_that_look_like_those_of_the_program_stay_in_what_the_user_said(
    memory: recollect.Memory, tmp_path: Path
) -> None:
    said = [
        "Why does the parser drop `<command-name>/show</command-name>` lines? Fix it.",
        "Log <command-args>foo</command-args>, and never log passwords.",
    ]
    whole = Claude().add("user", "u1", None, said[0]).add("user", "u2", "u1", said[1])
    whole.lines.append({"type": "summary", "summary": "Ports", "leafUuid": ["u1"]})
    whole.lines.append({"type": "summary", "summary": "Others", "leafUuid": "elsewhere"})
    import_path(memory, IMPORTERS["claude-code"], whole.write(tmp_path / "a.jsonl"))
    assert [turn.content for turn in turns(memory)] == said
    assert turns(memory)[0].metadata["conversation"]["title"] == "Ports"


def test_an_attachment_between_the_results_of_two_tools_makes_no_other_branch(
    memory: recollect.Memory, tmp_path: Path
) -> None:
    whole = session()
    at = next(number for number, line in enumerate(whole.lines) if line.get("uuid") == "r1") + 1
    attached = {
        **whole.lines[at - 1],
        "uuid": "x9",
        "parentUuid": "r1",
        "type": "attachment",
        "attachment": {"type": "todo"},
    }
    del attached["message"]
    whole.lines.insert(at, attached)
    import_path(memory, IMPORTERS["claude-code"], whole.write(tmp_path / "a.jsonl"))
    with recollect.open(":memory:") as other:
        import_path(other, IMPORTERS["claude-code"], session().write(tmp_path / "b.jsonl"))
        assert said(memory) == said(other)


def test_the_summary_of_another_session_is_no_title(memory: recollect.Memory, tmp_path: Path) -> None:
    whole = Claude().add("user", "u1", None, "Which port?")
    path = tmp_path / "a.jsonl"
    for leaf, title in (("elsewhere", None), ("u1", "Ports")):
        whole.lines.append({"type": "summary", "summary": "Ports", "leafUuid": leaf})
        import_path(memory, IMPORTERS["claude-code"], whole.write(path))
        assert turns(memory)[0].metadata["conversation"].get("title") == title


def test_the_result_of_a_tool_keeps_its_indentation(memory: recollect.Memory, tmp_path: Path) -> None:
    whole = Claude().add("user", "u1", None, "Read it.").add("user", "r1", "u1", result("t1", "    7->def f():"))
    import_path(memory, IMPORTERS["claude-code"], whole.write(tmp_path / "a.jsonl"))
    assert turns(memory)[1].content == "    7->def f():"


def test_a_secret_among_the_words_of_a_command_is_hidden(memory: recollect.Memory, tmp_path: Path) -> None:
    whole = session()
    command = ["deploy", "--token", "tok60secretvalue1234567890abcdef"]
    whole.answer("a8", "u4", "msg_5", {"type": "tool_use", "id": "t9", "name": "Run", "input": {"argv": command}})
    import_path(memory, IMPORTERS["claude-code"], whole.write(tmp_path / "a.jsonl"))
    stored = json.dumps([record.to_json() for record in memory.find(limit=100)])
    assert "tok60secret" not in stored
    assert "deploy" in stored, "control"


def test_a_secret_that_is_cut_is_hidden(memory: recollect.Memory, tmp_path: Path) -> None:
    whole = session()
    secret = " postgresql://ana:verylongsecretpassword12345@db/x"
    for number, size in enumerate((MOST_OF_RESULT - 40, 960, 460)):
        call = {
            "type": "tool_use",
            "id": f"c{number}",
            "name": "Bash",
            "input": {"command": "x " * (size // 2) + secret},
        }
        whole.answer(f"b{number}", "u4", f"msg_b{number}", call)
        whole.add("user", f"q{number}", f"b{number}", result(f"c{number}", "x " * (size // 2) + secret))
    import_path(memory, IMPORTERS["claude-code"], whole.write(tmp_path / "a.jsonl"))
    stored = json.dumps([record.to_json() for record in memory.find(limit=100)])
    assert "verylong" not in stored
    assert "postgresql://ana" in stored, "control"


def test_reminders_that_do_not_end_cost_no_more_than_their_length(memory: recollect.Memory, tmp_path: Path) -> None:
    whole = session().add("user", "u5", "u4", "<system-reminder>" * 30_000)
    import_path(memory, IMPORTERS["claude-code"], whole.write(tmp_path / "a.jsonl"))
    assert memory.count() > 10


def test_a_fork_has_only_its_own_turns_and_leaves_those_of_the_other_session(
    memory: recollect.Memory, tmp_path: Path
) -> None:
    first = session()
    import_path(memory, IMPORTERS["claude-code"], first.write(tmp_path / "a.jsonl"))
    fork = session()
    for line in fork.lines:
        line |= {"sessionId": "fork", "forkedFrom": {"sessionId": SESSION, "messageUuid": line.get("uuid")}}
    fork.add("user", "f1", "u4", "And now for something else.", sessionId="fork")
    for _ in range(2):
        report = import_path(memory, IMPORTERS["claude-code"], fork.write(tmp_path / "b.jsonl"))
    assert (report.created, report.moved) == (0, 0)
    assert len(memory.find(f"conversation={SESSION}", limit=50)) == 10
    assert [turn.content for turn in memory.find("conversation=fork")] == ["And now for something else."]


RESUMED = "5e1f0000-0000-4000-8000-00000000000f"


def resumed() -> Claude:
    """A session that went on in another file: a copy of the lines of the first one, and one more."""
    out = session()
    for line in out.lines:
        line["sessionId"] = RESUMED
    return out.add("user", "z1", "u4", "And the tests?", sessionId=RESUMED)


@pytest.mark.parametrize("together", [False, True])
def test_a_session_that_was_resumed_in_another_file_leaves_the_turns_of_the_first(
    memory: recollect.Memory, tmp_path: Path, together: bool
) -> None:
    """The name of the first file comes after that of the second, so that the order of names is not that of time."""
    first = session().write(tmp_path / "b.jsonl")
    if not together:
        import_path(memory, IMPORTERS["claude-code"], first)
    second = resumed().write(tmp_path / "a.jsonl")
    for _ in range(2):
        report = import_path(memory, IMPORTERS["claude-code"], tmp_path if together else second)
    assert (report.created, report.moved, report.differing) == (0, 0, 0)
    assert len(memory.find(f"conversation={SESSION}", limit=50)) == 10
    (own,) = memory.find(f"conversation={RESUMED}")
    assert own.content == "And the tests?"
    assert own.metadata["conversation"]["program"] == "claude-code", "what the file says of the session"


@pytest.mark.parametrize(("made", "name"), [(session, "claude-code"), (thread, "codex")])
def test_turns_that_were_imported_without_a_user_become_those_of_the_first_user(
    made: Any, name: str, memory: recollect.Memory, tmp_path: Path
) -> None:
    path = made().write(tmp_path / "a.jsonl")
    before = import_path(memory, IMPORTERS[name], path).created
    report = import_path(memory, IMPORTERS[name], path, defaults={"user": "ana"})
    assert (report.created, report.renumbered, report.updated) == (0, 0, before)
    assert len(memory.find("user=ana", limit=100)) == memory.count() == before
    assert import_path(memory, IMPORTERS[name], path, defaults={"user": "ana"}).updated == 0
    other = memory.namespace("other")
    import_path(other, IMPORTERS[name], path)
    first = turns(other)[0]
    other.update(first.id, content="Something else.")
    report = import_path(other, IMPORTERS[name], path, defaults={"user": "ana"})
    assert (report.created, report.updated) == (1, before - 1), "what differs is not given away"
    assert import_path(memory, IMPORTERS[name], path, defaults={"user": "bob"}).created == before, "control"
    assert len(memory.find("user=ana", limit=100)) == before


def test_a_title_that_is_written_later_is_stored(memory: recollect.Memory, tmp_path: Path) -> None:
    whole = session()
    whole.lines = [line for line in whole.lines if line["type"] not in ("summary", "ai-title", "custom-title")]
    path = whole.write(tmp_path / "a.jsonl")
    import_path(memory, IMPORTERS["claude-code"], path)
    first = turns(memory)[0]
    memory.update(first.id, metadata={**first.metadata, "own": 1})
    whole.lines.append({"type": "ai-title", "aiTitle": "The port of the API", "sessionId": SESSION})
    whole.write(path)
    report = import_path(memory, IMPORTERS["claude-code"], path)
    assert (report.created, report.updated, report.moved, report.differing) == (0, 1, 0, 0)
    metadata = turns(memory)[0].metadata
    assert metadata["conversation"]["title"] == "The port of the API"
    assert metadata["own"] == 1
    assert import_path(memory, IMPORTERS["claude-code"], path).updated == 0


FORK = "0199b1c2-0000-7000-8000-0000000000ff"


def codex_fork(*own: str, kept: int | None = None) -> Codex:
    """A session that was forked: its own line, a copy of those of `thread` with new times, and what was said then."""
    fork = Codex().add({"id": FORK, "cwd": "/home/ana/app", "forked_from_id": THREAD}, "session_meta")
    for line in thread().lines[:kept]:
        fork.add(line["payload"], line["type"])
        fork.lines[-1]["timestamp"] = f"2026-11-02T12:00:00.{len(fork.lines):03}Z"  # all of the copy at once
    for text in own:
        fork.says("user", text)
    return fork


@pytest.mark.parametrize(
    ("original", "kept"),
    [
        (f"sessions/2026/11/02/rollout-2026-11-02T11-00-00-{THREAD}.jsonl", None),
        (f"archived_sessions/rollout-2026-11-02T11-00-00-{THREAD}.jsonl", None),
        (f"sessions/2026/11/02/rollout-2026-11-02T11-00-00-{THREAD}.jsonl", 11),  # before the last message of the user
    ],
)
def test_a_forked_session_of_codex_has_only_its_own_turns(
    original: str, kept: int | None, memory: recollect.Memory, tmp_path: Path
) -> None:
    for name in ("sessions/2026/11/03", "archived_sessions", "sessions/2026/11/02"):
        (tmp_path / name).mkdir(parents=True)
    thread().write(tmp_path / original)
    fork = codex_fork("Which port", "is it now?", kept=kept)
    path = fork.write(tmp_path / "sessions/2026/11/03" / f"rollout-2026-11-03T09-00-00-{FORK}.jsonl")
    for _ in range(2):
        report = import_path(memory, IMPORTERS["codex"], path)
    assert [turn.content for turn in turns(memory)] == ["Which port", "is it now?"]
    assert report.left_out["turns of the session that was forked"] == (11 if kept is None else 6)
    import_path(memory, IMPORTERS["codex"], tmp_path)
    assert len(memory.find(f"conversation={FORK}")) == 2
    assert len(memory.find(f"conversation={THREAD}", limit=50)) == 9


def test_what_the_user_repeats_in_a_fork_is_no_copy(memory: recollect.Memory, tmp_path: Path) -> None:
    """The other session goes on with the same words after the fork."""
    other = thread().says("user", "Go on.").says("assistant", "I go on.")
    other.write(tmp_path / f"sessions/rollout-{THREAD}.jsonl")
    path = codex_fork("Go on.").write(tmp_path / f"sessions/rollout-{FORK}.jsonl")
    import_path(memory, IMPORTERS["codex"], path)
    (own,) = turns(memory)
    assert (own.content, own.position) == ("Go on.", 9), "after the nine turns of the copy"


@pytest.mark.parametrize("forked", [FORK, "*", "../etc", 7, None])
def test_a_fork_of_itself_or_of_nothing_is_imported_as_it_is(
    memory: recollect.Memory, tmp_path: Path, forked: Any
) -> None:
    fork = codex_fork("Which port?")
    fork.lines[0]["payload"]["forked_from_id"] = forked
    import_path(memory, IMPORTERS["codex"], fork.write(tmp_path / f"rollout-{FORK}.jsonl"))
    assert memory.count() == 12


def test_a_fork_whose_other_session_is_gone_or_differs_is_imported_as_it_is(
    memory: recollect.Memory, tmp_path: Path
) -> None:
    (tmp_path / "sessions").mkdir()
    path = codex_fork("Which port?").write(tmp_path / f"sessions/rollout-{FORK}.jsonl")
    other = Codex().add({"id": THREAD}, "session_meta").says("user", "Something else.")
    (tmp_path / "elsewhere").mkdir()
    thread().write(tmp_path / "elsewhere/a.jsonl")
    (tmp_path / f"sessions/a-{THREAD}.jsonl").symlink_to(tmp_path / "elsewhere/a.jsonl")
    other.write(tmp_path / f"sessions/rollout-{THREAD}.jsonl")
    report = import_path(memory, IMPORTERS["codex"], path)
    assert memory.count() == 12
    assert "turns of the session that was forked" not in report.left_out


def test_the_id_of_a_forked_session_is_no_pattern_for_files(memory: recollect.Memory, tmp_path: Path) -> None:
    thread().write(tmp_path / f"rollout-{THREAD}.jsonl")
    fork = codex_fork("Which port?")
    fork.lines[0]["payload"]["forked_from_id"] = "*" + THREAD[1:]
    import_path(memory, IMPORTERS["codex"], fork.write(tmp_path / "rollout-b.jsonl"))
    assert memory.count() == 12


def test_a_session_of_a_subagent_of_codex_is_counted(memory: recollect.Memory, tmp_path: Path) -> None:
    whole = thread()
    whole.lines[0]["payload"]["source"] = {"subagent": {"thread_spawn": {}}}
    report = import_path(memory, IMPORTERS["codex"], whole.write(tmp_path / "a.jsonl"))
    assert memory.count() == 0
    assert report.left_out["turns of subagents"] > 5


def test_a_session_of_codex_becomes_a_conversation(memory: recollect.Memory, tmp_path: Path) -> None:
    import_path(memory, IMPORTERS["codex"], thread().write(tmp_path / "rollout.jsonl"))
    assert said(memory) == [
        ("user", "Which port does the API use?"),
        ("assistant", "I look at the environment."),
        ("assistant", '[calls shell {"command": ["env"]}]'),
        ("tool", "PORT=8443 API_KEY=***REDACTED***"),
        ("assistant", "The API uses port 8443."),
        ("user", "Keep 8443, and document it."),
        ("assistant", "[calls apply_patch *** Begin Patch]"),
        ("tool", "ok"),
        ("assistant", "Documented."),
    ]
    assert said(memory, other=True) == [("user", "Change it to 9000."), ("assistant", "Done.")]
    assert {turn.conversation for turn in turns(memory)} == {THREAD}
    assert turns(memory)[0].metadata["conversation"]["gitBranch"] == "main"
    assert all(turn.time is not None and turn.time.day == 2 for turn in turns(memory))


def test_what_codex_and_an_editor_put_before_a_request_is_left_out(memory: recollect.Memory, tmp_path: Path) -> None:
    whole = Codex().add({"id": THREAD, "cwd": "/home/ana/app"}, "session_meta")
    texts = (
        "# AGENTS.md instructions for /home/ana/app\n\n<INSTRUCTIONS>rules</INSTRUCTIONS>",
        "<environment_context>\n  <cwd>/home/ana/app</cwd>\n</environment_context>",
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nWhich port?\n",
    )
    parts = [{"type": "input_text", "text": text} for text in texts]
    whole.add({"type": "message", "role": "user", "content": parts})
    whole.says("user", "# Context from my IDE setup:\n\n## Open tabs:\n- a.py")
    whole.says("user", "<recommended_plugins>x</recommended_plugins>")
    whole.add({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"})
    output = json.dumps({"output": "DB_PASSWORD=abc123\nPORT=8443\n", "metadata": {"exit_code": 0}})
    whole.add({"type": "function_call_output", "call_id": "c1", "output": output})
    report = import_path(memory, IMPORTERS["codex"], whole.write(tmp_path / "a.jsonl"))
    texts_of = [turn.content for turn in turns(memory)]
    assert texts_of == ["Which port?", "[calls shell]", "DB_PASSWORD=***REDACTED***\nPORT=8443\n"]
    assert report.left_out["texts of the program itself"] == 2


def test_a_review_by_a_guardian_is_no_session_of_the_user(memory: recollect.Memory, tmp_path: Path) -> None:
    whole = thread()
    whole.lines[0]["payload"]["thread_source"] = "guardian_review"
    import_path(memory, IMPORTERS["codex"], whole.write(tmp_path / "a.jsonl"))
    assert memory.count() == 0


def test_an_older_file_of_codex_has_its_items_in_its_lines(memory: recollect.Memory, tmp_path: Path) -> None:
    context = "<environment_context>\n  <cwd>/home/ana/app</cwd>\n</environment_context>"
    lines = [
        {"id": THREAD, "timestamp": "2025-06-01T10:00:00Z", "instructions": None, "git": {"branch": "main"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": context}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Which port?"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Port 8443."}]},
    ]
    path = tmp_path / "rollout.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    import_path(memory, IMPORTERS["codex"], path)
    assert said(memory) == [("user", "Which port?"), ("assistant", "Port 8443.")]
    first, second = turns(memory)
    assert first.metadata["conversation"] == {"program": "codex", "gitBranch": "main", "cwd": "/home/ana/app"}
    assert first.source == second.source == "/home/ana/app"
    assert str(first.time).startswith("2025-06-01 10:00")


@pytest.mark.parametrize(("made", "name"), [(session, "claude-code"), (thread, "codex")])
def test_a_session_that_goes_on_adds_only_what_is_new(
    made: Any, name: str, memory: recollect.Memory, tmp_path: Path
) -> None:
    whole = made()
    for size in range(4, len(whole.lines) + 1):
        part = made()
        part.lines = part.lines[:size]
        try:
            report = import_path(memory, IMPORTERS[name], part.write(tmp_path / "a.jsonl"))
        except ImportFormatError:
            continue
        assert not report.damaged
    with recollect.open(":memory:") as other:
        import_path(other, IMPORTERS[name], whole.write(tmp_path / "a.jsonl"))
        assert said(memory) == said(other)
        assert said(memory, other=True) == said(other, other=True)
        assert memory.count() == other.count()
    again = import_path(memory, IMPORTERS[name], whole.write(tmp_path / "a.jsonl"))
    assert (again.created, again.updated) == (0, 0)


def test_the_folder_of_all_projects_is_read_and_what_is_no_session_is_named(
    memory: recollect.Memory, tmp_path: Path
) -> None:
    session().write(tmp_path / "-home-ana-app" / f"{SESSION}.jsonl")
    thread().write(tmp_path / "-home-ana-app" / "codex.jsonl")
    (tmp_path / "-home-ana-app" / "broken.jsonl").write_bytes(b"\xff\xfe")
    report = import_path(memory, IMPORTERS["claude-code"], tmp_path)
    assert memory.count() == 12
    assert [each.file for each in report.damaged] == ["-home-ana-app/broken.jsonl"]
    found = list(IMPORTERS["claude-code"].read(tmp_path, UTC))
    assert [each.file for each in found if isinstance(each, UnreadFile)] == ["-home-ana-app/codex.jsonl"]


@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.parametrize("content", ["", "no JSON", "[]", '{"type": "user"}', '{"role": "user", "content": "x"}'])
def test_a_file_of_another_form_is_refused(name: str, content: str, memory: recollect.Memory, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(content + "\n")
    for source in (path, tmp_path):
        with pytest.raises(ImportFormatError, match="no transcript of"):
            import_path(memory, IMPORTERS[name], source)
    assert memory.count() == 0


def test_damaged_lines_are_named_and_the_others_read(memory: recollect.Memory, tmp_path: Path) -> None:
    whole = session()
    path = whole.write(tmp_path / "a.jsonl")
    lines = path.read_text().splitlines()
    strange = {"type": "user", "uuid": "odd", "parentUuid": "u1", "sessionId": SESSION, "message": {"role": 5}}
    lines[5:5] = ["{broken", "7", json.dumps(strange), json.dumps({**strange, "uuid": 7, "message": 7})]
    path.write_text("\n".join(lines) + "\n")
    report = import_path(memory, IMPORTERS["claude-code"], path)
    assert {each.place for each in report.damaged} >= {"line 6", "line 7"}
    assert ("user", "Ship it on Friday.") in said(memory)
