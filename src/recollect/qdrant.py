"""`recollect.qdrant`: a glossary on a Qdrant server. The code is in `recollect.facets.glossary.qdrant`."""

from recollect.facets.glossary.qdrant import QdrantGlossary, check_server

__all__ = ["QdrantGlossary", "check_server"]
