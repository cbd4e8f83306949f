"""The cipher of encrypted stores: AES-256-GCM, with subkeys by HKDF-SHA256 and passphrases by Argon2id.

What is encrypted is also authenticated: a byte that was changed is found, and so is a page in the place of another.
Each encryption draws a random nonce of 96 bits, so a key must encrypt at most 2**32 pages. This is the only module
that imports `cryptography`.

Source:
    NIST SP 800-38D (GCM), RFC 5869 (HKDF), RFC 9106 (Argon2).
"""

from __future__ import annotations

import hmac
import os
from functools import cache
from types import ModuleType
from typing import Any

from recollect.errors import MissingExtraError

KEY_BYTES = 32
NONCE_BYTES, TAG_BYTES = 12, 16


class NotAuthenticError(Exception):
    """Bytes were not encrypted with this key, or were changed since. Callers turn it into an error of their own."""


@cache
def _aead() -> ModuleType:
    """Return the module of the cipher. Raise MissingExtraError if it is not installed."""
    try:
        from cryptography.hazmat.primitives.ciphers import aead
    except ImportError as error:
        raise MissingExtraError("an encrypted store", "cryptography", "encrypted") from error
    return aead


def cipher(key: bytes) -> Any:
    """Return AES-256-GCM with a key, with its functions `encrypt` and `decrypt` of nonce, data and associated data."""
    return _aead().AESGCM(key)


@cache
def not_authentic() -> type[Exception]:
    """Return what `cipher(key).decrypt` raises for bytes that are not authentic."""
    from cryptography.exceptions import InvalidTag

    return InvalidTag


def subkey(key: bytes, salt: bytes, use: str) -> bytes:
    """Derive the key of 32 bytes for one use from another key: HKDF, whose result is one block of SHA-256 here."""
    return hmac.digest(hmac.digest(salt, key, "sha256"), use.encode() + b"\1", "sha256")


def stretched(passphrase: str, salt: bytes, *, memory_kib: int, passes: int, lanes: int) -> bytes:
    """Return the key of a passphrase, by Argon2id. It takes as much memory, and passes over it, as are stated."""
    _aead()
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    kdf = Argon2id(salt=salt, length=KEY_BYTES, iterations=passes, lanes=lanes, memory_cost=memory_kib)
    return kdf.derive(passphrase.encode())


def encrypted(key: bytes, data: bytes, about: bytes) -> bytes:
    """Return a nonce and the ciphertext of data.

    Args:
        about: What the ciphertext belongs to: it must be the same when it is decrypted.
    """
    nonce = os.urandom(NONCE_BYTES)
    out: bytes = nonce + cipher(key).encrypt(nonce, data, about)
    return out


def decrypted(key: bytes, data: bytes, about: bytes) -> bytes:
    """Return what `encrypted` was given. Raise NotAuthenticError for anything else."""
    try:
        out: bytes = cipher(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], about)
    except (not_authentic(), ValueError) as error:
        raise NotAuthenticError from error
    return out
