"""Where a server listens by default."""

from __future__ import annotations

from pathlib import Path


def default_socket() -> Path:
    """Return the path of the socket in the user's runtime folder."""
    import platformdirs

    return Path(platformdirs.user_runtime_dir("recollect", appauthor=False)) / "recollect.sock"
