"""What a question finds, and what a model would be given for it: each with its reasons."""

from __future__ import annotations

import shlex
from collections import defaultdict
from typing import Any
from urllib.parse import quote

from recollect import Hit
from recollect.operations import AUTO_CONFIDENCE
from recollect.server.ui.visit import Visit
from recollect.wire import record_json

_OWNERS = ("user", "agent", "conversation")
_K, _MOST_K = 10, 50
_TOKENS, _MOST_TOKENS = 1000, 100_000
STYLES = ("markdown", "xml", "messages")
PARTS = ("records", "glossary", "outline")


def search(visit: Visit) -> dict[str, Any]:
    """Return the hits of a question with the shares of their scores and the places of the matched words."""
    question = visit.text("q").strip()
    if not question:
        return {"question": ""}
    arguments = _arguments(visit)
    k = visit.number("k", _K, _MOST_K)
    hits = visit.memory.recall(question, k, **arguments)
    matched = {word.word for hit in hits for word in hit.why.words}
    return {
        **hits.to_json(),
        "hits": [_hit(each) for each in hits],
        "standing": [_hit(each) for each in hits.standing],
        "evidence": _evidence(list(hits)),
        "unmatched": list(dict.fromkeys(term.word for term in hits.plan.terms if term.word not in matched)),
        "calls": _calls(visit, {"question": question, "k": k, **arguments}),
    }


def _arguments(visit: Visit) -> dict[str, Any]:
    """Return the arguments that a search and a context have in common."""
    out: dict[str, Any] = visit.given("where", "reference", *_OWNERS)
    if visit.flag("concise"):
        out["concise"] = True
    if visit.flag("confident"):
        out["min_confidence"] = AUTO_CONFIDENCE
    return out


def _hit(hit: Hit) -> dict[str, Any]:
    return {**hit.to_json(), "marks": [list(each) for each in hit.marks]}


def _evidence(hits: list[Hit]) -> dict[str, list[str]]:
    """Return the ids of the hits of each conversation, so that all of them can be shown in it."""
    out: dict[str, list[str]] = defaultdict(list)
    for hit in hits:
        if hit.record.conversation is not None:
            out[hit.record.conversation].append(hit.record.id)
    return dict(out)


#: The arguments that are flags of the command.
_FLAGS = ("concise",)


def _calls(visit: Visit, arguments: dict[str, Any]) -> dict[str, str]:
    """Return the same search in Python, as a command, and, where the server has an API, as a request."""
    question, k = arguments["question"], arguments["k"]
    rest = {name: value for name, value in arguments.items() if name not in ("question", "k")}
    stated = [repr(question), *([] if k == _K else [f"k={k}"]), *(f"{name}={value!r}" for name, value in rest.items())]
    moment = visit.moment
    memory = "memory" if visit.is_main else f"memory.on({visit.branch!r})"
    memory += "" if moment is None else f".at({moment!r})"
    command = ["recollect", "recall", question, *([] if k == _K else ["-k", str(k)])]
    for name, value in rest.items():
        command += [f"--{name.replace('_', '-')}", *([] if name in _FLAGS else [str(value)])]
    command += [] if moment is None else ["--at", visit.text("at")]
    command += ["--namespace", visit.namespace, *([] if visit.is_main else ["--branch", visit.branch])]
    out = {"python": f"{memory}.recall({', '.join(stated)})", "command": shlex.join(command)}
    if visit.api and moment is None:
        fields = [f"{name}={str(value).lower() if value is True else value}" for name, value in arguments.items()]
        pairs = [part for each in fields for part in ("--data-urlencode", each)]
        header = [] if visit.is_main else ["--header", f"Recollect-Branch: {visit.branch}"]
        address = f"{visit.api}/v1/{quote(visit.namespace, safe='')}/recall"
        out["curl"] = shlex.join(["curl", "--get", *header, *pairs, address])
    return out


def receipt(visit: Visit) -> dict[str, Any]:
    """Return the receipt of a search, with which it can be asked again."""
    hits = visit.memory.recall(visit.text("q"), visit.number("k", _K, _MOST_K), **_arguments(visit))
    return dict(hits.receipt)


def context(visit: Visit) -> dict[str, Any]:
    """Return the text that a model would be given for a question, what it consists of, and what was left out."""
    question = visit.text("q").strip()
    tokens = visit.number("max_tokens", _TOKENS, _MOST_TOKENS)
    if not question:
        return {"question": "", "max_tokens": tokens}
    include = [each for each in PARTS if visit.flag(each)] or [PARTS[0]]
    style: Any = visit.text("style") or STYLES[0]
    made = visit.memory.context(question, tokens, style=style, include=include, **_arguments(visit))  # type: ignore[arg-type]
    used: dict[str, int] = defaultdict(int)
    for each in made.items:
        if each.included:
            used[each.origin] += each.tokens
    items = [
        {**each.to_json(), "record": record_json(each.record), "passages": list(each.passages)} for each in made.items
    ]
    return {
        **made.to_json(),
        "question": question,
        "items": items,
        "used": dict(used),
        "headings": max(made.tokens - sum(used.values()), 0),
    }
