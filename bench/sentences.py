"""English sentences from the files of a machine: docstrings, comments, documentation, manual pages.

A sentence is 5 to 25 words of plain ASCII that begins with a letter, ends with a punctuation mark and consists mostly
of words, which excludes tables, code and addresses. The parsers are simple on purpose: an error is a few sentences more
or fewer, the same in every run.
"""

from __future__ import annotations

import gzip
import html
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

#: Beyond this a file is data, not text that somebody wrote.
_MOST_BYTES = 4_000_000
_BLOCKS = re.compile(r"\n\s*\n")
_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(`])")
_LETTERS = re.compile(r"[A-Za-z]+")

_STRINGS = re.compile(r'"""(.+?)"""|\'\'\'(.+?)\'\'\'', re.DOTALL)
_COMMENTS = re.compile(r"(?:^[ \t]*#+ ?.*\n)+", re.MULTILINE)
_COMMENT_SIGN = re.compile(r"^[ \t]*#+ ?", re.MULTILINE)

_UNREAD_HTML = re.compile(r"<(script|style|pre)\b.*?</\1>", re.DOTALL)
_HTML_BREAK = re.compile(r"</?(?:p|div|li|h\d|td|tr|br|dd|dt|section|ul|ol|table)\b[^>]*>")
_HTML_TAG = re.compile(r"<[^>]+>")

_ROFF_COMMENT = re.compile(r"^[.']\\\".*$", re.MULTILINE)
_ROFF_BREAK = re.compile(r"^\.(?:PP|P|LP|Pp|sp|br|TP|It|IP|SH|Sh|SS|RS|RE|nf|fi|TH)\b.*$", re.MULTILINE)
_ROFF_MACRO = re.compile(r"^\.[A-Za-z]+ ?", re.MULTILINE)
_ROFF_ESCAPE = re.compile(r"\\f(?:\[\w*\]|\w)|\\[&|^]|\\s[-+]?\d")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, in order, white space made single.

    >>> list(sentences("Too short. The cat sat on the mat. See http://x.example/a?b=1&c=2 for 1 2 3 4 5 6."))
    ['The cat sat on the mat.']
    """
    for block in _BLOCKS.split(text):
        for sentence in _ENDS.split(" ".join(block.split())):
            if 20 <= len(sentence) <= 200 and sentence.isascii() and sentence[0].isalpha() and sentence[-1] in ".!?":
                words = sentence.split()
                letters = sum(map(len, _LETTERS.findall(sentence)))
                if 5 <= len(words) <= 25 and letters >= 0.75 * sum(map(len, words)):
                    yield sentence


def _python(source: str) -> str:
    """Docstrings (and other long strings) and blocks of comments."""
    strings = [one or other for one, other in _STRINGS.findall(source)]
    return "\n\n".join([*strings, *(_COMMENT_SIGN.sub("", each) for each in _COMMENTS.findall(source))])


def _html(source: str) -> str:
    return html.unescape(_HTML_TAG.sub("", _HTML_BREAK.sub("\n\n", _UNREAD_HTML.sub(" ", source))))


def _roff(source: str) -> str:
    """A manual page, its macros taken away."""
    source = _ROFF_MACRO.sub("", _ROFF_BREAK.sub("\n", _ROFF_COMMENT.sub("", source)))
    return _ROFF_ESCAPE.sub("", source).replace("\\-", "-").replace("\\(aq", "'").replace("\\'", "'")


def _plain(source: str) -> str:
    return source


def reader(path: Path) -> Callable[[str], str] | None:
    """What turns a file's source into prose, by its name; None for a file that is not read."""
    name = path.name.removesuffix(".gz")
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    if suffix == "py":
        return _python
    if suffix in ("html", "htm"):
        return _html
    if suffix.isdigit() or re.fullmatch(r"[1-9][a-z]*", suffix):
        return _roff
    return _plain if suffix in ("", "txt", "md", "rst", "debian", "news", "changelog", "info") else None


def sentences_of(path: Path) -> Iterator[str]:
    """The sentences of a file; none of one that is no text or cannot be read."""
    read = reader(path)
    if read is None:
        return
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return
    if len(data) <= _MOST_BYTES and b"\0" not in data[:1000]:
        yield from sentences(read(data.decode("utf-8", "replace")))
