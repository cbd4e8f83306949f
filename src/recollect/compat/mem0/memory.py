"""`Memory` with the names of mem0: what is added is stored as it is said, and no model is called."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Self, TypeAlias

import recollect
from recollect import Outcome, RecollectWarning, Record
from recollect import filters as f
from recollect.compat.mem0.filters import OWNERS, checked_id, condition, owners_in
from recollect.compat.mem0.shapes import (
    EXPIRATION,
    day_of,
    end_of,
    found_of,
    history_of,
    instant_of,
    memory_of,
    without_identity,
)
from recollect.compat.opening import Closing, Opened, Place, opened, opened_default
from recollect.compat.searching import Condition, Searcher
from recollect.compat.turns import add_turns, with_metadata, worthy
from recollect.errors import InvalidArgumentError
from recollect.operations import Now

#: A function from a text to the facts that it states, such as `recollect.models.ModelExtractor`.
Extractor: TypeAlias = Any

_NAME = "mem0"
_PROCEDURAL = "procedural_memory"
#: What a configuration of mem0 may have that a memory has no use for.
_UNUSED = frozenset(
    {
        "custom_fact_extraction_prompt",
        "custom_instructions",
        "custom_update_memory_prompt",
        "embedder",
        "enable_graph",
        "graph_store",
        "history_db_path",
        "llm",
        "reranker",
        "vector_store",
        "version",
    }
)
_UNSET: Any = object()
_DEFAULT_K = 20


class Memory(Closing):
    """The memory of users, agents and runs, with the calls and results of mem0.

    What is added is stored as it is said, found by words, and kept with its history. It can be used from several
    threads and processes. All records of the memory are memories, also those of other calls: `user_id` is the user of a
    record, `agent_id` its agent, `run_id` its conversation and `actor_id` its speaker.

    Args:
        config: A configuration of mem0, as a dictionary or an object. Its key "recollect" has the arguments of
            `recollect.open` and, as "path", the path or address. Models and vector stores in it are not used, and a
            warning says so.
        memory: A memory, also of `recollect.connect`, which stays open; a path or address that `recollect.open` takes;
            or the address of a server. Default: the path of the configuration, or else the default store.
        extractor: What extracts facts from messages of users where `infer` is true, such as
            `recollect.models.ModelExtractor(model)`. Default: nothing does.

    Raises:
        InvalidArgumentError: The configuration has an unknown key, or a path beside `memory`.
        RecollectError: The memory cannot be opened.
    """

    def __init__(self, config: Any = None, *, memory: Place | None = None, extractor: Extractor | None = None) -> None:
        place, options = _place(config, memory)
        self._extractor = extractor
        self._warned: set[str] = set()
        self._opened: Opened = opened_default(**options) if place is None else opened(place, **options)
        self._searcher = Searcher(self._opened.memory)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any], **options: Any) -> Self:
        """Return a memory with a configuration. The arguments and errors are those of the class."""
        return cls(config_dict, **options)

    @property
    def memory(self) -> recollect.Memory:
        """The memory with all its calls: `context`, `erase`, `rollback`, `prove` and others."""
        return self._opened.memory

    # Writing

    def add(
        self,
        messages: str | Mapping[str, Any] | Iterable[Any],
        *,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        llm: Any = None,
    ) -> dict[str, Any]:
        """Store a text, or the messages of a chat that are not stored yet, in one commit.

        The messages may be the whole conversation, each time: only new ones are added. Those of the system are left
        out, and so is what a policy of the memory does not find worth remembering.

        Args:
            messages: A text, a message, or a list of messages in the form of OpenAI or Anthropic.
            user_id: The user to whom they belong. One of the three ids must be stated.
            agent_id: The agent to whom they belong.
            run_id: The conversation to which they belong; default for messages: derived from the first one.
            metadata: Metadata of each, as JSON. Ids in it are left out, with a warning.
            timestamp: When it was said: seconds since 1970, ISO 8601 text or a datetime; default: now.
            expiration_date: The last day, in UTC, on which it is found: a date, or ISO 8601 text.
            infer: With an extractor, also store the facts that it finds in what users say. Without one, this makes no
                difference, and a warning says so once.
            memory_type: "procedural_memory" stores all messages as one memory; it needs `agent_id`.
            prompt: Only for models: it is not used, and a warning says so.
            llm: The same.

        Returns:
            {"results": [{"id", "memory", "event", "role", "actor_id"}, ...]}. The event is "ADD". For what was stored
            already it is "NONE", and "UPDATE" if its metadata or its last day is another one now.

        Raises:
            InvalidArgumentError: No id is stated, or an argument is invalid.
            InvalidRecordError: A message exceeds a limit of the memory, or metadata has other values than JSON.
            RejectedError: A policy of the memory refuses a secret.
            RecollectError: The extractor failed.
            StoreError: The store failed.

        Nothing is stored if this raises.
        """
        owners = _owners(user_id=user_id, agent_id=agent_id, run_id=run_id)
        if not owners:
            raise InvalidArgumentError("user_id", None, "must be stated, or agent_id, or run_id")
        if memory_type not in (None, _PROCEDURAL):
            raise InvalidArgumentError("memory_type", memory_type, f'must be "{_PROCEDURAL}" or None')
        own, ignored = _stated(metadata)
        if ignored:
            self._warn(f"metadata[{ignored[0]!r}] is left out: ids are arguments of add", once=False)
        for name, value in (("prompt", prompt), ("llm", llm)):
            if value is not None:
                self._warn(f"{name} is not used: no model is called")
        if infer and self._extractor is None:
            self._warn("infer=True needs an extractor: the messages are stored as they are, and no model is called")
        fields: dict[str, Any] = {**owners, "time": instant_of("timestamp", timestamp)}
        valid_to = None
        if expiration_date is not None:
            day = day_of(expiration_date)
            own[EXPIRATION], valid_to = day.isoformat(), end_of(day)
        said = _messages(messages)
        if memory_type is not None:
            if agent_id is None:
                raise InvalidArgumentError("agent_id", None, f'must be stated for "{_PROCEDURAL}"')
            if not all(isinstance(each, Mapping) and isinstance(each["content"], str) for each in said):
                raise InvalidArgumentError("messages", messages, f'must be texts with a role for "{_PROCEDURAL}"')
            text = "\n".join(f"{each['role']}: {each['content']}" for each in said)
            own, messages = {**own, "memory_type": memory_type}, text
        if not said:
            return {"results": []}
        with self._opened.memory.batch(actor=_NAME, reason="add") as batch:
            if isinstance(messages, str):
                outcomes = _text(batch, messages, own, valid_to, fields)
            else:
                outcomes = add_turns(batch, said, metadata=own, valid_to=valid_to, **fields)
            facts = self._extracted(batch, outcomes, fields) if infer and memory_type is None else []
        return {"results": [_result(outcome) for outcome in (*outcomes, *facts) if outcome.record is not None]}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change the text, keys of the metadata or the last day of a memory; what it was stays in its history.

        Args:
            memory_id: The id of the memory.
            text: The new text.
            metadata: Keys to set. Ids in it are left out, with a warning.
            expiration_date: The last day on which it is found, or None: it is always found.
            data: The text by its former name, which is deprecated.

        Raises:
            InvalidArgumentError: There is no such memory, nothing is to be changed, or an argument is invalid.
            InvalidRecordError: The text or the metadata exceeds a limit of the memory.
            RejectedError: A policy of the memory refuses a secret.
            StoreError: The store failed.
        """
        if data is not None:
            warnings.warn("update(data=) is deprecated: pass text=", DeprecationWarning, stacklevel=2)
            text = data if text is None else text
        if text is None and metadata is None and expiration_date is _UNSET:
            raise InvalidArgumentError("text", None, "must be stated, or metadata, or expiration_date")
        own, ignored = _stated(metadata)
        if ignored:
            self._warn(f"metadata[{ignored[0]!r}] is left out: ids cannot be changed", once=False)
        changes: dict[str, Any] = {} if text is None else {"content": text}
        day = None if expiration_date in (None, _UNSET) else day_of(expiration_date)
        with self._opened.memory.batch(actor=_NAME, reason="update") as batch:
            record = batch.get(memory_id)
            if record is None:
                raise _unknown(memory_id)
            changed = {**record.metadata, **own}
            if expiration_date is not _UNSET:
                changes["valid_to"] = None if day is None else end_of(day)
                changed.pop(EXPIRATION, None)
                changed |= {} if day is None else {EXPIRATION: day.isoformat()}
            batch.update(memory_id, metadata=changed, **changes)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete a memory. Its history stays, and `memory.erase` removes the text from there, too.

        Raises:
            InvalidArgumentError: There is no such memory.
            StoreError: The store failed.
        """
        with self._opened.memory.batch(actor=_NAME, reason="delete") as batch:
            if batch.get(memory_id) is None:
                raise _unknown(memory_id)
            batch.forget(memory_id)
        return {"message": "Memory deleted successfully!"}

    def delete_all(self, user_id: Any = None, agent_id: Any = None, run_id: Any = None) -> dict[str, str]:
        """Delete all memories of a user, an agent and a run, in one commit.

        Raises:
            InvalidArgumentError: None of them is stated: `reset` deletes everything.
            StoreError: The store failed.
        """
        owners = _owners(user_id=user_id, agent_id=agent_id, run_id=run_id)
        if not owners:
            rule = "must be stated, or agent_id, or run_id: reset deletes everything"
            raise InvalidArgumentError("user_id", None, rule)
        with self._opened.memory.batch(actor=_NAME, reason="delete_all") as batch:
            stated = {key: owners[name] for key, name in OWNERS.items() if name in owners}
            batch.forget_where(condition(stated).bound, parts=("records",))
        return {"message": "Memories deleted successfully!"}

    def reset(self) -> None:
        """Delete all memories of everyone, in one commit. The log keeps them: `memory.rollback` brings them back."""
        with self._opened.memory.batch(actor=_NAME, reason="reset") as batch:
            batch.forget_where(f.everything(), parts=("records",))

    # Reading

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory, or None if there is none with this id."""
        record = self._opened.memory.get(memory_id)
        return None if record is None else self._shown([record])[0]

    def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = _DEFAULT_K,
        show_expired: bool = False,
        **former: Any,
    ) -> dict[str, Any]:
        """Return the memories that fit a filter, newest first.

        Args:
            filters: What they must fit, with at least one id: {"user_id": "ana"}. See `search`.
            top_k: Maximum number of memories.
            show_expired: Whether to return those whose last day has passed, and facts that others have replaced.
            **former: `user_id`, `agent_id`, `run_id` and `limit`, as in the first version of mem0; deprecated.

        Returns:
            {"results": [{"id", "memory", "hash", "metadata", "created_at", "updated_at", "user_id", ...}, ...]}

        Raises:
            InvalidArgumentError: No id is required, or an argument is invalid.
            StoreError: The store failed.
        """
        filters, top_k = self._former("get_all", filters, top_k, former)
        wanted = self._wanted(filters, show_expired)
        return {"results": self._shown(self._searcher.newest(wanted, _count(top_k)))}

    def search(
        self,
        query: str,
        *,
        top_k: int = _DEFAULT_K,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **former: Any,
    ) -> dict[str, Any]:
        """Return the memories that answer a question, best first.

        Args:
            query: What to look for, as for `Memory.recall`.
            top_k: Maximum number of memories.
            filters: What they must fit, with at least one id. A value is equal to that of the key, or in its list; "*"
                is any value; a dictionary has operators (eq, ne, in, nin, gt, gte, lt, lte, contains, icontains); and
                AND, OR and NOT take lists of filters. Keys are ids, "actor_id", "role", "created_at", and those of the
                metadata.
            threshold: The least confidence of a result, 0 to 1; None: whatever answers. (In mem0, None is 0.1, of a
                score that does not depend on the number of memories; the confidence falls with it.)
            rerank: Results are ranked already: it is not used, and a warning says so.
            explain: Whether each result has "score_details".
            reference_date: The time to which words such as "yesterday" in the question refer; default: now.
            show_expired: Whether to find those whose last day has passed, and facts that others have replaced.
            **former: `user_id`, `agent_id`, `run_id` and `limit`, as in the first version of mem0; deprecated.

        Returns:
            What `get_all` does, each with "score": the confidence, the estimated probability that the memory can answer
            the question.

        Raises:
            InvalidArgumentError: The query is blank, no id is required, or an argument is invalid.
            StoreError: The store failed.

        Cost:
            That of `Memory.recall`, and a look-up of the results.
        """
        filters, top_k = self._former("search", filters, top_k, former)
        if not isinstance(query, str) or not query.strip():
            raise InvalidArgumentError("query", query, "must be a text that is not blank")
        least = 0.0 if threshold is None else threshold
        if isinstance(least, bool) or not isinstance(least, (int, float)) or not 0 <= least <= 1:
            raise InvalidArgumentError("threshold", threshold, "must be a number, 0 to 1")
        if rerank:
            self._warn("rerank is not used: the results are ranked already")
        options: dict[str, Any] = {"min_confidence": float(least)}
        if reference_date is not None:
            options["reference"] = instant_of("reference_date", reference_date)
        wanted = self._wanted(filters, show_expired)
        hits = self._searcher.recalled(query, wanted, _count(top_k), **options)
        changed = self._changed(hit.record for hit in hits)
        return {"results": [found_of(hit, changed.get(hit.record.id), explain=explain) for hit in hits]}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return what happened to a memory, oldest first: "ADD", "UPDATE" and "DELETE"; [] for an unknown id."""
        return history_of(memory_id, self._opened.memory.history(memory_id))

    def chat(self, query: str) -> Any:
        """Not offered, as in mem0."""
        raise NotImplementedError("mem0 has no chat function, and neither has this memory")

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    # Parts of the calls

    def _wanted(self, filters: Mapping[str, Any], show_expired: bool) -> Condition:
        if not owners_in(filters):
            rule = "must require user_id, agent_id or run_id, such as {'user_id': 'ana'}"
            raise InvalidArgumentError("filters", filters, rule)
        where = f.has("searchable")
        if not show_expired:
            where &= f.valid_at(self._opened.memory.execute(Now()))
        return condition(filters).within(where)

    def _former(
        self, call: str, filters: Mapping[str, Any] | None, top_k: int, former: Mapping[str, Any]
    ) -> tuple[dict[str, Any], int]:
        """Return the filters and the number of results with arguments of the first version of mem0."""
        if filters is not None and not isinstance(filters, Mapping):
            raise InvalidArgumentError("filters", filters, "must be a dictionary")
        joined = dict(filters or {})
        for name, value in former.items():
            if name not in (*OWNERS, "limit"):
                raise TypeError(f"{call}() got an unexpected argument {name!r}")
            if value is None:
                continue
            instead = "top_k" if name == "limit" else f"filters={{{name!r}: ...}}"
            warnings.warn(f"{call}({name}=) is deprecated: pass {instead}", DeprecationWarning, stacklevel=3)
            if name == "limit":
                top_k = value
            elif name in joined and joined[name] != value:
                raise InvalidArgumentError(name, value, f"differs from filters, which have {joined[name]!r}")
            else:
                joined[name] = value
        return joined, top_k

    def _shown(self, records: list[Record]) -> list[dict[str, Any]]:
        changed = self._changed(records)
        return [memory_of(record, changed.get(record.id)) for record in records]

    def _changed(self, records: Iterable[Record]) -> dict[str, datetime]:
        """Return when records were last changed, by id."""
        ids = [record.id for record in records]
        if not ids:
            return {}
        found = self._opened.memory.find(f.id(*ids), with_commit=True)
        return {record.id: at for record, at in zip(found, found.committed, strict=True) if at is not None}

    def _extracted(self, batch: Any, outcomes: Iterable[Outcome], fields: Mapping[str, Any]) -> list[Outcome]:
        """Store the facts that the extractor finds in what users said now, and return their outcomes."""
        found: list[Outcome] = []
        if self._extractor is None:
            return found
        named = {name: value for name, value in fields.items() if value is not None}
        for outcome in outcomes:
            record = outcome.record
            if record is not None and outcome.status == "created" and record.role in (None, "user"):
                report = batch.extract_entities(record.text, extractor=self._extractor, **named)
                found += worthy(report)
        return found

    def _warn(self, message: str, *, once: bool = True) -> None:
        if not once or message not in self._warned:
            self._warned.add(message)
            warnings.warn(message, RecollectWarning, stacklevel=3)


def _place(config: Any, memory: Place | None) -> tuple[Place | None, dict[str, Any]]:
    """Return what to open and the arguments of `recollect.open` that a configuration has."""
    if isinstance(config, (str, os.PathLike, recollect.Memory)):
        raise InvalidArgumentError("config", config, "must be a configuration: a path or a memory is memory=...")
    stated = {} if config is None else config if isinstance(config, Mapping) else vars(config)
    own = stated.get("recollect") or {}
    if not isinstance(own, Mapping):
        raise InvalidArgumentError("config['recollect']", own, 'must be a dictionary, such as {"path": "agent.db"}')
    options = dict(own)
    unknown = sorted(set(stated) - _UNUSED - {"recollect"})
    if unknown:
        known = ", ".join(("recollect", *sorted(_UNUSED)))
        raise InvalidArgumentError("config", unknown[0], f"is no key of a configuration: there are {known}")
    if unused := sorted(key for key in _UNUSED & set(stated) if stated[key] is not None and key != "version"):
        message = f"not used: {', '.join(unused)}. A memory needs no model and no vector store"
        warnings.warn(message, RecollectWarning, stacklevel=4)
    path = options.pop("path", None)
    if path is not None and memory is not None:
        raise InvalidArgumentError("memory", memory, "cannot be stated beside the path of a configuration")
    return (path if memory is None else memory), options


def _stated(metadata: Any) -> tuple[dict[str, Any], list[str]]:
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidArgumentError("metadata", metadata, "must be a dictionary")
    return without_identity(metadata or {})


def _owners(**named: Any) -> dict[str, str]:
    return {OWNERS[name]: checked_id(name, value) for name, value in named.items() if value is not None}


def _messages(messages: Any) -> list[Any]:
    """Return the messages that are to be stored: those that have a text and are not of the system.

    Raises:
        InvalidArgumentError: They are no messages.
    """
    if isinstance(messages, str):
        if not messages.strip():
            raise InvalidArgumentError("messages", messages, "must not be blank")
        return [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        messages = [messages]
    if not isinstance(messages, (list, tuple)):
        raise InvalidArgumentError("messages", messages, "must be a text, a message, or a list of messages")
    said = []
    for index, message in enumerate(messages):
        if isinstance(message, Mapping) and message.get("role") == "system":
            continue
        if isinstance(message, Mapping) and (message.get("role") is None or not message.get("content")):
            warnings.warn(f"message {index} is left out: it has no role or no content", RecollectWarning, stacklevel=4)
            continue
        said.append(message)
    return said


def _text(
    batch: Any, text: str, metadata: Mapping[str, Any], valid_to: datetime | None, fields: Mapping[str, Any]
) -> list[Outcome]:
    """Store a text that is said by itself, and return its outcome."""
    kind = "user_fact" if "user" in fields else "knowledge"
    item = {"content": text, "kind": kind, "role": "user", "metadata": dict(metadata), "valid_to": valid_to, **fields}
    report = batch.remember_all([{name: value for name, value in item.items() if value is not None}])
    return [_said_again(batch, with_metadata(batch, each, metadata, valid_to)) for each in worthy(report)]


def _said_again(batch: Any, outcome: Outcome) -> Outcome:
    """Let a text that is added again be true again, if its last day has passed."""
    record = outcome.record
    if record is None or record.valid_to is None or outcome.status != "unchanged":
        return outcome
    if record.valid_to > batch.execute(Now()):
        return outcome
    metadata = {name: value for name, value in record.metadata.items() if name != EXPIRATION}
    return replace(outcome, record=batch.update(record.id, metadata=metadata, valid_to=None), status="updated")


def _result(outcome: Outcome) -> dict[str, Any]:
    record = outcome.record
    assert record is not None, "those without one are left out"
    event = {"created": "ADD", "proposed": "ADD", "updated": "UPDATE"}.get(outcome.status, "NONE")
    return {"id": record.id, "memory": record.text, "event": event, "actor_id": record.speaker, "role": record.role}


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidArgumentError("top_k", value, "must be an integer, 0 or more")
    return value


def _unknown(memory_id: str) -> InvalidArgumentError:
    return InvalidArgumentError("memory_id", memory_id, "is not the id of a memory")
