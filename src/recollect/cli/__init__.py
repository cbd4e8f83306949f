"""The command `recollect`: it parses the command line, calls the public API and prints the result."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line."""
    # Modules are no garbage, so collections need not traverse them, neither while they load nor later.
    gc.disable()
    from recollect.cli.app import app

    gc.freeze()
    gc.enable()
    app()


__all__ = ["main"]
