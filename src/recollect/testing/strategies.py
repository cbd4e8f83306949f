"""Hypothesis strategies for records and filters, drawn from small pools so that filters match records.

The pools contain what breaks stores: missing values, LIKE's wildcards, quotes, dots and colons in keys, case pairs,
NUL, and characters outside the basic plane.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from recollect import filters as f
from recollect.filters.tree import OPTIONAL_FIELDS, Filter
from recollect.records.record import Record

NAMES = ("ana", "Ana", "bob", "a%", "a_", "o'neil", 'q"uote', "dots.and:colons", "ünï", "nul\u2400", "木村")
KEYS = ("plain", "a.b", 'k"ey', "k'ey", "k:ey", "$", "%", "_", "", "a b", "ключ")
WORDS = ("java", "javascript", "100%", "under_score", "Straße", "STRASSE", "new\nline", "nul\0byte", "我喜欢", "it's")
START = datetime(2026, 1, 1, tzinfo=UTC)

names = st.sampled_from(NAMES)
times = st.builds(
    lambda days, zone: (START + timedelta(days=days)).astimezone(timezone(timedelta(hours=zone))),
    st.integers(0, 6),
    st.sampled_from((0, 2, -5)),
)
importances = st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0))
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
values: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from((0.0, 1.0, 2.5)), names, st.lists(names, max_size=2)
)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def records(ids: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Record]:
    """Records with every combination of present and missing fields."""
    content: st.SearchStrategy[str | bytes] = texts | st.binary(max_size=4)
    return st.builds(
        _record,
        id=st.sampled_from([f"r{number}" for number in range(12)]) if ids is None else ids,
        content=content,
        kind=st.sampled_from(("knowledge", "user_fact", "conversation", "task", "note")),
        user=_maybe(names),
        agent=_maybe(names),
        speaker=_maybe(names),
        role=_maybe(st.sampled_from(("user", "assistant"))),
        conversation=_maybe(names),
        session=_maybe(names),
        position=_maybe(st.integers(0, 5)),
        entity=_maybe(names),
        source=_maybe(names),
        tags=st.lists(names, max_size=2),
        metadata=st.dictionaries(st.sampled_from(KEYS), values, max_size=2),
        time=_maybe(times),
        importance=_maybe(importances),
        expires=_maybe(times),
        valid_from=_maybe(times),
        valid_to=_maybe(times),
        supersedes=st.lists(names, max_size=2, unique=True),
        derived_from=st.lists(names, max_size=2, unique=True),
        pinned=st.booleans(),
        searchable=st.booleans(),
    )


def _record(**fields: Any) -> Record:
    media_type = "application/octet-stream" if isinstance(fields["content"], bytes) else None
    if fields["valid_from"] and fields["valid_to"]:
        fields["valid_from"], fields["valid_to"] = sorted((fields["valid_from"], fields["valid_to"]))
    return Record(**fields, media_type=media_type)


def filters(*, custom: bool = True) -> st.SearchStrategy[Filter]:
    """Filters of every shape; with `custom`, custom ones too, by themselves and within others."""
    several = st.lists(names, min_size=1, max_size=2)
    leaves: list[st.SearchStrategy[Filter]] = [
        st.builds(f.everything),
        st.builds(f.nothing),
        *(
            several.map(lambda values, make=make: make(*values))  # type: ignore[misc]
            for make in (f.user, f.agent, f.speaker, f.conversation, f.session, f.entity, f.source)
        ),
        *(several.map(lambda ids, make=make: make(*ids)) for make in (f.supersedes, f.derived_from)),  # type: ignore[misc]
        times.map(f.valid_at),
        st.sampled_from(("knowledge", "USER_FACT", "note", "a%")).map(f.kind),
        st.sampled_from(("r0", "r1", "r%", "R1")).map(f.id),
        st.sampled_from(("user", "assistant", "us%")).map(f.role),
        names.map(f.tag),
        st.sampled_from(OPTIONAL_FIELDS).map(f.has),
        st.builds(f.meta, st.sampled_from(KEYS)),
        st.builds(f.meta, st.sampled_from(KEYS), values),
        st.builds(lambda key, value: f.meta(key, contains=value), st.sampled_from(KEYS), values),
        st.builds(
            lambda key, test, value: f.meta(key, **{test: value}),
            st.sampled_from(KEYS) | st.lists(st.sampled_from(KEYS), min_size=1, max_size=2),
            st.sampled_from(("above", "at_least", "below", "at_most")),
            st.integers(-3, 3) | st.sampled_from((0.5, 2.0**53, 2**53 + 1, "", "b", "z")),
        ),
        st.builds(
            lambda key, test, value: f.meta(key, **{test: value}),
            st.sampled_from(KEYS) | st.lists(st.sampled_from(KEYS), min_size=1, max_size=2),
            st.sampled_from(("one_of", "any_of", "all_of")),
            st.lists(values, max_size=2),
        ),
        st.builds(lambda key, empty: f.meta(key, empty=empty), st.sampled_from(KEYS), st.booleans()),
        importances.map(f.importance_at_least),
        times.map(f.after),
        times.map(f.before),
        st.builds(f.between, times, times),
        st.builds(f.contains, st.sampled_from((*WORDS, "%", "_", "", "JAVA", "\0")), case_sensitive=st.booleans()),
        st.sampled_from(("java", "JAVA script", "strasse", "under_score", "100")).map(f.matches),
    ]
    if custom:
        leaves += [
            st.sampled_from(("ana", "bob")).map(lambda user: f.custom(lambda record: record.user == user)),
            st.just(f.custom(lambda record: len(record.text) > 9)),
        ]
    return st.recursive(
        st.one_of(leaves),
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
            inner.map(lambda part: ~part),
            st.lists(inner, max_size=3).map(lambda parts: f.all_of(*parts)),
            st.lists(inner, max_size=3).map(lambda parts: f.any_of(*parts)),
        ),
        max_leaves=6,
    )
