"""`Recording`: typed recording.

Each call stores records of one kind with the fields, metadata and importance of `records.factories`, and is written
against the other public calls, so that it works alike in a memory, a batch and a scope. Recording the same fact again
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, get_args

from recollect import filters as f
from recollect.arguments.checks import check_flag
from recollect.arguments.signatures import all_named, check_known
from recollect.calls.calls import Calls, kept_or_stored
from recollect.engine.results import Outcome, Report
from recollect.engine.scope import Scope
from recollect.errors import ConflictError, InvalidRecordError, UnknownRecordError
from recollect.operations import SCOPED, IfExists, Remember, Update, check_choice, check_text
from recollect.records import factories
from recollect.records.documents import PieceNames, free_ids, is_piece, piece_id, take_former, with_added
from recollect.records.factories import DEFAULT_IMPORTANCE, UNKNOWN_TYPE
from recollect.records.record import Instant, Record
from recollect.text.pieces import Span, markdown_pieces, paragraphs

#: The metadata that `record_knowledge` writes.
PIECE_METADATA = ("source", "chunk_index", "start", "end", "headings", "continued")
#: The structure by which `record_knowledge` divides a text.
Format: TypeAlias = Literal["text", "markdown"]
FORMATS: tuple[Format, ...] = get_args(Format)


class RecordingFields(TypedDict, total=False):
    """The fields of a record that a caller of `Recording` can pass in addition to the arguments of a call."""

    user: str | None
    agent: str | None
    conversation: str | None
    session: str | None
    source: str | None
    tags: Iterable[str]
    metadata: Mapping[str, Any]
    time: Instant | None
    valid_from: Instant | None
    valid_to: Instant | None
    expires: Instant | None
    language: str | None
    pinned: bool
    trust: float | None
    searchable: bool


@all_named
class Recording(Calls):
    """Calls that store records of one kind each."""

    def _one_commit(self) -> AbstractContextManager[Calls]:
        """Return a context with calls that become one commit: a batch, or this one."""
        raise NotImplementedError

    def record_entity_fact(
        self,
        entity: str,
        name: str,
        fact: str,
        entity_type: str = UNKNOWN_TYPE,
        *,
        importance: float | None = DEFAULT_IMPORTANCE,
        **fields: Unpack[RecordingFields],
    ) -> Record:
        """Store a fact about an entity, such as a person, a product or a place, and return its record.

            memory.record_entity_fact("ada", "Ada Lovelace", "wrote the first program", "person")

        Args:
            entity: The id of the entity. `EntityId.from_name(name)` makes one of a name.
            name: The name of the entity.
            fact: What is known of it. The same text again changes nothing.
            entity_type: The type of the entity, such as "person". If the fact is stored with "unknown", it is updated.
            importance: Clamped to [0, 1]; None: none.
            **fields: Other fields of the record: user, agent, conversation, session, source, tags, metadata, time,
                valid_from, valid_to, expires, language, pinned, trust and searchable.

        Raises:
            InvalidArgumentError: An argument is not text, or is empty.
            InvalidRecordError: A field is invalid.
            ScopeError: A field lies outside the scope.
            QuotaError: The record does not fit in the quota.
        """
        _check_fields("record_entity_fact()", fields, "entity_id", "entity_name", "entity_type")
        for argument, value in (("entity", entity), ("name", name), ("fact", fact), ("entity_type", entity_type)):
            check_text(argument, value)
        built = factories.entity(
            fact, name=name, entity=entity, entity_type=entity_type, importance=importance, **fields
        )
        return kept_or_stored(
            self._restated(built, "entity_type", lambda stored: stored == UNKNOWN_TYPE != entity_type)
        )

    def record_user_fact(
        self, fact: str, *, importance: float | None = DEFAULT_IMPORTANCE, **fields: Unpack[RecordingFields]
    ) -> Record:
        """Store a fact about a user and return its record.

            memory.record_user_fact("prefers window seats", user="ana")

        Args:
            fact: What is known of the user. The same text again changes nothing.
            importance: Clamped to [0, 1]; None: none.
            **fields: The user, and other fields of the record: agent, conversation, session, source, tags, metadata,
                time, valid_from, valid_to, expires, language, pinned, trust and searchable. Without a user (and
                outside the scope of one), the fact belongs to no user: `user_context` never returns it, `context` does
                for every user.

        Raises:
            InvalidRecordError: A field is invalid.
            ScopeError: A field lies outside the scope.
            QuotaError: The record does not fit in the quota.
        """
        _check_fields("record_user_fact()", fields, "user_id")
        check_text("fact", fact)
        return kept_or_stored(self.execute(_remember(factories.user_fact(fact, importance=importance, **fields))))

    def record_knowledge(
        self,
        content: str,
        *,
        format: Format = "text",  # noqa: A002 - the word for it
        importance: float | None = None,
        **fields: Unpack[RecordingFields],
    ) -> Report:
        """Store a document in pieces: the paragraphs of plain text, or the sections of Markdown.

            memory.record_knowledge(page, source="handbook/redis.md", format="markdown")

        Paragraphs and sections of more than 2,000 characters are divided, at the ends of blocks or sentences; fenced
        code is not. The text of a piece is `content[start:end]`, where `start` and `end` are in its metadata, in
        characters (code points of Python's str, not bytes). Other metadata: "chunk_index", the number of the piece in
        the text, from 0, and of Markdown "headings", the titles above it and its own, and "continued", true in the
        further parts of a section, which do not repeat its heading. Front matter is a piece of its own, and not read.

        A text with a source takes the place of what was recorded or imported under this source for the same user,
        agent and conversation: the same text again changes nothing; of an edited text, changed pieces are updated, and
        those that it no longer has are forgotten, in one commit. Tags and metadata that were added to a piece by other
        means stay. Without a source, pieces that are stored already are not stored again.

        Args:
            content: The document.
            format: "text" or "markdown".
            importance: Clamped to [0, 1]; None: none.
            **fields: The source, such as a path or an address, and other fields of the records: user, agent,
                conversation, session, tags, metadata, time, valid_from, valid_to, expires, language, pinned, trust and
                searchable.

        Returns:
            One outcome per piece, in the order of the text.

        Raises:
            InvalidArgumentError: `content` is not text or is empty, or `format` is unknown.
            InvalidRecordError: A field is invalid.
            ScopeError: A field lies outside the scope.
            QuotaError: The pieces do not fit in the quota.

        Nothing is changed if this raises. A batch cannot be committed any more if pieces were forgotten and the new
        ones could not be stored.

        Cost:
            One durable commit, and with a source, reading what is stored under it.
        """
        _check_fields("record_knowledge()", fields, *PIECE_METADATA)
        check_text("content", content)
        check_choice("format", format, FORMATS)
        given: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        # These raise for a field that all pieces share, before anything is forgotten.
        common = Record(id="any", content="any", **given)
        Scope().narrowed(**self.scope).fill(given)
        if "tags" in given:
            given["tags"] = common.tags
        spans = _spans(content, format)
        pieces = [_piece(content, span, at, importance, given) for at, span in enumerate(spans)]
        source = given.get("source")
        if source is None:
            return self.remember_all([_remember(piece) for piece in pieces], on_error="raise")
        names = PieceNames()
        for piece, span in zip(pieces, spans, strict=True):
            piece["id"] = piece_id(source, names.of(span.name, span.part))
        owner = {name: given.get(name) for name in SCOPED} | self.scope

        def is_own(record: Record) -> bool:
            return all(getattr(record, name) == value for name, value in owner.items())

        with self._one_commit() as calls:
            former = {
                record.id: record
                for record in calls.find(f.kind("knowledge") & f.source(source), order="id")
                if is_piece(record) and is_own(record)
            }
            kept = take_former(pieces, former)
            for record_id in former:
                calls.forget(record_id)
            ids = free_ids(pieces, kept, lambda some: calls.find(f.id(*some)), is_own)
            operations = [_replacement(*each) for each in zip(pieces, ids, kept, strict=True)]
            return calls.remember_all(operations, on_error="raise")

    def record_task(
        self,
        description: str,
        outcome: str,
        success: bool,
        *,
        importance: float | None = DEFAULT_IMPORTANCE,
        **fields: Unpack[RecordingFields],
    ) -> Record:
        """Store a task with its outcome and return its record, whose text is "Task: ...", "Outcome: ..." on two lines.

            memory.record_task("book a seat", "12A, window", True, user="ana")

        Args:
            description: What was to be done.
            outcome: What came of it.
            success: Whether it succeeded; in the metadata. If the same task is stored with the other value, its record
                is updated, and its history remains.
            importance: Clamped to [0, 1]; None: none.
            **fields: Other fields of the record: user, agent, conversation, session, source, tags, metadata, time,
                valid_from, valid_to, expires, language, pinned, trust and searchable.

        Raises:
            InvalidArgumentError: `description` or `outcome` is not text or is empty, or `success` is not a bool.
            InvalidRecordError: A field is invalid.
            ScopeError: A field lies outside the scope.
            QuotaError: The record does not fit in the quota.
        """
        _check_fields("record_task()", fields, "success")
        check_text("description", description)
        check_text("outcome", outcome)
        check_flag("success", success)
        built = factories.task(description, outcome, success=success, importance=importance, **fields)
        return kept_or_stored(self._restated(built, "success", lambda stored: stored is not success))

    def _restated(self, built: dict[str, Any], name: str, outdated: Callable[[Any], bool]) -> Outcome:
        """Store the fields of a factory; of a record that is stored already, update one outdated value of metadata.

        Args:
            built: The fields.
            name: The name of the value.
            outdated: Returns whether a stored value is to be replaced.
        """
        while True:
            outcome: Outcome = self.execute(_remember(dict(built))).checked()
            record = outcome.record
            assert record is not None
            if outcome.status == "echo" or not outdated(record.metadata.get(name)):
                return outcome
            metadata = {**record.metadata, name: built["metadata"][name]}
            with suppress(ConflictError, UnknownRecordError):  # another writer was faster: look again
                self.execute(Update(id=record.id, changes={"metadata": metadata}, expect=record.hash))


def _remember(fields: dict[str, Any]) -> Remember:
    """Return the operation that stores the fields of a factory."""
    return Remember(content=fields.pop("content"), fields=fields)


def _spans(text: str, format: Format) -> list[Span]:  # noqa: A002 - the word for it
    return list(paragraphs(text) if format == "text" else markdown_pieces(text))


def _piece(text: str, span: Span, at: int, importance: float | None, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a piece of a document."""
    piece = factories.knowledge(text[span.start : span.end], chunk_index=at, importance=importance, **fields)
    piece["metadata"] |= {"start": span.start, "end": span.end}
    if span.headings is not None:
        piece["metadata"]["headings"] = list(span.headings)
        if span.part and span.headings:
            piece["metadata"]["continued"] = True  # only the first part has its own heading in its text
    return piece


def _replacement(piece: dict[str, Any], record_id: str, former: Record | None) -> Remember:
    """Return the operation that stores a piece, in the place of its former record."""
    fields = piece if former is None else with_added(piece, former)
    del fields["id"]
    if_exists: IfExists = "keep" if former is None else "update"
    return Remember(content=fields.pop("content"), id=record_id, fields=fields, if_exists=if_exists)


def _check_fields(call: str, fields: RecordingFields, *own: str) -> None:
    """Check the names of fields, and that their metadata has none of the names that the call writes itself."""
    for name in fields:
        check_known(call, name, tuple(RecordingFields.__annotations__))
    metadata: object = fields.get("metadata")
    for name in own:
        if isinstance(metadata, Mapping) and name in metadata:
            raise InvalidRecordError("metadata", {name: metadata[name]}, f"may not have {name!r}: {call} writes it")
