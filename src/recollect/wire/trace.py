"""The trace that a request belongs to: the headers of W3C Trace Context, which a client sends and a server continues.

Over HTTP they are headers of the request. Over the socket, a line has them beside what it asks for:

    {"op": "recall", "question": "which seat?", "trace": {"traceparent": "00-..."}}

A server that makes spans says so in its answer to a ping (`"traces": true`), and only then a client sends them: an
earlier server would refuse a line with a key that it does not know. Nothing here knows what is in the headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

from recollect.errors import ProtocolError

#: The headers, in lower case.
HEADERS = ("traceparent", "tracestate")
NO_TRACE: Mapping[str, str] = MappingProxyType({})
#: The headers of the trace that requests belong to: those that are sent here, or the one that is answered here.
TRACE: ContextVar[Mapping[str, str]] = ContextVar("recollect.trace", default=NO_TRACE)


def read_trace(data: object) -> Mapping[str, str]:
    """Read what a line has in "trace". What the headers say is not checked: an invalid one begins a new trace.

    Raises:
        ProtocolError: It is not an object of headers.
    """
    if data is None:
        return NO_TRACE
    if not isinstance(data, Mapping) or not data.keys() <= set(HEADERS):
        raise ProtocolError(f'"trace" must be a JSON object with some of {", ".join(HEADERS)}')
    if not all(isinstance(each, str) for each in data.values()):
        raise ProtocolError('"trace" must have texts')
    return data


def trace_of(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers of a trace among those of a request over HTTP."""
    return {name: headers[name] for name in HEADERS if name in headers}
