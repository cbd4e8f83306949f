"""Hostile lines and requests, each determined by a random generator."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from recollect.errors import RecollectError
from recollect.operations.base import all_operations


class Raw(str):
    """Text that stands in JSON as it is."""


def dumped(value: Any) -> str:
    """Return JSON, also of what JSON cannot express."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{dumped(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(dumped, value)) + "]"
    return json.dumps(value)


def codes() -> set[str]:
    """Return the codes of all errors."""

    def below(kind: type[RecollectError]) -> Iterator[str]:
        if kind.__module__.startswith("recollect."):
            yield kind.code
        for each in kind.__subclasses__():
            yield from below(each)

    return set(below(RecollectError))


_STRANGE: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    3,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    0.5,
    -0.0,
    1e308,
    "",
    " ",
    "x",
    "absent",
    "report",
    "raise",
    "update",
    "\0",
    "a\0b",
    "\ud800",
    "\udfff\ud800",
    Raw('"\\ud83d"'),
    Raw('"\\u0000"'),
    "\u202e\u0007\u001b[31m",
    "\ufffe\uffff",
    "user=ana",
    "user=",
    "not " * 300 + "user=a",
    "(" * 3000,
    "kind=fact and tags=a",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    "0000-00-00",
    "PT1H",
    "a" * 64,
    "f" * 40,
    "x" * 3000,
    "en",
    "de-AT-" + "x" * 300,
    "../../etc/passwd",
    "/dev/null",
    "/nonexistent/folder/file",
    "*",
    '"unclosed',
    "NEAR(",
    "%s%n",
    "__class__",
    "self",
    [],
    [None],
    [[]],
    [[[[]]]],
    [1, "a", None],
    ["a", "a"],
    [{}],
    ["\0"],
    {},
    {"": ""},
    {"op": "remember"},
    {"base64": "AAAA"},
    {"base64": "!!!"},
    {"base64": 5},
    {"user": "ana"},
    {"user": None},
    {"content": "x"},
    {"self": 1},
    {"\ud800": 1},
    {"a": {"b": {"c": {}}}},
    {"in": {}},
]
#: What is no JSON, or JSON that cannot be read. One of them spoils a whole line.
_BROKEN: list[Any] = [
    Raw("NaN"),
    Raw("Infinity"),
    Raw("0x10"),
    Raw("01"),
    Raw('"\\x41"'),
    Raw("9" * 5000),
    Raw("1e400"),
    Raw("-1e400"),
    Raw("[" * 500 + "]" * 500),
    Raw("[" * 5000 + "]" * 5000),
    Raw('{"a":' * 500 + "1" + "}" * 500),
    Raw("[" * 200),
    Raw(""),
    Raw("}"),
]
_TURNS: list[Any] = [
    [{"role": "user", "content": "hello"}],
    [{"role": "user"}],
    [{"role": 5, "content": "x"}],
    [{"role": "user", "content": None}],
    [{"role": "user", "content": "x", "time": 5}],
    [{"role": "\0", "content": "\0", "name": [], "metadata": 5}],
    [{"role": "tool", "content": "x", "metadata": {"a": "\ud800"}, "speaker": {}}],
    "user",
]
_FILTERS: list[Any] = [
    {"equals": ["user", "ana"]},
    {"and": []},
    {"not": {"not": {"not": {}}}},
    {"op": "and", "parts": [{}]},
    {"field": "user", "is": "a"},
    {"user": {"in": [1, None, {}]}},
]


class Hostile:
    """Makes hostile values, lines and requests.

    Args:
        seed: Determines them.
    """

    def __init__(self, seed: int | str) -> None:
        self.rng = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        """Return a strange value."""
        rng = self.rng
        if depth < 3 and rng.random() < 0.1:
            return {
                rng.choice(("op", "content", "a", "user", "")): self.value(depth + 1) for _ in range(rng.randrange(4))
            }
        if depth < 3 and rng.random() < 0.1:
            return [self.value(depth + 1) for _ in range(rng.randrange(4))]
        return rng.choice(_BROKEN if rng.random() < 0.01 else _STRANGE)

    def field(self, name: str, depth: int) -> Any:
        """Return a value of a field of an operation: of the right type, often, and strange, often."""
        rng = self.rng
        if name in ("timeout", "seconds") and rng.random() < 0.9:
            return rng.choice((0, 0.001, -1, None, "x", [], {}, 10**400, Raw("1e400"), True))
        if name in ("items", "operations") and depth < 3:
            return [self.operation(depth + 1) for _ in range(rng.randrange(4))] if rng.random() < 0.8 else self.value()
        if name == "operation" and depth < 3:
            return self.operation(depth + 1)
        if name == "turns" and rng.random() < 0.8:
            return rng.choice(_TURNS)
        if name == "where" and rng.random() < 0.5:
            return rng.choice(_FILTERS)
        if name in ("fields", "changes") and rng.random() < 0.8:
            known = ("user", "kind", "tags", "metadata", "time", "expires", "importance", "parent", "links", "id")
            return {name: self.value(1) for name in rng.sample(known, rng.randrange(1, 4))}
        if name == "path":  # of a backup: nothing is written
            return rng.choice(("", "\0", "/dev/null", 5, None, [], "/nonexistent/x", "\ud800"))
        if rng.random() < 0.5:
            return rng.choice(("note", "hello there", 1, 2, 0.5, True, None, ["note"], {"a": 1}))
        return self.value(1)

    def operation(self, depth: int = 0) -> dict[str, Any]:
        """Return an operation with strange fields."""
        rng = self.rng
        name = rng.choice(sorted(all_operations()))
        kind = all_operations()[name]
        out: dict[str, Any] = {"op": name}
        for each in fields(kind):  # type: ignore[arg-type]
            needed = each.default is each.default_factory  # both are MISSING
            if rng.random() < (0.97 if needed else 0.25):
                out[each.name] = self.field(each.name, depth)
        if name == "wait" and not isinstance(out.get("timeout"), (str, bool, type(None))):
            out["timeout"] = 0
        if rng.random() < 0.03:
            out[rng.choice(("self", "name", "", "in_batch", "\ud800", "op "))] = self.value()
        if rng.random() < 0.02:
            out["op"] = self.value()
        return out

    def place(self) -> Any:
        """Return a strange place."""
        rng = self.rng
        if rng.random() < 0.2:
            return self.value()
        keys = ("namespace", "beside", "scope", "actor", "reason", "key", "nope", "\ud800", "")
        out = {key: self.value(1) for key in rng.sample(keys, rng.randrange(1, 4))}
        if rng.random() < 0.5:
            out["namespace"] = rng.choice(("other", "default", "a/b", "x" * 300, "\0", "..", "é", "#", ""))
        if rng.random() < 0.3:
            out["beside"] = rng.choice(("glossary", "sdr", "outline", "x", ["glossary"], {}))
        if rng.random() < 0.3:
            out["scope"] = {rng.choice(("user", "agent", "conversation", "x", "self")): self.value(2)}
        return out

    def message(self) -> dict[str, Any]:
        """Return a message to the socket."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.65:
            out = self.operation()
        elif kind < 0.85:
            out = {"action": rng.choice(("ping", "stats", "store", "query", "nope", self.value(1)))}
            for name in ("text", "metadata", "limit", "rule", "minimum", "x"):
                if rng.random() < 0.4:
                    out[name] = self.value(1)
        elif kind < 0.92:
            out = {"batch": rng.choice(("begin", "commit", "undo", "undo", self.value()))}
            if rng.random() < 0.5:
                out["expect_head"] = self.value()
        else:
            out = {"export": rng.choice(("open", "read", "close", self.value()))}
        if rng.random() < 0.2:
            out["in"] = self.place()
        if rng.random() < 0.03:
            out[rng.choice(("op", "action", "batch", "export"))] = self.value()
        return out

    def line(self) -> bytes:
        """Return a line."""
        rng = self.rng
        data = dumped(self.message()).encode("utf-8", "surrogatepass")
        kind = rng.random()
        if kind < 0.8:
            return data
        if kind < 0.83:
            return dumped(self.value()).encode("utf-8", "surrogatepass")
        return self.bent(data).replace(b"\n", b"")

    def bent(self, data: bytes) -> bytes:
        """Return data cut off, or with some bytes replaced, doubled or inserted."""
        rng = self.rng
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(data) + 1)
            match rng.randrange(5):
                case 0:
                    data = data[:at]
                case 1:
                    data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
                case 2:
                    data = data[:at] + rng.choice((b"\xff\xfe", b"\xed\xa0\x80", b"\x00", b"\xf8\x88")) + data[at:]
                case 3:
                    data = data[:at] + data[at : at + 20] * 2 + data[at + 20 :]
                case _:
                    data = rng.choice((b"\xef\xbb\xbf", b" ", b"\t", b"[", b"\r")) + data
        return data

    def request(self) -> tuple[str, bytes]:
        """Return the method and the bytes of a request over HTTP. After it, the server may close the connection."""
        rng = self.rng
        path, method = self.path()
        if rng.random() < 0.1:
            method = rng.choice(("POST", "GET", "PATCH", "DELETE", "HEAD", "OPTIONS", "PUT", "TRACE"))
        if rng.random() < 0.03:
            method = rng.choice(("get", "FOO", "A" * 300, "P\xc3\xb6ST", "GE T", ""))
        body = dumped(self.message() if rng.random() < 0.7 else self.readable()).encode("utf-8", "surrogatepass")
        if rng.random() < 0.1:
            body = self.bent(body)
        if "/changes" in path:
            accept = "application/json"  # a stream of events has no end
        else:
            accept = rng.choice(("*/*", "text/event-stream", "\x7f", "application/json;q=x"))
        headers: list[tuple[str, str]] = [("Host", "localhost"), ("Accept", accept)]
        if rng.random() < 0.15:
            host = rng.choice(
                ("evil.example", "127.0.0.1:1", "[::1]", "", ":", "localhost:99999999", "[", "a b", "\xff")
            )
            headers[0] = ("Host", host)
        if rng.random() < 0.02:
            headers.append(("Host", "localhost"))
        if rng.random() < 0.1:
            origin = rng.choice(("http://localhost", "null", "https://evil.example", "", "http://localhost:1", "\xff"))
            headers.append(("Origin", origin))
        for name in ("Idempotency-Key", "Authorization", "If-None-Match", "Last-Event-ID", "Content-Type", "Cookie"):
            if rng.random() < 0.15:
                headers.append((name, rng.choice(_HEADERS)))
        return method, self.framed(method, path, headers, body if method not in ("GET", "HEAD") else b"")

    def framed(self, method: str, path: str, headers: list[tuple[str, str]], body: bytes) -> bytes:
        """Return a request with a body that is stated well, or badly in a way that ends the request."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.75:
            headers.append(("Content-Length", str(len(body))))
        elif kind < 0.9:
            cuts = sorted(rng.randrange(len(body) + 1) for _ in range(rng.randrange(3)))
            parts = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part) + b"0\r\n\r\n"
            headers.append(("Transfer-Encoding", "chunked"))
        else:
            wrong = (
                ("Content-Length", "-1"),
                ("Content-Length", "x"),
                ("Content-Length", "9" * 30),
                ("Content-Length", "\xb2"),
                ("Content-Length", "999999999"),
                ("Content-Length", f"{len(body)}, {len(body) + 1}"),
                ("Transfer-Encoding", "gzip"),
                ("Transfer-Encoding", "chunked, chunked"),
            )
            headers.append(rng.choice(wrong))
            if headers[-1][1] == "999999999" and (method == "HEAD" or "/import" in path):
                headers.pop()  # it would be waited for
            if headers[-1][0] == "Transfer-Encoding":
                body = b"zz\r\n" + body
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        version = rng.choice(("HTTP/1.1",) * 30 + ("HTTP/1.0", "HTTP/9.9", "HTTP/2", ""))
        return f"{method} {path} {version}\r\n{lines}\r\n".encode("latin-1") + body

    def readable(self) -> dict[str, Any]:
        """Return a body for a readable route."""
        out: dict[str, Any] = {name: self.value(1) for name in self.rng.sample(_NAMES, self.rng.randrange(1, 5))}
        if self.rng.random() < 0.6:
            out |= {"content": "x", "question": "x", "messages": [{"role": "user", "content": "x"}]}
        return out

    def path(self) -> tuple[str, str]:
        """Return a path, perhaps with a query, and a method that fits."""
        rng = self.rng
        strange = ("other", "%00", "%ff", "%ED%A0%80", "..", "a%2Fb", "x" * 300, "", "%")
        namespace = "default" if rng.random() < 0.85 else rng.choice(strange)
        end, methods = rng.choice(_ROUTES)
        method, path = rng.choice(methods.split()), f"/v1/{namespace}{end}"
        if rng.random() < 0.08:
            path = rng.choice(_OTHER_PATHS)
        if rng.random() < 0.5:
            query = (f"{rng.choice(_QUERY)}={rng.choice(_QUERY_VALUES)}" for _ in range(rng.randrange(1, 4)))
            path += "?" + "&".join(query)
        return path, method


_NAMES = (
    "content question messages id k limit where metadata tags user self in max_tokens expect_head memory recency "
    "language kind time turns fields"
).split()
_HEADERS = ("", "k", "x" * 300, "Bearer x", "Basic eA==", '"', "*", 'W/"x", "y"', "\xe9", "\x01", "5", "-1")
_ROUTES = (
    ("/execute", "POST"),
    ("/execute", "POST"),
    ("/execute", "POST"),
    ("/remember", "POST"),
    ("/messages", "POST"),
    ("/recall", "GET POST"),
    ("/context", "GET POST"),
    ("/records", "GET"),
    ("/records/note", "GET PATCH DELETE"),
    ("/records/%00", "GET PATCH DELETE"),
    ("/records/a/b%ff", "GET PATCH DELETE"),
    ("/history/note", "GET"),
    ("/history/%ff", "GET"),
    ("/changes", "GET"),
    ("/export", "GET POST"),
    ("/import", "POST"),
    ("/batches/x/execute", "POST"),
    ("/batches/x/commit", "POST"),
    ("/batches/x", "DELETE"),
    ("/nope", "GET"),
    ("/execute/", "POST"),
    ("//", "GET"),
)
_OTHER_PATHS = "/ /openapi.json /healthz /readyz /metrics /../../etc/passwd * http://evil/ /\x7f /\xe9".split(" ")
_QUERY = (
    "question question k limit where since user after order self expect max_tokens min_confidence agent conversation "
    "language x record_id %ff"
).split()
_QUERY_VALUES = ("", "1", "-1", "x", "9" * 5000, "1e999", "nan", "%00", "%ff", "%ED%A0%80", "user%3Dana", "x" * 500)
