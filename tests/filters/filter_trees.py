"""Random filters, and records for them to be asked of: small pools, so that they meet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st
from tests.indexes import strategies as own

from recollect import filters as f
from recollect.filters import Filter
from recollect.filters.tree import LINK_FIELDS, OPTIONAL_FIELDS, TEXT_FIELDS, links_of
from recollect.records.record import Record

NAMES = [
    "ana",
    "Ana",
    "a%",
    "a_",
    "o'neil",
    'say "hi"',
    "back\\slash",
    "and",
    "not",
    "or",
    "a b",
    "(x)",
    "木村",
    "é",
    "1",
    "=",
]
KEYS = ["", "plain", "a.b", "a.b c", 'k"ey', "k:ey", "$", "%", "not", "ключ", "x=y"]
WORDS = ["java", "JavaScript", "100%", "under_score", "Straße", "new\nline", "我喜欢", "it's", "\0"]
START = datetime(2026, 1, 1, tzinfo=UTC)

names = st.sampled_from(NAMES)
times = st.builds(
    lambda days, hours: (START + timedelta(days=days)).astimezone(timezone(timedelta(hours=hours))),
    st.integers(0, 4),
    st.sampled_from((0, 2, -5)),
)
fractions = st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0))
leaves: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from((0.0, 1.0, 2.5, 1e-7, 1e300)) | names
)
values: st.SearchStrategy[Any] = leaves | st.lists(leaves, max_size=2) | st.dictionaries(names, leaves, max_size=2)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


def combined(conditions: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    """Trees of conditions."""
    return st.recursive(
        conditions,
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
            inner.map(lambda part: ~part),
            inner.map(f.not_),
            st.lists(inner, max_size=3).map(lambda parts: f.all_of(*parts)),
            st.lists(inner, max_size=3).map(lambda parts: f.any_of(*parts)),
        ),
        max_leaves=8,
    )


paths = st.sampled_from(KEYS) | st.lists(st.sampled_from(KEYS), min_size=1, max_size=2)
ends = st.integers(-2, 2) | st.sampled_from((0.5, 2.0**53, 2**53 + 1)) | names
tested: st.SearchStrategy[Filter] = st.one_of(
    st.builds(
        lambda key, test, end: f.meta(key, **{test: end}),
        paths,
        st.sampled_from(("above", "at_least", "below", "at_most")),
        ends,
    ),
    st.builds(
        lambda key, test, some: f.meta(key, **{test: some}),
        paths,
        st.sampled_from(("one_of", "any_of", "all_of")),
        st.lists(leaves, min_size=1, max_size=3),
    ),
    paths.map(lambda key: f.meta(key, empty=True)),
    paths.map(f.meta),
)
#: Conditions that the text form has a way to say.
sayable: st.SearchStrategy[Filter] = st.one_of(
    tested,
    st.builds(f.everything),
    st.builds(f.nothing),
    st.builds(lambda name, value: getattr(f, name)(value), st.sampled_from((*TEXT_FIELDS, *LINK_FIELDS)), names),
    st.sampled_from(OPTIONAL_FIELDS).map(f.has),
    times.map(f.valid_at),
    names.map(f.tag),
    st.builds(f.meta, st.sampled_from(KEYS)),
    st.builds(f.meta, st.sampled_from(KEYS), leaves),
    st.builds(lambda key, value: f.meta(key, contains=value), st.sampled_from(KEYS), leaves),
    st.floats(allow_nan=False, allow_infinity=False).map(f.importance_at_least),
    times.map(f.after),
    times.map(f.before),
    times.map(lambda time: f.between(time, time)),
    st.sampled_from((*WORDS, "", " ", '"')).map(f.contains),
    st.sampled_from(("java", "JAVA script", "strasse", "under_score", "100")).map(f.matches),
)
conditions: st.SearchStrategy[Filter] = st.one_of(
    sayable,
    st.lists(names, min_size=1, max_size=3).map(lambda each: f.user(*each)),
    st.lists(own.names, min_size=1, max_size=2).map(lambda each: f.id(*each)),
    st.lists(names, min_size=1, max_size=3).map(lambda each: f.derived_from(*each)),
    st.builds(f.meta, own.texts, own.json_values),
    st.builds(lambda key, value: f.meta(key, contains=value), st.sampled_from(KEYS), values),
    st.builds(f.between, own.times, own.times),
    st.builds(f.contains, own.texts, case_sensitive=st.booleans()),
)
sayable_trees = combined(sayable)
trees = combined(conditions)


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Records with every combination of missing fields, from the same pools."""
    content = draw(texts | st.binary(max_size=3))
    fields: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {"id": names},
            optional={
                **dict.fromkeys(own.NAME_FIELDS, names),
                "kind": names,
                "tags": st.lists(names, max_size=2),
                "metadata": st.dictionaries(st.sampled_from(KEYS), values, max_size=2),
                "time": times,
                "importance": fractions,
                "pinned": st.booleans(),
                **dict.fromkeys(LINK_FIELDS, st.lists(names, max_size=2, unique=True)),
                "parent": names,
            },
        )
    )
    interval = zip(("valid_from", "valid_to"), sorted(draw(st.tuples(times, times))), strict=True)
    fields |= {name: end for name, end in interval if draw(st.booleans())}  # an interval may be empty
    if isinstance(content, bytes):
        fields["media_type"] = "a/b"
    return Record(content=content, **fields)


def true_of(record: Record) -> list[Filter]:
    """Conditions that a record meets, of each kind that it can meet."""
    fields = [name for name in TEXT_FIELDS if getattr(record, name) is not None]
    out: list[Filter] = [getattr(f, name)(getattr(record, name)) for name in fields if getattr(record, name)]
    out += [f.tag(tag) for tag in record.tags]
    for key, value in record.metadata.items():
        out += [f.meta(key), f.meta(key, value), f.meta(key, one_of=[value])]
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            out.append(f.meta(key, at_least=value, at_most=value))
        if isinstance(value, list) and value:
            out += [f.meta(key, any_of=value[:1]), f.meta(key, all_of=value)]
        if isinstance(value, dict):
            out += [f.meta([key, below], each) for below, each in value.items()]
        out.append(f.meta(key, empty=value in (None, "", [], {})))
    out += [f.has(name) for name in OPTIONAL_FIELDS if getattr(record, name)]
    out += [getattr(f, name)(each) for name in LINK_FIELDS for each in links_of(record, name)]
    if record.valid_from is not None and record.valid_from != record.valid_to:
        out.append(f.valid_at(record.valid_from))
    if record.importance is not None:
        out.append(f.importance_at_least(record.importance))
    if record.time is not None:
        out.append(f.between(record.time, record.time))
    if isinstance(record.content, str):
        out.append(f.contains(record.content[1:3]))
    assert all(where.matches(record) for where in out)
    return out


@st.composite
def trees_about(draw: st.DrawFn, stored: list[Record]) -> Filter:
    """Conditions that some of these records meet, of each kind as often, single or in trees."""
    met: dict[str, list[Filter]] = {}
    for where in (where for record in stored for where in true_of(record)):
        met.setdefault(" ".join(sorted(where.to_json())), []).append(where)
    if not met:
        return draw(trees)
    some = st.sampled_from(sorted(met)).flatmap(lambda kind: st.sampled_from(met[kind]))
    where = draw(some)
    shape = draw(st.sampled_from(("alone", "not", "tree")))
    return where if shape == "alone" else ~where if shape == "not" else draw(combined(some | conditions))
