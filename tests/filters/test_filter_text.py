"""The text form of filters, as a person types it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filters import filter_trees as own
from tests.indexes.strategies import any_texts

from recollect import filters as f
from recollect.errors import InvalidFilterError
from recollect.filters import Filter, parse
from recollect.filters.tree import (
    AllOf,
    AnyOf,
    Contains,
    Everything,
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
    ValidAt,
)
from recollect.records.record import Record

EAST = timezone(timedelta(hours=2))


def day(number: int, month: int = 3) -> datetime:
    return datetime(2026, month, number, tzinfo=UTC)


def at(time: datetime) -> Record:
    return Record(id="a", content="x", time=time)


PIECES = (
    "user kind time meta. meta.a content words importance tag ( ) = != >= < ~ \\ 2026-01-01 0.5 1e999 nan null".split()
)
PIECES += [" and ", " or ", "not ", '"', "'", "a b", " ", "\ud800"]
A, B, C = f.user("a"), f.user("b"), f.user("c")


class TestReading:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("everything", f.everything()),
            ("nothing", f.nothing()),
            ("user=ana", f.user("ana")),
            (" user = ana ", f.user("ana")),
            ("id=a/b:c", f.id("a/b:c")),
            ("kind=User_Fact", f.kind("user_fact")),
            ("role=user", f.role("user")),
            ("speaker=Zoë", f.speaker("Zoë")),
            ("agent=a", f.agent("a")),
            ("conversation=c", f.conversation("c")),
            ("session=s", f.session("s")),
            ("entity=e", f.entity("e")),
            ("source=notes/a.md#3", f.source("notes/a.md#3")),
            ("tag=work", f.tag("work")),
            ("user!=ana", ~f.user("ana")),
            ("user in (ana,'b c', \"O'Brien\")", f.user("ana", "b c", "O'Brien")),
            ("not parent IN (a)", ~f.parent("a")),
            ("user in (O'Brien)", f.user("O'Brien")),
            ("meta.a>=1 and meta.a<2.5", f.meta("a", at_least=1, below=2.5)),
            ("meta.a<=2024-01-05", f.meta("a", at_most="2024-01-05")),
            ('meta.a>"7"', f.meta("a", above="7")),
            ("meta.a in (1, x ,\"2\", true, 'a, (b)')", f.meta("a", one_of=[1, "x", "2", True, "a, (b)"])),
            ("meta.a any (x)", f.meta("a", any_of=["x"])),
            ("meta.a all (x,1) or meta.b", f.meta("a", all_of=["x", 1]) | f.meta("b")),
            ("not meta.a empty", ~f.meta("a", empty=True)),
            ("meta.empty empty", f.meta("empty", empty=True)),
            ("meta[a][b]=1", f.meta(["a", "b"], 1)),
            ('meta["a b"][\'c]"\']', f.meta(["a b", 'c]"'])),
            ("meta[a]~x", f.meta("a", contains="x")),
            ("meta.a[b]=1", f.meta("a[b]", 1)),
            ("content~java", f.contains("java")),
            ("content ~ 'java'", f.contains("java")),
            ("words=java", f.matches("java")),
            ('words~"java script"', f.matches("java script")),
            ("importance>=0.5", f.importance_at_least(0.5)),
            ("importance>=1e-1", f.importance_at_least(0.1)),
            # metadata: bare JSON values are those values, all else is text
            ("meta.a", f.meta("a")),
            ("meta.a=1", f.meta("a", 1)),
            ("meta.a=-1.5", f.meta("a", -1.5)),
            ("meta.a=true", f.meta("a", True)),
            ("meta.a=null", f.meta("a", None)),
            ('meta.a="1"', f.meta("a", "1")),
            ('meta.a="true"', f.meta("a", "true")),
            ("meta.a=x", f.meta("a", "x")),
            ("meta.a=1x", f.meta("a", "1x")),
            ("meta.a=[1]", f.meta("a", "[1]")),
            ("meta.a={}", f.meta("a", "{}")),
            ("meta.a=NaN", f.meta("a", "NaN")),
            ("meta.a=-Infinity", f.meta("a", "-Infinity")),
            ("meta.a=True", f.meta("a", "True")),
            ("meta.a~x", f.meta("a", contains="x")),
            ("meta.a!=1", ~f.meta("a", 1)),
            ("not meta.a", ~f.meta("a")),
            ("meta.a.b=1", f.meta("a.b", 1)),
            ('meta."a.b c"=1', f.meta("a.b c", 1)),
            ('meta."say \\"hi\\""', f.meta('say "hi"')),
            ('meta.""', f.meta("")),
            ("meta.", f.meta("")),
            # quoting
            ('user="a b"', f.user("a b")),
            ('user="a)(b"', f.user("a)(b")),
            ('user="say \\"hi\\""', f.user('say "hi"')),
            ('user="back\\\\slash"', f.user("back\\slash")),
            ('user="\\a"', f.user("a")),
            ('user=a"b c"d', f.user("ab cd")),
            ('user="and"', f.user("and")),
            ("user=and and user=or", f.user("and") & f.user("or")),
            ('user="two\nlines"', f.user("two\nlines")),
            ('user="a=b"', f.user("a=b")),
            ("user=it's", f.user("it's")),
            ("user=O'Brien and speaker=rock'n'roll'", f.user("O'Brien") & f.speaker("rock'n'roll'")),
            ("user='a b'", f.user("a b")),
            ("(user='a)(b')and(user='x')", f.user("a)(b") & f.user("x")),
            (r"user='say \'hi\''", f.user("say 'hi'")),
            ("user='say \"hi\"'", f.user('say "hi"')),
            ("user='back\\\\slash'", f.user("back\\slash")),
            ("user='and' and user!='not'", f.user("and") & ~f.user("not")),
            ("meta.'a.b c'='1'", f.meta("a.b c", "1")),
            ("meta.'a' and meta.b='true'", f.meta("a") & f.meta("b", "true")),
            ("user=a,b", f.user("a,b")),
            # not binds closest, then and, then or
            ("user=a and user=b or user=c", (A & B) | C),
            ("user=a or user=b and user=c", A | (B & C)),
            ("(user=a or user=b) and user=c", (A | B) & C),
            ("not user=a and user=b", ~A & B),
            ("not (user=a and user=b)", ~(A & B)),
            ("not not user=a", f.not_(f.not_(A))),
            ("not user!=a", f.not_(f.not_(A))),
            ("user=a and not user=b or not user=c", (A & ~B) | ~C),
            ("((((user=a))))", A),
            ("(user=a)and(user=b)", A & B),
            ("user=a AND user=b Or NOT user=c", (A & B) | ~C),
            ("user=a and (user=b and user=c)", f.all_of(A, B, C)),
            ("user=a or (user=b or user=c)", f.any_of(A, B, C)),
            ("user=a and everything", A & f.everything()),
            # times
            ("time>2026-03-01", f.after(day(1))),
            ("time<2026-03-01", f.before(day(1))),
            ("time=2026-03-01", f.between(day(1), day(1))),
            ("time!=2026-03-01", ~f.between(day(1), day(1))),
            ("time>2026-03-01T09:30", f.after(datetime(2026, 3, 1, 9, 30, tzinfo=UTC))),
            ('time>"2026-03-01 09:30"', f.after(datetime(2026, 3, 1, 9, 30, tzinfo=UTC))),
            ("time>2026-03-01T09:30+02:00", f.after(datetime(2026, 3, 1, 9, 30, tzinfo=EAST))),
            ("time>2026-03-01T09:30Z", f.after(datetime(2026, 3, 1, 9, 30, tzinfo=UTC))),
        ],
    )
    def test_what_is_typed_is_read_as_the_rules_say(self, text: str, expected: Filter) -> None:
        assert parse(text).located(UTC) == expected
        assert json.dumps(parse(text, zone=UTC).to_json()) == json.dumps(expected.to_json())

    def test_the_example_of_the_documentation_is_read(self) -> None:
        text = "kind=user_fact and (user=ana or user=bob) and not tag=old and importance>=0.5 and time>=2026-01-01"
        tree = parse(text)
        good: dict[str, Any] = {"kind": "user_fact", "user": "bob", "importance": 0.5, "time": day(1, 1)}
        assert tree.matches(Record(id="a", content="x", **good))
        wrong: list[dict[str, Any]] = [
            {"kind": "task"},
            {"user": "eve"},
            {"user": None},
            {"tags": ["old"]},
            {"importance": 0.4},
            {"importance": None},
            {"time": day(1, 1) - timedelta(microseconds=1)},
            {"time": None},
        ]
        for change in wrong:
            assert not tree.matches(Record(id="a", content="x", **{**good, **change}))

    def test_times_without_an_offset_are_in_the_zone_that_the_caller_names(self) -> None:
        assert parse("time>2026-03-01", zone=EAST) == f.after(datetime(2026, 3, 1, tzinfo=EAST))
        assert parse("time>2026-03-01T00:00Z", zone=EAST) == f.after(day(1))

    @pytest.mark.parametrize(
        ("operator", "before", "same", "later"),
        [(">", False, False, True), (">=", False, True, True), ("<", True, False, False), ("<=", True, True, False)],
    )
    def test_times_compare_as_their_signs_say(self, operator: str, before: bool, same: bool, later: bool) -> None:
        tree = parse(f"time{operator}2026-03-01")
        micro = timedelta(microseconds=1)
        assert [tree.matches(at(day(1) + step)) for step in (-micro, 0 * micro, micro)] == [before, same, later]
        assert not tree.matches(Record(id="a", content="x"))

    def test_open_intervals_reach_the_first_and_the_last_time_that_a_record_can_have(self) -> None:
        first, last = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
        for edge in (first, last):
            assert parse(f"time>={edge.isoformat()}").matches(at(edge))
            assert parse(f"time<={edge.isoformat()}").matches(at(edge))
        assert parse("time>=2026-03-01").matches(at(last))
        assert parse("time<=2026-03-01").matches(at(first))


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "place", "rule"),
        [
            ("usr", 4, "expected an operator after 'usr'"),
            ("user=", 6, "expected a value"),
            ("user=ana and", 13, "expected a condition"),
            ("user=ana user=bob", 10, "expected and, or, or the end"),
            ("user=ana)", 9, "expected and, or, or the end"),
            ("(user=ana", 10, "expected )"),
            ("()", 2, "expected a condition"),
            ("= 5", 1, "expected a condition"),
            ("and user=a", 5, "expected an operator after 'and'"),
            ("user=a or or user=b", 14, "expected an operator after 'or'"),
            ("not", 4, "expected a condition"),
            ("user==a", 6, "expected a value"),
            ("user=hi!", 8, "cannot be read"),
            ('user="open', 6, 'the quote " is not closed'),
            ("user='open", 6, "the quote ' is not closed"),
            ("user=a and  user='O'Brien'", 18, "the quote ' is not closed"),
            ("meta.'a=1", 1, "the quote ' is not closed"),
            ("user=''", 1, "not empty"),
            ("usr=ana", 1, "unknown field 'usr'"),
            ('"user"=ana', 1, "unknown field"),
            ("user~ana", 1, "'user' does not take '~'"),
            ("user>=ana", 1, "'user' does not take '>='"),
            ("importance=1", 1, "'importance' does not take '='"),
            ("importance!=1", 1, "'importance' does not take '='"),
            ("content=x", 1, "'content' does not take '='"),
            ("time~2026", 1, "'time' does not take '~'"),
            ("meta.a>=true", 1, "at_least of metadata takes a number or a text"),
            ("user=b or meta.a in b", 21, "expected a list in parentheses: in (a, b)"),
            ("meta.a in (b", 12, "expected values such as (a, b)"),
            ("meta.a in ()", 12, "expected values such as (a, b)"),
            ("meta.a in ('it's, that's')", 12, "expected values such as (a, b)"),
            ("user in ('a''b')", 10, "expected values such as (a, b)"),
            ("meta.'tis=1", 1, "the quote ' is not closed"),
            ("tag in (a)", 5, "expected an operator after 'tag'"),
            ("user any (a)", 6, "expected and, or, or the end"),
            ("user=b and meta[a=1", 12, "a path is meta[KEY][KEY]"),
            ("meta[a]b=1", 1, "a path is meta[KEY][KEY]"),
            ("user=a and importance>=high", 12, "takes a number"),
            ("user=a and importance>=nan", 12, "takes a number"),
            ("user=a and time>yesterday", 12, "is not an ISO 8601 time"),
            ("user=a and time>0001-01-01", 12, "years 2 to 9998"),
            ('user=a and user=""', 12, "not empty"),
            ('user=a and tag=""', 12, "not empty"),
            ('user=a and words="..."', 12, "at least one word"),
            ("user=a and meta.a=99999999999999999999", 12, "64 bits"),
            ("user=\ud800", 1, "lone surrogate"),
        ],
    )
    def test_an_error_names_the_place_and_the_rule(self, text: str, place: int, rule: str) -> None:
        with pytest.raises(InvalidFilterError) as caught:
            parse(text)
        message = str(caught.value)
        assert f"at character {place}" in message
        assert rule in message
        message.encode("utf-8")

    @pytest.mark.parametrize(
        ("text", "output"),
        [
            ("usr=ana", "did you mean 'user'"),
            ("", "is empty"),
            ("  \n ", "is empty"),
            (
                "zzz=ana",
                r"the fields are tag, under, supersedes, derived_from, parent, content, words, origin, importance, "
                r"time, valid_at, meta.KEY, ",
            ),
            ("importance=0.5", "only >= "),
            ("user~an", "only =, != or in (...)"),
            ("derived_from~an", "only =, != or in (...)"),
            ("valid_at>=2026-01-01", "only = or !="),
            ("valid_at=January", "is not an ISO 8601 time"),
        ],
    )
    def test_an_unknown_condition_is_answered_with_the_known_ones(self, text: str, output: str) -> None:
        with pytest.raises(InvalidFilterError, match=output):
            parse(text)

    @pytest.mark.parametrize("text", ["(" * 5000 + "user=a" + ")" * 5000, "not " * 5000 + "user=a", "(" * 5000])
    def test_text_that_is_nested_too_deeply_is_refused_and_breaks_nothing(self, text: str) -> None:
        with pytest.raises(InvalidFilterError, match="nested deeper than 60 levels"):
            parse(text)

    def test_a_long_text_of_many_conditions_is_read(self) -> None:
        assert len(parse(" or ".join(f"user={number}" for number in range(5000))).to_json()["any_of"]) == 5000

    @given(any_texts)
    def test_any_text_is_a_filter_or_an_error_of_ours(self, text: str) -> None:
        read_or_refused(text)

    @given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
    def test_any_text_of_the_right_pieces_is_a_filter_or_an_error_of_ours(self, text: str) -> None:
        read_or_refused(text)


def read_or_refused(text: str) -> None:
    try:
        tree = parse(text)
    except InvalidFilterError as error:
        str(error).encode("utf-8")
    else:
        assert isinstance(tree.matches(Record(id="a", content="x")), bool)


SIGNS = {"equals": "=", "contains": "~", "above": ">", "at_least": " >= ", "below": "<", "at_most": "<="}
WORDS_OF_LISTS = {"one_of": "in", "any_of": "any", "all_of": "ALL"}


def said(condition: Meta, quoted: Callable[[str], str]) -> str:
    def value(stated: Any) -> str:
        return quoted(stated) if isinstance(stated, str) else json.dumps(stated)

    path = condition.path
    key = f"meta.{quoted(path[0])}" if len(path) == 1 else "meta" + "".join(f"[{quoted(each)}]" for each in path)
    if condition.test == "has":
        return key
    if condition.test == "empty":
        return f"{key} empty"
    if condition.test in SIGNS:
        return f"{key}{SIGNS[condition.test]}{value(condition.value)}"
    return f"{key} {WORDS_OF_LISTS[condition.test]} ({', '.join(map(value, condition.value))})"


def printed(tree: Filter, bare: bool) -> str:
    """A filter as text, by a printer that knows only the documentation; `bare` leaves out quotes where it may."""

    def quoted(text: str) -> str:
        if bare and re.fullmatch(r"(?!')[\w.%'木村é-]+", text) and not re.fullmatch(r"[-\d.]+|true|false|null", text):
            return text
        quote = "'" if bare else '"'
        escaped = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
        return f"{quote}{escaped}{quote}"

    match tree:
        case Everything():
            return "everything"
        case Nothing():
            return "nothing"
        case Is(name, (value,)):
            return f"{name}={quoted(value)}"
        case Has(name):
            return str(name)
        case Links(name, (value,)):
            return f"{name}={quoted(value)}"
        case ValidAt(time):
            return f"valid_at={time}".replace(" ", "T")
        case Tag(tag):
            return f"tag = {quoted(tag)}"
        case Meta():
            return said(tree, quoted)
        case ImportanceAtLeast(least):
            return f"importance>={least!r}"
        case Time("after", start, _):
            return f"time>{start}".replace(" ", "T")
        case Time("before", _, end):
            return f"time<{end}".replace(" ", "T")
        case Time("between", start, _):
            return f'time="{start}"'
        case Contains(text):
            return f"content~{quoted(text)}"
        case Matches(words):
            return f"words={quoted(words)}"
        case Not(part):
            inner = printed(part, bare)
            return f"not ({inner})" if isinstance(part, (AllOf, AnyOf)) else f"not {inner}"
        case AllOf(parts):
            return " and ".join(
                f"({printed(part, bare)})" if isinstance(part, AnyOf) else printed(part, bare) for part in parts
            )
        case AnyOf(parts):
            return " or ".join(printed(part, bare) for part in parts)
    raise AssertionError(tree)


@given(own.sayable_trees, st.booleans())
def test_a_printed_filter_is_read_as_the_filter_that_it_was(tree: Filter, bare: bool) -> None:
    again = parse(printed(tree, bare))
    assert again == tree
    assert json.dumps(again.to_json()) == json.dumps(tree.to_json())


def test_the_message_of_a_long_field_is_short() -> None:
    for text in ("x" * 100_000 + "=1", "meta." + "x" * 100_000 + ">=true"):
        with pytest.raises(InvalidFilterError) as caught:
            parse(text)
        assert len(str(caught.value)) < 1000
