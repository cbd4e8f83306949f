"""Redaction: keys, passwords, addresses and numbers of people are replaced before a text is stored, sent or logged."""

from __future__ import annotations

from recollect.redaction.logs import RedactingFilter
from recollect.redaction.redactor import CATEGORIES, Redacted, redact, redact_json

__all__ = ["CATEGORIES", "Redacted", "RedactingFilter", "redact", "redact_json"]
