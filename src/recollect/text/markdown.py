"""Markdown as sections: the headings of a text, and the exact lines that belong to each.

markdown-it-py finds the blocks, so that headings are those of CommonMark 0.31 (ATX and setext headings; none within
fenced code, quotes, lists or HTML). Sections follow each other without gaps: joined, their lines are the text. What is
done with them is left to the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

#: A longer heading is its own title, without looking for emphasis and links in it.
_LONGEST_TITLE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and the lines up to the next one. Lines are counted from 0.

    Attributes:
        level: 1 to 6; 0 for the text before the first heading.
        title: The plain text of the heading; "" without a heading.
        above: The titles of the headings above it, outermost first.
        first: The first line of the heading.
        body: The first line below the heading.
        end: The line after the last one.
        code: The fenced code blocks in it, each as its first line and the line after its last one.
    """

    level: int
    title: str
    above: tuple[str, ...]
    first: int
    body: int
    end: int
    code: tuple[tuple[int, int], ...] = ()


def front_matter_end(lines: list[str]) -> int:
    """Return how many lines the front matter has, with the lines around it; 0 if there is none.

    It begins with "---" in the first line and ends with the next line that is "---" or "..."; TOML is between "+++".
    """
    if lines[0].rstrip() == "+++":
        return next((at + 1 for at, line in enumerate(lines) if at and line.rstrip() == "+++"), 0)
    if lines[0].rstrip() != "---":
        return 0
    return next((at + 1 for at, line in enumerate(lines) if at and line.rstrip() in ("---", "...")), 0)


def sections(lines: list[str], start: int = 0) -> list[Section]:
    r"""Divide a text at its headings.

    >>> [(each.title, each.above, each.first, each.end) for each in sections(["a", "# B", "## C", "d"])]
    [('', (), 0, 1), ('B', (), 1, 2), ('C', ('B',), 2, 4)]

    Args:
        lines: The lines of the text, without line ends (and without "\r" and NUL).
        start: The first line that is Markdown: that after the front matter.

    Returns:
        The sections in the order of the text. They cover all lines from `start` on; the first has no heading, and is
        left out if it would have no line.
    """
    tokens = _parser().parse("\n".join(lines[start:]))
    # (first line, line after the heading, level, title), and a first one for the text above all headings.
    heads = [(start, start, 0, "")]
    code: list[tuple[int, int]] = []
    for at, token in enumerate(tokens):
        if token.map is None:
            continue
        first, end = token.map[0] + start, token.map[1] + start
        if token.type == "fence":
            code.append((first, end))
        elif token.type == "heading_open" and token.level == 0:
            heads.append((first, end, int(token.tag[1:]), _title(tokens[at + 1])))
    ends = [first for first, *_ in heads[1:]] + [len(lines)]
    path: list[tuple[int, str]] = []
    out = []
    next_code = 0
    for (first, body, level, title), end in zip(heads, ends, strict=True):
        while path and path[-1][0] >= level:
            path.pop()
        of_code = next_code
        while next_code < len(code) and code[next_code][0] < end:
            next_code += 1
        if first < end:
            above = tuple(each for _, each in path)
            inside = tuple(code[of_code:next_code])
            out.append(Section(level=level, title=title, above=above, first=first, body=body, end=end, code=inside))
        if level:
            path.append((level, title))
    return out


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])  # the text inside blocks is needed only of headings
    return parser


def _title(inline: Token) -> str:
    """Return the plain text of a heading, without the marks of emphasis, code and links.

    >>> [each.title for each in sections(["# The *new* [`open`](https://example.org)", "# C#"])]
    ['The new open', 'C#']
    """
    text = " ".join(inline.content.split())
    parts: list[Token] = []
    if len(text) <= _LONGEST_TITLE:
        _parser().inline.parse(text, _parser(), {}, parts)
    return "".join(part.content for part in parts if part.type != "html_inline").strip() or text
