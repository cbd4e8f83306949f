"""Texts that people read in a hurry have the words of the field (CONTRIBUTING.md), and none of a private dialect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.docs.source import modules
from tests.paths import ROOT

from recollect.cli.app import app
from recollect.server.ui.rendering import texts

#: (CONTRIBUTING quotes the words that we do not write.)
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("**/*.md"))]
#: What we do not write, and what we write in its place.
BANNED = {
    "told": "said, reported",
    "held": "stored",
    "hurt": "corrupt",
    "at hand": "cached, loaded",
    "anew": "again",
    "whoever": "the caller",
    "let go": "evicted",
    "so many": "maximum",
    "nobody": "no process, no caller",
    "somebody": "a process, a caller",
    "for good": "permanently",
    "under way": "in progress",
}
_BANNED = re.compile(rf"\b({'|'.join(BANNED)})\b", re.IGNORECASE)
#: (A lock is held in the words of the field, too.)
_LOCK = re.compile(r"\b(?:lock|transaction)s?(?: that)? (?:is|are|was|be|being) held|\bheld by\b", re.IGNORECASE)


def banned_in(text: str) -> list[str]:
    return _BANNED.findall(_LOCK.sub("", " ".join(text.split())))


def helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """The help text of a command, of its options and of its subcommands."""
    yield name, command.help or ""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield f"{name} {parameter.opts[-1]}", parameter.help or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from helps(found, f"{name} {each}")


def sentences(page: str) -> list[str]:
    """The lines of a page, without blocks and pieces of code."""
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", page, flags=re.MULTILINE | re.DOTALL).splitlines()


def texts_in(node: ast.AST) -> Iterator[str]:
    """The texts that are written in an expression, those in the fixed parts of f-strings too."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def messages(tree: ast.Module) -> Iterator[str]:
    """The texts of a module that become part of an error's or a warning's message."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name.endswith("Error") or name in ("Damage", "warn", "warning", "error", "format_error", "wrong"):
                yield from texts_in(node)
        if isinstance(node, ast.FunctionDef) and node.name == "__str__":
            for statement in node.body:
                yield from texts_in(statement)


HELPS = dict(helps(app, "recollect"))


@pytest.mark.parametrize("name", HELPS)
def test_a_help_text_is_there_and_has_the_words_of_the_field(name: str) -> None:
    assert HELPS[name].strip() or name.rpartition(" ")[2].startswith("--"), f"{name} has no help"
    assert not banned_in(HELPS[name])


def test_every_module_says_what_it_is_in_the_words_of_the_field() -> None:
    docs = {name: ast.get_docstring(tree) or "" for name, tree in modules().items()}
    assert [name for name, text in docs.items() if not text] == []
    assert {name: found for name, text in docs.items() if (found := banned_in(text))} == {}


def test_the_texts_of_the_inspector_have_the_words_of_the_field() -> None:
    assert {key: found for key, text in texts("en").items() if (found := banned_in(text))} == {}


def test_messages_have_the_words_of_the_field() -> None:
    found = {(name, text) for name, tree in modules().items() for text in messages(tree) if banned_in(text)}
    assert found == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_have_the_words_of_the_field(page: Path) -> None:
    assert [line for line in sentences(page.read_text("utf-8")) if banned_in(line)] == []


def test_the_check_of_words_notices_one() -> None:
    assert banned_in("Tell how many of what are held, made\n    anew.") == ["held", "anew"]
    assert banned_in("The lock is held by another process.") == []
    page = "It is `told`.\n```text\nhurt\n```\nIt is hurt."
    assert [banned_in(line) for line in sentences(page)] == [[], [], ["hurt"]]
    code = 'raise StoreError(path, f"{path} is hurt")\nlog.warning("it was told")\nother("held")'
    assert [text for text in messages(ast.parse(code)) if banned_in(text)] == [" is hurt", "it was told"]
