"""The type of the fixture that runs commands, and what its tests read from their output."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result

Run = Callable[..., Result]


def parsed(result: Result) -> Any:
    """Return what a command with `--json` printed."""
    return json.loads(result.stdout)
