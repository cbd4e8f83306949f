"""Classes of origin: who said what a record states, from the owner of the memory down to a page of the web.

A class follows from the fields of a record (`implied`), and is stored (`Record.origin`) only where it is another one:
what a writer may state is limited by who it is, and what is derived from other records is never above them. So a text
of a web page stays a text of a web page, however often it is summarised, merged or extracted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, TypeAlias, get_args

from recollect.errors import InvalidArgumentError

#: Who said it, the most trusted first.
Origin: TypeAlias = Literal["owner", "user", "assistant", "tool", "document", "web", "unknown"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
OWNER, USER, ASSISTANT, TOOL, DOCUMENT, WEB, UNKNOWN = ORIGINS
#: The rank of each class: a greater one is more trusted.
RANKS: dict[str, int] = {origin: len(ORIGINS) - 1 - number for number, origin in enumerate(ORIGINS)}
#: The classes of what neither the user nor the assistant said.
UNTRUSTED = frozenset(ORIGINS[ORIGINS.index(TOOL) :])
_OF_ROLES: dict[str, Origin] = {
    **dict.fromkeys(("user", "human"), USER),
    **dict.fromkeys(("assistant", "agent", "ai", "model", "bot", "system", "developer"), ASSISTANT),
    **dict.fromkeys(("tool", "function", "ipython", "observation", "environment"), TOOL),
}
#: Kinds of records that a program writes: without a role, nobody's word.
_OF_PROGRAMS = frozenset(("entity", "task", "node", "relation"))
_WEB = ("http://", "https://", "ftp://", "//", "www.")


def of_role(role: str) -> Origin:
    """Return the class that the role of a turn implies. Other names are those of people.

    >>> of_role("Human"), of_role("ai"), of_role("tool_result"), of_role(" Assistant ")
    ('user', 'assistant', 'tool', 'assistant')
    """
    known = _OF_ROLES.get(role)
    if known is None:
        name = role.strip().casefold()
        known = _OF_ROLES.get(name) or _OF_ROLES.get(name.replace("-", "_").partition("_")[0], USER)
    return known


def implied(role: str | None, source: str | None, kind: str) -> Origin:
    """Return the class that the fields of a record imply.

    >>> implied(None, None, "knowledge"), implied("tool", None, "conversation"), implied(None, "a.pdf", "knowledge")
    ('user', 'tool', 'document')

    The role says who spoke. A source says where a text without a role is from; a page of the web stays one, also with a
    named speaker.
    """
    if source is not None and source[:8].lower().startswith(_WEB):
        return WEB
    if role is not None:
        return of_role(role)
    if source is not None:
        return DOCUMENT
    return ASSISTANT if kind in _OF_PROGRAMS else USER


def least(origins: Iterable[str]) -> Origin:
    """Return the least trusted of some classes; the most trusted class if there are none."""
    return ORIGINS[max((len(ORIGINS) - 1 - RANKS[each] for each in origins), default=0)]


def at_least(origin: str) -> tuple[Origin, ...]:
    """Return a class and those above it.

    >>> at_least("assistant")
    ('owner', 'user', 'assistant')
    """
    return ORIGINS[: ORIGINS.index(check_origin("origin", origin)) + 1]


def below(origin: str) -> frozenset[Origin]:
    """Return the classes below one."""
    return frozenset(each for each in ORIGINS if RANKS[each] < RANKS[origin])


def check_origin(name: str, value: object, among: Collection[str] = ORIGINS) -> Origin:
    """Return `value` as a class of origin.

    Raises:
        InvalidArgumentError: It is none of them.
    """
    if not isinstance(value, str) or value not in among:
        raise InvalidArgumentError(name, value, f"must be one of {', '.join(among)}")
    return ORIGINS[ORIGINS.index(value)]
