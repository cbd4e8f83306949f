"""Right and wrong calls for the type checker: mypy (`make check`) reports a wrong call that it does not see.

Nothing here is executed. Each wrong call has a `type: ignore` of its own, and an unused one is an error.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import assert_type

import recollect
from recollect import filters as f
from recollect.records.record import Record


def right(memory: recollect.Memory) -> list[object]:
    memory.remember("a", kind="user_fact", if_exists="update", ttl=timedelta(days=1), time="2026-03-01")
    memory.remember("a", time=date(2026, 3, 1), expires=datetime(2027, 1, 1, tzinfo=UTC), tags=["b"])
    memory.remember_all(["a", {"content": "b"}], on_error="raise")
    memory.recall("a", where="user=ana", reference="2026-03-01")
    memory.find(f.user("ana") & f.after("2026-03-01"), order="importance")
    memory.update("a", importance=0.5, tags=None, time=None, content="b")
    memory.update("a", lambda record: record.changed(content="b"))
    memory.set_quota(records=5, when_full="least recent", per="user")
    memory.record_user_fact("a", user="ana", tags=["b"], time="2026-03-01")
    memory.record_knowledge("a", source="a.md", format="markdown")
    recollect.open(":memory:", durability="normal")
    stats, vectors = memory.stats(), memory.vector_stats()
    return [stats["records"] + 1, stats["kinds"]["user_fact"], stats.get("quota"), vectors["coverage"] + 0.5]


def wrong(memory: recollect.Memory) -> None:
    memory.remember("a", if_exists="kep")  # type: ignore[arg-type]
    memory.remember("a", "user_fact")  # type: ignore[call-arg]
    memory.remember("a", importence=0.5)  # type: ignore[call-arg]
    memory.remember("a", time=5)  # type: ignore[arg-type]
    memory.remember_all(["a"], on_error="skip")  # type: ignore[arg-type]
    memory.recall("a", where=5)  # type: ignore[arg-type]
    memory.recall("a", usr="ana")  # type: ignore[call-arg]
    memory.find(order="time")  # type: ignore[arg-type]
    memory.update("a", importance="high")  # type: ignore[arg-type]
    memory.update("a", importence=0.5)  # type: ignore[call-arg]
    memory.set_quota(records=5, when_full="drop")  # type: ignore[arg-type]
    memory.set_quota(records=5, per="tag")  # type: ignore[arg-type]
    memory.record_user_fact("a", usr="ana")  # type: ignore[call-arg]
    memory.record_user_fact("a", kind="task")  # type: ignore[call-arg]
    memory.record_knowledge("a", format="html")  # type: ignore[arg-type]
    recollect.open(":memory:", durability="off")  # type: ignore[arg-type]
    memory.stats()["record"]  # type: ignore[typeddict-item]


async def awaited(memory: recollect.AsyncMemory) -> Record:
    await memory.recall("a", where="user=ana", reference=date(2026, 3, 1))
    await memory.find(order="time")  # type: ignore[arg-type]
    await memory.update("a", importence=0.5)  # type: ignore[call-arg]
    await memory.glossary.forget("a", "b", "c")  # type: ignore[call-arg]
    assert_type(await memory.recall("a"), recollect.Hits)
    assert_type(await (await memory.at(1)).keyed.read("a"), bytes | None)
    async with memory.batch() as batch:
        assert_type(await batch.find(limit=2), recollect.RecordList)
    return await memory.remember("a", if_exists="update", importance=0.5)
