"""A copy of a store, as a program on a device has it."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import recollect
from recollect.ledger.commits import Branch
from recollect.memory.devices import MergedCopy


class Device:
    """A copy of the store, as a program on a device has it.

    Attributes:
        path: Its file.
        memory: The memory, which is open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.memory = recollect.open(path, embedder="none")
        self._backups = 0

    @classmethod
    def created(cls, folder: Path, name: str) -> Device:
        (folder / name).mkdir()
        return cls(folder / name / f"{name}.db")

    def copied(self, name: str) -> Device:
        # In another folder: each erasure reads the copies that are beside the store.
        path = self.path.parent.parent / name / f"{name}.db"
        path.parent.mkdir()
        self.memory.backup(path)
        return Device(path)

    def backup(self) -> Path:
        """Return the file of a copy as the store is now."""
        self._backups += 1
        path = self.path.parent.parent / f"{self.path.stem} {self._backups}.db"
        self.memory.backup(path)
        return path

    def take(self, other: Device | Path, **arguments: object) -> list[MergedCopy]:
        """Merge another copy, and check the store."""
        path = other if isinstance(other, Path) else other.path
        done = recollect.merge_copy(self.memory, path, **arguments)  # type: ignore[arg-type]
        assert self.memory.check() == []
        return done

    def texts(self, branch: str = "main", namespace: str = "default") -> dict[str, str]:
        memory = self.memory.namespace(namespace)
        opened = memory if branch == "main" else memory.on(branch)
        return {record.id: str(record.content) for record in opened.find(limit=None)}

    def entries(self, branch: str) -> list[bytes]:
        with self.memory._executor.core.store.read() as view:  # type: ignore[attr-defined]
            return list(view.entries(Branch("default", branch), 0))

    def has(self, text: str) -> bool:
        """Return whether any file of the store has a text, also in what is free."""
        self.memory.compact()
        return any(text.encode() in each.read_bytes() for each in self.path.parent.glob(f"{self.path.name}*"))

    def say(self, *texts: str, at: datetime | None = None) -> None:
        """Add turns to a conversation."""
        messages = [
            {"role": "user", "content": text, **({} if at is None else {"timestamp": at + timedelta(minutes=number)})}
            for number, text in enumerate(texts)
        ]
        for message in messages:
            self.memory.add_messages([message], conversation="c")

    def said(self) -> list[tuple[int | None, object]]:
        return [(turn.position, turn.content) for turn in self.memory.find("conversation=c", order="position")]
