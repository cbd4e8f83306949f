"""What lies beside the records of a memory: each facet has a folder with its records, operations, index and calls.

Importing this package registers the facets with the engine. Their commands and tools are listed in `recollect.cli` and
`recollect.server.mcp`.
"""

from recollect.engine.facets import register
from recollect.facets.entities import queries as entities
from recollect.facets.glossary import stored as glossary
from recollect.facets.keyed import facet as keyed
from recollect.facets.outline import trees as outline
from recollect.facets.sdr import stored as sdr

register(entities.FACET, glossary.FACET, outline.FACET, sdr.FACET, keyed.FACET)
