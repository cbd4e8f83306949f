"""Cursors: where in the log a caller stands, as text that can be handed back to `changes` and `listen`.

Outside of scopes a cursor is the seq. Within one, where the seq would tell how much others write, it is the seq under a
permutation that only this store knows: the same in every process, and without order or distance. The permutation is a
Feistel network of four rounds over 16 bytes with HMAC-SHA256 as its function (Luby and Rackoff, 1988); eight of the
bytes are zeros, by which a cursor of another scope or store is known.
"""

from __future__ import annotations

import hmac
import re

from recollect.engine.scope import Scope
from recollect.errors import InvalidArgumentError, ScopeError
from recollect.ledger.commits import Branch

_ROUNDS = 4
_HALF = 8
_TOKEN = re.compile(r"[0-9a-f]{32}")
_SEQ = re.compile(r"[0-9]{1,18}")


class Cursors:
    """The cursors of a store.

    secret  what nobody knows who has not got the store itself
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def at(self, seq: int, branch: Branch, scope: Scope) -> str:
        """The cursor behind a commit. Cost: four hashes within a scope."""
        if not scope.fixed:
            return str(seq)
        left, right = seq.to_bytes(_HALF, "big"), bytes(_HALF)
        for number in range(_ROUNDS):
            left, right = right, _xor(left, self._round(number, right, branch, scope))
        return (left + right).hex()

    def seq(self, cursor: int | str, branch: Branch, scope: Scope) -> int:
        """The seq that a cursor, or where that may be seen a seq, stands for; 0 is the beginning of the log.

        Raises: InvalidArgumentError; ScopeError for a seq within a scope.
        """
        if cursor == 0:
            return 0
        if not scope.fixed:
            if isinstance(cursor, str) and not _SEQ.fullmatch(cursor):
                raise InvalidArgumentError("since", cursor, "must be a seq, or the cursor of a commit of this memory")
            return int(cursor)
        if isinstance(cursor, int):
            raise ScopeError("a seq, which tells of the whole namespace (a commit's cursor does not),", str(scope))
        if _TOKEN.fullmatch(cursor):
            token = bytes.fromhex(cursor)
            left, right = token[:_HALF], token[_HALF:]
            for number in reversed(range(_ROUNDS)):
                left, right = _xor(right, self._round(number, left, branch, scope)), left
            if right == bytes(_HALF):
                return int.from_bytes(left, "big")
        raise InvalidArgumentError("since", cursor, "must be 0, or the cursor of a commit in this scope")

    def _round(self, number: int, half: bytes, branch: Branch, scope: Scope) -> bytes:
        message = repr((number, half, tuple(branch), scope.fixed)).encode("utf-8", "backslashreplace")
        return hmac.digest(self._secret, message, "sha256")[:_HALF]


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
