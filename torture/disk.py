"""A simulated disk after a power cut: synced data is there, and of the rest whatever the disk had written.

A run is a list of events. A `Disk` applies them one by one, and `cut` returns what its files could be if the power
failed at that point, in one of several ways:

    lost        no data that was not synced is there
    kept        all data is there
    torn        the disk wrote in order and stopped at some point: within a write, between two sectors
    reordered   the disk wrote any subset, and of a write any sectors
    mixed       each file in another of these ways

The entries of a folder are synced separately, as in POSIX: a synced file may still have no name. Renaming is atomic. A
torn write does not affect adjacent bytes (SQLite calls this powersafe overwrite, and assumes it on this system).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

MODES = ("lost", "kept", "torn", "reordered", "mixed")
#: A disk writes so many bytes as a whole, or not.
SECTOR = 512
#: The number of a folder, where a file would have its own.
FOLDER = -1


class Event(NamedTuple):
    """Something that was done.

    kind    write, truncate and sync of a file; name, which puts a file (None: nothing) at each of some paths;
            sync_folder; and acknowledge, which tells that something was told to be durable
    file    its number, which stays the same whatever its name
    at      where it was written, how long it is now, or the seq that was acknowledged; of what is synced, how many
            events there were when that began
    names   of `name`: path -> number
    path    of the folder that was synced; of an acknowledgement, the record it was of
    """

    kind: str
    file: int = 0
    at: int = 0
    data: bytes = b""
    names: tuple[tuple[str, int | None], ...] = ()
    path: str = ""


class Disk:
    """What is durable, and what is under way.

    acknowledged  the highest seq that was told to be durable
    """

    def __init__(self) -> None:
        self.acknowledged = 0
        self._contents: dict[int, bytearray] = {}
        self._taken = 0
        self._changes: dict[int, list[tuple[int, Event]]] = {}  # of each file, not synced yet, with their places
        self._names: dict[str, int] = {}
        self._moves: list[tuple[int, Event]] = []  # not synced yet

    def take(self, event: Event) -> None:
        """Let an event happen."""
        match event.kind:
            case "write" | "truncate":
                self._changes.setdefault(event.file, []).append((self._taken, event))
            case "sync":
                contents = self._contents.setdefault(event.file, bytearray())
                changes = self._changes.pop(event.file, [])
                for place, change in changes:
                    if place < event.at:
                        _apply(contents, change)
                self._changes[event.file] = [change for change in changes if change[0] >= event.at]
            case "name":
                self._moves.append((self._taken, event))
            case "sync_folder":
                mine = [each for each in self._moves if each[0] < event.at and _folder_of(each[1]) == event.path]
                self._moves = [each for each in self._moves if each not in mine]
                _move(self._names, (move for _, move in mine))
            case "acknowledge":
                self.acknowledged = max(self.acknowledged, event.at)
        self._taken += 1

    def settle(self, rng: random.Random) -> None:
        """Let the disk write of its own accord what one file has under way, and which files there are."""
        if self._changes:
            number = rng.choice(sorted(self._changes))
            contents = self._contents.setdefault(number, bytearray())
            for _, change in self._changes.pop(number):
                _apply(contents, change)
        _move(self._names, (move for _, move in self._moves))
        self._moves = []

    def cut(self, rng: random.Random, mode: str) -> dict[str, bytes | None]:
        """What could be there if the power failed now: path -> contents, None for a folder."""
        names = dict(self._names)
        folders: dict[str, list[Event]] = {}
        for _, move in self._moves:
            folders.setdefault(_folder_of(move), []).append(move)
        for moves in folders.values():
            _move(names, _done(rng, _mode(rng, mode), moves))
        there = {path: number for path, number in names.items() if _reachable(path, names)}
        files: dict[str, bytes | None] = {}
        for path, number in sorted(there.items()):
            files[path] = None if number == FOLDER else self._content(rng, _mode(rng, mode), number)
        return files

    def _content(self, rng: random.Random, mode: str, number: int) -> bytes:
        contents = bytearray(self._contents.get(number, b""))
        changes = [change for _, change in self._changes.get(number, ())]
        done = _done(rng, mode, changes)
        for place, change in enumerate(done):
            half = mode == "torn" and place == len(done) - 1 < len(changes)
            if change.kind == "write" and (half or (mode == "reordered" and rng.random() < 0.25)):
                for sector in _sectors(change):
                    if rng.random() < 0.5:
                        _apply(contents, sector)
            else:
                _apply(contents, change)
        return bytes(contents)


def write_out(files: dict[str, bytes | None], folder: Path) -> None:
    """Make the files of a cut in a folder."""
    for path, contents in files.items():  # a folder comes before what is in it
        if contents is None:
            (folder / path).mkdir(exist_ok=True)
        else:
            (folder / path).write_bytes(contents)


def _mode(rng: random.Random, mode: str) -> str:
    return rng.choice(MODES[:-1]) if mode == "mixed" else mode


def _done(rng: random.Random, mode: str, changes: list[Event]) -> list[Event]:
    """The changes that the disk had got to, the last of which may be half done."""
    match mode:
        case "lost":
            return []
        case "kept":
            return changes
        case "torn":
            return changes[: rng.randrange(len(changes) + 1)]
        case _:
            return [change for change in changes if rng.random() < 0.5]


def _apply(contents: bytearray, change: Event) -> None:
    if change.kind == "truncate":
        del contents[change.at :]
        contents.extend(bytes(change.at - len(contents)))
    else:
        contents.extend(bytes(max(0, change.at - len(contents))))
        contents[change.at : change.at + len(change.data)] = change.data


def _sectors(write: Event) -> Iterable[Event]:
    """A write as writes of no more than a sector each."""
    begin, end = write.at, write.at + len(write.data)
    while begin < end:
        upto = min(end, begin - begin % SECTOR + SECTOR)
        yield write._replace(at=begin, data=write.data[begin - write.at : upto - write.at])
        begin = upto


def _folder_of(move: Event) -> str:
    return os.path.dirname(move.names[0][0])


def _move(names: dict[str, int], moves: Iterable[Event]) -> None:
    for move in moves:
        for path, number in move.names:
            if number is None:
                names.pop(path, None)
            else:
                names[path] = number


def _reachable(path: str, names: dict[str, int]) -> bool:
    above = os.path.dirname(path)
    return not above or (names.get(above) == FOLDER and _reachable(above, names))
