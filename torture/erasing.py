"""The erasure test: a process is killed while it erases; what it acknowledged to be erased is in no file afterwards.

A seed determines steps that write to each part of a memory and to branches of it, ask and erase, so that texts are in
the database, its WAL, index files, the full-text index and the vectors. An erasure by a filter reaches all parts, one
after the other. A child process executes them and kills itself at the n-th operation of a kind on a file. Then the
store is opened, which finishes what the child has left, and closed, and all files are searched for the bytes of the
texts. An erasure that was not acknowledged has taken effect completely or not at all; one of all parts, in each of the
first of them and in none of the others.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from recollect import filters as f
from recollect.errors import RecollectError, UnknownRecordError
from recollect.ledger.commits import MAIN
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.models.embedding.hashed import Hashed
from recollect.testing.loopback import beside
from torture.power import quiet, small
from torture.recording import recorded
from torture.trials import Trial

NAME = "erased.db"
#: Number of steps of a run, and of kills for each seed.
STEPS, KILLS = 40, 8
_IDS, _BRANCHES = 8, 3
#: The parts of a memory, in the order in which they are erased.
PARTS = ("records", "keys", "nodes", "sdrs", "terms")
#: Steps that erase: a record, or everything of a user.
ERASING = ("erase", "redact", "erase where", "redact where")
_WORD = re.compile("secret[0-9]{4}word")


class Step(NamedTuple):
    """A step: what it does to which record, or for which user, and the number that makes its text unique."""

    kind: str
    record_id: str
    number: int

    @property
    def text(self) -> str:
        """The text that it writes: a word that no other text has, and others so that it may need several pages."""
        return " ".join([self.word, *(f"harbour {part}" for part in range(self.number % 7 * 200))])

    @property
    def word(self) -> str:
        """The word that no other text has."""
        return f"secret{self.number:04d}word"

    @property
    def part(self) -> str:
        """The part that it writes to."""
        return PARTS[0] if self.kind in ("write", "elsewhere") else PARTS[1 + self.number % (len(PARTS) - 1)]

    @property
    def branch(self) -> str:
        """The branch that it writes to."""
        return f"b{self.number % _BRANCHES}" if self.kind in ("branch", "elsewhere") else MAIN

    @property
    def key(self) -> tuple[str, str, str]:
        """What it writes: the part, the user, and the name, under which some parts have one text, others many."""
        name = {"records": self.record_id, "keys": "plan", "terms": "term"}.get(self.part, str(self.number))
        return self.part, self.record_id, name


def steps_of(seed: int) -> list[Step]:
    """The steps of a seed: enough records for an index file, then a mixture that ends with an erasure."""
    rng = random.Random(seed)
    kinds = ["write", "write", "elsewhere", "elsewhere", "beside", "beside", "forget", "ask", "embed", *ERASING]
    mixed = [Step(rng.choice(kinds), f"r{rng.randrange(_IDS)}", number) for number in range(100, 100 + STEPS)]
    first = [Step("write", f"r{number}", number) for number in range(_IDS)]
    first += [Step("branch", "", number) for number in range(_BRANCHES)]
    return [*first, *mixed, Step("erase", "r0", 999)]


def play(step: Step, memory: Memory) -> None:
    """Do a step."""
    match step.kind:
        case "write":
            memory.remember(step.text, id=step.record_id, user=step.record_id, if_exists="update")
        case "branch":
            memory.branch(step.branch)
        case "elsewhere":
            memory.on(step.branch).remember(step.text, id=step.record_id, user=step.record_id, if_exists="update")
        case "forget" if memory.changes(id=step.record_id, limit=1):
            memory.forget(step.record_id)
        case "ask":
            memory.recall("which secret of the harbour?")
            memory.grep("harbour")
        case "embed":
            memory.embed_all()
        case "erase" | "redact":
            with suppress(UnknownRecordError):
                memory.erase(step.record_id, redact=step.kind == "redact")
        case "erase where" | "redact where":
            memory.erase(f.user(step.record_id), redact=step.kind == "redact where")
        case "beside":
            _write_beside(step, memory.scoped(user=step.record_id))


def _write_beside(step: Step, memory: Memory) -> None:
    text, (part, _, name) = f"{step.word} of the harbour", step.key
    match part:
        case "keys":
            memory.keyed.write(name, text.encode())
        case "nodes":
            memory.outline.ingest({"type": "HEADLINE", "properties": {"ID": name}, "raw_content": text})
        case "sdrs":
            memory.sdr.store(text)
        case _:
            memory.glossary.memorize(name, text, "", agent_id="pilot")


class State:
    """What must be in the files after some steps.

    live    the words of what is live in the main branch, by part, and of the records of the other ones, by name
    stored  the words of all versions that were not erased
    erased  the words of those that were

    Args:
        steps: The steps.
        reached: How many parts the last step has erased, if it erases all.
    """

    def __init__(self, steps: list[Step], reached: int = len(PARTS)) -> None:
        live: dict[tuple[str, str, str], str] = {}
        elsewhere: dict[str, dict[tuple[str, str, str], str]] = {}
        self.erased: set[str] = set()
        versions: dict[tuple[str, str, str], set[str]] = {}

        def erase(parts: tuple[str, ...], user: str) -> None:
            for key in [each for each in versions if each[0] in parts and each[1] == user]:
                for each in (live, *elsewhere.values()):
                    each.pop(key, None)
                self.erased |= versions.pop(key)

        for number, step in enumerate(steps, 1):
            match step.kind:
                case "write" | "beside":
                    live[step.key] = step.word
                    versions.setdefault(step.key, set()).add(step.word)
                case "branch":
                    elsewhere[step.branch] = {key: word for key, word in live.items() if key[0] == PARTS[0]}
                case "elsewhere":
                    elsewhere[step.branch][step.key] = step.word
                    versions.setdefault(step.key, set()).add(step.word)
                case "forget":
                    live.pop((PARTS[0], step.record_id, step.record_id), None)
                case "erase" | "redact":
                    erase(PARTS[:1], step.record_id)
                case "erase where" | "redact where":
                    erase(PARTS if number < len(steps) else PARTS[:reached], step.record_id)
        self.live = {part: sorted(word for key, word in live.items() if key[0] == part) for part in PARTS}
        self.live |= {name: sorted(words.values()) for name, words in elsewhere.items()}
        self.stored = set().union(*versions.values())


def live_words(memory: Memory) -> dict[str, list[str]]:
    """The words of what is live, by part, and in the other branches."""
    places = {part: memory if part == PARTS[0] else beside(memory, part) for part in PARTS}
    places |= {each.name: memory.on(each.name) for each in memory.branches() if each.name != MAIN}
    return {
        name: sorted(word for each in found.find() for word in set(_WORD.findall(each.text)))
        for name, found in places.items()
    }


class _Child:
    """The run, in the child process. It kills itself when it comes to an operation of a name for the n-th time."""

    def __init__(self, steps: list[Step], folder: Path, pipe: int, at: tuple[str, int]) -> None:
        self._steps, self._folder, self._pipe, self._at = steps, folder, pipe, at
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def _say(self, line: str) -> None:
        os.write(self._pipe, f"{line}\n".encode())

    def _on_file(self, kind: str, path: str) -> None:
        name = f"{kind} {Path(path).suffix or 'the folder'}"
        with self._lock:
            self._counts[name] += 1
            if (name, self._counts[name]) == self._at:
                os.kill(os.getpid(), signal.SIGKILL)

    def run(self) -> None:
        with small(), quiet(), recorded(self._folder, self._on_file):
            memory = open_memory(self._folder / NAME, embedder=Hashed())
            for number, step in enumerate(self._steps):
                if step.kind in ERASING:
                    self._say(f"erasing {json.dumps(self._counts)}")
                play(step, memory)
                self._say(f"done {number + 1}")
            memory.close()


def run(steps: list[Step], folder: Path, at: tuple[str, int] = ("", 0)) -> tuple[int, list[dict[str, int]]]:
    """Run a child; return how many steps it finished, and how often it had come to what when each erasure began."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            _Child(steps, folder, writing, at).run()
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    done, begun = 0, []
    with os.fdopen(reading, encoding="utf-8") as lines:
        for line in lines:
            what, _, value = line.partition(" ")
            if what == "done":
                done = int(value)
            elif line.endswith("\n"):
                begun.append(json.loads(value))
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, "the child failed"
    return done, begun


def problem_in(folder: Path, steps: list[Step], done: int) -> str:
    """What is wrong with the files that a child left; "" if nothing is."""
    reached = range(len(PARTS) + 1) if done < len(steps) else ()
    allowed = [State(steps[:done]), *(State(steps[: done + 1], each) for each in reached)]
    if not (folder / NAME).exists():
        return "the file is gone" if done else ""
    try:
        with open_memory(folder / NAME, embedder=Hashed()) as memory:
            if problems := memory.check():
                return "; ".join(problems)
            live = live_words(memory)
    except RecollectError as error:
        return f"{type(error).__name__}: {error}"
    states = [state for state in allowed if state.live == live]
    if not states:
        return f"what is live is not what is after {done} steps, nor after one more"
    data = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    if missing := [word for word in allowed[0].stored & allowed[-1].stored if word.encode() not in data]:
        return f"{missing} were not erased and are in no file"
    if left := [word for word in allowed[0].erased if word.encode() in data]:
        return f"{left} were acknowledged to be erased and are still in a file"
    under_way = allowed[-1].erased - allowed[0].erased
    found = {word for word in under_way if word.encode() in data}
    return "" if found in [under_way - state.erased for state in states] else f"of {under_way}, {found} were not erased"


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """A run that ends well, and the same run, killed at operations from the beginning of an erasure on."""
    rng = random.Random(seed)
    steps = steps_of(seed)
    whole = folder / "whole"
    whole.mkdir()
    done, begun = run(steps, whole)
    yield Trial(seed, "no kill", problem_in(whole, steps, done))
    for number in range(KILLS):
        place = folder / f"kill-{number}"
        place.mkdir()
        # From the beginning of an erasure to that of the next one, if anything was done there.
        before = rng.choice([at for at in range(len(begun) - 1) if begun[at] != begun[at + 1]])
        names = sorted(name for name in begun[before + 1] if begun[before + 1][name] > begun[before].get(name, 0))
        name = rng.choice(names)
        nth = rng.randrange(begun[before].get(name, 0), begun[before + 1][name]) + 1
        done, _ = run(steps, place, (name, nth))
        where = "inside an erasure" if done < len(steps) and steps[done].kind in ERASING else "elsewhere"
        with quiet():
            problem = problem_in(place, steps, done)
        yield Trial(seed, f"{where}: {name}", problem and f"kill {number}: {problem}")
        shutil.rmtree(place)
