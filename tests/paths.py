"""Folders that tests read."""

from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
GOLDEN = TESTS / "golden"
LABELS = TESTS / "labels"
