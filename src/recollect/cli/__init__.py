"""The command `recollect`: it parses the command line, calls the public API and prints the result."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run the command line."""
    _open_streams()
    # Modules are no garbage, so collections need not traverse them, neither while they load nor later.
    gc.disable()
    from recollect.cli.app import app

    gc.freeze()
    gc.enable()
    app()


def _open_streams() -> None:
    """Let there be streams: a program that starts commands may have closed them. What nobody reads is not written."""
    # In this order, so that each gets the descriptor that it should have, and no other file does.
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open as long as the process
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the process
        sys.exit("recollect: standard output is closed; redirect it, to /dev/null if nobody reads it. Nothing was done")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the process


__all__ = ["main"]
