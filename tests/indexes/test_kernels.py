"""The choice of kernels: those in C if they were built, otherwise NumPy; both are compared in test_segments."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests import fresh

import recollect
from recollect.cli.diagnosing import examine
from recollect.facets.sdr.index import types as sdr_types
from recollect.indexes import fixed_point, parameters
from recollect.indexes.documents import columns
from recollect.indexes.kernels import choose
from recollect.indexes.kernels.factors import BY_KIND
from recollect.indexes.kernels.native import library, sources
from recollect.indexes.kernels.types import RATIO_BITS, RAW, WEIGHED_BITS
from recollect.indexes.words import segment
from recollect.text.answers import ASKS, INSTRUCTION, Kind

#: Answers a question in a new process, which prints what answered and what the log and the doctor say.
_ASKS = """
import logging, os, sys
{before}
logging.basicConfig(stream=sys.stdout, format="%(message)s")
import recollect
from recollect.cli.diagnosing import examine
memory = recollect.open(":memory:")
memory.remember("The boat lies in the harbour")
print(*{{memory.recall("boat").plan.kernels for _ in range(3)}})
print(*[each.well for each in examine(memory) if each.what == "kernels"])
print(*[each.finding for each in examine(memory) if each.what == "kernels"])
"""
_NOT_BUILT = 'sys.modules["recollect.indexes.kernels.native._native"] = None'


def asked(tmp_path: Path, *before: str) -> list[str]:
    return fresh.run(_ASKS.format(before="\n".join(before)), tmp_path).splitlines()


def wants(kernels: str) -> str:
    return f'os.environ["RECOLLECT_KERNELS"] = "{kernels}"'


def test_the_native_kernels_serve_where_they_were_built(tmp_path: Path) -> None:
    assert asked(tmp_path, wants("auto")) == ["native", "True", "native"]
    assert asked(tmp_path, wants("native")) == ["native", "True", "native; RECOLLECT_KERNELS = 'native'"]


def test_numpy_serves_if_it_is_requested(tmp_path: Path) -> None:
    assert asked(tmp_path, wants("numpy")) == ["numpy", "True", "numpy; RECOLLECT_KERNELS = 'numpy'"]


def test_without_native_kernels_numpy_serves_and_the_doctor_says_why(tmp_path: Path) -> None:
    kernels, ok, finding = asked(tmp_path, wants("auto"), _NOT_BUILT)
    assert (kernels, ok) == ("numpy", "True")
    assert finding.startswith("numpy; no native kernels: the package was built without them (")
    assert "install a C compiler" in finding


def test_requested_native_kernels_that_are_missing_are_a_warning_and_a_finding(tmp_path: Path) -> None:
    warning, kernels, ok, _ = asked(tmp_path, wants("native"), _NOT_BUILT)
    assert warning.startswith("RECOLLECT_KERNELS=native, but the package was built without them (")
    assert warning.endswith(choose.INSTALL)
    assert (kernels, ok) == ("numpy", "False")


def test_an_unknown_choice_of_kernels_is_a_warning(tmp_path: Path) -> None:
    warning, kernels, ok, finding = asked(tmp_path, wants("numba"))
    assert warning == "RECOLLECT_KERNELS=numba is ignored: it is none of auto, native and numpy"
    assert (kernels, ok, finding) == ("native", "False", "native; RECOLLECT_KERNELS = 'numba' is ignored")


def test_an_empty_choice_of_kernels_counts_as_none(tmp_path: Path) -> None:
    assert asked(tmp_path, wants("")) == ["native", "True", "native"]


def test_kernels_compiled_from_other_sources_are_not_used_and_the_doctor_says_so(tmp_path: Path) -> None:
    others = "from recollect.indexes.kernels.native import sources; sources.fingerprint = lambda folder: '00'"
    kernels, ok, finding = asked(tmp_path, wants("auto"), others)
    assert (kernels, ok) == ("numpy", "True")
    assert finding.startswith("numpy; no native kernels: they cannot be used (they were compiled from other sources")
    with pytest.raises(ImportError, match="from other sources"):
        library.check_sources("00")
    library.check_sources(sources.fingerprint(Path(library.__file__).parent))
    library.check_sources("")  # an installed package has no sources beside it


def test_the_doctor_names_the_kernels() -> None:
    with recollect.open(":memory:") as memory:
        found = {each.what: each.finding for each in examine(memory)}
        assert found["kernels"].startswith(memory.recall("boat").plan.kernels)


def test_the_constants_in_c_are_those_in_python() -> None:
    by_kind = {kind: BY_KIND[kind] for kind in (*Kind, INSTRUCTION, ASKS)}
    assert {*by_kind.values()} == {
        parameters.ANSWER,
        parameters.PAST_ANSWER,
        parameters.RECOLLECTED_INSTRUCTION,
        parameters.ASKED,
    }
    assert [kind for kind, factor in by_kind.items() if factor != parameters.ANSWER] == [Kind.PAST, INSTRUCTION, ASKS]
    expected = {
        "NONE": columns.NONE,
        "POSITION_BITS": segment.POSITION_BITS,
        "MOST_COUNT": segment.MOST_COUNT,
        "LONGEST": segment.LONGEST,
        "STEPS": len(parameters.FROM_BEFORE),
        "TOP": parameters.TOP[0],
        "TOP_BELOW": parameters.TOP[1],
        "RAW": len(RAW),
        "RATIO_BITS": RATIO_BITS,
        "WEIGHED_BITS": WEIGHED_BITS,
        "FACTOR_BITS": sdr_types.FACTOR_BITS,
        "INSTRUCTION": INSTRUCTION,
        "ASKS": ASKS,
        **{kind.name: kind.value for kind in Kind if kind.name},
        **{f"FROM_BEFORE_{at}": tenths for at, tenths in enumerate(parameters.FROM_BEFORE, 1)},
        **{f"FROM_AFTER_{at}": tenths for at, tenths in enumerate(parameters.FROM_AFTER, 1)},
    }
    for name, of in (
        ("ANSWER", "ANSWER"),
        ("PAST", "PAST_ANSWER"),
        ("RECOLLECTED", "RECOLLECTED_INSTRUCTION"),
        ("ASKED", "ASKED"),
    ):
        expected[f"{name}_OF"], expected[f"{name}_OUT_OF"] = getattr(parameters, of)
    header = Path(library.__file__).with_name("constants.h").read_text()
    names = re.findall(r"^#define (\w+) .", header, flags=re.MULTILINE)
    assert expected.keys() <= {*names}
    for name in names:
        if name not in expected:
            expected[name] = getattr(fixed_point if "BITS" in name else parameters, name)
    assert {name: getattr(library.lib, name) for name in names} == expected


def test_an_array_of_another_type_or_with_gaps_is_refused() -> None:
    with pytest.raises(TypeError, match="an array of int64 is needed here, not of int32"):
        library.ints(np.zeros(3, dtype=np.int32))
    with pytest.raises(ValueError, match="contiguous"):
        library.ints(np.zeros(6, dtype=np.int64)[::2])


@pytest.mark.parametrize("native", [True, False])
def test_other_threads_run_while_a_kernel_does(native: bool) -> None:
    """No thread gives the interpreter's lock back by itself here, only what it calls may."""
    matrix, vector = np.ones((2000, 4096), dtype=np.int16), np.ones(4096, dtype=np.int16)
    arguments = library.passed("components", matrix), library.passed("components", vector)
    out = np.empty(len(matrix), dtype=np.int64)
    interval = sys.getswitchinterval()
    others: list[bool] = []
    other = threading.Thread(target=others.append, args=(True,))
    other.start()
    other.join()
    go = threading.Lock()
    go.acquire()

    def run() -> None:
        with go:
            others.append(True)

    other = threading.Thread(target=run)
    other.start()
    sys.setswitchinterval(1000)
    try:
        go.release()
        for _ in range(1000):
            if native:
                library.lib.rc_products(*arguments, library.ints(out))
            else:
                sum(range(1000))
            if len(others) == 2:
                break
        assert len(others) == 1 + native
    finally:
        sys.setswitchinterval(interval)
        other.join()
