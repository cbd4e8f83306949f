"""Language models: one small protocol, adapters for servers, and what uses them: summaries and extraction of facts.

Nothing here is needed to remember or recall. No model is called on the write path. The names are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.common.deferred import deferred_names

if TYPE_CHECKING:
    from recollect.models.base import Model
    from recollect.models.environment import as_model, model_from, model_of_environment
    from recollect.models.extraction import ModelExtractor, ModelSummariser
    from recollect.text.facts import Extracted

__all__ = ["Extracted", "Model", "ModelExtractor", "ModelSummariser", "as_model", "model_from", "model_of_environment"]
__getattr__ = deferred_names(
    __name__,
    {
        "recollect.models.base": ("Model",),
        "recollect.models.environment": ("as_model", "model_from", "model_of_environment"),
        "recollect.models.extraction": ("ModelExtractor", "ModelSummariser"),
        "recollect.text.facts": ("Extracted",),
    },
)
