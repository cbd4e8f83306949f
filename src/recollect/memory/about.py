"""What a fact is about: one entity in its own field, and others in its metadata."""

from __future__ import annotations

from recollect import filters as f
from recollect.filters.tree import Filter

#: The key of the metadata of a fact with the ids of the other entities that it is about.
ALSO_ABOUT = "also_about"


def of_entity(*entities: str) -> Filter:
    """Match the facts about at least one of some entities, by their ids."""
    return f.any_of(f.entity(*entities), *(f.meta(ALSO_ABOUT, contains=each) for each in entities))
