"""Ask twice a hundred questions: `python -m bench.daily` prints the share in the first three, and the failures."""

from __future__ import annotations

import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import recollect
from bench.daily import asked_otherwise
from bench.daily import memory as data
from bench.daily.questions import QUESTIONS
from recollect.importers import IMPORTERS, import_path

#: The morning after the last day.
TODAY = datetime(2026, 3, 8, 8, tzinfo=UTC)
CHATS = {"studio": data.ASSISTANT, "house": data.HOUSE, "umzug": data.CHINESE}


def fill(memory: recollect.Memory, folder: Path) -> None:
    """Store the chats and the documents."""
    for name, chat in CHATS.items():
        messages = data.messages(chat)
        if hasattr(memory, "add_messages"):
            memory.add_messages(messages, conversation=name)
        else:  # a version without `add_messages`, to compare with
            memory.remember_all(
                {
                    "content": each["content"],
                    "role": each["role"],
                    "speaker": each.get("name"),
                    "kind": "conversation",
                    "conversation": name,
                    "time": datetime.fromisoformat(each["timestamp"]),
                }
                for each in messages
            )
    data.write_documents(folder)
    import_path(memory, IMPORTERS["markdown"], folder)


def asked(memory: recollect.Memory) -> dict[str, list[tuple[str, bool, list[str]]]]:
    """Return for each section its questions, whether the answer is in the first three hits, and these."""
    out: dict[str, list[tuple[str, bool, list[str]]]] = {}
    for section, questions in QUESTIONS.items():
        for question, answer in questions:
            hits = memory.recall(question, k=3, reference=TODAY)
            texts = [f"{hit.record.speaker or hit.record.role}: {hit.record.text}" for hit in hits]
            if answer.endswith(":"):  # turns by this author first
                found = bool(texts) and texts[0].startswith(answer)
            else:
                found = any(part in text for part in answer.split("|") for text in texts)
            out.setdefault(section, []).append((question, found, texts))
    return out


def main() -> None:
    warnings.simplefilter("ignore")
    with TemporaryDirectory() as folder, recollect.open(":memory:") as memory:
        fill(memory, Path(folder))
        _print(asked(memory))
    with recollect.open(":memory:") as memory:
        asked_otherwise.fill(memory)
        _print(asked_otherwise.asked(memory))


def _print(results: dict[str, list[tuple[str, bool, list[str]]]]) -> None:
    total = [found for section in results.values() for _, found, _ in section]
    for section, rows in results.items():
        print(f"{sum(found for _, found, _ in rows):3} of {len(rows):3}  {section}")
        for question, found, texts in rows:
            if not found or "--all" in sys.argv:
                print(f"      {question}\n" + "".join(f"        {text[:110]!r}\n" for text in texts), end="")
    print(f"{sum(total):3} of {len(total):3}  in the first three")


if __name__ == "__main__":
    main()
