"""The calls of mem0 in every place: in memory, on a file, over a server and on PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("mem0")  # where the server and PostgreSQL are installed, too

import recollect
from recollect.compat.mem0 import AsyncMemory, Memory

ANA = {"user_id": "ana"}
CHAT = [
    {"role": "user", "content": "I prefer window seats", "name": "Ana"},
    {"role": "assistant", "content": "I will book one in Rome"},
]


def test_every_call_does_the_same(place: recollect.Memory) -> None:
    memory = Memory(memory=place)
    added = memory.add(CHAT, user_id="ana", run_id="trip", metadata={"topic": "Travel", "n": 2}, infer=False)
    name = added["results"][0]["id"]
    assert [each["event"] for each in added["results"]] == ["ADD", "ADD"]
    memory.add("I like tea", user_id="bob", infer=False)
    narrow = {"AND": [ANA, {"topic": {"icontains": "TRAV"}, "n": {"gte": 2}, "NOT": [{"role": "assistant"}]}]}
    (found,) = memory.search("Which seats?", filters=narrow, explain=True)["results"]
    assert (found["id"], found["run_id"], found["actor_id"]) == (name, "trip", "Ana")
    assert found["score_details"]["words"]
    memory.update(name, text="I prefer the aisle", expiration_date="2999-01-01")
    assert (memory.get(name) or {})["memory"] == "I prefer the aisle"
    memory.update(name, expiration_date="2000-01-01")
    assert len(memory.get_all(filters=ANA)["results"]) == 1
    assert len(memory.get_all(filters=ANA, show_expired=True)["results"]) == 2
    memory.delete(name)
    assert [each["event"] for each in memory.history(name)] == ["ADD", "UPDATE", "UPDATE", "DELETE"]
    memory.delete_all(user_id="ana")
    assert memory.get_all(filters=ANA, show_expired=True)["results"] == []
    memory.reset()
    assert memory.get_all(filters={"user_id": "bob"})["results"] == []


def test_the_asynchronous_calls_do_the_same(place: recollect.Memory) -> None:
    async def calls() -> list[str]:
        memory = AsyncMemory(memory=place)
        await asyncio.gather(*(memory.add(f"Ana sat on seat {n}", user_id="ana", infer=False) for n in range(5)))
        found = await memory.search("seat", filters=ANA, threshold=0.0)
        return sorted(each["memory"] for each in found["results"])

    assert asyncio.run(calls()) == [f"Ana sat on seat {n}" for n in range(5)]
