"""Stores that are built once for a size and cached, so that a measurement can be repeated quickly.

The name of a store contains everything it depends on: records, version, a hash of the source of the package and one of
the texts. After a change of the code it is rebuilt; the newest few of each kind and size are kept. It is written in
batches with durability "normal", and queried once, so that the files for the next process exist.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import recollect
from bench.corpus import Corpus, cache_folder
from bench.dialogues import Dialogues
from bench.measuring import told

BATCH = 10_000
#: In a store for filters: user -> how many of each thousand records. The rest are of another user.
SHARES = {"one": 1, "ten": 10, "hundred": 100, "half": 500}
PER_NAMESPACE = 100
#: Stores of one kind that stay, so that two versions of the code can be measured by turns.
KEPT = 3

UsageTotals = Callable[[recollect.Memory], None]


def source_hash() -> str:
    """A hash of the package's source."""
    folder = Path(recollect.__file__).parent
    out = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            out.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return out.hexdigest()[:12]


def kept(kind: str, identity: str, fill: UsageTotals) -> Path:
    """The path of a store of this kind, built where it is not kept."""
    folder = cache_folder() / "stores"
    key = f"{recollect.__version__}-{source_hash()}-{identity[:12]}"
    wanted = folder / kind / key
    path = wanted / "memory.db"
    if not wanted.exists():
        building = folder / kind / f"{key}.building-{os.getpid()}"
        building.mkdir(parents=True)
        with told(f"building the store {kind}"), recollect.open(building / path.name, durability="normal") as memory:
            fill(memory)
        building.rename(wanted)
        for old in sorted(wanted.parent.iterdir(), key=lambda each: each.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old)
    return path


def plain(corpus: Corpus, records: int) -> Path:
    """A store of the corpus's first texts."""

    def fill(memory: recollect.Memory) -> None:
        texts = corpus.texts(records)
        for at in range(0, records, BATCH):
            memory.remember_all(texts[at : at + BATCH])
        memory.recall(texts[0])

    return kept(f"plain-{records}", corpus.identity, fill)


#: The lengths of synthetic conversations and their sessions, in turns.
PER_CONVERSATION, PER_SESSION = 500, 25


def of_conversations(corpus: Corpus, records: int) -> Path:
    """A store of the same texts, as turns of conversations between two speakers."""

    def turn(text: str, place: int) -> dict[str, Any]:
        conversation = f"c{place // PER_CONVERSATION}"
        return {
            "content": text,
            "kind": "conversation",
            "conversation": conversation,
            "session": f"{conversation}/{place % PER_CONVERSATION // PER_SESSION}",
            "speaker": ("Ana", "Bob")[place % 2],
            "id": f"t{place}",
        }

    def fill(memory: recollect.Memory) -> None:
        texts = corpus.texts(records)
        for at in range(0, records, BATCH):
            memory.remember_all([turn(text, place) for place, text in enumerate(texts[at : at + BATCH], at)])
        memory.recall(texts[0])

    return kept(f"conversations-{records}", corpus.identity, fill)


def of_dialogues(source: Dialogues, records: int, namespaces: int = 1) -> Path:
    """A store of conversations in one namespace, or each in one of several (`namespace_of`)."""

    def fill(memory: recollect.Memory) -> None:
        turns = source.turns(records)
        number = {name: at for at, name in enumerate(dict.fromkeys(turn.conversation for turn in turns))}
        stored: dict[int, list[dict[str, Any]]] = {}
        for at, turn in enumerate(turns):
            stored.setdefault(number[turn.conversation] % namespaces, []).append(
                {
                    "kind": "conversation",
                    "id": f"t{at}",
                    "position": at,
                    "content": turn.text,
                    "conversation": turn.conversation,
                    "session": turn.session,
                    "speaker": turn.speaker,
                }
            )
        for of, items in stored.items():
            space = memory.namespace(namespace_of(of)) if namespaces > 1 else memory
            for at in range(0, len(items), BATCH):
                space.remember_all(items[at : at + BATCH])
            space.recall(items[0]["content"])

    several = f"-{namespaces}" if namespaces > 1 else ""
    return kept(f"dialogues-{records}{several}", source.identity, fill)


def namespace_of(number: int) -> str:
    """The name of one of several namespaces."""
    return f"agent-{number}"


def user_of(place: int) -> str:
    """The user of the record at a place, so that each user of `SHARES` has its share of every thousand.

    >>> [user_of(place) for place in (0, 1, 10, 11, 111, 610, 611)]
    ['one', 'ten', 'ten', 'hundred', 'half', 'half', 'rest']
    """
    left = place % 1000
    for user, share in SHARES.items():
        if left < share:
            return user
        left -= share
    return "rest"


def with_users(corpus: Corpus, records: int) -> Path:
    """A store of the same texts, whose records have users, also as tags and in the metadata, and importance."""

    def fill(memory: recollect.Memory) -> None:
        texts = corpus.texts(records)
        for at in range(0, records, BATCH):
            batch: list[dict[str, Any]] = [
                {
                    "content": text,
                    "user": (user := user_of(place)),
                    "tags": (user,),
                    "metadata": {"from": user, "place": place},
                    "importance": place % 100 / 100,
                }
                for place, text in enumerate(texts[at : at + BATCH], at)
            ]
            memory.remember_all(batch)
        memory.recall(texts[0])

    return kept(f"filters-{records}", corpus.identity, fill)


def namespace_texts(texts: list[str], number: int) -> list[str]:
    """The texts of a namespace: its hundred of them, from the front again where there are too few."""
    at = number * PER_NAMESPACE
    return [texts[place % len(texts)] for place in range(at, at + PER_NAMESPACE)]


def with_namespaces(corpus: Corpus, namespaces: int) -> Path:
    """A store of so many namespaces, named by their numbers."""

    def fill(memory: recollect.Memory) -> None:
        texts = corpus.texts(namespaces * PER_NAMESPACE)
        for number in range(namespaces):
            memory.namespace(str(number)).remember_all(namespace_texts(texts, number))

    return kept(f"namespaces-{namespaces}", corpus.identity, fill)
