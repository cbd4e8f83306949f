"""Regular expressions that are compiled when they are first used.

There are hundreds of them, and a process uses a few dozen: to compile all takes a fifth of the time of a short command.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class LazyRegex:
    """A regular expression that is compiled when one of its methods is first used; then it has all of them itself.

    Args:
        pattern: Its source.
        stated_flags: As for `re.compile`.
    """

    _OF_COMPILED = (
        "findall",
        "finditer",
        "flags",
        "fullmatch",
        "groupindex",
        "groups",
        "match",
        "search",
        "split",
        "sub",
        "subn",
    )
    __slots__ = (*_OF_COMPILED, "stated_flags", "pattern")

    def __init__(self, pattern: str | bytes, stated_flags: int) -> None:
        self.pattern = pattern
        self.stated_flags = int(stated_flags)

    def __getattr__(self, name: str) -> Any:
        if name not in self._OF_COMPILED:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.stated_flags)
        for each in self._OF_COMPILED:
            setattr(self, each, getattr(compiled, each))
        return getattr(compiled, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return LazyRegex, (self.pattern, self.stated_flags)


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` does, compiled at its first use. An error in the pattern is raised only then.

    >>> regex("b+").search("abbc")[0]
    'bb'
    """
    return cast("re.Pattern[AnyStr]", LazyRegex(pattern, flags))
