"""The encrypted form of pages: in a file, and in the frames of its WAL.

The last 28 bytes of a page are its nonce and tag. The first 100 bytes of the first page, SQLite's header, stay as they
are: a file says what it is without a key. They are authenticated, and so is the number of a page. A page has the same
form in the WAL, so that any SQLite can copy it into the file without a key.

A page that was never written is all zeros, and is read as that. So zeros in the place of a page, and an older state of
it, are not found here but by the hashes of the records (`recollect verify`).
"""

from __future__ import annotations

import os

from recollect.stores.sealing.cipher import NONCE_BYTES, TAG_BYTES, NotAuthenticError, cipher, not_authentic

#: Bytes that a page reserves for its nonce and tag.
BYTES = NONCE_BYTES + TAG_BYTES
#: The bytes of the first page that are not encrypted: the header of an SQLite file.
HEADER_BYTES = 100
_RESERVED = bytes(BYTES)


class PageCipher:
    """Encrypts and decrypts the pages of one file.

    Args:
        key: The key of this file, 32 bytes.

    Attributes:
        count: The number of pages that it has encrypted.
    """

    def __init__(self, key: bytes) -> None:
        self.count = 0
        aead = cipher(key)
        self._encrypt, self._decrypt = aead.encrypt, aead.decrypt
        self._not_authentic = not_authentic()

    def seal(self, page: bytes, number: int) -> bytes:
        """Return the encrypted form of a page, counted from 1. Its last `BYTES` bytes are reserved.

        Cost:
            5 us for 4,096 bytes.
        """
        self.count += 1
        nonce = os.urandom(NONCE_BYTES)
        if number == 1:
            head = page[:HEADER_BYTES]
            out = self._encrypt(nonce, page[HEADER_BYTES:-BYTES], number.to_bytes(8, "big") + head)
            return b"".join((head, out[:-TAG_BYTES], nonce, out[-TAG_BYTES:]))
        out = self._encrypt(nonce, page[:-BYTES], number.to_bytes(8, "big"))
        return b"".join((out[:-TAG_BYTES], nonce, out[-TAG_BYTES:]))

    def open(self, sealed: bytes, number: int) -> bytes:
        """Return the page in an encrypted form. Raise NotAuthenticError if it is none of this file and number.

        Cost:
            4 us for 4,096 bytes.
        """
        nonce, about = sealed[-BYTES:-TAG_BYTES], number.to_bytes(8, "big")
        try:
            if number == 1:
                head = sealed[:HEADER_BYTES]
                body = sealed[HEADER_BYTES:-BYTES] + sealed[-TAG_BYTES:]
                return b"".join((head, self._decrypt(nonce, body, about + head), _RESERVED))
            return b"".join((self._decrypt(nonce, sealed[:-BYTES] + sealed[-TAG_BYTES:], about), _RESERVED))
        except (self._not_authentic, ValueError):
            if not any(sealed):
                return bytes(len(sealed))
            raise NotAuthenticError from None
