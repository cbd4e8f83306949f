"""Store real Org and Markdown files of Debian packages and write them back: `make round-trip`.

It needs Debian's apt-get and dpkg-deb and their package lists, and fetches about 15 MB into a folder outside the
repository. Each file goes through a memory: `ingest_text`, `to_text`, and both again, and once more with the line ends
of Windows. It fails if a text does not come back to the byte, or a tree is read back differently.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import recollect
from recollect.errors import RecollectError

#: Packages of Debian 12 with many files in Org, and some with Markdown.
PACKAGES = (
    "cl-postmodern ddskk elpa-dap-mode elpa-magit elpa-magit-todos elpa-org-make-toc elpa-pyim elpa-taxy elpa-treemacs "
    "elpa-with-editor euslisp-dev fvwm-crystal golang-github-niklasfasching-go-org-dev mu4e node-mj-context-menu "
    "profile-sync-daemon python3-debiancontributors sisu "
    "docker-doc iredis node-jose r-cran-recipes"
).split()
_FORMATS = {".org": "org", ".md": "markdown"}


def fetch(folder: Path) -> None:
    """Download and unpack the packages that the folder lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in PACKAGES if not (folder / name).is_dir()]
    if missing:
        subprocess.run(["apt-get", "download", "--quiet", "--quiet", *missing], cwd=folder, check=True)
    for name in missing:
        (archive,) = folder.glob(f"{name}_*.deb")
        subprocess.run(["dpkg-deb", "--extract", str(archive), str(folder / name)], check=True)
        archive.unlink()


def files(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the format and the text of each file; equal files once."""
    seen = set()
    for path in sorted(folder.rglob("*")):
        name = path.name.removesuffix(".gz")
        if path.is_symlink() or not path.is_file() or Path(name).suffix not in _FORMATS:
            continue
        data = gzip.decompress(path.read_bytes()) if path.name != name else path.read_bytes()
        if data in seen:
            continue
        seen.add(data)
        try:
            yield str(path.relative_to(folder)), _FORMATS[Path(name).suffix], data.decode("utf-8")
        except UnicodeDecodeError:
            print(f"not UTF-8, left out: {path.relative_to(folder)}")


def of_windows(text: str) -> str:
    """Return a text with CR LF at the end of each line."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def problems(text: str, form: str, name: str) -> list[str]:
    """Return what went wrong with a file that was stored, written back and stored again."""
    out = []
    # A memory of its own for each, as the same ID may be in two files.
    with recollect.open(":memory:") as memory:
        try:
            root = memory.outline.ingest_text(text, form, name).root
            written = memory.outline.to_text(root, form)
            again = memory.outline.ingest_text(written, form, name)
        except RecollectError as error:
            return [str(error)]
        if written != text:
            out.append("another text is written")
        if again.added or again.changed or again.moved or again.removed:
            out.append("the text that was written reads back to another tree")
        memory.outline.ingest_text(of_windows(text), form, name)
        if memory.outline.to_text(root, form) != of_windows(text):
            out.append("with the line ends of Windows, another text is written")
    return out


def main() -> int:
    """Run the round trip."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description="The round trip of outlines of Debian packages.")
    parser.add_argument("folder", type=Path, nargs="?", default=cache / "recollect-round-trip")
    folder = parser.parse_args().folder
    fetch(folder)
    counts: Counter[str] = Counter()
    failed = []
    for name, form, text in files(folder):
        counts[form] += 1
        failed += [f"{name}: {problem}" for problem in problems(text, form, name)]
    print(", ".join(f"{count} files of {form}" for form, count in sorted(counts.items())))
    print("\n".join(failed) or "every file came back to the byte")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
