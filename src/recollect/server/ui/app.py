"""The inspector as routes of the HTTP server: which page answers a request, as HTML or as JSON, and to whom.

Without tokens, all paths are below a secret one, and every other path is unknown. With tokens, a request without one
gets an empty page, whose script asks for the token, keeps it for the tab, and sends it with each request. There is no
cookie: browsers send those to every server of a machine, whatever its port.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from recollect.errors import AccessError, InvalidArgumentError, ProtocolError, RecollectError
from recollect.server.http.exchange import CheckedHandler, Exchange, Site
from recollect.server.http.guard import problem, status_of
from recollect.server.http.streams import exported
from recollect.server.ui.actions import ACTIONS, act
from recollect.server.ui.pages import PAGES, InspectorPage
from recollect.server.ui.pages.records import content
from recollect.server.ui.rendering import HEADERS, PageWriter, language_of, render, static_files
from recollect.server.ui.visit import KEPT, MADE, PLACED, SIGNATURE, Visit, optional
from recollect.wire import encode

#: Bytes of the secret path: 128 bits.
_SECRET_BYTES = 16
_HTML, _JSON, _FORM = "text/html; charset=utf-8", "application/json", "application/x-www-form-urlencoded"
#: Maximum size of a form, in bytes, and the size up to which one is read in the event loop.
_FORM_BYTES, _SHORT_FORM = 4 * 2**20, 16 * 2**10
#: Maximum number of fields of a form, and of parameters of an address.
_MOST_FIELDS = 200
#: The name of the first page where a path needs one.
_FIRST = "overview"


def new_secret() -> str:
    """Return a new secret path: 128 random bits in 22 letters, digits, "-" and "_"."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def path_of_pages(secret: str | None) -> str:
    """Return what the paths of all pages begin with."""
    return "/ui" if secret is None else f"/{secret}/ui"


class Inspector:
    """The pages of a server.

    Args:
        site: What all requests share.
        namespace: The namespace that is shown if a request names none.
        secret: The first part of all paths; None: there is none, and the server needs tokens.
        key: Signs what pages say about a change that was made.
        api: Whether the server has the API, too.

    Attributes:
        path: The path of the first page.
    """

    def __init__(self, site: Site, namespace: str, secret: str | None, key: bytes, *, api: bool = True) -> None:
        assert secret is not None or site.guard.tokens is not None
        self._site = site
        self._namespace = namespace
        self._api = api
        self._key = key
        self._base = path_of_pages(secret)
        self.path = f"{self._base}/"
        site.guard.linked = self.path

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [
            Route(f"{self._base}/static/{{name}}", _static, methods=["GET"]),
            Route(f"{self._base}/do", _WithToken(self._do, self._site), methods=["POST"]),
            Route(f"{self._base}/download", CheckedHandler(self._download, self._site), methods=["GET"]),
            Route(f"{self._base}/content", CheckedHandler(self._content, self._site), methods=["GET"]),
            Route(f"{self._base}/", _WithToken(self._page, self._site), methods=["GET"]),
            Route(f"{self._base}/{{page}}", _WithToken(self._page, self._site), methods=["GET"]),
        ]

    def _visit(self, exchange: Exchange, fields: Mapping[str, str], page: str = "") -> Visit:
        api = str(exchange.request.base_url).rstrip("/") if self._api else ""
        return Visit(exchange.calls.desk, exchange.grant, self._namespace, fields, api, self._key, page)

    async def _page(self, exchange: Exchange) -> Response:
        stated = str(exchange.request.path_params.get("page", ""))
        name, is_json = stated.removesuffix(".json"), stated.endswith(".json")
        name = "" if name == _FIRST else name
        visit = self._visit(exchange, _fields(exchange.request.query_params.multi_items()), name)
        look = _Look(exchange, visit, name, self._site.guard.tokens is not None)
        if visit.is_of_owner and name == "" and not is_json:
            first = f"me?{urlencode(visit.kept)}".rstrip("?")
            return Response(None, HTTPStatus.SEE_OTHER, {**HEADERS, "Location": first})
        try:
            page = PAGES.get(name)
            if page is None:
                raise NoPageError(f"there is no page {stated!r:.80}")
            _check(visit, page, name)
            if is_json or not page.has_template:
                body = await exchange.run(page.operation, lambda: encode(page.show(visit)))
                return Response(body, headers=HEADERS, media_type=_JSON)
            return Response(await exchange.run(page.operation, look.page), headers=HEADERS, media_type=_HTML)
        except RecollectError as error:
            if is_json:
                raise
            return await look.failed(error)

    async def _do(self, exchange: Exchange) -> Response:
        request = exchange.request
        sites = request.headers.getlist("sec-fetch-site")
        if any(each != "same-origin" for each in sites):
            raise AccessError("changes that another page asks for", "this server", "open the page again")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            raise ProtocolError("a change is a form")
        raw = await self._site.guard.body(request)
        if len(raw) > _FORM_BYTES:
            raise ProtocolError(f"the form has {len(raw)} bytes, and may have {_FORM_BYTES}")
        fields = await exchange.run("parse", lambda: _form(raw)) if len(raw) > _SHORT_FORM else _form(raw)
        name = fields.pop("action", "")
        action = ACTIONS.get(name)
        visit = self._visit(exchange, fields)
        try:
            if action is None or (visit.is_of_owner and not action.of_owner):
                raise AccessError(f"the action {name!r:.40}")
            address = await exchange.run(action.operation, lambda: act(visit, name))
        except RecollectError as error:
            look = _Look(exchange, visit, "", self._site.guard.tokens is not None)
            return await look.failed(error, fields, name)
        return Response(None, HTTPStatus.SEE_OTHER, {**HEADERS, "Location": address})

    async def _download(self, exchange: Exchange) -> Response:
        exchange.check_query(*PLACED)
        visit = self._visit(exchange, dict(exchange.request.query_params))
        out = await exported(exchange, visit.place(), None)
        out.headers.update({**HEADERS, "Content-Disposition": 'attachment; filename="memory.ndjson"'})
        return out

    async def _content(self, exchange: Exchange) -> Response:
        exchange.check_query("id", "part", *KEPT)
        visit = self._visit(exchange, dict(exchange.request.query_params))
        if visit.is_of_owner:
            raise AccessError("the content of a record by itself")
        body = await exchange.run("get", lambda: content(visit))
        headers = {**HEADERS, "Content-Disposition": 'attachment; filename="content"'}
        return Response(body, headers=headers, media_type="application/octet-stream")


class NoPageError(ProtocolError):
    """There is no such page."""

    http_status = HTTPStatus.NOT_FOUND


class _Look:
    """How a page looks for one request.

    Args:
        with_token: Whether the script of the page sends a token.
    """

    def __init__(self, exchange: Exchange, visit: Visit, name: str, with_token: bool) -> None:
        self._exchange = exchange
        self._visit = visit
        self._name = name
        self._language = language_of(exchange.request.headers.get("accept-language", ""))
        self._with_token = with_token

    def page(self) -> bytes:
        """Return the page as HTML. Called in a thread."""
        data = PAGES[self._name].show(self._visit)
        named = self._visit.said.get("of")
        of = optional(lambda: self._visit.memory.get(named)) if named else None
        shown = None if of is None else of.to_json()
        return self._render(f"{self._name or _FIRST}.jinja", data=data, moment=self._moment(), of=shown)

    def _moment(self) -> str | None:
        """Return the time of the commit that the page shows; None for now."""
        visit = self._visit
        if visit.moment is None:
            return None
        if isinstance(visit.moment, datetime):
            return visit.moment.isoformat()
        found = optional(lambda: visit.memory.log(1))
        return found[0].time.isoformat() if found else None

    def _render(self, template: str, **values: Any) -> bytes:
        visit = self._visit
        try:
            zone = visit.zone
        except RecollectError:  # the page says what is wrong
            zone = None
        writer = PageWriter(self._language, visit.kept, zone)
        values = {"moment": None, "of": None, **values, "said": visit.said}
        values["was"] = dict(parse_qsl(visit.said.get("was", ""), keep_blank_values=True))
        values["with_token"] = self._with_token
        return render(template, writer, visit=visit, page=self._name, may=visit.may, **values)

    async def failed(self, error: RecollectError, fields: Mapping[str, str] = {}, action: str = "") -> Response:
        """Return a page that says what went wrong, with the fields of the form that was sent, so that none is lost."""
        shown = {"code": error.code, "message": str(error)}
        again = {name: value for name, value in fields.items() if name not in PLACED}

        def made() -> bytes:
            stored = None
            if error.code == "conflict" and "content" in fields and fields.get("id"):
                stored = optional(lambda: self._visit.part(self._visit.memory).get(fields["id"]))
            if stored is not None:
                again["expect"] = stored.hash
                # Only the text is decided again: what else was changed meanwhile stays.
                others = {"tags": "\n".join(stored.tags), "importance": str(stored.importance or "")}
                again.update({name: value for name, value in others.items() if name in again})
            record = None if stored is None else stored.to_json()
            # A changed selection has to be looked at again.
            values = {"fields": again if stored is not None or error.code != "conflict" else {}, "action": action}
            return self._render("error.jinja", error=shown, stored=record, back=_back(fields, action), **values)

        try:
            body = await self._exchange.run("get", made)
        except RecollectError:  # the store cannot be read, or the server has too much to do
            return problem(error)
        return Response(body, int(status_of(error)), HEADERS, _HTML)


def _back(fields: Mapping[str, str], action: str) -> str:
    """Return the address of the page that had a form; "" if there is none."""
    if action not in ACTIONS:
        return ""
    stated = fields.get("page", "")
    page = stated if stated in ("mine", "review") else ACTIONS[action].page
    known = {*PAGES[page].takes.split(), *PLACED}
    return f"{page}?{urlencode({name: value for name, value in fields.items() if name in known and value})}"


class _WithToken(CheckedHandler):
    """A handler of pages. A browser that follows a link sends no token: it gets an empty page, which does."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
        guard = self._site.guard
        if guard.tokens is None or "authorization" in request.headers or request.method not in ("GET", "HEAD"):
            await super().__call__(scope, receive, send)
            return
        writer = PageWriter(language_of(request.headers.get("accept-language", "")), {}, None)
        response = Response(render("shell.jinja", writer), headers=HEADERS, media_type=_HTML)
        await response(scope, receive, send)


async def _static(request: HttpRequest) -> Response:
    name = request.path_params["name"]
    for each in static_files().values():
        if each.name == name:
            headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
            return Response(each.body, headers=headers, media_type=each.media_type)
    return problem(ProtocolError(f"there is no file {name!r:.80}"), HTTPStatus.NOT_FOUND)


def _fields(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Return parameters by name. The values of one that is there several times have line feeds between them.

    Raises:
        ProtocolError: There are too many.
    """
    if len(pairs) > _MOST_FIELDS:
        raise ProtocolError(f"there are more than {_MOST_FIELDS} parameters")
    out: dict[str, str] = {}
    for name, value in pairs:
        out[name] = f"{out[name]}\n{value}" if name in out else value
    return out


def _form(raw: bytes) -> dict[str, str]:
    """Return the fields of a form. Browsers end all of its lines with CR LF, whatever the text had.

    Raises:
        ProtocolError: It cannot be read.
    """
    try:
        pairs = parse_qsl(raw.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError as error:
        raise ProtocolError(f"the form cannot be read: {error}") from None
    return _fields([(name, value.replace("\r\n", "\n")) for name, value in pairs])


def _check(visit: Visit, page: InspectorPage, name: str) -> None:
    """Check a request for a page.

    Raises:
        AccessError: The page shows more than what is the user's.
        InvalidArgumentError: It has a parameter that the page does not take, and that would be ignored.
    """
    if visit.is_of_owner and not page.of_owner:
        raise AccessError(f"the page {name!r}")
    if page.is_present and visit.text("at"):
        raise InvalidArgumentError(
            "at", visit.text("at"), "is a moment in the past, and this page shows only what is now"
        )
    known = {*KEPT, *MADE, SIGNATURE, *page.takes.split()}
    if unknown := sorted(visit.query.keys() - known):
        raise InvalidArgumentError(
            "query", unknown[0], f"is no parameter of this page, which takes {page.takes or 'none'}"
        )
