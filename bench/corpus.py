"""Texts and questions for every size: sentences from files of this machine, collected once and cached outside the
repository.

They come from the standard library and the installed packages, from Python under /usr/lib, and from the documentation,
manual and info pages in /usr/share (or from the folders in RECOLLECT_BENCH_TEXTS), in an order that depends only on the
sentences. If there are not enough, the rest are seeded variations: the first half of one sentence and the second half
of another. The result is deterministic for a given machine; nothing is downloaded, and no text is in the repository.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import platformdirs

from bench.sentences import sentences_of
from recollect.text.words import terms

CACHE_VARIABLE = "RECOLLECT_BENCH_CACHE"
TEXTS_VARIABLE = "RECOLLECT_BENCH_TEXTS"
_WORD = re.compile(r"[A-Za-z0-9]+(?:'[a-z]+)?")


def cache_folder() -> Path:
    """Where corpora, stores and environments of peers are kept: may be deleted at any time."""
    named = os.environ.get(CACHE_VARIABLE)
    folder = Path(named) if named else Path(platformdirs.user_cache_dir("recollect-bench", appauthor=False))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Corpus:
    """The texts of this machine.

    distinct  how many different sentences were found
    identity  a hash of them all, in hex
    """

    def __init__(self, file: Path, distinct: int, identity: str) -> None:
        self._file = file
        self.distinct = distinct
        self.identity = identity

    def texts(self, count: int) -> list[str]:
        """The first `count` texts: sentences, then variations. The texts of a smaller count are their beginning."""
        with self._file.open(encoding="ascii") as lines:
            out = [line.rstrip("\n") for line in islice(lines, count)]
        if len(out) < count:
            out += islice(varied(tuple(out)), count - len(out))  # of what was found, not of what is added
        return out

    def to_json(self) -> dict[str, Any]:
        return {"distinct_sentences": self.distinct, "corpus": self.identity[:16]}


def corpus() -> Corpus:
    """The corpus of this machine, gathered where it is not kept yet (a minute or two)."""
    named = os.environ.get(TEXTS_VARIABLE)
    folders = [Path(each) for each in named.split(os.pathsep)] if named else machine_folders()
    which = hashlib.blake2b("\n".join(map(str, folders)).encode(), digest_size=6).hexdigest()
    file, facts = (cache_folder() / f"sentences-{which}.{suffix}" for suffix in ("txt", "json"))
    if not facts.exists():
        print("gathering the sentences of this machine, once: a minute or two", file=sys.stderr)
        found = gathered(folders)
        text = "".join(f"{sentence}\n" for sentence in found)
        file.write_text(text, encoding="ascii")
        identity = hashlib.sha256(text.encode("ascii")).hexdigest()
        # Written last: while it is missing, what was gathered is not whole.
        facts.write_text(json.dumps({"distinct": len(found), "identity": identity}), encoding="ascii")
    known = json.loads(facts.read_text(encoding="ascii"))
    return Corpus(file, known["distinct"], known["identity"])


def machine_folders() -> list[Path]:
    """The folders where a machine has English prose."""
    return [
        Path(sysconfig.get_path("stdlib")),
        Path("/usr/lib"),
        *(Path("/usr/share") / n for n in ("doc", "man", "info")),
    ]


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder that may hold prose: of libraries only the Python."""
    libraries = folder in (Path(sysconfig.get_path("stdlib")), Path("/usr/lib"))
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            if (name.endswith(".py") or not libraries) and not path.is_symlink():
                yield path


def gathered(folders: Iterable[Path]) -> list[str]:
    """The distinct sentences of the files in the folders, in an order like a shuffle that depends on them alone."""
    found = {sentence for folder in folders for path in _files(folder) for sentence in sentences_of(path)}
    return sorted(found, key=lambda sentence: hashlib.blake2b(sentence.encode("ascii"), digest_size=8).digest())


def varied(sentences: Sequence[str], seed: int = 3) -> Iterator[str]:
    """Ever more texts that are none of the sentences: the first half of one and the second of another.

    Raises: ValueError when nothing new comes any more: the sentences are too few.
    """
    rng = random.Random(seed)
    seen = set(sentences)
    in_vain = 0
    while sentences and in_vain < 1000:
        one, other = (rng.choice(sentences).split() for _ in range(2))
        text = " ".join(one[: (len(one) + 1) // 2] + other[len(other) // 2 :])
        in_vain += 1
        if text not in seen:
            in_vain = 0
            seen.add(text)
            yield text
    raise ValueError(f"{len(sentences)} sentences are too few to mix more of: name more folders in {TEXTS_VARIABLE}")


def questions(texts: Sequence[str], count: int, seed: int = 2) -> list[str]:
    """Questions of 3 to 10 words, each of one text in another order, stop-words among them as people use them.

    At least one word is no stop-word, so that every question asks for something.
    """
    rng = random.Random(seed)
    out: list[str] = []
    while len(out) < count:
        words = _WORD.findall(rng.choice(texts))
        if len(words) < 3:
            continue
        question = " ".join(rng.sample(words, min(len(words), rng.randrange(3, 11))))
        if any(terms(question)):
            out.append(question)
    return out
