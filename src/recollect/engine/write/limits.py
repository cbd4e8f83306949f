"""How large what a memory is told, and asked, may be: caps of its own, with defaults that no honest use meets."""

from __future__ import annotations

from dataclasses import dataclass, fields

from recollect.errors import InvalidArgumentError, InvalidQueryError, InvalidRecordError
from recollect.records.codec import encode_json
from recollect.records.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Caps on one record, one question and one query; each a whole number, 1 or more.

    content_bytes    of a text, as UTF-8: 1 MiB. Indexing takes about 2 s and 140 bytes of memory a byte for so many
                     distinct words, and other texts at most twice that (`python -m bench poison`)
    media_bytes      of a content that is bytes, which is not indexed: 10 MiB
    metadata_bytes   of the metadata, in its canonical encoding: 1 MiB
    tags             how many: 1,000. (A tag, like every name, has at most 1,000 bytes.)
    question_bytes   of a question, as UTF-8: 64 KiB
    query_bytes      of a full-text query, as UTF-8: 8 KiB. (It has at most 256 words, a phrase in it at most 64.)

    Raises: InvalidArgumentError.
    """

    content_bytes: int = 2**20
    media_bytes: int = 10 * 2**20
    metadata_bytes: int = 2**20
    tags: int = 1000
    question_bytes: int = 2**16
    query_bytes: int = 2**13

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidArgumentError(f"limits.{each.name}", value, "must be a whole number, 1 or more")

    def check(self, record: Record) -> None:
        """Raises: InvalidRecordError for a record over a cap."""
        if isinstance(record.content, bytes):
            size, limit = len(record.content), self.media_bytes
        else:
            size, limit = len(record.content.encode("utf-8")), self.content_bytes
        if size > limit:
            raise InvalidRecordError(
                "content",
                record.content,
                f"is longer than the cap of {limit} bytes: remember it in parts, or open the memory with larger limits",
            )
        if len(record.tags) > self.tags:
            raise InvalidRecordError("tags", record.tags, f"are more than the cap of {self.tags}")
        if record.metadata and len(encode_json(record.metadata)) > self.metadata_bytes:
            raise InvalidRecordError("metadata", record.metadata, f"is over the cap of {self.metadata_bytes} bytes")

    def check_question(self, question: str) -> None:
        """Raises: InvalidArgumentError for a question over the cap."""
        if len(question) > self.question_bytes or len(question.encode("utf-8")) > self.question_bytes:
            raise InvalidArgumentError(
                "question", question, f"is longer than the cap of {self.question_bytes} bytes: ask with less"
            )

    def check_query(self, query: str) -> None:
        """Raises: InvalidQueryError for a full-text query over the cap."""
        if len(query) > self.query_bytes or len(query.encode("utf-8")) > self.query_bytes:
            raise InvalidQueryError(query, f"it is longer than the cap of {self.query_bytes} bytes: ask for less")
