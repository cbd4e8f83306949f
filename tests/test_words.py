"""What people read in a hurry has the words of the field (CONTRIBUTING.md), and none of a private dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from recollect.cli.app import app

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
}
_BANNED = re.compile(rf"\b({'|'.join(BANNED)})\b", re.IGNORECASE)


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


HELPS = dict(helps(app, "recollect"))


@pytest.mark.parametrize("name", HELPS)
def test_a_help_text_is_there_and_has_the_words_of_the_field(name: str) -> None:
    assert HELPS[name].strip() or name.rpartition(" ")[2].startswith("--"), f"{name} has no help"
    assert not _BANNED.findall(HELPS[name])


def test_the_check_of_words_notices_one() -> None:
    assert _BANNED.findall("Tell how many of what are held, made anew.") == ["held", "anew"]
