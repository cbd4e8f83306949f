"""`RemoteExecutor`, what a memory stands on whose store a server has: operations go over a wire."""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from recollect.arguments.signatures import named
from recollect.common.platforms import check_unix_sockets
from recollect.engine.feed import CommitLog, Feed
from recollect.engine.results import Export
from recollect.engine.scope import Scope
from recollect.errors import ClosedError, CommitInDoubtError, InvalidArgumentError, StoreBusyError, StoreServerError
from recollect.ledger.commits import Branch
from recollect.memory.memory import Memory, namespace_name
from recollect.operations import (
    Changes,
    Now,
    OpenExport,
    Operation,
    ReadHead,
    Wait,
    check_count,
    check_key,
    check_label,
    check_timeout,
)
from recollect.wire import READ, Place, read_result, request_json, send_all
from recollect.wire.client.nodes import Nodes, check_addresses
from recollect.wire.client.pages import RemoteLog, RemoteWatch, read_whole
from recollect.wire.client.transport import Channel, LostError, Patience, Transport
from recollect.wire.seen import SeenCommits

#: Maximum number of items of a write that gets a key: what one commit of a bulk write stores.
_BULK = 1000


class RemoteExecutor:
    """An `Executor` whose operations a server executes.

    Each write that can have an idempotency key gets one, so that it is repeated safely if its answer is lost. With one
    server, a bulk write gets none: it would become one long commit.

    Args:
        transport: Exchanges messages with the server.
        patience: How long a client waits, and how often it tries.
        keys_all: Whether each write gets a key, however long and however often it may be tried: with several nodes.
    """

    def __init__(self, transport: Transport, patience: Patience, *, keys_all: bool = False) -> None:
        self._keys_all = keys_all
        self._transport = transport
        self._patience = patience
        self._seen = SeenCommits()
        self._watch = RemoteWatch(transport.address)
        self._feed = Feed(self._watch)
        self._in_batch: set[int] = set()  # the threads that have a batch open

    @property
    def location(self) -> str:
        """The address of the server."""
        return self._transport.address

    @property
    def nodes(self) -> Nodes | None:
        """The nodes, if it was connected to several addresses."""
        return self._transport if isinstance(self._transport, Nodes) else None

    @property
    def embedder(self) -> None:
        """None: the server has the embedding model, if there is one."""
        return None

    def execute(self, operation: Operation, place: Place) -> Any:
        """Execute an operation and return its result. See `Executor.execute`."""
        if isinstance(operation, OpenExport):
            return self._export(Place(place.branch, place.scope), operation.parts)
        _check(place)
        if operation.needs != READ:
            self._check_thread()
        gets_key = self._keys_all or (self._patience.retries and _size(operation) <= _BULK)
        if place.key is None and operation.can_have_key and gets_key:
            place = place._replace(key=secrets.token_hex(16))
        try:
            result = send_all(operation, lambda each: self._sent(each, place))
        except ClosedError as error:
            error.unchanged = operation.needs != READ
            raise
        if operation.needs != READ:
            self._feed.wake(place.branch)
        return result

    def _sent(self, operation: Operation, place: Place) -> Any:
        def send(asked: Operation, rest: Mapping[str, Any] | None) -> Any:
            return self._exchanged(asked, place, rest)

        return read_whole(operation, send, lambda: self._state(Place(place.branch, place.scope)))

    def _state(self, place: Place) -> object:
        """Return what is another value after each commit that a scope sees."""
        if not place.scope.fixed:
            return self.execute(ReadHead(), place)
        return [each.cursor for each in self.execute(Changes(limit=1, newest_first=True), place)]

    def _exchanged(self, operation: Operation, place: Place, rest: Mapping[str, Any] | None) -> Any:
        """Send an operation and return its answer, which is no error, as parsed JSON."""
        message = request_json(operation, place) | ({} if rest is None else {"rest": rest})
        namespace = place.branch.owner.namespace
        timeout_s = self._patience.timeout_s + (operation.timeout if isinstance(operation, Wait) else 0.0)
        repeatable = place.key is not None or operation.needs == READ

        def attempt() -> Any:
            answer = self._transport.exchange(message | {"seen": self._seen.stated(namespace)}, timeout_s)
            if isinstance(answer, dict):
                self._seen.note(namespace, answer.pop("seq", None), wrote=operation.needs != READ)
            read_result(answer)  # raises what another attempt may succeed after
            return answer

        changes = operation.needs != READ
        return self._patience.run(self.location, attempt, repeatable=repeatable, changes=changes)

    def _export(self, place: Place, parts: Collection[str] | None) -> Export:
        resources = ExitStack()

        def attempt() -> Export:
            seen = self._seen.stated(place.branch.owner.namespace)
            opened = resources.enter_context(self._transport.export(place, parts, seen))
            others = [replace(each, records=self._exported(each.records)) for each in opened.parts]
            return Export(opened.root, opened.count, self._exported(opened.records), resources, others)

        return self._patience.run(self.location, attempt, repeatable=True)

    def _exported(self, records: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from records
        except LostError as lost:
            raise StoreServerError(self.location, str(lost)) from None

    @contextmanager
    def batch(self, place: Place, expect_head: int | None) -> Iterator[RemoteBatch]:
        """Open a batch on the server, which holds its write lock until the block ends, for at most some seconds."""
        _check(place)
        self._check_thread()
        thread = threading.get_ident()
        with ExitStack() as stack:
            channel = self._patience.run(
                self.location,
                lambda: stack.enter_context(self._transport.batch(place, expect_head)),
                repeatable=True,  # a batch that is opened and abandoned changes nothing
            )
            batch = RemoteBatch(channel, place, self.location)
            self._in_batch.add(thread)
            try:
                yield batch
                batch.open = False
                batch.check()
                stack.close()  # commits
                self._seen.note(place.branch.owner.namespace, channel.seq, wrote=True)
            except LostError as lost:
                if not lost.sent:
                    raise _undone(self.location, str(lost)) from None
                raise CommitInDoubtError(self.location, str(lost)) from None
            finally:
                batch.open = False
                self._in_batch.discard(thread)
        self._feed.wake(place.branch)

    def _check_thread(self) -> None:
        """Raise StoreBusyError if this thread has a batch open, whose lock it would wait for in vain."""
        if threading.get_ident() in self._in_batch:
            error = StoreBusyError(self.location, "this thread is inside a batch: use the batch's own calls")
            error.unchanged = True
            raise error

    def log(self, branch: Branch, scope: Scope, parts: Collection[str] | None = None) -> CommitLog:
        """Return the log of a branch as a scope sees it."""
        return self._watch.add(RemoteLog(branch, scope, self.execute, parts))

    @property
    def feed(self) -> Feed:
        """Wakes the subscribers of a branch. It asks the server four times a second while there are any."""
        return self._feed

    def close(self) -> None:
        """Stop the listeners and close the connections. The server goes on."""
        self._feed.close()
        self._transport.close()
        self._feed.join()


def _check(place: Place) -> None:
    """Raise InvalidArgumentError unless the actor, the reason and the key of a place are valid."""
    for name in ("actor", "reason"):
        if getattr(place, name) is not None:
            check_label(name, getattr(place, name))
    if place.key is not None:
        check_key(place.key)


def _size(operation: Operation) -> int:
    """Return how many items an operation writes."""
    return len(getattr(operation, "items", ()) or getattr(operation, "turns", ()))


class RemoteBatch:
    """A `BatchExecutor` for a batch on a server.

    Attributes:
        open: False once the batch has ended.
    """

    def __init__(self, channel: Channel, place: Place, location: str) -> None:
        self._channel = channel
        self._place = place
        self._location = location
        self._lost = ""  # why an operation has no answer
        self.open = True

    def execute(self, operation: Operation) -> Any:
        """Execute an operation and return its result. See `BatchExecutor.execute`."""
        if not self.open:
            raise ClosedError("the batch")
        self.check()
        return send_all(operation, self._sent)

    def check(self) -> None:
        """Raise StoreServerError if an operation has no answer: it is not known what the batch would commit."""
        if self._lost:
            raise _undone(self._location, self._lost)

    def _sent(self, operation: Operation) -> Any:
        return read_whole(operation, self._exchanged, lambda: None)  # no one else writes meanwhile

    def _exchanged(self, operation: Operation, rest: Mapping[str, Any] | None) -> Any:
        message = request_json(operation, self._place._replace(actor=None, reason=None))
        message |= {} if rest is None else {"rest": rest}
        self._lost = "an operation was interrupted"
        try:
            answer = self._channel.exchange(message)
        except LostError as lost:
            self._lost = str(lost)
            self.check()
        self._lost = ""
        return answer


def _undone(location: str, why: str) -> StoreServerError:
    return StoreServerError(location, f"{why}; the batch is undone")


# Connecting to a server: from an address to a memory.

_UNIX = "unix://"
#: Seconds that connecting to one of several nodes may take: another one can be asked.
_CONNECT_S = 3.0


@named
def connect(
    address: str | Sequence[str] = _UNIX,
    namespace: str = "default",
    *,
    token: str | None = None,
    timeout: float = 60.0,
    retries: int = 3,
) -> Memory:
    """Connect to a server (`recollect serve`) and return a memory: the same calls, executed by the server.

        memory = recollect.connect("unix:///run/user/1000/recollect/recollect.sock")
        memory.remember("Ana prefers window seats", user="ana")

    What cannot be sent raises UnsupportedError: custom filters, functions passed to `update`, progress callbacks. Paths
    (`backup`) are paths on the machine of the server.

    Args:
        address: "unix:///PATH" (without a path: the socket in the user's runtime folder), or "http://HOST:PORT" or
            "https://HOST", perhaps with a path. Several addresses are nodes of one store: the calls of a namespace go
            to the same one while it answers, and else to another one. Then each write carries an idempotency key, and
            a bulk write is one commit.
        namespace: The name of the namespace.
        token: The token that the server expects, over HTTP.
        timeout: Seconds that an answer may take, above 0 to 86,400.
        retries: How often a message is sent again if the connection fails or the server is busy, 0 or more. Only
            messages that change nothing, or carry an idempotency key, are repeated; with retries, every write carries
            one that can.

    Returns:
        The memory. Close it with `close()`, or use it as a context manager. For asyncio, pass it to `AsyncMemory`.

    Raises:
        InvalidArgumentError: An argument is invalid.
        StoreServerError: The server cannot be reached.
        ServerVersionError: It speaks another version of the protocol.
        TokenError: It needs a token, or another one.
        AccessError: The token does not allow to read the namespace.
    """
    check_timeout(timeout)
    if not timeout:
        raise InvalidArgumentError("timeout", timeout, "must be above 0")
    check_count("retries", retries, least=0)
    if token is not None and not (isinstance(token, str) and token.isascii() and token.isprintable() and token):
        raise InvalidArgumentError("token", "...", "must be printable ASCII text, without a line break at its end")
    branch = Branch(namespace_name(namespace))
    transport: Transport
    if isinstance(address, str):
        several, transport = False, _transport(address, token, float(timeout))
    else:
        if not isinstance(address, Sequence) or isinstance(address, bytes):
            raise InvalidArgumentError("address", address, _RULE)
        transports = [_transport(each, token, float(timeout), _CONNECT_S) for each in address]
        check_addresses([each.address for each in transports])
        several, transport = len(transports) > 1, Nodes(transports)
        try:
            transport.compare()
        except BaseException:
            transport.close()
            raise
    memory = Memory(RemoteExecutor(transport, Patience(float(timeout), retries), keys_all=several), branch)
    try:
        memory.execute(Now())
    except BaseException:
        memory.close()
        raise
    return memory


_RULE = "must be unix:///PATH, http://HOST:PORT or https://HOST, or several of them as a list of strings"


def _transport(address: str, token: str | None, timeout_s: float, connect_s: float = math.inf) -> Transport:
    connect_s = min(timeout_s, connect_s)
    if not isinstance(address, str) or "\0" in address:
        raise InvalidArgumentError("address", address, _RULE)
    if address.startswith(_UNIX):
        if token is not None:
            raise InvalidArgumentError("token", "...", "is for HTTP: a socket knows its users")
        check_unix_sockets("an address that begins with unix://", "use http://HOST:PORT")
        from recollect.wire.client.unix import UnixTransport

        return UnixTransport(address.removeprefix(_UNIX) or _default_socket(), timeout_s, connect_s)
    from recollect.wire.client.http import HttpTransport

    return HttpTransport(address, token, timeout_s, connect_s)


def _default_socket() -> str:
    from recollect.wire import default_socket

    return str(default_socket())
