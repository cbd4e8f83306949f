"""A glossary whose terms are on a Qdrant server, which many machines share (extra `qdrant`).

    from recollect.qdrant import QdrantGlossary

    with QdrantGlossary("http://localhost:6333") as glossary:
        glossary.memorize("PII", "Personally Identifiable Information", "abbreviation", "compliance_bot")

docs/glossary.md says in what it differs from `memory.glossary`.
"""

from __future__ import annotations

from recollect.facets.glossary.qdrant.collection import check_server
from recollect.facets.glossary.qdrant.glossary import QdrantGlossary

__all__ = ["QdrantGlossary", "check_server"]
