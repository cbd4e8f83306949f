"""The official clients in TypeScript use our server: of the SDK that most clients have, and of its successor."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.peers.wire import OURS, PATIENCE_S, our_variables

pytestmark = pytest.mark.peers
CLIENT = Path(__file__).with_name("client.mjs")


@pytest.fixture(params=["1", "2"], ids=["sdk", "client"])
def used(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """What the client of a generation got from a server with the default tools."""
    command, *args = OURS
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"command": command, "args": args, "env": our_variables(tmp_path)}))
    done = subprocess.run(
        ["node", str(CLIENT), request.param, str(settings)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_tools_of_every_day_work(used: Any) -> None:
    assert used["tools"] == ["remember", "update", "forget", "recall", "context"]
    assert used["stored"]["status"] == "created"
    assert [hit["content"] for hit in used["recalled"]["hits"]] == ["Ana moved to Lisbon in May."]
    assert used["updated"]["status"] == "updated"
    assert "Porto" in used["context"]
    assert "Lisbon" not in used["context"]
    assert used["forgotten"]["forgotten"]


def test_a_mistake_is_a_result_that_says_what_to_do(used: Any) -> None:
    assert used["refused"]["isError"]
    assert "did you mean 'question'?" in used["refused"]["content"][0]["text"]


def test_the_prompt_and_the_resource_are_there(used: Any) -> None:
    assert "Porto" not in used["prompt"]["messages"][0]["content"]["text"], "it was forgotten before"
    assert used["resources"] == ["memory://knowledge-graph"]
