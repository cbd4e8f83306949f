"""`FactCheck`: refuses, with the reason, each fact of a model that the turns which it names do not state."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, tzinfo
from typing import NamedTuple

from recollect.agents.learned import LearnedFact, refused
from recollect.common.regexes import regex
from recollect.facets.entities.graph import entity_id
from recollect.memory.manager.contradictions import ATTRIBUTE
from recollect.models.learning import StatedFact
from recollect.records.record import Record
from recollect.text.attributes import attribute_name
from recollect.text.grounding import SaidText, affirms, days_in, ends, mentions, unsupported

#: Turns before the new ones that are shown with them.
_BEFORE = 4
_USER = "user"
#: What redaction puts in the place of a secret.
_HIDDEN = "***"
#: How a model may name the user, and what names nothing.
_USERS = frozenset(("user", "i", "me", "myself", "user's", "users"))
_NO_NAMES = frozenset("he she it they we you him her them this that someone unknown none null n/a".split())
_LETTER = regex(r"\w")


class TurnsToRead(NamedTuple):
    """Some turns of a conversation that are read at a time, with one owner.

    Attributes:
        turns: The turns that are shown, in their order.
        new: The ids of those of the user that were not read yet.
    """

    conversation: str
    user: str | None
    agent: str | None
    turns: list[Record]
    new: frozenset[str]

    def between(self, first: int, last: int) -> TurnsToRead:
        """Return some of the turns, and a few before them, which are shown for what they say of the others."""
        new = frozenset(each.id for each in self.turns[first:last]) & self.new
        return self._replace(turns=self.turns[max(0, first - _BEFORE) : last], new=new)


class CheckedFact(NamedTuple):
    """A fact that its sources state.

    Attributes:
        stated: What the model states.
        about_user: Whether it is about the user.
        attribute: What it is the value of, in one form; "" for none.
        sources: The records of the turns that state it, in the order in which the model names them.
        known: The known fact that it repeats, changes or ends, as it was shown to the model.
        since: The first and last day of the time from which it is true, if they say so.
        until: The same of the time until which it is true.
        note: What of it was left out.
    """

    stated: StatedFact
    about_user: bool
    attribute: str
    sources: Sequence[Record]
    known: Record | None
    since: tuple[date, date] | None
    until: tuple[date, date] | None
    note: str


class FactCheck:
    """Checks what a model states out of some turns.

    Args:
        part: The turns that the model was shown. A fact names them by their place, from 1.
        known: The known facts that it was shown, which it names in the same way.
        zone: The time zone in which turns name days.
    """

    def __init__(self, part: TurnsToRead, known: Sequence[Record], zone: tzinfo) -> None:
        self._part, self._known, self._zone = part, known, zone
        self._texts: dict[str, SaidText] = {}

    def __call__(self, stated: StatedFact) -> CheckedFact | LearnedFact:
        """Return a fact with its sources; or the refusal of what they do not state."""
        sources = self._sources(stated)
        if isinstance(sources, str):
            return refused(stated, sources)
        about_user = self._is_user(stated.about)
        if not about_user and (stated.about.casefold() in _NO_NAMES or not _LETTER.search(stated.about)):
            return refused(stated, f"it is about {stated.about!r}, which names nobody", sources)
        known = self._named(stated, about_user=about_user)
        if isinstance(known, str):
            return refused(stated, known, sources)
        said = [self._said(each) for each in sources]
        own = [self._said(each) for each in sources if each.role == _USER]
        before = [] if known is None else [self._said(known)]
        if reason := self._invented(stated, said + before, own + before, about_user=about_user):
            return refused(stated, reason, sources)
        until = days_in(stated.until, said) if stated.until else None
        if stated.until and (reason := _why_not_ended(stated, until, own, known)):
            return refused(stated, reason, sources)
        since = days_in(stated.since, said) if stated.since else None
        note = f"the day {stated.since!r} is not in its sources" if stated.since and since is None else ""
        attribute = attribute_name(stated.attribute)
        named = None if known is None else known.metadata.get(ATTRIBUTE)
        if not attribute and isinstance(named, str):
            attribute = named
        if known is not None and isinstance(named, str) and named != attribute:
            known = None  # another attribute: it does not change that one
        return CheckedFact(stated, about_user, attribute, sources, known, since, until, note)

    def _said(self, record: Record) -> SaidText:
        """Return the text of a record, which is read once for all facts."""
        if record.id not in self._texts:
            time = None if record.time is None else record.time.astimezone(self._zone)
            self._texts[record.id] = SaidText(str(record.content), time)
        return self._texts[record.id]

    def _sources(self, stated: StatedFact) -> list[Record] | str:
        turns = self._part.turns
        if not all(1 <= each <= len(turns) for each in stated.turns):
            return "it names a turn that was not shown"
        sources = [turns[each - 1] for each in stated.turns]
        if not any(each.id in self._part.new for each in sources):
            return "it names no turn of the user that is new"
        return sources

    def _named(self, stated: StatedFact, *, about_user: bool) -> Record | str | None:
        """Return the known fact that it names; why it cannot be meant; None if it names none."""
        if stated.known is None:
            return None
        if not 1 <= stated.known <= len(self._known):
            return "it names a known fact that was not shown"
        known = self._known[stated.known - 1]
        name = known.metadata.get("entity_name")
        if about_user != (known.kind == "user_fact") or (
            isinstance(name, str) and entity_id(name) != entity_id(stated.about)
        ):
            return "the known fact that it names is about something else"
        return known

    def _invented(
        self, stated: StatedFact, said: Sequence[SaidText], own: Sequence[SaidText], *, about_user: bool
    ) -> str:
        """Return what it states that its sources do not; "" if there is nothing."""
        if _HIDDEN in stated.fact or _HIDDEN in stated.value:
            return "it has something in it that was hidden from the model"
        names = [*filter(None, (self._part.user, *(each.speaker for each in self._part.turns)))]
        about = "" if about_user else stated.about.replace("the user's", "").replace("user's", "")
        for text, is_value in ((about, True), (stated.value, True), (stated.fact, False)):
            if reason := unsupported(text, said, names=names, ended=bool(stated.until), is_value=is_value):
                return reason
        if not any(affirms(each.text) for each in own) and unsupported(
            stated.value or stated.fact, own, names=names, is_value=True
        ):
            return "only the assistant says it"
        return ""

    def _is_user(self, about: str) -> bool:
        plain = about.casefold().removeprefix("the ").strip()
        speakers = {each.speaker for each in self._part.turns if each.role == _USER and each.speaker}
        names = [self._part.user, *(speakers if len(speakers) == 1 else ())]  # of several, each may be another person
        return plain in _USERS or plain in (each.casefold() for each in names if each)


def _why_not_ended(
    stated: StatedFact, until: tuple[date, date] | None, own: Sequence[SaidText], known: Record | None
) -> str:
    """Return why a fact cannot be said to have ended; "" if the user says so."""
    if until is None:
        return f"its end, {stated.until!r}, is not in its sources"
    about = " ".join((stated.fact, stated.value, stated.attribute, "" if known is None else str(known.content)))
    today = any(each.time is not None and until[0] == until[1] == each.time.date() for each in own)
    if ends(about, own) or (not today and mentions(about, own)):
        return ""
    return "its sources do not say that it ended"
