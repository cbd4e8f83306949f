"""Texts and templates: both languages say the same things, and what is shown is escaped."""

from __future__ import annotations

import re
import string
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path

import jinja2
import pytest
from tests.inspector.pages import inspected

from recollect.ledger.commits import CAUSES
from recollect.server.ui import rendering
from recollect.server.ui.actions import ACTIONS
from recollect.server.ui.compare import is_plain, signs
from recollect.server.ui.pages import PAGES

FOLDER = Path(str(resources.files("recollect.server.ui")))
TEMPLATES = sorted((FOLDER / "templates").glob("*.jinja"))
ESCAPING = rendering.environment
#: Markup, other languages' marks, and what terminals and databases trip over.
HOSTILE = (
    "<script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "javascript:alert(1)",
    "</textarea><img src=x onerror=alert(1)>",
    "{{ 7*7 }}{% raw %}",
    "&lt;b&gt; &amp;amp;",
    "' or 1=1 --",
    "\u202egnp.exe",
    "a\x00b",
    "a\x1b[31mb",
    "\u200b\u200d\ufeff",
    "😀 \U0001f469\u200d\U0001f467",
    "عربي עברית",
    "line\nline\r\nline\rline\u2028line",
    "</style><style>*{display:none}",
    "--><!--",
    "]]>",
    "<base href=//evil.example>",
    '<meta http-equiv="refresh" content="0;url=//evil.example">',
    "x" * 5000,
    "\u0301" * 50,
)


def hostile() -> list[str]:
    """Return 500 hostile contents."""
    return [f"{number} {HOSTILE[number % len(HOSTILE)]} {HOSTILE[number // 25]}" for number in range(500)]


def test_both_languages_have_the_same_texts_with_the_same_names_in_them() -> None:
    english, german = (rendering.texts(language) for language in rendering.LANGUAGES)
    assert english.keys() == german.keys()
    for key, text in english.items():
        assert names(text) == names(german[key]), key
        assert text.strip() == text != ""
    assert sum(english[key] != german[key] for key in english) > 0.9 * len(english)


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_text_that_a_template_names_is_there_and_every_text_is_used() -> None:
    known = rendering.texts("en").keys()
    source = "".join(each.read_text("utf-8") for each in TEMPLATES)
    named = set(re.findall(r'\bt\("(\w+\.[\w.]+)"[,)]', source))
    assert named <= known
    named |= set(re.findall(r"""["'](\w+\.[\w ]+)["']""", source + (FOLDER / "rendering.py").read_text("utf-8")))
    begun = tuple(re.findall(r'"(\w+\.\w*)" ~', source))  # of which the end is a value
    unused = {key for key in known - named if not key.endswith("_1") and not key.startswith(begun)}
    assert len([key for key in known if key.startswith(begun)]) < 0.6 * len(known)
    assert unused == set()
    assert {f"done.{name}" for name in ACTIONS} <= known
    assert {f"nav.{name or 'overview'}" for name in ("", "search", "log", "me", "erase")} <= known


def test_each_language_is_a_file_of_texts_alone() -> None:
    for language in rendering.LANGUAGES:
        raw = tomllib.loads((FOLDER / "texts" / f"{language}.toml").read_text("utf-8"))
        assert all(isinstance(text, str) for table in raw.values() for text in table.values())


def test_templates_have_no_way_around_the_escaping_and_nothing_that_the_policy_refuses() -> None:
    assert rendering.environment().autoescape is True
    for path in TEMPLATES:
        source = path.read_text("utf-8")
        assert not re.search(r"\|\s*safe|Markup|autoescape|<style|\sstyle=|\son\w+=|javascript:|https?://", source), (
            path
        )
        scripts = re.findall(r"<script[^>]*>(.*?)</script>", source, re.DOTALL)
        assert all(not each.strip() for each in scripts)
    for path in FOLDER.glob("**/*.py"):
        assert "Markup" not in path.read_text("utf-8"), path
    script = (FOLDER / "static" / "app.js").read_text("utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(|https?://|cookie", script
    )


def test_templates_are_those_of_the_pages() -> None:
    pages = {name or "overview" for name, page in PAGES.items() if page.has_template}
    assert {each.stem for each in TEMPLATES} == pages | {"layout", "macros", "shell", "error"}


def all_are_shown_as_text(folder: Path) -> None:
    """Store hostile contents and check that pages show each of them as text, and nothing as an element."""
    with inspected(folder) as (reader, memory):
        memory.remember_all(
            [{"content": text, "id": f"h{number}", "kind": "x"} for number, text in enumerate(hostile())]
        )
        elements = {tag for tag, _ in reader.get("records").tags}
        shown: list[str] = []
        after = ""
        while after is not None:
            page = reader.get("records", order="id", limit="50", **({"after": after} if after else {}))
            shown += page.texts
            assert {tag for tag, _ in page.tags} <= elements | {"nav"}
            after = reader.json("records", order="id", limit="50", **({"after": after} if after else {}))["cursor"]
        for number in range(0, 500, 10):
            text = hostile()[number]
            page = reader.get("record", id=f"h{number}")
            assert text.replace("\x00", "\u2400") in page.texts, number
            assert [found for tag, found in page.tags if tag in ("script", "img", "svg", "base", "meta", "style")] == [
                found for tag, found in reader.get("record", id="h0").tags if tag in ("script", "meta")
            ], number
        starts = {text.replace("\x00", "\u2400")[:300] for text in hostile() if len(text) < 300}
        assert starts <= set(shown)


@cache
def unescaped() -> jinja2.Environment:
    """Return what makes HTML of the templates and escapes nothing."""
    escaping = ESCAPING()
    plain = jinja2.Environment(loader=escaping.loader, trim_blocks=True, lstrip_blocks=True)
    plain.filters, plain.globals, plain.tests = escaping.filters, escaping.globals, escaping.tests
    return plain


def test_500_hostile_contents_are_shown_as_text(tmp_path: Path) -> None:
    all_are_shown_as_text(tmp_path)


def test_control_without_escaping_they_would_not_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "environment", unescaped)
    with pytest.raises(AssertionError):
        all_are_shown_as_text(tmp_path)


def test_what_is_not_visible_is_shown_as_a_sign() -> None:
    for character in "\x00\x1b\r\u00ad\u200b\u200e\u202e\u2066\ufeff\U000e0041":
        found = list(signs(f"a{character}b"))
        assert [each.name for each in found] == ["", f"U+{ord(character):04X}", ""]
        assert not is_plain(f"a{character}b")
    assert is_plain("plain text\n\twith ä, 漢字 and 😀")


def test_attachments_are_only_downloaded(tmp_path: Path) -> None:
    with inspected(tmp_path) as (reader, memory):
        memory.remember(b"<script>alert(1)</script>", id="page", media_type="text/html")
        memory.remember("<script>alert(1)</script>", id="text")
        for name in ("page", "text"):
            answer = reader.answer(f"content?id={name}")
            assert answer.body == b"<script>alert(1)</script>"
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["content-disposition"].startswith("attachment")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert b"<script>alert" not in reader.get("record", id=name).answer.body


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_cause_of_a_change_has_a_text(language: str) -> None:
    texts = tomllib.loads((FOLDER / "texts" / f"{language}.toml").read_text(encoding="utf-8"))
    assert set(texts["causes"]) == set(CAUSES)
