"""A server that speaks Qdrant's REST, for tests: what it is asked is done by the client library's local mode."""

from __future__ import annotations

import json
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from qdrant_client import QdrantClient, models


class Asked(NamedTuple):
    """A request: its method, the part of the path behind the collection, the query, the body, and the API key."""

    method: str
    what: str
    query: dict[str, list[str]]
    body: Any
    key: str | None


class Refusal(Exception):
    """Another answer of the server: a status and a reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status, self.reason = status, reason


class QdrantServer:
    """Args: version: what it says that it is.

    asked    every request
    before   called with each request before it is answered; raises a Refusal, or another error to drop the connection
    """

    def __init__(self, version: str = "1.20.0") -> None:
        self.version = version
        self.asked: list[Asked] = []
        self.before: Callable[[Asked], object] = lambda asked: None
        self.local = QdrantClient(":memory:")
        self.lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                address = urlsplit(self.path)
                name, what = re.fullmatch(r"/(?:collections/([^/]+)(/.*)?)?", address.path).groups()  # type: ignore[union-attr]
                asked = Asked(self.command, what or "/", parse_qs(address.query), body, self.headers.get("api-key"))
                status, answer = 200, None
                try:
                    with server.lock:
                        server.asked.append(asked)
                        server.before(asked)
                        answer = {"result": server.answer(name, asked), "status": "ok", "time": 0.0}
                        if name is None:
                            answer = {"title": "qdrant - vector search engine", "version": server.version}
                except Refusal as refused:
                    status, answer = refused.status, {"status": {"error": refused.reason}, "time": 0.0}
                except ConnectionAbortedError:
                    self.close_connection = True
                    return
                payload = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

            def log_message(self, *arguments: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def answer(self, name: str | None, asked: Asked) -> Any:
        """Do what is asked. The bodies are those of Qdrant's OpenAPI, in the library's models."""
        local, body = self.local, asked.body
        if name is None:
            return None
        match asked.method, asked.what:
            case "GET", "/exists":
                return {"exists": local.collection_exists(name)}
            case "GET", "/":
                return _json(local.get_collection(name))
            case "PUT", "/":
                if local.collection_exists(name):
                    raise Refusal(409, f"Collection `{name}` already exists!")
                new = models.CreateCollection(**body)
                sparse = {each: models.SparseVectorParams(**_json(value)) for each, value in new.sparse_vectors.items()}  # type: ignore[union-attr]
                return local.create_collection(name, {}, sparse_vectors_config=sparse, metadata=new.metadata)
            case "PUT", "/index":
                return {"operation_id": 1, "status": "completed"}
            case "PUT", "/points":
                return _json(local.upsert(name, models.PointsList(**body).points))
            case "POST", "/points":
                return [_json(each) for each in local.retrieve(name, body["ids"])]
            case "POST", "/points/delete":
                return _json(local.delete(name, models.PointIdsList(**body)))
            case "POST", "/points/count":
                return _json(local.count(name, models.Filter(**body["filter"]), exact=body["exact"]))
            case "POST", "/points/scroll":
                where, limit = models.Filter(**body["filter"]), body["limit"]
                points, offset = local.scroll(name, where, limit=limit, offset=body.get("offset"))
                return {"points": [_json(point) for point in points], "next_page_offset": offset}
            case "POST", "/points/query":
                query = models.QueryRequest(**body)
                found = local.query_points(
                    name,
                    models.SparseVector(**body["query"].get("nearest", body["query"])),
                    using=query.using,
                    query_filter=query.filter,
                    search_params=query.params,
                    limit=query.limit or 10,
                )
                return _json(found)
        raise Refusal(404, f"{asked.method} {asked.what}")


def _json(model: Any) -> Any:
    return json.loads(model.model_dump_json(exclude_none=True))


@contextmanager
def qdrant_server(version: str = "1.20.0") -> Iterator[QdrantServer]:
    """A server that runs while the block does."""
    server = QdrantServer(version)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        thread.join()
        server.http.server_close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server.local.close()
