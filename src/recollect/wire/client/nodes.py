"""Several nodes of one store as one `Transport`.

A namespace's messages go to the first node in its rank (`wire.nodes`) that can be reached. One that fails is left out
until it answers again, which a thread asks for, so that no call waits for a machine that is gone. A message that a node
did not get, or refused because it is stopping, goes to the next one at once; whether one that it may have executed is
sent again is decided as for a single server.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from recollect.errors import STOPPING, InvalidArgumentError, RecollectError, ServerBusyError
from recollect.wire import Place
from recollect.wire.client.transport import Channel, LostError, RemoteExport, Transport
from recollect.wire.nodes import ranked

T = TypeVar("T")
_ONE_STORE = "all must be nodes of one store, which /readyz names"
#: Number of namespaces whose nodes are remembered.
_REMEMBERED = 10_000
#: How long a client waits, when it connects, for all nodes to say which store they have, in seconds.
_COMPARED_S = 1.0
#: The first pause before a node that failed is asked again, in seconds, which doubles, and the longest.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


class NodeState(NamedTuple):
    """The answer of a node that is asked for its store.

    Attributes:
        address: Its address.
        store: What the nodes of one store have in common; "" if it has none yet, or does not answer.
        problem: Why it does not answer; "" if it does.
    """

    address: str
    store: str
    problem: str


class Nodes:
    """A `Transport` over several nodes. Thread-safe.

    Args:
        transports: One for each node.
    """

    def __init__(self, transports: Sequence[Transport]) -> None:
        self.address = ", ".join(each.address for each in transports)
        self._transports = transports
        self._ranked = lru_cache(_REMEMBERED)(partial(ranked, [each.address for each in transports]))
        self._lock = threading.Lock()
        self._down: set[int] = set()
        self._unchecked = set(range(len(transports)))  # nodes that have not said yet which store they have
        self._store = ""
        self._asking: threading.Thread | None = None
        self._closed = threading.Event()

    def compare(self) -> None:
        """Check that all nodes have the same store, before any is used. Those that do not answer in time are left out.

        Raises:
            InvalidArgumentError: They have different stores.
        """
        states = self.states()
        found = [(number, state.store) for number, state in enumerate(states) if state.store]  # else it has none yet
        self._store = found[0][1] if found else ""
        for number, store in found:
            if store != self._store:
                rule = f"has another store than {states[found[0][0]].address}: {_ONE_STORE}"
                raise InvalidArgumentError("address", states[number].address, rule)
            self._unchecked.discard(number)
        for number, state in enumerate(states):
            if state.problem:
                self._failed(number)

    def states(self) -> list[NodeState]:
        """Ask each node which store it has, for a second at most."""
        found: dict[int, NodeState] = {}

        def ask(number: int, transport: Transport) -> None:
            try:
                found[number] = NodeState(transport.address, transport.store(), "")
            except (LostError, RecollectError) as error:
                found[number] = NodeState(transport.address, "", str(error))

        asking = [threading.Thread(target=ask, args=each, daemon=True) for each in enumerate(self._transports)]
        for thread in asking:
            with suppress(RuntimeError):  # no thread can be started: it counts as one that does not answer
                thread.start()
        until = time.monotonic() + _COMPARED_S
        for thread in asking:
            with suppress(RuntimeError):
                thread.join(max(0.0, until - time.monotonic()))
        answers = found.copy()
        late = f"no answer within {_COMPARED_S:g} s"
        return [answers.get(at, NodeState(each.address, "", late)) for at, each in enumerate(self._transports)]

    def first(self, namespace: str) -> str:
        """Return the address of the node that is asked first for a namespace."""
        return self._transports[self._ranked(namespace)[0]].address

    def exchange(self, message: dict[str, Any], timeout_s: float) -> Any:
        """Send a request to a node and return its answer. See `Transport.exchange`."""

        def send(transport: Transport) -> Any:
            answer = transport.exchange(message, timeout_s)
            if _is_stopping(answer):
                raise LostError(f"{transport.address} is stopping", sent=False)
            return answer

        return self._on_a_node(message.get("in", {}).get("namespace", "default"), send)

    @contextmanager
    def batch(self, place: Place, expect_head: int | None) -> Iterator[Channel]:
        """Open a batch on a node. See `Transport.batch`."""
        with ExitStack() as stack:

            def begin(transport: Transport) -> Channel:
                return stack.enter_context(transport.batch(place, expect_head))

            yield self._on_a_node(place.branch.owner.namespace, begin, repeatable=True)

    @contextmanager
    def export(self, place: Place, parts: Collection[str] | None, seen: str) -> Iterator[RemoteExport]:
        """Open a snapshot on a node. See `Transport.export`."""
        with ExitStack() as stack:

            def begin(transport: Transport) -> RemoteExport:
                return stack.enter_context(transport.export(place, parts, seen))

            yield self._on_a_node(place.branch.owner.namespace, begin, repeatable=True)

    def store(self) -> str:
        """Return what the nodes say of their store. See `Transport.store`."""
        return self._store

    def close(self) -> None:
        """Close the connections to all nodes."""
        self._closed.set()
        for each in self._transports:
            each.close()

    def _on_a_node(self, namespace: str, call: Callable[[Transport], T], *, repeatable: bool = False) -> T:
        """Return what a call returns, on the first node in the rank of a namespace on which it does not fail.

        Args:
            call: Sends something to a node.
            repeatable: Whether it may be sent to another one although the first may have got it.

        Raises:
            LostError: It may have been executed, or no node can be reached.
        """
        order = self._ranked(namespace)
        with self._lock:
            down = self._down.copy()
        reasons = []
        for number in [each for each in order if each not in down] + [each for each in order if each in down]:
            transport = self._transports[number]
            try:
                if number in self._unchecked:
                    self._check(number)
                result = call(transport)
            except LostError as lost:
                self._failed(number)
                if lost.sent and not repeatable:
                    raise
                reasons.append(f"{transport.address}: {lost}")
            except ServerBusyError as busy:
                if busy.args[0] != STOPPING:
                    raise
                self._failed(number)
                reasons.append(f"{transport.address}: it is stopping")
            else:
                if number in down:
                    with self._lock:
                        self._down.discard(number)
                return result
        raise LostError(f"no node can be reached ({'; '.join(reasons)})", sent=False)

    def _check(self, number: int) -> None:
        """Check that a node that is used for the first time has the store of the others.

        Raises:
            InvalidArgumentError: It has another one.
            LostError: It cannot be reached.
        """
        transport = self._transports[number]
        try:
            store = transport.store()
        except LostError as lost:
            raise LostError(str(lost), sent=False) from None  # the call itself was not sent
        with self._lock:
            if store and self._store and store != self._store:
                rule = f"has another store than the other addresses: {_ONE_STORE}"
                raise InvalidArgumentError("address", transport.address, rule)
            self._store = self._store or store
            if store:  # else it has none yet
                self._unchecked.discard(number)

    def _failed(self, number: int) -> None:
        """Leave a node out until it answers."""
        with self._lock:
            self._down.add(number)
            if self._closed.is_set() or (self._asking is not None and self._asking.is_alive()):
                return
            arguments = (weakref.ref(self), self._closed)
            self._asking = threading.Thread(target=_keep_asking, args=arguments, name="recollect-nodes", daemon=True)
            self._asking.start()

    def _ask(self) -> int:
        """Ask the nodes that are left out whether they answer. Return the number of those that do."""
        with self._lock:
            down = self._down.copy()
        answered = 0
        for number in down:
            try:
                self._transports[number].store()
            except (LostError, RecollectError):
                continue
            with self._lock:
                self._unchecked.add(number)  # it may have been started again on another store
                self._down.discard(number)
            answered += 1
        return answered

    def _is_asking(self) -> bool:
        """Return whether the thread that asks has to go on; otherwise the next failure starts another one."""
        with self._lock:
            if not self._down:
                self._asking = None
            return bool(self._down)


def _keep_asking(reference: weakref.ref[Nodes], closed: threading.Event) -> None:
    """Ask the nodes that are left out, until all answer, or nobody uses the nodes any longer."""
    pause = _FIRST_PAUSE_S
    while not closed.wait(pause):
        nodes = reference()
        if nodes is None:
            return
        pause = _FIRST_PAUSE_S if nodes._ask() else min(2 * pause, _LONGEST_PAUSE_S)
        if not nodes._is_asking():
            return
        del nodes  # so that it can be collected while this waits


def _is_stopping(answer: Any) -> bool:
    """Return whether an answer is the refusal of a server that is stopping."""
    match answer:
        case {"ok": False, "error": {"code": code, "args": [reason, *_]}}:
            return bool(code == ServerBusyError.code and reason == STOPPING)
    return False


def check_addresses(addresses: Sequence[str]) -> None:
    """Raise InvalidArgumentError unless there are addresses, each once."""
    if not addresses:
        raise InvalidArgumentError("address", addresses, "is empty: name at least one node")
    twice = next((each for at, each in enumerate(addresses) if each in addresses[:at]), None)
    if twice is not None:
        raise InvalidArgumentError("address", twice, "is named twice: name each node once")
