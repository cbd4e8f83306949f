"""Pages as HTML: templates, texts in the language of the reader, and the files that pages load.

Every value that a template shows is escaped; there is no way around that, and no text is read as a markup. A name that
a template uses and is not there is an error.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from datetime import datetime, tzinfo
from functools import cache
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import quote_plus

from jinja2 import Environment, PackageLoader, StrictUndefined

from recollect.records.origins import implied
from recollect.server.ui.compare import changes, is_plain, signs
from recollect.server.ui.shapes import bar

#: The languages of the pages; the first one is that of readers who read none of them.
LANGUAGES = ("en", "de")
#: What the browser may do with a page: load files of this server, and send forms to it.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'; "
    "trusted-types recollect"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_STATIC = ("app.js", "icon.svg", "style.css")


class StaticFile(NamedTuple):
    """A file that pages load.

    Attributes:
        name: Its name with a hash of its bytes, so that it may be cached for ever.
    """

    name: str
    media_type: str
    body: bytes


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return the files that pages load, by their names without the hash."""
    out = {}
    for name in _STATIC:
        body = resources.files(__package__).joinpath("static", name).read_bytes()
        stem, _, kind = name.partition(".")
        hashed = f"{stem}-{hashlib.sha256(body).hexdigest()[:12]}.{kind}"
        out[name] = StaticFile(hashed, _TYPES[kind], body)
    return out


@cache
def texts(language: str) -> Mapping[str, str]:
    """Return the texts of the pages in a language, by their keys, which have a dot after that of their table."""
    raw = resources.files(__package__).joinpath("texts", f"{language}.toml").read_text("utf-8")
    found: dict[str, dict[str, str]] = tomllib.loads(raw)
    return {f"{table}.{key}": text for table, entries in found.items() for key, text in entries.items()}


def language_of(accepted: str) -> str:
    """Return the language that a reader prefers, of those that there are, from the header Accept-Language.

    >>> language_of("de-CH,de;q=0.9,en;q=0.8"), language_of("fr, en;q=0.5, de;q=0.7"), language_of("")
    ('de', 'de', 'en')
    """
    ranked = []
    for number, each in enumerate(accepted.split(",")):
        tag, _, stated = each.partition(";")
        quality = stated.strip().removeprefix("q=") or "1"
        try:
            ranked.append((-float(quality), number, tag.strip().lower().partition("-")[0]))
        except ValueError:
            continue
    return next((tag for quality, _, tag in sorted(ranked) if tag in LANGUAGES and quality < 0), LANGUAGES[0])


@cache
def environment() -> Environment:
    """Return what makes HTML of the templates."""
    made = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "signs": signs,
        "short": short,
        "marked": marked,
        "text_of": text_of,
        "wrap_id": wrap_id,
        "origin_of": origin_of,
    }
    made.tests["plain"] = is_plain
    made.globals |= {"bar": bar, "changes": changes}
    return made


class PageWriter:
    """What templates call: texts, links, times and numbers, in the language of the reader.

    Args:
        language: Of `LANGUAGES`.
        kept: The parameters that links pass on.
        zone: The time zone in which times are shown.
    """

    def __init__(self, language: str, kept: Mapping[str, str], zone: tzinfo | None) -> None:
        self.language = language
        self._texts = texts(language)
        self._kept = kept
        self._zone = zone

    def t(self, key: str, **values: Any) -> str:
        """Return a text. Its names in braces are replaced by values; with `n`, one of two forms is chosen."""
        if "n" in values and values["n"] == 1 and f"{key}_1" in self._texts:
            key = f"{key}_1"
        shown = {name: self.number(value) if type(value) in (int, float) else value for name, value in values.items()}
        return self._texts[key].format(**shown)

    def known(self, key: str, default: str) -> str:
        """Return a text that there may be, such as that of a kind; otherwise the default."""
        return self._texts.get(key, default)

    def word(self, word: Mapping[str, Any]) -> str:
        """Return what a word of a question adds to a score, and where that comes from."""
        like = f" {self.t('search.like')} {word['like']}" if word["like"] else ""
        out = f"{word['word']}{like}: {self.number(word['score'])}"
        for name, key in (("own", "search.own"), ("title", "search.in_title")):
            if word[name]:
                out += f", {self.t(key)} {self.number(word[name])}"
        if word["lent_by"]:
            out += f", {self.t('search.lent', n=len(word['lent_by']))}"
        return out

    def href(self, page: str, **parameters: Any) -> str:
        """Return the address of a page, relative to that of another one. A list has each of its items."""
        stated = {**self._kept, **{name: value for name, value in parameters.items() if value is not None}}
        query = "&".join(
            f"{name}={quote_plus(str(each))}"
            for name, value in stated.items()
            for each in (value if isinstance(value, list) else (value,))
            if each != ""
        )
        return (page or "./") + (f"?{query}" if query else "")

    def number(self, value: float) -> str:
        """Return a whole number with marks between thousands, or another one with three digits."""
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
        return text.translate(str.maketrans(",.", ".,")) if self.language == "de" else text

    def time(self, stated: str | None) -> str:
        """Return a time for people: date and minute in the zone of the store."""
        if not stated:
            return ""
        moment = datetime.fromisoformat(stated)
        if moment.tzinfo is not None and self._zone is not None:
            moment = moment.astimezone(self._zone)
        return moment.strftime("%d.%m.%Y %H:%M" if self.language == "de" else "%Y-%m-%d %H:%M")


def render(template: str, writer: PageWriter, **values: Any) -> bytes:
    """Return a page as HTML."""
    shown = {each: static.name for each, static in static_files().items()}
    made = environment().get_template(template)
    return made.render(w=writer, t=writer.t, href=writer.href, static=shown, **values).encode("utf-8")


def origin_of(record: Mapping[str, Any]) -> str:
    """Return the class of origin of a record in its JSON form.

    >>> origin_of({"kind": "knowledge", "source": "a.pdf"}), origin_of({"kind": "knowledge", "origin": "web"})
    ('document', 'web')
    """
    return record.get("origin") or implied(record.get("role"), record.get("source"), record["kind"])


def short(text: str, most: int) -> str:
    """Return the beginning of a text.

    >>> short("one two three", 9)
    'one two …'
    """
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    return (cut.rpartition(" ")[0] + " " if " " in cut else cut) + "…"


def text_of(record: Mapping[str, Any]) -> str:
    """Return the text of a record in its JSON form; "" for one whose content is data."""
    return str(record.get("content", ""))


def wrap_id(record_id: str) -> str:
    """Return an id for a narrow column: its beginning, if it is long."""
    return record_id if len(record_id) <= 16 else f"{record_id[:12]}…"


class MarkedPiece(NamedTuple):
    """A part of a text, and whether it is marked."""

    text: str
    is_marked: bool


def marked(text: str, spans: list[list[int]]) -> Iterator[MarkedPiece]:
    """Yield the parts of a text, marked and not.

    >>> [piece.text for piece in marked("I moved to Oslo", [[2, 7]]) if piece.is_marked]
    ['moved']
    """
    at = 0
    for start, end in spans:
        if start >= len(text):
            break
        if start > at:
            yield MarkedPiece(text[at:start], False)
        yield MarkedPiece(text[start:end], True)
        at = end
    if at < len(text):
        yield MarkedPiece(text[at:], False)
