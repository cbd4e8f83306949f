"""Asking again: what a user asked an assistant before is no answer, so a context leaves it out.

Only turns of a user without a name are left out. Between people, the question says what the answer next to it is about.
"""

from __future__ import annotations

from collections.abc import Callable

from recollect.records.record import Record
from recollect.text.asking import is_about_questions, only_asks
from recollect.text.words import language_of, terms

#: The part of the words of the shorter of two questions that nearly equal ones share.
_SHARED = (2, 3)


def asked_before(question: str) -> Callable[[Record], bool]:
    """Return a function that returns whether a record is a turn of a user that asks nearly what a question asks.

    Of a question about questions, no turn does.
    """
    if is_about_questions(question):
        return lambda record: False
    language = language_of(question)
    asked = {term for term, _ in terms(question, language)}

    def is_asked(record: Record) -> bool:
        to_assistant = record.kind == "conversation" and record.role == "user" and record.speaker is None
        if not to_assistant or not only_asks(record.text):
            return False
        words = {term for term, _ in terms(record.text, language)}
        least, all_of = _SHARED
        return len(asked & words) * all_of >= min(len(asked), len(words)) * least

    return is_asked
