"""What the engine knows of keyed memory."""

from recollect.engine.facets import Facet

FACET = Facet(own_quota="keys")
