"""The operations that search the terms of a glossary. They are executed on the reserved namespace that has them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from recollect.arguments.checks import check_count, check_number, check_text
from recollect.arguments.json_form import JsonForm
from recollect.errors import InvalidArgumentError
from recollect.operations.base import READ, Operation
from recollect.records.record import Record
from recollect.text.unicode import nfc

#: A function from a text to its tokens.
Tokenizer = Callable[[str], Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class RecallTerms(Operation, name="recall_terms", right=READ, result="list[FoundTerm]"):
    """Find the terms of an agent that answer a question. The result is a list of `FoundTerm`, best first.

    Attributes:
        limit: Maximum number of terms.
        minimum: The least score; None: any.
        typos: Whether misspelt words stand for those that resemble them.
        tokenizer: Returns the tokens of a text; None: words without their endings. It has no JSON form.
    """

    agent: str
    question: str
    limit: int = 5
    minimum: float | None = None
    typos: bool = False
    tokenizer: Tokenizer | None = None

    def __post_init__(self) -> None:
        check_text("agent", self.agent)
        object.__setattr__(self, "agent", nfc(self.agent))
        check_text("question", self.question, blank=True)
        check_count("limit", self.limit)
        if self.minimum is not None:
            check_number("minimum", self.minimum)
        if self.tokenizer is not None and not callable(self.tokenizer):
            raise InvalidArgumentError("tokenizer", self.tokenizer, "must be a function from a text to its tokens")
        if not isinstance(self.tokenizer, Hashable):
            raise InvalidArgumentError("tokenizer", self.tokenizer, "must be hashable: its terms are cached by it")


@dataclass(frozen=True, kw_only=True)
class AnnotateTerms(Operation, name="annotate_terms", right=READ, result="list[Annotation]"):
    """Find where the terms of an agent occur in a text. The result is a list of `Annotation`."""

    agent: str
    text: str

    def __post_init__(self) -> None:
        check_text("agent", self.agent)
        object.__setattr__(self, "agent", nfc(self.agent))
        check_text("text", self.text, blank=True)


@dataclass(frozen=True, kw_only=True)
class SharedNames(Operation, name="shared_names", right=READ, result="list[SharedName]"):
    """List the names that several terms of an agent have. The result is a list of `SharedName`."""

    agent: str

    def __post_init__(self) -> None:
        check_text("agent", self.agent)
        object.__setattr__(self, "agent", nfc(self.agent))


# Results of searches in a glossary.


@dataclass(frozen=True, slots=True)
class FoundTerm(JsonForm, what="a found term"):
    """A term that answers a question.

    Attributes:
        score: Its score, on BM25's scale.
        exact: The names of it that the question contains.
        words: The tokens that it shares with the question.
    """

    record: Record
    score: float
    exact: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Annotation(JsonForm, what="an annotation"):
    """An occurrence of a term in a text.

    Attributes:
        start: The offset of its first character.
        end: The offset after its last one.
        name: The key or alias that occurs.
        records: The records of the terms that have this name, those with this key first.
    """

    start: int
    end: int
    name: str
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class SharedName(JsonForm, what="a shared name"):
    """A name that several terms have.

    Attributes:
        keys: The keys of the terms, sorted.
    """

    name: str
    keys: tuple[str, ...]
