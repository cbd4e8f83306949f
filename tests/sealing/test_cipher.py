"""The cipher against values of others: RFC 5869, the reference implementation of Argon2, and the library itself."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from recollect.stores.sealing import chunks
from recollect.stores.sealing.chunks import CHUNK, FIRST_BYTES, HEAD_BYTES, ChunkCipher
from recollect.stores.sealing.cipher import NotAuthenticError, decrypted, encrypted, stretched, subkey
from recollect.stores.sealing.pages import BYTES, HEADER_BYTES, PageCipher

KEY = bytes(range(32))
SIZE = 4096


def page(seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(SIZE - BYTES) + bytes(BYTES)


def test_subkeys_are_those_of_hkdf() -> None:
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"  # RFC 5869, test case 3, first block
    assert subkey(b"\x0b" * 22, b"", "").hex() == expected


def test_the_key_of_a_passphrase_is_that_of_argon2id() -> None:
    expected = (
        "09316115d5cf24ed5a15a31a3ba326e5cf32edc24702987c02b6566f61913cf7"  # test.c of the reference: t=2, m=2^16
    )
    assert stretched("password", b"somesalt", memory_kib=2**16, passes=2, lanes=1).hex() == expected


@pytest.mark.parametrize("number", [1, 2, 77])
def test_a_page_has_the_documented_form(number: int) -> None:
    plain = page()
    sealed = PageCipher(KEY).seal(plain, number)
    head = plain[:HEADER_BYTES] if number == 1 else b""
    nonce, tag = sealed[-28:-16], sealed[-16:]
    assert len(sealed) == SIZE
    assert sealed.startswith(head)
    body = AESGCM(KEY).decrypt(nonce, sealed[len(head) : -28] + tag, number.to_bytes(8, "big") + head)
    assert head + body == plain[:-BYTES]


@pytest.mark.parametrize("number", [1, 5])
def test_every_changed_byte_of_a_page_is_found(number: int) -> None:
    cipher = PageCipher(KEY)
    sealed = cipher.seal(page(), number)
    assert cipher.open(sealed, number) == page()
    for at in range(SIZE):
        changed = bytearray(sealed)
        changed[at] ^= 1 << at % 8
        with pytest.raises(NotAuthenticError):
            cipher.open(bytes(changed), number)


def test_a_page_is_not_authentic_at_another_place_or_with_another_key() -> None:
    sealed = PageCipher(KEY).seal(page(), 5)
    for cipher, number in ((PageCipher(KEY), 6), (PageCipher(bytes(32)), 5)):
        with pytest.raises(NotAuthenticError):
            cipher.open(sealed, number)


def test_the_same_page_is_never_encrypted_to_the_same_bytes() -> None:
    cipher = PageCipher(KEY)
    assert len({cipher.seal(page(), 2)[-28:-16] for _ in range(1000)}) == 1000


def test_a_page_that_was_never_written_is_read_as_zeros() -> None:
    assert PageCipher(KEY).open(bytes(SIZE), 9) == bytes(SIZE)


@given(st.binary(max_size=100), st.binary(max_size=20))
def test_what_is_encrypted_is_read_only_for_what_it_belongs_to(data: bytes, about: bytes) -> None:
    sealed = encrypted(KEY, data, about)
    assert decrypted(KEY, sealed, about) == data
    for other, what in ((sealed[:-1], about), (sealed, about + b"!"), (b"", about), (sealed[:5], about)):
        with pytest.raises(NotAuthenticError):
            decrypted(KEY, other, what)


SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 7]


def sealed_file(data: bytes, part: int = 300_000) -> bytes:
    parts = [memoryview(data)[at : at + part] for at in range(0, len(data), part)]
    return b"".join(map(bytes, ChunkCipher(KEY).seal(parts)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("part", [300_000, 3 * CHUNK])
def test_a_file_of_any_size_is_read_as_it_was_written(size: int, part: int) -> None:
    data = random.Random(size).randbytes(size)
    sealed = np.frombuffer(sealed_file(data, part), np.uint8)
    assert ChunkCipher(KEY).open(sealed).tobytes() == data
    assert ChunkCipher(KEY).first(sealed[:FIRST_BYTES]).tobytes() == data[:CHUNK]


@pytest.mark.parametrize("size", SIZES)
def test_a_file_that_was_cut_extended_or_reordered_is_not_authentic(size: int) -> None:
    sealed = sealed_file(random.Random(size).randbytes(size))
    whole = CHUNK + 16
    changed = [sealed[:-1], sealed[: HEAD_BYTES + 16], sealed + b"\0", sealed[:HEAD_BYTES], sealed[1:], b""]
    changed += [sealed[: HEAD_BYTES + whole]] * (size > CHUNK)
    changed += [sealed[:HEAD_BYTES] + sealed[HEAD_BYTES + whole :]] * (size > CHUNK)
    for each in changed:
        if each == sealed:
            continue
        with pytest.raises(NotAuthenticError):
            ChunkCipher(KEY).open(np.frombuffer(each, np.uint8))


def test_the_first_chunk_of_a_cut_file_is_not_taken_for_all_of_it() -> None:
    sealed = sealed_file(bytes(2 * CHUNK))
    cut = np.frombuffer(sealed[: HEAD_BYTES + CHUNK + 16], np.uint8)
    with pytest.raises(NotAuthenticError):
        ChunkCipher(KEY).first(cut)
    assert sealed[: len(chunks.MAGIC)] == chunks.MAGIC
