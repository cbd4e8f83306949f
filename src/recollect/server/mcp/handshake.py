"""MCP over standard input and output for clients that shake hands, without the SDK.

To import the SDK takes longer than all else that a server does until its first answer. A client that begins with
`initialize` (revisions 2024-11-05 to 2025-11-25) is served here. If the first request is of a later revision, `serve`
returns what is left to read, and the SDK's server goes on (`stdio`).

There is one client, so its calls are made one after the other, in another thread than the one that reads. Memory is
bounded whatever the client sends: no further request is read while `REQUESTS` are not answered, also if the client does
not read the answers.
"""

from __future__ import annotations

import json
import logging
import os
import select
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from queue import SimpleQueue
from typing import Any, cast

from recollect import Commit, Memory
from recollect._version import __version__
from recollect.arguments.checks import is_integer
from recollect.errors import RecollectError
from recollect.server.mcp import reference
from recollect.server.mcp.lines import INVALID_REQUEST, METHOD_NOT_FOUND, Message, Refusal, RequestId, parsed
from recollect.server.mcp.replies import INTERNAL_ERROR, INVALID_PARAMS, Json, Replies, ReplyError, actor_of, failure
from recollect.server.mcp.tools import Access, ToolError

#: The revisions that begin with a handshake. A client that offers another one gets the last.
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
#: Maximum number of requests that are not answered yet.
REQUESTS = 16
#: What a request of a later revision has in "_meta".
_LATER = "io.modelcontextprotocol/protocolVersion"
#: Seconds in which requests are still answered after the input has ended.
_PATIENCE_S = 30.0
#: Maximum number of seconds until a change is noticed that no commit announces.
_POLL_S = 1.0
_log = logging.getLogger("recollect")


class Handshake:
    """A server for the client that started it.

    Args:
        replies: What it answers.
        write: Writes a line to the client. Raises OSError if it is gone.
        gone: Called once if it is, so that reading ends.
    """

    def __init__(
        self, replies: Replies, write: Callable[[bytes], object], gone: Callable[[], object] = lambda: None
    ) -> None:
        self._gone = gone
        self._replies = replies
        self._write_line = write
        self._writing = threading.Lock()
        self._is_accepted = False
        self._actor: str | None = None
        self._room = threading.Semaphore(REQUESTS)
        self._open: dict[RequestId, _Request] = {}
        self._lock = threading.Lock()  # of `_open`, and of the states of requests
        self._calls: SimpleQueue[_Request | None] = SimpleQueue()
        self._is_gone = False
        self._graph = _GraphWatch(replies.access, self._notify_graph, self._end)
        self._methods: dict[str, Callable[[_Request], Json]] = {
            "tools/call": self._call_tool,
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,  # after the subscription that was before it
            "prompts/get": self._get_prompt,
        }

    def serve(self, lines: Iterator[bytes], *, later: bool = True) -> Iterator[bytes] | None:
        """Answer until the input ends.

        Args:
            lines: The lines of the client.
            later: Whether another server can go on if the first request is of a later revision.

        Returns:
            What is left to read for that server; otherwise None.
        """
        worker = threading.Thread(target=self._work, name="recollect-mcp-calls", daemon=True)
        worker.start()
        begun = False
        with suppress(OSError):  # the client is gone
            for line in lines:
                item = parsed(line)
                if isinstance(item, Refusal):
                    self._answer(item.id, error=(item.code, item.text))
                elif item is not None and item.method is not None:
                    if item.id is not None and not begun and later and item.method != "initialize" and _is_later(item):
                        self._calls.put(None)
                        return chain([line], lines)
                    begun = begun or item.id is not None
                    self._take(item)
                if self._is_gone:
                    return None
        self._calls.put(None)
        worker.join(_PATIENCE_S)
        return None

    def _take(self, message: Message) -> None:
        if message.id is None:
            if message.method == "notifications/cancelled":
                self._cancel(message.params.get("requestId"))
            return
        if message.id in self._open:
            text = "a request with this id is not answered yet: use another id for each request"
            self._answer(message.id, error=(INVALID_REQUEST, text))
            return
        try:
            reply = self._at_once(message)
        except ReplyError as error:
            self._answer(message.id, error=(error.code, error.text))
            return
        if reply is not None:
            self._answer(message.id, reply)
            return
        while not self._room.acquire(timeout=1.0):
            if self._is_gone:
                return
        request = _Request(message.id, message.method or "", message.params)
        with self._lock:
            self._open[message.id] = request
        self._calls.put(request)

    def _at_once(self, message: Message) -> Json | None:
        """Return the answer to a request that no call is made for; None if one is made.

        Raises:
            ReplyError: The answer is an error.
        """
        method, params, replies = message.method or "", message.params, self._replies
        if method == "initialize":
            return self._initialize(params)
        if _is_later(message):
            rule = "this connection began with a handshake: requests of later revisions are not accepted on it"
            raise ReplyError(INVALID_REQUEST, rule)
        at_once: dict[str, Callable[[], Json]] = {
            "ping": dict,
            "tools/list": lambda: replies.tools,
            "resources/list": lambda: replies.resources,
            "prompts/list": lambda: replies.prompts,
        }
        if method not in at_once and method not in self._methods:
            raise ReplyError(METHOD_NOT_FOUND, "Method not found")
        if not self._is_accepted and method != "ping":
            raise _invalid()
        if method.endswith("/list") and not isinstance(params.get("cursor"), (str, type(None))):
            raise _invalid()
        return at_once[method]() if method in at_once else None

    def _initialize(self, params: Mapping[str, Any]) -> Json:
        stated, client = _text(params, "protocolVersion"), params.get("clientInfo")
        if not isinstance(client, Mapping) or not isinstance(params.get("capabilities"), Mapping):
            raise _invalid()
        name, _ = _text(client, "name"), _text(client, "version")
        self._is_accepted, self._actor = True, actor_of(name)
        return {
            "protocolVersion": stated if stated in VERSIONS else VERSIONS[-1],
            "capabilities": {
                "prompts": {"listChanged": False},
                "resources": {"subscribe": True, "listChanged": False},
                "tools": {"listChanged": False},
            },
            "serverInfo": {"name": "recollect", "title": "Recollect", "version": __version__},
            "instructions": self._replies.instructions,
        }

    def _cancel(self, request_id: object) -> None:
        """Leave a request without an answer. What has begun runs to its end: a write must not be cut off."""
        with self._lock:
            is_id = isinstance(request_id, str) or is_integer(request_id)
            if is_id and (request := self._open.get(cast("RequestId", request_id))) is not None:
                request.is_cancelled = True

    # Calls, in the thread for them

    def _work(self) -> None:
        while (request := self._calls.get()) is not None:
            try:
                self._answered(request)
            except OSError:
                self._end()
                return
            finally:
                self._room.release()

    def _end(self) -> None:
        """End reading: the client is gone."""
        with self._lock:
            was_gone, self._is_gone = self._is_gone, True
        if not was_gone:
            self._gone()

    def _answered(self, request: _Request) -> None:
        if request.is_cancelled:
            with self._lock:
                del self._open[request.id]
            return
        try:
            answer = _line(request.id, self._methods[request.method](request))
        except ReplyError as found:
            answer = _line(request.id, error=(found.code, found.text))
        except RecollectError as found:
            answer = _line(request.id, error=(INTERNAL_ERROR, str(found)))
        except Exception as found:  # noqa: BLE001 - a fault of ours must not end the server
            text = f"internal error in {request.method}: {type(found).__name__}"
            _log.error(text)  # without its message, which may quote contents
            answer = _line(request.id, error=(INTERNAL_ERROR, text))
        with self._lock:
            del self._open[request.id]  # before the answer, after which the client may use the id again
        if not request.is_cancelled:
            self._send(answer)

    def _call_tool(self, request: _Request) -> Json:
        name, arguments = _text(request.params, "name"), request.params.get("arguments")
        if not isinstance(arguments, (Mapping, type(None))):
            raise _invalid()
        tool = self._replies.tool(name)
        if tool is None:
            return self._replies.unknown_tool(name)
        try:
            if not tool.graph or tool.reads:
                return self._replies.call(tool, arguments, self._actor)
            with self._graph.writing:
                result = self._replies.call(tool, arguments, self._actor)
                self._graph.notify()
            return result
        except ToolError as error:
            return failure(str(error))

    def _read_resource(self, request: _Request) -> Json:
        self._replies.check_resource(_text(request.params, "uri"))
        return self._replies.resource()

    def _subscribe(self, request: _Request) -> Json:
        """Notify the client of changes of the graph. A subscription to something else is never notified."""
        if _text(request.params, "uri") == reference.RESOURCE:
            self._graph.begin()
        return {}

    def _unsubscribe(self, request: _Request) -> Json:
        if _text(request.params, "uri") == reference.RESOURCE:
            self._graph.end()
        return {}

    def _get_prompt(self, request: _Request) -> Json:
        arguments = request.params.get("arguments")
        self._replies.check_prompt(_text(request.params, "name"))
        if arguments is not None and not (
            isinstance(arguments, Mapping) and all(isinstance(each, str) for each in arguments.values())
        ):
            raise _invalid()
        return self._replies.prompt(arguments)

    # Writing

    def _notify_graph(self) -> None:
        params = {"uri": reference.RESOURCE}
        self._send(_encoded({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}))

    def _answer(
        self, request_id: RequestId | None, reply: Json | None = None, error: tuple[int, str] | None = None
    ) -> None:
        self._send(_line(request_id, reply, error))

    def _send(self, line: bytes) -> None:
        with self._writing:
            self._write_line(line)


class _Request:
    """A request that is not answered yet."""

    __slots__ = ("id", "is_cancelled", "method", "params")

    def __init__(self, request_id: RequestId, method: str, params: Mapping[str, Any]) -> None:
        self.id = request_id
        self.method = method
        self.params = params
        self.is_cancelled = False


class _GraphWatch:
    """What notices changes of the knowledge graph, whichever process made them, for one subscriber.

    Args:
        access: The memory.
        send: Notifies the client.
        gone: Called if that fails.

    Attributes:
        writing: Locked while a call of this server changes the graph: it notifies itself.
    """

    def __init__(self, access: Access, send: Callable[[], object], gone: Callable[[], object]) -> None:
        self._gone = gone
        self.writing = threading.RLock()
        self._access = access
        self._send = send
        self._changed = threading.Event()
        self._is_subscribed = self._is_listening = False

    def begin(self) -> None:
        """Notify the client from now on.

        Raises:
            RecollectError: The memory cannot be read.
        """
        if not self._is_listening:
            self._access.graph.take_changed()  # what changed before is not reported
            self._access.on_open(self._follow)
            self._is_listening = True
            threading.Thread(target=self._run, name="recollect-mcp-graph", daemon=True).start()
        self._is_subscribed = True

    def end(self) -> None:
        """Notify the client no longer."""
        self._is_subscribed = False

    def notify(self) -> None:
        """Notify the client, if the graph has changed since the last time."""
        if self._is_listening and self._access.has_changed_graph() and self._is_subscribed:
            self._send()

    def _run(self) -> None:
        while True:
            # Without a commit, something may have expired, or the store been created, replaced or deleted.
            self._changed.wait(_POLL_S)
            self._changed.clear()
            try:
                with self.writing:
                    self.notify()
            except OSError:
                self._gone()
                return

    def _follow(self, memory: Memory) -> None:
        memory.listen(self._on_commit)  # until the memory is closed
        self._changed.set()

    def _on_commit(self, _commit: Commit) -> None:
        self._changed.set()


def output(descriptor: int) -> Callable[[bytes], object]:
    """Return a function that writes whole lines to a file descriptor."""

    def write(line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(descriptor, rest) :]
            except BlockingIOError:  # another process has the same pipe, and does not wait for it
                select.select((), (descriptor,), ())

    return write


def _line(request_id: RequestId | None, reply: Json | None = None, error: tuple[int, str] | None = None) -> bytes:
    """Return the line of an answer."""
    out: Json = {"jsonrpc": "2.0", "id": request_id}
    if error is None:
        out["result"] = reply
    else:
        out["error"] = {"code": error[0], "message": error[1]}
    return _encoded(out)


def _encoded(message: Json) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _is_later(message: Message) -> bool:
    meta = message.params.get("_meta")
    return isinstance(meta, Mapping) and _LATER in meta


def _text(params: Mapping[str, Any], name: str) -> str:
    """Return a parameter that is a text. Raise ReplyError if it is none."""
    found = params.get(name)
    if not isinstance(found, str):
        raise _invalid()
    return found


def _invalid() -> ReplyError:
    return ReplyError(INVALID_PARAMS, "Invalid request parameters")
