"""The cases, by topic."""

from recollect.testing.langgraph_store.case import Case
from recollect.testing.langgraph_store.cases import (
    batches,
    concurrency,
    expiry,
    filters,
    indexing,
    namespaces,
    searches,
)
from recollect.testing.langgraph_store.cases import values as stored_values

#: All cases, in the order of a report.
CASES: tuple[Case, ...] = tuple(
    case
    for group in (
        stored_values.GROUP,
        batches.GROUP,
        namespaces.GROUP,
        filters.GROUP,
        searches.GROUP,
        indexing.GROUP,
        expiry.GROUP,
        concurrency.GROUP,
    )
    for case in group.cases
)
