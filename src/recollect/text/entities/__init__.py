"""Entities that a text mentions, found by rules, without a model."""

from __future__ import annotations

from recollect.text.entities.extraction import EXTRACTOR, TYPES, EntityMention, entities

__all__ = ["EXTRACTOR", "TYPES", "EntityMention", "entities"]
