"""Evaluation of recall on public data sets: their importers, their questions, the metrics and the peers.

Plots and peers need the extra `recollect[eval]`; the importers need only the package.
"""

from __future__ import annotations

from recollect.evaluation.beam import Beam
from recollect.evaluation.locomo import LoCoMo
from recollect.importers.base import Importer

__all__ = ["DATASET_IMPORTERS"]

_ALL: tuple[Importer, ...] = (LoCoMo(), Beam())
#: Name -> importer.
DATASET_IMPORTERS: dict[str, Importer] = {importer.name: importer for importer in _ALL}
