"""Front matter: what a document says of itself before its text, as YAML or TOML.

PyYAML parses it, pure Python and safe: a value is text, a number, true or false, null, a list or a mapping, as in the
core schema of YAML 1.2 (`no`, `on` and `12:30` are text), and nothing else can be built. Size, depth and the number of
values are limited, with aliases counted as often as they are used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, tzinfo
from functools import cache
from typing import TYPE_CHECKING, Any

from recollect.common.regexes import regex
from recollect.records.frozen import INT64
from recollect.records.messages.values import UnreadableError, instant, kind_of
from recollect.text.unicode import nfc

if TYPE_CHECKING:
    import yaml

#: Maximum size in characters, depth of lists and mappings, and number of values.
_LONGEST, _DEEPEST, _MOST_VALUES = 16_384, 20, 1000
_TAG = "tag:yaml.org,2002:"
#: The plain scalars that are not text, and the characters that they begin with.
_SCALARS = {
    "null": (r"~|null|Null|NULL|", "~nN\0"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    "float": (r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
}
#: The names of the date of a document, the best first.
_DATES = ("date", "created", "created_at", "creation_date", "date created", "creation date", "created at")
#: A space before the offset of a time, which YAML allows and ISO 8601 does not.
_SPACE = regex(r"[ \t]+(?=Z$|[-+][0-9:]+$)")


def parse(text: str) -> dict[str, Any] | None:
    """Return the values of front matter as JSON values; None if the text is not a mapping, and so no front matter.

    >>> parse("tags: [a, b]\\ndraft: true\\ntime: 12:30\\n")
    {'tags': ['a', 'b'], 'draft': True, 'time': '12:30'}

    Raises:
        UnreadableError: It is not YAML, names a key twice, or exceeds a limit.
    """
    import yaml

    if len(text) > _LONGEST:
        raise UnreadableError(f"is longer than {_LONGEST:,} characters")
    try:
        _check_depth(yaml.parse(text, Loader=_loader()))
        root = yaml.compose(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 2})" if error.problem_mark else ""
        raise UnreadableError(f"is not YAML: {error.problem or error.context}{line}") from None
    except (yaml.YAMLError, OverflowError) as error:  # a character that YAML does not allow
        raise UnreadableError(f"is not YAML: {' '.join(str(error).split())}") from None
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        return None
    values: dict[str, Any] = _Values().of(root)
    return values


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of TOML front matter as JSON values; dates and times are ISO 8601 text.

    >>> parse_toml('date = 2026-11-20\\n[taxonomies]\\ntags = ["a"]')
    {'date': '2026-11-20', 'taxonomies': {'tags': ['a']}}

    Raises:
        UnreadableError: It is not TOML, or exceeds a limit.
    """
    import tomllib

    if len(text) > _LONGEST:
        raise UnreadableError(f"is longer than {_LONGEST:,} characters")
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of too many digits
        raise UnreadableError(f"is not TOML: {' '.join(str(error).split())[:200]}") from None
    plain: dict[str, Any] = _Plain().of(values)
    return plain


class _Plain:
    """Conversion of values of TOML to those of JSON."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, value: Any, depth: int = 0) -> Any:
        self._count += 1
        if self._count > _MOST_VALUES:
            raise UnreadableError(f"has more than {_MOST_VALUES:,} values")
        if depth > _DEEPEST:
            raise UnreadableError(f"is nested more than {_DEEPEST} levels deep")
        if isinstance(value, dict):
            return {key: self.of(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list):
            return [self.of(each, depth + 1) for each in value]
        if isinstance(value, (date, time)):
            return value.isoformat()
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, int) and value not in INT64:
            return hex(value)  # as text: a decimal one may have too many digits
        return value


def tags_of(values: Mapping[str, Any]) -> list[str]:
    """Return the tags of front matter: a list, or a text with commas.

    >>> tags_of({"tags": "db, ops"}), tags_of({"tags": ["db", 2026]}), tags_of({})
    (['db', 'ops'], ['db', '2026'], [])
    >>> tags_of({"taxonomies": {"tags": ["db"]}})
    ['db']

    Raises:
        UnreadableError: The value is not one of these.
    """
    values = _in_lower_case(values)
    groups = values.get("taxonomies")
    value = values.get("tags", values.get("tag", groups.get("tags") if isinstance(groups, Mapping) else None))
    each = value.split(",") if isinstance(value, str) else [] if value is None else value
    if not isinstance(each, list) or any(isinstance(tag, (dict, list)) for tag in each):
        raise UnreadableError("its tags are neither a list of texts nor a text")
    return list(dict.fromkeys(nfc(tag) for one in each if (tag := _text(one))))


def time_of(values: Mapping[str, Any], zone: tzinfo) -> datetime | None:
    """Return the date of front matter, or when it says that the document was created.

    It is ISO 8601 text, or a YAML timestamp. What else stands under "created" without a digit, such as a name, is none.

    Args:
        values: The front matter.
        zone: The time zone of a date without an offset.

    Raises:
        UnreadableError: It is another date, or "date" is anything else.
    """
    stated = _in_lower_case(values)
    for name in _DATES:
        if stated.get(name) not in (None, ""):
            try:
                return _time(stated[name], zone)
            except UnreadableError:
                if name == _DATES[0] or any(char.isdigit() for char in str(stated[name])):
                    raise
    return None


def _in_lower_case(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return front matter with its keys in lower case; of equal ones, that in lower case counts."""
    return {key.lower(): value for key, value in values.items()} | {k: v for k, v in values.items() if k == k.lower()}


def _time(value: Any, zone: tzinfo) -> datetime:
    if not isinstance(value, str):
        raise UnreadableError(f"its date is {kind_of(value)}, not a date")
    text = value.strip()
    try:
        return instant(_SPACE.sub("", text), zone)
    except UnreadableError:
        found = _timestamp(text)
    if found is None:
        raise UnreadableError(f"its date {text[:80]!r} is neither ISO 8601 nor a YAML timestamp")
    try:
        return instant(found.isoformat(), zone)
    except UnreadableError as error:
        raise UnreadableError(f"its date {text[:80]!r} cannot be a time: {error}") from None


def aliases_of(values: Mapping[str, Any]) -> list[str]:
    """Return the other names of a note: a list, or a text with commas.

    >>> aliases_of({"aliases": ["SLO", "objective"]}), aliases_of({"alias": "SLO, objective"}), aliases_of({})
    (['SLO', 'objective'], ['SLO', 'objective'], [])
    """
    values = _in_lower_case(values)
    value = values.get("aliases", values.get("alias"))
    each = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return list(dict.fromkeys(name for one in each if not isinstance(one, (dict, list)) and (name := _text(one))))


def title_of(values: Mapping[str, Any]) -> str:
    """Return the title of front matter; "" if it has none."""
    value = _in_lower_case(values).get("title")
    return "" if isinstance(value, (dict, list)) else _text(value)


def _text(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split())


def _timestamp(text: str) -> datetime | None:
    """Return a YAML timestamp such as "2001-12-14 21:59:43.10 -5" or "2002-1-2"; None if it is not one."""
    import yaml

    try:
        if not yaml.SafeLoader.timestamp_regexp.match(text):
            return None
        value = yaml.SafeLoader("").construct_yaml_timestamp(yaml.ScalarNode(f"{_TAG}timestamp", text))
    except ValueError:  # there is no such day
        return None
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


@cache
def _loader() -> type[yaml.SafeLoader]:
    """Return the loader of the core schema."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 - as PyYAML declares it

    for name, (pattern, first) in _SCALARS.items():
        beginnings = ["" if each == "\0" else each for each in first]
        Loader.add_implicit_resolver(_TAG + name, re.compile(rf"(?:{pattern})\Z"), beginnings)
    return Loader


def _check_depth(events: Iterator[Any]) -> None:
    """Check the depth before anything is composed, which is recursive."""
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise UnreadableError(f"is nested more than {_DEEPEST} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Values:
    """Conversion of nodes to JSON values."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, node: Any, depth: int = 0) -> Any:
        self._count += 1
        if self._count > _MOST_VALUES or depth > _DEEPEST:  # an alias may contain itself
            raise UnreadableError(f"has more than {_MOST_VALUES:,} values, or aliases that never end")
        if isinstance(node.value, str):
            return _scalar(node)
        if node.id == "sequence":
            return [self.of(each, depth + 1) for each in node.value]
        out: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key.value, str):
                raise UnreadableError("has a key that is not text")
            if key.value in out:
                raise UnreadableError(f"has the key {key.value[:80]!r} twice")
            out[key.value] = self.of(value, depth + 1)
        return out


def _scalar(node: Any) -> Any:
    text: str = node.value
    kind = node.tag.removeprefix(_TAG)
    try:
        if kind == "int" and int(text) in INT64:
            return int(text)
        if kind == "float" and abs(float(text)) < float("inf"):
            return float(text)
    except ValueError:  # an explicit tag, such as !!int, of something else; or too many digits
        return text
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return None if kind == "null" and text in ("", "~", "null", "Null", "NULL") else text
