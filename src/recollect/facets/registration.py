"""Registers the facets with the engine, when it is imported."""

from recollect.engine.facets import register
from recollect.facets.entities.queries import FACET as ENTITIES
from recollect.facets.glossary.stored import FACET as GLOSSARY
from recollect.facets.keyed.records import FACET as KEYED
from recollect.facets.outline.trees import FACET as OUTLINE
from recollect.facets.quarantine.quarantine import FACET as QUARANTINE
from recollect.facets.sdr.stored import FACET as SDR

register(ENTITIES, GLOSSARY, OUTLINE, SDR, KEYED, QUARANTINE)
