"""Encrypted SQLite files: a VFS that encrypts pages on their way to the disk, with `sealing.pages.PageCipher`.

It covers all that SQLite writes: the file, its WAL and its journal. Temporary files are kept in memory. Pages have the
same form in all of them, and the sums in the WAL and the journal are those of what is on the disk: any other SQLite
that finds a WAL after a crash, and has no key, copies valid pages from it, and loses no commit. The sums that SQLite
itself expects, those of the plain pages, are computed when it recovers a WAL or plays back a journal.

Source:
    https://www.sqlite.org/fileformat2.html, sections 3 and 4; wal.c and pager.c in SQLite.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import Any, Literal
from weakref import WeakValueDictionary

import apsw

from recollect.stores.sealing.cipher import NotAuthenticError
from recollect.stores.sealing.pages import HEADER_BYTES, PageCipher
from recollect.stores.sqlite_base.sums import big, summed

#: The size of every page, in bytes.
PAGE = 4096
#: The sizes of the headers of a WAL and of its frames, and the offset of the sums in the latter.
_WAL_HEADER, _FRAME_HEADER, _SUMS = 32, 24, 16
_FRAME = _FRAME_HEADER + PAGE
_NO_SALTS = bytes(8)
#: The beginning of a header in a journal, the offset of what the sums of its pages begin with, and the bytes of a page
#: that are in its sum: every 200th from the end.
_JOURNAL_MAGIC, _SUM_START, _SAMPLES = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 12, slice(PAGE - 200, 0, -200)
_TEMPORARY = (
    apsw.SQLITE_OPEN_TEMP_DB
    | apsw.SQLITE_OPEN_TEMP_JOURNAL
    | apsw.SQLITE_OPEN_TRANSIENT_DB
    | apsw.SQLITE_OPEN_SUBJOURNAL
)

_lock = threading.Lock()
_numbers = count(1)
#: The VFS of each cipher, as long as a connection uses it.
_registered: WeakValueDictionary[PageCipher, SealedVFS] = WeakValueDictionary()


def vfs_of(cipher: PageCipher) -> SealedVFS:
    """Return the VFS for files with a cipher, on top of SQLite's default VFS. It lasts as long as it is used."""
    with _lock:
        found = _registered.get(cipher)
        if found is None:
            found = _registered[cipher] = SealedVFS(cipher)
        return found


def fault(number: int, where: str = "") -> apsw.IOError:
    """Return the error for a page that is not authentic."""
    error: Any = apsw.IOError(f"page {number}{where} is not authentic: its bytes were changed")
    error.extendedresult = apsw.SQLITE_IOERR_CORRUPTFS
    return error  # type: ignore[no-any-return]


class SealedVFS(apsw.VFS):
    """Opens the files of a connection, encrypted with one cipher.

    Attributes:
        name: Its name in SQLite.
    """

    def __init__(self, cipher: PageCipher) -> None:
        self.cipher = cipher
        self.name = f"recollect-sealed-{next(_numbers)}"
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - SQLite's names
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _Database(self.cipher, name, flags)
        if flags[0] & apsw.SQLITE_OPEN_WAL:
            return _Wal(self.cipher, name, flags)
        if flags[0] & apsw.SQLITE_OPEN_MAIN_JOURNAL:
            return _Journal(self.cipher, name, flags)
        if flags[0] & _TEMPORARY:
            flags[1] = flags[0]
            return _InMemory()
        raise apsw.CantOpenError(f"an encrypted store has no file of the kind {flags[0]:#x}")


class _Sealed(apsw.VFSFile):
    def __init__(self, cipher: PageCipher, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._cipher = cipher

    def _open(self, sealed: bytes, number: int, where: str = "") -> bytes:
        try:
            return self._cipher.open(sealed, number)
        except NotAuthenticError:
            raise fault(number, where) from None


class _Database(_Sealed):
    """The file itself."""

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        if offset + amount <= HEADER_BYTES:
            return super().xRead(amount, offset)
        # A part of a page that continues a long value is read without the rest of the page.
        first, begin = divmod(offset, PAGE)
        last = (offset + amount - 1) // PAGE
        raw = super().xRead((last + 1 - first) * PAGE, first * PAGE)
        if amount == PAGE and not begin:
            return self._open(raw, first + 1) if len(raw) == PAGE else raw
        pages = [self._open(raw[at : at + PAGE], first + 1 + at // PAGE) for at in range(0, len(raw) - PAGE + 1, PAGE)]
        return b"".join(pages)[begin : begin + amount]

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if len(data) != PAGE or offset % PAGE:
            raise apsw.IOError(f"{len(data)} bytes at {offset} are no page of {PAGE} bytes")
        super().xWrite(self._cipher.seal(data, offset // PAGE + 1), offset)


class _Wal(_Sealed):
    """The WAL: a header, and frames of a header and a page each.

    SQLite writes the header of a frame and then its page. In a transaction that does not fit into the cache it may also
    write the page of a frame again, without its header. Such frames, and those after them, have no salts and no valid
    sums until the end of the transaction; then SQLite writes their headers again.
    """

    def __init__(self, cipher: PageCipher, name: Any, flags: list[int]) -> None:
        super().__init__(cipher, name, flags)
        self._header = b""  # the last one read
        self._next = (-1, b"")  # a frame whose header was written, and not yet its page: the number, and the header
        self._part = (0, b"")  # of a write that SQLite divides, to sync between: the offset, and the bytes
        self._plain = (-1, (0, 0))  # the frame that was recovered last, and the sums of all plain pages up to it

    def _raw(self, amount: int, offset: int) -> bytes:
        return super().xRead(amount, offset)

    def _order(self, salts: bytes) -> Literal["little", "big"]:
        """Return the order of the bytes of which the sums are computed. It is in the header with these salts."""
        if self._header[16:24] != salts:
            self._header = self._raw(_WAL_HEADER, 0)
        return "big" if self._header[3:4] == b"\x83" else "little"

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        begun, part = self._part
        if part and offset == begun + len(part):
            data, offset = part + data, begun
        self._part = (0, b"")
        number, at = _frame(offset)
        if offset == 0 and len(data) == _WAL_HEADER:
            self._header = b""
            super().xWrite(data, 0)
        elif number >= 0 and at == 0 and len(data) == _FRAME_HEADER:
            self._next = (number, data)
            former = self._raw(_FRAME, offset)
            if len(former) == _FRAME and former[:4] == data[:4] and former[8:16] in (data[8:16], _NO_SALTS):
                self._put(number, data, former[_FRAME_HEADER:])  # perhaps only the header is written again
        elif number >= 0 and at == _FRAME_HEADER and len(data) == PAGE:
            head = self._next[1] if self._next[0] == number else self._raw(_FRAME_HEADER, offset - _FRAME_HEADER)
            self._next = (-1, b"")
            self._put(number, head, self._cipher.seal(data, int.from_bytes(head[:4], "big")))
        elif len(data) < PAGE:
            self._part = (offset, data)
        else:
            raise apsw.IOError(f"{len(data)} bytes at {offset} are no part of a WAL")

    def _put(self, number: int, head: bytes, sealed: bytes) -> None:
        """Write a frame with the sums of what is on the disk."""
        sums = bytes(8)
        if head[8:16] != _NO_SALTS:
            order = self._order(head[8:16])
            sums = big(summed(head[:8] + sealed, *self._sums_before(number), order))
        super().xWrite(b"%b%b%b" % (head[:_SUMS], sums, sealed), _WAL_HEADER + number * _FRAME)

    def _sums_before(self, number: int) -> tuple[int, int]:
        """Return the sums on the disk up to a frame."""
        raw = self._raw(8, _WAL_HEADER + (number - 1) * _FRAME + _SUMS if number else _WAL_HEADER - 8)
        return int.from_bytes(raw[:4], "big"), int.from_bytes(raw[4:], "big")

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        number, at = _frame(offset)
        if number < 0:
            return self._raw(amount, offset)
        if at == _FRAME_HEADER and amount == PAGE:
            raw = self._raw(_FRAME, offset - _FRAME_HEADER)
            if len(raw) < _FRAME:
                return raw[_FRAME_HEADER:]
            return self._open(raw[_FRAME_HEADER:], int.from_bytes(raw[:4], "big"), " in the WAL")
        if at == 0 and amount == _FRAME:
            return self._recovered(number)
        # The sums before the first header that is written again: SQLite continues them, and they end here.
        return self._raw(amount, offset)

    def _recovered(self, number: int) -> bytes:
        """Return a frame with the sums that SQLite expects, if it has the right sums on the disk."""
        raw = self._raw(_FRAME, _WAL_HEADER + number * _FRAME)
        if len(raw) < _FRAME or raw[8:16] != self._raw(8, 16):
            return raw  # it ends before, or has the salts of a former state: SQLite sees that, too
        order, start = self._order(raw[8:16]), self._sums_before(number)
        if raw[_SUMS:_FRAME_HEADER] != big(summed(raw[:8] + raw[_FRAME_HEADER:], *start, order)):
            return raw
        plain = self._open(raw[_FRAME_HEADER:], int.from_bytes(raw[:4], "big"), " in the WAL")
        sums = self._sums_of_plain(number - 1) if number else start
        sums = summed(raw[:8] + plain, *sums, order)
        self._plain = (number, sums)
        return b"%b%b%b" % (raw[:_SUMS], big(sums), plain)

    def _sums_of_plain(self, last: int) -> tuple[int, int]:
        if self._plain[0] != last:
            for number in range(last + 1):
                self._recovered(number)
        return self._plain[1]


def _frame(offset: int) -> tuple[int, int]:
    """Return the number of a frame, from 0, and the offset in it; the number is negative in the header of the WAL."""
    return divmod(offset - _WAL_HEADER, _FRAME)


class _Journal(_Sealed):
    """The journal of a transaction without a WAL: headers, and former pages with their numbers and sums.

    Both begin at known offsets: a header at a multiple of its size, a page 4 bytes after a multiple of 8.
    """

    def __init__(self, cipher: PageCipher, name: Any, flags: list[int]) -> None:
        super().__init__(cipher, name, flags)
        self._start = 0  # what the sums begin with
        self._page = (-1, b"", b"")  # the page at the last offset: as it is, and on the disk

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if data.startswith(_JOURNAL_MAGIC) and offset % 8 == 0:
            if len(data) > _SUM_START:  # else it states only the number of pages
                self._start = int.from_bytes(data[_SUM_START : _SUM_START + 4], "big")
        elif len(data) == PAGE and offset % 8 == 4:
            number = int.from_bytes(super().xRead(4, offset - 4), "big")
            sealed = self._cipher.seal(data, number)
            self._page = (offset, data, sealed)
            data = sealed
        elif len(data) == 4 and offset == self._page[0] + PAGE:
            data = self._sum(self._page[2])
        elif len(data) > HEADER_BYTES and any(data[HEADER_BYTES:]):
            raise apsw.IOError(f"{len(data)} bytes at {offset} are no part of a journal")
        super().xWrite(data, offset)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        raw = super().xRead(amount, offset)
        if raw.startswith(_JOURNAL_MAGIC) and offset % 8 == 0:
            more = raw if len(raw) >= _SUM_START + 4 else super().xRead(_SUM_START + 4, offset)
            self._start = int.from_bytes(more[_SUM_START : _SUM_START + 4], "big")
        elif len(raw) == PAGE and offset % 8 == 4:
            number = int.from_bytes(super().xRead(4, offset - 4), "big")
            try:
                plain = self._cipher.open(raw, number)
            except NotAuthenticError:
                return b""  # the journal ends here: it was not synced
            self._page = (offset, plain, raw)
            return plain
        elif amount == 4 and offset == self._page[0] + PAGE:
            _, plain, sealed = self._page
            return self._sum(plain) if raw == self._sum(sealed) else self._sum(plain, 1)
        return raw

    def _sum(self, page: bytes, more: int = 0) -> bytes:
        """Return the sum of a page in the journal, or one that is wrong."""
        return ((self._start + sum(page[_SAMPLES]) + more) & 0xFFFFFFFF).to_bytes(4, "big")


class _InMemory:
    """A temporary file in memory."""

    def __init__(self) -> None:
        self._data = bytearray()

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._data[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if offset > len(self._data):
            self._data.extend(bytes(offset - len(self._data)))
        self._data[offset : offset + len(data)] = data

    def xTruncate(self, size: int) -> None:  # noqa: N802
        del self._data[size:]

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._data)

    def xClose(self) -> None:  # noqa: N802
        self._data.clear()

    def xSync(self, flags: int) -> None:  # noqa: N802
        pass

    def xLock(self, level: int) -> None:  # noqa: N802
        pass

    def xUnlock(self, level: int) -> None:  # noqa: N802
        pass

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return 0

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0
