"""The descriptions of all facets, which are registered when this module is imported.

No other module of a facet with operations is imported before one of them is used: most programs use few of them.
"""

from recollect.engine.facets import Facet, FacetIndex, register
from recollect.engine.write.classes import QUARANTINED
from recollect.facets.entities.graph import NODE, RELATION
from recollect.facets.sdr.records import COUNTER, COUNTER_ID

register(
    Facet(
        "recollect.facets.entities",
        index=FacetIndex("mentions", 2**28),
        executed_by="queries",
        names=(NODE, RELATION),
    ),
    Facet(
        "recollect.facets.glossary",
        "terms",
        "terms of glossaries",
        FacetIndex("terms", 2**28),
        executed_by="stored",
        named=True,
    ),
    Facet(
        "recollect.facets.outline",
        "nodes",
        "nodes of outlines",
        FacetIndex("outlines", 2**28),
        executed_by="trees",
        trees=True,
    ),
    # A number that was given stays given. A text passes through the salience policy before it is stored, as sdr-memory
    # designed it; the record that counts is no text.
    Facet(
        "recollect.facets.sdr",
        "sdrs",
        "texts with sparse codes",
        FacetIndex("sparse_codes", 2**29),
        executed_by="stored",
        names=(COUNTER,),
        kept=(COUNTER,),
        judged=True,
        counter=COUNTER_ID,
    ),
    Facet("recollect.facets.keyed", "keys", "keyed entries", own_quota=True, shared=True, named=True),
    Facet("recollect.facets.quarantine", QUARANTINED, "records in quarantine", shared=True),
)
