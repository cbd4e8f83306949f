"""`redact` replaces keys, passwords, addresses and numbers of people in a text by asterisks.

`patterns.toml` describes what is found, beside examples of what must and must not be found. A secret is found by its
form or by the name before it, so one that looks like an ordinary word stays: redaction lowers a risk and removes none.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from recollect.errors import InvalidArgumentError
from recollect.redaction.checks import CHECKS

#: What can be redacted.
CATEGORIES = ("secret", "email", "card", "iban", "phone", "national_id")


class Redacted(NamedTuple):
    """A text in which something may have been replaced.

    Attributes:
        text: The text.
        found: How many times each category was found, in the order of `CATEGORIES`; empty if the text is unchanged.
    """

    text: str
    found: Mapping[str, int]


class _Pattern(NamedTuple):
    category: str
    expression: re.Pattern[str]
    replacement: str
    check: str
    starts: tuple[str, ...]
    digits: int

    def apply(self, text: str, lower: str, digits: int) -> tuple[str, int]:
        """Return a text with what this finds replaced, and how many times it was found.

        Args:
            text: The text.
            lower: The text as it was passed, in lower case: what it does not contain is not searched for.
            digits: The number of its digits.
        """
        if digits < self.digits or (self.starts and not any(start in lower for start in self.starts)):
            return text, 0
        count = 0

        def replaced(found: re.Match[str]) -> str:
            nonlocal count
            if self.check and not CHECKS[self.check](found[0]):
                return found[0]
            count += 1
            return found.expand(self.replacement)

        return self.expression.sub(replaced, text), count


@cache
def descriptions() -> list[dict[str, Any]]:
    """Return the patterns as `patterns.toml` describes them, with their examples."""
    import tomllib  # with the patterns, so that what redacts nothing does not load it

    text = (files("recollect.redaction") / "patterns.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["pattern"]
    return found


@cache
def _patterns() -> tuple[_Pattern, ...]:
    return tuple(
        _Pattern(
            each["category"],
            re.compile(each["pattern"]),
            each["with"],
            each.get("check", ""),
            tuple(start.lower() for start in each.get("starts", ())),
            each.get("digits", 0),
        )
        for each in descriptions()
    )


def redact(text: str, categories: Collection[str] = CATEGORIES) -> Redacted:
    """Replace keys, passwords, addresses and numbers of people in a text.

    >>> redact("apiKey=sk-12345, write to ana@example.com").text
    'apiKey=***REDACTED***, write to ***@***.***'
    >>> redact("nothing to hide")
    Redacted(text='nothing to hide', found={})

    Args:
        text: The text.
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
    lower, digits = text.lower(), sum(map(text.count, string.digits))
    counts: dict[str, int] = {}
    for pattern in _patterns():
        if pattern.category in chosen:
            text, count = pattern.apply(text, lower, digits)
            if count:
                counts[pattern.category] = counts.get(pattern.category, 0) + count
    return Redacted(text, {name: counts[name] for name in CATEGORIES if name in counts})


def redact_json(value: Any, categories: Collection[str] = CATEGORIES) -> tuple[Any, dict[str, int]]:
    """Redact every text in a JSON value, except keys of objects, and return the value and what was found.

    >>> redact_json({"to": ["ana@example.com"], "n": 1})
    ({'to': ['***@***.***'], 'n': 1}, {'email': 1})

    A text under a key that names a secret is redacted as after that name:

    >>> redact_json({"password": "correcthorse"})
    ({'password': '***REDACTED***'}, {'secret': 1})
    """
    counts: dict[str, int] = {}

    def of(each: Any, key: str = "") -> Any:
        if isinstance(each, str):
            text, found = redact(each, categories)
            if not found and key:
                prefix = f"{key}="
                named, found = redact(prefix + each, categories)
                text = named.removeprefix(prefix) if found and named.startswith(prefix) else text
                found = found if text != each else {}
            for name, count in found.items():
                counts[name] = counts.get(name, 0) + count
            return text
        if isinstance(each, Mapping):
            return {name: of(item, name) for name, item in each.items()}
        return [of(item, key) for item in each] if isinstance(each, (list, tuple)) else each

    return of(value), counts


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
