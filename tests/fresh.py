"""Code in a Python process of its own: what forks must do so where there are no other threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT

#: Where `torture` is found.


def run(code: str, folder: Path) -> str:
    """Return the output of the code. It finds the folder in `folder`. Raises: AssertionError where it fails."""
    prelude = f"from pathlib import Path\nfolder = Path({str(folder)!r})\n"
    done = subprocess.run([sys.executable, "-c", prelude + code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.removesuffix("\n")
