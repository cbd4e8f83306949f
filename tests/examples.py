"""How much the tests try: a part by default, everything with HYPOTHESIS_PROFILE=full, which `make test-all` sets."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
#: Whether everything is tried.
FULL = PROFILE != "ci"


def some(number: int) -> int:
    """A number of examples, or, by default, a third of it."""
    return number if FULL else max(10, number // 3)
