"""Regular expressions that are put together from named parts."""

from __future__ import annotations

from collections.abc import Mapping


def expanded(pattern: str, known: Mapping[str, str]) -> str:
    """Return a pattern with `(?&name)` replaced by the part of that name. A part may refer to earlier ones.

    >>> expanded("(?&two)!", {"one": "a|b", "two": "(?&one){2}"})
    '(?:(?:a|b){2})!'
    """
    for name, part in reversed(list(known.items())):
        pattern = pattern.replace(f"(?&{name})", f"(?:{part})")
    return pattern
