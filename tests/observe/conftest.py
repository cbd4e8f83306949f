"""Spans of the tests of this folder: recorded in memory."""

from __future__ import annotations

import pytest
from tests.observe.recorded import Recorded


@pytest.fixture
def recorded() -> Recorded:
    """A tracer provider whose spans can be looked at."""
    return Recorded()
