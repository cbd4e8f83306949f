"""Test the adapters for frameworks, each in an environment of its own: `make test-compat`, `make test-compat-newest`.

An environment is made once for its versions (requirements/compat.toml) and kept in .venv-compat. In it run our tests of
the adapter, with the page about it, and then the tests of the framework's owner with our class in place of theirs. They
are fetched from the owner's source distribution and never copied into the project; those that look into the owner's own
storage are listed by name with the reason (tests/frameworks/*/left_out.txt), and each of them must fail.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".venv-compat"
TESTS = ROOT / "tests" / "frameworks"
#: The settings of owners' tests, in place of those of this project.
_SETTINGS = "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"


def main() -> int:
    """Test the frameworks that are named, or all; return 0 if all tests pass."""
    frameworks: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "requirements" / "compat.toml").read_text("utf-8"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="FRAMEWORK", help=f"of {', '.join(frameworks)}; default: all")
    parser.add_argument("--newest", action="store_true", help="with the newest versions instead of those of the file")
    stated = parser.parse_args()
    if unknown := sorted(set(stated.names) - frameworks.keys()):
        parser.error(f"unknown framework {unknown[0]}: there are {', '.join(frameworks)}")
    failed = []
    for name in stated.names or frameworks:
        print(f"== {name}", flush=True)
        python = environment(name, frameworks[name], newest=stated.newest)
        if not (_ours(python, frameworks[name]) and _owners(python, name, frameworks[name], newest=stated.newest)):
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


def environment(name: str, framework: dict[str, Any], *, newest: bool) -> Path:
    """Return the Python of the environment of a framework. It is made if there is none for these versions."""
    wanted = [re.sub(r"[=<>~!].*", "", each) if newest else each for each in framework["packages"]]
    ours = f"{ROOT}[{','.join(framework['extras'])}]"
    stated = repr((sorted(wanted), ours, (ROOT / "pyproject.toml").read_text("utf-8"), _base_python()))
    folder = FOLDER / (f"{name}-newest" if newest else f"{name}-{hashlib.sha256(stated.encode()).hexdigest()[:12]}")
    python = folder / "bin" / "python"
    if (folder / "made").exists() and not newest:
        return python
    for old in FOLDER.glob(f"{name}-newest" if newest else f"{name}-[0-9a-f]*"):
        shutil.rmtree(old)
    subprocess.run([_base_python(), "-m", "venv", str(folder)], check=True)
    quiet = ("--quiet", "--disable-pip-version-check")
    install = [str(python), "-m", "pip", "install", *quiet, *(["--upgrade"] if newest else [])]
    subprocess.run([*install, *wanted, "--editable", ours], check=True)
    (folder / "made").touch()
    return python


def _base_python() -> str:
    """Return a Python whose SQLite loads extensions, which stores of other owners need, or else this one."""
    probe = (
        "import sqlite3, sys; sys.exit(sys.version_info < (3, 11) or not hasattr(sqlite3.Connection, 'load_extension'))"
    )
    for each in (sys.executable, "/usr/bin/python3"):
        if Path(each).exists() and subprocess.run([each, "-c", probe], capture_output=True).returncode == 0:
            return str(Path(each).resolve()) if each != sys.executable else each
    return sys.executable


def _ours(python: Path, framework: dict[str, Any]) -> bool:
    return subprocess.run([python, "-m", "pytest", str(TESTS / framework["folder"])], cwd=ROOT).returncode == 0


def _owners(python: Path, name: str, framework: dict[str, Any], *, newest: bool) -> bool:
    """Run the tests of the owner, and then those that are left out: each of these must fail.

    Some owners publish tests for stores of others as classes, which `suite` derives from.
    """
    if "suite" in framework:
        (folder := FOLDER / "owners" / name).mkdir(parents=True, exist_ok=True)
        (folder / "pytest.ini").write_text(_SETTINGS, "utf-8")
        suite = TESTS / framework["folder"] / framework["suite"]
        command = [str(python), "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-c", str(folder / "pytest.ini")]
        command += ["--confcutdir", str(TESTS)]
        print(f"-- the suite of {framework['of']}", flush=True)
        variables = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run([*command, str(suite)], cwd=ROOT, env=variables).returncode == 0
    if "owner" not in framework:
        return True
    stated = framework["owner"].partition("==")[0] if newest else framework["owner"]
    folder = _fetched(python, name, stated, framework["fetch"])
    plugins = TESTS / framework["folder"]
    variables = os.environ | {"LEFT_OUT": str(plugins / "left_out.txt"), "PYTHONPATH": f"{plugins}:{TESTS}"}
    command = [str(python), "-m", "pytest", "-q", "-p", "owner", "-p", "left_out", "-p", "no:cacheprovider"]
    command += ["-c", "pytest.ini", *framework["run"]]
    print(f"-- the tests of {stated}", flush=True)
    good = subprocess.run(command, cwd=folder, env=variables).returncode == 0
    only = subprocess.run(command, cwd=folder, env=variables | {"LEFT_OUT_ONLY": "1"}, capture_output=True, text=True)
    summary = only.stdout.strip().rpartition("\n")[2]
    print(f"-- those that are left out: {summary}", flush=True)
    return good and " passed" not in summary


def _fetched(python: Path, name: str, stated: str, fetch: list[str]) -> Path:
    """Return a folder with files of a source distribution, whose paths begin with one of some beginnings."""
    sdists, folder = FOLDER / "sdists" / name, FOLDER / "owners" / name
    shutil.rmtree(sdists, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    download = [str(python), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*download, "--no-binary", ":all:", "--dest", str(sdists), stated], check=True)
    (archive,) = sdists.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            path = member.name.partition("/")[2]
            if member.isfile() and path.startswith(tuple(fetch)):
                member.name = path
                tar.extract(member, folder, filter="data")
    (folder / "pytest.ini").write_text(_SETTINGS, "utf-8")
    return folder


if __name__ == "__main__":
    sys.exit(main())
