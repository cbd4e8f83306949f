"""Classes of things, and some of their members: "which pets ...?" is answered by a text about a cat.

classes.txt has a line for each class, which indented lines continue: its names, a colon, and members, each one word.
General knowledge, not exhaustive: a member that is missing there is found by its own word as before. English only.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from recollect.text.answers import listed, singular

#: Begins with a line end, as the digest of the rules has it.
_CLASSES = "\n" + Path(__file__).with_name("classes.txt").read_text("utf-8")


@cache
def _members() -> dict[str, tuple[str, ...]]:
    """Map each name of a class, in the singular, to the members of all classes of that name."""
    out: dict[str, tuple[str, ...]] = {}
    for line in _CLASSES.replace("\n  ", " ").strip().splitlines():
        names, _, members = line.partition(": ")
        for name in map(singular, names.split()):
            out[name] = tuple(dict.fromkeys((*out.get(name, ()), *members.split())))
    return out


def members_of(question: str) -> dict[str, str]:
    """Return words for members of the classes that an English question asks for, each with the name of its class.

    >>> list(members_of("Which pets does Ana have?").items())[:2], members_of("What did Ana say?")
    ([('dog', 'pet'), ('puppy', 'pet')], {})
    """
    out: dict[str, str] = {}
    for name in listed(question):
        for member in _members().get(name, ()):
            out.setdefault(member, name)
    return out
