"""`Chain`, the proof of how many tags a replica has made, which no other replica can give before it does.

A chain is a list of hashes, each that of the next one, computed from a secret at its end. Its first link is part of the
replica's id, so all who know the id can check any later link by hashing back to it, but cannot compute the link after
the last one that was published (Lamport, Password authentication with insecure communication, CACM 1981).
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache

from recollect.errors import InvalidArgumentError
from recollect.facets.keyed.replicated.state import checked_number, checked_text

#: Maximum number of tags of a replica: bounds what checking a foreign state costs, about 30 ms a replica.
MOST = 2**16
#: Bytes of a link. 16 resist a search for a preimage, and a collision gains nothing.
_BYTES = 16
#: Every so many links one is stored, and those between are computed.
_EVERY = 64


class Chain:
    """The identity of a replica in a set: its id, and its proofs.

        alice = Chain("alice", secret, about="team/members")
        state = AddWinsSet().add("carol", alice)

    Args:
        name: What the replica is called.
        secret: At least 16 bytes that no other replica knows. The same secret makes the same chain.
        about: Which set it is for, such as its key. A chain must be used for one set only: what one set publishes
            would otherwise prove tags of the other that were not made.
        most: Maximum number of tags. Making a chain takes as many hashes.
    """

    def __init__(self, name: str, secret: bytes, about: str = "", most: int = 4096) -> None:
        checked_text("name", name, empty=False)
        checked_text("about", about)
        if not isinstance(secret, bytes) or len(secret) < 16:
            raise InvalidArgumentError("secret", "...", "must be at least 16 bytes")
        self.most = checked_number("most", most, 1, MOST)
        seed = f"{len(name)}:{name}{about}"
        link = hmac.new(secret, seed.encode("utf-8"), "sha256").digest()[:_BYTES]
        self._stored = {most: link}
        for n in range(most, 0, -1):
            link = _before(name, n, link)
            if (n - 1) % _EVERY == 0:
                self._stored[n - 1] = link
        self.replica = f"{name}:{link.hex()}"
        self._name = name

    def link(self, n: int) -> str:
        """Return the proof that n tags were made. Publishing it makes them."""
        checked_number("n", n, 1, self.most)
        at = min(-(-n // _EVERY) * _EVERY, self.most)
        link = self._stored[at]
        for number in range(at, n, -1):
            link = _before(self._name, number, link)
        return link.hex()

    def __repr__(self) -> str:
        return f"Chain({self.replica!r})"


def _before(name: str, n: int, link: bytes) -> bytes:
    """Return link n - 1, of link n."""
    # The number and the name are hashed, too, so that links of other places and replicas are worth nothing here.
    return hashlib.sha256(b"recollect.keyed.replicated %d %b " % (n, name.encode("utf-8")) + link).digest()[:_BYTES]


@lru_cache(maxsize=4096)  # states of the same replica come again and again
def proves(replica: str, n: int, link: str) -> bool:
    """Return whether a link proves that this replica has made n tags. O(n)."""
    name, separator, first = replica.rpartition(":")
    if not (separator and name and _is_link(first) and _is_link(link) and 1 <= n <= MOST):
        return False
    found = bytes.fromhex(link)
    for number in range(n, 0, -1):
        found = _before(name, number, found)
    return found.hex() == first


def _is_link(text: str) -> bool:
    return len(text) == 2 * _BYTES and all(character in "0123456789abcdef" for character in text)
