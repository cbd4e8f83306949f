"""Places: the section of each record of a context, and the order of conversations, sessions and documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo

from recollect.memory.context.gathering import Candidate
from recollect.memory.context.styles import EntryHeading
from recollect.records.record import Record

_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
Session = tuple[str, str]


def places_of(
    candidates: Sequence[Candidate], zone: tzinfo, ended: Callable[[Record], datetime | None], *, of_user: bool
) -> Callable[[Candidate], EntryHeading]:
    """Return a function that returns the place of a candidate, also of a neighbour that is not in the list.

    Sessions and conversations are ordered by the time of their first turn among the candidates, documents by their best
    passage.

    Args:
        candidates: All candidates.
        zone: The time zone in which times are shown.
        ended: Returns until when a record was valid; None if it still is.
        of_user: Whether they are those of one user, who need not be named.
    """
    sessions: dict[Session, datetime] = {}
    conversations: dict[str, datetime] = {}
    documents: dict[str, int] = {}
    ranks = {each.key: rank for rank, each in enumerate(candidates)}
    for rank, each in enumerate(candidates):
        record = each.record
        if (session := _session(record)) is not None:
            time = record.time or _LONG_AGO
            sessions[session] = min(time, sessions.get(session, time))
            conversations[session[0]] = min(time, conversations.get(session[0], time))
        elif record.source is not None:
            documents.setdefault(record.source, rank)

    def place(candidate: Candidate) -> EntryHeading:
        return where(candidate)._replace(until=ended(candidate.record))

    def where(candidate: Candidate) -> EntryHeading:
        record = candidate.record
        rank = ranks.get(candidate.key, len(ranks))
        owner = "" if of_user else record.user or ""
        time = None if record.time is None else record.time.astimezone(zone)
        if candidate.origin in ("standing", "pinned", "glossary", "outline"):
            return EntryHeading(candidate.origin, rank, time, owner=owner)
        if (session := _session(record)) is not None:
            first = sessions.get(session, record.time or _LONG_AGO)
            group = (conversations.get(session[0], first), session[0], first, session[1])
            return EntryHeading(
                "conversations", rank, time, None if first == _LONG_AGO else first.astimezone(zone), group, owner
            )
        if record.kind == "knowledge" and record.source is not None:
            return EntryHeading(
                "documents", rank, time, None, (documents.get(record.source, rank), record.source), owner
            )
        return EntryHeading("facts", rank, time, owner=owner)

    return place


def _session(record: Record) -> Session | None:
    """Return the session of a turn; None for other records."""
    if record.kind != "conversation" or record.conversation is None:
        return None
    return record.conversation, record.session or ""
