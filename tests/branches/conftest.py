"""Two copies of a store, as two devices have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.branches.devices import Device


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Device]:
    device = Device.created(tmp_path, "home")
    device.memory.remember("Ana prefers window seats", id="seat", user="ana")
    device.memory.remember("Ana lives in Bergen", id="city", user="ana")
    yield device
    device.memory.close()


@pytest.fixture
def laptop(home: Device) -> Iterator[Device]:
    device = home.copied("laptop")
    yield device
    device.memory.close()
