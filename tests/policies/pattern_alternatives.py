"""A check that each alternative of the patterns of redaction has an example that needs it.

An alternative is what stands between two `|` of a group, or of a whole pattern or part. It is needed if
without it (with `(?!)` before it, which nothing passes) the pattern does something else with one of its examples. So an
alternative that never matches, one that is contained in another, and one without an example are all reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from recollect.policies.patterns import FoldedText, Pattern
from recollect.text.patterns import expanded

#: What a group begins with. The last two are a reference to a part, and one to a group.
_OPENING = re.compile(r"\((?:\?(?:[:=!>]|<[=!]|P<\w+>|[a-z]+:|\(\w+\))|(?!\?))")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?&\w+\)|\(\?P=\w+\)|[()|]", re.DOTALL)


def alternatives(pattern: str) -> Iterator[tuple[int, int]]:
    """Yield where each alternative begins and ends in the text of a pattern.

    >>> [text[a:b] for text in ["a(?:b|c[|])|d"] for a, b in alternatives(text)]
    ['b', 'c[|]', 'a(?:b|c[|])', 'd']
    """
    open_groups: list[list[int]] = [[0]]
    at = 0
    while token := _TOKEN.search(pattern, at):
        at = token.end()
        if token[0] == "(":
            opening = _OPENING.match(pattern, token.start())
            assert opening, pattern[token.start() :][:20]
            at = opening.end()
            open_groups.append([at])
        elif token[0] in ("|", ")"):
            open_groups[-1].append(token.start())
            if token[0] == ")":
                yield from _between(open_groups.pop())
    yield from _between([*open_groups.pop(), len(pattern)])


def _between(ends: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the alternatives of a group: the places of its beginning, of each `|`, and of its end."""
    if len(ends) > 2:
        for place, (start, end) in enumerate(pairwise(ends)):
            yield start + (place > 0), end


def unneeded(patterns: list[dict[str, Any]], parts: Mapping[str, str]) -> Iterator[str]:
    """Yield the alternatives that no example needs, each after the name of its pattern or part.

    Args:
        patterns: The patterns, as `descriptions` returns them.
        parts: What they refer to.
    """
    for described in patterns:
        for start, end in alternatives(described["pattern"]):
            text = described["pattern"]
            if not _differs(described, text[:start] + "(?!)" + text[start:], parts, parts):
                yield f"{described['name']}: {text[start:end].strip()}"
    for name, part in parts.items():
        for start, end in alternatives(part):
            changed = {**parts, name: part[:start] + "(?!)" + part[start:]}
            if not any(_differs(each, each["pattern"], parts, changed) for each in patterns):
                yield f"{name}: {part[start:end].strip()}"


def _differs(described: dict[str, Any], pattern: str, parts: Mapping[str, str], changed: Mapping[str, str]) -> bool:
    original = expanded(described["pattern"], parts)
    without = expanded(pattern, changed)
    examples = (*map(unmarked, described["hides"]), *described["leaves"])
    return without != original and _hidden(described, without, examples) != _hidden(described, original, examples)


def _hidden(described: dict[str, Any], pattern: str, examples: tuple[str, ...]) -> list[list[tuple[int, int]]]:
    compiled = Pattern.of({**described, "pattern": pattern})
    return [list(compiled.spans(read(text))) for text in examples]


def unmarked(example: str) -> str:
    """Return the text of an example of `hides`, without the signs around what is hidden."""
    return example.replace("⟦", "").replace("⟧", "")


@cache
def read(text: str) -> FoldedText:
    return FoldedText(text)
