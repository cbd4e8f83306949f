"""JSON as bytes, strict in both directions: integers are exact, and what JSON cannot express is an error."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from recollect.errors import ProtocolError


def _plain(value: object) -> object:
    """Return a value of a subclass, such as a text that is quoted already, as one of the type that JSON has."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"a {type(value).__name__} has no JSON form")


_encoder, _decoder = msgspec.json.Encoder(enc_hook=_plain), msgspec.json.Decoder()


def _with_surrogates(data: bytes) -> Any:
    """Return the value of JSON that may contain a lone surrogate, which no record can have and an error names."""

    def refuse(text: str) -> Any:
        raise ValueError(f"{text} is no number of JSON")

    try:
        return json.loads(data.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"it is not JSON: {error}") from None


def encode(value: Any) -> bytes:
    """Return a value as JSON in one line of UTF-8.

    Raises:
        ProtocolError: It contains something without a JSON form.
    """
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:  # a lone surrogate: who reads the text says what is wrong with it
        return json.dumps(value, allow_nan=False, default=_plain, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise ProtocolError(f"it cannot be written as JSON: {error}") from None


def decode(data: bytes | bytearray | memoryview) -> Any:
    """Return the value of JSON.

    Raises:
        ProtocolError: It is not JSON in UTF-8, has a number out of range, or is nested too deeply (some 1,000 levels).
    """
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        if b"\\u" not in bytes(data):
            raise ProtocolError(f"it is not JSON: {error}") from None
        return _with_surrogates(bytes(data))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ProtocolError(f"it is not JSON: {error}") from None


# Where a server listens by default.


def default_socket() -> Path:
    """Return the path of the socket in the user's runtime folder."""
    import platformdirs

    with warnings.catch_warnings():  # without XDG_RUNTIME_DIR it is another folder of the user, which the server logs
        warnings.simplefilter("ignore")
        return Path(platformdirs.user_runtime_dir("recollect", appauthor=False)) / "recollect.sock"
