"""Encrypted SQLite files: a VFS that encrypts pages on their way to the disk, with `sealing.pages.PageCipher`.

It covers all that SQLite writes: the file, its WAL and its journal. Connections keep temporary data in memory
(`checksums.connect`), so the VFS opens no other file. Pages have the same form in all of them, and the sums in the WAL
and the journal are those of what is on the disk: any other SQLite that finds a WAL after a crash, and has no key,
copies valid pages from it, and loses no commit. The sums that SQLite itself expects, those of the plain pages, are
computed when it recovers a WAL or plays back a journal.

Source:
    https://www.sqlite.org/fileformat2.html, sections 3 and 4; wal.c and pager.c in SQLite.
"""

from __future__ import annotations

import logging
import os
import threading
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import apsw

from recollect.stores.sealing.cipher import NotAuthenticError
from recollect.stores.sealing.pages import HEADER_BYTES, PageCipher
from recollect.stores.sqlite_base.sums import of_frame

#: The size of every page, in bytes.
PAGE = 4096
#: The sizes of the headers of a WAL and of its frames, and the offset of the sums in the latter.
_WAL_HEADER, _FRAME_HEADER, _SUMS = 32, 24, 16
_FRAME = _FRAME_HEADER + PAGE
_NO_SALTS = _NO_SUMS = bytes(8)
_IN_WAL = " in the WAL"
#: The bit with which a file says that parts of pages can be read.
_SUBPAGE_READ = getattr(apsw, "SQLITE_IOCAP_SUBPAGE_READ", 0)
#: The beginning of a header in a journal, the offset of what the sums of its pages begin with, and the bytes of a page
#: that are in its sum: every 200th from the end.
_JOURNAL_MAGIC, _SUM_START, _SAMPLES = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 12, slice(PAGE - 200, 0, -200)

_log = logging.getLogger("recollect")
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


def _fault(number: int, where: str = "") -> apsw.IOError:
    """Return the error for a page that is not authentic."""
    why = ", or its key file is that of another store" if number == 1 else ""
    error: Any = apsw.IOError(f"page {number}{where} is not authentic: its bytes were changed{why}")
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

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        try:
            return super().xFullPathname(name)
        except apsw.Error:  # there is a link: SQLite says so by its result code, which apsw takes for an error
            return os.path.realpath(name)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - SQLite's names
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _Database(self.cipher, name, flags)
        if flags[0] & apsw.SQLITE_OPEN_WAL:
            return _Wal(self.cipher, name, flags)
        if flags[0] & apsw.SQLITE_OPEN_MAIN_JOURNAL:
            return _Journal(self.cipher, name, flags)
        raise apsw.CantOpenError(f"an encrypted store has no file of the kind {flags[0]:#x}")


class _Sealed(apsw.VFSFile):
    def __init__(self, cipher: PageCipher, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._cipher = cipher

    def excepthook(self, *raised: Any) -> bool:
        """Note an error that SQLite does not report, such as one in the middle of closing a file."""
        _log.debug("%s", raised[1])
        return True

    def _open(self, sealed: bytes, number: int, where: str = "") -> bytes:
        try:
            return self._cipher.open(sealed, number)
        except NotAuthenticError:
            raise _fault(number, where) from None


class _Database(_Sealed):
    """The file itself."""

    def __init__(self, cipher: PageCipher, name: Any, flags: list[int]) -> None:
        super().__init__(cipher, name, flags)
        self._raw = super().xRead

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        if amount == PAGE and not offset % PAGE:
            raw = self._raw(PAGE, offset)
            return self._open(raw, offset // PAGE + 1) if len(raw) == PAGE else raw
        if offset + amount <= HEADER_BYTES:
            return self._raw(amount, offset)
        # A part of a page that continues a long value is read without the rest of the page.
        first, begin = divmod(offset, PAGE)
        last = (offset + amount - 1) // PAGE
        raw = self._raw((last + 1 - first) * PAGE, first * PAGE)
        pages = [self._open(raw[at : at + PAGE], first + 1 + at // PAGE) for at in range(0, len(raw) - PAGE + 1, PAGE)]
        return b"".join(pages)[begin : begin + amount]

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        # A part of a page would be decrypted again each time; a page is in SQLite's cache.
        return super().xDeviceCharacteristics() & ~_SUBPAGE_READ

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
        self._raw = super().xRead
        self._put = super().xWrite
        self._header = b""  # the last one read
        self._next = (-1, b"")  # a frame whose header was written, and not its page: the offset of that, and the header
        self._rewrites = False  # whether a page was written again, so that headers will be
        self._read = -1  # the offset of the frame that was read last, if nothing was written since
        self._part = (0, b"")  # of a write that SQLite divides, to sync between: the offset, and the bytes
        self._plain = (-1, b"")  # the frame that was recovered last, and the sums of all plain pages up to it

    def _highest_first(self, salts: bytes) -> bool:
        """Return whether the sums are those of words with the highest byte first, as the header of these salts says."""
        if self._header[16:24] != salts:
            self._header = self._raw(_WAL_HEADER, 0)
        return self._header[3:4] == b"\x83"

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        begun, part = self._part
        if part:
            self._part = (0, b"")
            if offset == begun + len(part):
                data, offset = part + data, begun
        size, at = len(data), (offset - _WAL_HEADER) % _FRAME
        read, self._read = self._read, -1
        if size == PAGE and at == _FRAME_HEADER:
            expected, head = self._next
            if expected != offset:
                head, self._rewrites = self._raw(_FRAME_HEADER, offset - _FRAME_HEADER), True
            self._next = (-1, b"")
            self._put_frame(offset - _FRAME_HEADER, head, self._cipher.seal(data, int.from_bytes(head[:4], "big")))
        elif size == _FRAME_HEADER and not at and offset:
            self._next = (offset + _FRAME_HEADER, data)
            if self._rewrites and read == offset:  # SQLite reads a frame before it writes its header again
                self._put_header(offset, data)
        elif not offset and size == _WAL_HEADER:
            self._header, self._rewrites = b"", False
            self._put(data, 0)
        elif size < PAGE:
            self._part = (offset, data)
        else:
            raise apsw.IOError(f"{size} bytes at {offset} are no part of a WAL")

    def _put_header(self, offset: int, head: bytes) -> None:
        """Write a frame with the page that is there already, if it is that of the header."""
        former = self._raw(_FRAME, offset)
        if len(former) == _FRAME and former[:4] == head[:4] and former[8:16] in (head[8:16], _NO_SALTS):
            self._put_frame(offset, head, former[_FRAME_HEADER:])

    def _put_frame(self, offset: int, head: bytes, sealed: bytes) -> None:
        """Write a frame with the sums of what is on the disk."""
        salts, sums = head[8:_SUMS], _NO_SUMS
        if salts != _NO_SALTS:
            before = self._raw(8, offset - _FRAME + _SUMS if offset > _WAL_HEADER else _WAL_HEADER - 8)
            sums = of_frame(head, sealed, before, highest_first=self._highest_first(salts))
        self._put(b"".join((head[:_SUMS], sums, sealed)), offset)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        number, at = divmod(offset - _WAL_HEADER, _FRAME)
        if at == _FRAME_HEADER and amount == PAGE:
            raw = self._raw(_FRAME, offset - _FRAME_HEADER)
            sealed = raw[_FRAME_HEADER:]
            return self._open(sealed, int.from_bytes(raw[:4], "big"), _IN_WAL) if len(sealed) == PAGE else sealed
        if not at and amount == _FRAME:
            self._read = offset
            return self._recovered(number)
        if not offset and amount == _WAL_HEADER:
            self._rewrites = False  # a recovery begins
        # The header of the WAL; or the sums before the first header that is written again, which SQLite continues. What
        # it computes from them is not written.
        return self._raw(amount, offset)

    def _recovered(self, number: int) -> bytes:
        """Return a frame with the sums that SQLite expects, if it has the right sums on the disk."""
        begin = _WAL_HEADER + number * _FRAME
        raw = self._raw(_FRAME, begin)
        if len(raw) < _FRAME or raw[8:_SUMS] != self._raw(8, 16):
            return raw  # it ends before, or has the salts of a former state: SQLite sees that, too
        before = self._raw(8, begin - _FRAME + _SUMS if number else _WAL_HEADER - 8)
        first, sealed = self._highest_first(raw[8:_SUMS]), raw[_FRAME_HEADER:]
        if raw[_SUMS:_FRAME_HEADER] != of_frame(raw, sealed, before, highest_first=first):
            return raw
        plain = self._open(sealed, int.from_bytes(raw[:4], "big"), _IN_WAL)
        sums = of_frame(raw, plain, self._sums_of_plain(number - 1) if number else before, highest_first=first)
        self._plain = (number, sums)
        return b"".join((raw[:_SUMS], sums, plain))

    def _sums_of_plain(self, last: int) -> bytes:
        if self._plain[0] != last:
            for number in range(last + 1):
                self._recovered(number)
        return self._plain[1]


class _Journal(_Sealed):
    """The journal of a transaction without a WAL: headers, and former pages with their numbers and sums.

    Both begin at known offsets: a header at a multiple of its size, a page 4 bytes after a multiple of 8.
    """

    def __init__(self, cipher: PageCipher, name: Any, flags: list[int]) -> None:
        super().__init__(cipher, name, flags)
        self._starts: dict[int, int] = {}  # what the sums begin with, by the offset of the header that says so
        self._page = (-1, b"", b"")  # the page at the last offset: as it is, and on the disk

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if len(data) > _SUM_START and offset % 8 == 0 and not any(data[HEADER_BYTES:]):
            # A header, whose magic comes later. Those after it are of former transactions.
            self._starts = {at: start for at, start in self._starts.items() if at < offset}
            self._note(data, offset)
        elif len(data) == PAGE and offset % 8 == 4:
            number = int.from_bytes(super().xRead(4, offset - 4), "big")
            sealed = self._cipher.seal(data, number)
            self._page = (offset, data, sealed)
            data = sealed
        elif len(data) == 4 and offset == self._page[0] + PAGE:
            data = self._sum(self._page[2], offset)
        elif len(data) > _SUM_START:
            raise apsw.IOError(f"{len(data)} bytes at {offset} are no part of a journal")
        super().xWrite(data, offset)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        raw = super().xRead(amount, offset)
        if raw.startswith(_JOURNAL_MAGIC) and offset % 8 == 0:
            self._note(raw if len(raw) >= _SUM_START + 4 else super().xRead(_SUM_START + 4, offset), offset)
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
            return self._sum(plain, offset) if raw == self._sum(sealed, offset) else self._sum(plain, offset, 1)
        return raw

    def _note(self, header: bytes, offset: int) -> None:
        self._starts[offset] = int.from_bytes(header[_SUM_START : _SUM_START + 4], "big")

    def _sum(self, page: bytes, offset: int, more: int = 0) -> bytes:
        """Return the sum of a page at an offset, or one that is wrong."""
        start = self._starts[max(at for at in self._starts if at < offset)]
        return ((start + sum(page[_SAMPLES]) + more) & 0xFFFFFFFF).to_bytes(4, "big")
