"""`Contexts`: the calls that give what a memory knows as text for a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from recollect import filters as f
from recollect.arguments.checks import check_choice, check_count, check_flag, check_text
from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls, from_origin, zone_of_store
from recollect.calls.namespace import NamespaceCalls
from recollect.calls.tokens import Tokenizer, counter
from recollect.calls.whole import as_a_whole
from recollect.errors import InvalidArgumentError, UnsupportedError
from recollect.facets.entities.graph import of_entity
from recollect.filters import all_of
from recollect.filters.text_form import Where, as_filter, check_filter
from recollect.filters.tree import Filter
from recollect.memory.context.filling import Filling
from recollect.memory.context.gathering import (
    Candidate,
    Gathered,
    NamedTerms,
    asked_before,
    gathered,
    notes_matching,
    terms_named,
)
from recollect.memory.context.styles import indented
from recollect.memory.context.validity import NOT_ABANDONED, Validity, still_valid
from recollect.memory.context.values import PARTS, STYLES, Context, Outcome, Part, Style
from recollect.operations import AUTO_CONFIDENCE, MinConfidence, Now, least_confidence
from recollect.records.factories import title_of_chat
from recollect.records.origins import ASSISTANT, RANKS, USER, Origin, implied
from recollect.records.record import Instant, Record, check_instant

#: How often the finished text is counted with the caller's tokenizer and filled further.
_MOST_ROUNDS = 3


@all_named
class Contexts(Calls):
    """The calls that give what a memory knows as text for a prompt."""

    @as_a_whole
    def context(
        self,
        question: str,
        max_tokens: int = 2000,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        where: Where | None = None,
        include: Iterable[Part] = ("records",),
        min_confidence: MinConfidence = 0.0,
        concise: bool = False,
        style: Style = "markdown",
        tokenizer: Tokenizer | None = None,
        reference: Instant | None = None,
        min_origin: Origin | None = None,
    ) -> Context:
        """Return what helps to answer a question, as a text for a prompt that has at most `max_tokens` tokens.

            prompt = memory.context("Which seat should I book?", max_tokens=500, user="ana")

        The text consists of standing instructions and preferences, pinned records, and what `recall` finds: the hits
        that are worth most for their length. A tenth of the budget is kept for each of the first two. A text that
        repeats another is left out, a turn that explains a hit is added, and a long text that does not fit is given by
        the passages that match the question, with "[...]" between them. `context.items` says what went in, what did
        not, and why.

        Recalled text is data that others may have written. It is quoted: no text can end the quotation or look like
        another entry (not in the style "llm4s"). What tools, documents and the web say comes last, under a heading of
        its own that says so, and has a quarter of the budget while there is something else.

        Args:
            question: The question or the task, at most 64 KiB as UTF-8 by default (see `Limits`).
            max_tokens: The budget, 1 or more. Headings and the quotation are included.
            user: Read the records of this user and those without a user. In a scope of a user, it is that user. None:
                read those of all users, as `recall` does, each with the name of its user, but only standing
                instructions and pinned records that belong to no user.
            agent: Read the records of this agent and those without an agent.
            conversation: Read the records of this conversation and those without one.
            where: Read only records that match this filter or text form of one.
            include: What is considered: "records"; "glossary": the definitions of terms that the question names, those
                of the agent, or else those that all agents share; "outline": notes that match the question. Terms have
                up to a tenth of the budget, notes up to a quarter, and more if there is room.
            min_confidence: If no hit has at least this confidence, 0 to 1, the memory does not know the answer, and no
                hit is shown. "auto": 0.31, as for `recall`. What governs all questions is still shown.
            concise: Show only those of the best ten hits that add something to the ones before them, as `recall` does
                with this argument: a fraction of the tokens, and less of the evidence (see docs/context.md).
            style: "markdown": a fenced list. "xml": elements. "messages": a JSON array of chat messages, which
                `context.messages` returns as a list. "llm4s": lists by kind, not quoted.
            tokenizer: Converts a text to its tokens or to their number, such as `encode_ordinary` of tiktoken. It is
                called for every entry. Default: a quarter of the UTF-8 bytes, rounded up.
            reference: The time that expressions such as "yesterday" are relative to; default: now.
            min_origin: Show only what is of this class of origin (docs/trust.md) or a more trusted one. Default: all;
                in the style "llm4s", which cannot quote, from "assistant" on.

        Returns:
            A str with `items`, `tokens`, `messages` and `to_json()`. Empty if nothing was found or fits ("[]" in the
            style "messages").

        Raises:
            InvalidArgumentError: An argument is invalid, or the tokenizer failed.
            ScopeError: This memory is scoped to another user, agent or conversation.
            StoreError: The store failed.

        Cost:
            A recall of 200 hits (above 4,000 tokens of one hit for each 20), a search for pinned records, and some
            milliseconds for a large budget.
        """
        check_count("max_tokens", max_tokens)
        check_choice("style", style, STYLES)
        check_flag("concise", concise)
        parts = _parts(include)
        least = least_confidence(min_confidence)
        asked_at = None if reference is None else check_instant("reference", reference)
        count = counter(tokenizer)
        owners = self._owners(user, agent, conversation)
        zone = zone_of_store(self)
        condition = as_filter(where)
        check_filter(condition)
        condition = condition.located(zone)
        if min_origin is not None:
            condition = all_of(condition, from_origin(min_origin))
        check_text("question", question)
        named = terms_named(self._beside("terms"), question, owners) if "glossary" in parts else NamedTerms([], [])
        if "records" in parts:
            found = gathered(self, question, max_tokens, owners, condition, asked_at, named.questions)
        else:
            found = Gathered([], [], [], asked_at or self.execute(Now()))
        validity = Validity(self, [each.record for each in found.all], question, found.reference, zone, condition)
        is_asked = asked_before(question)
        left_out: list[tuple[Candidate, Outcome]] = [
            (each, "asked before" if validity.holds(each.record) else "not valid")
            for each in found.all
            if not validity.holds(each.record) or (each.origin == "hit" and is_asked(each.record))
        ]
        found = found.without({each.record.id for each, _ in left_out})
        if least and not any(each.confidence >= least for each in found.hits):
            left_out += [(each, "not confident") for each in found.hits]
            found = found._replace(hits=[])
        if concise:
            little = found.little()
            left_out += [(each, "adds little") for each in found.hits if each.record.id in little]
            found = found._replace(hits=[each for each in found.hits if each.record.id not in little])

        def is_shown(beside: Candidate) -> bool:
            """Return whether a term or a note is of a class that is asked for, or that the style can show."""
            if min_origin is None:
                return style != "llm4s" or not beside.is_untrusted
            return RANKS[beside.record.effective_origin] >= RANKS[min_origin]

        if style == "llm4s" and min_origin is None:
            left_out += [(each, "untrusted") for each in found.all if each.is_untrusted]
            found = found.without({each.record.id for each in found.all if each.is_untrusted})
        notes = notes_matching(self._beside("nodes"), question, owners, AUTO_CONFIDENCE) if "outline" in parts else []
        terms = [each for each in named.terms if is_shown(each)]
        found = found._replace(terms=terms, notes=[each for each in notes if is_shown(each)])

        def fetch(record_id: str) -> Candidate | None:
            record = self.get(record_id)
            if record is None or not record.searchable:
                return None
            if not all(each.matches(record) for each in (condition, *owners.readable)):
                return None
            validity.add([record])
            return Candidate(record, "neighbour", 0.0, {}, None) if validity.holds(record) else None

        empty = count("")  # a tokenizer may add tokens for the beginning and the end to each text
        size = (lambda text: len(text.encode("utf-8")) / 4) if tokenizer is None else lambda text: count(text) - empty
        filling = Filling(
            style,
            max_tokens,
            size,
            found.all,
            fetch,
            zone,
            validity.ended,
            left_out,
            self._titles([each.record for each in found.all], all_of(condition, *owners.readable)),
            of_user=owners.user is not None,
        )
        filling.fill(found)
        # The parts of a text may have more tokens than the whole. What that leaves is filled, too.
        for _ in range(_MOST_ROUNDS if tokenizer is not None else 0):
            if not filling.count(count):
                break
            filling.fill(found)
        return filling.finished(count)

    def _titles(self, candidates: Sequence[Record], readable: Filter) -> Callable[[str], str]:
        """Return a function that returns the title of a chat; "" if it has none, or its first turn may not be read."""

        @cache
        def titles() -> dict[str, str]:
            chats = dict.fromkeys(each.conversation for each in candidates if each.conversation is not None)
            first = self.find(all_of(f.conversation(*chats), f.kind("conversation"), f.meta("conversation"), readable))
            return {str(turn.conversation): title_of_chat(turn) or "" for turn in first}

        return lambda conversation: titles().get(conversation, "")

    def _beside(self, what: str) -> NamespaceCalls:
        """Return what is stored beside the records, as a memory. A batch has only records."""
        raise UnsupportedError(f"{what} in a context", "a batch: create the context from the memory")

    def entity_context(self, entity: str, *, min_origin: Origin | None = None) -> str:
        """Return what is known about an entity as text for a prompt, newest first; "" if nothing is.

            Known facts about Ada:
            - wrote the first program

        The name is that of the newest fact that states one, otherwise the id. All records of the entity are facts,
        whatever their kind, except turns. Further lines of a fact are indented by two spaces, so that they cannot pose
        as another fact.

        Args:
            entity: The id of the entity.
            min_origin: Only facts of this class of origin or a more trusted one. The others begin with their class, if
                it is below that of the assistant.

        Raises:
            InvalidArgumentError: It is None, not text, or empty.

        Cost:
            In proportion to the number of records of the entity.
        """
        check_text("entity", entity)
        facts = still_valid(self, self.find(of_entity(entity) & ~f.kind("conversation"), min_origin=min_origin))
        names = (record.metadata.get("entity_name") for record in facts if record.entity == entity)
        name = next((name for name in names if isinstance(name, str) and name), entity)
        return _listed(f"Known facts about {' '.join(name.split())}:", facts, ASSISTANT)

    def user_context(self, user: str, *, min_origin: Origin | None = None) -> str:
        """Return the facts about a user (kind "user_fact") as text for a prompt, newest first; "" if there are none.

            Known facts about the user:
            - prefers window seats

        Further lines of a fact are indented by two spaces, so that they cannot pose as another fact.

        Args:
            user: The user. There is no default, so that it never returns the facts of all users.
            min_origin: Only facts of this class of origin or a more trusted one. Those that are not the user's own word
                begin with their class.

        Raises:
            InvalidArgumentError: It is None, not text, or empty.

        Cost:
            In proportion to the number of records of the user.
        """
        check_text("user", user)
        facts = still_valid(self, self.find(f.user(user) & f.kind("user_fact"), min_origin=min_origin))
        return _listed("Known facts about the user:", facts, USER)

    def conversation_context(
        self, conversation: str, max_messages: int = 20, *, min_origin: Origin | None = None
    ) -> str:
        """Return the newest messages of a conversation as text for a prompt, oldest first; "" if there are none.

            Previous conversation:
            [user]: I moved to Oslo.
            [assistant]: Congratulations!

        Further lines of a message are indented by two spaces, so that they cannot pose as another message.

        Args:
            conversation: The name of the conversation.
            max_messages: Maximum number of messages, 1 or more: the newest by their time, and of equal time by their
                position. They are shown by their position.
            min_origin: Only messages of this class of origin or a more trusted one. The role of a message also states
                its class where it is another one than the role implies.

        Raises:
            InvalidArgumentError: `conversation` is None, not text, or empty, or `max_messages` is below 1.

        Cost:
            In proportion to the number of messages of the conversation.
        """
        check_text("conversation", conversation)
        check_count("max_messages", max_messages)
        turns_of = f.conversation(conversation) & f.kind("conversation") & NOT_ABANDONED
        newest = self.find(turns_of, limit=max_messages, min_origin=min_origin)
        # Newest first is by time, then by position; what is shown is in the order of the conversation.
        turns = sorted(still_valid(self, newest), key=_position)
        return "\n".join(["Previous conversation:", *map(_said, turns)]) if turns else ""


def _parts(include: Iterable[Part]) -> tuple[Part, ...]:
    """Return what a context considers.

    Raises:
        InvalidArgumentError: It is not a list of parts, or is empty.
    """
    if isinstance(include, str) or not isinstance(include, Iterable):
        raise InvalidArgumentError("include", include, f"must be a list of {', '.join(PARTS)}")
    parts = tuple(include)
    for each in parts:
        check_choice("include", each, PARTS)
    if not parts:
        raise InvalidArgumentError("include", include, f"is empty: name some of {', '.join(PARTS)}")
    return parts


def _listed(header: str, facts: Iterable[Record], least: Origin) -> str:
    """Return facts as a list. Those of a lower class of origin than `least` state theirs."""
    lines = [f"- {_from(record, least)}{_quoted(record)}" for record in facts]
    return "\n".join([header, *lines]) if lines else ""


def _from(record: Record, least: Origin) -> str:
    origin = record.effective_origin
    return "" if RANKS[origin] >= RANKS[least] else f"[{' '.join(f'{origin} {record.source or str()}'.split())}] "


def _said(turn: Record) -> str:
    origin = turn.effective_origin
    other = "" if origin == implied(turn.role, None, turn.kind) else f", {origin}"
    return f"[{' '.join((turn.role or turn.speaker or 'unknown').split())}{other}]: {_quoted(turn)}"


def _quoted(record: Record) -> str:
    """Return the text of a record as an item of a list; bytes are shown by their media type, in brackets."""
    return f"[{record.media_type}]" if isinstance(record.content, bytes) else indented(record.content)


def _position(turn: Record) -> tuple[bool, int]:
    return turn.position is None, turn.position or 0
