"""Errors: what a message shows of texts from outside."""

from __future__ import annotations

import inspect
import logging
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect import errors
from recollect.cli.app import app
from recollect.errors import (
    InvalidArgumentError,
    RecollectError,
    StoreChangedError,
    StoreError,
    StoreReplacedError,
    printable,
    without_passwords,
)

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
    assert errors.Shown(out) == out


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


#: Addresses with a password, some of them wrong.
WITH_PASSWORD = (
    "http://ana:geheim@127.0.0.1:1",
    "https://ana:geheim@host",
    "ana:geheim@host/memories",
    "postgresql:/ana:geheim@host/memories",
    "postgresq://ana:geheim@host/memories",
    "postgresql://ana:geheim@host/memories,postgresql://ben:geheim@host",
    "http://127.0.0.1:1,postgresql://ana:geheim@host",
    "postgresql://ana:geh/eim://geheim@host/memories",
    "postgresql:/host/memories?user=ana&password=geheim",
    "x" * 65 + "://ana:geheim@" + "h" * 40,
)


@pytest.mark.parametrize("address", WITH_PASSWORD)
def test_no_message_shows_the_password_of_an_address(address: str) -> None:
    messages = [
        str(InvalidArgumentError(name, each, f"{address} is wrong"))
        for name in ("address", "path", "read_from")
        for each in (address, [address], (b"", address))
    ]
    for wrong in (address, [address], ["http://127.0.0.1:1", address]):
        with pytest.raises(RecollectError) as raised:
            recollect.connect(wrong, timeout=0.1, retries=0)
        messages.append(str(raised.value))
    for command in ("check", "init"):
        arguments = ["store", command, address.replace("postgresql:/", "postgres:")]  # so that none is connected to
        messages.append(CliRunner().invoke(app, arguments).output)
    assert [each for each in messages if "geheim" in each or "eim" in each.replace("\n", "")] == []
    assert "geh" in str(InvalidArgumentError("content", address, "must be short")), "control: a text is no address"


def test_what_is_no_password_is_shown() -> None:
    for text in ("http://host:80/path", "10:30 at ana@host", "c:\\a", "unix:///run/a.sock", "postgresql://ana@host/m"):
        assert without_passwords(text) == text
