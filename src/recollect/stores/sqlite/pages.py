"""An SQLite file as its bytes: pages, and the rows that stand in them, without SQLite and without trust.

SQLite gives up a table where one page of it is hurt. Here every page is looked at by itself, so that what stands in
the others can be saved, and what stood in a hurt one can be named. Nothing that is read here is known to be right:
whoever uses it compares hashes. Source: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal, NamedTuple

from recollect.stores.sqlite.checksums import BYTES, checksum, summed

Value = int | float | str | bytes | None
#: The kinds of pages of a b-tree, by their first byte.
INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
_KINDS = (INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF)
_INTS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
#: No row of ours is larger; a length beyond it is damage.
_MOST_BYTES = 2**30


class Row(NamedTuple):
    """A row as it stands in a page: of an index, or a table without row numbers, `number` is None."""

    number: int | None
    values: tuple[Value, ...]


class Pages:
    """The pages of a file.

    data  the file's bytes
    log   of the write-ahead log beside it, from which newer pages are taken: those of whole commits
    """

    def __init__(self, data: bytes, log: bytes = b"") -> None:
        self._data = data
        self._newer: dict[int, bytes] = {}
        size = int.from_bytes(data[16:18], "big")
        size = 65536 if size == 1 else size
        # A header that is hurt says nothing; every file of ours has pages of this size.
        self.size = size if size >= 512 and not size & (size - 1) else 4096
        reserved = data[20] if len(data) > 20 and data[20] in (0, BYTES) else BYTES
        self.checked = reserved == BYTES
        self._usable = self.size - reserved
        self.count = -(-len(data) // self.size)
        if log:
            self._read_log(log)
        self.count = max(self.count, *self._newer) if self._newer else self.count

    @property
    def in_wal(self) -> frozenset[int]:
        """The numbers of the pages that a whole commit of the log has."""
        return frozenset(self._newer)

    def page(self, number: int) -> bytes:
        """The bytes of a page, from 1; fewer where the file ends in it, none where it ends before it."""
        newer = self._newer.get(number)
        return self._data[(number - 1) * self.size : number * self.size] if newer is None else newer

    def _read_log(self, log: bytes) -> None:
        """Take the pages of every commit that is whole, up to the first frame that is not."""
        order: Literal["little", "big"] = "big" if log[3:4] == b"\x83" else "little"
        if len(log) < 32 or log[:3] != b"\x37\x7f\x06" or int.from_bytes(log[8:12], "big") != self.size:
            return
        sums = summed(log[:24], 0, 0, order)
        if log[24:32] != _big(sums):
            return
        fresh: dict[int, bytes] = {}
        for at in range(32, len(log) - self.size - 23, self.size + 24):
            head, page = log[at : at + 24], log[at + 24 : at + 24 + self.size]
            sums = summed(page, *summed(head[:8], *sums, order), order)
            if head[8:16] != log[16:24] or head[16:24] != _big(sums):
                return
            fresh[int.from_bytes(head[:4], "big")] = page
            if head[4:8] != b"\0\0\0\0":  # the last of a commit
                self._newer.update(fresh)
                fresh.clear()

    def whole(self, number: int) -> bool:
        """Whether a page is all there and has its checksum, where pages have them. (The log has its own.)"""
        if number in self._newer:
            return True
        page = self.page(number)
        return len(page) == self.size and (not self.checked or checksum(page[:-BYTES]) == page[-BYTES:])

    def kind(self, number: int) -> int:
        """The kind of a page of a b-tree; 0 for any other."""
        page = self.page(number)
        at = self._start(number)
        return page[at] if len(page) == self.size and page[at] in _KINDS else 0

    @staticmethod
    def _start(number: int) -> int:
        return 100 if number == 1 else 0

    def children(self, number: int) -> Iterator[int]:
        """The pages below a page of a b-tree."""
        if self.kind(number) not in (INDEX_INTERIOR, TABLE_INTERIOR):
            return
        page = self.page(number)
        for cell in self._cells(number):
            yield int.from_bytes(page[cell : cell + 4], "big")
        at = self._start(number)
        yield int.from_bytes(page[at + 8 : at + 12], "big")

    def below(self, root: int) -> Iterator[int]:
        """A page and all that can be reached from it, each once."""
        seen: set[int] = set()
        ahead = [root]
        while ahead:
            number = ahead.pop()
            if not 0 < number <= self.count or number in seen:
                continue
            seen.add(number)
            yield number
            ahead.extend(self.children(number))

    def chain(self, number: int) -> Iterator[int]:
        """The pages of an overflow, from the first on."""
        seen: set[int] = set()
        while 0 < number <= self.count and number not in seen:
            seen.add(number)
            yield number
            number = int.from_bytes(self.page(number)[:4], "big")

    def free(self) -> set[int]:
        """The pages on the list of free ones, as far as it can be followed."""
        out: set[int] = set()
        for trunk in self.chain(int.from_bytes(self.page(1)[32:36], "big")):
            out.add(trunk)
            page = self.page(trunk)
            count = min(int.from_bytes(page[4:8], "big"), self._usable // 4 - 2)
            out.update(int.from_bytes(page[at : at + 4], "big") for at in range(8, 8 + 4 * count, 4))
        return out

    def rows(self, number: int) -> Iterator[Row]:
        """The rows that stand in a page and can be read. Those that go on in other pages are put together."""
        kind = self.kind(number)
        if kind in (0, TABLE_INTERIOR):
            return
        for cell in self._cells(number):
            try:
                yield self._row(self.page(number), cell, kind)
            except (ValueError, IndexError, struct.error):
                continue

    def overflows(self, number: int) -> Iterator[int]:
        """The first pages of the overflows of a page's rows."""
        kind = self.kind(number)
        if kind in (0, TABLE_INTERIOR):
            return
        page = self.page(number)
        for cell in self._cells(number):
            try:
                _, _, _, over = self._payload_place(page, cell, kind)
            except IndexError:
                continue
            if over:
                yield over

    def _cells(self, number: int) -> list[int]:
        """Where the cells of a page begin."""
        page, at = self.page(number), self._start(number)
        count = int.from_bytes(page[at + 3 : at + 5], "big")
        begin = at + (12 if page[at] in (INDEX_INTERIOR, TABLE_INTERIOR) else 8)
        count = min(count, (self._usable - begin) // 2)
        places = (int.from_bytes(page[here : here + 2], "big") for here in range(begin, begin + 2 * count, 2))
        return [place for place in places if begin <= place < self._usable]

    def _payload_place(self, page: bytes, cell: int, kind: int) -> tuple[int, int, int, int]:
        """Of a cell: its row's number (0: none), where its payload begins, how long it is, and the page it goes on in.

        The payload's own bytes are those up to where the number of the next page stands.
        """
        if kind == INDEX_INTERIOR:
            cell += 4
        length, at = _varint(page, cell)
        number = 0
        if kind == TABLE_LEAF:
            number, at = _varint(page, at)
        local = self._local(length, kind)
        over = int.from_bytes(page[at + local : at + local + 4], "big") if local < length else 0
        return number, at, length, over

    def _local(self, length: int, kind: int) -> int:
        """How many bytes of a payload stand in the page itself."""
        usable = self._usable
        most = usable - 35 if kind == TABLE_LEAF else (usable - 12) * 64 // 255 - 23
        if length <= most:
            return length
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        return local if local <= most else least

    def _row(self, page: bytes, cell: int, kind: int) -> Row:
        number, at, length, over = self._payload_place(page, cell, kind)
        if length > _MOST_BYTES:
            raise ValueError("a row is too long")
        local = self._local(length, kind)
        payload = page[at : at + local]
        if local < length:
            parts, missing = [payload], length - local
            for each in self.chain(over):
                parts.append(self.page(each)[4 : 4 + min(missing, self._usable - 4)])
                missing -= len(parts[-1])
                if missing <= 0:
                    break
            payload = b"".join(parts)
        if len(payload) != length:
            raise ValueError("a row is cut off")
        return Row(number if kind == TABLE_LEAF else None, tuple(_values(payload)))


def _big(sums: tuple[int, int]) -> bytes:
    return sums[0].to_bytes(4, "big") + sums[1].to_bytes(4, "big")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """SQLite's variable-length integer, and where it ends."""
    number = 0
    for place in range(9):
        byte = data[at + place]
        if place == 8:
            number = number << 8 | byte
        else:
            number = number << 7 | byte & 0x7F
            if byte < 0x80:
                return number, at + place + 1
    return (number - 2**64 if number >= 2**63 else number), at + 9


def _values(payload: bytes) -> Iterator[Value]:
    """The columns of a record in SQLite's format. Raises: ValueError, IndexError, struct.error."""
    end, at = _varint(payload, 0)
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    if at != end:
        raise ValueError("the head of a row is cut off")
    for kind in kinds:
        size = _INTS.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else 0)
        raw = payload[at : at + size]
        if len(raw) != size or kind in (10, 11) or kind < 0:
            raise ValueError("a column is cut off")
        at += size
        if kind == 0:
            yield None
        elif kind in _INTS:
            yield int.from_bytes(raw, "big", signed=True)
        elif kind == 7:
            yield float(struct.unpack(">d", raw)[0])
        elif kind in (8, 9):
            yield kind - 8
        else:
            yield raw.decode("utf-8") if kind % 2 else raw
    if at != len(payload):
        raise ValueError("a row is too long")
