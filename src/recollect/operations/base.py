"""The base class of operations, and their JSON form."""

from __future__ import annotations

import base64
import math
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, fields
from datetime import date, datetime, tzinfo
from importlib import import_module
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from recollect.arguments.checks import check_text
from recollect.arguments.json_form import JsonForm
from recollect.common.regexes import regex
from recollect.errors import (
    InvalidArgumentError,
    InvalidOperationError,
    InvalidRecordError,
    RecollectError,
    UnsupportedError,
)
from recollect.filters.tree import Filter
from recollect.filters.tree import from_json as filter_from_json
from recollect.quoting import shown
from recollect.records.codec import RawField
from recollect.records.frozen import MAX_DEPTH, altered
from recollect.records.messages import Turn
from recollect.records.record import Record, fields_from_json, located, record_id, unlocated
from recollect.text.unicode import nfc

#: The value of `expect` that requires that no record exists.
ABSENT = "absent"
_HASH = regex(r"[0-9a-f]{64}")
#: Maximum length of the name of a branch, in bytes.
MAX_BRANCH_BYTES = 100
#: What a client needs to be allowed, from the least to the greatest: each includes those before it. To administer is to
#: change what everybody must obey, to remove for ever, or what concerns the server's machine.
Right: TypeAlias = Literal["read", "write", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)
READ, WRITE, ADMIN = RIGHTS
#: The fields that a scope can fix, and by whose values a quota can be counted.
Per: TypeAlias = Literal["user", "agent", "conversation"]
SCOPED: tuple[Per, ...] = get_args(Per)
#: A batch can contain a remember_all, which contains remember operations.
_MAX_DEPTH = 2
#: Name -> operation, of those whose modules are imported.
_IMPORTED: dict[str, type[Operation]] = {}
#: Modules that define operations, and that are imported when one of these is needed: those of the facets.
_ELSEWHERE: list[str] = []
#: Operation -> its fields with their defaults, once they were needed.
_DEFAULTS: dict[type[Operation], dict[str, Any]] = {}
#: Operation -> its fields that have times, once they were needed.
_TIMES: dict[type[Operation], tuple[str, ...]] = {}


class Operation:
    """The base class of all operations. They are immutable, and validated when they are created."""

    #: The name in the JSON form.
    name: ClassVar[str]
    #: The right that it needs.
    right: ClassVar[Right]
    #: The type of its result, as an annotation, such as "list[Commit]" (`engine.results`); "" if that depends on
    #: the operations in it.
    result: ClassVar[str]
    #: Whether it can be part of a batch, and whether it can be executed as of a moment in the past.
    in_batch: ClassVar[bool]
    in_past: ClassVar[bool]
    #: Whether it writes in one transaction, so that nothing is changed if it raises. (`RememberAll` only if it raises
    #: the first error.)
    atomic: ClassVar[bool]
    #: Whether it can have an idempotency key.
    can_have_key: ClassVar[bool]
    #: Whether it concerns all namespaces of the store.
    of_store: ClassVar[bool]

    def __init_subclass__(
        cls,
        name: str,
        right: Right = ADMIN,
        result: str = "",
        in_batch: bool = True,
        in_past: bool | None = None,
        atomic: bool | None = None,
        can_have_key: bool | None = None,
        of_store: bool = False,
    ) -> None:
        cls.name, cls.right, cls.result, cls.in_batch, cls.of_store = name, right, result, in_batch, of_store
        cls.in_past = (in_batch and right == READ) if in_past is None else in_past
        cls.atomic = right != READ if atomic is None else atomic
        cls.can_have_key = (in_batch and right == WRITE) if can_have_key is None else can_have_key
        _IMPORTED[name] = cls

    @property
    def needs(self) -> Right:
        """The greatest right that the operation, or one in it, needs."""
        return self.right

    @property
    def branches(self) -> tuple[str, ...]:
        """The names of the branches that it concerns besides the one where it is executed."""
        return ()

    @property
    def concerns_all(self) -> bool:
        """True if all namespaces of the store are concerned, by the operation or one in it: it needs a grant of all."""
        return self.of_store

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, `{"op": name, ...}`, without the fields that have their default.

        Raises:
            UnsupportedError: The operation contains a custom filter or a function.
        """
        out: dict[str, Any] = {"op": self.name}
        for name, default in _defaults(type(self)).items():
            value = getattr(self, name)
            if value != default:
                out[name] = plain(value)
        return out

    def located(self, zone: tzinfo) -> Operation:
        """Return the operation with its times that have no time zone in this one; itself if there are none."""
        changed: dict[str, Any] = {}
        for name in _TIMES.get(type(self)) or _times(type(self)):
            value = getattr(self, name)
            if isinstance(value, datetime):
                if value.tzinfo is None:
                    changed[name] = located(name, value, zone)
            elif isinstance(value, (Filter, Operation)) and (new := value.located(zone)) is not value:
                changed[name] = new
        return altered(self, **changed) if changed else self


def defined_in(module: str) -> None:
    """Say that a module defines operations. It is imported when one of them is needed."""
    _ELSEWHERE.append(module)


def all_operations() -> Mapping[str, type[Operation]]:
    """Return all operations by their names, those of the facets included."""
    for module in _ELSEWHERE:
        import_module(module)
    return _IMPORTED


def operation_named(name: str) -> type[Operation] | None:
    """Return the operation of a name; None: there is none."""
    kind = _IMPORTED.get(name)
    # Another thread may be importing its module: a class has its name here before its fields are made.
    return kind if kind is not None and kind.__module__ not in _ELSEWHERE else all_operations().get(name)


def _times(kind: type[Operation]) -> tuple[str, ...]:
    """Return the names of the fields of an operation that are a time, or may contain one."""
    if kind not in _TIMES:
        names = ("where", "reference", "time", "at", "operation")
        _TIMES[kind] = tuple(name for name in names if name in _defaults(kind))
    return _TIMES[kind]


def _defaults(kind: type[Operation]) -> dict[str, Any]:
    """Return the fields of an operation with the default of each; None if it has none."""
    if kind not in _DEFAULTS:
        out: dict[str, Any] = {}
        for item in fields(kind):  # type: ignore[arg-type]
            default = item.default if item.default is not MISSING else None
            out[item.name] = default if item.default_factory is MISSING else item.default_factory()
        _DEFAULTS[kind] = out
    return _DEFAULTS[kind]


def from_json(data: object, depth: int = 0) -> Operation:
    """Build an operation from its JSON form.

    Args:
        data: The parsed JSON.
        depth: How many operations enclose this one.

    Raises:
        InvalidOperationError: It is not the JSON form of an operation.
        RecollectError: A part of it is invalid (InvalidRecordError, InvalidFilterError, ...).
    """
    if depth > _MAX_DEPTH:
        raise InvalidOperationError("...", "is nested too deeply: a batch cannot contain a batch")
    if not isinstance(data, Mapping):
        raise InvalidOperationError(data, "must be a JSON object")
    name = data.get("op")
    kind = operation_named(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidOperationError(name, f"is not one of {', '.join(sorted(all_operations()))}")
    known = _defaults(kind)
    arguments: dict[str, Any] = {}
    for key, value in data.items():
        if key == "op":
            continue
        if key not in known:
            raise InvalidOperationError(key, f"is not a field of {name}")
        if key in ("items", "operations"):
            arguments[key] = _read_operations(value, depth + 1)
        elif key == "operation":
            arguments[key] = from_json(value, depth + 1)
        else:
            arguments[key] = _READERS[key](value) if key in _READERS else value
    try:
        return kind(**arguments)
    except TypeError as error:
        if isinstance(error, RecollectError):
            raise
        raise InvalidOperationError(name, str(error).rpartition("() ")[2]) from None


def listed_ids(ids: object) -> tuple[str, ...]:
    """Return several ids; a record stands for its id.

    Raises:
        InvalidArgumentError: They are not several ids.
        InvalidRecordError: One is not an id.
    """
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise InvalidArgumentError("ids", ids, "must be several ids")
    return tuple(each.id if isinstance(each, Record) else record_id(each) for each in ids)


def checked_ids(ids: object) -> tuple[str, ...]:
    """Return several ids, each once. Raises what `listed_ids` raises."""
    return tuple(dict.fromkeys(listed_ids(ids)))


def expectation(value: object) -> str | None:
    """Return `expect` as a hash, "absent" or None. A record stands for its hash.

    Raises:
        InvalidArgumentError: The value is not one of these.
    """
    if value is None:
        return None
    if isinstance(value, Record):
        return value.hash
    if isinstance(value, str) and (value == ABSENT or _HASH.fullmatch(value)):
        return value
    raise InvalidArgumentError("expect", value, "must be a record, a record's hash (64 hex digits) or 'absent'")


def checked_parts(parts: object) -> tuple[str, ...] | None:
    """Return the names of parts of a memory, sorted, each once; None for all parts. The engine knows which there are.

    Raises:
        InvalidArgumentError: They are not several names.
    """
    if parts is None:
        return None
    if not isinstance(parts, Collection) or isinstance(parts, (str, bytes, Mapping)) or not parts:
        raise InvalidArgumentError("parts", parts, 'must be a list of names, such as ["records"], or None for all')
    for each in parts:
        check_text("parts", each)
    return tuple(sorted(set(parts)))


def plain(value: Any) -> Any:
    """Return the JSON form of a value of an operation.

    Raises:
        UnsupportedError: It has none.
        InvalidRecordError: It contains a naive datetime.
    """
    if isinstance(value, (Filter, JsonForm, Operation, Record)):
        return value.to_json()
    if isinstance(value, date):  # or a datetime
        return value.isoformat()
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, RawField):
        return [value.number, value.type, base64.b64encode(value.value).decode("ascii")]
    if isinstance(value, Mapping):
        if value.keys() == {"base64"}:
            raise UnsupportedError("a mapping with the key 'base64'", "it would be read as bytes")
        return {key: _field_value(key, item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value))  # tags, which have no order
    if isinstance(value, Turn):
        return {key: plain(item) for key, item in value._asdict().items() if item is not None and item != {}}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if callable(value):
        raise UnsupportedError("a function", "it has no JSON form: pass the changed fields")
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise UnsupportedError(f"the value {shown(value)}", "it has no JSON form")


def _field_value(name: str, value: Any) -> Any:
    """Return the JSON form of a field.

    Raises:
        UnsupportedError: It has none.
        InvalidRecordError: It is a naive datetime. As text without an offset it would be taken for one in the memory's
            time zone.
    """
    if name == "metadata":
        return _json_value(value)
    return plain(unlocated(name, value) if isinstance(value, datetime) else value)


def _json_value(value: Any, depth: int = 0) -> Any:
    """Return a value of metadata, which must have a JSON form of its own: anything else is not a record's either.

    Raises:
        UnsupportedError: It has none.
        InvalidRecordError: It is nested deeper than a record's may be.
    """
    if depth > MAX_DEPTH:
        raise InvalidRecordError("metadata", "...", f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise UnsupportedError(f"the key {shown(wrong[0])} in metadata", "it is not text")
        return {key: _json_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item, depth + 1) for item in value]
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise UnsupportedError(f"the value {shown(value)} in metadata", "it has no JSON form")


def _read_fields(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidOperationError(value, "fields must be a JSON object")
    return fields_from_json({key: _read_content(item) if key == "content" else item for key, item in value.items()})


def _read_content(value: Any) -> Any:
    match value:
        case {"base64": str(text)} if len(value) == 1:
            return fields_from_json({"data": text})["content"]
    return value


def _read_operations(value: Any, depth: int) -> tuple[Operation, ...]:
    if not isinstance(value, list):
        raise InvalidOperationError(value, "must be a list of operations")
    return tuple(from_json(item, depth) for item in value)


def _read_turns(value: Any) -> tuple[Turn, ...]:
    if not isinstance(value, list):
        raise InvalidOperationError(value, "must be a list of turns")
    turns = []
    for item in value:
        if not isinstance(item, Mapping) or not {"role", "content"} <= item.keys() <= set(Turn._fields):
            raise InvalidOperationError(item, f"a turn has a role and a content, and {', '.join(Turn._fields[1:])}")
        stated = {"speaker": None, **item}
        if stated.get("time") is not None:
            stated["time"] = unlocated("time", stated["time"])
        turns.append(Turn(**stated))
    return tuple(turns)


_READERS: dict[str, Callable[[Any], Any]] = {
    "content": _read_content,
    "fields": _read_fields,
    "changes": _read_fields,
    "turns": _read_turns,
    "where": filter_from_json,
}


def branch_name(value: object, argument: str = "branch") -> str:
    """Return a value as the name of a branch: text of 1 to 100 bytes without control characters.

    Raises:
        InvalidArgumentError: It is not one.
    """
    if not isinstance(value, str):
        raise InvalidArgumentError(argument, value, "must be text")
    name = nfc(value)
    if not 1 <= len(name.encode("utf-8", "surrogatepass")) <= MAX_BRANCH_BYTES:
        raise InvalidArgumentError(argument, value, f"must be text of 1 to {MAX_BRANCH_BYTES} bytes")
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name) or name != name.strip():
        rule = "must not have control characters, nor begin or end with a space"
        raise InvalidArgumentError(argument, value, rule)
    return name
