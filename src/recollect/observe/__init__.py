"""OpenTelemetry traces: a memory whose calls make spans, by the conventions for operations of the memory of agents.

    memory = recollect.observe.traced(recollect.open("agent.db"))

This needs the extra `otel`, which is only the API: without an SDK that an application configures, no span is made. No
span has a content, a question, an id or the name of a user unless contents are asked for. docs/observability.md lists
the spans and their attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import InvalidArgumentError, MissingExtraError
from recollect.memory import Memory

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

__all__ = ["traced"]


def traced(
    memory: Memory,
    tracer_provider: TracerProvider | None = None,
    *,
    contents: bool = False,
    store_id: str | None = None,
) -> Memory:
    """Return a memory whose calls make spans. The memory that was passed makes none, and shares the store with it.

    Every memory that is created from the returned one makes spans, too: scopes, namespaces, past moments, its facets
    and its batches. `AsyncMemory(traced(memory))` makes them with the span of the awaiting task as the parent. The
    spans of a memory of `recollect.connect` are continued by the server, if that makes spans (`recollect serve
    --tracing`).

    Args:
        memory: The memory, or a scope of one.
        tracer_provider: Makes the tracer; default: the one that is configured for the process.
        contents: Whether spans have questions, ids, texts and metadata of records, the name of the namespace, and the
            messages of errors. What a policy of the memory redacts is redacted in them.
        store_id: The value of `gen_ai.memory.store.id`; default: a hash of the store's random id and the namespace, and
            none for a memory of `recollect.connect`, whose server states it.

    Raises:
        MissingExtraError: OpenTelemetry's API is not installed.
        InvalidArgumentError: `memory` is none, is traced already, or is one of a past moment; or the second argument is
            no tracer provider.

    Cost:
        Some microseconds a call without an SDK (`python -m bench traces`). With contents, a read of the policies.
    """
    try:
        from recollect.observe.executor import traced_memory
    except ImportError as error:
        raise MissingExtraError("recollect.observe", error.name or "opentelemetry", "otel") from None
    if tracer_provider is not None and not callable(getattr(tracer_provider, "get_tracer", None)):
        raise InvalidArgumentError("tracer_provider", tracer_provider, "must be a TracerProvider")
    return traced_memory(memory, tracer_provider, contents, store_id)
