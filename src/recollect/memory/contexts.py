"""`Contexts`: the calls that give what a memory knows as text for a prompt."""

from __future__ import annotations

from recollect.arguments import all_named
from recollect.errors import InvalidArgumentError
from recollect.filters.text_form import as_filter
from recollect.filters.tree import Filter
from recollect.memory.calls import Calls
from recollect.memory.context.filling import Filling
from recollect.memory.context.gathering import Candidate, Owners, gathered
from recollect.memory.context.values import STYLES, Context, Style, Tokenizer, counter
from recollect.records.record import Instant

#: Share of the budget that standing instructions and preferences may take, and share of pinned records.
_GOVERNING_SHARE = 0.1


@all_named
class Contexts(Calls):
    """The calls that give what a memory knows as text for a prompt."""

    def context(
        self,
        question: str,
        max_tokens: int = 2000,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        where: Filter | str | None = None,
        style: Style = "markdown",
        tokenizer: Tokenizer | None = None,
        time: Instant | None = None,
    ) -> Context:
        """Return what helps to answer a question, as a text for a prompt that has at most `max_tokens` tokens.

            prompt = memory.context("Which seat should I book?", max_tokens=500, user="ana")

        The text consists of standing instructions and preferences, then pinned records, each in at most a tenth of the
        budget, then what `recall` finds: the hits that are worth most for their length. A text that repeats another is
        left out, a turn that explains a hit is added, and a long text that does not fit is given by the passages that
        match the question, with "[...]" between them. `context.items` says what went in, what did not, and why.

        Recalled text is data that others may have written. It is quoted: no text can end the quotation or look like
        another entry (not in the style "llm4s").

        Args:
            question: The question or the task, at most 64 KiB as UTF-8 by default (see `Limits`).
            max_tokens: The budget, 1 or more. Headings and the quotation are included.
            user: Read the records of this user and those without a user. In a scope of a user, it is that user. None:
                read what `recall` reads, but only standing instructions and pinned records that belong to no user.
            agent: Read the records of this agent and those without an agent.
            conversation: Read the records of this conversation and those without one.
            where: Read only records that match this filter or text form of one.
            style: "markdown": a fenced list. "xml": elements. "messages": a JSON array of chat messages, which
                `context.messages` returns as a list. "llm4s": lists by kind, not quoted.
            tokenizer: Converts a text to its tokens or to their number, such as `tiktoken`'s `encode`. Default: a
                quarter of the UTF-8 bytes, rounded up. It is called for every entry.
            time: The time that expressions such as "yesterday" are relative to; default: now.

        Returns:
            A str with `items`, `tokens`, `messages` and `to_json()`. Empty if nothing was found or fits ("[]" in the
            style "messages").

        Raises:
            InvalidArgumentError: An argument is invalid.
            StoreError: The store failed.

        Cost:
            A recall of 200 hits, a search for pinned records, and some milliseconds for a large budget.
        """
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise InvalidArgumentError("max_tokens", max_tokens, "must be an integer of at least 1")
        if style not in STYLES:
            raise InvalidArgumentError("style", style, f"must be one of {', '.join(STYLES)}")
        count = counter(tokenizer)
        scope = self.scope
        owners = Owners(user or scope.get("user"), agent or scope.get("agent"), conversation)
        condition = as_filter(where)
        standing, pinned, hits = gathered(self, question, owners, condition, time)

        def fetch(record_id: str) -> Candidate | None:
            record = self.get(record_id)
            readable = record is not None and all(each.matches(record) for each in (condition, *owners.readable))
            return Candidate(record, "neighbour", 0.0, {}, None) if record is not None and readable else None

        size = (lambda text: len(text.encode("utf-8")) / 4) if tokenizer is None else count
        filling = Filling(style, max_tokens, size, [*standing, *pinned, *hits], fetch)
        filling.fill(standing, _GOVERNING_SHARE)
        filling.fill(pinned, _GOVERNING_SHARE)
        filling.fill(hits)
        return filling.finished(count)
