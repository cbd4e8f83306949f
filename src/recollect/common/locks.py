"""Locks on files that processes share. A lock ends with its descriptor, or with the process that has it."""

from __future__ import annotations


def lock_now(descriptor: int) -> bool:
    """Lock an open file for this process, and return whether that was possible; it does not wait for another process.

    Raises:
        OSError: The file system has no locks.
    """
    from filelock import lock_descriptor

    return lock_descriptor(descriptor, blocking=False)
