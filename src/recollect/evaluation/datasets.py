"""Data sets with known evidence: conversations to remember, and questions with the turns that answer them.

A data set fills a memory as a user would, through the importers and the public calls, and lists the questions for each
namespace. Evidence that names no turn is dropped, and a question without evidence is skipped; both are counted.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recollect.arguments.checks import is_integer
from recollect.common.regexes import regex
from recollect.errors import ImportFormatError
from recollect.evaluation.beam import Beam
from recollect.evaluation.locomo import LoCoMo
from recollect.importers import import_path
from recollect.memory import Memory

#: LoCoMo's categories. Its paper reports the last, questions without an answer, separately.
LOCOMO_CATEGORIES = {"1": "multi-hop", "2": "temporal", "3": "open-domain", "4": "single-hop", "5": "adversarial"}
_DIALOGUE_ID = regex(r"D\s*:?\s*(\d+)\s*:\s*(\d+)")
_MEMDAILY_TIME = regex(r"(\d{4})年(\d{1,2})月(\d{1,2})日\D*(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class EvaluationQuestion:
    """A question about the conversation of a namespace.

    Attributes:
        text: The question.
        category: The category in the data set.
        evidence: Ids of the records that answer it; none for a question that cannot be answered.
        speakers: The names of the speakers of its conversation, if it has names.
        answer: The answer according to the data set, or what a good answer does; "" if there is none.
    """

    namespace: str
    text: str
    category: str
    evidence: tuple[str, ...]
    speakers: tuple[str, ...] = ()
    answer: str = ""


@dataclass(frozen=True)
class DataSet:
    """Conversations to remember, and questions about them.

    Attributes:
        name: The name of the data set.
        fill: Stores the conversations in a memory.
        asked: The questions.
        groups: Names for several categories together.
        labels: Names of the categories.
    """

    name: str
    fill: Callable[[Memory], object]
    asked: Sequence[EvaluationQuestion]
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


@contextmanager
def _reading(path: object) -> Iterator[None]:
    """Turn errors about the shape of a file into ImportFormatError."""
    try:
        yield
    except ImportFormatError:
        raise
    except (LookupError, AttributeError, TypeError, ValueError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        raise ImportFormatError(str(path), "", f"does not have the shape of this data set ({reason})") from None


def locomo(path: Path) -> DataSet:
    """Read LoCoMo's JSON file. Every "D<session>:<turn>" in the evidence of a question counts."""
    with _reading(path):
        asked = list(_locomo_questions(_list(path, _json(path))))
    return DataSet(
        "locomo",
        lambda memory: import_path(memory, LoCoMo(), path),
        asked,
        {"1-4": ("1", "2", "3", "4")},
        LOCOMO_CATEGORIES,
    )


def _locomo_questions(samples: list[dict[str, Any]]) -> Iterator[EvaluationQuestion]:
    for sample in samples:
        conversation = sample.get("conversation", {})
        speakers = tuple(str(conversation[key]) for key in ("speaker_a", "speaker_b") if key in conversation)
        for question in sample.get("qa", ()):
            found = [_DIALOGUE_ID.findall(str(each)) for each in question.get("evidence", ())]
            evidence = dict.fromkeys(f"D{int(one)}:{int(two)}" for each in found for one, two in each)
            yield EvaluationQuestion(
                str(sample["sample_id"]),
                str(question["question"]),
                str(question["category"]),
                tuple(evidence),
                speakers,
                str(question.get("answer", question.get("adversarial_answer", ""))),
            )


def beam(path: Path) -> DataSet:
    """Read a folder of BEAM chats, each with its probing questions."""
    asked = []
    chats = sorted(
        (each for each in path.iterdir() if (each / "chat.json").exists()) if path.is_dir() else (),
        key=lambda each: (len(each.name), each.name),
    )
    if not chats:
        raise ImportFormatError(str(path), "", "is not a folder of BEAM chats (each a folder with a chat.json)")
    with _reading(path):
        for chat in chats:
            questions = chat / "probing_questions" / "probing_questions.json"
            for category, each in _json(questions).items():
                for question in each:
                    numbers = _numbers(question.get("source_chat_ids", ()))
                    evidence = tuple(str(number) for number in dict.fromkeys(numbers))
                    name, text, answer = f"beam-{chat.name}", str(question["question"]), _beam_answer(question)
                    asked.append(EvaluationQuestion(name, text, str(category), evidence, answer=answer))
    return DataSet("beam", lambda memory: import_path(memory, Beam(), path), asked)


def _beam_answer(question: dict[str, Any]) -> str:
    """Return the answer to a question, or what is tested by one that has none."""
    for name in ("answer", "ideal_response", "ideal_answer", "ideal_summary"):
        if question.get(name):
            return str(question[name])
    tested = ("instruction_being_tested", "preference_being_tested", "rubric")
    return " ".join(str(question[name]) for name in tested if question.get(name))


def memdaily(*paths: Path) -> DataSet:
    """Read files of MemDaily: short lists of messages in Chinese, with questions. The categories are the file names."""
    asked: list[EvaluationQuestion] = []
    conversations: list[tuple[str, list[dict[str, Any]]]] = []
    for path in paths:
        with _reading(path):
            for task in _list(path, _json(path)):
                name = f"{path.stem}-{task['tid']}"
                conversations.append(
                    (name, [_message(name, position, each) for position, each in enumerate(task["message_list"])])
                )
                asked += [
                    EvaluationQuestion(
                        name,
                        str(each["question"]),
                        path.stem,
                        tuple(str(number) for number in _numbers(each["target_step_id"])),
                    )
                    for each in task["question_list"]
                ]

    def fill(memory: Memory) -> None:
        for name, messages in conversations:
            memory.namespace(name).remember_all(messages, on_error="raise")

    return DataSet("memdaily", fill, asked)


def _message(conversation: str, position: int, message: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "id": str(message["mid"]),
        "content": message["message"],
        "kind": "conversation",
        "role": "user",
        "conversation": conversation,
        "position": position,
    }
    if read := _MEMDAILY_TIME.search(str(message.get("time", ""))):
        out["time"] = datetime(*(int(part) for part in read.groups()), tzinfo=UTC)  # type: ignore[arg-type, misc]
    return out


def _numbers(value: Any) -> Iterator[int]:
    """Yield the integers in a nested value; text is parsed as a Python literal first."""
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            value = [int(each) for each in re.findall(r"\d+", value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _numbers(each)
    elif is_integer(value):
        yield value


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ImportFormatError(str(path), "", f"cannot be read as JSON ({error})") from None


def _list(path: Path, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ImportFormatError(str(path), "", "must be a list of objects")
    return value
