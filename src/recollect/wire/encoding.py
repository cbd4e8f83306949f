"""JSON as bytes, strict in both directions: integers are exact, and what JSON cannot express is an error."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.errors import ProtocolError

_encoder, _decoder = msgspec.json.Encoder(), msgspec.json.Decoder()


def encode(value: Any) -> bytes:
    """Return a value as JSON in one line of UTF-8.

    Raises:
        ProtocolError: It contains something without a JSON form, such as a lone surrogate.
    """
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"it cannot be written as JSON: {error}") from None


def decode(data: bytes | bytearray | memoryview) -> Any:
    """Return the value of JSON.

    Raises:
        ProtocolError: It is not JSON in UTF-8, has a number out of range, or is nested too deeply (some 1,000 levels).
    """
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ProtocolError(f"it is not JSON: {error}") from None
