"""`python -m bench.prompts`: the share of questions whose right answer is first, for each set. `--all` lists failures.

- changed: a fact and its replacement; the newer one first. "fact": two records without a link, "link": with
  `supersedes` alone, "turn": two turns.
- older: the same memory, and the replaced one first, since the question asks for it.
- asked: the right answer is a question that was asked.
- telling: the right answer is a turn that ends with a question mark and tells something.
- repeated: the same question, and rephrasings of it, on seven days, each answered by "I don't know.": the turn that
  answers it is first, and a context of 150 tokens contains it, and the question at most once.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import recollect

FOLDER = Path(__file__).parent
#: The time of the questions.
NOW = datetime(2026, 11, 20, 18, tzinfo=UTC)
USER = "ana"


def rows(name: str) -> list[list[str]]:
    """The rows of a set."""
    with (FOLDER / f"{name}.tsv").open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def _memory() -> recollect.Memory:
    return recollect.open(":memory:", clock=lambda: NOW)


def _turns(memory: recollect.Memory, conversation: str, day: datetime, *said: tuple[str, str]) -> None:
    messages = [{"role": role, "content": text} for role, text in said]
    memory.add_messages(messages, user=USER, conversation=conversation, time=day)


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(hour=9, tzinfo=UTC)


def _first(memory: recollect.Memory, question: str, right: str) -> tuple[bool, str]:
    """Whether the first hit contains a text, and what it is."""
    hits = memory.recall(question, 3, where="user=ana", reference=NOW)
    return bool(hits) and right in hits[0].record.text, " | ".join(hit.record.text for hit in hits)


def changed() -> Iterator[tuple[str, bool, str]]:
    """Yield the questions about changed facts, whether the newer one is first, and the hits."""
    with _memory() as memory:
        _fill_changed(memory)
        for _, _, _, _, new, question in rows("changed"):
            yield question, *_first(memory, question, new)


def older() -> Iterator[tuple[str, bool, str]]:
    """Yield the questions about what was replaced."""
    with _memory() as memory:
        _fill_changed(memory)
        for question, right in rows("older"):
            yield question, *_first(memory, question, right)


def _fill_changed(memory: recollect.Memory) -> None:
    for number, (form, old_day, old, new_day, new, _) in enumerate(rows("changed")):
        if form == "turn":
            _turns(memory, f"c{number}-old", _day(old_day), ("user", old), ("assistant", "Thanks, noted."))
            _turns(memory, f"c{number}-new", _day(new_day), ("user", new), ("assistant", "Good to know."))
            continue
        first = memory.remember(old, user=USER, time=_day(old_day))
        links = [first.id] if form == "link" else []
        memory.remember(new, user=USER, time=_day(new_day), supersedes=links)


def asked() -> Iterator[tuple[str, bool, str]]:
    """Yield the questions about questions."""
    with _memory() as memory:
        for number, (said, answer, _) in enumerate(rows("asked")):
            day = NOW - timedelta(days=60 - number)
            _turns(memory, f"a{number}", day, ("user", said), ("assistant", answer))
        for said, _, question in rows("asked"):
            yield question, *_first(memory, question, said)


def telling() -> Iterator[tuple[str, bool, str]]:
    """Yield the questions that a turn with a question mark at its end answers."""
    with _memory() as memory:
        for number, (said, _) in enumerate(rows("telling")):
            day = NOW - timedelta(days=60 - number)
            _turns(memory, f"t{number}", day, ("user", said), ("assistant", "I have noted that."))
        for said, question in rows("telling"):
            yield question, *_first(memory, question, said)


def repeated(*, rephrased: bool) -> Iterator[tuple[str, bool, str]]:
    """Yield for each topic and day the question, whether its answer is first and in a small context."""
    for topic in rows("repeated"):
        answer, questions = topic[0], topic[1:]
        with _memory() as memory:
            begin = NOW - timedelta(days=10)
            _turns(memory, "d0", begin, ("user", answer), ("assistant", "Good to know."))
            for day in range(1, 8):
                question = questions[day - 1] if rephrased else questions[0]
                right, texts = _first(memory, question, answer)
                context = memory.context(question, 150, user=USER, reference=NOW)
                right = right and answer in context and all(context.count(each) <= 1 for each in questions)
                yield f"day {day}: {question}", right, texts
                _turns(
                    memory,
                    f"d{day}",
                    begin + timedelta(days=day),
                    *(("user", question), ("assistant", "I don't know.")),
                )


SETS: dict[str, Callable[[], Iterator[tuple[str, bool, str]]]] = {
    "changed": changed,
    "older": older,
    "asked": asked,
    "telling": telling,
    "repeated": lambda: repeated(rephrased=False),
    "rephrased": lambda: repeated(rephrased=True),
}


def main() -> None:
    """Print a line for each set, or for those that are named."""
    warnings.simplefilter("ignore")
    names = [each for each in sys.argv[1:] if each in SETS] or list(SETS)
    for name in names:
        found = list(SETS[name]())
        print(f"{name:10} {sum(right for _, right, _ in found):3} of {len(found):3} right first")
        for question, right, texts in found:
            if not right and "--all" in sys.argv:
                print(f"    {question}\n        {texts}")


if __name__ == "__main__":
    main()
