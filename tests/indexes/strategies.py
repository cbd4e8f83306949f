"""Strategies of the unit tests: records with every field, JSON values, times at every offset.

Wide on purpose: any character that a field takes, any offset, the ends of every range.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from recollect.records.codec import RawField
from recollect.records.record import Record

INT64_LEAST, INT64_MOST = -(2**63), 2**63 - 1
#: Fields that hold one name: text on one line.
NAME_FIELDS = ("role", "speaker", "user", "agent", "conversation", "session", "entity", "source", "language")
TIME_FIELDS = ("time", "valid_from", "valid_to", "expires")

#: Text that UTF-8 can carry, control characters included.
texts = st.text(st.characters(codec="utf-8"), max_size=20)
#: Any text that Python can hold, lone surrogates included.
any_texts = st.text(st.characters(), max_size=30)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=12)
contents = texts.filter(lambda text: bool(text.strip()))
finite = st.floats(allow_nan=False, allow_infinity=False)
fractions = st.floats(0.0, 1.0)
int64s = st.integers(INT64_LEAST, INT64_MOST)

json_leaves: st.SearchStrategy[Any] = st.none() | st.booleans() | int64s | finite | texts
json_values: st.SearchStrategy[Any] = st.recursive(
    json_leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)
json_objects = st.dictionaries(texts, json_values, max_size=4)

#: JSON as a hostile client may send it: keys that mean something, beside values of every shape.
_KEYS = st.sampled_from(
    "op content fields changes id where items operations expect if_exists on_error limit order k question query since "
    "actor reason expect_head all_of any_of not everything nothing user kind tag meta importance_at_least after before "
    "between contains matches key equals text case_sensitive base64 time tags metadata data unknown".split()
)
_WORDS = st.sampled_from(
    "remember remember_all add_messages turns role update forget forget_where clear batch get find count recall grep "
    "changes stats namespaces "
    "keep report newest absent a 2026-01-01T00:00:00+00:00 YQ==".split()
)
hostile_json: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from((10**400, -(10**400), 2**63, -1, 0, 1))
    | st.floats()
    | _WORDS
    | any_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS | any_texts, inner, max_size=3),
    max_leaves=12,
)

offsets = st.integers(-86_399, 86_399) | st.sampled_from((0, 3_600, -18_000, 19_800, 1, -1, 86_399, -86_399))


def _at_offset(instant: datetime, seconds: int) -> datetime:
    return instant.astimezone(timezone(timedelta(seconds=seconds)))


#: Aware datetimes, to the microsecond, at fixed offsets of whole seconds.
times = st.builds(
    _at_offset,
    st.datetimes(datetime(2, 1, 3), datetime(9998, 12, 29), timezones=st.just(UTC)),
    offsets,
)


@st.composite
def unknown_fields(draw: st.DrawFn) -> tuple[RawField, ...]:
    """Fields of a later release."""
    numbers = draw(st.lists(st.integers(31, 2**63 - 1) | st.integers(31, 40), max_size=3, unique=True))
    return tuple(RawField(number, draw(st.integers(0, 255)), draw(st.binary(max_size=5))) for number in sorted(numbers))


@st.composite
def record_fields(draw: st.DrawFn) -> dict[str, Any]:
    """Keyword arguments from which a record can be made, each field there or not."""
    out: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {"id": names, "content": contents | st.binary(max_size=10)},
            optional={
                "kind": names,
                **dict.fromkeys(NAME_FIELDS, names),
                **dict.fromkeys(TIME_FIELDS, times),
                "media_type": names,
                "position": st.integers(0, INT64_MOST),
                "order": int64s,
                "tags": st.lists(names, max_size=3),
                "metadata": json_objects,
                "importance": fractions,
                "trust": fractions,
                "supersedes": st.lists(names, max_size=3),
                "derived_from": st.lists(names, max_size=3),
                "parent": names,
                "pinned": st.booleans(),
                "searchable": st.booleans(),
                "unknown": unknown_fields(),
            },
        )
    )
    if isinstance(out["content"], bytes):
        out.setdefault("media_type", "image/png")
    if "valid_from" in out and "valid_to" in out and out["valid_from"] > out["valid_to"]:
        out["valid_from"], out["valid_to"] = out["valid_to"], out["valid_from"]
    return out


records: st.SearchStrategy[Record] = record_fields().map(lambda given: Record(**given))
