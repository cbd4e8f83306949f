"""What the common routes return is what the description of the server says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.http.serving import Server, served

from recollect.records.record import FIELD_NAMES
from recollect.server.http.answers import SCHEMAS


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("answers")
    with served(folder) as server:
        yield server


#: Requests in their order: method, path below the namespace, and body.
REQUESTS: list[tuple[str, str, Any]] = [
    ("POST", "/remember", {"content": "Ana drinks tea", "id": "tea", "user": "ana", "tags": ["drink"], "pinned": True}),
    ("POST", "/messages", {"messages": [{"role": "user", "content": "My cat eats salmon."}], "conversation": "c"}),
    ("POST", "/recall", {"question": "what does Ana drink?"}),
    ("GET", "/recall?question=cat", None),
    ("POST", "/context", {"question": "what does Ana drink?", "max_tokens": 300}),
    ("GET", "/context?question=cat", None),
    ("GET", "/records?limit=1", None),
    ("GET", "/records/tea", None),
    ("PATCH", "/records/tea", {"content": "Ana drinks coffee", "importance": 0.5}),
    ("GET", "/history/tea", None),
    ("GET", "/changes", None),
    ("POST", "/execute", {"op": "count"}),
    ("DELETE", "/records/tea", None),
    ("GET", "/history/tea", None),
]


def route_of(path: str) -> str:
    """Return the described path of a request."""
    start, *rest = path.partition("?")[0].strip("/").split("/")
    return "/v1/{namespace}/" + start + ("/{id}" if rest else "")


def test_answers_match_their_schemas(server: Server) -> None:
    described = server("GET", "/openapi.json").json
    components = described["components"]
    seen = set()
    for method, path, body in REQUESTS:
        answer = server(method, f"/v1/n{path}", body)
        responses = described["paths"][route_of(path)][method.lower()]["responses"]
        assert str(answer.status) in responses, (method, path, answer.json)
        schema = responses[str(answer.status)]["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json, {**schema, "components": components})
        for wrong in ({}, dict.fromkeys(answer.json)):
            with pytest.raises(jsonschema.ValidationError):  # control
                jsonschema.validate(wrong, {**schema, "components": components})
        seen.add((route_of(path), method))
    with_schemas = {
        (path, method.upper())
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if "200" in operation["responses"] and operation["responses"]["200"].get("content", {}).get("application/json")
    }
    assert seen == with_schemas


def test_a_body_names_every_field_that_a_client_can_set(server: Server) -> None:
    described = server("GET", "/openapi.json").json["paths"]
    body = described["/v1/{namespace}/remember"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(FIELD_NAMES) <= set(body["properties"])


def test_the_schema_of_a_record_has_every_field() -> None:
    assert set(FIELD_NAMES) <= set(SCHEMAS["Record"]["properties"])
    assert "hash" in SCHEMAS["Record"]["required"]


def test_what_null_clears_is_described_for_every_field_and_for_no_other(server: Server) -> None:
    described = server("GET", "/openapi.json").json["paths"]["/v1/{namespace}/records/{id}"]["patch"]
    fields = described["requestBody"]["content"]["application/json"]["schema"]["properties"]
    server("POST", "/v1/null/remember", {"content": "Ana drinks tea", "id": "tea"})
    for name, schema in fields.items():
        if name in ("in", "expect"):
            continue
        answer = server("PATCH", "/v1/null/records/tea", {name: None})
        assert (answer.status == 200) == ("null" in schema["type"]), (name, answer.json)
        assert answer.status in (200, 400, 422)
