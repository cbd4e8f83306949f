"""The inspector as a reader without script uses it: pages, their texts, links and forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin

from tests.http.serving import Answer, Server, served

import recollect

FORM = "application/x-www-form-urlencoded"
_EMPTY = frozenset("area base br col embed hr img input link meta source track wbr".split())
_BLOCKS = frozenset("p h1 h2 h3 li td th dt dd div article section summary label button option".split())


@dataclass
class Form:
    """A form: its action, its method, and its fields with their values."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    """A page that was answered.

    Attributes:
        words: Its visible text, by words.
        texts: The text of each element of the class "text", as it stands.
        links: The links, and their texts.
        tags: The names of all tags, with their attributes.
    """

    def __init__(self, answer: Answer, path: str) -> None:
        super().__init__()
        self.answer = answer
        self.path = path
        self.forms: list[Form] = []
        self.links: dict[str, str] = {}
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self._words: list[str] = []
        self._open: list[tuple[str, dict[str, str]]] = []
        self._link = ""
        self.feed(answer.body.decode("utf-8"))
        self.close()

    @property
    def words(self) -> str:
        return " ".join("".join(self._words).split())

    def form(self, action: str) -> Form:
        """Return the first form that does something."""
        return next(each for each in self.forms if each.fields.get("action") == action)

    def has_form(self, action: str) -> bool:
        return any(each.fields.get("action") == action for each in self.forms)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, found))
        if tag not in _EMPTY:
            self._open.append((tag, found))
        if tag in _BLOCKS:
            self._words.append(" ")
        if tag == "a" and "href" in found:
            self._link = found["href"]
        if tag == "form":
            self.forms.append(Form(found.get("action", ""), found.get("method", "get")))
        if "text" in found.get("class", "").split():
            self.texts.append("")
        name = found.get("name", "")
        if self.forms and name and tag in ("input", "textarea", "select"):
            fields = self.forms[-1].fields
            if found.get("type") == "checkbox":
                if "checked" in found:
                    fields[name] = f"{fields[name]}\n{found['value']}" if name in fields else found["value"]
            else:
                fields[name] = found.get("value", "")
        if tag == "option" and "selected" in found:
            selects = [each for kind, each in self._open if kind == "select"]
            self.forms[-1].fields[selects[-1]["name"]] = found.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass
        if tag in _BLOCKS:
            self._words.append(" ")

    def handle_data(self, data: str) -> None:
        kinds = [kind for kind, _ in self._open]
        if "script" in kinds or "style" in kinds:
            return
        self._words.append(data)
        if any("text" in found.get("class", "").split() for _, found in self._open):
            self.texts[-1] += data
        if "a" in kinds and self._link:
            self.links[self._link] = self.links.get(self._link, "") + data
        if "textarea" in kinds:
            found = next(found for kind, found in reversed(self._open) if kind == "textarea")
            fields = self.forms[-1].fields
            before = fields[found["name"]]
            fields[found["name"]] = before + (data.removeprefix("\n") if not before else data)


class Reader:
    """A person with a browser without script.

    Args:
        server: The server.
        token: The token that is sent with each request; None: there is none.
        language: The languages that the person reads.
    """

    def __init__(self, server: Server, token: str | None = None, language: str = "en") -> None:
        self.server = server
        self.token = token
        self.language = language

    def answer(self, path: str, method: str = "GET", body: Any = None, headers: Mapping[str, str] = {}) -> Answer:
        """Send a request for a path below that of the pages."""
        sent = {"Accept-Language": self.language, **headers}
        return self.server(method, urljoin(self.server.ui, path), body, token=self.token, headers=sent)

    def get(self, path: str, status: int = 200, /, **parameters: Any) -> Page:
        """Open a page."""
        path = f"{path}?{urlencode(parameters)}" if parameters else path
        answer = self.answer(path)
        assert answer.status == status, (path, answer.status, answer.body[-2000:])
        return Page(answer, path)

    def json(self, page: str, **parameters: Any) -> Any:
        """Return a page as JSON."""
        answer = self.answer(f"{page}.json?{urlencode(parameters)}")
        assert answer.status == 200, (page, answer.body)
        return answer.json

    def send(self, form: Form, status: int = 303, **fields: str) -> Page:
        """Fill in some fields of a form and send it, and follow to the page that comes next."""
        filled = [(name, each) for name, value in {**form.fields, **fields}.items() for each in _sent(name, value)]
        headers = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin", "Origin": "null"}
        answer = self.answer(form.action, "POST", urlencode(filled).encode(), headers)
        assert answer.status == status, (form, answer.status, answer.body[-2000:])
        return self.get(answer.headers["location"]) if status == 303 else Page(answer, form.action)


def _sent(name: str, value: str) -> list[str]:
    """Return the values of a field as browsers send them: one for each box, and with CR LF at the ends of lines."""
    return value.split("\n") if name == "categories" else [value.replace("\n", "\r\n")]


@contextmanager
def inspected(folder: Path, **options: Any) -> Iterator[tuple[Reader, recollect.Memory]]:
    """Serve the inspector of a new store, and return a reader of it, and the memory."""
    with served(folder, ui=True, **options) as server, recollect.open(folder / "served.db", embedder="none") as memory:
        yield Reader(server), memory


def filled(memory: recollect.Memory) -> None:
    """Store something for every page: turns, facts that disagree, duplicates, and something in each part."""
    memory.add_messages(
        [
            {"role": "user", "content": "I moved to Oslo. My sister Bea lives in Rome."},
            {"role": "assistant", "content": "How nice! Does Bea like Rome?"},
            {"role": "user", "content": "Bea loves Rome, she works at Acme Corporation."},
        ],
        user="ana",
        conversation="moving",
    )
    memory.record_user_fact("I live in Rome", user="ana")
    memory.record_user_fact("I live in Oslo now", user="ana")
    memory.remember("Ana prefers window seats", id="seat", user="ana", tags=["travel"], importance=0.8)
    memory.remember("Bob is allergic to nuts", id="nuts", user="bob")
    memory.remember("The office opens at nine o'clock every day", id="office-1")
    memory.remember("the office opens at nine o'clock, every day!", id="office-2")
    memory.remember(b"\x89PNG\r\n", id="picture", media_type="image/png", user="ana")
    memory.update("seat", content="Ana prefers aisle seats")
    memory.glossary.memorize("SLA", "Service Level Agreement", "term", agent_id="bot")
    memory.outline.ingest_text("* Plans\n** Move to Oslo\n", "org", "plans.org")
    memory.sdr.store("a text with a sparse code")
    memory.keyed.write("greeting", b"hello")
    memory.snapshot("before the holidays")
