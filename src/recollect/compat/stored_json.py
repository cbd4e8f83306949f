"""JSON values and names in the metadata of records, which a policy of the memory may not break.

A policy that redacts replaces a secret inside of any text in the metadata. In JSON text it could take a letter of an
escape with it, so that the text is none any more; and in a name, such as the key of an item, what is stored would be
found under another name. So values are redacted before they become text, and names are written in letters if need be.
"""

from __future__ import annotations

import json
from typing import Any

from recollect.common.regexes import regex
from recollect.errors import RejectedError
from recollect.policies import redact, redact_json

_LETTERS = regex(r":(?:[a-p]{2})*")


def stored(value: Any, policies: Any) -> str:
    """Return a JSON value as JSON text, without what the policies of a memory do not allow to be stored.

    Args:
        value: The value.
        policies: The policies of the memory (`recollect.operations.GetPolicies`).

    Raises:
        TypeError: It has no JSON form.
        ValueError: It refers to itself.
        RejectedError: The policies refuse something in it.
    """
    text = _text(value)
    if policies.redaction == "keep":
        return text
    changed, found = redact_json(json.loads(text), policies.categories)
    if found and policies.redaction == "refuse":
        raise RejectedError("redaction", f"contains {', '.join(sorted(found))}", *sorted(found))
    if found:
        text = _text(changed)
    # Secrets that only JSON text has, such as one over the borders of two texts: in letters, which hide nothing else.
    return text if not redact(text, policies.categories).found else lettered(text)


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # JSON can state lone surrogates as escapes, and a record has none.
    return text if is_text(text) else json.dumps(value, separators=(",", ":"))


def loaded(text: str) -> Any:
    """Return the value of what `stored` returned, a new object each time."""
    return json.loads(unlettered(text))


def is_text(value: str) -> bool:
    """Return whether a text is valid Unicode, as those of a record are."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def safe_name(text: str) -> str:
    """Return a name as the metadata of a record can have it whatever its policies are: as it is, or in letters.

    >>> safe_name("seat"), safe_name("ana@example.com")[:5]
    ('seat', ':gbgo')
    """
    plain = is_text(text) and not text.startswith(":") and not redact(text).found
    return text if plain else lettered(text)


def lettered(text: str) -> str:
    """Return a text as letters, in which no policy finds anything."""
    return ":" + "".join(chr(97 + byte // 16) + chr(97 + byte % 16) for byte in text.encode("utf-8", "surrogatepass"))


def unlettered(text: str) -> str:
    """Return the text that `safe_name` or `stored` made of it.

    >>> unlettered(safe_name("ana@example.com"))
    'ana@example.com'
    """
    if not _LETTERS.fullmatch(text):
        return text
    pairs = zip(text[1::2], text[2::2], strict=True)
    return bytes((ord(one) - 97) * 16 + ord(other) - 97 for one, other in pairs).decode("utf-8", "surrogatepass")
