"""A tokenizer.json of Hugging Face as a function from a text to its tokens, by the library `tokenizers`.

Special tokens, such as [CLS] and [UNK], are left out: every text has them, so that every text would resemble every
other a little. A limit on the length that the file states is not applied, because the end of a long text counts too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from recollect.errors import InvalidArgumentError, MissingExtraError

#: Maximum number of files that are kept.
_MOST = 8


def tokenizer_of(path: str | PathLike[str]) -> Callable[[str], list[str]]:
    """Return the tokenizer of a file. The same function is returned until the file changes.

    Args:
        path: The path of a tokenizer.json.

    Raises:
        InvalidArgumentError: The file is missing or damaged. The message names the path.
        MissingExtraError: The library is not installed.
    """
    file = Path(fspath(path))
    try:
        state = file.stat()
    except (OSError, ValueError) as error:
        raise InvalidArgumentError("tokenizer", str(file), _unreadable(file, error)) from None
    return _loaded(file.absolute(), state.st_mtime_ns, state.st_size, state.st_ino)


@lru_cache(_MOST)
def _loaded(file: Path, _time: int, _size: int, _inode: int) -> Callable[[str], list[str]]:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError("a tokenizer.json", "tokenizers", "tokenizers") from error
    try:
        content = file.read_text("utf-8")
        tokenizer = Tokenizer.from_str(content)
        special = _special(json.loads(content))
    except OSError as error:
        raise InvalidArgumentError("tokenizer", str(file), _unreadable(file, error)) from None
    except Exception as error:  # noqa: BLE001 - the library raises no narrower one
        raise InvalidArgumentError(
            "tokenizer", str(file), f"must be a tokenizer.json, and {file} is damaged ({error})"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def tokens(text: str) -> list[str]:
        return [token for token in tokenizer.encode(text, add_special_tokens=False).tokens if token not in special]

    return tokens


def _special(content: dict[str, Any]) -> frozenset[str]:
    """Return the special tokens of a tokenizer.json, and what stands for an unknown one."""
    found = {each["content"] for each in content.get("added_tokens") or () if each.get("special")}
    model = content["model"]
    unknown = model.get("unk_token")
    if unknown is None and model.get("unk_id") is not None:
        unknown = model["vocab"][model["unk_id"]][0]
    return frozenset(found | ({unknown} if unknown else set()))


def _unreadable(file: Path, error: Exception) -> str:
    return f"must be a file that can be read, and {file} cannot ({getattr(error, 'strerror', None) or error})"
