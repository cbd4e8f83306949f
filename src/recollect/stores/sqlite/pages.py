"""A reader of SQLite files that works page by page, without SQLite, for corrupt files.

SQLite gives up a table if one of its pages is corrupt. Here every page is read by itself, so that the rows in the
others can be saved and the corrupt page can be reported. Nothing that is read here is known to be correct: the caller
must verify hashes.

Source:
    https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal, NamedTuple

from recollect.stores.sealing.cipher import NotAuthenticError
from recollect.stores.sealing.pages import BYTES as ENCRYPTED_BYTES
from recollect.stores.sealing.pages import PageCipher
from recollect.stores.sqlite_base.checksums import BYTES, checksum, nearly_matches
from recollect.stores.sqlite_base.descriptors import FileBytes
from recollect.stores.sqlite_base.sums import big, summed

Value = int | float | str | bytes | None
#: The kinds of b-tree pages, by their first byte.
INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
_KINDS = (INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF)
_INTS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
#: No row of a store is larger: a greater length is corrupt.
_MAX_ROW_BYTES = 2**30


class Row(NamedTuple):
    """A row of a table or an index.

    Attributes:
        number: Its rowid; None in an index or a table without rowids.
        values: Its columns.
    """

    number: int | None
    values: tuple[Value, ...]


class FilePages:
    """The pages of a file.

    Args:
        data: The file's bytes, or what reads its parts.
        wal: The bytes of its WAL. The pages of complete commits in it replace those of the file.
        cipher: The cipher of an encrypted file. A page that is not authentic is read as an empty one.

    Attributes:
        size: The size of a page in bytes.
        count: The number of pages.
        has_checksums: Whether pages reserve space for checksums.
    """

    def __init__(self, data: bytes | FileBytes, wal: bytes = b"", cipher: PageCipher | None = None) -> None:
        self._data = data
        self._cipher = cipher
        self._open: dict[int, bytes] = {}  # the decrypted pages of an encrypted file
        self._newer: dict[int, bytes] = {}
        header = data[:100]
        size = int.from_bytes(header[16:18], "big")
        size = 65536 if size == 1 else size
        # If the header is corrupt: every store has pages of this size.
        self.size = size if size >= 512 and not size & (size - 1) else 4096
        reserved = header[20] if len(header) > 20 and header[20] in (0, BYTES) else BYTES
        reserved = reserved if cipher is None else ENCRYPTED_BYTES
        self.has_checksums = reserved == BYTES
        self._usable = self.size - reserved
        self.count = -(-len(data) // self.size)
        if wal:
            self._read_wal(wal)
        self.count = max(self.count, *self._newer) if self._newer else self.count

    @property
    def in_wal(self) -> frozenset[int]:
        """The numbers of the pages that complete commits in the WAL contain."""
        return frozenset(self._newer)

    def page(self, number: int) -> bytes:
        """Return the bytes of a page, counted from 1: fewer if the file ends in it, none if it ends before it."""
        found = self._open.get(number)
        if found is None:
            newer = self._newer.get(number)
            found = self.in_file(number) if newer is None else newer
            if self._cipher is not None:
                found = self._open[number] = self._opened(found, number)
        return found

    def _opened(self, sealed: bytes, number: int) -> bytes:
        assert self._cipher is not None
        try:
            return self._cipher.open(sealed, number)
        except NotAuthenticError:
            return b""

    def in_file(self, number: int) -> bytes:
        """Return the bytes of a page in the file, whatever the WAL has of it: encrypted, if the file is."""
        return self._data[(number - 1) * self.size : number * self.size]

    def _read_wal(self, wal: bytes) -> None:
        """Take the pages of every complete commit, up to the first invalid frame."""
        order: Literal["little", "big"] = "big" if wal[3:4] == b"\x83" else "little"
        if len(wal) < 32 or wal[:3] != b"\x37\x7f\x06" or int.from_bytes(wal[8:12], "big") != self.size:
            return
        sums = summed(wal[:24], 0, 0, order)
        if wal[24:32] != big(sums):
            return
        uncommitted: dict[int, bytes] = {}
        for at in range(32, len(wal) - self.size - 23, self.size + 24):
            header, page = wal[at : at + 24], wal[at + 24 : at + 24 + self.size]
            sums = summed(page, *summed(header[:8], *sums, order), order)
            if header[8:16] != wal[16:24] or header[16:24] != big(sums):
                return
            uncommitted[int.from_bytes(header[:4], "big")] = page
            if header[4:8] != b"\0\0\0\0":  # the last frame of a commit
                self._newer.update(uncommitted)
                uncommitted.clear()

    def intact(self, number: int) -> bool:
        """Return whether a page is complete and matches its checksum, if it has one. (WAL frames have their own.)

        Of an encrypted file: whether it is authentic.
        """
        page = self.page(number)
        if number in self._newer:
            return len(page) == self.size
        return len(page) == self.size and (not self.has_checksums or checksum(page[:-BYTES]) == page[-BYTES:])

    def is_damaged(self, number: int) -> bool:
        """Return whether a page is incomplete, or differs from one with its checksum by a byte or two.

        A page that has another checksum altogether, or none, may have been written by another SQLite.
        """
        page = self.page(number)
        return len(page) != self.size or (self._cipher is None and not self.intact(number) and nearly_matches(page))

    def kind(self, number: int) -> int:
        """Return the kind of a b-tree page; 0 for any other page."""
        page = self.page(number)
        at = self._start(number)
        return page[at] if len(page) == self.size and page[at] in _KINDS else 0

    @staticmethod
    def _start(number: int) -> int:
        return 100 if number == 1 else 0

    def children(self, number: int) -> Iterator[int]:
        """Yield the numbers of the pages directly below a b-tree page."""
        if self.kind(number) not in (INDEX_INTERIOR, TABLE_INTERIOR):
            return
        page = self.page(number)
        for cell in self._cells(number):
            yield int.from_bytes(page[cell : cell + 4], "big")
        at = self._start(number)
        yield int.from_bytes(page[at + 8 : at + 12], "big")

    def below(self, root: int) -> Iterator[int]:
        """Yield a page and all pages that can be reached from it, each once."""
        seen: set[int] = set()
        pending = [root]
        while pending:
            number = pending.pop()
            if not 0 < number <= self.count or number in seen:
                continue
            seen.add(number)
            yield number
            pending.extend(self.children(number))

    def trees(self) -> dict[str, int]:
        """Return the root page of each table and index by name, as far as the schema can be read."""
        out: dict[str, int] = {}
        for page in self.below(1):
            for row in self.rows(page):
                match row.values:
                    case (("table" | "index"), str(name), str(), int(root), *_):
                        out[name] = root
        return out

    def chain(self, number: int) -> Iterator[int]:
        """Yield the pages of an overflow chain, beginning with `number`."""
        seen: set[int] = set()
        while 0 < number <= self.count and number not in seen:
            seen.add(number)
            yield number
            number = int.from_bytes(self.page(number)[:4], "big")

    def free(self) -> set[int]:
        """Return the pages of the freelist, as far as it can be followed."""
        out: set[int] = set()
        for trunk in self.chain(int.from_bytes(self.page(1)[32:36], "big")):
            out.add(trunk)
            page = self.page(trunk)
            count = min(int.from_bytes(page[4:8], "big"), self._usable // 4 - 2)
            out.update(int.from_bytes(page[at : at + 4], "big") for at in range(8, 8 + 4 * count, 4))
        return out

    def rows(self, number: int) -> Iterator[Row]:
        """Yield the rows of a page that can be read, including their overflow pages."""
        kind = self.kind(number)
        if kind in (0, TABLE_INTERIOR):
            return
        for cell in self._cells(number):
            try:
                yield self._row(self.page(number), cell, kind)
            except (ValueError, IndexError, struct.error):
                continue

    def overflows(self, number: int) -> Iterator[int]:
        """Yield the first overflow page of each row of a page that has one."""
        kind = self.kind(number)
        if kind in (0, TABLE_INTERIOR):
            return
        page = self.page(number)
        for cell in self._cells(number):
            try:
                _, _, _, overflow = self._payload(page, cell, kind)
            except IndexError:
                continue
            if overflow:
                yield overflow

    def _cells(self, number: int) -> list[int]:
        """Return the offsets of the cells of a page."""
        page, at = self.page(number), self._start(number)
        count = int.from_bytes(page[at + 3 : at + 5], "big")
        begin = at + (12 if page[at] in (INDEX_INTERIOR, TABLE_INTERIOR) else 8)
        count = min(count, (self._usable - begin) // 2)
        offsets = (int.from_bytes(page[here : here + 2], "big") for here in range(begin, begin + 2 * count, 2))
        return [offset for offset in offsets if begin <= offset < self._usable]

    def _payload(self, page: bytes, cell: int, kind: int) -> tuple[int, int, int, int]:
        """Return a cell's rowid (0 if it has none), its payload's offset and length, and its first overflow page or 0.

        If there is an overflow, the payload's bytes in this page end before the number of the overflow page.
        """
        if kind == INDEX_INTERIOR:
            cell += 4
        length, at = _varint(page, cell)
        number = 0
        if kind == TABLE_LEAF:
            number, at = _varint(page, at)
        local = self._local(length, kind)
        overflow = int.from_bytes(page[at + local : at + local + 4], "big") if local < length else 0
        return number, at, length, overflow

    def _local(self, length: int, kind: int) -> int:
        """Return the number of bytes of a payload that are in the page itself."""
        usable = self._usable
        maximum = usable - 35 if kind == TABLE_LEAF else (usable - 12) * 64 // 255 - 23
        if length <= maximum:
            return length
        minimum = (usable - 12) * 32 // 255 - 23
        local = minimum + (length - minimum) % (usable - 4)
        return local if local <= maximum else minimum

    def _row(self, page: bytes, cell: int, kind: int) -> Row:
        number, at, length, overflow = self._payload(page, cell, kind)
        if length > _MAX_ROW_BYTES:
            raise ValueError("a row is too long")
        local = self._local(length, kind)
        payload = page[at : at + local]
        if local < length:
            parts, missing = [payload], length - local
            for each in self.chain(overflow):
                parts.append(self.page(each)[4 : 4 + min(missing, self._usable - 4)])
                missing -= len(parts[-1])
                if missing <= 0:
                    break
            payload = b"".join(parts)
        if len(payload) != length:
            raise ValueError("a row is cut off")
        return Row(number if kind == TABLE_LEAF else None, tuple(_values(payload)))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return SQLite's variable-length integer at an offset, and the offset after it."""
    number = 0
    for index in range(9):
        byte = data[at + index]
        if index == 8:
            number = number << 8 | byte
        else:
            number = number << 7 | byte & 0x7F
            if byte < 0x80:
                return number, at + index + 1
    return (number - 2**64 if number >= 2**63 else number), at + 9


def _values(payload: bytes) -> Iterator[Value]:
    """Yield the columns of a row in SQLite's record format. Raise ValueError, IndexError or struct.error if invalid."""
    end, at = _varint(payload, 0)
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    if at != end:
        raise ValueError("the header of a row is cut off")
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
