"""The parts of Markdown that are no text: links to other notes, embedded files, and pictures as base64.

A link is that of CommonMark, `[text](other.md)`, or a wikilink, `[[other note#heading|text]]`; with a "!" before it,
its target is embedded. Code is not searched for links. Base64 of more than `LONGEST_BASE64` characters is no text: it
would become hundreds of pieces.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from recollect.common.regexes import regex
from recollect.records.messages.parts import LONGEST_BASE64

#: The suffixes of pictures that are stored with the notes that embed them.
PICTURES = (".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp")
_DATA = regex(rf"data:([\w.+-]+/[\w.+-]+)?((?:;[\w.+=-]+)*);base64,([A-Za-z0-9+/=_-]{{{LONGEST_BASE64},}})")
#: The text of a picture before its address, in Markdown and in HTML.
_CAPTION = regex(r"(?:!\[([^\]\n]{0,300})\]\(<?|<img\b[^>\n]{0,300}?\balt=\"([^\"\n]{0,300})\"[^>\n]{0,300}src=\")$")
#: Fenced code, to its end or that of the text; and code within a line.
_CODE = regex(
    r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)|(?<!`)(`++)[^\n]{0,1000}?(?<!`)\2(?!`)",
    re.DOTALL | re.MULTILINE,
)
_LINK = regex(
    r"(?P<embedded>!?)(?:\[\[(?P<wiki>[^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|(?P<shown>[^\[\]\n]*))?\]\]"
    r"|\[(?P<text>[^\[\]\n]*)\]\((?:<(?P<angled>[^<>\n]+)>|(?P<target>[^\s()<>]+))(?:\s+[\"'(][^\n]{0,300}?[\"')])?\))"
)
_ADDRESS = regex(r"[A-Za-z][A-Za-z0-9+.-]+:|//|#")


class Media(NamedTuple):
    """A file in the text as base64.

    Attributes:
        content: Its bytes; None if the base64 is damaged.
        media_type: Its media type.
        caption: The text that is shown for it, or "".
        line: The number of its line, from 1.
    """

    content: bytes | None
    media_type: str
    caption: str
    line: int


class Link(NamedTuple):
    """A link to a file or a note.

    Attributes:
        target: The path, or the name of the note.
        text: The text that is shown for it, or "".
        embedded: Whether the target is shown at this place.
        is_wiki: Whether it is a wikilink, which finds a file by its name.
    """

    target: str
    text: str
    embedded: bool
    is_wiki: bool

    @property
    def media_type(self) -> str | None:
        """The media type of a file that is no text; None of a note."""
        kind = mimetypes.guess_type(self.target)[0]
        return None if kind is None or kind.startswith("text/") else kind


def media_name(number: int) -> str:
    """Return the name of a file in the text, by its number in it, from 1; the id of its record ends with it."""
    return f"media-{number}"


def without_base64_media(text: str) -> tuple[str, list[Media]]:
    """Return a text with the names of the files in it instead of their base64, and the files."""
    found: list[Media] = []

    def name(data: re.Match[str]) -> str:
        shown = _CAPTION.search(text, max(0, data.start() - 1000), data.start())
        caption = "" if shown is None else shown[1] or shown[2] or ""
        content = _decoded(data[3])
        line = text.count("\n", 0, data.start()) + 1
        found.append(Media(content, data[1] or "application/octet-stream", caption, line))
        return f"#{media_name(len(found))}" if content is not None else f"#omitted-{len(data[3])}-characters"

    return _DATA.sub(name, text), found


def _decoded(payload: str) -> bytes | None:
    try:
        return base64.b64decode(
            (payload + "=" * (-len(payload) % 4)).replace("-", "+").replace("_", "/"), validate=True
        )
    except (binascii.Error, ValueError):
        return None


def links_of(text: str) -> Iterator[Link]:
    """Yield the links of a text to files and notes, each target once; links to addresses are none."""
    seen = set()
    for found in _LINK.finditer(_CODE.sub("", text)):
        target = found["wiki"] or unquote((found["angled"] or found["target"]).partition("#")[0])
        link = Link(
            target.strip(), found["shown"] or found["text"] or "", bool(found["embedded"]), found["wiki"] is not None
        )
        if link.target and not _ADDRESS.match(link.target) and (link.target, link.embedded) not in seen:
            seen.add((link.target, link.embedded))
            yield link
