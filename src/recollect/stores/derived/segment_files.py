"""Segment files: indexes saved next to the store, so that a process need not rebuild them.

Each branch has its own file in `FILE.index`, with the arrays of its segment in their in-memory form. The header states
what the segment was built from (store, branch, seq and root) and the rules that built it; a reader catches up from that
seq. A file that is missing, corrupt in any byte, or of other rules or another history is not used: a warning is logged,
and the index is rebuilt. Files are replaced atomically, by one process at a time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from glob import escape, glob
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.words.segment import Segment, check_arrays
from recollect.ledger.commits import Branch
from recollect.stores import files
from recollect.stores.derived.shared import Made
from recollect.stores.sealing.chunks import FIRST_BYTES, ChunkCipher
from recollect.stores.sealing.cipher import NotAuthenticError
from recollect.stores.sealing.keys import Unlocked

_log = logging.getLogger("recollect")
_MAGIC = b"RclSeg1\n"
#: Arrays are aligned to multiples of this many bytes.
_ALIGNED = 64
_DIGEST_BYTES = 32
#: How long, and in which steps, the removal of a file waits for a process that writes one.
_WAIT_S, _STEP_S = 0.2, 0.005
#: The offset of the header, after the magic, the header's size in eight bytes, and its digest.
_HEADER_AT = len(_MAGIC) + 8 + _DIGEST_BYTES
#: A longer header is not read on its own.
_MAX_HEADER_BYTES = 2**24
#: What decoding raises for bytes that this module did not write.
_DECODING_ERRORS = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)
_TYPES = {np.dtype(kind).str for kind in ("u1", "i1", "?", "u2", "i4", "i8", "u8", "f8")}


class SegmentFiles:
    """The segment files of a store.

    Args:
        folder: `FILE.index`, created with mode 0700 when first needed.
        uuid: The uuid of the store.
        read_only: Write nothing.
        keys: The data keys of an encrypted store.
    """

    def __init__(self, folder: str, uuid: str, *, read_only: bool = False, keys: Unlocked | None = None) -> None:
        self._keys = keys
        self._folder = folder
        self._uuid = uuid
        self._read_only = read_only

    @cached_property
    def _cipher(self) -> ChunkCipher | None:
        return None if self._keys is None else ChunkCipher(self._keys.key("recollect.file.1 segment"))

    def _path(self, branch: Branch) -> str:
        whose = json.dumps([self._uuid, *branch]).encode()
        if self._keys is not None:  # so that no namespace can be guessed by the name of its file
            whose = hmac.digest(self._keys.key("recollect.file.1 names"), whose, "sha256")
        name = hashlib.sha256(whose).hexdigest()[:32]
        return os.path.join(self._folder, f"words-{name}.seg")

    def made(self, branch: Branch, rules: str) -> Made | None:
        """Return what the segment of a branch claims to be built from; None if there is no usable file.

        Cost:
            Reads only the header: `read` verifies the rest.
        """
        path = self._path(branch)
        try:
            end = min(_header_end(self._start(path, _HEADER_AT)), _MAX_HEADER_BYTES)
            made = self._made(_header(self._start(path, end)), branch, rules)
        except (OSError, NotAuthenticError, *_DECODING_ERRORS):
            return None
        return made if isinstance(made, Made) else None

    def read(self, branch: Branch, rules: str) -> tuple[Segment, Made] | None:
        """Return the segment of a branch and what it was built from; None if there is no usable file."""
        path = self._path(branch)
        try:
            # Not mapped: hashing costs more than reading, and a copy cannot be changed by another process.
            data = files.read(path)
            data = data if self._cipher is None else self._cipher.open(data)
        except FileNotFoundError:
            return None
        except OSError as error:
            return self._unusable(path, str(error))
        except NotAuthenticError:
            return self._unusable(path, "it is not encrypted with the key of the store, or was changed")
        return self.decoded(branch, rules, data, path)

    def _start(self, path: str, size: int) -> NDArray[np.uint8]:
        """Return the first bytes of a file."""
        if self._cipher is None:
            return files.read(path, size)
        found = self._cipher.first(files.read(path, FIRST_BYTES))
        return found[:size] if size <= len(found) else self._cipher.open(files.read(path))[:size]

    def decoded(self, branch: Branch, rules: str, data: NDArray[np.uint8], where: str) -> tuple[Segment, Made] | None:
        """Return the segment in the bytes of a file and what it was built from; None after a warning if it is unusable.

        Args:
            where: Where the bytes are from, for the warning.
        """
        try:
            header, arrays = _decoded(data, authentic=self._cipher is not None)
            made = self._made(header, branch, rules)
            if not isinstance(made, Made):
                return self._unusable(where, made)
            check_arrays(arrays, header["speakers"])
            return Segment(arrays, header["speakers"]), made
        except _DECODING_ERRORS as error:
            return self._unusable(where, f"it is corrupt: {error}")

    @contextmanager
    def parts(self, branch: Branch, rules: str, size: int) -> Iterator[tuple[Made, Iterator[bytes]] | None]:
        """Open the file of a branch: what its segment claims to be built from, and its bytes in parts of a size.

        None if there is no usable file. The bytes are of one file, also if another one takes its place meanwhile.
        """
        try:
            file = open(files.open_regular(self._path(branch)), "rb")  # noqa: SIM115 - it is used below
        except OSError:
            yield None
            return
        with file:
            try:
                head = np.frombuffer(file.read(_HEADER_AT), dtype=np.uint8)
                more = file.read(min(_header_end(head), _MAX_HEADER_BYTES) - _HEADER_AT)
                made = self._made(_header(np.append(head, np.frombuffer(more, dtype=np.uint8))), branch, rules)
            except (OSError, *_DECODING_ERRORS):
                made = "it is corrupt"
            file.seek(0)
            yield (made, iter(lambda: file.read(size), b"")) if isinstance(made, Made) else None

    def _made(self, header: dict[str, Any], branch: Branch, rules: str) -> Made | str:
        """Return what a segment was built from, or why it is not usable. Raise a decoding error if it is corrupt."""
        about = header["about"]
        if about["uuid"] != self._uuid or (about["namespace"], about["branch"]) != branch:
            return "it belongs to another store"
        if about["rules"] != rules:
            return "it was built by other rules"
        seq = about["seq"]
        if not isinstance(seq, int) or not 0 < seq < 1 << 63:
            raise ValueError(f"its commit number is {seq!r}")
        return Made(rules, seq, str(about["root"]))

    @staticmethod
    def _unusable(path: str, reason: str) -> None:
        _log.warning("the index %s cannot be used (%s); recall rebuilds it", path, reason)

    def write(self, branch: Branch, segment: Segment, made: Made, usable: Callable[[], bool] = lambda: True) -> bool:
        """Save a segment, replacing the previous one. Return False if writing fails or another process is writing."""
        about = {"uuid": self._uuid, "namespace": branch.namespace, "branch": branch.name, **made._asdict()}
        return self.save(branch, _encoded(segment, about), usable)

    def save(self, branch: Branch, parts: Iterable[bytes | memoryview], usable: Callable[[], bool]) -> bool:
        """Save the bytes of a segment, as `write` does.

        Args:
            usable: Called while no other process writes; False: the segment is not saved.
        """
        if self._read_only:
            return False
        path = self._path(branch)
        try:
            files.make_folder(self._folder)
            with self._alone() as locked:
                if not locked or not usable():
                    return False
                self._remove_drafts(path)
                draft = f"{path}.{os.getpid()}.new"
                try:
                    # Not synced: the file is derived, and its digest detects one that was torn by a power cut.
                    files.write(draft, parts if self._cipher is None else self._cipher.seal(parts))
                    files.replace(path, draft)
                finally:
                    with suppress(OSError):
                        files.remove(draft)
        except OSError as error:
            _log.warning("the index %s could not be saved (%s); the next process rebuilds it", path, error)
            return False
        return True

    def remove(self, branch: Branch) -> bool:
        """Remove the segment of a branch. Return False if another process is writing one."""
        path = self._path(branch)
        if not os.path.isdir(self._folder):
            return True
        if self._read_only:
            return False
        try:
            with self._alone(wait_s=_WAIT_S) as locked:
                if locked:
                    self._remove_drafts(path)
                    with suppress(FileNotFoundError):
                        files.remove(path)
                return locked
        except OSError as error:
            _log.warning("the index %s could not be removed: %s", path, error)
            return False

    @staticmethod
    def _remove_drafts(path: str) -> None:
        """Remove what processes left that died while they were writing. The caller has locked the folder."""
        for leftover in glob(f"{escape(path)}.*.new"):
            files.remove(leftover)

    @contextmanager
    def _alone(self, wait_s: float = 0.0) -> Iterator[bool]:
        """Yield whether this process has the exclusive right to write here, and keep it while the block runs."""
        lock = files.open_regular(os.path.join(self._folder, "lock"), os.O_CREAT | os.O_RDWR)
        try:
            until = time.monotonic() + wait_s
            while not (locked := files.lock_now(lock)) and time.monotonic() < until:
                time.sleep(_STEP_S)
            yield locked
        finally:
            os.close(lock)


def _encoded(segment: Segment, about: dict[str, Any]) -> Iterator[bytes | memoryview]:
    """Encode a segment: magic, the header's size and digest, the header, and the arrays."""
    at, columns, pieces = 0, [], []
    for name, array in segment.arrays.items():
        array = np.ascontiguousarray(array)
        columns.append([name, array.dtype.str, list(array.shape), at])
        padding = -array.nbytes % _ALIGNED
        pieces.append((array, padding))
        at += array.nbytes + padding
    digest = hashlib.sha256()
    for array, padding in pieces:
        digest.update(array.reshape(-1).view(np.uint8).data)
        digest.update(bytes(padding))
    header = json.dumps(
        {"about": about, "speakers": segment.speakers, "arrays": columns, "bytes": at, "sha256": digest.hexdigest()}
    ).encode("ascii")
    header += b" " * (-(_HEADER_AT + len(header)) % _ALIGNED)
    yield _MAGIC + len(header).to_bytes(8, "little") + hashlib.sha256(header).digest() + header
    for array, padding in pieces:
        yield array.reshape(-1).view(np.uint8).data
        yield bytes(padding)


def _header_end(data: NDArray[np.uint8]) -> int:
    """Return the end of the header in data that starts with the magic. Raise ValueError for other data."""
    head = data[:_HEADER_AT].tobytes()
    if head[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it does not start as a segment does")
    return _HEADER_AT + int.from_bytes(head[len(_MAGIC) : len(_MAGIC) + 8], "little")


def _header(data: NDArray[np.uint8]) -> dict[str, Any]:
    """Return the header from data that ends with it. Raise a decoding error if it is corrupt."""
    raw = data[_HEADER_AT:].tobytes()
    digest = data[_HEADER_AT - _DIGEST_BYTES : _HEADER_AT].tobytes()
    if len(data) != _header_end(data) or hashlib.sha256(raw).digest() != digest:
        raise ValueError("its header does not match its digest")
    header: dict[str, Any] = json.loads(raw)
    return header


def _decoded(data: NDArray[np.uint8], *, authentic: bool = False) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and arrays of `_encoded`'s bytes. Raise a decoding error if they are corrupt.

    Args:
        authentic: Whether decryption has verified them, so that the digest need not be computed.
    """
    end = _header_end(data)
    header = _header(data[:end])
    body = data[end:]
    if len(body) != header["bytes"]:
        raise ValueError("it is truncated or too long")
    if not authentic and hashlib.sha256(body.data).hexdigest() != header["sha256"]:
        raise ValueError("its contents do not match their digest")
    arrays = {}
    for name, kind, shape, at in header["arrays"]:
        if kind not in _TYPES:
            raise ValueError(f"it has a column of {kind}")
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(body.data, dtype=kind, count=count, offset=at).reshape(shape)
    return header, arrays
