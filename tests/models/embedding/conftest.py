"""The stub server, started for one test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.models.embedding.stub import StubServer


@pytest.fixture
def server() -> Iterator[StubServer]:
    stub = StubServer()
    yield stub
    stub.close()
