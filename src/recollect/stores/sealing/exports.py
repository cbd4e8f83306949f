"""Encrypted exports: a file with the key file of its store, so that the same secrets open it, and encrypted chunks."""

from __future__ import annotations

import errno
import io
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from recollect.errors import SecretNeededError, WrongSecretError
from recollect.stores.sealing.chunks import ChunkCipher
from recollect.stores.sealing.cipher import NotAuthenticError
from recollect.stores.sealing.keys import INVALID, MAX_BYTES, Secret, Unlocked, parsed

MAGIC = b"RclExp1\n"
_SIZE_BYTES = 4
_USE = "recollect.file.1 export"


class SealedWriter(io.RawIOBase):
    """Encrypts what is written to it, and writes it to a file. `end` must follow the last write.

    Args:
        file: The file, which is empty.
        keys: The data keys of the store.
    """

    def __init__(self, file: BinaryIO, keys: Unlocked) -> None:
        head = json.dumps(keys.file.to_json()).encode()
        file.write(MAGIC + len(head).to_bytes(_SIZE_BYTES, "big") + head)
        self._file = file
        self._chunks = ChunkCipher(keys.key(_USE)).sealer()
        file.write(self._chunks.head)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._file.writelines(self._chunks.take(view))
        return len(view)

    def end(self) -> None:
        """Write the last chunk, without which the file is taken for one that was cut."""
        self._file.write(self._chunks.last())


def is_sealed(beginning: bytes) -> bool:
    """Return whether a file that begins like this is an encrypted export."""
    return beginning.startswith(MAGIC)


def opened(file: BinaryIO, path: str, secret: Secret | None) -> BinaryIO:
    """Return the plain bytes of an encrypted export, to be read once from its beginning.

    Reading raises OSError where the file was changed or cut. What was read before is authentic.

    Raises:
        SecretNeededError: There is no secret.
        WrongSecretError: The secret does not open it, or its head is no key file.
    """
    file.seek(len(MAGIC))
    size = int.from_bytes(file.read(_SIZE_BYTES), "big")
    try:
        key_file = parsed(path, file.read(min(size, MAX_BYTES + 1)))
    except INVALID:
        raise WrongSecretError(path, "its head is corrupt") from None
    if secret is None:
        raise SecretNeededError(path)
    keys = key_file.unlock(secret)
    return io.BufferedReader(_Reader(file, ChunkCipher(keys.key(_USE)).chunks(file)), 2**16)


class _Reader(io.RawIOBase):
    def __init__(self, file: BinaryIO, chunks: Iterator[bytes]) -> None:
        self._file = file
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            try:
                self._rest = memoryview(next(self._chunks, b""))
            except NotAuthenticError:
                raise OSError(errno.EIO, "it was changed or cut: from here on it is not authentic") from None
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
