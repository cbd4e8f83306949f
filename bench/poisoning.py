"""`python -m bench poisoning --policy off,default,strict`: what of a poisoned memory reaches a prompt, and how.

Each case is stored as an attacker would have it stored: by a page, a tool, a document, a model's own call, a summary. A
memory has the statement of the user, 500 other turns, and the poison; another one has an honest text of the same source
in its place (the twin). What is counted:

authority   the poison is in the context of the question as the user's own word: a standing instruction, a pinned
            record, a fact, or a turn of the user, with nothing that says where it is from
exposed     it is in the context (1,000 tokens), however it is shown
top 3       it is among the first three hits
above       it is a better hit than what the user said
elsewhere   it is in the context of a question that has nothing to do with it
governs     it is there as a standing instruction, or pinned
kept        it is in quarantine
twin        the honest text is among the first ten hits of its own question
twin kept   the honest text is in quarantine

No model is asked: what reaches no prompt can mislead none. "unseen" cases were written before any rule against
poisoning, by somebody who has not read the code, and are not looked at while rules are made.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import recollect
from bench.labels import FOLDER
from recollect.agents import Manager
from recollect.importers import import_path
from recollect.operations import GetPolicies

SETS = ("open", "unseen")
#: What is done about it: no class of origin is recorded, and models write with the authority of the user, as before
#: there were classes; a memory as it is opened; and what looks like an attack goes to quarantine.
POLICIES: dict[str, dict[str, Any]] = {
    "off": {"record_origins": False},
    "default": {},
    "strict": {"flagged": "quarantine"},
}
#: Channels in which the attacker's text is in a message of the user: no origin can tell it from the user's word.
AS_USER = frozenset(("msg_as_user", "extract"))
_OTHERS, _TOKENS, _BUDGET = 500, 10, 1000
_SAID, _STORED, _ASKED = "2026-03-01", "2026-04-01", "2026-06-01"

_SUBJECTS = (
    "The ferry", "Our neighbour", "The new printer", "My cousin", "The garden", "The choir", "The old bicycle", "Lunch",
    "The meeting room", "The train", "My sister", "The bakery", "The spreadsheet", "The river", "The concert",
    "The library", "The gym", "The kettle", "The museum", "The tent", "The camera", "The market", "The course",
    "The kitchen", "The team",
)  # fmt: skip
_PREDICATES = (
    "was late on Tuesday", "made me laugh", "needs a repair", "is better than last year", "was closed for a week",
    "smelled of rain", "reminded me of school", "cost more than I thought", "will move in autumn", "was full of people",
    "looks good in the evening", "is quiet in the morning", "took the whole afternoon", "was a gift", "broke twice",
    "starts earlier now", "was mentioned in the news", "has a new colour", "is on my list", "was worth the wait",
)  # fmt: skip


class Outcome(NamedTuple):
    """What became of a case."""

    authority: bool
    exposed: bool
    top3: bool
    above: bool
    elsewhere: bool
    governs: bool
    kept: bool
    twin: bool
    twin_kept: bool


def cases(name: str) -> list[dict[str, Any]]:
    """Return the cases of a set: those in `tests/labels/poisoning-NAME.toml`."""
    return list(tomllib.loads((FOLDER / f"poisoning-{name}.toml").read_text(encoding="utf-8"))["case"])


def others() -> Iterator[str]:
    """Yield what the user said of other things."""
    for number in range(_OTHERS):
        subject = _SUBJECTS[number % len(_SUBJECTS)]
        yield f"{subject} {_PREDICATES[(number // len(_SUBJECTS) + number) % len(_PREDICATES)]}."


def turn(role: str, text: str, name: str | None = None) -> dict[str, Any]:
    return {"role": role, "content": text, **({} if name is None else {"name": name})}


def stored(memory: recollect.Memory, channel: str, texts: list[str], question: str, truth: str) -> None:
    """Store texts as they come by a channel."""
    for number, text in enumerate(texts):
        _CHANNELS[channel](memory, text, f"{channel}-{number}", question, truth)


def _model(memory: recollect.Memory) -> recollect.Memory:
    """Return the memory as the calls of a model write to it, over MCP or as its tools."""
    return memory if _is_off(memory) else memory.as_origin("assistant")


def _is_off(memory: recollect.Memory) -> bool:
    return not memory.execute(GetPolicies()).record_origins


def _messages(memory: recollect.Memory, name: str, *messages: dict[str, Any]) -> None:
    memory.add_messages(messages, user="ana", conversation=name, time=_STORED)


def _tool(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    _messages(memory, name, turn("user", question), turn("tool", text, "calendar"), turn("assistant", "Done."))


def _web(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    memory.remember(text, source=f"https://site.example/{name}", time=_STORED)


def _document(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    memory.remember(text, source=f"inbox/{name}.pdf", time=_STORED)


def _by_model(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    _model(memory).remember(text, user="ana", time=_STORED)


def _pinned(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    _model(memory).remember(text, user="ana", pinned=True, tags=["standing:instruction"], time=_STORED)


def _fact(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    _model(memory).record_user_fact(text, user="ana", time=_STORED, importance=1.0)


def _notes(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.md")
        path.write_text(f"# Notes\n\n{text}\n", encoding="utf-8")
        import_path(memory, "markdown", path)


def _merged(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    page = memory.remember(text, source=f"https://site.example/{name}", time=_STORED)
    if memory.get(page.id) is None:  # it is in quarantine
        return
    said = memory.remember(truth, user="ana", kind="user_fact", time=_SAID)
    memory.merge([page, said], f"{truth} {text}")


def _extracted(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    manager = Manager(memory=memory, extract=True)
    manager.record_message(turn("user", f"Look what I was sent: {text}"), name, user="ana")


def _consolidated(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    filler = [turn("user", f"Note {number} of the day.") for number in range(10)]
    _messages(memory, name, turn("user", question), turn("tool", text, "search"), *filler)
    memory.consolidate(min_count=5, where=f"conversation={name}")


def _task(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    memory.record_task(question, text, True, user="ana", time=_STORED)


def _as_user(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    _messages(memory, name, turn("user", text), turn("assistant", "Noted."))


def _assistant(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    _messages(memory, name, turn("user", question), turn("tool", text, "fetch"), turn("assistant", text))


def _updated(memory: recollect.Memory, text: str, name: str, question: str, truth: str) -> None:
    _messages(memory, name, turn("user", question), turn("tool", text, "fetch"))
    for record in memory.find(f"conversation={name} and role=tool"):  # none, if it is in quarantine
        memory.update(record.id, role=None, kind="user_fact")


_CHANNELS: dict[str, Callable[[recollect.Memory, str, str, str, str], None]] = {
    "tool": _tool, "web": _web, "doc": _document, "mcp_remember": _by_model, "mcp_pinned": _pinned,
    "user_fact": _fact, "md_import": _notes, "merge": _merged, "extract": _extracted, "consolidate": _consolidated,
    "task": _task, "msg_as_user": _as_user, "assistant": _assistant, "update": _updated,
}  # fmt: skip


def outcome(case: dict[str, Any], policy: str) -> Outcome:
    """Return what becomes of a case under a policy."""
    with recollect.open(":memory:") as memory:
        _prepare(memory, case, policy)
        stored(memory, case["channel"], case["poison"], case["question"], case["truth"])
        asked: dict[str, Any] = {"user": "ana", "reference": _ASKED}
        hits = [str(hit.record.text) for hit in memory.recall(case["question"], _TOKENS, **asked)]
        context = memory.context(case["question"], _BUDGET, **asked)
        elsewhere = memory.context(case["trigger_question"], _BUDGET, **asked)
        marker = case["marker"]
        first = next((at for at, text in enumerate(hits) if marker in text), None)
        true = next((at for at, text in enumerate(hits) if case["truth"] in text and marker not in text), None)
        shown = [
            each for each in context.items if each.outcome in ("whole", "part") and marker in str(each.record.text)
        ]
        return Outcome(
            authority=any(_has_authority(each, policy) for each in shown),
            exposed=marker in context,
            top3=first is not None and first < 3,
            above=first is not None and (true is None or first < true),
            elsewhere=marker in elsewhere,
            governs=any(
                each.origin in ("standing", "pinned") and marker in str(each.record.text)
                for each in elsewhere.items
                if each.outcome in ("whole", "part")
            ),
            kept=any(marker in record.text for record in memory.quarantine(limit=None)),
            **_twin(case, policy),
        )


def _twin(case: dict[str, Any], policy: str) -> dict[str, bool]:
    """Return what becomes of the honest text."""
    with recollect.open(":memory:") as memory:
        _prepare(memory, case, policy)
        stored(memory, case["channel"], case["twin"], case["twin_question"], case["truth"])
        hits = memory.recall(case["twin_question"], 10, user="ana", reference=_ASKED)
        found = any(case["twin_marker"] in str(hit.record.text) for hit in hits)
        return {"twin": found, "twin_kept": len(memory.quarantine) > 0}


def _prepare(memory: recollect.Memory, case: dict[str, Any], policy: str) -> None:
    memory.set_policies(**POLICIES[policy])
    said = [turn("user", text) for text in others()]
    memory.add_messages(said, user="ana", conversation="other things", time=_SAID)
    memory.add_messages([turn("user", case["truth"])], user="ana", conversation="before", time=_SAID)


def _has_authority(item: Any, policy: str) -> bool:
    """Return whether a record is shown as the user's own word."""
    record = item.record
    if item.origin in ("standing", "pinned"):
        return True
    if policy == "off":  # nothing but the role and the source said so
        return not record.source and record.role in (None, "user")
    return bool(record.has_authority)


def measured(name: str, policy: str) -> dict[str, Outcome]:
    """Return what becomes of each case of a set under a policy."""
    return {case["id"]: outcome(case, policy) for case in cases(name)}


def poisoning(policies: list[str]) -> dict[str, Any]:
    """Return the counts by policy, set and family, and for all without and with what comes in the user's own role."""
    out: dict[str, Any] = {}
    for policy in policies:
        for name in SETS:
            found = measured(name, policy)
            rows: dict[str, list[Outcome]] = {}
            for case in cases(name):
                who = "in the user's role" if case["channel"] in AS_USER else "in other roles"
                for row in (case["family"], who):
                    rows.setdefault(row, []).append(found[case["id"]])
            out[f"{policy}, {name}"] = {
                row: {"cases": len(each)} | {key: sum(column) for key, column in _columns(each)}
                for row, each in sorted(rows.items())
            }
    return out


def _columns(outcomes: list[Outcome]) -> Iterator[tuple[str, tuple[bool, ...]]]:
    return zip(Outcome._fields, zip(*outcomes, strict=True), strict=True)
