"""Where a server listens by default."""

from __future__ import annotations

import warnings
from pathlib import Path


def default_socket() -> Path:
    """Return the path of the socket in the user's runtime folder."""
    import platformdirs

    with warnings.catch_warnings():  # without XDG_RUNTIME_DIR it is another folder of the user, which the server logs
        warnings.simplefilter("ignore")
        return Path(platformdirs.user_runtime_dir("recollect", appauthor=False)) / "recollect.sock"
