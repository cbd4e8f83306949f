"""`Kept` and `AwaitedKept`: a replica's copy of a state, and the same state under a key that replicas share.

A change is made in the local copy once, and then published: read the key, merge, `cas`, and again if another replica
was faster. So a change is never made twice, and what was published is never taken back, whatever the race. If
publishing fails, or the entry is evicted, the copy has the change, and the next call publishes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

from recollect.errors import ConflictError, InvalidArgumentError
from recollect.facets.keyed.replicated.state import State, checked_number
from recollect.facets.keyed.values import checked_key

S = TypeVar("S", bound=State)
#: What happens to bytes under the key that are refused, being malformed or forged: the call raises and nothing is
#: changed, or a change writes the local copy in their place.
Refused: TypeAlias = Literal["raise", "replace"]
REFUSED: tuple[Refused, ...] = get_args(Refused)
#: Default number of times that publishing is tried.
TRIES = 100


class KeyedCalls(Protocol):
    """The calls of a keyed memory that are needed, such as those of a `Shelf`."""

    def read(self, key: str) -> bytes | None: ...
    def write(self, key: str, value: bytes) -> None: ...
    def cas(self, key: str, expected: bytes | None, new: bytes) -> bool: ...


class AwaitedKeyed(Protocol):
    """The same, awaited, such as those of a plugin of a swarm. A `cas` on an absent key may be refused always."""

    async def read(self, key: str) -> bytes | None: ...
    async def write(self, key: str, value: bytes) -> None: ...
    async def cas(self, key: str, expected: bytes, new: bytes) -> bool: ...


class _Copy(Generic[S]):
    """The local copy. What is read is merged into it."""

    def __init__(
        self, key: str, state: S, *, own: str | None = None, refused: Refused = "raise", tries: int = TRIES
    ) -> None:
        self.key = checked_key(key)
        if isinstance(state, type) or not hasattr(state, "to_bytes"):
            raise InvalidArgumentError("state", state, "must be a state, such as Counter()")
        self._state = state
        self._own = own
        if refused not in REFUSED:
            raise InvalidArgumentError("refused", refused, f"must be one of {', '.join(REFUSED)}")
        self._replaces = refused == "replace"
        self._tries = checked_number("tries", tries, 1)
        # A replica that starts without a copy cannot tell its own past from a forged one.
        self._knows = state != type(state)()

    @property
    def state(self) -> S:
        """The local copy."""
        return self._state

    def merge(self, other: S) -> S:
        """Merge a state that came another way, such as in a message, into the local copy only.

        Raises:
            InvalidArgumentError: It is forged. Nothing was changed.
        """
        self._state = self._state.merge(other, self._own if self._knows else None)
        self._knows = True
        return self._state

    def _learn(self, data: bytes | None, *, replaces: bool) -> None:
        if data is None:
            return
        try:
            self.merge(type(self._state).from_bytes(data))
        except InvalidArgumentError:
            if not replaces:
                raise

    def _change(self, change: Callable[[S], S]) -> None:
        changed = change(self._state)
        if type(changed) is not type(self._state):
            raise InvalidArgumentError("change", changed, f"must return a {type(self._state).__name__}")
        self._state = changed
        self._knows = True

    def _lost(self) -> ConflictError:
        return ConflictError(f"the value of {self.key!r}", "unchanged while it was merged", "changed each time")


class Kept(_Copy[S]):
    """A state under a key of a keyed memory. Not thread-safe: each thread is a replica of its own.

        votes = Kept(shelf, "votes", Counter())
        votes.change(lambda counter: counter.add(1, replica="alice"))

    Args:
        state: What this replica knows: its last copy, or an empty state, such as `Counter()`.
        own: The local replica: a state is refused that claims more of it than the copy knows.
        refused: What happens to bytes under the key that are refused.
        tries: Maximum number of times that publishing is tried.
    """

    def __init__(
        self,
        memory: KeyedCalls,
        key: str,
        state: S,
        *,
        own: str | None = None,
        refused: Refused = "raise",
        tries: int = TRIES,
    ) -> None:
        super().__init__(key, state, own=own, refused=refused, tries=tries)
        self._memory = memory

    def refresh(self) -> S:
        """Merge what is under the key into the local copy, and return it.

        Raises:
            InvalidArgumentError: What is there is malformed or forged. Nothing was changed.
        """
        self._learn(self._memory.read(self.key), replaces=False)
        return self._state

    def change(self, change: Callable[[S], S]) -> S:
        """Change the local copy after a refresh, publish it, and return it.

        Args:
            change: Returns the changed state. It is called once.

        Raises:
            InvalidArgumentError: What is under the key is malformed or forged, unless that is replaced. It was not
                changed.
            ConflictError: Others were faster each time. The copy has the change, and `publish` tries again.
        """
        self._learn(self._memory.read(self.key), replaces=self._replaces)
        self._change(change)
        return self.publish()

    def publish(self) -> S:
        """Write the local copy, merged with what is under the key, and return it."""
        for _ in range(self._tries):
            found = self._memory.read(self.key)
            self._learn(found, replaces=self._replaces)
            new = self._state.to_bytes()
            if found == new or self._memory.cas(self.key, found, new):
                return self._state
            if found is None and self._memory.read(self.key) is None:
                # Some stores refuse every cas on an absent key. A replica that is overwritten has its copy.
                self._memory.write(self.key, new)
        raise self._lost()


class AwaitedKept(_Copy[S]):
    """The same on a memory whose calls are awaited, such as `recollect.compat.nest.SemanticMemory`. See `Kept`."""

    def __init__(
        self,
        memory: AwaitedKeyed,
        key: str,
        state: S,
        *,
        own: str | None = None,
        refused: Refused = "raise",
        tries: int = TRIES,
    ) -> None:
        super().__init__(key, state, own=own, refused=refused, tries=tries)
        self._memory = memory

    async def refresh(self) -> S:
        """See `Kept.refresh`."""
        self._learn(await self._memory.read(self.key), replaces=False)
        return self._state

    async def change(self, change: Callable[[S], S]) -> S:
        """See `Kept.change`."""
        self._learn(await self._memory.read(self.key), replaces=self._replaces)
        self._change(change)
        return await self.publish()

    async def publish(self) -> S:
        """See `Kept.publish`."""
        for _ in range(self._tries):
            found = await self._memory.read(self.key)
            self._learn(found, replaces=self._replaces)
            new = self._state.to_bytes()
            # The protocol of plugins has bytes as what is expected; stores that can create by cas take None.
            if found == new or await self._memory.cas(self.key, found, new):  # type: ignore[arg-type]
                return self._state
            if found is None and await self._memory.read(self.key) is None:
                await self._memory.write(self.key, new)
        raise self._lost()
