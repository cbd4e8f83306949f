"""The cost of loading the compiled kernels: from numba's cache, into an empty cache, and without a cache.

Each figure is from a separate process, from before numba is imported until the kernels are in use.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from bench.measuring import ROOT, versions

#: What a fresh process runs.
_LOADING = """
import json, time
import recollect.indexes.kernels.types
began = time.perf_counter()
from recollect.indexes.kernels.numba import kernels as numba_kernels
imported = time.perf_counter()
numba_kernels.loaded()
print(json.dumps([(imported - began) * 1000, (time.perf_counter() - imported) * 1000]))
"""
#: Numba looks for a place only where it was told one, which it was not.
NOWHERE = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator", "NUMBA_CACHE_DIR": ""}


def _loaded(environment: dict[str, str]) -> tuple[float, float]:
    """Milliseconds of importing numba, and of having the kernels."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADING],
        cwd=ROOT,
        env={**os.environ, **environment},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    imported, loaded = json.loads(done.stdout)
    return imported, loaded


def loadings(runs: int = 3) -> dict[str, Any]:
    """Medians of some runs."""
    with tempfile.TemporaryDirectory() as kept:
        cold = []
        for run in range(runs):
            cold.append(_loaded({"NUMBA_CACHE_DIR": f"{kept}/{run}"}))
        warm = [_loaded({"NUMBA_CACHE_DIR": f"{kept}/0"}) for _ in range(runs)]
    nowhere = [_loaded(NOWHERE) for _ in range(runs)]
    return {
        "command": "loading",
        "import_numba_ms": statistics.median(imported for imported, _ in warm),
        "cached_ms": statistics.median(loaded for _, loaded in warm),
        "empty_cache_ms": statistics.median(loaded for _, loaded in cold),
        "no_cache_ms": statistics.median(loaded for _, loaded in nowhere),
        "versions": versions(),
    }
