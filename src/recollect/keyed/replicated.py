"""`recollect.keyed.replicated`: replicated values. The code is in `recollect.facets.keyed.replicated`."""

from recollect.facets.keyed.replicated import *  # noqa: F403 - all that it exports
from recollect.facets.keyed.replicated import __all__ as __all__
