"""The text form of filters: what the command line and `where=` take.

    kind=user_fact and (user=ana or user=bob) and not tag=old and importance>=0.5 and time>=2026-01-01

A condition is `key operator value`. Keys: the text fields of a record, `supersedes`, `derived_from`, `parent`, `under`,
`tag`, `importance`, `time`, `valid_at`, `content`, `words` and `meta.KEY`. Operators: `=` and `!=`; `~` (contains) for
content and meta; `>=` for importance; `<`, `<=`, `>`, `>=` for time. `meta.KEY` alone tests whether the key exists; a
field alone, whether the record has it (`not user`). Values with spaces, parentheses or quotes are written in double or
single quotes, with a backslash before a quote or a backslash inside; so are keys of metadata: `meta."a.b c"=1`. A
single quote inside a bare word is part of it: `user=O'Brien`. `not` binds tighter than `and`, and `and` tighter than
`or`. Times are ISO 8601; times without an offset are in the zone that the caller passes.
"""

from __future__ import annotations

import difflib
import json
import re
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from recollect.errors import InvalidFilterError, InvalidRecordError, shown
from recollect.filters.tree import (
    LINK_FIELDS,
    MAX_DEPTH,
    OPTIONAL_FIELDS,
    TEXT_FIELDS,
    AllOf,
    AnyOf,
    Contains,
    Everything,
    Filter,
    Has,
    ImportanceAtLeast,
    Is,
    Links,
    Matches,
    Meta,
    Not,
    Nothing,
    Tag,
    Time,
    Under,
    ValidAt,
)
from recollect.records.record import located, unlocated

# A word is quoted as a whole in single quotes, or has parts in double quotes. In a bare word a single quote is literal,
# but not at its start: there a quote that is not closed is more likely a mistake.
_TOKEN = re.compile(
    r"""\s*(?:([()])|(!=|>=|<=|=|~|<|>)|("""
    r"""(?:meta\.)?'(?:[^'\\]|\\.)*'(?=[\s()=!~<>]|\Z)|(?!(?:meta\.)?')(?:"(?:[^"\\]|\\.)*"|[^\s()=!~<>"])+))""",
    re.DOTALL,
)
#: The operators of each key. The text fields of a record take "= or !=".
_OPERATORS = {
    **dict.fromkeys(("tag", "under", *LINK_FIELDS), "= or !="),
    "content": "~ (or not content~...)",
    "words": "=, ~ or !=",
    "importance": ">= (or not importance>=...)",
    "time": "<, <=, =, !=, >= or >",
    "valid_at": "= or !=",
    "meta.KEY": "=, ~ or !=",
}
_FIRST = datetime(2, 1, 1, tzinfo=UTC)
_LAST = datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


class _Token(NamedTuple):
    kind: str  # "(", ")", "op", "word", "end"
    text: str
    at: int


def parse(text: str, *, zone: tzinfo | None = None) -> Filter:
    """Parse the text form of a filter.

    An empty text is an error, so that an empty variable in a script does not select every record: write "everything".

    Args:
        text: The text form.
        zone: The time zone of times without an offset; default: that of the memory that the filter is passed to.

    Raises:
        InvalidFilterError: The text is invalid. The message has the position, in characters from 1.

    >>> parse("user=ana and not tag=old").to_json()
    {'all_of': [{'user': 'ana'}, {'not': {'tag': 'old'}}]}
    """
    if not isinstance(text, str):
        raise InvalidFilterError(repr(text), "is not the text form of a filter")
    reader = _Reader(text, zone)
    if reader.token.kind == "end":
        raise reader.wrong('it is empty (write "everything" for all records)')
    found = reader.either(0)
    if reader.token.kind != "end":
        raise reader.wrong("expected and, or, or the end")
    return found


def as_filter(where: object) -> Filter:
    """Return a `where=` argument as a filter: a text is parsed, and None is every record.

    Anything else is returned as it is: the operation refuses it.

    Raises:
        InvalidFilterError: The text is invalid.
    """
    if where is None:
        return Everything()
    return parse(where) if isinstance(where, str) else where  # type: ignore[return-value]


class _Reader:
    """A recursive descent parser."""

    def __init__(self, text: str, zone: tzinfo | None) -> None:
        self.text, self.zone, self.at = text, zone, 0
        self.token = self.next_token()

    def next_token(self) -> _Token:
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            rest = self.text[self.at :]
            if rest.strip():
                at = len(self.text) - len(rest.lstrip()) + 1
                quoted = rest.lstrip().removeprefix("meta.")[:1]
                rule = f"the quote {quoted} is not closed" if quoted in ("'", '"') else "this cannot be read"
                raise InvalidFilterError(self.text, f"at character {at}, {rule}")
            return _Token("end", "", len(self.text))
        self.at = found.end()
        bracket, operator, word = found.groups()
        if bracket:
            return _Token(bracket, bracket, found.start(1))
        return _Token("op", operator, found.start(2)) if operator else _Token("word", word, found.start(3))

    def take(self) -> _Token:
        taken, self.token = self.token, self.next_token()
        return taken

    def wrong(self, rule: str) -> InvalidFilterError:
        return InvalidFilterError(self.text, f"at character {self.token.at + 1}, {rule}")

    def is_word(self, word: str) -> bool:
        return self.token.kind == "word" and self.token.text.lower() == word

    def either(self, depth: int) -> Filter:
        parts = [self.both(depth)]
        while self.is_word("or"):
            self.take()
            parts.append(self.both(depth))
        return AnyOf.of(*parts)

    def both(self, depth: int) -> Filter:
        parts = [self.one(depth)]
        while self.is_word("and"):
            self.take()
            parts.append(self.one(depth))
        return AllOf.of(*parts)

    def one(self, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise self.wrong(f"it is nested deeper than {MAX_DEPTH} levels")
        if self.is_word("not"):
            self.take()
            return Not(self.one(depth + 1))
        if self.token.kind == "(":
            self.take()
            inner = self.either(depth + 1)
            if self.token.kind != ")":
                raise self.wrong("expected )")
            self.take()
            return inner
        if self.token.kind != "word":
            raise self.wrong("expected a condition such as user=ana")
        return self.condition()

    def condition(self) -> Filter:
        key = self.take()
        if self.token.kind != "op":
            if key.text.startswith("meta."):
                return Meta(_unquoted(key.text[5:]), "has")
            if key.text in ("everything", "nothing"):
                return Everything() if key.text == "everything" else Nothing()
            if key.text in OPTIONAL_FIELDS:
                return Has(key.text)
            raise self.wrong(f"expected an operator after {key.text!r}")
        operator = self.take().text
        if self.token.kind != "word":
            raise self.wrong("expected a value")
        value = self.take()
        try:
            if operator == "!=":
                return Not(self.compared(key.text, "=", value.text))
            return self.compared(key.text, operator, value.text)
        except InvalidFilterError as error:
            _, rule = error.args
            raise InvalidFilterError(self.text, f"at character {key.at + 1}, {rule}") from None

    def compared(self, name: str, operator: str, value: str) -> Filter:
        text = _unquoted(value)
        if name in TEXT_FIELDS and operator == "=":
            return Is(name, (text,))
        if name in LINK_FIELDS and operator == "=":
            return Links(name, (text,))
        if name == "under" and operator == "=":
            return Under((text,))
        if name == "tag" and operator == "=":
            return Tag(text)
        if name == "content" and operator == "~":
            return Contains(text)
        if name == "words" and operator in "=~":
            return Matches(text)
        if name == "importance" and operator == ">=":
            try:
                return ImportanceAtLeast(float(text))
            except ValueError:
                raise InvalidFilterError(value, "importance takes a number") from None
        if name == "time" and operator != "~":
            return self.timed(operator, self.instant(text))
        if name == "valid_at" and operator == "=":
            return ValidAt(self.instant(text))
        if name.startswith("meta.") and operator in "=~":
            return Meta(_unquoted(name[5:]), "equals" if operator == "=" else "contains", _meta_value(value))
        operators = _OPERATORS | dict.fromkeys(TEXT_FIELDS, "= or !=")
        taken = operators.get("meta.KEY" if name.startswith("meta.") else name)
        if taken:
            raise InvalidFilterError(name, f"{shown(name)} does not take {operator!r}, only {taken}")
        close = difflib.get_close_matches(name, operators, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"the fields are {', '.join(operators)}"
        raise InvalidFilterError(name, f"unknown field {shown(name)}: {hint}")

    def instant(self, text: str) -> datetime:
        try:
            time = unlocated(text, text)
            return time if self.zone is None else located(text, time, self.zone)
        except InvalidRecordError as error:
            raise InvalidFilterError(text, f"{shown(text)} {error.args[2]}") from None

    def timed(self, operator: str, time: datetime) -> Filter:
        if operator == ">":
            return Time("after", start=time)
        if operator == "<":
            return Time("before", end=time)
        start, end = {">=": (time, _LAST), "<=": (_FIRST, time), "=": (time, time)}[operator]
        return Time("between", start, end)


def _unquoted(text: str) -> str:
    """Remove the quotes and escapes of a text."""
    if text.startswith("'"):
        return _unescaped(text[1:-1])
    return re.sub(r'"((?:[^"\\]|\\.)*)"', lambda found: _unescaped(found[1]), text, flags=re.DOTALL)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not valid JSON")


def _meta_value(text: str) -> Any:
    """Parse a value of metadata: an unquoted JSON number, true, false or null is that value, anything else is text."""
    if '"' not in text and not text.startswith("'"):
        try:
            value = json.loads(text, parse_constant=_refused)
        except (ValueError, RecursionError):
            return text
        if not isinstance(value, (list, dict)):
            return value
    return _unquoted(text)
