"""Bearer tokens: a file with the hash of each, and what it allows.

    [[token]]
    name = "ana's agent"
    hash = "sha256:5e88..."
    right = "write"                # read, write or admin; own: what a user may do with records of their own
    namespaces = ["team"]          # all of the store, if absent
    branches = ["main"]            # that alone, if absent; ["*"] for all
    scope = { user = "ana" }       # the whole of each namespace, if absent
    origin = "user"                # whose word what it writes is, at most (docs/trust.md); "assistant" if absent

A token is 32 random bytes, so a plain hash of it cannot be guessed. The file is read again when it has changed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError, RecollectError, TokenError
from recollect.operations import MAIN
from recollect.operations.base import ADMIN
from recollect.records.origins import ASSISTANT, ORIGINS, OWNER, USER, Origin
from recollect.wire import ALLOWED, OWN, Allowed, Grant, scope_from_json

_log = logging.getLogger("recollect.server")
_KEYS = frozenset(("name", "hash", "right", "namespaces", "branches", "scope", "origin"))
#: In place of the names of branches: all of them.
_ALL = "*"
_HASH = regex("sha256:[0-9a-f]{64}")
#: The largest file of tokens, in bytes.
_MOST_BYTES = 2**20
#: Seconds between two looks at whether the file has changed.
_LOOK_S = 1.0


def new_token() -> str:
    """Return a new token: 43 letters, digits, "-" and "_"."""
    return secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """Return the hash of a token, as the file has it."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


class Tokens:
    """The tokens of a file.

    Args:
        path: The file.

    Raises:
        InvalidArgumentError: It cannot be read, or an entry is invalid.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._grants, self._version = _read(path)
        self._looked = time.monotonic()
        self._fault = ""  # why it could not be read

    def grant(self, token: str | None) -> Grant:
        """Return what a token allows.

        Raises:
            TokenError: There is no token, or it is not in the file.
        """
        if token is None:
            raise TokenError("the request has no token")
        if time.monotonic() - self._looked > _LOOK_S:
            self._look()
        key = hash_of(token)
        if key not in self._grants:
            self._look()  # it may be new
        grant = self._grants.get(key)
        if grant is None:
            raise TokenError("the server does not know the token")
        return grant

    def _look(self) -> None:
        """Read the file again if it has changed. One that cannot be read allows nothing."""
        self._looked = time.monotonic()
        try:
            if _version(self._path) != self._version:
                self._grants, self._version = _read(self._path)
            self._fault = ""
        except (InvalidArgumentError, OSError) as error:
            self._grants, self._version = {}, None
            if str(error) != self._fault:
                self._fault = str(error)
                _log.error("no token is accepted: %s", error)
            raise TokenError(
                "the file of tokens cannot be read, so no token is accepted: see the server's log"
            ) from None


def entry(
    name: str,
    token: str,
    right: Allowed,
    namespaces: tuple[str, ...],
    scope: Mapping[str, str],
    origin: Origin | None = None,
    branches: tuple[str, ...] = (),
) -> str:
    """Return what the file has for a token."""
    lines = ["[[token]]", f"name = {_quoted(name)}", f'hash = "{hash_of(token)}"', f'right = "{right}"']
    if namespaces:
        lines.append(f"namespaces = [{', '.join(map(_quoted, namespaces))}]")
    if branches:
        lines.append(f"branches = [{', '.join(map(_quoted, branches))}]")
    if scope:
        lines.append(f"scope = {{ {', '.join(f'{key} = {_quoted(value)}' for key, value in scope.items())} }}")
    if origin is not None:
        lines.append(f'origin = "{origin}"')
    return "\n".join(lines) + "\n\n"


def add_entry(path: Path, text: str) -> None:
    """Add an entry to a file of tokens, which is made, readable only by its owner, if there is none.

    Raises:
        InvalidArgumentError: The file is no file of tokens, or cannot be written. It is as it was.
    """
    if path.exists():
        _read(path)
    try:
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600), "w"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InvalidArgumentError("tokens", str(path), f"cannot be written: {error.strerror or error}") from None


def _quoted(text: str) -> str:
    """Return a text as a basic string of TOML."""
    escaped = (letter if letter.isprintable() and letter not in '"\\' else f"\\U{ord(letter):08X}" for letter in text)
    return f'"{"".join(escaped)}"'


def _version(path: Path) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> tuple[dict[str, Grant], tuple[int, int, int] | None]:
    try:
        version = _version(path)
        if version[1] > _MOST_BYTES:
            raise InvalidArgumentError("tokens", str(path), f"is larger than {_MOST_BYTES} bytes")
        if os.stat(path).st_mode & 0o022:
            raise InvalidArgumentError("tokens", str(path), "may be written by others: chmod 600 it")
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError("tokens", str(path), f"cannot be read: {error}") from None
    listed = data.get("token", [])
    if data.keys() - {"token"} or not isinstance(listed, list):
        raise InvalidArgumentError("tokens", str(path), "must consist of [[token]] tables")
    grants: dict[str, Grant] = {}
    for number, each in enumerate(listed, 1):
        key, grant = _entry(path, number, each)
        if key in grants:
            raise InvalidArgumentError("tokens", str(path), f"has the same hash twice, in token {number}")
        grants[key] = grant
    return grants, version


def _entry(path: Path, number: int, data: Any) -> tuple[str, Grant]:
    def wrong(rule: str) -> InvalidArgumentError:
        return InvalidArgumentError("tokens", str(path), f"has a token {number} that {rule}")

    if not isinstance(data, dict) or data.keys() - _KEYS:
        raise wrong(f"has other keys than {', '.join(sorted(_KEYS))}")
    if not isinstance(data.get("hash"), str) or not _HASH.fullmatch(data["hash"]):
        raise wrong('has no hash "sha256:" and 64 hex digits')
    if data.get("right") not in ALLOWED:
        raise wrong(f"has no right of {', '.join(ALLOWED)}")
    namespaces = data.get("namespaces")
    if namespaces is not None and not (
        isinstance(namespaces, list) and namespaces and all(isinstance(name, str) and name for name in namespaces)
    ):
        raise wrong("has namespaces that are not a list of names")
    branches = data.get("branches", [MAIN])
    if not isinstance(branches, list) or not branches or not all(isinstance(name, str) and name for name in branches):
        raise wrong("has branches that are not a list of names")
    name = data.get("name")
    if name is not None and not isinstance(name, str):
        raise wrong("has a name that is no text")
    try:
        scope = scope_from_json(data.get("scope") or {})
    except RecollectError as error:
        raise wrong(f"has an invalid scope: {error}") from None
    if data["right"] == OWN and "user" not in dict(scope.fixed):
        raise wrong('has the right own and no user: add scope = { user = "..." }')
    origin = data.get("origin", default_origin(data["right"]))
    if origin not in ORIGINS:
        raise wrong(f"has no origin of {', '.join(ORIGINS)}")
    allowed = None if namespaces is None else frozenset(namespaces)
    return data["hash"], Grant(
        right=data["right"],
        namespaces=allowed,
        branches=None if _ALL in branches else frozenset(branches),
        scope=scope,
        actor=name,
        client=data["hash"],
        origin=origin,
    )


def default_origin(right: Allowed) -> Origin:
    """Return the class of origin of what a client writes whose token states none.

    What writes through a token is a program, mostly one with a model in it; a person administers and has their own.
    """
    return OWNER if right == ADMIN else USER if right == OWN else ASSISTANT
