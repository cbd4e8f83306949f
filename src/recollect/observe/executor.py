"""`TracedExecutor`: an executor whose operations make spans. All calls of a memory are operations, so it sees them all.

A call that consists of several operations, such as `context`, announces itself (`calls/whole.py`) and has one span: its
operations make none of their own. The calls of a batch are children of its span, unless the caller has opened a span
inside the block, which is nearer.

A span that is not recorded costs its start and its end: no attribute is computed. What a span says is computed after
the call, and a fault in it is logged and fails no call: the write is stored by then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    Span,
    SpanKind,
    StatusCode,
    TracerProvider,
    get_current_span,
    get_tracer,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from recollect._version import __version__
from recollect.calls.history import PastExecutor
from recollect.engine.core import Core
from recollect.engine.executor import BatchExecutor, Executor, WrappingExecutor
from recollect.engine.results import Outcome
from recollect.engine.scope import Place
from recollect.engine.settings import Policies
from recollect.errors import InvalidArgumentError, RecollectError, RejectedError
from recollect.ledger.commits import Branch
from recollect.memory import Memory
from recollect.observe import conventions as names
from recollect.observe.attributes import Asked, Attributes, answered, asked, contents, shown
from recollect.operations import At, ExecuteBatch, GetPolicies, Operation, check_text
from recollect.policies import CATEGORIES
from recollect.wire.client.executor import RemoteExecutor
from recollect.wire.trace import TRACE

_log = logging.getLogger("recollect")
_propagator = TraceContextTextMapPropagator()
#: Set in the context of a call that consists of several operations, which make no spans.
_WITHIN = contexts.create_key("recollect-within-a-call")


def traced_memory(memory: Memory, provider: TracerProvider | None, with_contents: bool, store_id: str | None) -> Memory:
    """Return a memory whose calls make spans. See `recollect.observe.traced`."""
    if not isinstance(memory, Memory):
        raise InvalidArgumentError("memory", memory, "must be a Memory; for asyncio: AsyncMemory(traced(memory))")
    executor: Any = memory._executor
    if isinstance(executor, PastExecutor):
        raise InvalidArgumentError("memory", memory, "is one of a past moment: traced(memory).at(...) is traced")
    while isinstance(executor, WrappingExecutor):
        if isinstance(executor, TracedExecutor):
            raise InvalidArgumentError("memory", memory, "is traced already")
        executor = executor.executor
    if store_id is not None:
        check_text("store_id", store_id)
    executor = TracedExecutor(memory._executor, provider, with_contents, store_id)
    return Memory(executor, memory._branch, memory._scope, memory._place.origin)


class TracedExecutor(WrappingExecutor):
    """An `Executor` whose operations make spans.

    Args:
        executor: The executor that executes the operations.
        provider: Makes the tracer; None: that of the process.
        with_contents: Whether spans have contents.
        store_id: What spans name the store; None: a hash of the store's id and the namespace.
    """

    def __init__(
        self, executor: Executor, provider: TracerProvider | None, with_contents: bool, store_id: str | None
    ) -> None:
        super().__init__(executor)
        self.tracer = get_tracer("recollect", __version__, provider)
        self.with_contents = with_contents
        self._store_id = store_id
        self._uuid: str | None = None
        self._at_start: dict[tuple[str, str], Attributes] = {}
        innermost: Any = executor
        while isinstance(innermost, WrappingExecutor):
            innermost = innermost.executor
        self._core: Core | None = getattr(innermost, "core", None)
        self.is_client = isinstance(innermost, RemoteExecutor)
        self._server = _server(innermost.location) if self.is_client else {}

    def execute(self, operation: Operation, place: Place) -> Any:
        """Execute an operation. See `Executor.execute`."""
        what = operation.operation if isinstance(operation, At) else operation
        name, here = names.span_name(what.name), contexts.get_current()
        if name is None or _WITHIN in here:
            return self.executor.execute(operation, place)
        span = self.start(name, what.name, here)
        if span is INVALID_SPAN:  # no SDK, and no trace to continue
            return self.executor.execute(operation, place)
        begun = time.time_ns()
        with self.spanning(span, Asked.of(operation, place, self._policies)) as note:
            result = self.executor.execute(operation, place)
            note(result)
            if isinstance(what, ExecuteBatch) and span.is_recording():
                self._parts(span, what, place, result, begun)
            return result

    def whole(
        self, call: str, question: str, place: Place, *, past: bool = False
    ) -> AbstractContextManager[Callable[[Any], None]]:
        """Cover a call that consists of several operations. See `engine.executor.whole_call`."""
        what = Asked(call, place, self._policies, question=question, past=past)
        return self.whole_within(what, contexts.get_current())

    @contextmanager
    def whole_within(self, what: Asked, inside: Context) -> Iterator[Callable[[Any], None]]:
        """Cover a call that consists of several operations with a span.

        Args:
            inside: The context of the span.
        """
        if _WITHIN in inside:
            yield _unnoted
            return
        span = self.start(names.MEMORY_OPERATIONS[what.call], what.call, inside)
        token = contexts.attach(contexts.set_value(_WITHIN, True))
        try:
            with self.spanning(span, what) as note:
                yield note
        finally:
            contexts.detach(token)

    @contextmanager
    def batch(self, place: Place, expect_head: int | None) -> Iterator[BatchExecutor]:
        """Open a batch, with a span that ends with it. See `Executor.batch`.

        The span is never the current one of the caller's block, which another thread may run (`AsyncMemory`): the calls
        of the batch have it as their parent.
        """
        around = get_current_span()
        span = self.start(names.BATCH, "batch", contexts.get_current())
        what = Asked("batch", place, self._policies)
        block = self.executor.batch(place, expect_head)
        try:
            with self.carried(span):
                opened = block.__enter__()
            try:
                yield _TracedBatch(self, opened, place, around, span)
            except BaseException as error:
                with self.carried(span):
                    if not block.__exit__(type(error), error, error.__traceback__):
                        raise
            else:
                with self.carried(span):
                    block.__exit__(None, None, None)
        except BaseException as error:
            self.fail(span, what, error)
            raise
        else:
            self.say(span, what, None)
        finally:
            span.end()

    # Spans

    def start(self, name: str, call: str, inside: Context) -> Span:
        """Start a span. In process it is the server's, if its parent is a client's in another process.

        Args:
            inside: The context of the span.
        """
        kind = SpanKind.CLIENT if self.is_client else SpanKind.INTERNAL
        if inside and not self.is_client and get_current_span(inside).get_span_context().is_remote:
            kind = SpanKind.SERVER
        at_start = self._at_start.get((name, call)) or self._known(name, call)
        span = self.tracer.start_span(name, inside, kind, at_start)
        if span is INVALID_SPAN and inside:  # earlier APIs pass no trace on without an SDK
            span = NonRecordingSpan(get_current_span(inside).get_span_context())
        return span

    def _known(self, name: str, call: str) -> Attributes:
        """Return what a sampler can decide by: what is the same for all calls of a name."""
        out: Attributes = {names.OPERATION: call, **self._server}
        if call in names.MEMORY_OPERATIONS:
            out[names.OPERATION_NAME] = name
        self._at_start[name, call] = out
        return out

    @contextmanager
    def spanning(self, span: Span, what: Asked) -> Iterator[Callable[[Any], None]]:
        """Make a span the current one of a block, and end it with the block, which passes its result on to be said."""
        results: list[Any] = []
        try:
            with self.carried(span):
                token = contexts.attach(set_span_in_context(span))
                try:
                    yield results.append
                finally:
                    contexts.detach(token)
        except BaseException as error:
            self.fail(span, what, error)
            raise
        else:
            self.say(span, what, results[0] if results else None)
        finally:
            span.end()

    @contextmanager
    def carried(self, span: Span) -> Iterator[None]:
        """Let the requests that a block sends belong to a span."""
        if not self.is_client:
            yield
            return
        headers: dict[str, str] = {}
        _propagator.inject(headers, set_span_in_context(span))
        token = TRACE.set(headers)
        try:
            yield
        finally:
            TRACE.reset(token)

    def say(self, span: Span, what: Asked, result: Any) -> None:
        """Say of a span what it covered. A text that a policy rejects is an error, which the caller gets later."""
        if not span.is_recording():
            return
        if isinstance(result, Outcome) and result.verdict is not None:
            self.fail(span, what, RejectedError(result.verdict.policy, result.verdict.reason, *result.verdict.found))
            return
        self._describe(span, what, lambda: answered(what, result), result)

    def fail(self, span: Span, what: Asked, error: BaseException) -> None:
        """Say of a span how it failed: the code of the error, and its message only with contents."""
        if not span.is_recording():
            return
        event = {names.EXCEPTION_TYPE: f"{type(error).__module__}.{type(error).__qualname__}"}
        message = None
        if self.with_contents:
            message = event[names.EXCEPTION_MESSAGE] = shown(str(error), _hidden(what))
        span.set_attribute(names.ERROR_TYPE, error.code if isinstance(error, RecollectError) else type(error).__name__)
        span.add_event(names.EXCEPTION, event)
        span.set_status(StatusCode.ERROR, message)
        self._describe(span, what, dict, None)

    def _describe(self, span: Span, what: Asked, of_result: Callable[[], Attributes], result: Any) -> None:
        """Set the attributes of a span."""
        try:
            span.set_attributes(asked(what) | of_result() | self._identity(what.place.branch))
            if self.with_contents:
                span.set_attributes(contents(what, result, _hidden(what)))
        except Exception as fault:  # noqa: BLE001 - the call has ended; a message may quote what it was about
            _log.error("the span of %s could not be described: %s", what.call, type(fault).__name__)

    def _parts(self, span: Span, batch: ExecuteBatch, place: Place, results: list[Any], begun: int) -> None:
        """Make the spans of the operations of a batch operation. They have its times, since they ran as one."""
        inside, ended = set_span_in_context(span), time.time_ns()
        for operation, result in zip(batch.operations, results, strict=False):
            if (name := names.span_name(operation.name)) is not None:
                at_start = self._at_start.get((name, operation.name)) or self._known(name, operation.name)
                part = self.tracer.start_span(name, inside, SpanKind.INTERNAL, at_start, start_time=begun)
                self.say(part, Asked.of(operation, place, self._policies), result)
                part.end(ended)

    def _identity(self, branch: Branch) -> Attributes:
        """Return the id of the store: of the namespace, so that equal ids of records are those of one record."""
        if self._store_id is not None:
            return {names.STORE_ID: self._store_id}
        if self._core is None:
            return {}
        if self._uuid is None:
            self._uuid = str(self._core.store.facts()["uuid"])
        # The uuid is random, so that the name of a namespace cannot be confirmed by guessing.
        text = f"{self._uuid}\0{branch.owner.namespace}\0{branch.name}"
        return {names.STORE_ID: sha256(text.encode()).hexdigest()[:32]}

    def _policies(self, place: Place) -> Policies:
        found: Policies = self.executor.execute(GetPolicies(), Place(place.branch, place.scope))
        return found


class _TracedBatch:
    """A `BatchExecutor` whose operations make spans.

    Args:
        executor: The executor of the memory.
        opened: Executes the operations.
        around: The current span when the batch was opened.
        span: The span of the batch.
    """

    def __init__(self, executor: TracedExecutor, opened: BatchExecutor, place: Place, around: Span, span: Span) -> None:
        self._executor = executor
        self._opened = opened
        self._place = place
        self._around = around
        self._span = span

    def execute(self, operation: Operation) -> Any:
        name = names.span_name(operation.name)
        if name is None or _WITHIN in contexts.get_current():
            return self._opened.execute(operation)
        span = self._executor.start(name, operation.name, self._inside())
        with self._executor.spanning(span, Asked.of(operation, self._place, self._policies)) as note:
            result = self._opened.execute(operation)
            note(result)
            return result

    def whole(
        self, call: str, question: str, _place: Place, *, past: bool
    ) -> AbstractContextManager[Callable[[Any], None]]:
        """Cover a call that consists of several operations. See `engine.executor.whole_call`."""
        what = Asked(call, self._place, self._policies, question=question, past=past)
        return self._executor.whole_within(what, self._inside())

    def _inside(self) -> Context:
        """Return the context of a call: that of a span that the caller opened inside the block, or the batch's."""
        here = contexts.get_current()
        current = get_current_span(here)
        is_nearer = current is not self._around and current.get_span_context().is_valid
        return here if is_nearer else set_span_in_context(self._span, here)

    def _policies(self, _place: Place) -> Policies:
        found: Policies = self._opened.execute(GetPolicies())
        return found


def _unnoted(_result: Any) -> None:
    """Ignore the result of a call within another one."""


def _hidden(what: Asked) -> tuple[str, ...]:
    """Return the categories of texts that the policies of a memory redact; all if the policies cannot be read."""
    try:
        found = what.policies(what.place)
    except Exception:  # noqa: BLE001 - the caller is to get the error of the call
        return CATEGORIES
    return () if found.redaction == "keep" else found.categories


def _server(address: str) -> Mapping[str, str | int]:
    """Return the address and the port of a server; of a socket its file name, since a folder may name a user."""
    parts = urlsplit(address)
    if parts.scheme == "unix":
        return {names.SERVER_ADDRESS: parts.path.rpartition("/")[2]}
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {names.SERVER_ADDRESS: parts.hostname or "", names.SERVER_PORT: port}
