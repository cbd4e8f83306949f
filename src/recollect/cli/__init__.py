"""The command `recollect`: it parses the command line, calls the public API and prints the result."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from recollect.cli.app import app

    app()


__all__ = ["main"]
