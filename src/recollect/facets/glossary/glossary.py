"""`Glossary`, the terms that agents know: `memory.glossary`.

Each agent has terms of its own. They are records in a namespace that belongs to the memory's, so they have a
history, count towards its quota, are in backups, are reached through scopes and at past moments (`Memory.at`, also of a
snapshot), and are covered by the root of the memory: `Memory.prove(entry_id, part="terms")` proves one. Recall of the
memory never finds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from os import PathLike
from typing import Any

from recollect.arguments.checks import check_seconds, check_text
from recollect.arguments.signatures import all_named
from recollect.calls.calls import stored
from recollect.common.uncopied import Uncopied
from recollect.engine.history_results import RecordVersion
from recollect.engine.results import RecordList
from recollect.facets.glossary import files
from recollect.facets.glossary.operations import (
    AnnotateTerms,
    Annotation,
    FoundTerm,
    RecallTerms,
    SharedName,
    SharedNames,
    Tokenizer,
)
from recollect.facets.glossary.records import TERM, entry_of, term_fields
from recollect.facets.glossary.tokenizers import tokenizer_of
from recollect.facets.glossary.values import (
    Listed,
    Occurrence,
    Recalled,
    StatedTerm,
    TermVersion,
    checked_ids,
    is_category,
    listed,
    listed_texts,
    recalled,
    sorted_by_key,
    stated,
)
from recollect.filters.tree import AllOf, Is
from recollect.operations import Find, ForgetWhere, Get, GetAll, History, Remember, RememberAll
from recollect.records.record import Record

#: Executes an operation on the namespace of the terms, with an actor and a reason as `Memory.execute` takes them.
Execute = Callable[..., Any]


@all_named
class Glossary(Uncopied):
    """The terms that agents know. Returned by `Memory.glossary`.

        memory.glossary.memorize("PII", "Personally Identifiable Information", category="abbreviation",
                                 agent_id="compliance_bot", aliases=["private data"])
        memory.glossary.recall("How do we handle private data?", "compliance_bot")

    Every call raises InvalidArgumentError for an invalid argument and StoreError if the store fails.
    """

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def by(self, actor: str | None, reason: str | None = None) -> Glossary:
        """Return this glossary with commits that name who makes a change, and why.

        Args:
            actor: Who makes it.
            reason: Why it is made.
        """
        return Glossary(partial(self._execute, actor=actor, reason=reason))

    def memorize(
        self,
        key: str,
        value: str,
        category: str,
        agent_id: str,
        aliases: Sequence[str] | None = None,
        description: str | None = None,
        *,
        ttl: float | timedelta | None = None,
    ) -> None:
        """Store a term. One with the same key, in any casing, is replaced; its former version stays in the history.

        Args:
            key: The term. It is stored as it is, with spaces around it.
            value: What it means; not empty.
            category: Its category, such as "abbreviation".
            agent_id: The agent that knows it.
            aliases: Its other names.
            description: More about it.
            ttl: Seconds or a timedelta after which it expires.

        Raises:
            InvalidRecordError: A text is too long, or `agent_id` is not a name.
            ScopeError: This memory is scoped to another agent.
            QuotaError: The term does not fit in the quota of the namespace.
            RejectedError: A policy of the namespace does not allow the text.
        """
        term = stated(key, value, category, aliases, description)
        check_text("agent_id", agent_id)
        stored(self._execute(replace(_remembered(term, agent_id, ttl), id=self._id(key, agent_id))))

    def get(self, key: str, agent_id: str) -> Listed | None:
        """Return the term with a key, in any casing, or None if the agent knows none."""
        record = self._execute(Get(id=self._id(key, agent_id)))
        return None if record is None else listed(record)

    def recall(
        self,
        question: str,
        agent_id: str,
        k: int = 10,
        score_threshold: float | None = None,
        *,
        typos: bool = False,
        tokenizer: Tokenizer | str | PathLike[str] | None = None,
    ) -> list[Recalled]:
        """Return the terms that answer a question, best first, ties by key.

        The score is BM25's over the terms of this agent, on its raw scale. A term whose key or alias occurs in the
        question is ranked above all that only share words, and never scored below 3.0. A term that shares no word with
        the question is not returned: nothing is guessed.

        Args:
            agent_id: The agent.
            k: Maximum number of terms, 1 or more.
            score_threshold: The least score, inclusive. 1.0 to 3.0 usually leave out near misses.
            typos: Whether a word that no term has stands for those that resemble it, with a lower weight.
            tokenizer: A function from a text to its tokens, to be used for terms and question, or the path of a
                tokenizer.json (extra `tokenizers`), without its special tokens. Default: words without their endings
                and without stop words.

        Raises:
            InvalidArgumentError: Also if the tokenizer.json is missing or damaged.
            MissingExtraError: The library for a tokenizer.json is not installed.

        Cost:
            In proportion to the terms that share a word with the question. The first call reads all terms of the agent.
        """
        if isinstance(tokenizer, (str, PathLike)):
            tokenizer = tokenizer_of(tokenizer)
        found: list[FoundTerm] = self._execute(
            RecallTerms(
                agent=agent_id, question=question, limit=k, minimum=score_threshold, typos=typos, tokenizer=tokenizer
            )
        )
        return [recalled(each.record, each.score) for each in found]

    def annotate(self, text: str, agent_id: str) -> list[Occurrence]:
        """Return every place in a text where a key or an alias occurs, in order, without overlaps.

        Of names that begin at one place the longest is found. Case and the width of white space make no difference, and
        a name is found as whole words only; in scripts without spaces, between any two characters.

        Args:
            text: The text, such as a message.
            agent_id: The agent.

        Cost:
            Linear in the text, whatever the terms are: about 15 milliseconds for 100 KB. The first call after a change
            also reads the names of all terms of the agent.
        """
        found: list[Annotation] = self._execute(AnnotateTerms(agent=agent_id, text=text))
        records = {record.id: record for each in found for record in each.records}
        terms = {record_id: listed(record) for record_id, record in records.items()}
        return [
            Occurrence(
                each.start,
                each.end,
                text[each.start : each.end],
                each.name,
                tuple(terms[record.id] for record in each.records),
            )
            for each in found
        ]

    def forget(self, key: str | Iterable[str], agent_id: str) -> int:
        """Remove a term, or several in one commit, and return how many there were. Their history stays."""
        check_text("agent_id", agent_id)
        keys = [key] if isinstance(key, str) else listed_texts("key", key)
        ids = tuple(dict.fromkeys(each for name in keys for each in checked_ids(name, agent_id)))
        return int(self._execute(ForgetWhere(where=Is("id", ids)))) if ids else 0

    def list_all(self, agent_id: str, category: str | None = None) -> list[Listed]:
        """Return all terms of an agent, or those of a category, sorted by key, case-insensitively."""
        found: RecordList = self._execute(Find(where=_of(agent_id), order="id"))
        return sorted_by_key([term for term in map(listed, found) if is_category(term, category)])

    def agents(self) -> dict[str, int]:
        """Return the agents that have terms, sorted, each with the number of its terms.

        Cost:
            Reads all terms.
        """
        found: RecordList = self._execute(Find(where=Is("kind", (TERM,)), order="id"))
        return dict(sorted(Counter(str(record.agent) for record in found).items()))

    def categories(self, agent_id: str) -> dict[str, int]:
        """Return the categories of the terms of an agent, sorted, each with the number of its terms."""
        return dict(sorted(Counter(term["category"] for term in self.list_all(agent_id)).items()))

    def history(self, key: str, agent_id: str) -> list[TermVersion]:
        """Return every version of a term, oldest first; [] if the agent never knew it."""
        versions: list[RecordVersion] = self._execute(History(id=self._id(key, agent_id)))
        return [
            TermVersion(
                each.commit.seq,
                each.commit.time,
                each.cause,
                None if each.record is None or entry_of(each.record) is None else listed(each.record),
            )
            for each in versions
        ]

    def expiry(self, key: str, agent_id: str) -> datetime | None:
        """Return when a term expires; None if it never does, or if the agent knows no such term."""
        record = self._execute(Get(id=self._id(key, agent_id)))
        return None if record is None else record.expires

    def set_expiry(self, key: str, agent_id: str, ttl: float | timedelta | None) -> bool:
        """Make a term expire after some time, or never, and return whether the agent knows it.

        Args:
            key: The term.
            agent_id: The agent.
            ttl: Seconds or a timedelta from now; None: it never expires.

        Raises:
            ConflictError: The term was changed at the same time. Its expiry was not set.
        """
        if ttl is not None:
            check_seconds("ttl", ttl.total_seconds() if isinstance(ttl, timedelta) else ttl)
        record = self._execute(Get(id=self._id(key, agent_id)))
        if record is None:
            return False
        stored(self._execute(_remembered(_of_record(record)._replace(expires=None), agent_id, ttl, expect=record.hash)))
        return True

    def to_csv(self, agent_id: str) -> str:
        """Return the terms of an agent as CSV, by key: key, value, category, aliases, description and expires.

        The aliases are one cell, with ";" between them.
        """
        return files.to_csv(self._exported(agent_id))

    def to_json(self, agent_id: str) -> str:
        """Return the terms of an agent as a JSON array of objects, by key."""
        return files.to_json(self._exported(agent_id))

    def from_csv(self, text: str, agent_id: str) -> int:
        """Store the terms of CSV as `to_csv` writes it, and return how many there are.

        They are stored in one commit, or not at all. Terms with the same keys are replaced, and others stay.

        Args:
            text: The CSV, with a header. Only the fields key and value are required.
            agent_id: The agent that shall know the terms.

        Raises:
            ImportFormatError: It is not such a file. The message names the line.
        """
        return self._imported(files.from_csv(text), agent_id)

    def from_json(self, text: str, agent_id: str) -> int:
        """Store the terms of a JSON array of objects, as `from_csv` does, and return how many there are.

        Raises:
            ImportFormatError: It is not such an array. The message says which term is wrong.
        """
        return self._imported(files.from_json(text), agent_id)

    def _exported(self, agent_id: str) -> list[StatedTerm]:
        found: RecordList = self._execute(Find(where=_of(agent_id), order="id"))
        return sorted(map(_of_record, found), key=lambda term: (term.key.casefold(), term.key))

    def _imported(self, terms: list[StatedTerm], agent_id: str) -> int:
        check_text("agent_id", agent_id)
        items = tuple(_remembered(term, agent_id, None) for term in terms)
        if items:
            self._execute(RememberAll(items=items, on_error="raise"))
        return len(items)

    def shared_names(self, agent_id: str) -> list[SharedName]:
        """Return the keys and aliases that several terms of an agent have, so that a text can mean each of them."""
        found: list[SharedName] = self._execute(SharedNames(agent=agent_id))
        return found

    def _id(self, key: str, agent_id: str) -> str:
        """Return the id under which a term is stored, or would be."""
        ids = checked_ids(key, agent_id)
        if len(ids) == 1:
            return ids[0]
        found: list[Record | None] = self._execute(GetAll(ids=ids))
        return next((each for each, record in zip(ids, found, strict=True) if record is not None), ids[0])


def _remembered(term: StatedTerm, agent_id: str, ttl: float | timedelta | None, expect: str | None = None) -> Remember:
    """Return the operation that stores a term. Without a `ttl` it expires as the term states."""
    fields = term_fields(agent_id, term.key, term.value, term.category, term.aliases, term.description)
    if ttl is None:
        fields["expires"] = term.expires  # None also ends an expiry that it had before
    content, term_id = fields.pop("content"), fields.pop("id")
    return Remember(
        content=content,
        id=term_id,
        fields=fields,
        if_exists="update",
        ttl=ttl,  # type: ignore[arg-type]
        expect=expect,
    )


def _of_record(record: Record) -> StatedTerm:
    term = listed(record)
    return StatedTerm(
        term["key"], term["value"], term["category"], tuple(term["aliases"]), term["description"], record.expires
    )


def _of(agent_id: str) -> AllOf:
    check_text("agent_id", agent_id)
    return AllOf((Is("kind", (TERM,)), Is("agent", (agent_id,))))
