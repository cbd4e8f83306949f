"""The newest commits that a client has seen of a memory, so that no node shows it an older state.

A client states them with each request as tokens, and each answer has the token of the newest commit that was read or
made. Over HTTP these are the headers `Recollect-Seen` and `Recollect-Seq`, over the socket `"seen"` beside a request
and `"seq"` in its answer. A server whose answer to a ping has no `"seen": true` would refuse such a line, so it gets
none.

A token is the seq of a commit. For a client that may use one scope alone it is encrypted, since a seq counts the
commits of others; all clients of a store can state it.
"""

from __future__ import annotations

import threading
from collections import deque

from recollect.engine.scope import Scope
from recollect.errors import ProtocolError

SEEN_HEADER, SEQ_HEADER = "Recollect-Seen", "Recollect-Seq"
#: What a client states that has seen nothing yet.
NOTHING = "0"
#: Number of tokens that a client states, since it does not know which of several encrypted ones is the newest: half of
#: them are of its newest writes, which no late answer to a read can push out.
TOKENS = 8
#: What tokens are encrypted for, whatever the scope of their client. No user has such a name.
TOKEN_SCOPE = Scope((("user", "\0seen"),))
_MOST_LETTERS = 40


def read_seen(data: object) -> list[str]:
    """Read the tokens that a client states.

    Raises:
        ProtocolError: It is no text of tokens with commas between them.
    """
    tokens = [each.strip() for each in data.split(",")] if isinstance(data, str) else []
    if not tokens or len(tokens) > TOKENS or any(not 1 <= len(each) <= _MOST_LETTERS for each in tokens):
        raise ProtocolError(f"what was seen must be 1 to {TOKENS} tokens with commas between them")
    return tokens


def with_seq(answer: bytes, token: str) -> bytes:
    """Return an answer, a JSON object, with the token of a commit in it; "": without one."""
    return b'%s,"seq":"%s"}' % (answer[:-1], token.encode("ascii")) if token else answer


class SeenCommits:
    """What a client has seen of each memory. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seqs: dict[str, int] = {}
        self._encrypted: dict[str, tuple[deque[str], deque[str]]] = {}  # of reads, and of writes

    def stated(self, namespace: str) -> str:
        """Return the tokens of what was seen of a memory."""
        with self._lock:
            if namespace in self._encrypted:
                return ",".join(each for tokens in self._encrypted[namespace] for each in tokens)
            return str(self._seqs.get(namespace, NOTHING))

    def note(self, namespace: str, token: object, *, wrote: bool) -> None:
        """Note the token of an answer to a read or a write; None if it has none."""
        if not isinstance(token, str) or not token:
            return
        with self._lock:
            if token.isascii() and token.isdigit() and len(token) < 20:
                self._seqs[namespace] = max(int(token), self._seqs.get(namespace, 0))
            else:
                new: tuple[deque[str], deque[str]] = deque(maxlen=TOKENS // 2), deque(maxlen=TOKENS // 2)
                self._encrypted.setdefault(namespace, new)[wrote].append(token[:_MOST_LETTERS])
