"""Attributes that a text states: where a person lives, what their favourite colour is, when the deadline is."""

from __future__ import annotations

from recollect.text.attributes.rules import LANGUAGES, Fact, attribute_name, stated
from recollect.text.attributes.values import same_value

__all__ = ["LANGUAGES", "Fact", "attribute_name", "same_value", "stated"]
