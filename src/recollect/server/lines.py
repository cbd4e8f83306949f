"""Lines of a byte stream, with bounded memory: of a line that is too long only its length is known."""

from __future__ import annotations

from collections.abc import Iterator


class LineSplitter:
    """Splits a stream into lines.

    Args:
        longest: Maximum length of a line in bytes, without its end.

    Attributes:
        size: Number of bytes of the unfinished line that are in memory.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._skipping = False
        self.size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Yield the lines that a chunk completes, without their ends; None for one that is too long.

        >>> list(LineSplitter(5).feed(b"one" + bytes([10]) + b"too long" + bytes([13, 10])))
        [b'one', None]
        """
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            line = None if self._skipping or self.size + len(part) > self._longest + 1 else self._joined(part)
            self._parts, self.size, self._skipping = [], 0, False
            yield line if line is None or len(line) <= self._longest else None
        if self._skipping or not rest:
            return
        self.size += len(rest)
        if self.size > self._longest + 1:
            self.skip()
        else:
            self._parts.append(rest)

    def skip(self) -> None:
        """Drop what there is of the unfinished line, and the rest of it."""
        self._parts, self.size, self._skipping = [], 0, True

    def _joined(self, part: bytes) -> bytes:
        return b"".join((*self._parts, part)).removesuffix(b"\r")
