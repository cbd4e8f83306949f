"""Hooks of coding agents: what is written into their files, and what a session begins and ends with."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.importers.test_transcripts import Claude, Transcript, session, thread

import recollect
from recollect.cli.app import app
from recollect.cli.hook_files import CLIENTS, HookFile
from recollect.errors import InvalidArgumentError

FOLDER = "/home/ana/app"
OTHERS = {"model": "opus", "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "echo hi"}]}]}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "RECOLLECT_DB", "RECOLLECT_USER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(home: Path, content: str) -> Path:
    """Write the settings of Claude Code, and return their path."""
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(content.encode())
    return path


def run(*arguments: str, event: Any = None, code: int = 0) -> Result:
    given = None if event is None else event if isinstance(event, str) else json.dumps(event)
    done = CliRunner().invoke(app, ["hooks", *arguments], input=given)
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize(
    ("client", "file", "events"),
    [
        ("claude-code", ".claude/settings.json", ["SessionStart", "SessionEnd"]),
        ("codex", ".codex/hooks.json", ["SessionStart", "Stop"]),
    ],
)
def test_hooks_are_added_once_beside_those_of_others_and_removed(
    client: str, file: str, events: list[str], home: Path
) -> None:
    path = home / file
    path.parent.mkdir()
    path.write_text(json.dumps(OTHERS))
    assert "recollect hooks run" in run("install", client, "--dry-run").output
    assert json.loads(path.read_text()) == OTHERS
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    run("install", client, "--db", "a.db", "--user", "ana")
    once = path.read_text()
    hooks = json.loads(once)["hooks"]
    assert list(hooks) == events
    assert hooks["SessionStart"][0] == OTHERS["hooks"]["SessionStart"][0]  # type: ignore[index]
    words = shlex.split(hooks[events[1]][0]["hooks"][0]["command"])
    assert words == [
        *(sys.executable, "-P", "-m", "recollect", "hooks", "run", client),
        *("--db", str(home / "a.db"), "--user", "ana"),
    ]
    assert json.loads((path.parent / f"{path.name}.before-recollect").read_text()) == OTHERS
    assert "nothing to change" in run("install", client, "--db", "a.db", "--user", "ana").output
    assert path.read_text() == once
    run("remove", client)
    assert json.loads(path.read_text()) == OTHERS


def test_a_project_has_a_file_of_its_own(home: Path) -> None:
    run("install", "claude-code", "--project")
    assert (home / ".claude" / "settings.json").exists()
    run("install", "codex", "--project")
    assert (home / ".codex" / "hooks.json").exists()


OTHER_FORMS = [
    "{broken",
    "[]",
    '{"hooks": []}',
    '{"hooks": {"Stop": [{"command": "x"}]}}',
    '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"a": 1e999}',  # Python would write Infinity, which is no JSON
    '{"a": "\\ud800"}',
]


@pytest.mark.parametrize("content", OTHER_FORMS, ids=lambda content: content[:20])
def test_a_file_in_another_form_is_an_error_and_stays(content: str, home: Path) -> None:
    path = settings(home, content)
    assert "nothing was changed" in run("install", "claude-code", code=1).output
    assert path.read_text() == content
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_others_who_have_hooks_of_a_similar_name_keep_them(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    commands = ["npx git hooks run post-checkout", "/opt/guard hooks run guard", "echo recollect hooks"]
    others = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": each}]} for each in commands]}}
    path.write_text(json.dumps(others))
    run("install", "claude-code")
    run("remove", "claude-code")
    assert json.loads(path.read_text()) == others


def test_copies_are_as_private_as_the_file_and_the_first_one_stays(home: Path) -> None:
    path = settings(home, json.dumps(OTHERS))
    path.chmod(0o600)
    run("install", "claude-code")
    run("install", "claude-code", "--db", "other.db")
    kept = path.with_name("settings.json.before-recollect")
    assert (path.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o600, 0o600)
    assert json.loads(kept.read_text()) == OTHERS
    assert len(list(path.parent.iterdir())) == 2


def test_the_copy_is_the_file_to_the_byte_and_open_permissions_stay(home: Path) -> None:
    path = settings(home, json.dumps(OTHERS, indent=1).replace("\n", "\r\n"))
    before = path.read_bytes()
    path.chmod(0o666)
    run("install", "claude-code")
    assert path.with_name("settings.json.before-recollect").read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o666


def test_a_file_that_another_program_changes_meanwhile_is_left_as_it_is(home: Path) -> None:
    path = settings(home, '{"model": "a"}')
    changed = HookFile(CLIENTS["claude-code"], path)
    assert changed.change(lambda hooks: {**hooks, "Stop": []})
    path.write_text('{"model": "b"}')
    with pytest.raises(InvalidArgumentError, match="changed by another program"):
        changed.write()
    assert path.read_text() == '{"model": "b"}'
    assert list(path.parent.iterdir()) == [path]


def test_the_path_of_a_store_does_not_depend_on_the_folder_of_a_session(home: Path) -> None:
    for stated in ("a.db", "./a.db", "sqlite:///a.db"):
        run("install", "codex", "--db", stated)
        (entry,) = json.loads((home / ".codex" / "hooks.json").read_text())["hooks"]["Stop"]
        assert shlex.split(entry["hooks"][0]["command"])[-1] == str(home / "a.db")


def test_a_link_is_followed_and_what_cannot_be_written_leaves_nothing(home: Path) -> None:
    real = home / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text(json.dumps(OTHERS))
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.symlink_to(real)
    run("install", "claude-code")
    assert path.is_symlink()
    assert "recollect hooks run" in real.read_text()
    for each in real.parent.iterdir():
        each.unlink()
    real.parent.rmdir()
    (home / "dotfiles").write_text("a file")
    assert "nothing was changed" in run("install", "claude-code", code=1).output
    assert [each.name for each in path.parent.iterdir()] == ["settings.json"]


def test_a_session_that_was_only_opened_is_no_error(home: Path) -> None:
    (home / "empty.jsonl").write_text('{"type": "summary", "summary": "x"}\n')
    for name in ("missing.jsonl", "empty.jsonl", "~/missing.jsonl"):
        event = {"hook_event_name": "SessionEnd", "transcript_path": name}
        assert run("run", "claude-code", "--db", "a.db", event=event).output == "{}\n"
    assert not (home / "a.db").exists()


def test_what_is_damaged_is_said_and_the_rest_stored(home: Path) -> None:
    path = session().write(home / "t.jsonl")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:4], "{broken", *lines[4:]]) + "\n")
    event = {"hook_event_name": "SessionEnd", "transcript_path": str(path)}
    assert "not stored: line 5" in run("run", "claude-code", "--db", "a.db", event=event).output


def test_a_session_in_a_folder_below_begins_with_that_of_the_project(home: Path) -> None:
    event = {"hook_event_name": "SessionEnd", "transcript_path": str(session().write(home / "t.jsonl"))}
    run("run", "claude-code", "--db", "a.db", event=event)
    for folder, found in ((f"{FOLDER}/", True), (f"{FOLDER}/src/deep", True), ("/home/ana", False)):
        event = {"hook_event_name": "SessionStart", "cwd": folder}
        assert ("time-machine" in run("run", "claude-code", "--db", "a.db", event=event).output) == found


def known(client: str, *options: str) -> str:
    """What a session of a client in the folder begins with."""
    event = {"hook_event_name": "SessionStart", "cwd": FOLDER, "session_id": "s", "source": "startup"}
    output = json.loads(run("run", client, *options, event=event).output)["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    return str(output["additionalContext"])


@pytest.mark.parametrize(
    ("client", "made", "decided", "end"),
    [
        ("claude-code", session, "time-machine", "SessionEnd"),
        ("codex", thread, "Keep 8443", "Stop"),
    ],
)
def test_a_session_is_stored_at_its_end_and_the_next_one_begins_with_it(
    client: str, made: Any, decided: str, end: str, home: Path
) -> None:
    options = ("--db", str(home / "a.db"))
    assert known(client, *options) == "", "nothing is remembered yet"
    transcript: Transcript = made()
    event = {"hook_event_name": end, "cwd": FOLDER, "transcript_path": str(transcript.write(home / "t.jsonl"))}
    for _ in range(2):
        assert json.loads(run("run", client, *options, event=event).output) == {}
    with recollect.open(home / "a.db") as memory:
        count = memory.count()
        assert count > 8
        memory.remember("All commits are signed.", tags=["standing:instruction"])
        memory.remember("The cat of Ana is in another project.", kind="conversation", conversation="c", source="/other")
    text = known(client, *options)
    assert decided in text
    assert "All commits are signed." in text
    assert "The cat of Ana" not in text
    assert "xxxx" not in text, "what tools returned"


def test_a_session_begins_with_rules_of_earlier_ones_and_with_what_is_known_of_the_folder(home: Path) -> None:
    options = ("--db", str(home / "a.db"))
    earlier = Claude().add("user", "a1", None, "Never commit directly to main, open a pull request.")
    for at in range(12):
        call = {"type": "tool_use", "id": f"t{at}", "name": "Bash", "input": {"command": f"cd {FOLDER} && pytest {at}"}}
        earlier.answer(f"b{at}", f"b{at - 1}" if at else "a1", f"m{at}", call)
    for name, made in (("a", earlier), ("b", session())):
        event = {
            "hook_event_name": "SessionEnd",
            "cwd": FOLDER,
            "transcript_path": str(made.write(home / f"{name}.jsonl")),
        }
        run("run", "claude-code", *options, event=event)
    with recollect.open(home / "a.db") as memory:
        memory.remember("Migrate the invoices table.", kind="task", source=FOLDER)
        memory.remember("Water the ferns.", kind="task", source="/home/ana/garden")
        friday = memory.remember("Deploy on Fridays.", source=FOLDER)
        memory.supersede(friday.id, "Deploy on Mondays.")
    text = known("claude-code", *options)
    asked = text[text.index("What was asked for") :].splitlines()
    assert "Never commit directly to main" in asked[1]
    assert "Deploy on Mondays." in text
    assert "Deploy on Fridays." not in text
    assert "Migrate the invoices table." in text
    assert "[calls Bash" not in text


def test_a_session_of_another_user_is_not_shown(home: Path) -> None:
    options = ("--db", str(home / "a.db"))
    event = {"hook_event_name": "SessionEnd", "transcript_path": str(session().write(home / "t.jsonl"))}
    run("run", "claude-code", *options, "--user", "ana", event=event)
    assert "time-machine" in known("claude-code", *options, "--user", "ana"), "control"
    assert known("claude-code", *options, "--user", "ben") == ""


def test_a_hook_runs_no_code_of_the_project(home: Path) -> None:
    run("install", "claude-code", "--db", str(home / "a.db"))
    (entry,) = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]["SessionStart"]
    for name in ("click.py", "recollect.py"):
        (home / name).write_text("raise SystemExit(3)")
    command, event = entry["hooks"][0]["command"], json.dumps({"hook_event_name": "SessionStart"})
    done = subprocess.run(command, shell=True, input=event, capture_output=True, text=True, cwd=home, check=False)
    assert done.returncode == 0, done.stderr
    unsafe = command.replace(" -P ", " ")
    done = subprocess.run(unsafe, shell=True, input=event, capture_output=True, text=True, cwd=home, check=False)
    assert done.returncode == 3, "control"


def test_a_password_is_not_written_into_a_file_of_hooks(home: Path) -> None:
    output = run("install", "claude-code", "--db", "postgresql://ana:geheim@db/m", code=1).output
    assert "has a password" in output
    assert "geheim" not in output
    assert not (home / ".claude").exists()


def test_the_command_of_a_hook_runs_as_a_client_runs_it(home: Path) -> None:
    run("install", "claude-code", "--db", "a.db")
    (entry,) = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]["SessionEnd"]
    event = {"hook_event_name": "SessionEnd", "transcript_path": str(session().write(home / "t.jsonl"))}
    done = subprocess.run(
        entry["hooks"][0]["command"], shell=True, input=json.dumps(event), capture_output=True, text=True, check=True
    )
    assert done.stdout == "{}\n"
    with recollect.open(home / "a.db") as memory:
        assert memory.count() == 12


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ("no JSON", "must be the JSON object"),
        ("[]", "must be the JSON object"),
        ({"hook_event_name": "SessionEnd", "transcript_path": None}, "named no transcript"),
        ({"hook_event_name": "SessionEnd", "transcript_path": "/"}, "directory"),
        ({"hook_event_name": "SessionEnd", "transcript_path": "a\0b"}, "null byte"),
    ],
)
def test_what_a_hook_cannot_do_is_an_error_that_blocks_no_client(event: Any, message: str, home: Path) -> None:
    assert message in run("run", "claude-code", "--db", "a.db", event=event, code=1).output
    assert not (home / "a.db").exists() or recollect.open(home / "a.db").count() == 0
