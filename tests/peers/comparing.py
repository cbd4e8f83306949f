"""Send the same sequences of calls to two servers, and collect the answers that no listed difference predicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.peers.differences import ONE_FORM, Difference, Result, in_one_form, matches, predicted
from tests.peers.sequences import Call, sequence
from tests.peers.wire import Server

#: Sequences for which the same two processes and stores are used. Each sequence starts with an empty graph.
SEQUENCES_PER_STORE = 25

Pair = tuple[Server, Server]


class Disagreement(NamedTuple):
    """An answer that is not the predicted one, and the calls of the sequence up to it."""

    calls: list[Call]
    reference: Result
    expected: Result
    due: list[Difference]
    answer: Result

    def __str__(self) -> str:
        calls = "\n".join(json.dumps(call, ensure_ascii=False) for call in self.calls)
        names = "".join(f" ({difference.name})" for difference in self.due)
        return (
            f"after\n{calls}\nreference: {self.reference}\nexpected:  {self.expected}{names}\nours:      {self.answer}"
        )


def disagreement(pair: Pair, calls: list[Call], seen: Counter[str]) -> Disagreement | None:
    """Return the first disagreement in a sequence, and count the listed differences before it in `seen`.

    After a listed difference the sequence ends: the servers have stored different graphs.
    """
    theirs, mine = pair
    for number, (tool, arguments) in enumerate(calls):
        composed = in_one_form(arguments)
        seen[ONE_FORM] += composed != arguments
        if tool == "search_nodes" and composed != arguments:
            continue  # names are searched in one form, and texts as they are: the reference server cannot do both
        given = theirs.call(tool, composed)
        expected, due = predicted(tool, arguments, given)
        answer = mine.call(tool, arguments)
        if not matches(answer, expected):
            return Disagreement(calls[: number + 1], given, expected, due, answer)
        if due:
            seen.update(difference.name for difference in due)
            break
    return None


def disagreements(
    start: Callable[[Path], Pair], folder: Path, seeds: range, seen: Counter[str]
) -> Iterator[Disagreement]:
    """Yield the first disagreement of each sequence, given how to start two servers with data in a folder."""
    for first in seeds[::SEQUENCES_PER_STORE]:
        here = folder / str(first)
        here.mkdir()
        with ExitStack() as running:
            pair = start(here)
            for server in pair:
                running.enter_context(server)
            for seed in range(first, min(first + SEQUENCES_PER_STORE, seeds.stop)):
                found = disagreement(pair, [*sequence(seed), ("read_graph", {})], seen)
                if found is not None:
                    yield found
                for server in pair:
                    clear(server)


def clear(server: Server) -> None:
    """Delete everything in a server's graph."""
    graph = server.graph()
    server.call("delete_entities", {"entityNames": [entity["name"] for entity in graph["entities"]]})
    server.call("delete_relations", {"relations": graph["relations"]})
    assert server.graph() == {"entities": [], "relations": []}
