"""The names in spans: those of OpenTelemetry's conventions for generative AI, and our own.

The conventions of memory operations (open-telemetry/semantic-conventions-genai, #140) have the status Development, and
no package has constants for them. This file has all names, so that a change of the conventions is a change of it.
"""

from __future__ import annotations

from functools import cache

from recollect.operations.base import READ, all_operations

# Values of `gen_ai.operation.name`, which are also the names of the spans.
SEARCH, UPSERT, UPDATE, DELETE = "search_memory", "upsert_memory", "update_memory", "delete_memory"

# Attributes of the conventions.
OPERATION_NAME = "gen_ai.operation.name"
STORE_ID = "gen_ai.memory.store.id"
RECORD_COUNT = "gen_ai.memory.record.count"
ERROR_TYPE = "error.type"
SERVER_ADDRESS, SERVER_PORT = "server.address", "server.port"
# The same, of contents.
QUERY_TEXT = "gen_ai.memory.query.text"
RECORD_ID = "gen_ai.memory.record.id"
RECORDS = "gen_ai.memory.records"
# The event of an error.
EXCEPTION, EXCEPTION_TYPE, EXCEPTION_MESSAGE = "exception", "exception.type", "exception.message"

# Our own attributes.
OPERATION = "recollect.operation"
PART, SCOPED, PAST = "recollect.part", "recollect.scoped", "recollect.past"
K, HITS, TOP_CONFIDENCE = "recollect.k", "recollect.hits", "recollect.top_confidence"
NARROWED = "recollect.plan.narrowed"
TOKENS, LEFT_OUT = "recollect.context.tokens", "recollect.context.left_out"
SEQ, ROOT = "recollect.seq", "recollect.root"
STATUS, FAILED = "recollect.status", "recollect.failed"
# The same, of contents: programs give each user a namespace.
NAMESPACE = "recollect.namespace"

#: The calls that are operations of the conventions: `context`, and operations by their names.
MEMORY_OPERATIONS = {
    **dict.fromkeys("context recall find_similar grep recall_terms annotate_terms recall_sdrs".split(), SEARCH),
    **dict.fromkeys("remember remember_all add_messages supersede merge release".split(), UPSERT),
    **dict.fromkeys("update touch endorse".split(), UPDATE),
    **dict.fromkeys("forget forget_all forget_where clear erase sweep".split(), DELETE),
}
#: The name of the span of a batch.
BATCH = "recollect.batch"


@cache
def span_name(call: str) -> str | None:
    """Return the name of the span of an operation, by the name of the operation; None if it has none.

    What writes or administers has one. Of what reads, only a search has: other reads are small, occur many times in
    one call (a context, a facet), and listeners of a server make four a second for as long as they wait.
    """
    if call in MEMORY_OPERATIONS:
        return MEMORY_OPERATIONS[call]
    return None if all_operations()[call].right == READ else f"recollect.{call}"
