"""A server on this machine that speaks the wire format of `/v1/embeddings`, its failures included.

It gives the answers that were set, in turn, and then goes on answering well; and it keeps what it was asked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any, NamedTuple

from recollect.models.embedding.hashed import hashed_vector


class Answer(NamedTuple):
    """An answer: a status, a body (JSON is made of anything but bytes), headers."""

    status: int = 200
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()


class Endless(NamedTuple):
    """A piece that is sent again and again, without a length, until the client goes away, or very often.

    begin    what is sent before it, beginning with the status line
    part     what is repeated
    pause_s  between the parts
    most     how often, so that a client that would wait for ever fails
    """

    begin: bytes
    part: bytes
    pause_s: float = 0.0
    most: int = 5000


class Asked(NamedTuple):
    """A request that was received."""

    path: str
    headers: dict[str, str]
    body: Any


#: Instead of an answer: the connection is closed, or nothing is said until the test is over.
CLOSED, SILENT = "closed", "silent"
#: What is done, or how that follows from the texts.
Script = Answer | Endless | str | Callable[[list[str]], Answer | Endless]


def well(texts: list[str], size: int = 256) -> Answer:
    """A good answer, out of order as the format allows."""
    items = [
        {"object": "embedding", "index": at, "embedding": hashed_vector(text)[:size]} for at, text in enumerate(texts)
    ]
    return Answer(200, {"object": "list", "data": items[::-1], "model": "m", "usage": {"total_tokens": 1}})


class StubServer:
    """The server; `url` is its address up to and with the version."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.script: list[Script] = []
        self.connections = 0
        self.sent = 0  # bytes of endless answers
        self.left = threading.Event()  # the client that asked for one went away
        self._over = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections are kept

            def setup(self) -> None:
                stub.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stub.asked.append(Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                wanted = stub.script.pop(0) if stub.script else well
                if callable(wanted):
                    wanted = wanted(body["input"])
                if wanted == SILENT:
                    stub._over.wait(30)
                if isinstance(wanted, str):
                    self.close_connection = True
                    return
                if isinstance(wanted, Endless):
                    self.close_connection = True
                    stub._send(self.wfile, wanted)
                    return
                content = wanted.body if isinstance(wanted.body, bytes) else json.dumps(wanted.body).encode()
                self.send_response(wanted.status)
                for name, value in (*wanted.headers, ("Content-Length", str(len(content)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def _send(self, file: BufferedIOBase, endless: Endless) -> None:
        try:
            file.write(endless.begin)
            for _ in range(endless.most):
                if self._over.wait(endless.pause_s):
                    return
                file.write(endless.part)
                self.sent += len(endless.part)
        except OSError:
            self.left.set()

    def close(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
