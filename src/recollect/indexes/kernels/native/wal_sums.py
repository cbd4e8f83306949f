"""The sums of frames of an SQLite WAL, in C (`wal_sums.c`)."""

from __future__ import annotations

from recollect.indexes.kernels.native.library import lib


def of_frame(head: bytes, page: bytes, before: bytes, highest_first: bool) -> bytes:
    """Return the sums of a frame: see `stores.sqlite_base.sums.of_frame`."""
    sums: int = lib.rc_frame_sums(head, page, len(page), int.from_bytes(before, "big"), highest_first)
    return sums.to_bytes(8, "big")
