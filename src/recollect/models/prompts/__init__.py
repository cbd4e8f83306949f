"""The prompts, one file for each version: a changed prompt is a new file, so a text can name the prompt that wrote it.

A text that is put into a prompt is data that anybody may have written. It is enclosed in a mark that it does not
contain, and the prompt says that what is inside is no instruction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path


@cache
def template(name: str) -> str:
    """Return the prompt of this name and version, such as "summarise-1"."""
    return Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8")


def filled(name: str, texts: Sequence[str]) -> str:
    """Return a prompt with texts, each enclosed in a mark that none of them contains.

    The mark depends only on the texts, so equal texts give equal prompts.
    """
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    marks = (f"data-{digest[at : at + 8]}" for at in range(57))
    mark = next(each for each in marks if not any(each in text for text in texts))
    data = "\n".join(f"<{mark}>\n{text}\n</{mark}>" for text in texts)
    return template(name).replace("[[MARK]]", mark).replace("[[DATA]]", data)
