"""Cursors: positions in the log or in the records of a `find`, as text that callers can pass back.

Outside of scopes a cursor is the seq. Within a scope the seq would reveal how much others write, so the cursor is the
seq under a keyed permutation: it is the same in every process and reveals neither order nor distance. The permutation
is a Feistel network of four rounds over 16 bytes, with HMAC-SHA256 as its round function. Four of the bytes are zeros,
so that a cursor of another scope or store is detected. Four are a salt: that of a commit is 0, and the present, which
others change, has another one at each time, so that two cursors of it do not show whether anybody wrote in between.

The cursor of a `find` is the sort key of the last record of a page. It contains the id under which the record is
stored, which a scope does not show, and callers should not take it apart. It is therefore encrypted with a keyed hash
of itself as the nonce, which also detects a cursor of another scope, store or order.

Source:
    Luby and Rackoff, How to construct pseudorandom permutations from pseudorandom functions, 1988.
    Rogaway and Shrimpton, A provable-security treatment of the key-wrap problem, 2006 (the synthetic nonce).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from recollect.common.regexes import regex
from recollect.engine.scope import Scope
from recollect.errors import InvalidArgumentError, ScopeError
from recollect.ledger.commits import Branch
from recollect.stores.values import SortKey

_ROUNDS = 4
_HALF, _SALT = 8, 4
_NONCE = 16
_TOKEN = regex(r"[0-9a-f]{32}")
_SEQ = regex(r"[0-9]{1,18}")


class Cursors:
    """The cursors of a store.

    Args:
        secret: The key of the permutation, derived from the store's key and uuid.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def at(self, seq: int, branch: Branch, scope: Scope, salt: int = 0) -> str:
        """Return the cursor after a commit.

        Args:
            seq: The number of the commit.
            scope: The scope of the caller.
            salt: What distinguishes cursors of one commit. Its lowest 32 bits count.

        Cost:
            Four hashes within a scope.
        """
        if not scope.fixed:
            return str(seq)
        left, right = seq.to_bytes(_HALF, "big"), bytes(_HALF - _SALT) + salt.to_bytes(16, "big", signed=True)[-_SALT:]
        for number in range(_ROUNDS):
            left, right = right, _xor(left, self._round(number, right, branch, scope))
        return (left + right).hex()

    def seq(self, cursor: int | str, branch: Branch, scope: Scope) -> int:
        """Return the seq of a cursor; 0 is the beginning of the log. Outside of scopes, a seq is accepted too.

        Raises:
            InvalidArgumentError: It is not a cursor of this branch and scope.
            ScopeError: It is a seq, within a scope.
        """
        if cursor == 0:
            return 0
        if not scope.fixed:
            if isinstance(cursor, str) and not _SEQ.fullmatch(cursor):
                raise InvalidArgumentError("since", cursor, "must be a seq, or the cursor of a commit of this memory")
            return int(cursor)
        if isinstance(cursor, int):
            raise ScopeError("a seq, which counts the commits of the whole namespace (pass a cursor),", str(scope))
        if _TOKEN.fullmatch(cursor):
            token = bytes.fromhex(cursor)
            left, right = token[:_HALF], token[_HALF:]
            for number in reversed(range(_ROUNDS)):
                left, right = _xor(right, self._round(number, left, branch, scope)), left
            if not any(right[: _HALF - _SALT]):
                return int.from_bytes(left, "big")
        raise InvalidArgumentError("since", cursor, "must be 0, or the cursor of a commit in this scope")

    def reached(self, cursor: int | str, branch: Branch, scope: Scope, head: int) -> int:
        """Return the seq of a cursor, as `seq` does, and check that the log has this commit.

        Raises:
            InvalidArgumentError: It is not a cursor of this branch and scope, or the log ends before it.
        """
        seq = self.seq(cursor, branch, scope)
        if seq > head:
            rule = "must not be after the newest commit (it is of another memory, or an older copy was restored)"
            raise InvalidArgumentError("since", cursor, rule)
        return seq

    def after(self, key: SortKey, order: str, branch: Branch, scope: Scope) -> str:
        """Return the cursor after the record with a sort key in an order."""
        text = json.dumps(key).encode("ascii")
        text += b" " * (-len(text) % _NONCE)  # so that its length does not reveal that of the stored id
        nonce = self._nonce(text, order, branch, scope)
        return base64.urlsafe_b64encode(nonce + self._masked(nonce, text)).decode("ascii").rstrip("=")

    def sort_key(self, cursor: str, order: str, branch: Branch, scope: Scope) -> SortKey:
        """Return the sort key of a cursor that `after` returned.

        Raises:
            InvalidArgumentError: It is not a cursor of this order, branch and scope.
        """
        try:
            token = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except ValueError:
            token = b""
        text = self._masked(token[:_NONCE], token[_NONCE:])
        if not hmac.compare_digest(self._nonce(text, order, branch, scope), token[:_NONCE]):
            rule = "must be the cursor of an earlier page of this memory in the same order"
            raise InvalidArgumentError("after", cursor, rule)
        return tuple(json.loads(text))

    def _nonce(self, text: bytes, order: str, branch: Branch, scope: Scope) -> bytes:
        context = repr(("find", order, tuple(branch), scope.fixed)).encode("utf-8", "backslashreplace")
        return hmac.digest(self._secret, context + text, "sha256")[:_NONCE]

    def _masked(self, nonce: bytes, text: bytes) -> bytes:
        return _xor(text, hashlib.shake_256(self._secret + nonce).digest(len(text)))

    def _round(self, number: int, half: bytes, branch: Branch, scope: Scope) -> bytes:
        message = repr((number, half, tuple(branch), scope.fixed)).encode("utf-8", "backslashreplace")
        return hmac.digest(self._secret, message, "sha256")[:_HALF]


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
