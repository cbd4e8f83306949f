"""Our calls beside those of mem0 itself: its README, its arguments, and what it returns, without any model."""

from __future__ import annotations

import builtins
import importlib.metadata
import inspect
import os
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mem0")

os.environ["MEM0_TELEMETRY"] = "False"

import mem0
from mem0.utils.factory import EmbedderFactory, LlmFactory

from recollect.compat.mem0 import AsyncMemory, Memory

pytestmark = [
    pytest.mark.filterwarnings("ignore:infer=True needs an extractor"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ANA = {"user_id": "ana"}
CHAT = [
    {"role": "system", "content": "You are a travel agent."},
    {"role": "user", "content": "I prefer window seats", "name": "Ana"},
    {"role": "assistant", "content": "I will book one in Rome"},
]
#: Of a framework, not of a memory.
NOT_OFFERED = {"project"}


class FewWords:
    """An embedding model whose vectors count words."""

    config = types.SimpleNamespace(embedding_dims=64, model="few words")

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector = [0.01] * 64
        for word in re.findall(r"\w+", text.lower()):
            vector[sum(word.encode()) % 64] += 1.0
        return vector

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[mem0.Memory]:
    """The memory of mem0, on its local Qdrant."""
    monkeypatch.setattr(EmbedderFactory, "create", lambda *arguments, **options: FewWords())
    monkeypatch.setattr(LlmFactory, "create", lambda *arguments, **options: types.SimpleNamespace())
    stored = {"path": str(tmp_path / "qdrant"), "embedding_model_dims": 64, "on_disk": True}
    config = {
        "vector_store": {"provider": "qdrant", "config": stored},
        "history_db_path": str(tmp_path / "history.db"),
    }
    memory = mem0.Memory.from_config(config)
    yield memory
    memory.close()


@pytest.fixture
def ours() -> Iterator[Memory]:
    with Memory(memory=":memory:") as memory:
        yield memory


def shape(value: Any) -> Any:
    """Return the keys and types in a result, in which a missing key and None are the same."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in sorted(value.items()) if each is not None}
    return [shape(each) for each in value] if isinstance(value, list) else type(value)


# --- the README ---


def blocks() -> list[str]:
    text = importlib.metadata.distribution("mem0ai").read_text("METADATA") or ""
    return [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "from mem0 import" in block]


def test_the_readme_has_examples() -> None:
    assert blocks()


@pytest.mark.parametrize("block", blocks())
def test_an_example_of_the_readme_runs_with_the_import_line_changed(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[dict[str, str]]] = []

    class Completions:
        def create(self, *, model: str, messages: list[dict[str, str]]) -> Any:
            asked.append(list(messages))
            message = types.SimpleNamespace(content="Window seats it is.")
            return types.SimpleNamespace(choices=[types.SimpleNamespace(message=message)])

    client = types.SimpleNamespace(chat=types.SimpleNamespace(completions=Completions()))
    monkeypatch.setitem(sys.modules, "openai", types.SimpleNamespace(OpenAI=lambda: client))
    said = iter(["I prefer window seats", "Which seats do I prefer?", "exit"])
    monkeypatch.setattr(builtins, "input", lambda prompt="": next(said))
    monkeypatch.setenv("RECOLLECT_DB", str(tmp_path / "agent.db"))
    program = re.sub(r"from mem0 import", "from recollect.compat.mem0 import", block)
    exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.count("AI: Window seats it is.") == 2
    assert "- I prefer window seats" in asked[1][0]["content"]


# --- arguments ---


@pytest.mark.parametrize(("theirs_kind", "ours_kind"), [(mem0.Memory, Memory), (mem0.AsyncMemory, AsyncMemory)])
def test_every_call_and_every_argument_is_there(theirs_kind: type, ours_kind: type) -> None:
    for name, call in inspect.getmembers(theirs_kind, inspect.isfunction):
        if name.startswith("_") or name in NOT_OFFERED:
            continue
        taken = inspect.signature(getattr(ours_kind, name)).parameters
        for parameter in inspect.signature(call).parameters.values():
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                assert parameter.name in taken, f"{name}({parameter.name}=)"


# --- results ---


def test_results_have_the_same_keys_and_types(theirs: mem0.Memory, ours: Memory) -> None:
    metadata = {"topic": "travel", "n": 2}
    of_each: list[dict[str, Any]] = []
    for memory in (theirs, ours):
        added = memory.add(
            CHAT,
            user_id="ana",
            agent_id="guide",
            run_id="trip",
            metadata=metadata,
            infer=False,
            expiration_date="2999-01-01",
        )
        name = added["results"][0]["id"]
        results = {
            "add": added,
            "get": memory.get(name),
            "get_all": {"results": memory.get_all(filters=ANA)["results"][:1]},
            "search": memory.search("window seats", filters=ANA, top_k=1),
            "update": memory.update(name, text="I prefer the aisle"),
            "delete": memory.delete(name),
            "history": memory.history(name),
            "missing": memory.get(name) is None,
            "delete_all": memory.delete_all(user_id="ana"),
            "none": memory.get_all(filters=ANA),
            "reset": memory.reset(),
        }
        of_each.append(results)
    one, other = of_each
    # mem0 names the speaker only of messages that state one: which of two comes first from get_all is its own.
    for results in of_each:
        results["get_all"]["results"][0].pop("actor_id", None)
    assert {key: shape(value) for key, value in other.items()} == {key: shape(value) for key, value in one.items()}
    assert [entry["event"] for entry in other["history"]] == [entry["event"] for entry in one["history"]]
    for entry, same in zip(other["history"], one["history"], strict=True):
        assert (entry["old_memory"], entry["new_memory"]) == (same["old_memory"], same["new_memory"])
    assert other["get"]["hash"] == one["get"]["hash"]


FILTERS: list[dict[str, Any]] = [
    {},
    {"colour": "red"},
    {"colour": ["red", "green"]},
    {"colour": {"eq": "red"}},
    {"colour": {"in": ["red"]}},
    {"colour": {"ne": "red"}},
    {"colour": {"nin": ["red", "green"]}},
    {"n": {"gt": 1}},
    {"n": {"gte": 1, "lt": 3}},
    {"tags": "b"},
    {"tags": {"in": ["c", "a"]}},
    {"AND": [{"colour": "red"}, {"n": 1}]},
    {"OR": [{"colour": "red"}, {"n": 3}]},
    {"NOT": [{"colour": "red"}]},
    {"NOT": [{"colour": "red"}, {"n": 3}]},
    {"agent_id": "guide"},
]


@pytest.mark.parametrize("stated", FILTERS, ids=str)
def test_filters_select_the_same(theirs: mem0.Memory, ours: Memory, stated: dict[str, Any]) -> None:
    found = []
    for memory in (theirs, ours):
        memory.add("red one", user_id="ana", metadata={"colour": "red", "n": 1, "tags": ["a", "b"]}, infer=False)
        memory.add("green two", user_id="ana", metadata={"colour": "green", "n": 2, "tags": ["b"]}, infer=False)
        memory.add("blue three", user_id="ana", agent_id="guide", metadata={"colour": "blue", "n": 3}, infer=False)
        memory.add("red bob", user_id="bob", metadata={"colour": "red", "n": 1}, infer=False)
        results = memory.search("red green blue one two three", filters={**ANA, **stated}, threshold=0.0)
        found.append({each["memory"] for each in results["results"]})
    assert found[1] == found[0]


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.add("x"),
        lambda memory: memory.add("x", user_id=" "),
        lambda memory: memory.add("x", user_id="a b"),
        lambda memory: memory.add("x", user_id="ana", expiration_date="soon", infer=False),
        lambda memory: memory.get_all(),
        lambda memory: memory.search("x"),
        lambda memory: memory.search(" ", filters=ANA),
        lambda memory: memory.search("x", filters=ANA, threshold=2),
        lambda memory: memory.search("x", filters=ANA, top_k=-1),
        lambda memory: memory.search("x", filters={**ANA, "n": {"near": 1}}),
        lambda memory: memory.update("00000000-0000-0000-0000-000000000000", text="x"),
        lambda memory: memory.delete("00000000-0000-0000-0000-000000000000"),
        lambda memory: memory.delete_all(),
        lambda memory: memory.chat("x"),
    ],
)
def test_what_is_an_error_there_is_one_here(theirs: mem0.Memory, ours: Memory, call: Any) -> None:
    for memory in (theirs, ours):
        with pytest.raises(Exception):  # noqa: B017, PT011 - theirs have several classes
            call(memory)
