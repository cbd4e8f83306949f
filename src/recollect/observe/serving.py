"""What a server needs to make spans: a tracer provider that is configured, and the traces of its clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, get_current_span, get_tracer_provider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from recollect.errors import UnsupportedError
from recollect.wire.trace import TRACE

T = TypeVar("T")
_propagator = TraceContextTextMapPropagator()


def check_configured() -> None:
    """Check that spans of this process go somewhere.

    Raises:
        UnsupportedError: No tracer provider is configured.
    """
    if isinstance(get_tracer_provider(), (ProxyTracerProvider, NoOpTracerProvider)):
        how = "no tracer provider is configured: start it with opentelemetry-instrument (docs/observability.md)"
        raise UnsupportedError("--tracing", how)


def continued(call: Callable[[], T]) -> Callable[[], T]:
    """Return a call that another thread makes, and whose spans continue the trace of the request that is handled here.

    That is the current span, if an instrumentation of HTTP or MCP has made one, or else the one that the client stated.
    """
    if get_current_span().get_span_context().is_valid:
        inside = contexts.get_current()
    elif headers := TRACE.get():
        inside = _propagator.extract(headers, Context())
    else:
        return call

    def run() -> T:
        token = contexts.attach(inside)
        try:
            return call()
        finally:
            contexts.detach(token)

    return run
