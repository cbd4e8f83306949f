"""The encrypted form of whole files, such as index files and exports: chunks that are encrypted one by one.

A file begins with a magic and 8 random bytes, which with the number of a chunk are its nonce. Which chunk is the last
one is authenticated, so that a file that was cut is found, and a part of it can be read without the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from recollect.stores.sealing.cipher import TAG_BYTES, NotAuthenticError, cipher, not_authentic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = b"RclSeal1"
_RANDOM_BYTES = 8
#: The bytes before the first chunk.
HEAD_BYTES = len(MAGIC) + _RANDOM_BYTES
#: The size of each chunk but the last one, in bytes, without and with its tag.
CHUNK = 2**20
_SEALED = CHUNK + TAG_BYTES
_MORE, _LAST = b"more", b"last"


class ChunkCipher:
    """Encrypts and decrypts files.

    Args:
        key: The key of this kind of file, 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._aead = cipher(key)

    def seal(self, parts: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
        """Return the encrypted form of the bytes of a file, in parts. Each is valid until the next one is asked for."""
        sealer = self.sealer()
        yield sealer.head
        for part in parts:
            yield from sealer.take(memoryview(part).cast("B"))
        yield sealer.last()

    def sealer(self) -> Sealer:
        """Return what encrypts a file whose bytes come one after the other."""
        return Sealer(self._aead)

    def open(self, sealed: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the bytes of a file from its encrypted form.

        Raises:
            NotAuthenticError: It is none, or was changed.

        Cost:
            About 0.3 ms for each megabyte.
        """
        import numpy as np

        body = sealed[HEAD_BYTES:]
        count = max(1, -(-len(body) // _SEALED))
        if sealed[: len(MAGIC)].tobytes() != MAGIC or len(body) < count * TAG_BYTES:
            raise NotAuthenticError
        random = sealed[len(MAGIC) : HEAD_BYTES].tobytes()
        out = np.empty(len(body) - count * TAG_BYTES, dtype=np.uint8)
        for number in range(count):
            begin, end = number * _SEALED, min((number + 1) * _SEALED, len(body))
            target = out[number * CHUNK : number * CHUNK + end - begin - TAG_BYTES]
            about = _LAST if number == count - 1 else _MORE
            try:
                self._aead.decrypt_into(_nonce(random, number), body[begin:end].data, about, target.data)
            except (not_authentic(), ValueError):
                raise NotAuthenticError from None
        return out

    def first(self, start: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the first chunk of a file from the first `FIRST_BYTES` of its encrypted form, or fewer if it is short.

        Raises:
            NotAuthenticError: It is none, or was changed.
        """
        import numpy as np

        if len(start) < FIRST_BYTES:
            return self.open(start)
        if start[: len(MAGIC)].tobytes() != MAGIC:
            raise NotAuthenticError
        nonce = _nonce(start[len(MAGIC) : HEAD_BYTES].tobytes(), 0)
        return np.frombuffer(self._decrypted(nonce, start[HEAD_BYTES : FIRST_BYTES - 1].tobytes(), _MORE), np.uint8)

    def chunks(self, file: BinaryIO) -> Iterator[bytes]:
        """Return the parts of a file from its encrypted form, each as soon as it is authentic.

        Raises:
            NotAuthenticError: It is none, or was changed or cut. What was returned before is authentic.
        """
        head = file.read(HEAD_BYTES)
        if len(head) < HEAD_BYTES or not head.startswith(MAGIC):
            raise NotAuthenticError
        number, chunk = 0, file.read(_SEALED)
        while True:
            following = file.read(_SEALED)
            nonce = _nonce(head[len(MAGIC) :], number)
            yield self._decrypted(nonce, chunk, _MORE if following else _LAST)
            if not following:
                return
            number, chunk = number + 1, following

    def _decrypted(self, nonce: bytes, chunk: bytes, about: bytes) -> bytes:
        try:
            out: bytes = self._aead.decrypt(nonce, chunk, about)
        except (not_authentic(), ValueError):
            raise NotAuthenticError from None
        return out


class Sealer:
    """Encrypts the bytes of one file.

    Attributes:
        head: The bytes before the first chunk.
    """

    def __init__(self, aead: Any) -> None:
        self._encrypt_into = aead.encrypt_into
        self._out = memoryview(bytearray(_SEALED))
        self._random = os.urandom(_RANDOM_BYTES)
        self._waiting = bytearray()
        self._number = 0
        self.head = MAGIC + self._random

    def take(self, data: memoryview) -> Iterator[memoryview]:
        """Take more bytes, and return the chunks that are full. Each is valid until the next one is encrypted."""
        while len(self._waiting) + len(data) > CHUNK:
            room = CHUNK - len(self._waiting)
            if self._waiting:
                self._waiting += data[:room]
                yield self._chunk(self._waiting, _MORE)
                self._waiting = bytearray()
            else:
                yield self._chunk(data[:room], _MORE)
            data = data[room:]
        self._waiting += data

    def last(self) -> memoryview:
        """Return the last chunk."""
        return self._chunk(self._waiting, _LAST)

    def _chunk(self, data: bytearray | memoryview, about: bytes) -> memoryview:
        out = self._out[: len(data) + TAG_BYTES]  # to allocate as much for each chunk would take longer than encrypting
        self._encrypt_into(_nonce(self._random, self._number), data, about, out)
        self._number += 1
        return out


#: How many bytes of a file tell its first chunk, and whether it is the last one.
FIRST_BYTES = HEAD_BYTES + _SEALED + 1


def _nonce(random: bytes, number: int) -> bytes:
    return random + number.to_bytes(4, "big")
