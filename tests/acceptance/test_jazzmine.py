"""The design of the glossary, line by line, through the names of jazzmine.

Lines that other tests have in the same words are not repeated here: every call, the signatures, the errors of the
constructor and of a server that cannot be reached (`tests/compat/test_jazzmine.py`), a Qdrant server
(`tests/facets/glossary/test_qdrant.py`, with RECOLLECT_QDRANT_URL a real one), and terms, scores and ids
(`tests/facets/glossary/test_glossary.py`).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.facets.glossary.test_glossary import tokenizer_json
from tests.paths import ROOT

from recollect.compat.jazzmine import QdrantManager, SemanticMemory

PAGE = (ROOT / "docs" / "jazzmine.md").read_text("utf-8")
#: What runs a model, or a database of vectors.
HEAVY = ("torch", "transformers", "sentence_transformers", "onnxruntime", "qdrant_client", "sklearn", "faiss")


def test_terms_need_no_model_and_no_database_of_vectors(tmp_path: Path) -> None:
    """The design calls their cost negligible: nothing is loaded but the tokenizer."""
    tokenizer = str(tokenizer_json(tmp_path / "tokenizer.json"))
    program = f"""
import asyncio, json, sys
from recollect.compat.jazzmine import QdrantManager, SemanticMemory

async def main():
    manager = QdrantManager(url="recollect::memory:", vector_size=384)
    semantic = SemanticMemory(qdrant_manager=manager, tokenizer_path={tokenizer!r})
    await semantic.memorize(key="Pod", value="what is a crash", category="a", agent_id="bot")
    found = await semantic.recall(query="what is a pod?", agent_id="bot", top_k=3, score_threshold=0.1)
    heavy = sorted(set({HEAVY}) & set(sys.modules))
    print(json.dumps([[each["key"] for each in found], heavy, "tokenizers" in sys.modules]))

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [["Pod"], [], True]


def test_the_agents_of_a_file_can_be_listed_when_their_names_were_forgotten(tmp_path: Path) -> None:
    tokenizer = tokenizer_json(tmp_path / "tokenizer.json")

    async def fill(manager: QdrantManager) -> None:
        semantic = SemanticMemory(qdrant_manager=manager, tokenizer_path=str(tokenizer))
        for agent, key in (("compliance_bot", "PII"), ("compliance_bot", "SLA"), ("helper", "JWT")):
            await semantic.memorize(key=key, value="what it means", category="a", agent_id=agent)

    path = f"recollect:{tmp_path / 'terms.db'}"
    manager = QdrantManager(url=path, vector_size=384)
    asyncio.run(fill(manager))
    manager.close()
    again = QdrantManager(url=path, vector_size=384)
    assert again.memory is not None
    assert again.memory.glossary.agents() == {"compliance_bot": 2, "helper": 1}
    again.close()


@pytest.mark.parametrize(
    "name",
    [
        *("EpisodicMemory", "ProceduralMemory"),
        *("ensure_conversation_summaries_collection", "ensure_flows_collection"),
    ],
)
def test_what_jazzmine_has_besides_its_semantic_memory_is_said_to_be_missing(name: str) -> None:
    from recollect.compat import jazzmine

    assert not hasattr(jazzmine, name)
    assert not hasattr(QdrantManager, name)
    assert name in PAGE.partition("## What differs")[2]


def test_the_port_of_a_server_is_that_of_rest_and_the_page_says_so() -> None:
    row = next(line for line in PAGE.splitlines() if "6334" in line)
    assert "gRPC" in row
    assert "the port of REST" in row
