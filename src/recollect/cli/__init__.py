"""The command `recollect`: parse, call the public API, print."""

from __future__ import annotations


def main() -> None:
    """The entry point."""
    from recollect.cli.app import app

    app()


__all__ = ["main"]
