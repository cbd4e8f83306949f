"""Policies of a namespace for texts: `redaction` of secrets, and `salience`, whether a text is worth remembering."""

from __future__ import annotations

from recollect.policies.redaction import CATEGORIES, Redacted, RedactingFilter, redact, redact_json
from recollect.policies.salience import LEVELS, WHY, Judgement, Level, judge

__all__ = [
    "CATEGORIES",
    "LEVELS",
    "WHY",
    "Judgement",
    "Level",
    "Redacted",
    "RedactingFilter",
    "judge",
    "redact",
    "redact_json",
]
