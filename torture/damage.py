"""The damage test: a store of 10,000 records is damaged, and then queried in every way.

A seed determines the damage. The check must then name it, unless no read touches the damaged bytes: then the contents
are unchanged, and the check is right to report nothing. Every read must return what the intact store returned, or raise
one of our errors. The rescue must save every record whose bytes are intact, unchanged, and name every other.

Three kinds of damage remove information without a trace in the file. A WAL that is cut or corrupted ends after its last
complete commit, as after a power cut: the store must then be in an earlier state. A page exchanged with another, and a
file combined with the WAL of another time, have valid checksums: there only the check and the rescue count.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, NamedTuple

from tests.exports import exported

from recollect import filters as f
from recollect.errors import RecollectError, StoreError
from recollect.ledger.merkle import PUBLIC_KEY, version_hash
from recollect.ledger.parts import stated_root
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.models.embedding.environment import NO_EMBEDDER
from recollect.stores.maintenance.rescue import rescue
from recollect.stores.sealing.secrets import secret_or_default
from recollect.stores.sqlite.encryption import keys_at
from recollect.stores.sqlite.pages import FilePages
from recollect.testing.machine import TickingClock
from torture.trials import Trial

RECORDS = 10_000
OTHER = "other"
_BRANCHES = {1: "default", 2: OTHER}
_WORDS = "lighthouse harbour window seat train garden recipe copper violin winter letter bridge".split()
Answers = dict[str, Any]


def items(count: int) -> list[dict[str, Any]]:
    """Things to remember, of every shape: long and short, with users, turns, tags, numbers and times."""
    rng = random.Random(count)
    out = []
    for number in range(count):
        item: dict[str, Any] = {
            "content": f"{' '.join(rng.sample(_WORDS, 4))} number {number}",
            "id": f"r{number}",
            "user": f"user {number % 7}",
            "importance": rng.random(),
        }
        match number % 10:
            case 3:
                item |= {"kind": "conversation", "conversation": f"c{number // 500}", "speaker": "ana"}
            case 5:
                item |= {"metadata": {"n": number, "list": [1, 2.5, None]}, "tags": ["five"], "entity": "e"}
            case 7 if number % 100 == 7:
                item["content"] += " and a long tail" * rng.randrange(10, 2000)
        out.append(item)
    return out


class Whole(NamedTuple):
    """The store before it is hurt: its folder, what it answers, and each record's canonical bytes by namespace.

    behind    the same before the commits that are only in the log
    versions  the hashes of what is live
    moments   the answers at other moments, of which there are copies: "earlier.db" and "later.db"
    ever      all canonical bytes that were live at any of the moments
    """

    folder: Path
    answers: Answers
    records: dict[str, dict[str, bytes]]
    behind: Answers
    versions: frozenset[bytes]
    moments: tuple[Answers, ...]
    ever: frozenset[bytes]


@cache
def whole() -> Whole:
    """The store, made once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-damage-"))
    Finalize(None, shutil.rmtree, (folder, True), exitpriority=0)  # workers do not ask atexit
    path = folder / "whole.db"
    ever: set[bytes] = set()
    with _open(path) as memory:
        memory.remember_all(items(RECORDS)[: RECORDS // 2])
        memory.namespace(OTHER).remember_all(items(50))
        earlier = answers(memory)
        ever |= _all_bytes(memory)
    shutil.copy(path, folder / "earlier.db")
    with _open(path) as memory:
        memory.remember_all(items(RECORDS))
        ever |= _all_bytes(memory)
        with memory.batch(actor="somebody", reason="spring clean, " * 100) as batch:
            for number in range(0, 300, 3):
                batch.update(f"r{number}", importance=0.5)
            for number in range(1, 100, 9):
                batch.forget(f"r{number}")
        memory.namespace(OTHER).remember_all(items(100))
        memory.recall("lighthouse")
        memory.grep("lighthouse and garden")
    with _open(path) as memory:
        behind = answers(memory)
        for number in range(20):
            memory.remember(f"a late letter {number}", id=f"late {number}", user="user 1")
        told = answers(memory)
        records = {name: _bytes(memory.namespace(name)) for name in memory.namespaces()}
        ever |= _all_bytes(memory)
        for each in folder.glob("whole.db*"):  # with its log, as a process leaves it that is killed
            if each.is_file() and not each.name.endswith("-shm"):
                shutil.copy(each, folder / each.name.replace("whole", "store"))
    shutil.copytree(folder / "whole.db.index", folder / "store.db.index")
    hashes = (version_hash(record_id, payload) for stored in records.values() for record_id, payload in stored.items())
    with _open(path) as memory:
        memory.remember_all(items(RECORDS + RECORDS // 10)[RECORDS:])
        ever |= _all_bytes(memory)
        memory.forget_where(f.user("user 6"))
        later = answers(memory)
        ever |= _all_bytes(memory)
    shutil.copy(path, folder / "later.db")
    return Whole(folder, told, records, behind, frozenset(hashes), (earlier, later), frozenset(ever))


def _open(path: Path) -> Memory:
    create = not path.exists()
    return open_memory(path, clock=TickingClock(), create=create, embedder=NO_EMBEDDER, key=PUBLIC_KEY)


def _bytes(memory: Memory) -> dict[str, bytes]:
    return {record.id: record.to_bytes() for record in memory.find()}


def _all_bytes(memory: Memory) -> set[bytes]:
    return {each for name in memory.namespaces() for each in _bytes(memory.namespace(name)).values()}


#: What is asked, by name. Each opens nothing and writes nothing.
QUESTIONS: dict[str, Callable[[Memory], Any]] = {
    "find": lambda memory: [record.hash for record in memory.find(order="id")],
    "find by user": lambda memory: [record.hash for record in memory.find(f.user("user 3"), limit=700)],
    "find by conversation": lambda memory: [record.hash for record in memory.find(f.conversation("c3"))],
    "find by entity": lambda memory: [record.hash for record in memory.find(f.entity("e") & f.kind("knowledge"))],
    "oldest": lambda memory: [record.hash for record in memory.find(limit=30, order="oldest")],
    "count": lambda memory: (memory.count(), memory.count(f.user("user 2")), memory.count(f.tag("five"))),
    "stats": lambda memory: {name: each for name, each in memory.stats().items() if name != "store"},
    "get": lambda memory: [
        record and record.hash for record in (memory.get(f"r{number}") for number in range(0, RECORDS, 101))
    ],
    "recall": lambda memory: [
        [(hit.record.hash, hit.score) for hit in memory.recall(question)]
        for question in ("garden lighthouse", "violin letter number 4321", "wimter recepie")
    ],
    "recall of a user": lambda memory: [hit.record.hash for hit in memory.recall("copper train", 5, f.user("user 4"))],
    "grep": lambda memory: [record.hash for record in memory.grep("violin and winter", 50)],
    "log": lambda memory: [commit.to_json() for commit in memory.changes()],
    "history": lambda memory: [commit.seq for commit in memory.changes(id="r3")],
    "export": lambda memory: exported(memory)[0],
    "namespaces": lambda memory: memory.namespaces(),
    "other": lambda memory: [record.hash for record in memory.namespace(OTHER).find(order="id")],
    "root": lambda memory: (memory.root, memory.seq, memory.namespace(OTHER).root),
    "root of the newest commit": lambda memory: [
        stated_root(commit.root.hash, commit.parts).hex() for commit in memory.log(limit=1)
    ],
}


def answers(memory: Memory) -> Answers:
    """The answer to each question, or the code of the error of ours that came instead. Raises: whatever else came."""
    out: Answers = {}
    for name, ask in QUESTIONS.items():
        try:
            out[name] = ask(memory)
        except RecollectError as error:
            out[name] = error
    return out


def wrong(told: Answers, *right: Answers) -> list[str]:
    """The questions that were answered, and not with an answer that is right."""
    return [
        name
        for name, answer in told.items()
        if not isinstance(answer, StoreError) and all(answer != each[name] for each in right)
    ]


# What is done to the store: each gives the name of what it did


def flip(rng: random.Random, path: Path) -> str:
    """Change a byte."""
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
    path.write_bytes(data)
    return "a byte is flipped"


def flip_in_header(rng: random.Random, path: Path) -> str:
    """Change a byte of SQLite's header or of the schema."""
    data = bytearray(path.read_bytes())
    data[rng.randrange(100 if rng.random() < 0.5 else 4096)] ^= rng.randrange(1, 256)
    path.write_bytes(data)
    return "a byte of the first page is flipped"


def flip_many(rng: random.Random, path: Path) -> str:
    """Change bytes all over."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.randrange(2, 200)):
        data[rng.randrange(4096, len(data))] ^= rng.randrange(1, 256)
    path.write_bytes(data)
    return "many bytes are flipped"


def zero(rng: random.Random, path: Path) -> str:
    """Fill some pages with zeros."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 1, 5, 50))):
        page = rng.randrange(len(data) // 4096)
        data[page * 4096 : (page + 1) * 4096] = bytes(4096)
    path.write_bytes(data)
    return "pages are zeroed"


def cut(rng: random.Random, path: Path) -> str:
    """Cut the end off."""
    size = path.stat().st_size
    os.truncate(path, rng.choice((rng.randrange(size), size - rng.randrange(1, 20_000), size // 4096 * 2048)))
    return "the file is cut"


def cut_beside_log(rng: random.Random, path: Path) -> str:
    """Cut the end off and leave the log as it is, as a copy does that breaks off: in a page, or between two."""
    pages = path.stat().st_size // 4096
    page = rng.choice((rng.randrange(pages), rng.randrange(30), pages - 1))
    os.truncate(path, page * 4096 + rng.choice((0, rng.randrange(4096), rng.randrange(4096), 3600)))
    return "the file is cut beside its log"


def mix(rng: random.Random, path: Path) -> str:
    """Put the file of another moment beside the log, whole or in part."""
    other = (whole().folder / rng.choice(("earlier.db", "later.db"))).read_bytes()
    data = path.read_bytes()
    page = 4096 * rng.randrange(1, min(len(data), len(other)) // 4096)
    path.write_bytes(rng.choice((other, other[:page] + data[page:], data[:page] + other[page:])))
    return "two moments are mixed"


def swap(rng: random.Random, path: Path) -> str:
    """Let two pages change places."""
    data = bytearray(path.read_bytes())
    one, other = (4096 * each for each in rng.sample(range(len(data) // 4096), 2))
    data[one : one + 4096], data[other : other + 4096] = data[other : other + 4096], data[one : one + 4096]
    path.write_bytes(data)
    return "two pages are swapped"


def hurt_log(rng: random.Random, path: Path) -> str:
    """Cut the log, or change a byte of it."""
    log = path.with_name(path.name + "-wal")
    if rng.random() < 0.5:
        os.truncate(log, rng.randrange(log.stat().st_size))
    else:
        flip(rng, log)
    return "the log is hurt"


def hurt_index(rng: random.Random, path: Path) -> str:
    """Do any of it to a file of the index."""
    files = sorted(each for each in Path(f"{path}.index").iterdir() if each.stat().st_size > 4096)
    rng.choice((flip, zero, cut))(rng, rng.choice(files))
    return "a file of the index is hurt"


Hurt = Callable[[random.Random, Path], str]
HURTS: tuple[Hurt, ...] = (
    *(flip, flip, flip_in_header, flip_many, zero, zero),
    *(cut, cut_beside_log, mix, swap, hurt_log, hurt_index),
)
#: After these the log is still beside the file, with the newest commits.
_WITH_LOG = (cut_beside_log, mix, hurt_log, hurt_index)


def hurt_copy(seed: int, folder: Path) -> tuple[Path, Hurt, str]:
    """A copy of the store, hurt as the seed says; what was done, and its name."""
    rng = random.Random(seed)
    hurt = HURTS[rng.randrange(len(HURTS))]
    path = folder / "store.db"
    for each in ("store.db", "store.db-wal"):
        if hurt not in _WITH_LOG and each.endswith("-wal"):
            continue  # the log would cover some of it; what it alone holds is not there then
        shutil.copy(whole().folder / each, folder / each)
    shutil.copytree(whole().folder / "store.db.index", folder / "store.db.index")
    for file in whole().folder.glob("store.db.keys"):  # of an encrypted one
        shutil.copy(file, folder)
    return path, hurt, hurt(rng, path)


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """One hurt, and everything that is asked of the store then."""
    path, hurt, where = hurt_copy(seed, folder)
    yield Trial(seed, where, problem_in(path, folder, hurt))


def problem_in(path: Path, folder: Path, hurt: Hurt) -> str:
    """What is wrong with how a hurt store is told of, read and rescued; "" where nothing is."""
    right: tuple[Answers, ...] = (whole().answers, whole().behind) if hurt is hurt_log else (_right(hurt),)
    if hurt is mix:
        right += whole().moments
    before = {each.name: each.read_bytes() for each in path.parent.glob("store.db*") if each.is_file()}
    problem = _rescue_problem(path, folder / "rescued.db", hurt, right)
    if problem:
        return problem
    after = {each.name: each.read_bytes() for each in path.parent.glob("store.db*") if each.is_file()}
    if after != before:
        return "the rescue touched the old store"
    named, told, problem = _read(path, hurt, right)
    if problem or named or hurt is hurt_log:
        return problem
    changed = [name for name, answer in told.items() if all(answer != each[name] for each in right)]
    return f"the check found nothing, but {changed} are not as they were" if changed else ""


def _right(hurt: Hurt) -> Answers:
    return whole().answers if hurt in _WITH_LOG else whole().behind


def _read(path: Path, hurt: Hurt, right: tuple[Answers, ...]) -> tuple[bool, Answers, str]:
    """Whether the check names something, what is answered, and what is wrong with that."""
    before = _file_and_wal(path)
    try:
        memory = _open(path)
    except StoreError:
        return True, {}, "" if _file_and_wal(path) == before else "an opening that was refused changed the file"
    with memory:
        told = answers(memory)
        try:
            named = memory.check() != []
        except Exception as error:  # noqa: BLE001 - whatever it is, a check must not raise it
            return False, told, f"the check raised {error!r}"
    if hurt in (swap, mix) and named:
        return named, told, ""
    if hurt is hurt_log:
        return named, told, log_problem(told)
    mistaken = wrong(told, *right)
    return named, told, f"{mistaken} were answered otherwise than before" if mistaken else ""


def _file_and_wal(path: Path) -> tuple[bytes, bytes]:
    wal = path.with_name(path.name + "-wal")
    return path.read_bytes(), wal.read_bytes() if wal.exists() else b""


def log_problem(told: Answers) -> str:
    """After the log was hurt the store must be one that it was: with the first so many of its late commits."""
    first, last = whole().behind, whole().answers
    log = told["log"]
    if isinstance(log, StoreError):
        return ""
    if not len(first["log"]) <= len(log) or log != last["log"][: len(log)]:
        return "the log is not the beginning of what it was"
    newest = told["root of the newest commit"]
    return "" if [told["root"][0]] == newest else "the root is not that of the newest commit"


def _rescue_problem(path: Path, new: Path, hurt: Hurt, right: tuple[Answers, ...]) -> str:
    """What is wrong with the rescue of a hurt store."""
    stored = {name: dict(records) for name, records in whole().records.items()}
    if hurt not in _WITH_LOG:
        for record_id in [each for each in stored["default"] if each.startswith("late")]:
            del stored["default"][record_id]
    try:
        report = rescue(path, new)
    except StoreError as error:
        broken_off = hurt in (cut, cut_beside_log) and path.stat().st_size < 100_000
        return "" if broken_off else f"the rescue gave up: {error}"
    lost = {(each.namespace, each.name) for each in report.lost if each.what == "record"}
    with _open(new) as memory:
        if problems := memory.check():
            return f"the rescued store is not whole: {problems[:3]}"
        saved = {name: _bytes(memory.namespace(name)) for name in memory.namespaces()}
    if hurt is mix:
        odd = {each for records in saved.values() for each in records.values()} - whole().ever
        return f"{len(odd)} records were saved that never were" if odd else ""
    for number, name in _BRANCHES.items():
        if any(each.what == "namespace" and each.name == f"namespace-{number}" for each in report.lost):
            saved[name] = saved.pop(f"namespace-{number}", {})
            lost |= {(name, record_id) for of, record_id in lost if of == f"namespace-{number}"}
    there, named = _there(path)
    for name, records in stored.items():
        for record_id, payload in records.items():
            got = saved.get(name, {}).get(record_id)
            late = hurt is hurt_log and record_id.startswith("late")
            if got is not None and got != payload and (name, record_id) not in lost:
                return f"record {record_id!r} was saved otherwise than it was"
            if got is None and not late and payload in there:
                return f"record {record_id!r} is whole and was not saved"
            if got is None and not late and (name, record_id) not in lost and (name, record_id) in named:
                return f"record {record_id!r} was neither saved nor named as lost"
        unlike = saved.get(name, {}).keys() - records.keys() - {each for namespace, each in lost if namespace == name}
        if unlike:
            return f"records {sorted(unlike)[:3]} were saved, which were not live"
    return ""


def _there(path: Path) -> tuple[set[bytes], set[tuple[str, str]]]:
    """The payloads beside which their hash stands, page by page, and the ids that heads and changes name."""
    log = path.with_name(path.name + "-wal")
    keys = keys_at(str(path), secret_or_default(None))
    cipher = None if keys is None else keys.pages("db")
    pages = FilePages(path.read_bytes(), log.read_bytes() if log.exists() else b"", cipher)
    payloads: set[bytes] = set()
    names: set[tuple[str, str]] = set()
    for number in range(1, pages.count + 1):
        for row in pages.rows(number):
            match row.values:
                case (None, int(), bytes(digest), bytes(payload)) if digest in whole().versions:
                    payloads.add(payload)
                case (None, int(branch), str(name), *rest) | (int(branch), int(), int(), str(name), *rest):
                    if len(rest) in (3, 14) and pages.intact(number):
                        names.add((_BRANCHES.get(branch, ""), name))
    return payloads, names
