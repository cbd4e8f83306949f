"""The text form of filters: what the command line and `where=` take.

    kind=user_fact and (user=ana or user=bob) and not tag=old and importance>=0.5 and time>=2026-01-01

A condition is `key operator value`. Keys: the text fields of a record, `supersedes`, `derived_from`, `parent`, `under`,
`tag`, `origin`, `importance`, `time`, `valid_at`, `content`, `words` and `meta.KEY`. Operators: `=` and `!=`; `~`
(contains) for content and meta; `>=` for importance; `<`, `<=`, `>`, `>=` for time, meta and origin (more trusted is
greater). `meta.KEY` without an operator tests
whether the key exists; a field without one, whether the record has it (`not user`). `in (ana, bob)` after a text field
or a key of metadata: it has one of the values. After a key of metadata, `any (a, b)` and `all (a, b)`: the list under
it has one or each of the values; `empty`: there is nothing in it. Values with spaces, parentheses or quotes are written
in double or single quotes, with a backslash before a quote or a backslash inside; so are keys of metadata: `meta."a.b
c"=1`. A key within an object is `meta[author][name]`, each part quoted likewise. A single quote inside a bare word is
part of it: `user=O'Brien`. `not` binds tighter than `and`, and `and` tighter than `or`. Times are ISO 8601; times
without an offset are in the zone that the caller passes.

A value that comes from outside is passed beside the text and never parsed: `?` stands for it, as in SQL.

    ("user=? and not tag=?", name, tag)

A question mark in quotes is text.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple, TypeAlias

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError, InvalidFilterError, InvalidRecordError
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
    Originates,
    Tag,
    Time,
    Under,
    ValidAt,
)
from recollect.quoting import shown
from recollect.records.record import located, unlocated

#: What `where=` accepts: a filter, its text form, or a text form with `?` followed by the values that they stand for.
Where: TypeAlias = Filter | str | tuple[Any, ...] | list[Any]
#: A key of metadata, or the keys of a path.
_Path: TypeAlias = str | tuple[str, ...]
#: What stands for a value that is passed beside the text.
_PARAMETER = "?"

# A word is quoted as a whole in single quotes, or has parts in double quotes. In a bare word a single quote is literal,
# but not at its start: there a quote that is not closed is more likely a mistake.
_TOKEN = regex(
    r"""\s*(?:([()])|(!=|>=|<=|=|~|<|>)|("""
    r"""(?:meta\.)?'(?:[^'\\]|\\.)*'(?=[\s()=!~<>]|\Z)|(?!(?:meta\.)?')"""
    r"""(?:\['(?:[^'\\]|\\.)*'\]|"(?:[^"\\]|\\.)*"|[^\s()=!~<>"])+))""",
    re.DOTALL,
)
#: The operators of each key. The text fields of a record take "= or !=".
_OPERATORS = {
    **dict.fromkeys(("tag", "under"), "= or !="),
    **dict.fromkeys(LINK_FIELDS, "=, != or in (...)"),
    "content": "~ (or not content~...)",
    "words": "=, ~ or !=",
    "origin": "=, !=, <, <=, >, >= or in (...)",
    "importance": ">= (or not importance>=...)",
    "time": "<, <=, =, !=, >= or >",
    "valid_at": "= or !=",
    "meta.KEY": "=, !=, ~, <, <=, >, >=, in (...), any (...), all (...) or empty",
}
#: The names of all fields, for completion; "meta." is followed by a key.
FIELDS = (*sorted((*TEXT_FIELDS, *(name for name in _OPERATORS if name != "meta.KEY"))), "meta.")
#: The tests of metadata that an operator states, and those that a word before a list of values does.
_COMPARED = {"=": "equals", "~": "contains", ">": "above", ">=": "at_least", "<": "below", "<=": "at_most"}
_LISTED = {"in": "one_of", "any": "any_of", "all": "all_of"}
#: A value of a list, and what follows it.
_ITEM = regex(
    r"""\s*('(?:[^'\\]|\\.)*'|(?!')(?:"(?:[^"\\]|\\.)*"|[^\s,()"])+)\s*([,)])""",
    re.DOTALL,
)
#: One key of a path in an object.
_STEP = regex(r"""\[("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\[\]"']*)\]""", re.DOTALL)
_FIRST = datetime(2, 1, 1, tzinfo=UTC)
_LAST = datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


class _Token(NamedTuple):
    kind: str  # "(", ")", "op", "word", "end"
    text: str
    at: int


def parse(text: str, *values: Any, zone: tzinfo | None = None) -> Filter:
    """Parse the text form of a filter.

    An empty text is an error, so that an empty variable in a script does not select every record: write "everything".

    Args:
        text: The text form.
        *values: The values that the `?` in the text stand for, in their order: text, a number for `importance`, a time,
            or a JSON value for a key of metadata. They are compared as they are, whatever they contain.
        zone: The time zone of times without an offset; default: that of the memory that the filter is passed to.

    Raises:
        InvalidFilterError: The text is invalid. The message has the position, in characters from 1. Or there are more
            or fewer values than `?`.

    >>> parse("user=ana and not tag=old").to_json()
    {'all_of': [{'user': 'ana'}, {'not': {'tag': 'old'}}]}
    >>> parse("user=?", "ana or user=bob").to_json()
    {'user': 'ana or user=bob'}
    """
    if not isinstance(text, str):
        raise InvalidFilterError(repr(text), "is not the text form of a filter")
    reader = _Reader(text, values, zone)
    if reader.token.kind == "end":
        raise reader.wrong('it is empty (write "everything" for all records)')
    found = reader.either(0)
    if reader.token.kind != "end":
        raise reader.wrong("expected and, or, or the end (put a value with spaces in quotes, or pass it for a ?)")
    if reader.used != len(values):
        raise InvalidFilterError(text, f"it has {reader.used} ? for values, and {len(values)} were passed")
    return found


def as_filter(where: object) -> Filter:
    """Return a `where=` argument as a filter: a text is parsed, also with values beside it, and None is every record.

    Anything else is returned as it is: the operation refuses it.

    Raises:
        InvalidFilterError: The text is invalid.
    """
    if where is None:
        return Everything()
    if isinstance(where, str):
        return parse(where)
    if isinstance(where, (tuple, list)) and where and isinstance(where[0], str):
        return parse(*where)
    return where  # type: ignore[return-value]


def check_filter(where: object) -> None:
    """Raise InvalidArgumentError unless it is a filter."""
    if not isinstance(where, Filter):
        raise InvalidArgumentError(
            "where", where, 'must be a filter (see recollect.filters) or its text form, such as "user=ana"'
        )


class _Reader:
    """A recursive descent parser."""

    def __init__(self, text: str, values: Sequence[Any], zone: tzinfo | None) -> None:
        self.text, self.values, self.zone, self.at = text, values, zone, 0
        self.used = 0  # how many of the values
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
        try:
            path = metadata_path(key.text)
        except InvalidFilterError as error:
            raise InvalidFilterError(self.text, f"at character {key.at + 1}, {error.args[1]}") from None
        if self.token.kind == "word" and self.token.text.lower() in ("empty", *_LISTED):
            found = self.listed(key, path)
            if found is not None:
                return found
        if self.token.kind != "op":
            if path is not None:
                return Meta(path, "has")
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
            kind = "=" if operator == "!=" else operator
            stated = self.passed() if value.text == _PARAMETER else value.text
            found = self.compared(key.text, path, kind, stated, is_text=value.text != _PARAMETER)
            return Not(found) if operator == "!=" else found
        except InvalidFilterError as error:
            _, rule = error.args
            raise InvalidFilterError(self.text, f"at character {key.at + 1}, {rule}") from None

    def listed(self, key: _Token, path: _Path | None) -> Filter | None:
        """Return the condition that a word after a key begins; None if the key takes none."""
        word = self.token.text.lower()
        if path is None and (word != "in" or key.text not in (*TEXT_FIELDS, *LINK_FIELDS, "origin")):
            return None
        self.take()
        if word == "empty":
            return Meta(path, "empty")  # type: ignore[arg-type]
        values = self.values_of_list(word, is_meta=path is not None)
        try:
            if path is not None:
                return Meta(path, _LISTED[word], values)
            if key.text == "origin":
                return Originates(tuple(values))
            return (Is if key.text in TEXT_FIELDS else Links)(key.text, tuple(values))
        except InvalidFilterError as error:
            raise InvalidFilterError(self.text, f"at character {key.at + 1}, {error.args[1]}") from None

    def values_of_list(self, word: str, *, is_meta: bool) -> list[Any]:
        """Return the values in parentheses, or those that were passed for a ?."""
        if self.is_word(_PARAMETER):
            self.take()
            values = self.passed()
            if not isinstance(values, (list, tuple)):
                raise InvalidFilterError(self.text, f"{word} takes a list of values, not {shown(values)}")
            return list(values)
        if self.token.kind != "(":
            raise self.wrong(f"expected a list in parentheses: {word} (a, b)")
        out: list[Any] = []
        while True:
            found = _ITEM.match(self.text, self.at)
            if found is None:
                raise InvalidFilterError(self.text, f"at character {self.at + 1}, expected values such as (a, b)")
            self.at, value = found.end(), found[1]
            if value == _PARAMETER:
                out.append(self.passed())
            else:
                out.append(_meta_value(value) if is_meta else _unquoted(value))
            if found[2] == ")":
                self.token = self.next_token()
                return out

    def passed(self) -> Any:
        """Return the next value that was passed beside the text."""
        if self.used == len(self.values):
            rule = f'there is no value for a ?: {len(self.values)} were passed (for the character, write "?" in quotes)'
            raise InvalidFilterError("?", rule)
        self.used += 1
        return self.values[self.used - 1]

    def compared(self, name: str, path: _Path | None, operator: str, value: Any, *, is_text: bool) -> Filter:
        """Return a comparison. The value is text of the filter, or was passed beside it."""
        text = _unquoted(value) if is_text else value
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
        if name == "origin" and operator != "~":
            return Originates.compared(operator, text)
        if name == "importance" and operator == ">=":
            try:
                return ImportanceAtLeast(float(text))
            except (TypeError, ValueError):
                raise InvalidFilterError(shown(value), "importance takes a number") from None
        if name == "time" and operator != "~":
            return self.timed(operator, self.instant(text))
        if name == "valid_at" and operator == "=":
            return ValidAt(self.instant(text))
        if path is not None:
            return Meta(path, _COMPARED[operator], _meta_value(value) if is_text else value)
        operators = _OPERATORS | dict.fromkeys(TEXT_FIELDS, "=, != or in (...)")
        taken = operators.get(name)
        if taken:
            raise InvalidFilterError(name, f"{shown(name)} does not take {operator!r}, only {taken}")
        close = difflib.get_close_matches(name, operators, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"the fields are {', '.join(operators)}"
        raise InvalidFilterError(name, f"unknown field {shown(name)}: {hint}")

    def instant(self, text: Any) -> datetime:
        try:
            time = unlocated("time", text)
            return time if self.zone is None else located("time", time, self.zone)
        except InvalidRecordError as error:
            raise InvalidFilterError(text, f"{shown(text)} {error.args[2]}") from None

    def timed(self, operator: str, time: datetime) -> Filter:
        if operator == ">":
            return Time("after", start=time)
        if operator == "<":
            return Time("before", end=time)
        start, end = {">=": (time, _LAST), "<=": (_FIRST, time), "=": (time, time)}[operator]
        return Time("between", start, end)


def metadata_path(name: str) -> _Path | None:
    """Return the key of metadata that `meta.KEY` names, or the keys of `meta[KEY][KEY]`; None for another name.

    Raises:
        InvalidFilterError: The name begins like these, and is not one.
    """
    if name.startswith("meta."):
        if name[5:].startswith("'") and not re.fullmatch(r"'(?:[^'\\]|\\.)*'", name[5:], re.DOTALL):
            raise InvalidFilterError(name, "the quote ' is not closed")
        return _unquoted(name[5:])
    if not name.startswith("meta["):
        return None
    at, out = len("meta"), []
    while at < len(name):
        found = _STEP.match(name, at)
        if found is None:
            raise InvalidFilterError(name, "a path is meta[KEY][KEY]")
        out.append(_unquoted(found[1]))
        at = found.end()
    return tuple(out)


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
