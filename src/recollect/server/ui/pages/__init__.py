"""The pages: the name of each, which is its path, and the function that returns what it shows as plain JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from recollect.server.ui.pages.conversations import conversation, conversations
from recollect.server.ui.pages.entities import entities, entity
from recollect.server.ui.pages.erase import erase, erased
from recollect.server.ui.pages.log import diff, log
from recollect.server.ui.pages.me import me, mine
from recollect.server.ui.pages.overview import overview
from recollect.server.ui.pages.records import forget, record, records
from recollect.server.ui.pages.review import review
from recollect.server.ui.pages.search import context, receipt, search
from recollect.server.ui.pages.settings import check, health, settings
from recollect.server.ui.visit import Visit


class InspectorPage(NamedTuple):
    """A page.

    Attributes:
        show: Returns what it shows.
        operation: The operation that most of its work is, for metrics and limits of time.
        takes: The parameters of its address, besides those that all pages have.
        of_owner: Whether users see it who may see only what is theirs.
        has_template: Whether it is also HTML.
        is_present: Whether it shows only what is now.
    """

    show: Callable[[Visit], dict[str, Any]]
    operation: str
    takes: str = ""
    of_owner: bool = False
    has_template: bool = True
    is_present: bool = False


_ASKED = "q where user agent conversation reference concise confident"
_MATCHED = "part where contains kind user agent conversation tag"
PAGES: dict[str, InspectorPage] = {
    "": InspectorPage(overview, "stats"),
    "search": InspectorPage(search, "recall", f"{_ASKED} k"),
    "receipt": InspectorPage(receipt, "receipt", f"{_ASKED} k", has_template=False),
    "context": InspectorPage(context, "context", f"{_ASKED} max_tokens style records glossary outline"),
    "records": InspectorPage(records, "find", f"{_MATCHED} order limit after"),
    "record": InspectorPage(record, "history", "id part v"),
    "forget": InspectorPage(forget, "count", _MATCHED),
    "conversations": InspectorPage(conversations, "values", "after prefix"),
    "conversation": InspectorPage(conversation, "find", "name page hit q"),
    "entities": InspectorPage(entities, "entities", "type limit"),
    "entity": InspectorPage(entity, "entity", "id"),
    "review": InspectorPage(review, "find", "n"),
    "log": InspectorPage(log, "changes", "before where actor"),
    "diff": InspectorPage(diff, "diff", "a b"),
    "erase": InspectorPage(erase, "history", "id user where all part redact derived", of_owner=True, is_present=True),
    "erased": InspectorPage(erased, "prove", "id part commit", of_owner=True, is_present=True),
    "settings": InspectorPage(settings, "get_quota", is_present=True),
    "health": InspectorPage(health, "stats", "vectors", is_present=True),
    "check": InspectorPage(check, "check", is_present=True),
    "me": InspectorPage(me, "find", "q after", of_owner=True),
    "mine": InspectorPage(mine, "history", "id part", of_owner=True),
}
