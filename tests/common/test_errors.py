"""Errors: what a message shows of texts from outside."""

from __future__ import annotations

import inspect
import json
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect import errors, quoting
from recollect.cli.app import app
from recollect.errors import (
    InvalidArgumentError,
    RecollectError,
    StoreChangedError,
    StoreError,
    StoreReplacedError,
    UnknownRecordError,
)
from recollect.quoting import printable, without_passwords

#: What a terminal obeys, what ends a line, what turns the direction of writing, and what no output can carry.
HOSTILE = "a\x1b]0;owned\x07\x9b2J\r\n\u2028\u202e\ud800"


def kinds() -> Iterator[type[RecollectError]]:
    """Every class of error of the package, however deep."""
    todo = [RecollectError]
    while todo:
        kind = todo.pop()
        yield kind
        todo += [each for each in kind.__subclasses__() if each.__module__.startswith("recollect.")]


def made(kind: type[RecollectError]) -> RecollectError:
    """An error of which every text is hostile."""
    if kind in (RecollectError, StoreError):
        return kind(HOSTILE)
    takes = inspect.signature(kind.__init__).parameters.values()
    given: list[Any] = [7 if str(each.annotation) == "int" else HOSTILE for each in takes if each.name != "self"]
    return kind(*given)


@pytest.mark.promise("messages.printable")
@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.__name__)
def test_no_message_of_an_error_has_a_character_that_a_terminal_obeys(kind: type[RecollectError]) -> None:
    error = made(kind)
    written = str(error)
    assert written.isprintable()
    written.encode("utf-8")
    assert str(pickle.loads(pickle.dumps(error))) == written


def test_every_error_has_a_message_of_its_own() -> None:
    """Those that have none show their arguments as they are, so none of them is raised as such."""
    without = {kind for kind in kinds() if kind.__str__ is RecollectError.__str__ and not kind._template}
    assert without == {RecollectError, StoreError}


def test_the_text_of_a_class_counts_more_than_that_of_its_base() -> None:
    assert str(StoreChangedError("a.db")).startswith("another process wrote to a.db")
    assert str(StoreReplacedError("a.db")).startswith("a.db was deleted, moved or replaced")

    class Written(RecollectError):
        def __str__(self) -> str:
            return f"written {self.args[0]}"

    class Inherited(Written):
        pass

    class Templated(Written):
        _template = "from a template: {0}"

    texts = [str(each("{x}\n")) for each in (Written, Inherited, Templated)]
    assert texts == ["written {x}\\n", "written {x}\\n", "from a template: {x}\\n"]


def test_a_caller_can_give_its_own_error_any_attribute() -> None:
    class Custom(RecollectError):
        def __init__(self, message: str) -> None:
            super().__init__(message)
            self.message = message

    assert str(Custom("{not a field}")) == "{not a field}"


@pytest.mark.promise("messages.printable")
def test_no_line_of_the_log_has_one_either(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="recollect"):
        logging.getLogger("recollect").warning("the index in %s is damaged (%s)", HOSTILE, ValueError(HOSTILE))
    assert caplog.messages[0].isprintable()
    assert "100%" in printable("100%")  # a message is not formatted twice
    with caplog.at_level(logging.WARNING, logger="recollect"):
        logging.getLogger("recollect").warning("%s", "100% of it, %s")
    assert caplog.messages[1] == "100% of it, %s"


@given(st.text(st.characters()))
def test_printable_texts_stay_and_others_become_so(text: str) -> None:
    out = printable(text)
    assert out.isprintable()
    assert printable(out) == out
    if text.isprintable():
        assert out == text
    else:
        assert out != text
    assert quoting.Shown(out) == out


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    drawn: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if line.startswith("    ") and line.strip():
            drawn.append(line[4:])

    def lines(kind: type[RecollectError], depth: int = 0) -> Iterator[str]:
        built_in = [base.__name__ for base in kind.__bases__ if base.__module__ == "builtins" and base is not Exception]
        yield "    " * depth + kind.__name__ + (f" ({', '.join(built_in)})" if built_in else "")
        for each in kind.__subclasses__():
            if each.__module__ == errors.__name__:
                yield from lines(each, depth + 1)

    assert drawn == list(lines(RecollectError))


#: Addresses with the password "geheim", most of them wrong.
WITH_PASSWORD = (
    "http://ana:geheim@127.0.0.1:1",
    "http://:geheim@127.0.0.1:1",
    "https://geheim@127.0.0.1:1",
    "http://ana:my geheim@127.0.0.1:1",
    "ana:geheim@127.0.0.1:1/memories",
    "postgresql:/ana:geheim@127.0.0.1:1/memories",
    "Postgresql://ana:geheim@127.0.0.1:1/memories",
    "postgresq://ana:geheim@127.0.0.1:1/memories",
    "postgresql://ana:geheim@127.0.0.1:1/memories",
    "postgresql://ana:my geheim@127.0.0.1:1/memories",
    "postgresql://ana:geheim%00@127.0.0.1:1/memories",
    "postgresql://ana@corp:geheim@127.0.0.1:1/memories",
    "postgresql://ana:geheim@[::1/memories",
    "postgresql://ana:geheim@127.0.0.1:1/memories,postgresql://ben:geheim@127.0.0.1:1",
    "http://127.0.0.1:1,postgresql://ana:geheim@127.0.0.1:1",
    "postgresql://ana:geh/eim://geheim@127.0.0.1:1/memories",
    "postgresql://127.0.0.1:1/memories?user=ana&password=geheim",
    "postgresql://127.0.0.1:1/memories?scram_client_key=geheim",
    "host=127.0.0.1 port=1 password = 'a geheim'",
    "unix://ana:geheim@127.0.0.1:1/x",
    "x" * 50 + "://ana:geheim@" + "h" * 40,
)


@pytest.mark.parametrize("address", WITH_PASSWORD)
def test_no_message_shows_the_password_of_an_address(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    messages = []
    for wrong in (address, [address], ["http://127.0.0.1:1", address]):
        with pytest.raises(RecollectError) as raised:
            recollect.connect(wrong, timeout=0.2, retries=0)
        messages.append(str(raised.value) + json.dumps(raised.value.to_json()))
    with pytest.raises(RecollectError) as raised:
        recollect.open(address, create=False, timeout=0.2)
    messages.append(str(raised.value) + json.dumps(raised.value.to_json()))
    commands = (
        ["store", "check", address],
        ["recall", "tea", "--db", address],
        ["size", "--records", "9", "--db", address],
        ["find", "--key-file", address],
        ["doctor", "--db", address],
    )
    messages += [CliRunner().invoke(app, command).output.replace("\n", "") for command in commands]
    assert [each for each in messages if "geh" in each or "eim" in each] == []
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_password_is_shown() -> None:
    for text in (
        "https://medium.com/@ana/post",
        "http://host:80/@ana",
        "http://host:80/path",
        "10:30 at ana@host",
        "user:ana@example.org",
        "unix:///run/a.sock",
        "token=...",
    ):
        assert without_passwords(text) == text, "control"
    assert "user:ana@example.org" in str(UnknownRecordError("user:ana@example.org", "default"))


def test_the_fields_of_an_error_have_no_password_for_other_programs_either() -> None:
    error = StoreError("postgresql://ana:geheim@db/m", "failed: host=db password=geheim")
    assert "geheim" not in json.dumps(error.to_json())
    assert "host=db" in json.dumps(error.to_json()), "control"


def test_a_hostile_text_in_a_message_costs_no_more_than_its_length() -> None:
    """As the number of calls that a step of the pattern would take: a quadratic one would not end."""
    for text in (
        "/a:" * 10**6 + "@",
        "a" * 10**6 + "@:",
        "a:/" * 10**6 + "@",
        "password=" * 10**5,
        ",a" * 10**6 + "@:",
    ):
        assert len(without_passwords(text)) > 0
        assert len(str(InvalidArgumentError("path", text, "is wrong"))) < 200
