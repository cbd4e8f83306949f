"""Keeping indexes in step with the ledger.

There is one index for each line, made when it is first asked for and caught up by seq: a reader that finds newer
commits applies just what they touched. Views of it are immutable; a reader whose moment is older than the index has
already reached is told to look again, since a newer moment exists.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from recollect.embedding.base import text_digest
from recollect.indexes.documents import NEVER, Document, civil_of
from recollect.indexes.fixed import ONE
from recollect.indexes.merkle import EMPTY
from recollect.indexes.words import WordIndex, WordView
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import Line, View
from recollect.text.answers import offered
from recollect.text.languages import CODES
from recollect.text.manner import MARKS, TOLD_BY_MACHINES, weight
from recollect.text.words import ends_with_question, language_of, terms


def text_of(record: Record) -> str:
    """What is embedded of a record: its text and what an attached picture shows, after the name of its speaker.

    The name makes a vector that of what this person said, which questions about people are nearer to.
    """
    caption = record.metadata.get("caption")
    text = f"{record.text}\n{caption}".strip() if isinstance(caption, str) else record.text
    return f"{record.speaker}: {text}" if record.speaker and text.strip() else text


def digest_of(record: Record) -> bytes:
    """What the vectors of a record's text are kept under; b"" where there is no text to embed.

    It is of those, too, whom a scope can be about: else a scope could tell by a vector that another has said the same.
    """
    text = text_of(record)
    whose = [record.user, record.agent, record.conversation]
    return text_digest(json.dumps([*whose, text])) if text.strip() else b""


def document_of(record: Record) -> Document:
    """A record as indexes see it: its text, and what an attached picture shows (`metadata["caption"]`)."""
    caption = record.metadata.get("caption")
    language = language_of(record.text, record.language)
    words = list(terms(record.text, language))
    if isinstance(caption, str):
        words.extend(terms(caption, language))
    micros = -(2**63) if record.time is None else microseconds(record.time)
    return Document(
        id=record.id,
        terms=words,
        session=None if record.conversation is None else (record.conversation, record.session or ""),
        place=(-1 if record.position is None else record.position, micros, record.id),
        asks=ends_with_question(record.text),
        micros=micros,
        expires=NEVER if record.expires is None else microseconds(record.expires),
        speaker=record.speaker or ("\0" + record.role if record.role else ""),
        names=tuple(term.term for term in terms(record.speaker or "")),
        weight=int(weight(record.text, assistant=record.role in TOLD_BY_MACHINES, tags=record.tags) * ONE),
        civil=0 if record.time is None else civil_of(record.time.date()),
        offers=offered(record.text),
        language=CODES.index(language),
        standing=sum(1 << bit for bit, mark in enumerate(MARKS) if mark in record.tags),
        text=digest_of(record),
    )


@dataclass
class _Kept:
    index: WordIndex = field(default_factory=WordIndex)
    seq: int = 0
    root: bytes = EMPTY
    view: WordView | None = None


class IndexKeeper:
    """The indexes of a store."""

    def __init__(self) -> None:
        self._kept: dict[Line, _Kept] = {}
        self._turn = threading.Lock()

    def view(self, moment: View, line: Line) -> WordView | None:
        """The index at a moment of the store; None where the index is already past it, so a newer moment exists.

        Cost: in proportion to the commits since the index was last asked for; at first, to what is held.
        """
        head = moment.head(line)
        seq = head.seq
        with self._turn:
            kept = self._kept.setdefault(line, _Kept())
            if seq < kept.seq:
                return None
            if seq == kept.seq and head.root.hash != kept.root:
                kept = self._kept[line] = _Kept()  # another history: the file was put back from a copy
            if seq > kept.seq:
                try:
                    self._catch_up(kept, moment, line)
                except BaseException:
                    del self._kept[line]  # half caught up is no index: the next reader starts anew
                    raise
                kept.seq, kept.root, kept.view = seq, head.root.hash, None
            if kept.view is None:
                kept.view = kept.index.view()
            return kept.view

    def drop(self, line: Line) -> None:
        """Let the index of a line be made anew."""
        with self._turn:
            self._kept.pop(line, None)

    def fork(self, moment: View, line: Line) -> WordIndex:
        """A copy of the index at a moment that nobody can commit after (a writer waits), to go its own way."""
        self.view(moment, line)
        with self._turn:
            return self._kept[line].index.fork()

    @staticmethod
    def _catch_up(kept: _Kept, moment: View, line: Line) -> None:
        if kept.seq == 0:
            records = (Record.load(stored.payload) for _, stored in moment.versions(line))
            # In the order of their places, so that turns are appended and not put between others.
            documents = sorted(map(document_of, records), key=lambda document: (document.place, document.id))
            kept.index.apply((), documents)
        else:
            apply_changed(kept.index, moment, line, moment.changed(line, kept.seq))


def apply_changed(index: WordIndex, moment: View, line: Line, changed: Iterable[str]) -> None:
    """Bring the records of some ids up to the moment: take each out, and put in what it is now."""
    changed = list(changed)
    stored = (moment.get(line, record_id) for record_id in changed)
    documents = [document_of(Record.load(version.payload)) for version in stored if version is not None]
    index.apply(changed, sorted(documents, key=lambda document: (document.place, document.id)))
