"""Pages of other origins: every route refuses every request that one can make, and every answer protects itself."""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.http.serving import Server, served
from tests.server.serving import HttpClient
from tests.server.test_requests import HEALTH, post

from recollect.server.addresses import SAFE_HEADERS, foreign_page
from recollect.server.http import door
from recollect.server.http.routes import ROUTES

#: The beginning of the paths of the inspector.
PAGES = "/secret/ui/"
NAMED = "https://app.example"
SITES = (None, "none", "same-origin", "same-site", "cross-site", "none, cross-site", "")
MODES = (None, "navigate", "cors", "no-cors", "same-origin", "websocket")
DESTS = (None, "document", "empty", "script", "image", "iframe", "object", "worker")
ORIGINS = (None, "https://evil.example", "null", NAMED, "own")


def routes() -> list[tuple[str, str]]:
    """Return every method and path that there is, and some that there are not."""
    names = {"{namespace}": "team", "{id:path}": "a", "{batch}": "b"}
    found = [("GET", path) for path in ("/", "/openapi.json", "/healthz", "/readyz", "/metrics", "/mcp", "/nowhere")]
    found += [("POST", "/mcp"), ("DELETE", "/mcp"), ("HEAD", "/"), ("POST", "/"), ("PUT", "/v1/team/records")]
    for route in ROUTES:
        path = "/v1/{namespace}" + route.path
        for name, value in names.items():
            path = path.replace(name, value)
        found += [(method, path) for method in route.methods]
    return found


def sent(own: str, site: Any, mode: Any, dest: Any, origin: Any) -> dict[str, str]:
    """Return the headers of a request as a browser sends them."""
    values = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    values["Origin"] = own if origin == "own" else origin
    return {name: value for name, value in values.items() if value is not None}


def may(method: str, path: str, site: Any, mode: Any, dest: Any, origin: Any) -> bool:
    """Return what docs/server.md says of a request: the rule, once more."""
    if origin == NAMED:
        return True
    if path.startswith(PAGES) and (site, origin) == ("same-origin", "null"):
        return True
    if origin not in (None, "own"):
        return False
    if site in (None, "none", "same-origin"):
        return True
    link = (method, mode, dest, origin)
    is_link = link in {(each, "navigate", "document", None) for each in ("GET", "HEAD")}
    return is_link and (path == "/" or path.startswith(PAGES))


def test_the_rule_is_that_of_the_documents_for_all_that_a_browser_can_send() -> None:
    refused = answered = 0
    pages = [("GET", PAGES), ("GET", f"{PAGES}search"), ("POST", f"{PAGES}do"), ("GET", "/secret/other")]
    for (method, path), *said in product({*routes(), *pages}, SITES, MODES, DESTS, ORIGINS):
        headers = sent("http://own", *said)
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        page = foreign_page(method, path, raw, "http://own", {NAMED}, PAGES)
        assert (page is None) is may(method, path, *said), (method, path, headers)
        refused, answered = refused + (page is not None), answered + (page is None)
    assert min(refused, answered) > 10_000


def test_two_headers_of_one_name_are_judged_by_each_of_them() -> None:
    for name, good, bad in ((b"sec-fetch-site", b"same-origin", b"cross-site"), (b"origin", b"http://own", b"null")):
        for values in ((good, bad), (bad, good)):
            assert foreign_page("GET", "/", [(name, each) for each in values], "http://own", ()) is not None


def wrong(server: Server, said: Iterable[tuple[Any, ...]]) -> Iterator[tuple[str, str, Mapping[str, str], int]]:
    """Yield the requests that a server answers otherwise than the documents say."""
    for (method, path), each in product(routes(), said):
        headers = sent(server.address, *each)
        answer = server(method, path, b"{}" if method in ("POST", "PATCH") else None, headers=headers)
        refused = answer.status == 403 and (method == "HEAD" or b"requests of web pages" in answer.body)
        if answer.status == 201 and path.endswith("/batches"):  # the next one would wait for its end
            server("DELETE", f"{path}/{answer.json['result']['batch']}")
        if refused is may(method, path, *each):
            yield method, path, headers, answer.status


REQUESTS = [
    *product(("cross-site", "same-site"), ("navigate", "no-cors"), ("document", "image"), (None,)),
    *product((None, "none", "same-origin"), ("navigate",), ("document",), (None, "own")),
    ("cross-site", "cors", "empty", NAMED),
    ("cross-site", "cors", "empty", "https://evil.example"),
    (None, None, None, "https://evil.example"),
]


def test_every_route_refuses_what_pages_of_other_origins_send(tmp_path: Path) -> None:
    with served(tmp_path, mcp=True, origins=frozenset([NAMED]), most_running=1000) as server:
        assert list(wrong(server, REQUESTS)) == []


def test_control_the_sweep_finds_a_server_that_looks_at_the_origin_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def origin_only(method: str, path: str, headers: Any, own: str, origins: Any, linked: str) -> str | None:
        stated = [value.decode() for name, value in headers if name == b"origin"]
        return next((each for each in stated if each not in origins and each != own), None)

    monkeypatch.setattr("recollect.server.http.guard.foreign_page", origin_only)
    with served(tmp_path, mcp=True, origins=frozenset([NAMED])) as server:
        found = {(method, path) for method, path, _, _ in wrong(server, REQUESTS[:1])}
        assert {("GET", "/v1/team/export"), ("GET", "/mcp"), ("GET", "/healthz"), ("POST", "/v1/team/batches")} <= found


def unprotected(headers: Mapping[str, str]) -> set[str]:
    return {name for name, value in SAFE_HEADERS if headers.get(name) != value}


def test_every_answer_has_the_headers_that_keep_it_from_other_pages(tmp_path: Path) -> None:
    with served(tmp_path, mcp=True, body_bytes=1000) as server:
        server.memory("team").remember("a note", id="a")
        for method, path in routes():
            answer = server(method, path, b"{}" if method in ("POST", "PATCH") else None)
            assert unprotected(answer.headers) == set(), (method, path, answer.status)
        tag = server("GET", "/v1/team/records").headers["etag"]
        others = {
            304: server("GET", "/v1/team/records", headers={"If-None-Match": tag}),
            413: server("POST", "/v1/team/remember", b"x" * 2000),
            421: server("GET", "/v1/team/records", headers={"Host": "evil.example"}),
            403: server("GET", "/v1/team/records", headers={"Origin": "null"}),
        }
        for status, answer in others.items():
            assert (answer.status, unprotected(answer.headers)) == (status, set())
        with closing(http.client.HTTPConnection(server.address.removeprefix("http://"))) as connection:
            connection.request("GET", "/v1/team/changes?since=0", headers={"Accept": "text/event-stream"})
            stream = connection.getresponse()
            assert unprotected({name.lower(): value for name, value in stream.getheaders()}) == set()


def test_so_have_answers_that_no_route_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as server:
        host, _, port = server.address.removeprefix("http://").rpartition(":")

        def answer(data: bytes) -> tuple[int, Mapping[str, str]]:
            with closing(HttpClient((host, int(port)))) as client:
                return client.answer(data)[:2]

        assert (answer(b"nonsense\r\n\r\n")[0], unprotected(answer(b"nonsense\r\n\r\n")[1])) == (400, set())
        with monkeypatch.context() as full:
            full.setattr(door, "CONNECTIONS", 0)
            status, headers = answer(HEALTH)
        assert (status, unprotected(headers)) == (503, set())
        server.calls.batch = None  # type: ignore[assignment,method-assign]  # a fault of ours
        status, headers = answer(post("/v1/team/batches", {}))
        assert (status, unprotected(headers)) == (500, set())


def test_control_without_them_the_sweep_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.server.http.door.SAFE_HEADERS", ())
    with served(tmp_path) as server:
        assert unprotected(server("GET", "/healthz").headers) == dict(SAFE_HEADERS).keys()


def test_a_request_with_two_framings_is_refused_and_its_connection_closed(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        host, _, port = server.address.removeprefix("http://").rpartition(":")
        for path in ("/v1/team/count", "/nowhere", "/mcp"):
            body = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            with closing(HttpClient((host, int(port)))) as client:
                status, headers, _ = client.answer(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                assert (status, headers["connection"]) == (400, "close")
                assert client.closed()  # and what was smuggled has no answer
            with closing(HttpClient((host, int(port)))) as client:  # the control: one framing, and two requests
                client.socket.sendall(f"{head}\r\n".encode() + body)
                got = b""
                while b'{"ok":true}' not in got:
                    got += client.socket.recv(2**16)


def test_a_link_to_the_page_is_followed(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        link = sent("", "cross-site", "navigate", "document", None)
        assert server("GET", "/", headers=link).headers["content-type"].startswith("text/html")
        assert server("GET", "/openapi.json", headers=link).status == 403
