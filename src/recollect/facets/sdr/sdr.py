"""`Sdr`, texts that are found by sparse codes of their trigrams: `memory.sdr`.

The texts are records in a namespace that belongs to the memory's, so they have a history, are in backups, are
reached through scopes and at past moments (`Memory.at`, also of a snapshot), and are covered by the root of the memory:
`Memory.prove("12", part="sdrs")` proves one. Recall of the memory never finds them. Their ids are numbers, counted by a
record that is read and written in the same transaction, so a number is never given twice, and threads and processes
that store at the same time wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypedDict

from recollect.arguments.checks import check_text
from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls, stored
from recollect.calls.namespace import NamespaceCalls
from recollect.common.uncopied import Uncopied
from recollect.engine.family import counted
from recollect.errors import ConflictError, InvalidArgumentError, RecordExistsError, UnknownRecordError
from recollect.facets.sdr.index.encoding import BITS, normalised, shared
from recollect.facets.sdr.index.texts import split
from recollect.facets.sdr.operations import FoundSdr, RecallSdrs
from recollect.facets.sdr.records import (
    COUNTER,
    COUNTER_ID,
    SDR,
    is_sdr,
    metadata_of,
    number_of,
    sdr_fields,
    updated_of,
)
from recollect.facets.sdr.texts import SdrText, checked_metadata, checked_number, checked_texts, moment
from recollect.filters.tree import Is
from recollect.operations import ABSENT, Count, Find, Forget, Get, Now, Remember, RememberAll, Update
from recollect.records.record import Record


class SdrHit(TypedDict):
    """A text that was found.

    Attributes:
        id: Its number.
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
class Sdr(Uncopied):
    """Texts that are found by sparse codes of their character trigrams. Returned by `Memory.sdr`.

        memory.sdr.store("Database connection pool exhausted", {"host": "db1"})
        memory.sdr.query("conection pool", limit=3)

    Every call raises InvalidArgumentError for an invalid argument and StoreError if the store fails.
    """

    def __init__(self, texts: NamespaceCalls, actor: str | None = None, reason: str | None = None) -> None:
        self._texts = texts
        self._actor = actor
        self._reason = reason

    def by(self, actor: str | None, reason: str | None = None) -> Sdr:
        """Return these texts with commits that name who makes a change, and why.

        Args:
            actor: Who makes it.
            reason: Why it is made.
        """
        return Sdr(self._texts, actor, reason)

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
            StoreBusyError: Others wrote until the timeout, or this thread is inside a batch of the store.
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
        if not isinstance(items, Iterable):
            raise InvalidArgumentError("items", items, "must be pairs of a text and its metadata")
        return self._store(list(items), ttl)

    def query(self, text: str, limit: int = 5, *, rule: bool = False, minimum: float = 0.0) -> list[SdrHit]:
        """Return the texts that are closest to a text, best first; of equal ones the lowest number first.

        Every stored text is compared, exactly. By default the score is the overlap of the trigrams, weighted by rarity
        and calibrated: the probability that the text is from a memory that can answer the question. A long text counts
        by its best piece. Texts that share no trigram are not returned.

        Args:
            limit: Maximum number of texts, 1 or more.
            rule: Rank by the rule of sdr-memory instead, 1 - hamming / 4096 of the 80 lowest bits, which favours short
                texts. Every text is then a hit.
            minimum: The least score, inclusive; 0 to 1.
        """
        found: list[FoundSdr] = self._texts.execute(RecallSdrs(text=text, limit=limit, rule=rule, minimum=minimum))
        return [_hit(text, each) for each in found]

    def get(self, id: int) -> SdrText | None:  # noqa: A002 - the field's name
        """Return the text with a number, or None."""
        record = self._texts.execute(Get(id=_id(id)))
        return None if record is None or not is_sdr(record) else _shown(record)

    def update(
        self,
        id: int,  # noqa: A002 - the field's name
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """Change a text or its metadata. The former version stays in the history.

        Args:
            id: The number of the text.
            text: The new text; None: as it is.
            metadata: The new metadata; None: as it is.

        Returns:
            Whether there is such a text.

        Raises:
            As `store`.
        """
        if text is not None:
            check_text("text", text)
        checked = None if metadata is None else checked_metadata("metadata", metadata)
        record_id, now = _id(id), self._texts.execute(Now())
        with self._one_commit() as batch:
            record = batch.execute(Get(id=record_id))
            if record is None or not is_sdr(record):
                return False
            fields = sdr_fields(metadata_of(record) if checked is None else checked, None, now)
            changes = {"content": record.content if text is None else text, "metadata": fields["metadata"]}
            stored(batch.execute(Update(id=record_id, changes=changes)))
        return True

    def forget(self, id: int) -> bool:  # noqa: A002 - the field's name
        """Remove a text, and return whether there was one. Its history stays, and its number is not given again."""
        if self.get(id) is None:
            return False
        outcome = self._texts.execute(Forget(id=_id(id)), actor=self._actor, reason=self._reason)
        return bool(outcome.status == "forgotten")

    def explain(self, text: str, id: int) -> list[str]:  # noqa: A002 - the field's name
        """Return the trigrams that a text shares with the stored one that has a number, in their order in `text`.

        Raises:
            UnknownRecordError: There is no text with this number.
        """
        check_text("text", text)
        known = self.get(id)
        if known is None:
            raise UnknownRecordError(str(id), "the texts")
        return _shared(text, known["text"])

    def stats(self) -> dict[str, int]:
        """Return the number of texts, the highest number that was given, and the number of bits of a code.

        Without a scope, the texts of scopes are counted, too.
        """
        return {
            "memories": self._texts.execute(Count(where=Is("kind", (SDR,)))),
            "last_id": _last(self._texts),
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

        A text that is stored already under its number, with the same metadata, is left as it is. Texts are the same if
        their normalised forms are: those that `write_table` writes.

        Returns:
            How many were stored.

        Raises:
            RecordExistsError: Another text has the number of one of them.
            As `store`.
        """
        items = checked_texts(texts)
        numbers = [each["id"] for each in items]
        if len(set(numbers)) < len(numbers):
            raise InvalidArgumentError("texts", numbers, "must have different numbers; nothing was stored")
        fields = [_restored_fields(each) for each in items]
        if not items:
            return 0
        with self._one_commit() as batch:
            drafts = [
                _draft(text["id"], text["text"], about)
                for text, about in zip(items, fields, strict=True)
                if not _is_stored(batch, text)
            ]
            if drafts:
                _write(batch, drafts, max([_last(batch), *(int(each.id or 0) for each in drafts)]))
        return len(drafts)

    def _store(self, items: Sequence[tuple[str, Mapping[str, Any] | None]], ttl: float | timedelta | None) -> list[int]:
        for item in items:
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                raise InvalidArgumentError("items", item, "must be pairs of a text and its metadata")
            check_text("text", item[0])
        fields = [sdr_fields(checked_metadata("metadata", metadata), None, None) for _, metadata in items]
        if not items:
            return []
        try:
            return self._store_after(_last, items, fields, ttl)
        except ConflictError:  # an import has brought higher numbers, and not the record that counts
            return self._store_after(_highest, items, fields, ttl)

    def _store_after(
        self,
        last_of: Callable[[Calls], int],
        items: Sequence[tuple[str, Mapping[str, Any] | None]],
        fields: Sequence[Mapping[str, Any]],
        ttl: float | timedelta | None,
    ) -> list[int]:
        """Store texts under the numbers that follow one, and return these."""
        with self._one_commit() as batch:
            last = last_of(batch)
            numbers = range(last + 1, checked_number("number", last + len(items)) + 1)
            drafts = [
                _draft(number, text, about, ttl)
                for number, (text, _), about in zip(numbers, items, fields, strict=True)
            ]
            _write(batch, drafts, numbers[-1])
        return list(numbers)

    @contextmanager
    def _one_commit(self) -> Iterator[Calls]:
        """Read and write in one transaction, which no other writer interrupts."""
        with self._texts.batch(actor=self._actor, reason=self._reason) as batch:
            yield batch


def _last(texts: Calls) -> int:
    """Return the highest number that was given."""
    counter = texts.execute(Get(id=COUNTER_ID))
    return 0 if counter is None else counted(counter)


def _highest(texts: Calls) -> int:
    """Return the highest number that was given, or that a text has.

    Cost:
        All texts are read.
    """
    records = texts.execute(Find(where=Is("kind", (SDR,))))
    return max([_last(texts), *(number_of(record.id) or 0 for record in records)])


def _write(batch: Calls, drafts: Sequence[Remember], last: int) -> None:
    """Store texts and the highest number."""
    fields = {"kind": COUNTER, "pinned": True}
    batch.execute(Remember(content=str(last), id=COUNTER_ID, fields=fields, if_exists="update"))
    batch.execute(RememberAll(items=tuple(drafts), on_error="raise"))


def _is_stored(texts: Calls, text: SdrText) -> bool:
    """Return whether a text is stored under its number.

    Raises:
        RecordExistsError: Another one is.
    """
    record = texts.execute(Get(id=_id(text["id"])))
    if record is None:
        return False
    if (normalised(record.text), metadata_of(record)) != (normalised(text["text"]), text["metadata"]):
        raise RecordExistsError(record.id, record.hash)
    return True


def _restored_fields(text: SdrText) -> dict[str, Any]:
    """Return the fields of a text with the times that it had elsewhere."""
    created, updated = (moment(name, text[name]) for name in ("created_ts", "updated_ts"))
    return sdr_fields(text["metadata"], created, None if updated == created else updated)


def _draft(number: int, text: str, fields: Mapping[str, Any], ttl: float | timedelta | None = None) -> Remember:
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    return Remember(content=text, id=str(number), fields=fields, expect=ABSENT, ttl=seconds)


def _id(number: object) -> str:
    return str(checked_number("id", number))


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
