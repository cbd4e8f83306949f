"""The part of the build that pyproject.toml cannot describe: cffi compiles the native kernels if there is a C compiler.

RECOLLECT_KERNELS=native makes the build fail where they cannot be compiled, instead of going on without them.
RECOLLECT_CHECKED=1 makes a build that tests every index and has the compiler's sanitizers (`make test-checked`).
"""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

from cffi import FFI
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

_FOLDER = Path("src/recollect/indexes/kernels/native")
_SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g"]
_checked = bool(os.environ.get("RECOLLECT_CHECKED"))
_needed = _checked or os.environ.get("RECOLLECT_KERNELS") == "native"
_fingerprint = runpy.run_path(str(_FOLDER / "sources.py"))["fingerprint"](_FOLDER)


def _files(pattern: str) -> list[str]:
    return sorted(each.as_posix() for each in _FOLDER.glob(pattern))


def _constants() -> str:
    """Return declarations of the constants, whose values the compiler knows."""
    names = re.findall(r"^#define (\w+) .", (_FOLDER / "constants.h").read_text(), flags=re.MULTILINE)
    return "".join(f"#define {name} ...\n" for name in names)


#: cffi executes this file again to read it.
ffi = FFI()
ffi.cdef(_constants() + (_FOLDER / "interface.h").read_text())
ffi.set_source(
    "recollect.indexes.kernels.native._native",
    '#include "constants.h"\n#include "slices.h"\n',
    sources=_files("*.c"),
    depends=[*_files("*.h"), "setup.py"],
    include_dirs=[str(_FOLDER)],
    define_macros=[("RC_SOURCES", f'"{_fingerprint}"'), *([("RC_CHECKED", "1")] if _checked else [])],
    extra_compile_args=[] if os.name == "nt" else _SANITIZERS if _checked else ["-O3"],
    extra_link_args=_SANITIZERS if _checked else [],
    # Without a compiler the package is installed nevertheless: NumPy gives the same results.
    optional=not _needed,
)


class _Build(build_ext):
    def build_extension(self, ext: Extension) -> None:
        """Compile; what an earlier build has left does not become a part of this one if that fails."""
        try:
            super().build_extension(ext)
        except BaseException:
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
            raise


def _readme() -> str:
    """Return the README for an index of packages, where links to other files of the repository would lead nowhere."""
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", Path("README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    setup(
        cffi_modules=["setup.py:ffi"],
        cmdclass={"build_ext": _Build},
        long_description=_readme(),
        long_description_content_type="text/markdown",
        # cffi builds for the stable ABI: one wheel for this and every later version of Python.
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )
