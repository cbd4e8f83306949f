"""Agents of `bench.cluster` in a process of their own: connections to a socket, on which they send recalls.

Arguments: the path of the socket, the number of agents, the number of this process and how many there are, a file with
the questions, the number of namespaces and the exponent. For each line of input, a JSON object, they send
for `seconds`:

- with `rate`, at the times of a Poisson process with that many requests a second for all processes together, each by
  the agent whose turn it is, whether that waits for an answer or not; without, each as soon as it has its last answer;
- in namespaces that are drawn by Zipf's law, or in the one that `alone` names. This process takes those whose number
  leaves its own as the rest, so that it knows whether a namespace was asked before.

They print a JSON object: the latencies in ms since requests were due, of first and of later requests in a namespace,
and the number of errors.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from bisect import bisect
from collections import deque
from itertools import accumulate
from pathlib import Path
from typing import Any

_LIMIT = 2**24


class Agent:
    """A connection: its requests are answered in their order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, done: Any) -> None:
        self._reader, self._writer = reader, writer
        self._done = done
        self._due: deque[tuple[float, bool]] = deque()
        self.idle = asyncio.Event()
        self.idle.set()
        self.task = asyncio.create_task(self._read())

    def send(self, line: bytes, due: float, is_first: bool) -> None:
        self._due.append((due, is_first))
        self.idle.clear()
        self._writer.write(line)

    async def _read(self) -> None:
        while line := await self._reader.readline():
            due, is_first = self._due.popleft()
            self._done((time.perf_counter() - due) * 1000, is_first, line.startswith(b'{"ok":true'))
            if not self._due:
                self.idle.set()


class Agents:
    """The agents of a process."""

    def __init__(self, number: int, processes: int, questions: list[str], namespaces: int, exponent: float) -> None:
        self._number, self._processes = number, processes
        self._questions = questions
        self._sums = list(accumulate(1 / rank**exponent for rank in range(1, namespaces + 1)))
        self._asked: set[int] = set()
        self._random = random.Random(number)
        self._clear()
        self.agents: list[Agent] = []

    def _clear(self) -> None:
        self.first: list[float] = []
        self.later: list[float] = []
        self.errors = 0

    def done(self, ms: float, is_first: bool, ok: bool) -> None:
        (self.first if is_first else self.later).append(ms)
        self.errors += not ok

    def _line(self, alone: int | None) -> tuple[bytes, bool]:
        while True:
            number = alone if alone is not None else bisect(self._sums, self._random.random() * self._sums[-1])
            if alone is not None or number % self._processes == self._number:
                break
        is_first = number not in self._asked
        self._asked.add(number)
        question = self._random.choice(self._questions)
        request = {"op": "recall", "question": question, "k": 10, "in": {"namespace": f"n{number}"}}
        return json.dumps(request).encode() + b"\n", is_first

    async def run(self, seconds: float, rate: float | None = None, alone: int | None = None) -> dict[str, Any]:
        self._clear()
        began = time.perf_counter()
        if rate is None:
            await asyncio.gather(*(self._closed(each, began + seconds, alone) for each in self.agents))
        else:
            due, turn = began, 0
            while True:
                due += self._random.expovariate(rate / self._processes)
                if due > began + seconds:
                    break
                if (pause := due - time.perf_counter()) > 0:
                    await asyncio.sleep(pause)
                line, is_first = self._line(alone)
                self.agents[turn % len(self.agents)].send(line, due, is_first)
                turn += 1
            await asyncio.gather(*(each.idle.wait() for each in self.agents))
        took = time.perf_counter() - began
        return {"first": self.first, "later": self.later, "errors": self.errors, "seconds": took}

    async def _closed(self, agent: Agent, ends: float, alone: int | None) -> None:
        while (now := time.perf_counter()) < ends:
            agent.send(*self._in_order(self._line(alone), now))
            await agent.idle.wait()

    @staticmethod
    def _in_order(line: tuple[bytes, bool], now: float) -> tuple[bytes, float, bool]:
        return line[0], now, line[1]


async def main(path: str, agents: int, group: Agents) -> None:
    for _ in range(agents):
        group.agents.append(Agent(*await asyncio.open_unix_connection(path, limit=_LIMIT), group.done))
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await group.run(**json.loads(line))), flush=True)


if __name__ == "__main__":
    _path, _agents, _number, _processes, _file, _namespaces, _exponent = sys.argv[1:]
    _questions = json.loads(Path(_file).read_text())
    _group = Agents(int(_number), int(_processes), _questions, int(_namespaces), float(_exponent))
    asyncio.run(main(_path, int(_agents), _group))
