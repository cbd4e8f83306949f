"""The form of receipts: what binds a question and its answer to a commit. docs/receipts.md specifies it byte by byte.

A receipt contains texts, integers, null, lists and objects, and no other numbers, so its canonical form is RFC 8785
without the rules for fractions. The operation is a text, and its digest covers exactly these characters.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from recollect.arguments.checks import is_vector_text
from recollect.errors import InvalidArgumentError

#: A receipt: plain JSON.
Receipt: TypeAlias = dict[str, Any]
#: The version of the form, and that of earlier releases, which has no field "vector".
VERSION, _WITHOUT_VECTOR = 2, 1
_PREFIX = b"recollect.receipt.1\0"
#: An integer beyond this loses digits in readers that take every number for a double.
_MOST = 2**53
#: Field -> the types of its values in JSON. Integers are 0 or more.
_FIELDS: dict[str, tuple[type, ...]] = {
    "receipt": (int,),
    "namespace": (str,),
    "branch": (str,),
    "operation": (str,),
    "language": (str, type(None)),
    "embedder": (dict, type(None)),
    "vectors": (int, type(None)),
    "vector": (str, type(None)),
    "rules": (str,),
    "time": (str,),
    "seq": (int,),
    "root": (str,),
    "log": (str,),
    "hits": (list,),
    "standing": (list,),
    "digest": (str,),
}


def sealed(fields: Mapping[str, Any]) -> Receipt:
    """Return a receipt with these fields and their digest."""
    receipt = {"receipt": VERSION, **fields}
    return {**receipt, "digest": digest_of(receipt)}


def digest_of(receipt: Mapping[str, Any]) -> str:
    """Return the digest of a receipt, over all its fields but the digest."""
    fields = {name: value for name, value in receipt.items() if name != "digest"}
    canonical = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(_PREFIX + canonical.encode("utf-8")).hexdigest()


def checked(receipt: object) -> Receipt:
    """Return a value as a receipt.

    Raises:
        InvalidArgumentError: It is not a receipt, or it was changed since it was written.
    """
    if not isinstance(receipt, Mapping):
        raise _wrong(receipt, "must be a JSON object")
    fields = dict(receipt)
    version = fields.get("receipt")
    if type(version) is not int or version not in (VERSION, _WITHOUT_VECTOR):
        raise _wrong(version, f"must be a receipt of version {_WITHOUT_VECTOR} or {VERSION}")
    required = {name: types for name, types in _FIELDS.items() if name != "vector" or version == VERSION}
    if fields.keys() != required.keys():
        raise _wrong(sorted(map(str, fields.keys() ^ required.keys())), "lacks these fields, or has them in addition")
    for name, types in required.items():
        value = fields[name]
        if type(value) not in types or (type(value) is int and value < 0):
            kinds = " or ".join("null" if each is type(None) else each.__name__ for each in types)
            raise _wrong(value, f"has a field {name!r} that is not of the type {kinds}")
    try:
        if not _plain(fields) or digest_of(fields) != fields["digest"]:
            raise _wrong(fields["digest"], "does not match its digest: it was changed since it was written")
    except (UnicodeEncodeError, RecursionError):
        raise _wrong("...", "is not valid JSON") from None
    if not is_vector_text(fields.get("vector") or ""):
        raise _wrong(fields["vector"], "has a vector that is not one of length 1 in base64")
    return fields


def _plain(value: object) -> bool:
    """Return whether a value has one canonical form."""
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _plain(item) for key, item in value.items())
    return value is None or type(value) is str or (type(value) is int and abs(value) < _MOST)


def _wrong(value: object, rule: str) -> InvalidArgumentError:
    return InvalidArgumentError("receipt", value, rule)
