"""`redact` replaces keys, passwords, addresses and numbers of people in a text by asterisks.

All patterns read the original text. What overlaps is hidden as a whole, so a short match never leaves the rest of a
longer secret visible. A secret is found by its form or by the name before it, so one that looks like an ordinary word
stays: redaction lowers a risk and removes none.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from recollect.errors import InvalidArgumentError
from recollect.policies.patterns import FoldedText, Pattern, marks, patterns

#: What can be redacted.
CATEGORIES = ("secret", "email", "card", "iban", "phone", "national_id")


class Redacted(NamedTuple):
    """A text in which something may have been replaced.

    Attributes:
        found: How many times each category was found, in the order of `CATEGORIES`; empty if the text is unchanged.
            What several patterns found in one place counts once, as what the longest of them is.
    """

    text: str
    found: Mapping[str, int]


class _Span(NamedTuple):
    """A part of a text that is hidden, and the pattern that found it."""

    start: int
    end: int
    pattern: Pattern


#: How often a text is read again because something was found: what was hidden may have been the only reason why its
#: neighbour was not found, and redacting twice must be redacting once. Of 160,000 contrived texts none needed three.
_READINGS = 8


def _found(text: str, chosen: Collection[str]) -> list[_Span]:
    """Return what patterns of these categories hide, in order. Spans that overlap are one, of the longest's pattern."""
    read = FoldedText(text)
    spans = [
        _Span(*each, pattern) for pattern in patterns() if pattern.category in chosen for each in pattern.spans(read)
    ]
    joined: list[_Span] = []
    longest = 0
    for span in sorted(spans, key=lambda span: span[:2]):
        length = span.end - span.start
        if joined and span.start < joined[-1].end:
            start, end, pattern = joined[-1]
            joined[-1] = _Span(start, max(end, span.end), span.pattern if length > longest else pattern)
            longest = max(longest, length)
        else:
            joined.append(span)
            longest = length
    return joined


def redact(text: str, categories: Collection[str] = CATEGORIES) -> Redacted:
    """Replace keys, passwords, addresses and numbers of people in a text.

    >>> redact("apiKey=sk-12345, write to ana@example.com").text
    'apiKey=***REDACTED***, write to ***@***.***'
    >>> redact("nothing to hide")
    Redacted(text='nothing to hide', found={})

    Args:
        categories: What to replace: "secret" (keys, tokens, passwords), "email", "card", "iban", "phone" and
            "national_id".

    Raises:
        InvalidArgumentError: `text` is not text, or a category is unknown.

    Cost:
        Linear in the text.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError("text", text, "must be text")
    chosen = check_categories(categories)
    counts: dict[str, int] = {}
    for _ in range(_READINGS):
        if not (spans := _found(text, chosen)):
            break
        pieces, end = [], 0
        for span in spans:
            category = span.pattern.category
            counts[category] = counts.get(category, 0) + 1
            pieces += [text[end : span.start], span.pattern.mark]
            end = span.end
        text = "".join(pieces) + text[end:]
    return Redacted(text, {name: counts[name] for name in CATEGORIES if name in counts})


def redact_json(value: Any, categories: Collection[str] = CATEGORIES) -> tuple[Any, dict[str, int]]:
    """Redact every text in a JSON value, except keys of objects, and return the value and what was found.

    >>> redact_json({"to": ["ana@example.com"], "n": 1})
    ({'to': ['***@***.***'], 'n': 1}, {'email': 1})

    A text under a key that names a secret is hidden as a whole, and one under another key as after that name:

    >>> redact_json({"password": "correct horse", "phone": "22334455"})
    ({'password': '***REDACTED***', 'phone': '***-***-****'}, {'secret': 1, 'phone': 1})
    """
    counts: dict[str, int] = {}
    chosen = check_categories(categories)

    def of(each: Any, key: str = "") -> Any:
        if isinstance(each, str):
            text, found = redact(each, chosen)
            if each and "secret" in chosen and _names_secret(key):
                text, found = (
                    (each, {}) if each in marks() or not each.strip("*") else ("***REDACTED***", {"secret": 1})
                )
            elif not found and key:
                prefix = f"{key}="
                named, found = redact(prefix + each, chosen)
                text = named.removeprefix(prefix) if found and named.startswith(prefix) else text
                found = found if text != each else {}
            for name, count in found.items():
                counts[name] = counts.get(name, 0) + count
            return text
        if isinstance(each, Mapping):
            return {name: of(item, name) for name, item in each.items()}
        return [of(item, key) for item in each] if isinstance(each, (list, tuple)) else each

    return of(value), counts


@lru_cache(maxsize=256)
def _names_secret(key: str) -> bool:
    """Return whether what follows a key is a secret, shown by values that look like one: pins have digits only."""
    return any(redact(f"{key}={value}", ["secret"]).text.endswith("=***REDACTED***") for value in ("a1b2c3", "1234"))


def check_categories(categories: Collection[str]) -> tuple[str, ...]:
    """Return the categories in the order of `CATEGORIES`.

    Raises:
        InvalidArgumentError: One is unknown, or they are not a collection of text.
    """
    if isinstance(categories, str) or not isinstance(categories, Collection):
        raise InvalidArgumentError("categories", categories, f"must be a list of {', '.join(CATEGORIES)}")
    for each in categories:
        if each not in CATEGORIES:
            raise InvalidArgumentError("categories", each, f"must be one of {', '.join(CATEGORIES)}")
    return tuple(each for each in CATEGORIES if each in categories)


# A filter for Python's logging that redacts messages before a handler writes them.


class RedactingFilter(logging.Filter):
    """Redacts the messages of log records. Add it to a handler, so that it sees what all loggers pass to it.

        handler.addFilter(recollect.policies.RedactingFilter())

    The message is formatted first, so values among its arguments are redacted too, and so is the text of an exception.

    Args:
        categories: What to replace: see `redact`.
    """

    def __init__(self, categories: Collection[str] = CATEGORIES) -> None:
        super().__init__()
        self._categories = check_categories(categories)

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact a record and pass it on."""
        record.msg, record.args = redact(record.getMessage(), self._categories).text, None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            # The traceback is formatted here and not again by the handler, which would use the exception itself.
            record.exc_text, record.exc_info = redact(record.exc_text, self._categories).text, None
        return True
