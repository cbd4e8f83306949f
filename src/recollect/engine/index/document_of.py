"""From records to documents: what indexes see of a record, and by which rules."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache

import Stemmer

from recollect.embedding.base import text_digest
from recollect.engine.index.filter_terms import filter_terms_of
from recollect.indexes.documents.columns import NEVER, NO_IMPORTANCE, NO_TIME, Document, civil_of
from recollect.indexes.fixed_point import ONE
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.text.answers import offered
from recollect.text.languages import CODES
from recollect.text.manner import MACHINE_ROLES, STANDING_TAGS, weight
from recollect.text.words import analyzed, ends_with_question, terms

#: Changes whenever a record may give another document, or documents another segment: those that were kept by other
#: rules are made anew. tests/test_indexing.py notices where it was forgotten.
_LAYOUT = 6
#: A record of at most so many bytes stands in the index whole.
_MAX_PAYLOAD_BYTES = 2048

_NUMBER = {code: number for number, code in enumerate(CODES)}


def rules(digests: bool) -> str:
    """What decides which segment given records have."""
    return f"{_LAYOUT} snowball-{Stemmer.version()}{' digests' if digests else ''}"


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


@lru_cache(maxsize=4096)
def _names(speaker: str) -> tuple[str, ...]:
    """The terms of a speaker's name."""
    return tuple(term for term, _ in terms(speaker))


def _fixed(weight: Fraction) -> int:
    """A weight with 16 bits of fraction."""
    return weight.numerator * ONE // weight.denominator


def document_of(record: Record, *, digests: bool = True) -> Document:
    """A record as indexes see it: its text, and what an attached picture shows (`metadata["caption"]`).

    digests  whether it may be asked for its vectors
    """
    text, role, tags = record.text, record.role, record.tags
    caption = record.metadata.get("caption")
    language, words = analyzed(text, record.language)
    if isinstance(caption, str):
        words.extend(terms(caption, language))
    payload = record.to_bytes()
    micros = NO_TIME if record.time is None else microseconds(record.time)
    return Document(
        id=record.id,
        terms=words,
        session=None if record.conversation is None else (record.conversation, record.session or ""),
        place=(-1 if record.position is None else record.position, micros, record.id),
        asks=ends_with_question(text),
        micros=micros,
        expires=NEVER if record.expires is None else microseconds(record.expires),
        speaker=record.speaker or ("\0" + role if role else ""),
        names=_names(record.speaker) if record.speaker else (),
        weight=_fixed(weight(text, assistant=role in MACHINE_ROLES, tags=tags)),
        civil=0 if record.time is None else civil_of(record.time.date()),
        offers=offered(text),
        language=_NUMBER[language],
        standing=sum(1 << bit for bit, term in enumerate(STANDING_TAGS) if term in tags) if tags else 0,
        text=digest_of(record) if digests else b"",
        fields=(
            record.kind,
            role,
            record.user,
            record.agent,
            record.conversation,
            record.entity,
            record.source,
        ),
        importance=NO_IMPORTANCE if record.importance is None else record.importance,
        filter_terms=filter_terms_of(record),
        payload=payload if len(payload) <= _MAX_PAYLOAD_BYTES else b"",
    )
