"""MCP servers under load: killed while requests are in flight, and two of them with four clients on one store.

The first trials run a server over stdio with several requests in flight, kill it, look at the store and start the next
server on it, which also answers again what was not answered: a client would try again. The others run two servers over
HTTP on one store, each with two clients, which often want the same. `mcp_facts` tells what must be there afterwards.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from recollect.memory.opening import open as open_memory
from torture.mcp_client import HttpClient, HttpServer, StdioClient, failed, result_of
from torture.mcp_facts import Call, Fact, facts_of_graph, facts_of_records, problem_in
from torture.trials import Trial

NAME = "shared.db"
#: So many kills for each seed, one after the other on the same store.
KILLS = 2
#: Calls of a server that is killed, at most, and how many of them are in flight.
CALLS, IN_FLIGHT = 120, 8
#: A kill comes at most so long after an answer: a few calls take about that.
_LATEST_S = 0.01
#: Entities that are there from the start, for observations.
_FIRST = [f"first {number}" for number in range(5)]
#: No graph of a trial is shortened.
_WHOLE = ("--graph-tokens", "100000000")
#: Seconds of load on two servers, and in the long form.
SHORT_S, LONG_S = 1.5, 60.0
CLIENTS = 2
#: How many calls of the clients want the same.
_NAMES = 6


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """A store, and servers on it that are killed one after the other."""
    rng = random.Random(seed)
    path = folder / NAME
    load = _Load(rng)
    again: list[Call] = []
    for number in range(KILLS):
        with StdioClient(path, *_WHOLE) as client:
            client.hello()
            if problem := _problem(client, path, load.calls):
                yield Trial(seed, "before the load", f"kill {number}: {problem}")
            load.send(client, again or load.first())
            where = load.killed(client, rng)
        with open_memory(path, embedder="none") as memory:
            problem = "; ".join(memory.check())
        yield Trial(seed, where, problem and f"kill {number}: {problem}")
        again = [call for call in load.calls if call.result is None and call.tool != "update"]
    with StdioClient(path, *_WHOLE) as client:
        client.hello()
        yield Trial(seed, "after the last kill", _problem(client, path, load.calls))
        load.send(client, again)
        yield Trial(seed, "what was not answered is called again", _problem(client, path, load.calls))
        status = client.close()
        yield Trial(seed, "the server ends when its input does", "" if status == 0 else f"with status {status}")


def _problem(client: StdioClient | HttpClient, path: Path, calls: list[Call]) -> str:
    shown = client.call("read_graph", {})["structuredContent"]
    if not path.exists():
        return "the store is gone" if any(call.result for call in calls) else ""
    with open_memory(path, embedder="none", read_only=True) as memory:
        return problem_in(calls, facts_of_records(memory.find()), facts_of_graph(shown))


class _Load:
    """Calls that write, each of something that no other call writes.

    calls  all that were made so far, with their answers
    """

    def __init__(self, rng: random.Random) -> None:
        self.calls: list[Call] = []
        self._rng = rng
        self._number = 0
        self._texts: list[tuple[str, str]] = []  # ids and texts of records that no call has updated

    def first(self) -> list[Call]:
        """The call that the others build on."""
        entities = [{"name": name, "entityType": "place", "observations": []} for name in _FIRST]
        return [Call("create_entities", {"entities": entities})]

    def next(self) -> Call:
        """Another call."""
        self._number += 1
        word = f"n{self._number}"
        match self._rng.randrange(6):
            case 0 | 1:
                entities = [
                    {
                        "name": f"{word} {each}",
                        "entityType": "thing",
                        "observations": [f"{word} {each} has {what}" for what in range(self._rng.randrange(4))],
                    }
                    for each in range(self._rng.randrange(1, 6))
                ]
                return Call("create_entities", {"entities": entities})
            case 2:
                names = self._rng.sample(_FIRST, 2)
                added = [{"entityName": name, "contents": [f"{word} was seen", f"{word} was left"]} for name in names]
                return Call("add_observations", {"observations": added})
            case 3:
                ends = [{"from": word, "to": name, "relationType": "near"} for name in self._rng.sample(_FIRST, 3)]
                return Call("create_relations", {"relations": ends})
            case 4 if self._texts:
                record_id, text = self._texts.pop(self._rng.randrange(len(self._texts)))
                arguments = {"id": record_id, "content": f"{word} is what {record_id} says now"}
                return Call("update", arguments, frozenset({("text", text)}))
            case _:
                own = {"id": word} if self._rng.random() < 0.5 else {}
                return Call("remember", {"content": f"{word} is remembered", "user": "ana", **own})

    def send(self, client: StdioClient, calls: list[Call]) -> None:
        """Make calls one after the other, and note the answers."""
        for call in calls:
            self.calls.append(replace(call, result=client.call(call.tool, call.arguments)))

    def killed(self, client: StdioClient, rng: random.Random) -> str:
        """Make calls until the server is killed, and note the answers; how many were in flight then."""
        known, last = sum(map(len, client.answers.values())), rng.randrange(CALLS - IN_FLIGHT)
        wait_s = rng.random() * _LATEST_S

        def kill() -> None:
            client.wait_for(known + last)
            time.sleep(wait_s)
            client.process.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        sent: dict[int, Call] = {}
        try:
            for count in range(CALLS):
                client.wait_for(known + count - IN_FLIGHT + 1)
                if client.ended:
                    break
                call = self.next()
                number = client.send_call(call.tool, call.arguments)
                sent[number] = call
        except BrokenPipeError:
            pass  # what could not be sent was not done
        killer.join()
        client.kill()
        return self._take(client, sent)

    def _take(self, client: StdioClient, sent: dict[int, Call]) -> str:
        in_flight = 0
        for number, call in sent.items():
            answers = client.answers.get(number, [])
            assert len(answers) < 2, f"{len(answers)} answers to one request"
            call = replace(call, result=result_of(answers[0]) if answers else None)
            in_flight += call.result is None
            self.calls.append(call)
            if call.tool == "remember" and call.result is not None and not failed(call.result):
                self._texts.append((call.result["structuredContent"]["id"], call.arguments["content"]))
        return f"killed: {in_flight} in flight" if in_flight else "killed: idle"


def shared(seed: int, folder: Path) -> Iterator[Trial]:
    """Two servers, four clients, a few seconds."""
    return _shared(seed, folder, SHORT_S)


def minute(seed: int, folder: Path) -> Iterator[Trial]:
    """Two servers, four clients, for a minute."""
    return _shared(seed, folder, LONG_S)


def _shared(seed: int, folder: Path, seconds: float) -> Iterator[Trial]:
    path = folder / NAME
    with HttpServer(path, *_WHOLE) as left, HttpServer(path, *_WHOLE) as right:
        clients = [HttpClient(server.url) for server in (left, right) for _ in range(CLIENTS)]
        workers = [_Worker(client, name, seed) for name, client in enumerate(clients)]
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=worker.run, args=(lambda: time.monotonic() < end,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        calls = [call for worker in workers for call in worker.calls]
        errors = [worker.error for worker in workers if worker.error]
        yield Trial(seed, "every client is answered", errors[0] if errors else "")
        yield Trial(seed, "every write is there once", _problem(clients[0], path, calls))
        graphs = [client.call("read_graph", {})["structuredContent"] for client in clients]
        same = all(graph == graphs[0] for graph in graphs)
        yield Trial(seed, "all clients read the same graph", "" if same else "the graphs differ")
        new = sum(bool(call.made) for call in calls)
        share = "" if new < len(calls) else "no two clients ever wanted the same"
        yield Trial(seed, "clients want the same at the same time", share)
        for client in clients:
            client.close()
    with open_memory(path, embedder="none") as memory:
        yield Trial(seed, "check", "; ".join(memory.check()))


class _Worker:
    """One client in a thread of its own, which makes some calls that the others make too."""

    def __init__(self, client: HttpClient, name: int, seed: int) -> None:
        self.calls: list[Call] = []
        self.error = ""
        self._client = client
        self._name = name
        self._rng = random.Random(seed * 100 + name)

    def run(self, goes_on: Callable[[], bool]) -> None:
        try:
            number = 0
            while goes_on():
                self._round(number)
                number += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the trial's
            self.error = f"{type(error).__name__}: {error}"

    def _round(self, number: int) -> None:
        names = self._rng.sample([f"round {number} {each}" for each in range(_NAMES)], _NAMES // 2)
        entities = [{"name": name, "entityType": "thing", "observations": [f"{name} is new"]} for name in names]
        self._call("create_entities", {"entities": entities})
        added = [{"entityName": name, "contents": [f"{name} was seen", f"{name} was left"]} for name in names]
        self._call("add_observations", {"observations": added})
        ends = [{"from": name, "to": f"round {number}", "relationType": "in"} for name in names]
        self._call("create_relations", {"relations": ends})
        own = f"client {self._name} round {number}"
        self._call("remember", {"content": f"{own} is remembered", "id": own})
        new = {"id": own, "content": f"{own} is updated"}
        self._call("update", new, frozenset({("text", f"{own} is remembered")}))
        self._call("remember", {"content": f"round {number} is remembered by all"})
        found = self._client.call("get", {"id": own})["structuredContent"]["record"]["content"]
        assert found == new["content"], f"a client read {found!r} after it had written {new['content']!r}"

    def _call(self, tool: str, arguments: dict[str, Any], replaces: frozenset[Fact] = frozenset()) -> None:
        self.calls.append(Call(tool, arguments, replaces, self._client.call(tool, arguments)))
