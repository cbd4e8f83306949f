"""Whatever a source holds, importing it gives a report or ImportFormatError, never another error."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests import foreign

import recollect
from recollect import Memory
from recollect.cli.app import app
from recollect.errors import ImportFormatError
from recollect.evaluation import DATASET_IMPORTERS
from recollect.importers import IMPORTERS, ImportReport, import_path
from recollect.importers.base import Omission

FORMATS = {**DATASET_IMPORTERS, **IMPORTERS}
EVERY = pytest.mark.parametrize("form", list(FORMATS))
STRICT = pytest.mark.parametrize("form", [name for name in FORMATS if name not in ("text", "markdown")])
DEEP = 100_000


def tried(memory: Memory, form: str, path: Path) -> ImportReport | None:
    """The report; None for a refusal, which must leave nothing behind."""
    try:
        report = import_path(memory, FORMATS[form], path)
    except ImportFormatError as error:
        assert memory.namespaces() == []
        str(error).encode()  # it can be printed
        return None
    for damage in report.damaged:
        f"{damage.place} {damage.reason}".encode()
    return report


@STRICT
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 100,
        b"\xff\xfe[\x00]\x00",
        bytes(range(256)),
        b"null",
        b"NaN",
        b'"text"',
        b"[" * DEEP + b"]" * DEEP,
        b'{"messages":' * DEEP,
        b'{"messages": [{"role": "user", "content": "x", "seed": ' + b"9" * 5000 + b"}]}",
        b'[{"role": "user", "content": ',
    ],
)
def test_files_that_are_not_of_the_format_are_refused(form: str, data: bytes, memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_bytes(data)
    assert tried(memory, form, path) is None


@EVERY
def test_missing_unreadable_and_impossible_paths_are_refused_or_reported(
    form: str, memory: Memory, tmp_path: Path
) -> None:
    assert tried(memory, form, tmp_path / "missing") is None
    assert tried(memory, form, tmp_path / ("long" * 100)) is None
    assert tried(memory, form, Path("nul\0byte")) is None
    (tmp_path / "empty").mkdir()
    assert tried(memory, form, tmp_path / "empty") is None
    (tmp_path / "loop").symlink_to("loop")
    assert tried(memory, form, tmp_path / "loop") is None
    (tmp_path / "closed").write_text("x")
    (tmp_path / "closed").chmod(0)
    if not os.access(tmp_path / "closed", os.R_OK):  # root reads everything
        report = tried(memory, form, tmp_path / "closed")
        assert report is None or report.damaged


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_a_pipe(path: Path) -> None:
    os.mkfifo(f"{path}.pipe")
    path.symlink_to(f"{path}.pipe")


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def a_socket(path: Path) -> None:
    with contextlib.chdir(path.parent), contextlib.closing(socket.socket(socket.AF_UNIX)) as made:
        made.bind(path.name)  # its name may have a hundred bytes


@EVERY
@pytest.mark.promise("import.regular")
@pytest.mark.parametrize("make", [pipe, link_to_a_pipe, endless, folder, a_socket])
def test_what_is_no_regular_file_is_refused_and_never_waited_for(
    form: str, make: Callable[[Path], None], memory: Memory, tmp_path: Path
) -> None:
    path = tmp_path / "source"
    make(path)
    with pytest.raises(ImportFormatError, match=r"regular file|folder|contains no|neither it") as refused:
        import_path(memory, FORMATS[form], path)
    assert "nothing was imported from it" in str(refused.value)
    with pytest.raises(ImportFormatError):
        import_path(memory, FORMATS[form], Path("/dev/zero"))
    assert memory.count() == 0


@EVERY
@pytest.mark.promise("import.regular")
@pytest.mark.parametrize("make", [pipe, endless, a_socket])
def test_what_is_no_regular_file_in_a_folder_is_reported_and_never_waited_for(
    form: str, make: Callable[[Path], None], memory: Memory, tmp_path: Path
) -> None:
    for name in ("a.txt", "a.md", "chat.json", "sub/chat.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        make(tmp_path / name)
    with contextlib.suppress(ImportFormatError):
        report = import_path(memory, FORMATS[form], tmp_path, follow_links=True)
        assert report.damaged
    assert memory.count() == 0


@pytest.mark.promise("import.links")
@pytest.mark.parametrize("form", ["text", "markdown", "beam", "beam folders"])
@pytest.mark.parametrize("relative", [False, True])
def test_a_link_out_of_a_folder_is_followed_only_where_that_is_asked_for(
    form: str, relative: bool, memory: Memory, tmp_path: Path
) -> None:
    chat = json.dumps([{"turns": [[{"role": "user", "id": 1, "content": "the secret"}]]}])
    name = {"text": "a.txt", "markdown": "a.md", "beam": "chat.json", "beam folders": "one/chat.json"}[form]
    secret, source = tmp_path / "secret", tmp_path / "source"
    secret.write_text(chat if "beam" in form else "the secret", encoding="utf-8")
    place = source / name
    place.parent.mkdir(parents=True)
    place.symlink_to(os.path.relpath(secret, place.parent) if relative else secret)
    importer = FORMATS[form.split()[0]]
    try:
        report = import_path(memory, importer, source)
        assert "link to a file outside the folder" in report.damaged[0].reason
    except ImportFormatError as error:
        assert form == "beam"
        assert "link to a file outside the folder" in str(error)
    assert not any(memory.namespace(each).count() for each in memory.namespaces())
    assert import_path(memory, importer, source, follow_links=True).created == 1
    done = CliRunner().invoke(
        app, ["import", form.split()[0], str(source), "--db", str(tmp_path / "a.db"), "--follow-links"]
    )
    assert done.exit_code == 0, done.output


@pytest.mark.promise("import.links")
def test_links_that_stay_in_the_folder_and_a_link_that_is_named_itself_are_read(memory: Memory, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "a.txt").write_text("one", encoding="utf-8")
    (source / "sub" / "b.txt").symlink_to("../a.txt")
    (tmp_path / "link").symlink_to(source)
    (tmp_path / "link.txt").symlink_to(source / "a.txt")
    report = import_path(memory, IMPORTERS["text"], tmp_path / "link")
    assert (report.created, report.damaged) == (2, ())
    assert import_path(memory, IMPORTERS["text"], tmp_path / "link.txt").created == 1


@EVERY
def test_a_folder_whose_name_is_not_unicode_is_refused_printably(form: str, memory: Memory, tmp_path: Path) -> None:
    assert tried(memory, form, tmp_path / os.fsdecode(b"\xff")) is None


@STRICT
def test_deep_values_damage_only_their_own_item(form: str, memory: Memory, tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    path = tmp_path / "chat.json"
    good = {"role": "user", "content": "fine", "id": "a"}
    bad = {"role": "user", "content": "fine", "id": "b", "metadata": {"deep": deep}}
    turns = [{"speaker": "A", "text": "fine", "dia_id": "a"}, {"speaker": "A", "text": "fine", "img_url": deep}]
    data: Any = {
        "locomo": [
            {
                "sample_id": "s",
                "conversation": {"session_1": turns, "session_1_date_time": "1:00 pm on 1 May, 2023"},
            }
        ],
        "beam": [{"turns": [[good, {**bad, "role": deep}]]}],
        "chatgpt": [
            {
                "mapping": {
                    "a": {"message": {"author": {"role": "user"}, "content": {"parts": ["fine"]}}},
                    "b": {"message": {"author": {"role": "user"}, "content": {"parts": [{"deep": deep}]}}},
                }
            }
        ],
        "claude": [{"chat_messages": [{**good, "sender": "human"}, {**bad, "sender": "human"}]}],
        "claude-code": claude_lines(good, {**bad, "content": [{"type": "image", "deep": deep}]}),
        "codex": codex_lines(good, {**bad, "content": [{"type": "image", "deep": deep}]}),
        "mem0": [{"memory": "fine"}, {"memory": "fine", "metadata": {"deep": deep}}],
    }.get(form, [good, bad])
    path.write_text(json.dumps(data))
    if form in ("claude-code", "codex"):
        path.write_text("\n".join(map(json.dumps, data)) + "\n")
    if form == "csv":
        cell = json.dumps({"deep": deep}).replace('"', '""')
        path.write_text(f'content,metadata\nfine,\nfine,"{cell}"\n')
    if form == "jsonl":
        header = {"recollect": {"format": 1, "namespace": "default", "records": 2}}
        lines = [header, {"id": "a", "content": "x"}, {"id": "b", "content": "x", "metadata": {"deep": deep}}]
        path.write_text("\n".join(map(json.dumps, lines)))
    if form == "mcp-memory":
        entity = {"type": "entity", "name": "fine", "entityType": "t", "observations": []}
        path.write_text("\n".join(map(json.dumps, [entity, {**entity, "observations": deep}])))
    too_deep = "[" * DEEP + "]" * DEEP  # their values are JSON, which may be deep
    if form == "langgraph":
        values: list[Any] = [{"text": "fine"}, too_deep]
        foreign.store(path, *({"prefix": "a", "key": str(at), "value": each} for at, each in enumerate(values)))
    if form == "openai-sessions":
        foreign.sessions(path, {"chat": [good, too_deep]})
    if form == "chroma":
        lists = {"ids": ["a", "b"], "documents": ["fine", "fine too"], "metadatas": [{}, {"deep": deep}]}
        path.write_text(json.dumps(lists))
    report = tried(memory, form, path)
    assert report is not None
    assert (report.created, len(report.damaged)) == (1, 1)


def claude_lines(*messages: Any) -> list[dict[str, Any]]:
    """Return messages as the lines of a transcript of Claude Code."""
    return [
        {"type": "user", "uuid": f"u{number}", "parentUuid": f"u{number - 1}", "sessionId": "s", "message": message}
        for number, message in enumerate(messages)
    ]


def codex_lines(*messages: Any) -> list[dict[str, Any]]:
    """Return messages as the lines of a transcript of the Codex CLI."""
    items = [{"type": "response_item", "payload": {"type": "message", **message}} for message in messages]
    return [{"type": "session_meta", "payload": {"id": "s"}}, *items]


# Anything that JSON can hold, under the keys that the formats know.

KEYS = [
    *(
        "sample_id conversation session_1 session_2 session_1_date_time dia_id text speaker blip_caption img_url"
    ).split(),
    *("turns batch_number time_anchor role id content uuid sender name title messages chat_messages system").split(),
    *("type tool_calls function arguments input parts created_at timestamp text attachments refusal audio").split(),
    *("mapping current_node message author content_type parent memory user_id categories results").split(),
    *("recollect format namespace records kind data media_type time metadata position tags unknown hash").split(),
]
WORDS = [
    "user",
    "text",
    "tool_result",
    "tool_use",
    "image_url",
    "D1:1",
    "March-15-2024",
    "1:56 pm on 8 May, 2023",
    "\ud800",
]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([*WORDS, "", " ", "\n", "a" * 2000, 10**40, -1])
    | st.text(max_size=5)
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=8),
    max_leaves=30,
)
MESSAGE = st.fixed_dictionaries({"role": st.just("user") | LEAVES, "content": ANYTHING}).flatmap(
    lambda message: st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=4).map(lambda more: {**more, **message})
)
TURN = st.fixed_dictionaries({"text": LEAVES, "dia_id": LEAVES, "blip_caption": LEAVES, "img_url": ANYTHING})
CSV_HEADER = ["content", "time", "tags", "metadata", "conversation"]
SHAPED = {
    "locomo": st.lists(
        st.fixed_dictionaries(
            {
                "sample_id": st.just("s") | LEAVES,
                "conversation": st.fixed_dictionaries(
                    {"session_1": st.lists(TURN | ANYTHING), "session_1_date_time": LEAVES}
                ),
            }
        ),
        max_size=3,
    ),
    "beam": st.lists(
        st.fixed_dictionaries({"batch_number": LEAVES, "time_anchor": LEAVES, "turns": st.lists(st.lists(MESSAGE))}),
        max_size=3,
    ),
    "openai": st.lists(MESSAGE | st.fixed_dictionaries({"messages": st.lists(MESSAGE), "title": LEAVES}), max_size=4),
    "anthropic": st.lists(
        MESSAGE | st.fixed_dictionaries({"chat_messages": st.lists(MESSAGE), "system": ANYTHING}), max_size=4
    ),
    "claude": st.lists(st.fixed_dictionaries({"chat_messages": st.lists(MESSAGE), "name": ANYTHING}), max_size=4),
    "chatgpt": st.lists(
        st.fixed_dictionaries(
            {
                "mapping": st.dictionaries(
                    st.sampled_from("abc"),
                    st.fixed_dictionaries(
                        {
                            "parent": st.sampled_from("abcd") | LEAVES,
                            "message": st.fixed_dictionaries(
                                {
                                    "author": st.fixed_dictionaries({"role": st.just("user") | LEAVES}) | ANYTHING,
                                    "content": st.fixed_dictionaries({"parts": ANYTHING}) | ANYTHING,
                                    "id": LEAVES,
                                    "create_time": LEAVES,
                                }
                            )
                            | ANYTHING,
                        }
                    )
                    | ANYTHING,
                ),
                "current_node": st.sampled_from("abcd") | LEAVES,
                "id": LEAVES,
            }
        ),
        max_size=3,
    ),
    "claude-code": st.lists(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["user", "assistant", "system", "summary", "ai-title"]) | LEAVES,
                "uuid": st.sampled_from("abcd") | LEAVES,
                "parentUuid": st.sampled_from("abcd") | LEAVES,
                "sessionId": st.just("s") | LEAVES,
                "isSidechain": st.just(False) | ANYTHING,
                "summary": ANYTHING,
                "origin": ANYTHING,
                "timestamp": LEAVES,
                "message": MESSAGE | ANYTHING,
            }
        )
        | ANYTHING,
        max_size=5,
    ),
    "codex": st.lists(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["session_meta", "response_item", "event_msg"]) | LEAVES,
                "timestamp": LEAVES,
                "payload": st.fixed_dictionaries(
                    {
                        "type": st.sampled_from(["message", "function_call", "x_call_output", "thread_rolled_back"]),
                        "id": st.just("s") | LEAVES,
                        "role": st.sampled_from(["user", "assistant"]) | LEAVES,
                        "content": ANYTHING,
                        "output": ANYTHING,
                        "git": ANYTHING,
                        "num_turns": LEAVES,
                    }
                )
                | ANYTHING,
            }
        )
        | ANYTHING,
        max_size=5,
    ),
    "mem0": st.lists(
        st.fixed_dictionaries({"memory": LEAVES, "id": LEAVES}).flatmap(
            lambda memory: st.dictionaries(st.sampled_from([*KEYS, "created_at"]), ANYTHING, max_size=3).map(
                lambda more: {**more, **memory}
            )
        ),
        max_size=4,
    ),
    "mcp-memory": st.lists(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["entity", "relation"]) | LEAVES,
                "name": LEAVES,
                "entityType": LEAVES,
                "observations": st.lists(LEAVES, max_size=3) | LEAVES,
                "from": LEAVES,
                "to": LEAVES,
                "relationType": LEAVES,
            }
        ),
        max_size=5,
    ),
    "langgraph": st.lists(
        st.fixed_dictionaries({"prefix": st.sampled_from(["a", "a.b"]) | LEAVES, "key": LEAVES, "value": ANYTHING}),
        max_size=5,
    ),
    "openai-sessions": st.lists(
        st.fixed_dictionaries({"session_id": st.sampled_from("ab") | LEAVES, "message_data": MESSAGE | ANYTHING}),
        max_size=5,
    ),
    "chroma": st.lists(
        st.fixed_dictionaries({"key": st.sampled_from("ab") | LEAVES, "string_value": LEAVES, "int_value": LEAVES}),
        max_size=5,
    ),
    "csv": st.lists(st.lists(st.text('a1;," \n{[', max_size=5), min_size=4, max_size=5), max_size=4).map(
        lambda rows: [CSV_HEADER, *rows]
    ),
    "jsonl": st.lists(
        st.just({"recollect": {"format": 1, "namespace": "n", "records": 1}})
        | st.fixed_dictionaries({"id": LEAVES, "content": LEAVES}).flatmap(
            lambda record: st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=3).map(
                lambda more: {**more, **record}
            )
        ),
        max_size=5,
    ),
}


#: Databases, of which the rows of one table are anything. Its other columns have values that are valid.
TIMES = {"created_at": foreign.AT, "updated_at": foreign.AT}
DATABASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "langgraph": (foreign.STORE, "store", TIMES),
    "openai-sessions": (foreign.SESSIONS, "agent_messages", {"created_at": foreign.AT}),
    "chroma": (foreign.CHROMA, "embedding_metadata", {"id": 1}),
}


def write_database(form: str, path: Path, rows: list[dict[str, Any]]) -> None:
    schema, table, others = DATABASES[form]
    rest: dict[str, Any] = {}
    if form == "chroma":
        rest["databases"] = [{"id": "d", "name": "default_database"}]
        rest["collections"] = [{"id": "c", "name": "notes", "database_id": "d"}]
        rest["segments"] = [{"id": "s", "scope": "METADATA", "collection": "c"}]
        rest["embeddings"] = [{"id": 1, "segment_id": "s", "embedding_id": "a", "created_at": foreign.AT}]
    foreign.made(path, foreign.loose(schema), **rest, **{table: [{**others, **row} for row in rows]})


@pytest.mark.in_process
@STRICT
@given(data=st.data())
def test_any_json_gives_a_report_or_a_refusal_and_a_second_run_adds_nothing(
    form: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    value = data.draw(SHAPED[form] | ANYTHING)
    lines = form in ("jsonl", "mcp-memory", "claude-code", "codex") or data.draw(st.booleans())
    text = "\n".join(map(json.dumps, value)) if lines and isinstance(value, list) else json.dumps(value)
    if form == "csv" and isinstance(value, list) and value[:1] == [CSV_HEADER]:
        text = "\n".join(",".join(row) for row in value)
    path = tmp_path_factory.getbasetemp() / f"any-{form}.json"
    if form in DATABASES and data.draw(st.booleans()):
        rows: Any = data.draw(SHAPED[form])
        write_database(form, path, rows)
    else:
        path.write_text(text)
    with recollect.open(":memory:") as memory:
        first = tried(memory, form, path)
        if first is not None:
            # Every item is reported: nothing goes missing in silence.
            reported = sum(not isinstance(part, Omission) for part in FORMATS[form].read(path, UTC))
            stored = first.created + first.unchanged + first.updated + first.expired
            assert stored + len(first.damaged) == reported
            again = tried(memory, form, path)
            assert again is not None
            assert (again.created, again.damaged) == (0, first.damaged)
            assert memory.check() == []


@EVERY
@given(raw=st.binary(max_size=200) | st.text("#=-`~\n \t>|*a1.:", max_size=80).map(str.encode))
def test_any_bytes_give_a_report_or_a_refusal(form: str, raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / f"bytes-{form}"
    path.write_bytes(raw)
    with recollect.open(":memory:") as memory:
        first = tried(memory, form, path)
        if first is not None:
            again = tried(memory, form, path)
            assert again is not None
            assert again.created == 0
