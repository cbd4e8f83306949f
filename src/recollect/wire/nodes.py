"""Nodes: the servers of one store, any of which answers for any namespace.

What makes an answer fast is that the index of its namespace is in the memory of the node that is asked. So a client
sends what concerns a namespace to the same node, by rendezvous hashing: each node has a rank for each namespace, and
the one with the greatest is asked first. All clients with the same addresses agree, a node that is gone gives each of
its namespaces to the next one in rank, and no other namespace moves.

Source: Thaler and Ravishankar, Using name-based mappings to increase hit rates, 1998.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

#: The location of a memory that only its process has.
IN_MEMORY = ":memory:"
_RANK_BYTES = 8
_DIGEST_LETTERS = 32


def ranked(addresses: Sequence[str], namespace: str) -> list[int]:
    """Return the numbers of the nodes in the order in which they are asked for a namespace.

    It does not depend on the order of the addresses.

    >>> [ranked(["http://a:1", "http://b:1", "http://c:1"], each)[0] for each in ("ana", "bob", "cleo")]
    [2, 1, 0]
    """

    def rank(number: int) -> tuple[bytes, str]:
        address = addresses[number]
        text = f"{address}\0{namespace}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, digest_size=_RANK_BYTES).digest(), address

    return sorted(range(len(addresses)), key=rank, reverse=True)


def store_digest(uuid: str) -> str:
    """Return what nodes of one store have in common, and say to everybody: it reveals nothing of the store."""
    return hashlib.sha256(b"recollect.node.1\0" + uuid.encode()).hexdigest()[:_DIGEST_LETTERS]
