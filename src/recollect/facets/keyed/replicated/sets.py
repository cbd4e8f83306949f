"""`AddWinsSet`, a set of texts in which an add wins over a remove that did not see it.

Every add has a tag of its own, the replica and a number, and the set contains an element while one of its tags is live.
The context says how many tags of each replica this state has seen: a tag that it covers and that is not live was
removed, and does not come back (Bieniusa et al., An optimized conflict-free replicated set, 2012). Each number in the
context carries the replica's proof, without which a forged context would remove adds that it never saw.
"""

from __future__ import annotations

import hashlib
import hmac
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from recollect.errors import InvalidArgumentError
from recollect.facets.keyed.replicated.state import (
    checked_number,
    checked_same,
    checked_text,
    decoded,
    encoded,
    forged,
    malformed,
)


class AddTag(NamedTuple):
    """The identity of one add.

    Attributes:
        replica: The id of the replica that added.
        n: Its number, from 1.
    """

    replica: str
    n: int


class Seen(NamedTuple):
    """The number of tags of a replica that a state has seen.

    Attributes:
        replica: Its id.
        n: All its tags up to this number.
        proof: Link n of its chain.
    """

    replica: str
    n: int
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWinsSet:
    """A set of texts.

    Attributes:
        entries: For each element, in order, its live tags.
        context: For each replica, in order, how many of its tags were seen.
    """

    entries: tuple[tuple[str, tuple[AddTag, ...]], ...] = ()
    context: tuple[Seen, ...] = ()

    def __post_init__(self) -> None:
        for replica, n, proof in self.context:
            checked_text("replica", replica)
            checked_number("n", n, 1, MOST)
            if not proves(replica, n, checked_text("proof", proof)):
                raise InvalidArgumentError("context", (replica, n), "is forged: the replica has not made these tags")
        _check_order("context", [each.replica for each in self.context])
        seen = {each.replica: each.n for each in self.context}
        used: set[AddTag] = set()
        for element, tags in self.entries:
            checked_text("element", element)
            _check_order("tags", list(tags))
            for tag in tags:
                checked_number("n", tag.n, 1, seen.get(checked_text("replica", tag.replica), 0))
            if not tags or used.intersection(tags):
                raise InvalidArgumentError("tags", tags, "must be there, each one on one element")
            used.update(tags)
        _check_order("entries", [element for element, _ in self.entries])

    # The set

    def __contains__(self, element: object) -> bool:
        return isinstance(element, str) and bool(self.tags(element))

    def __iter__(self) -> Iterator[str]:
        return (element for element, _ in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def tags(self, element: str) -> tuple[AddTag, ...]:
        """Return the live tags of an element; none: it is not in the set."""
        at = bisect_left(self.entries, (element,))
        return self.entries[at][1] if at < len(self.entries) and self.entries[at][0] == element else ()

    def seen(self, replica: str) -> int:
        """Return how many tags of a replica this state has seen."""
        return next((each.n for each in self.context if each.replica == replica), 0)

    # Changes

    def add(self, element: str, chain: Chain) -> AddWinsSet:
        """Return this set with an element, under a new tag.

        Raises:
            InvalidArgumentError: All tags of the chain are used: go on with a chain of another name.
        """
        checked_text("element", element)
        n = self.seen(chain.replica) + 1
        if n > chain.most:
            raise InvalidArgumentError("chain", chain, f"has no tag left: all {chain.most} are used")
        entries, context = dict(self.entries), {each.replica: each for each in self.context}
        # The new tag stands for those that were seen, which keeps one tag an element where nothing is concurrent.
        entries[element] = (AddTag(chain.replica, n),)
        context[chain.replica] = Seen(chain.replica, n, chain.link(n))
        return _made(entries, context)

    def remove(self, element: str) -> AddWinsSet:
        """Return this set without an element. Adds that this state has not seen stay."""
        kept = tuple(entry for entry in self.entries if entry[0] != element)
        return AddWinsSet(entries=kept, context=self.context)

    def merge(self, other: AddWinsSet, own: str | None = None) -> AddWinsSet:
        """Return what both know: a tag is live if both have it, or one has it and the other has not seen it.

        See `State.merge`.
        """
        checked_same(self, other)
        if own is not None:
            self._check_own(other, own)
        mine, theirs = self._adds(), other._adds()
        live = mine & theirs
        for adds, unseen_by in ((mine - theirs, other), (theirs - mine, self)):
            seen = {each.replica: each.n for each in unseen_by.context}
            live |= {(element, tag) for element, tag in adds if tag.n > seen.get(tag.replica, 0)}
        entries: dict[str, tuple[AddTag, ...]] = {}
        for element, tag in sorted(live):
            entries[element] = (*entries.get(element, ()), tag)
        context = {each.replica: each for each in self.context}
        for each in other.context:
            context[each.replica] = max(each, context.get(each.replica, each))
        return _made(entries, context)

    def _adds(self) -> set[tuple[str, AddTag]]:
        return {(element, tag) for element, tags in self.entries for tag in tags}

    def _check_own(self, other: AddWinsSet, own: str) -> None:
        if other.seen(own) > self.seen(own):
            raise forged(
                other, f"it claims that {own} has made {other.seen(own)} tags, but it has made {self.seen(own)}"
            )
        mine = {tag: element for element, tag in self._adds()}
        for element, tag in sorted(other._adds()):
            if tag.replica == own and mine.get(tag, element) != element:
                raise forged(other, f"it puts tag {tag.n} of {own} on another element")

    # Bytes

    def to_bytes(self) -> bytes:
        """Return the one byte form."""
        return encoded("set", context=self.context, entries=self.entries)

    @classmethod
    def from_bytes(cls, data: bytes) -> AddWinsSet:
        """Return the set of these bytes. Checking a replica's proof takes as many hashes as it has made tags."""
        context, entries = decoded("set", data, "context", "entries")
        try:
            made = cls(
                entries=tuple((element, tuple(AddTag(*tag) for tag in tags)) for element, tags in entries),
                context=tuple(Seen(*each) for each in context),
            )
        except (TypeError, ValueError) as error:  # not lists of as many things
            if isinstance(error, InvalidArgumentError):
                raise
            raise malformed("set", data) from None
        if made.to_bytes() != data:
            raise malformed("set", data)
        return made


def _made(entries: dict[str, tuple[AddTag, ...]], context: dict[str, Seen]) -> AddWinsSet:
    live = tuple((element, entries[element]) for element in sorted(entries) if entries[element])
    return AddWinsSet(entries=live, context=tuple(context[replica] for replica in sorted(context)))


def _check_order(name: str, values: Sequence[str | AddTag]) -> None:
    # A value that is there twice is no set of as many, and tags and texts each have one order.
    if list(values) != sorted(set(values)):  # all are texts, or all are tags
        raise InvalidArgumentError(name, len(values), "must be sorted, each one once")


# `Chain`, the proof of how many tags a replica has made, which no other replica can give before it does.
#
# A chain is a list of hashes, each that of the next one, computed from a secret at its end. Its first link is part of
# the replica's id, so all who know the id can check any later link by hashing back to it, but cannot compute the link
# after the last one that was published (Lamport, Password authentication with insecure communication, CACM 1981).

#: Maximum number of tags of a replica: bounds what checking a foreign state costs, about 30 ms a replica.
MOST = 2**16
#: Bytes of a link. 16 resist a search for a preimage, and a collision gains nothing.
_BYTES = 16
#: One link of this many is stored, and those between are computed.
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
