"""Limits on the sizes of records, questions and queries. The defaults are far above normal use."""

from __future__ import annotations

from dataclasses import dataclass, fields

from recollect.arguments.checks import check_count
from recollect.errors import InvalidArgumentError, InvalidQueryError, InvalidRecordError
from recollect.records.codec import encode_json
from recollect.records.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the sizes of one record, one question and one query. Each is an integer, 1 or more.

    Attributes:
        content_bytes: A text, as UTF-8; default: 1 MiB. Indexing 1 MiB of distinct words takes about 2 s, and 140 bytes
            of memory per byte; other texts take at most twice that (`python -m bench poison`).
        media_bytes: Content that is bytes, which is not indexed; default: 10 MiB.
        metadata_bytes: The metadata, in its canonical encoding; default: 1 MiB.
        tags: The number of tags; default: 1,000. (A tag, like every name, has at most 1,000 bytes.)
        question_bytes: A question, as UTF-8; default: 64 KiB.
        query_bytes: A full-text query, as UTF-8; default: 8 KiB. (It has at most 256 words, and a phrase in it at most
            64.)

    Raises:
        InvalidArgumentError: A limit is not an integer of 1 or more.
    """

    content_bytes: int = 2**20
    media_bytes: int = 10 * 2**20
    metadata_bytes: int = 2**20
    tags: int = 1000
    question_bytes: int = 2**16
    query_bytes: int = 2**13

    def __post_init__(self) -> None:
        for each in fields(self):
            check_count(f"limits.{each.name}", getattr(self, each.name))

    def check(self, record: Record) -> None:
        """Check a record.

        Raises:
            InvalidRecordError: It exceeds a limit.
        """
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
            raise InvalidRecordError("tags", record.tags, f"has more entries than the cap of {self.tags}")
        if record.metadata and len(encode_json(record.metadata)) > self.metadata_bytes:
            raise InvalidRecordError("metadata", record.metadata, f"is over the cap of {self.metadata_bytes} bytes")

    def check_question(self, question: str) -> None:
        """Check a question.

        Raises:
            InvalidArgumentError: It exceeds the limit.
        """
        if len(question) > self.question_bytes or len(question.encode("utf-8")) > self.question_bytes:
            raise InvalidArgumentError(
                "question", question, f"is longer than the cap of {self.question_bytes} bytes: shorten it"
            )

    def check_query(self, query: str) -> None:
        """Check a full-text query.

        Raises:
            InvalidQueryError: It exceeds the limit.
        """
        if len(query) > self.query_bytes or len(query.encode("utf-8")) > self.query_bytes:
            raise InvalidQueryError(query, f"it is longer than the cap of {self.query_bytes} bytes: shorten it")
