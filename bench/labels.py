"""The hand labels of turns of the development data: by the id of a turn and offsets in its text, without any text.

Both sets of labels are of the same 200 turns, chosen before the rules were written: the first session of each
conversation of LoCoMo's development file in its order (two of the second conversation) up to 120 turns; of each of
BEAM's ten chats the first six messages of the user with 41 to 260 characters and no code block; and ten turns each of
the second session of LoCoMo's first and third conversation. One person labelled all of them, and wrote the rules: the
turns with an even number were looked at while the rules were written, the others only counted. "entities-2" has 109
other turns, labelled by another person, who did not know the rules; no rule was changed because of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

#: Where the labels are.
FOLDER = Path(__file__).parent.parent / "tests" / "labels"
_MARK = re.compile(r"\s*->->\s*[\d,]+\s*$")


class Turn(NamedTuple):
    """A turn of the development data."""

    id: str
    speaker: str
    text: str


def turns(data: Path) -> dict[str, Turn]:
    """Return the turns of the development data that can be labelled, by their id.

    Args:
        data: The folder with locomo/ and beam/.
    """
    return {turn.id: turn for turn in (*_locomo(data / "locomo" / "locomo5-dev.json"), *_beam(data / "beam" / "100K"))}


def labels(name: str) -> Any:
    """Return the labels of this name."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def _locomo(path: Path) -> Iterator[Turn]:
    for sample in json.loads(path.read_text(encoding="utf-8")):
        for name, session in sample["conversation"].items():
            if isinstance(session, list) and name.startswith("session_"):
                for turn in session:
                    yield Turn(f"{sample['sample_id']}/{turn['dia_id']}", turn["speaker"], turn["text"])


def _beam(folder: Path) -> Iterator[Turn]:
    for chat in sorted(folder.iterdir()):
        for batch in json.loads((chat / "chat.json").read_text(encoding="utf-8")):
            for group in batch["turns"]:
                for turn in group:
                    yield Turn(f"beam/{chat.name}/{turn['id']}", turn["role"], _MARK.sub("", turn["content"]))
