"""Segment files: indexes kept beside the store, so that a process need not make them anew.

A segment lies in `FILE.index` in a file of its own for each line, as its arrays stand in memory. The header says what
it was made of: store, line, seq and root, and by which rules; whoever opens it goes on from that seq. A file that is
missing, of other rules or another history, or damaged in any byte is not used, which is said, and the index is made
anew. Files are replaced as a whole, by one process at a time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape, glob
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.words.segment import Segment, check_arrays
from recollect.ledger.commits import Branch
from recollect.stores import files

try:
    import fcntl
except ImportError:  # not on this system: whoever writes last has the file, which is whole either way
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger("recollect")
_MAGIC = b"RclSeg1\n"
#: Arrays begin at multiples of this, for the processor's sake.
_ALIGNED = 64
_DIGEST_BYTES = 32
#: What stands before the header: magic, its size in eight bytes, its digest.
_HEADER_AT = len(_MAGIC) + 8 + _DIGEST_BYTES
#: A header of more bytes is not read by itself.
_LONGEST_HEADER = 2**24
#: What reading bytes raises that nobody of ours wrote.
_DAMAGED = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)
_TYPES = {np.dtype(kind).str for kind in ("u1", "i1", "?", "u2", "i4", "i8", "u8", "f8")}


class Made(NamedTuple):
    """What a segment was made of.

    rules  names all that decides what a segment of given records is
    """

    rules: str
    seq: int
    root: str

    @property
    def root_hash(self) -> bytes:
        """The root; b"" where what the file says is none."""
        try:
            return bytes.fromhex(self.root)
        except ValueError:
            return b""


class SegmentFiles:
    """The segment files of a store.

    folder  `FILE.index`, made with mode 0700 when first needed
    uuid    of the store
    """

    def __init__(self, folder: str, uuid: str, *, read_only: bool = False) -> None:
        self._folder = folder
        self._uuid = uuid
        self._read_only = read_only

    def _path(self, branch: Branch) -> str:
        name = hashlib.sha256(json.dumps([self._uuid, *branch]).encode()).hexdigest()[:32]
        return os.path.join(self._folder, f"words-{name}.seg")

    def made(self, branch: Branch, rules: str) -> Made | None:
        """What the segment of a line says that it was made of; None where there is none that could be used.

        Cost: its header is read, and nothing else: that it is whole is for `read` to see.
        """
        path = self._path(branch)
        try:
            end = min(_header_end(files.read(path, _HEADER_AT)), _LONGEST_HEADER)
            made = self._made(_header(files.read(path, end)), branch, rules)
        except (OSError, *_DAMAGED):
            return None
        return made if isinstance(made, Made) else None

    def read(self, branch: Branch, rules: str) -> tuple[Segment, Made] | None:
        """The segment of a line and what it was made of; None where there is none that can be used."""
        path = self._path(branch)
        try:
            # Read, not mapped: it costs little beside hashing it, and nobody who writes to the file can change it then.
            data = files.read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            return self._unusable(path, str(error))
        try:
            header, arrays = _decoded(data)
            made = self._made(header, branch, rules)
            if not isinstance(made, Made):
                return self._unusable(path, made)
            check_arrays(arrays, header["speakers"])
            return Segment(arrays, header["speakers"]), made
        except _DAMAGED as error:
            return self._unusable(path, f"it is damaged: {error}")

    def _made(self, header: dict[str, Any], branch: Branch, rules: str) -> Made | str:
        """What a segment was made of, or why it is none of this line. Raises: ValueError and its like."""
        about = header["about"]
        if about["uuid"] != self._uuid or (about["namespace"], about["branch"]) != branch:
            return "it belongs to another store"
        if about["rules"] != rules:
            return "it was made by another release"
        seq = about["seq"]
        if not isinstance(seq, int) or not 0 < seq < 1 << 63:
            raise ValueError(f"it claims to be of commit {seq!r}")
        return Made(rules, seq, str(about["root"]))

    @staticmethod
    def _unusable(path: str, reason: str) -> None:
        _log.warning("the index %s cannot be used (%s); for recall it is made anew", path, reason)

    def write(self, branch: Branch, segment: Segment, made: Made) -> bool:
        """Keep a segment in place of the one before. False where it was not: another process is at it, or it cannot."""
        if self._read_only:
            return False
        path = self._path(branch)
        about = {"uuid": self._uuid, "namespace": branch.namespace, "branch": branch.name, **made._asdict()}
        try:
            files.make_folder(self._folder)
            with self._alone() as alone:
                if not alone:
                    return False
                for left in glob(f"{escape(path)}.*.new"):  # by processes that died at it
                    files.remove(left)
                draft = f"{path}.{os.getpid()}.new"
                try:
                    # Not synced: it is derived, and one that a power cut tore is known by its digest.
                    files.write(draft, _encoded(segment, about))
                    files.replace(path, draft)
                finally:
                    with suppress(OSError):
                        files.remove(draft)
        except OSError as error:
            _log.warning("the index %s could not be kept (%s); the next process makes it anew", path, error)
            return False
        return True

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether this process is the only one that writes here, while the block runs."""
        lock = files.open_regular(os.path.join(self._folder, "lock"), os.O_CREAT | os.O_RDWR)
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    yield False
                    return
            yield True
        finally:
            os.close(lock)


def _encoded(segment: Segment, about: dict[str, Any]) -> Iterator[bytes | memoryview]:
    """A segment as bytes: magic, the header's size and digest, the header, and the arrays."""
    at, places, pieces = 0, [], []
    for name, array in segment.arrays.items():
        array = np.ascontiguousarray(array)
        places.append([name, array.dtype.str, list(array.shape), at])
        filled = -array.nbytes % _ALIGNED
        pieces.append((array, filled))
        at += array.nbytes + filled
    digest = hashlib.sha256()
    for array, filled in pieces:
        digest.update(array.reshape(-1).view(np.uint8).data)
        digest.update(bytes(filled))
    header = json.dumps(
        {"about": about, "speakers": segment.speakers, "arrays": places, "bytes": at, "sha256": digest.hexdigest()}
    ).encode("ascii")
    header += b" " * (-(_HEADER_AT + len(header)) % _ALIGNED)
    yield _MAGIC + len(header).to_bytes(8, "little") + hashlib.sha256(header).digest() + header
    for array, filled in pieces:
        yield array.reshape(-1).view(np.uint8).data
        yield bytes(filled)


def _header_end(data: NDArray[np.uint8]) -> int:
    """Where the header ends in what begins so. Raises: ValueError."""
    head = data[:_HEADER_AT].tobytes()
    if head[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it does not begin as a segment does")
    return _HEADER_AT + int.from_bytes(head[len(_MAGIC) : len(_MAGIC) + 8], "little")


def _header(data: NDArray[np.uint8]) -> dict[str, Any]:
    """The header in bytes that end with it. Raises: ValueError and its like where they are not just those."""
    raw = data[_HEADER_AT:].tobytes()
    digest = data[_HEADER_AT - _DIGEST_BYTES : _HEADER_AT].tobytes()
    if len(data) != _header_end(data) or hashlib.sha256(raw).digest() != digest:
        raise ValueError("its header is not what it was")
    header: dict[str, Any] = json.loads(raw)
    return header


def _decoded(data: NDArray[np.uint8]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and arrays of `_encoded`'s bytes. Raises: ValueError and its like where they are not just those."""
    end = _header_end(data)
    header = _header(data[:end])
    body = data[end:]
    if len(body) != header["bytes"]:
        raise ValueError("it is cut or too long")
    if hashlib.sha256(body.data).hexdigest() != header["sha256"]:
        raise ValueError("its contents are not what they were")
    arrays = {}
    for name, kind, shape, at in header["arrays"]:
        if kind not in _TYPES:
            raise ValueError(f"it has a column of {kind}")
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(body.data, dtype=kind, count=count, offset=at).reshape(shape)
    return header, arrays
