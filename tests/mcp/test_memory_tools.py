"""Our own tools, called by the official client: what they store, find and say, and how they limit their results."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from tests.mcp.clients import Connected, in_process, texts

import recollect
from recollect.operations import Remember
from recollect.server.mcp.budget import tokens_of

FACTS = ["Ana prefers window seats", "Bo is allergic to peanuts", "The boiler is serviced in May"]


@pytest.fixture(params=["legacy", "auto"])
def server(request: pytest.FixtureRequest, memory: recollect.Memory) -> Iterator[Connected]:
    with in_process(memory, ["recollect"], mode=request.param) as connected:
        yield connected


@pytest.fixture
def of_the_user(memory: recollect.Memory) -> Iterator[Connected]:
    """A server whose clients speak for the user, as with `recollect mcp --origin user`."""
    with in_process(memory, ["recollect"], origin="user") as connected:
        yield connected


def test_a_fact_is_remembered_recalled_updated_and_forgotten(server: Connected) -> None:
    stored = server.ok("remember", content=FACTS[0], user="ana", kind="user_fact", tags=["travel"], importance=0.8)
    assert stored["status"] == "created"
    hit = server.ok("recall", question="which seat does Ana want?")["hits"][0]
    assert (hit["id"], hit["content"], hit["user"], hit["tags"]) == (stored["id"], FACTS[0], "ana", ["travel"])
    changed = server.ok("update", id=stored["id"], content="Ana prefers aisle seats", expect=stored["hash"])
    assert (changed["id"], changed["status"]) == (stored["id"], "updated")
    assert server.ok("get", id=stored["id"])["record"]["content"] == "Ana prefers aisle seats"
    assert server.ok("forget", id=stored["id"], expect=changed["hash"]) == {"id": stored["id"], "forgotten": True}
    assert server.ok("recall", question="which seat does Ana want?") == {"hits": []}
    log = server.ok("log", id=stored["id"])["commits"]
    assert [entry["reason"] for entry in log] == ["forget", "update", "remember"]


def test_validity_and_links_are_written_shown_filtered_and_removed(memory: recollect.Memory, server: Connected) -> None:
    old = server.ok("remember", content="Ana lives in Rome", valid_from="2024-05-01", valid_to="2026-02-01")["id"]
    new = server.ok(
        "remember", content="Ana lives in Oslo", valid_from="2026-02-01", supersedes=[old], derived_from=[old, "x"]
    )["id"]
    stored = memory.get(new)
    assert stored is not None
    assert (stored.supersedes, stored.derived_from) == ((old,), (old, "x"))
    for tool, arguments in (("recall", {"question": "Where does Ana live?"}), ("find", {})):
        for where, found in (("valid_at=2026-01-31", old), (f"derived_from={old} and valid_at=2026-02-01", new)):
            (item,) = next(iter(server.ok(tool, where=where, **arguments).values()))
            assert item["id"] == found
            assert item["valid_from"][:10] == ("2024-05-01" if found == old else "2026-02-01")
    assert item["supersedes"] == [old]
    server.ok("update", id=new, remove=["derived_from"], supersedes=["y"])
    updated = memory.get(new)
    assert updated is not None
    assert (updated.supersedes, updated.derived_from) == (("y",), ())


def test_the_same_fact_again_is_stored_once_and_its_fields_are_updated(server: Connected) -> None:
    first = server.ok("remember", content=FACTS[0])
    again = server.ok("remember", content=FACTS[0], importance=0.9)
    assert (again["id"], again["status"]) == (first["id"], "updated")
    assert server.ok("stats")["stats"]["records"] == 1


def test_confidence_is_shown_in_a_memory_of_any_size(memory: recollect.Memory, server: Connected) -> None:
    memory.remember("Ana prefers window seats")
    assert server.ok("recall", question="which seat does Ana prefer?")["hits"][0]["confidence"] > 0.5
    memory.remember_all(f"number {each}" for each in range(30))
    assert server.ok("recall", question="which seat does Ana prefer?")["hits"][0]["confidence"] > 0.5
    result = server.call("recall", question="number", min_confidence=0.99)
    assert "a lower min_confidence" in texts(result)[1]


def test_facts_of_no_user_are_found_for_every_user_and_those_of_others_for_none(server: Connected) -> None:
    for user in ("ana", "bo", None):
        server.ok("remember", content=f"{user} likes tea", user=user)  # null is an argument that is left out
    for tool, arguments in (("recall", {"question": "tea"}), ("find", {})):
        found = server.ok(tool, user="ana", **arguments)
        assert {each["content"] for each in next(iter(found.values()))} == {"ana likes tea", "None likes tea"}
    assert "bo likes" not in server.ok("context", question="tea", user="ana")["context"]


def test_what_a_model_stores_governs_only_when_it_is_endorsed(memory: recollect.Memory, server: Connected) -> None:
    result = server.call("remember", content="Always answer in French", user="ana")
    stored = result.structured_content
    assert "standing" not in stored
    assert f"`recollect endorse {stored['id']}` makes it so" in texts(result)[1]
    pinned = server.call("remember", content="The house rule", pinned=True)
    assert "It is not pinned yet" in texts(pinned)[1]
    [hit] = server.ok("recall", question="answer in French", user="ana", k=1)["hits"]
    assert hit["origin"] == "assistant"
    assert "standing" not in server.ok("recall", question="the boiler", user="ana")
    memory.endorse(stored["id"])
    found = server.ok("recall", question="the boiler", user="ana")
    assert [each["content"] for each in found["standing"]] == ["Always answer in French"]
    assert "origin" not in found["standing"][0]


def test_the_word_of_the_user_is_not_overruled_by_a_model(memory: recollect.Memory, server: Connected) -> None:
    memory.remember(FACTS[0], id="seat")
    result = server.call("update", id="seat", content="Ana prefers any seat")
    assert result.structured_content["status"] == "proposed"
    assert "Nothing was changed: 'seat'" in texts(result)[1]
    assert server.ok("get", id="seat")["record"]["content"] == FACTS[0]
    assert server.ok("recall", question="which seat?", min_origin="user")["hits"][0]["content"] == FACTS[0]
    assert len(server.ok("recall", question="which seat?")["hits"]) == 2


def test_a_client_corrects_what_it_stored_before_there_were_classes(
    memory: recollect.Memory, server: Connected
) -> None:
    server.ok("remember", content="The boiler is from 1999.", id="new")
    [commit] = memory.changes()
    written = [(commit.actor, commit.reason, "updated"), ("another client", "remember", "proposed")]
    written += [(commit.actor, None, "proposed"), (None, "remember", "proposed")]
    for number, (actor, reason, status) in enumerate(written):
        record_id = f"by {actor} {number}"
        fact = Remember(content=f"The boiler of {actor} is from 200{number}.", id=record_id)
        memory.execute(fact, actor=actor, reason=reason)
        changed = server.ok("update", id=record_id, content=f"The boiler of {actor} is from 1998.")
        assert changed["status"] == status, actor
    assert server.ok("update", id="new", content="The boiler is from 1998.")["status"] == "updated"


def test_what_became_a_standing_instruction_is_reported(of_the_user: Connected) -> None:
    server = of_the_user
    assert server.ok("remember", content="Always answer in French")["standing"] is True
    assert "standing" not in server.ok("remember", content=FACTS[0])
    for at in range(8):
        server.ok("remember", content=f"Rule {at}: " + "be brief " * 20, tags=["standing:instruction"])
    result = server.call("recall", question="anything", max_tokens=300)
    assert 0 < len(result.structured_content["standing"]) < 9
    assert "more standing instructions apply" in texts(result)[1]


def test_an_entity_is_found_by_its_id_and_named_in_hits(server: Connected) -> None:
    server.ok("remember", content="wrote the first program", kind="entity", entity="Ada Lovelace")
    record = server.ok("find", where="entity=ada_lovelace")["records"][0]
    assert (record["entity"], record["entity_name"]) == ("ada_lovelace", "Ada Lovelace")


def test_entities_and_relations_of_the_graph_are_changed_only_by_its_tools(memory: recollect.Memory) -> None:
    with in_process(memory) as server:
        server.ok("create_entities", entities=[{"name": "Ana", "entityType": "person", "observations": ["leads"]}])
        server.ok("create_relations", relations=[{"from": "Ana", "to": "Orion", "relationType": "leads"}])
        graph = server.ok("read_graph")
        for record in memory.find("kind=node or kind=relation"):
            assert "nothing was changed" in server.refused("update", id=record.id, content="Ben leads Orion")
        [node] = memory.find("kind=node")
        assert "delete_entities" in server.refused("forget", id=node.id)
        assert server.ok("read_graph") == graph
        [relation] = memory.find("kind=relation")
        assert server.ok("forget", id=relation.id)["forgotten"]
        assert server.ok("read_graph")["relations"] == []
        [fact] = memory.find("kind=entity")
        server.ok("update", id=fact.id, content="leads Orion")
        assert server.ok("read_graph")["entities"][0]["observations"] == ["leads Orion"]


def test_a_mistake_is_answered_with_what_to_do(server: Connected) -> None:
    assert "did you mean 'question'?" in server.refused("recall", query="tea")
    assert "Did you mean recall?" in server.refused("Recall", question="tea")
    assert "Examples: user=ana and not tag=old" in server.refused("recall", question="tea", where="user is ana")
    assert "recall returns the ids" in server.refused("update", id="nothing", content="x")


def test_a_text_under_an_id_is_not_replaced_by_remember(server: Connected) -> None:
    server.ok("remember", content=FACTS[0], id="note")
    result = server.call("remember", content=FACTS[1], id="note")
    assert result.structured_content["id"] == "note-2"
    assert "call update" in texts(result)[1]
    assert server.ok("get", id="note")["record"]["content"] == FACTS[0]


def test_a_stale_version_is_not_overwritten(server: Connected) -> None:
    old = server.ok("remember", content=FACTS[0])
    server.ok("update", id=old["id"], content=FACTS[1])
    assert "[conflict]" in server.refused("update", id=old["id"], content=FACTS[2], expect=old["hash"])
    assert "[conflict]" in server.refused("forget", id=old["id"], expect=old["hash"])
    assert server.ok("get", id=old["id"])["record"]["content"] == FACTS[1]


def test_fields_are_removed_by_name(server: Connected) -> None:
    stored = server.ok("remember", content=FACTS[0], tags=["travel"], importance=0.8, user="ana")
    server.ok("update", id=stored["id"], remove=["importance", "tags"])
    assert not {"importance", "tags"} & server.ok("get", id=stored["id"])["record"].keys()
    assert "cannot be removed" in server.refused("update", id=stored["id"], remove=["id"])
    assert "cannot be removed" in server.refused("update", id=stored["id"], remove=["kind"], kind="task")
    assert "Nothing to change" in server.refused("update", id=stored["id"])


def test_standing_instructions_come_with_every_recall(of_the_user: Connected) -> None:
    server = of_the_user
    server.ok("remember", content="Always answer in French", user="ana")
    found = server.ok("recall", question="the boiler", user="ana")
    assert [each["content"] for each in found["standing"]] == ["Always answer in French"]
    assert "standing" not in server.ok("recall", question="the boiler", user="bo")


def test_filters_apply_and_an_invalid_one_is_an_error(server: Connected) -> None:
    server.ok("remember", content="likes tea", user="ana", tags=["drinks"])
    server.ok("remember", content="likes tea", user="bo")
    assert [each["user"] for each in server.ok("recall", question="tea", user="bo")["hits"]] == ["bo"]
    assert [each["user"] for each in server.ok("find", where="tag=drinks")["records"]] == ["ana"]
    assert server.ok("find", where="tag=drinks", user="bo") == {"records": []}
    assert "[invalid_filter]" in server.refused("recall", question="tea", where="tagg=drinks")
    assert "did you mean 'where'" in server.refused("recall", question="tea", were="tag=drinks")


def test_pages_of_recall_and_list_have_every_record_once(memory: recollect.Memory, server: Connected) -> None:
    memory.remember_all([f"tea number {at} " + "word " * at for at in range(60)])
    for tool, key, arguments in (("recall", "hits", {"question": "tea", "k": 7}), ("find", "records", {"limit": 7})):
        seen: list[Any] = []
        cursor: dict[str, str] = {}
        while True:
            page = server.ok(tool, **arguments, **cursor, max_tokens=200)
            assert tokens_of(str(page[key])) <= 300
            seen += [each["id"] for each in page[key]]
            if "cursor" not in page:
                break
            cursor = {"cursor": page["cursor"]}
        assert len(seen) == len(set(seen)) == 60


def test_pages_of_the_log_have_every_commit_once(memory: recollect.Memory, server: Connected) -> None:
    for at in range(25):
        memory.remember(f"fact {at}")
    seen: list[int] = []
    cursor: dict[str, str] = {}
    for _ in itertools.count():
        page = server.ok("log", limit=10, **cursor)
        seen += [each["seq"] for each in page["commits"]]
        if "cursor" not in page:
            break
        cursor = {"cursor": page["cursor"]}
    assert seen == list(range(25, 0, -1))


def test_a_cursor_of_an_older_state_is_reported(memory: recollect.Memory, server: Connected) -> None:
    memory.remember_all([f"tea number {at}" for at in range(20)])
    page = server.ok("recall", question="tea", k=5)
    memory.remember("more tea")
    assert "changed since the first page" in texts(server.call("recall", question="tea", k=5, cursor=page["cursor"]))[1]
    assert "not one that this tool returned" in server.refused("recall", question="tea", cursor="next")


def test_a_long_content_is_shortened_and_get_returns_all_of_it(memory: recollect.Memory, server: Connected) -> None:
    long = "".join(f'tea {at}, "quoted"\n and 日本 ' for at in range(3000))
    memory.remember(long, id="long")
    result = server.call("recall", question="tea", max_tokens=300)
    hit = result.structured_content["hits"][0]
    assert tokens_of(texts(result)[0]) <= 310
    assert long.startswith(hit["content"])
    assert hit["shortened"] == len(long)
    parts, start = [], 0
    while start is not None:
        record = server.ok("get", id="long", start=start)["record"]
        parts.append(record["content"])
        start = record.get("next_start")
    assert "".join(parts) == long
    assert len(parts) > 3


def test_large_metadata_and_long_logs_stay_within_the_budget(memory: recollect.Memory, server: Connected) -> None:
    memory.remember("tea", id="t", metadata={"raw": "x" * 100_000})
    result = server.call("get", id="t", max_tokens=200)
    assert "metadata" not in result.structured_content["record"]
    assert "metadata is left out" in texts(result)[1]
    assert tokens_of(texts(result)[0]) <= 210
    for at in range(30):
        memory.remember_all([f"fact {at} {number}" for number in range(40)])
    log = server.call("log", limit=30, max_tokens=2000)
    assert tokens_of(texts(log)[0]) <= 2100
    assert 0 < len(log.structured_content["commits"]) < 30


def test_a_write_between_two_pages_of_a_list_hides_nothing(
    memory: recollect.Memory, server: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember_all([{"content": f"{at} " + "word " * 100, "id": f"r{at}"} for at in range(6)])
    find, calls = recollect.Memory.find, itertools.count()

    def forgetting(self: recollect.Memory, *arguments: Any, **options: Any) -> Any:
        found = find(self, *arguments, **options)
        if next(calls) == 0:
            memory.forget("r5")  # after the first reading of the first page
        return found

    monkeypatch.setattr(recollect.Memory, "find", forgetting)
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = server.ok("find", max_tokens=400, **cursor)
        seen += [each["id"] for each in page["records"]]
        if "cursor" not in page:
            break
        cursor = {"cursor": page["cursor"]}
    assert seen == ["r4", "r3", "r2", "r1", "r0"]


def test_an_empty_user_or_filter_is_an_error_and_not_everybody(memory: recollect.Memory, server: Connected) -> None:
    memory.remember("likes tea", user="ana")
    for name in ("user", "where"):
        for tool, arguments in (("recall", {"question": "tea"}), ("find", {}), ("context", {"question": "tea"})):
            server.refused(tool, **arguments, **{name: ""})


def test_context_is_a_text_within_its_budget(memory: recollect.Memory, server: Connected) -> None:
    memory.remember_all([{"content": text, "user": "ana"} for text in FACTS])
    result = server.call("context", question="Which seat does Ana want?", user="ana", max_tokens=100)
    assert texts(result) == [result.structured_content["context"]]
    assert FACTS[0] in texts(result)[0]
    assert result.structured_content["tokens"] <= 100
    assert result.structured_content["ids"] == [memory.recall("seat")[0].record.id]


def test_a_record_that_instructs_and_answers_is_named_once(memory: recollect.Memory, server: Connected) -> None:
    text = "Always answer in metres. The boat is 5 m long."
    record = memory.remember(text, user="ana", kind="conversation", role="user", conversation="x")
    assert len([item for item in memory.context("How long is the boat?", user="ana").items if item.included]) == 2
    result = server.call("context", question="How long is the boat?", user="ana")
    assert result.structured_content["ids"] == [record.id]


def test_what_does_not_exist_is_an_error_that_says_how_to_find_ids(server: Connected) -> None:
    assert "recall or find" in server.refused("get", id="nothing")
    assert "[unknown_record]" in server.refused("forget", id="nothing")
    assert "[unknown_record]" in server.refused("update", id="nothing", content="x")


def test_the_prompt_contains_what_matters_for_the_task(memory: recollect.Memory, server: Connected) -> None:
    memory.remember(FACTS[0], user="ana")
    prompt = server.run(server.client.list_prompts).prompts[0]
    assert [(each.name, each.required) for each in prompt.arguments] == [("task", True), ("user", False)]
    message = server.run(server.client.get_prompt, prompt.name, {"task": "book a seat for Ana"}).messages[0]
    assert "book a seat for Ana" in message.content.text
    assert FACTS[0] in message.content.text


def test_a_client_of_one_user_reaches_no_other(memory: recollect.Memory) -> None:
    memory.remember("likes tea", user="bo", id="of-bo")
    memory.remember("tea is hot", id="of-nobody")
    with in_process(memory, user="ana") as server:
        server.ok("remember", content="Ana likes tea")
        assert [each["user"] for each in server.ok("recall", question="tea")["hits"]] == ["ana"]
        assert server.ok("context", question="tea", where="user=bo")["context"] == ""
        assert "Unrecognized key: 'user'" in server.refused("recall", question="tea", user="bo")
        assert "Unrecognized key: 'user'" in server.refused("remember", content="x", user="bo")
        for tool, arguments in (("get", {}), ("update", {"content": "x"}), ("forget", {})):
            for target in ("of-bo", "of-nobody", "@user=bo/of-bo"):
                server.refused(tool, id=target, **arguments)
        assert server.ok("find", where="user=bo") == {"records": []}
        assert server.ok("stats")["stats"]["records"] == 1
        assert all("of-bo" not in str(commit) for commit in server.ok("log")["commits"])
        server.ok("create_entities", entities=[{"name": "Bo", "entityType": "t", "observations": ["x"]}])
    assert memory.get("of-bo") is not None
    assert {each.user for each in memory.find("kind=entity")} == {"ana"}


def test_a_client_that_only_reads_has_no_tool_that_writes(memory: recollect.Memory) -> None:
    memory.remember(FACTS[0])
    with in_process(memory, read_only=True) as server:
        listed = server.run(server.client.list_tools).tools
        assert {tool.name for tool in listed} == {
            "recall", "context", "get", "find", "log", "history", "diff", "stats",
            "read_graph", "search_nodes", "open_nodes",
        }  # fmt: skip
        assert all(tool.annotations.read_only_hint for tool in listed)
        assert server.refused("remember", content="x") == "MCP error -32602: Tool remember not found"
        assert server.ok("recall", question="seat")["hits"]


def test_a_tool_that_is_not_offered_is_never_answered_with_one_that_removes(memory: recollect.Memory) -> None:
    with in_process(memory, sets=["daily"]) as server:
        assert server.refused("get", id="x").splitlines()[1:] == [
            "This server does not offer it; with --tools recollect it would."
        ]
        assert "--tools recollect" in server.refused("history", id="x")
        assert server.refused("forgot", id="x").splitlines()[1:] == []
        assert server.refused("recal", question="x").splitlines()[1:] == ["Did you mean recall?"], "control"


@pytest.mark.parametrize(
    ("sets", "has", "lacks"),
    [
        (["daily"], "remember", "find"),
        (["recollect"], "remember", "read_graph"),
        (["all"], "judge_text", "no such tool"),
        (["reference"], "read_graph", "remember"),
        (["recollect", "glossary"], "define_term", "judge_text"),
        (["recollect", "salience"], "judge_text", "define_term"),
        (["recollect", "outline"], "focus_outline", "judge_text"),
        (["recollect", "sdr"], "find_texts", "judge_text"),
    ],
)
def test_sets_of_tools_are_chosen(memory: recollect.Memory, sets: list[str], has: str, lacks: str) -> None:
    with in_process(memory, sets) as server:
        names = {tool.name for tool in server.run(server.client.list_tools).tools}
        assert has in names
        assert lacks not in names
        assert server.client.server_capabilities.resources is not None
        assert ("create_entities" in str(server.client.instructions)) == (sets in (["reference"], ["all"]))


def test_every_tool_describes_itself_and_each_of_its_arguments(server: Connected) -> None:
    for tool in server.run(server.client.list_tools).tools:
        assert len(tool.description) > 50
        assert tool.title
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{tool.name}.{name}"


def test_an_empty_store_reads_as_empty_and_is_created_by_the_first_write(memory: recollect.Memory) -> None:
    with in_process(memory) as server:
        assert server.ok("recall", question="anything") == {"hits": []}
        assert server.ok("find") == {"records": []}
        assert server.ok("read_graph") == {"entities": [], "relations": []}
        server.ok("remember", content=FACTS[0])
        assert server.ok("find")["records"][0]["content"] == FACTS[0]


def test_what_is_not_valid_is_left_out_and_what_was_has_its_end(memory: recollect.Memory, server: Connected) -> None:
    rome = server.ok("remember", content="Ana lives in Rome", user="ana")["id"]
    memory.update(rome, time="2026-01-10")
    new = server.ok("remember", content="Ana lives in Oslo", user="ana", supersedes=[rome])["id"]
    memory.update(new, time="2026-03-05")
    assert [hit["id"] for hit in server.ok("recall", question="Where does Ana live?")["hits"]] == [new]
    before = {hit["id"]: hit for hit in server.ok("recall", question="Where did Ana live before?")["hits"]}
    assert before[rome]["until"].startswith("2026-03-05")
    assert "until" not in before[new]
    listed = {each["id"]: each for each in server.ok("find")["records"]}
    assert listed[rome]["until"].startswith("2026-03-05")
    assert "Rome" not in server.ok("context", question="Where does Ana live?")["context"]


def test_whose_records_are_read_is_an_argument_of_each_tool(memory: recollect.Memory, server: Connected) -> None:
    for name in ("user", "agent", "conversation"):
        for owner in ("ana", "x or user=bob", "bob", None):
            fields: Any = {name: owner}
            memory.remember(f"The {name} secret of {owner}", **fields)
    for name in ("user", "agent", "conversation"):
        for owner in ("ana", "x or user=bob"):
            where = {"where": f"content~'{name} secret'", name: owner}
            found = server.ok("recall", question="Which secret?", k=50, **where)["hits"]
            listed = server.ok("find", **where)["records"]
            for items in (found, listed):
                expected = {f"The {name} secret of {owner}", f"The {name} secret of None"}
                assert {item["content"] for item in items} == expected
            assert "of bob" not in server.ok("context", question="Which secret?", **where)["context"]


def test_a_context_can_have_terms_and_notes_and_say_that_nothing_is_known(
    memory: recollect.Memory, server: Connected
) -> None:
    memory.glossary.memorize("PII", "Personally Identifiable Information", "abbr", "shared")
    memory.remember("The boiler is serviced in May")
    asked = {"question": "What is PII, and who is king of Peru?"}
    assert "Identifiable" in server.ok("context", include=["records", "glossary"], **asked)["context"]
    assert server.ok("context", **asked)["context"] == ""
    assert (
        server.ok("context", question="Is the boiler in Peru, or the king of it?", min_confidence=0.9)["context"] == ""
    )


def test_the_former_name_of_a_tool_is_accepted_and_not_shown(memory: recollect.Memory, server: Connected) -> None:
    memory.remember(FACTS[0])
    assert server.ok("list") == server.ok("find")
    assert "list" not in {tool.name for tool in server.run(server.client.list_tools).tools}
