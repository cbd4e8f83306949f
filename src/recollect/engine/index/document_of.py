"""Conversion of records to the documents that indexes store, and the version of its rules."""

from __future__ import annotations

import json
from datetime import tzinfo
from fractions import Fraction
from functools import lru_cache

import Stemmer

from recollect.common.zones import rules_of
from recollect.engine.index.filter_terms import filter_terms_of
from recollect.indexes.documents.columns import NEVER, NO_IMPORTANCE, NO_TIME, Document, civil_of
from recollect.indexes.fixed_point import ONE
from recollect.models.embedding.base import text_digest
from recollect.records.codec import microseconds
from recollect.records.factories import OTHER_BRANCH, is_summary, title_of_chat
from recollect.records.record import Record
from recollect.stores.derived.vectors import keyed
from recollect.text.answers import ASKS, INSTRUCTION, offered
from recollect.text.asking import only_asks
from recollect.text.languages import CODES
from recollect.text.manner import INSTRUCTION as WISH
from recollect.text.manner import MACHINE_ROLES, SAID_TAGS, STANDING_TAGS, SUMMARISING, weight
from recollect.text.signs import sign_terms
from recollect.text.words import Term, analyzed, ends_with_question, terms

#: Version of the conversion. Raise it when a record may give a different document, or documents a different segment:
#: index files with another version are rebuilt. tests/engine/test_indexing.py fails if this was forgotten.
_LAYOUT = 18
#: A record of at most this many bytes is stored in the index, so that hits need not be read from the store.
_MAX_PAYLOAD_BYTES = 2048

#: The tags of texts that are no answer to what was said or done.
_INSTRUCTIONS = frozenset((WISH, SAID_TAGS[WISH]))
_NUMBER = {code: number for number, code in enumerate(CODES)}


def rules(digests: bool, zone: tzinfo) -> str:
    """Return the rules that, together with the records, determine a segment."""
    return f"{_LAYOUT} snowball-{Stemmer.version()} {rules_of(zone)}{' keyed digests' if digests else ''}"


def text_of(record: Record) -> str:
    """Return the text to embed for a record: the speaker's name, its text and the caption of an attached picture.

    The name makes the vector more similar to questions about this person. A record that is not searchable has none.
    """
    if not record.searchable:
        return ""
    caption = record.metadata.get("caption")
    text = f"{record.text}\n{caption}".strip() if isinstance(caption, str) else record.text
    return f"{record.speaker}: {text}" if record.speaker and text.strip() else text


def digest_of(record: Record, key: bytes) -> bytes:
    """Return the digest that the vectors of a record's text are stored under; b"" if there is no text to embed.

    It covers the fields that a scope can fix. Otherwise a vector would reveal within a scope that another one contains
    the same text. It is keyed, so that with a private key no one can confirm a guess of the text.

    Args:
        key: The store's key.
    """
    text = text_of(record)
    if not text.strip():
        return b""
    return keyed(text_digest(json.dumps([record.user, record.agent, record.conversation, text])), key)


@lru_cache(maxsize=4096)
def _titles(titles: tuple[str, ...], language: str) -> tuple[Term, ...]:
    """Return the terms of titles, each once. Cached: the sections of a document share them."""
    return tuple(dict.fromkeys(term for title in titles for term in terms(title, language)))


def _titles_above(record: Record) -> tuple[str, ...]:
    """Return the title of a record's document and the headings above it, or the name of the entity that it is about.

    Its own heading is part of its text, unless it continues a section ("continued"). The title of a chat belongs to the
    first turn, which has it.
    """
    if record.conversation is not None and not _is_attached(record):  # a turn
        return () if (title := title_of_chat(record)) is None else (title,)
    title, headings = record.metadata.get("title"), record.metadata.get("headings")
    own = None if record.metadata.get("continued") is True else -1
    above = (title, *headings[:own]) if isinstance(headings, (list, tuple)) else (title,)
    if isinstance(aliases := record.metadata.get("aliases"), (list, tuple)) and record.kind == "knowledge":
        above = (*above, *aliases)
    if record.entity is not None:
        above = (*above, record.metadata.get("entity_name"))
    return tuple(each for each in above if isinstance(each, str))


def _is_attached(record: Record) -> bool:
    """Return whether a record of a conversation is no turn, but a piece of a text that was attached to one."""
    return record.kind == "knowledge" and "chunk_index" in record.metadata


@lru_cache(maxsize=4096)
def _names(speaker: str) -> tuple[str, ...]:
    """Return the terms of a speaker's name."""
    return tuple(term for term, _ in terms(speaker))


def _fixed(weight: Fraction) -> int:
    """Return a weight as a fixed-point number with 16 bits of fraction."""
    return weight.numerator * ONE // weight.denominator


def document_of(record: Record, zone: tzinfo, digest_key: bytes | None = None) -> Document:
    """Convert a record to a document: its text, and the caption of an attached picture (`metadata["caption"]`).

    The titles above a record that is not a turn are `metadata["title"]`, the title of its document, and
    `metadata["headings"]`, a list of headings that ends with its own, which is part of the text unless
    `metadata["continued"]` is true; the name of an entity is
    `metadata["entity_name"]`.

    Args:
        zone: The time zone in which its time is on a day.
        digest_key: The key of the digest that its vectors are stored under; None: the document has none.
    """
    text, role, tags = record.text, record.role, record.tags
    caption = record.metadata.get("caption")
    language, words = analyzed(text, record.language)
    if isinstance(caption, str):
        words.extend(terms(caption, language))
    if OTHER_BRANCH in tags:
        tags = ()  # what was abandoned is no instruction any more
    # What a tool, a page or a model says governs nothing, whatever tags it has.
    governs = bool(tags) and record.has_authority
    standing = sum(1 << bit for bit, term in enumerate(STANDING_TAGS) if term in tags) if governs else 0
    payload, summary, above = record.to_bytes(), is_summary(record), _titles_above(record)
    micros = NO_TIME if record.time is None else microseconds(record.time)
    manner = weight(text, assistant=role in MACHINE_ROLES, tags=tags)
    return Document(
        id=record.id,
        terms=words,
        session=None
        if record.conversation is None or summary or _is_attached(record)
        else (record.conversation, record.session or ""),
        sort_key=(-1 if record.position is None else record.position, micros, record.id),
        asks=ends_with_question(text),
        micros=micros,
        expires=NEVER if record.expires is None else microseconds(record.expires),
        speaker=record.speaker or ("\0" + role if role else ""),
        names=_names(record.speaker) if record.speaker else (),
        manner=_fixed(manner * SUMMARISING if summary else manner),
        civil=0 if record.time is None else civil_of(record.time.astimezone(zone).date()),
        offers=int(offered(text))  # plain integers: to combine flags takes longer than to find them
        | (INSTRUCTION if tags and not _INSTRUCTIONS.isdisjoint(tags) and role not in MACHINE_ROLES else 0)
        | (ASKS if only_asks(text) else 0),
        language=_NUMBER[language],
        standing=standing,
        text=b"" if digest_key is None else digest_of(record, digest_key),
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
        titles=_titles(above, language) if above else (),
        valid_from=NO_TIME if record.valid_from is None else microseconds(record.valid_from),
        valid_to=NEVER if record.valid_to is None else microseconds(record.valid_to),
        signs=sign_terms("\n".join((text, *above))) if above else sign_terms(text),
        payload=payload if len(payload) <= _MAX_PAYLOAD_BYTES else b"",
    )
