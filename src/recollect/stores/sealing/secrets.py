"""Secrets in files, for commands and servers: a file has 64 hexadecimal digits, which are 32 bytes, or a passphrase."""

from __future__ import annotations

import os

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError
from recollect.stores import files
from recollect.stores.sealing.keys import Secret

#: The environment variable with the path of the file with the secret of stores that are opened without one.
SECRET_VARIABLE = "RECOLLECT_SECRET_FILE"
_MOST_BYTES = 4096
_KEY = regex("[0-9a-fA-F]{64}")
#: What is more likely a key that was cut, or has blanks around it, than a passphrase.
_NEARLY = regex(r"\s*[0-9a-fA-F]{32,}\s*")


def secret_in(path: str | os.PathLike[str]) -> Secret:
    """Return the secret in a file. A line end after it is no part of it.

    Raises:
        InvalidArgumentError: The file cannot be read, or has no secret. The message never contains its contents.
    """
    name = os.fspath(path)
    try:
        with os.fdopen(files.open_regular(name, follow=True), "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidArgumentError("secret file", name, f"cannot be read: {reason}") from None
    try:
        text = data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or len(data) > _MOST_BYTES:
        rule = "must contain 64 hexadecimal digits (openssl rand -hex 32) or a passphrase, as UTF-8"
        raise InvalidArgumentError("secret file", name, rule)
    if _KEY.fullmatch(text):
        return bytes.fromhex(text)
    if _NEARLY.fullmatch(text):
        rule = f"has {len(text.strip())} hexadecimal digits: a key has 64; put other characters into a passphrase"
        raise InvalidArgumentError("secret file", name, rule)
    return text


def secret_or_default(secret: Secret | None) -> Secret | None:
    """Return a secret; if it is None, that in the file that RECOLLECT_SECRET_FILE names, if it names one."""
    path = os.environ.get(SECRET_VARIABLE)
    return secret_in(path) if secret is None and path else secret
