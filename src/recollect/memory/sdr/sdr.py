"""`Sdr`, texts that are found by sparse codes of their trigrams: `memory.sdr`.

The texts are records in a namespace that belongs to the memory's, so they have a history, proofs and snapshots, are in
backups, and are reached through scopes and at past moments; recall of the memory never finds them. Their ids are
numbers, counted by a record that is written in the same commit, so a number is never given twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from recollect.arguments import all_named
from recollect.engine.sdr_results import FoundSdr
from recollect.errors import ConflictError, InvalidArgumentError, RecordExistsError, UnknownRecordError
from recollect.filters.tree import Is
from recollect.indexes.sdr.encoding import BITS, shared
from recollect.indexes.sdr.splitting import split
from recollect.memory.calls import stored
from recollect.operations import ABSENT, Batch, Count, Find, Forget, Get, Now, RecallSdrs, Remember, RememberAll, Update
from recollect.operations.checks import check_text
from recollect.records.record import Record
from recollect.records.sdrs import (
    COUNTER,
    COUNTER_ID,
    MAX_NUMBER,
    SDR,
    is_sdr,
    metadata_of,
    number_of,
    sdr_fields,
    updated_of,
)

if TYPE_CHECKING:
    from recollect.memory.memory import Memory

#: How often a write is tried again if others store texts meanwhile.
_TRIES = 20


class SdrText(TypedDict):
    """A text as it is stored.

    Attributes:
        id: Its number.
        text: The text.
        metadata: What was stored with it.
        created_ts: When it was stored, in seconds since 1970.
        updated_ts: When it was changed last.
    """

    id: int
    text: str
    metadata: dict[str, Any]
    created_ts: float
    updated_ts: float


class SdrHit(TypedDict):
    """A text that was found.

    Attributes:
        id: Its number.
        text: The text.
        score: How well it answers the question, 0 to 1, or, by the rule, 1 - hamming / 4096.
        metadata: What was stored with it.
        rule_score: 1 - hamming / 4096 of the 80 lowest bits, whatever the ranking.
        shared: The trigrams that it shares with the question, those of its best pieces.
    """

    id: int
    text: str
    score: float
    metadata: dict[str, Any]
    rule_score: float
    shared: list[str]


@all_named
class Sdr:
    """Texts that are found by sparse codes of their character trigrams. Returned by `Memory.sdr`.

        memory.sdr.store("Database connection pool exhausted", {"host": "db1"})
        memory.sdr.query("conection pool", limit=3)

    Every call raises InvalidArgumentError for an invalid argument and StoreError if the store fails.
    """

    def __init__(self, texts: Memory) -> None:
        self._texts = texts

    def store(
        self, text: str, metadata: Mapping[str, Any] | None = None, *, ttl: float | timedelta | None = None
    ) -> int:
        """Store a text and return its number. It is durable when this returns. The same text again is a further one.

        Args:
            text: The text; not blank.
            metadata: A JSON object.
            ttl: Seconds or a timedelta after which it expires.

        Raises:
            InvalidRecordError: The text is too long, or the metadata is not JSON.
            QuotaError: It does not fit in the quota of the namespace.
            RejectedError: A policy of the namespace does not allow the text.
            ConflictError: Others stored texts at the same time, again and again. Nothing was stored.
        """
        return self._store([(text, metadata)], ttl)[0]

    def store_many(
        self, items: Iterable[tuple[str, Mapping[str, Any] | None]], *, ttl: float | timedelta | None = None
    ) -> list[int]:
        """Store texts in one commit, or none of them, and return their numbers. See `store`.

        Args:
            items: (text, metadata) pairs.
            ttl: As for `store`.
        """
        return self._store(list(items), ttl)

    def query(self, text: str, limit: int = 5, *, rule: bool = False, minimum: float = 0.0) -> list[SdrHit]:
        """Return the texts that are closest to a text, best first; of equal ones the lowest number first.

        Every stored text is compared, exactly. By default the score is the overlap of the trigrams, weighted by rarity
        and calibrated: the probability that the text is from a memory that can answer the question. A long text counts
        by its best piece. Texts that share no trigram are not returned.

        Args:
            text: The text.
            limit: Maximum number of texts, 1 or more.
            rule: Rank by the rule of sdr-memory instead, 1 - hamming / 4096 of the 80 lowest bits, which favours short
                texts. Every text is then a hit.
            minimum: The least score, inclusive; 0 to 1.
        """
        found: list[FoundSdr] = self._texts.execute(RecallSdrs(text=text, limit=limit, rule=rule, minimum=minimum))
        return [_hit(text, each) for each in found]

    def get(self, number: int) -> SdrText | None:
        """Return a text, or None."""
        record = self._texts.execute(Get(id=_id(number)))
        return None if record is None or not is_sdr(record) else _shown(record)

    def update(self, number: int, text: str | None = None, metadata: Mapping[str, Any] | None = None) -> bool:
        """Change a text or its metadata. The former version stays in the history.

        Args:
            number: Its number.
            text: The new text; None: as it is.
            metadata: The new metadata; None: as it is.

        Returns:
            Whether there is such a text.

        Raises:
            As `store`.
        """
        if text is not None:
            check_text("text", text)
        for attempt in range(_TRIES):
            record = self._texts.execute(Get(id=_id(number)))
            if record is None or not is_sdr(record):
                return False
            said = metadata_of(record) if metadata is None else _checked_metadata(metadata)
            fields = sdr_fields(said, None, self._texts.execute(Now()))
            changes = {"content": record.content if text is None else text, "metadata": fields["metadata"]}
            try:
                stored(self._texts.execute(Update(id=record.id, changes=changes, expect=record.hash)))
            except (ConflictError, UnknownRecordError):
                if attempt == _TRIES - 1:
                    raise
            else:
                return True
        raise AssertionError

    def forget(self, number: int) -> bool:
        """Remove a text, and return whether there was one. Its history stays, and its number is not given again."""
        if self.get(number) is None:
            return False
        outcome = self._texts.execute(Forget(id=_id(number)))
        return bool(outcome.status == "forgotten")

    def explain(self, text: str, number: int) -> list[str]:
        """Return the trigrams that a text shares with a stored one, in their order in `text`.

        Raises:
            UnknownRecordError: There is no text with this number.
        """
        check_text("text", text)
        known = self.get(number)
        if known is None:
            raise UnknownRecordError(str(number), "the texts")
        return _shared(text, known["text"])

    def stats(self) -> dict[str, int]:
        """Return the number of texts, the highest number that was given, and the number of bits of a code.

        Without a scope, the texts of scopes are counted, too.
        """
        return {
            "memories": self._texts.execute(Count(where=Is("kind", (SDR,)))),
            "last_id": self._last()[0],
            "bits": BITS,
        }

    def texts(self) -> list[SdrText]:
        """Return all texts, by their numbers.

        Cost:
            All of them are read.
        """
        records = self._texts.execute(Find(where=Is("kind", (SDR,)), order="id"))
        shown = (_shown(record) for record in records if is_sdr(record) and number_of(record.id))
        return sorted(shown, key=lambda each: each["id"])

    def restore(self, texts: Iterable[SdrText]) -> int:
        """Store texts with the numbers and times that they had elsewhere, in one commit, or none of them.

        A text that is stored already under its number, with the same metadata, is left as it is.

        Args:
            texts: The texts.

        Returns:
            How many were stored.

        Raises:
            RecordExistsError: Another text has the number of one of them.
            As `store`.
        """
        items = list(texts)
        for attempt in range(_TRIES):
            new = [each for each in items if not self._is_stored(each)]
            last, expect = self._last()
            numbers = [_number(each["id"]) for each in new]
            if len(set(numbers)) < len(numbers):
                raise InvalidArgumentError("texts", numbers, "must have different numbers; nothing was stored")
            drafts = [_draft(each["id"], each["text"], each["metadata"], None, each) for each in new]
            try:
                self._write(drafts, max([last, *numbers]), expect)
            except ConflictError:
                if attempt == _TRIES - 1:
                    raise
            else:
                return len(new)
        raise AssertionError

    def _store(self, items: Sequence[tuple[str, Mapping[str, Any] | None]], ttl: float | timedelta | None) -> list[int]:
        for item in items:
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                raise InvalidArgumentError("items", item, "must be pairs of a text and its metadata")
            check_text("text", item[0])
        for attempt in range(_TRIES):
            last, expect = self._last()
            numbers = range(last + 1, last + 1 + len(items))
            drafts = [
                _draft(number, text, metadata, ttl) for number, (text, metadata) in zip(numbers, items, strict=True)
            ]
            try:
                self._write(drafts, last + len(items), expect)
            except ConflictError:
                if attempt == _TRIES - 1:
                    raise
            else:
                return list(numbers)
        raise AssertionError

    def _write(self, drafts: Sequence[Remember], last: int, expect: str) -> None:
        """Store texts and the highest number in one commit, provided that no other number was given meanwhile."""
        if not drafts:
            return
        fields = {"kind": COUNTER, "pinned": True}
        counter = Remember(content=str(last), id=COUNTER_ID, fields=fields, if_exists="update", expect=expect)
        self._texts.execute(Batch(operations=(counter, RememberAll(items=tuple(drafts), on_error="raise"))))

    def _last(self) -> tuple[int, str]:
        """Return the highest number that was given, and what the record that counts must be when it is replaced."""
        counter = self._texts.execute(Get(id=COUNTER_ID))
        return (0, ABSENT) if counter is None else (int(counter.text), counter.hash)

    def _is_stored(self, text: SdrText) -> bool:
        record = self._texts.execute(Get(id=_id(text["id"])))
        if record is None:
            return False
        if (record.text, metadata_of(record)) != (text["text"], text["metadata"]):
            raise RecordExistsError(record.id, record.hash)
        return True


def _draft(
    number: int,
    text: str,
    metadata: Mapping[str, Any] | None,
    ttl: float | timedelta | None,
    times: SdrText | None = None,
) -> Remember:
    created, updated = (None, None) if times is None else (_time(times["created_ts"]), _time(times["updated_ts"]))
    fields = sdr_fields(_checked_metadata(metadata), created, None if updated == created else updated)
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    return Remember(content=text, id=str(number), fields=fields, expect=ABSENT, ttl=seconds)


def _time(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise InvalidArgumentError("created_ts", seconds, "must be seconds since 1970") from None


def _checked_metadata(metadata: object) -> Mapping[str, Any]:
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidArgumentError("metadata", metadata, "must be a JSON object")
    return metadata


def _number(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < MAX_NUMBER:
        raise InvalidArgumentError("number", number, f"must be an integer from 1 to {MAX_NUMBER - 1}")
    return number


def _id(number: object) -> str:
    return str(_number(number))


def _shown(record: Record) -> SdrText:
    created = 0.0 if record.time is None else record.time.timestamp()
    return {
        "id": number_of(record.id) or 0,
        "text": record.text,
        "metadata": metadata_of(record),
        "created_ts": created,
        "updated_ts": updated_of(record) or created,
    }


def _hit(question: str, found: FoundSdr) -> SdrHit:
    record = found.record
    return {
        "id": number_of(record.id) or 0,
        "text": record.text,
        "score": found.score,
        "metadata": metadata_of(record),
        "rule_score": found.rule_score,
        "shared": _shared(question, record.text),
    }


def _shared(question: str, text: str) -> list[str]:
    """Return the trigrams that any piece of a text shares with a question, in the question's order."""
    of_pieces = [set(each) for each in shared(question, split(text))]
    every = shared(question, [question])[0]
    return [gram for gram in every if any(gram in each for each in of_pieces)]
