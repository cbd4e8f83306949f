"""Exports of ChatGPT and Claude as people have them: zip files, folders, branches, attached texts, titles."""

from __future__ import annotations

import contextlib
import json
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.importers.test_exports import BRANCHED, node, tree

import recollect
from recollect import Memory, filters
from recollect.errors import ImportFormatError
from recollect.importers import ImportReport, import_path

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]

NO_PARENT = "00000000-0000-4000-8000-000000000000"
START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def message(uuid: str, parent: str, text: str, sender: str = "human", **more: Any) -> dict[str, Any]:
    """A message in the form of Claude's export."""
    return {
        "uuid": uuid,
        "text": text,
        "content": [{"type": "text", "text": text}],
        "sender": sender,
        "created_at": f"2026-03-01T09:00:0{int(uuid[1:]) % 10}Z",
        "attachments": [],
        "files": [],
        "parent_message_uuid": parent,
        **more,
    }


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {
        "uuid": "c-1",
        "name": "Kitchen renovation",
        "created_at": "2026-03-01T09:00:00Z",
        "account": {"uuid": "x"},
    }
    return {**about, "chat_messages": list(messages), **more}


#: The question "m1" was edited to "m3", whose answer is the end.
EDITED = (
    message("m1", NO_PARENT, "The budget is 500"),
    message("m2", "m1", "That is little.", "assistant"),
    message("m3", NO_PARENT, "The budget is 5,000"),
    message("m4", "m3", "That will do.", "assistant"),
)


def said(memory: Memory, conversation: str) -> list[tuple[str | None, str, int | None]]:
    found = memory.find(filters.conversation(conversation) & filters.kind("conversation"), order="position")
    return [(record.role, record.text, record.position) for record in found]


class TestClaude:
    @pytest.mark.parametrize("format_", ["claude", "anthropic"])
    def test_the_last_branch_is_the_conversation_and_the_others_are_apart(
        self, run: Run, write: Write, memory: Memory, format_: str
    ) -> None:
        report = run(format_, write("conversations.json", [chat(*EDITED)]))
        assert (report.created, report.damaged) == (4, ())
        assert said(memory, "c-1") == [("user", "The budget is 5,000", 0), ("assistant", "That will do.", 1)]
        assert said(memory, "c-1/m1") == [("user", "The budget is 500", 0), ("assistant", "That is little.", 1)]
        assert [record.id for record in memory.find("tag=other-branch", order="id")] == ["m1", "m2"]
        assert run(format_, write("conversations.json", [chat(*EDITED)])).unchanged == 4

    def test_a_stated_leaf_decides_which_branch_is_shown(self, run: Run, write: Write, memory: Memory) -> None:
        run("claude", write("conversations.json", [chat(*EDITED, current_leaf_message_uuid="m2")]))
        assert [text for _, text, _ in said(memory, "c-1")] == ["The budget is 500", "That is little."]

    def test_messages_that_name_none_before_them_are_in_their_order(
        self, run: Run, write: Write, memory: Memory
    ) -> None:
        messages = [{**each, "uuid": None, "parent_message_uuid": None} for each in EDITED]
        report = run("claude", write("conversations.json", chat(*messages)))
        assert report.created == 4
        assert [position for _, _, position in said(memory, "c-1")] == [0, 1, 2, 3]

    def test_attached_and_pasted_texts_are_found_and_have_the_time_of_their_message(
        self, run: Run, write: Write, memory: Memory
    ) -> None:
        pasted = {"file_name": "", "file_size": 40, "extracted_content": "The tiles are from Sintra.\n\nGrout is grey."}
        notes = {
            "file_name": "plan.md",
            "file_type": "md",
            "extracted_content": "# Plan\n\n## Oven\n\nBy the window.\n",
        }
        asked = message("m5", "m4", "What do you think?", attachments=[pasted, notes])
        path = write("conversations.json", [chat(*EDITED, asked)])
        assert run("claude", path).created == 4 + 1 + 2 + 1
        hit = memory.recall("Where are the tiles from?", k=1)[0].record
        assert (hit.text, hit.kind, hit.source) == ("The tiles are from Sintra.", "knowledge", "pasted text")
        assert (hit.time, hit.conversation, hit.derived_from) == (START.replace(second=5), "c-1", ("m5",))
        oven = memory.recall("oven plan", k=1)[0].record
        assert (oven.source, oven.metadata["title"]) == ("plan.md", "plan.md")
        turn = memory.get("m5")
        assert turn is not None
        assert turn.text == "What do you think?\n[file] [file: plan.md]"
        assert turn.metadata["attachments"][0] == {"file_name": "", "file_size": 40}
        again = run("claude", path)
        assert (again.created, again.unchanged, again.differing) == (0, 8, 0)

    def test_attachments_of_a_second_user_derive_from_their_own_turns(self, write: Write) -> None:
        asked = message(
            "m5", "m4", "What now?", attachments=[{"file_name": "a.txt", "extracted_content": "Grey grout."}]
        )
        path = write("conversations.json", [chat(*EDITED, asked)])
        with recollect.open(":memory:") as memory:
            for user in ("ana", "bob", "bob"):
                import_path(memory, "claude", path, defaults={"user": user})
            for user in ("ana", "bob"):
                (piece,) = memory.find(filters.kind("knowledge") & filters.user(user))
                turn = memory.get(piece.derived_from[0])
                assert turn is not None
                assert turn.user == user

    def test_a_damaged_message_leaves_the_others(self, run: Run, write: Write, memory: Memory) -> None:
        broken = {**message("m2", "m1", ""), "content": 7}
        report = run("claude", write("conversations.json", [chat(EDITED[0], broken, message("m9", "m2", "So?")), 5]))
        assert [each.place for each in report.damaged] == ["conversation 1, message 2", "conversation 2"]
        assert [(text, position) for _, text, position in said(memory, "c-1")] == [("The budget is 500", 0), ("So?", 2)]

    @pytest.mark.parametrize("format_", ["claude", "chatgpt"])
    def test_what_is_no_export_is_refused(self, run: Run, write: Write, format_: str) -> None:
        with pytest.raises(ImportFormatError, match="must be a list of conversations"):
            run(format_, write("conversations.json", [{"role": "user", "content": "x"}]))


class TestContents:
    def test_thoughts_of_the_model_are_not_stored_and_what_a_search_found_is(
        self, run: Run, write: Write, memory: Memory
    ) -> None:
        found = {
            "type": "knowledge",
            "title": "Quokkas",
            "url": "https://example.org",
            "text": "Quokkas live on Rottnest.",
        }
        parts = [
            {"type": "thinking", "thinking": "a secret thought"},
            {"type": "tool_use", "name": "web_search", "input": {"query": "quokka"}},
            {"type": "tool_result", "name": "web_search", "content": [found]},
            {"type": "text", "text": "They live in Australia."},
        ]
        answer = {**message("m2", "m1", "", "assistant"), "content": parts}
        run("claude", write("conversations.json", [chat(EDITED[0], answer)]))
        assert "secret" not in json.dumps([record.to_json() for record in memory.find()])
        assert sorted(str(role) for role, _, _ in said(memory, "c-1")) == ["assistant", "tool", "user"]
        assert memory.recall("Rottnest", k=1)[0].record.role == "tool"

    def test_files_that_were_attached_in_chatgpt_are_named(self, run: Run, write: Write, memory: Memory) -> None:
        attached = {"attachments": [{"name": "tax return 2024.pdf", "size": 5}]}
        run("chatgpt", write("conversations.json", [tree("a", node("a", "root", "Summarise this", metadata=attached))]))
        assert memory.recall("tax return", k=1)[0].record.text == "Summarise this\n[file: tax return 2024.pdf]"


class TestFiles:
    def parts(self) -> dict[str, bytes]:
        first, second = tree("a4", *BRANCHED), tree("z1", conversation_id="c2", title="Coffee")
        second["mapping"]["z1"] = {
            "parent": "root",
            "message": {"author": {"role": "user"}, "content": {"parts": ["?"]}},
        }
        return {
            "conversations-000.json": json.dumps([first]).encode(),
            "conversations-001.json": json.dumps([second]).encode(),
            "user.json": b'{"email": "ana@example.com"}',
            "chat.html": b"<html>",
        }

    def zipped(self, path: Path, parts: dict[str, bytes], folder: str = "") -> Path:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in parts.items():
                archive.writestr(folder + name, data)
        return path

    @pytest.mark.parametrize("form", ["folder", "zip", "zip of a folder"])
    def test_a_folder_and_a_zip_file_are_read_with_counts_for_each_file(
        self, run: Run, memory: Memory, tmp_path: Path, form: str
    ) -> None:
        before = "export/" if form == "zip of a folder" else ""
        if form == "folder":
            path = tmp_path / "export"
            path.mkdir()
            for name, data in self.parts().items():
                (path / name).write_bytes(data)
        else:
            path = self.zipped(tmp_path / "export.zip", self.parts(), before)
        report = run("chatgpt", path)
        assert report.files == {
            f"{before}conversations-000.json": {"created": 7},
            f"{before}conversations-001.json": {"created": 1},
            f"{before}chat.html": {},
            f"{before}user.json": {},
        }
        assert memory.count(filters.conversation("c1")) == 4
        again = run("chatgpt", path)
        assert sum(each.get("unchanged", 0) for each in again.files.values()) == 8

    def test_documents_and_memories_of_claude_are_imported_and_other_files_are_named(
        self, run: Run, memory: Memory, tmp_path: Path
    ) -> None:
        project = {"uuid": "p1", "name": "House", "created_at": "2026-02-01T00:00:00Z", "prompt_template": "Be brief."}
        doc = {"uuid": "d1", "filename": "tiles.md", "content": "# Tiles\n\nFrom Sintra.\n", "created_at": "2026-02-02"}
        parts = {
            "conversations.json": json.dumps([chat(*EDITED)]).encode(),
            "projects.json": json.dumps([{**project, "docs": [doc]}]).encode(),
            "memories.json": json.dumps([{"account_uuid": "u", "conversations_memory": "Ana renovates."}]).encode(),
            "users.json": b'[{"uuid": "u", "full_name": "Ana"}]',
        }
        report = run("claude", self.zipped(tmp_path / "data.zip", parts))
        assert report.files == {
            "conversations.json": {"created": 4},
            "memories.json": {"created": 1},
            "projects.json": {"created": 2},
            "users.json": {},
        }
        tiles = memory.recall("tiles", k=1)[0].record
        assert (tiles.source, tiles.metadata["project"], tiles.conversation) == ("tiles.md", "House", None)
        assert tiles.time is not None
        assert tiles.time.date().isoformat() == "2026-02-02"

    def test_an_export_of_the_other_program_is_refused_with_the_format_that_reads_it(
        self, run: Run, tmp_path: Path
    ) -> None:
        with pytest.raises(ImportFormatError, match="for the format chatgpt"):
            run("claude", self.zipped(tmp_path / "a.zip", {"conversations.json": json.dumps([tree("a4")]).encode()}))
        (tmp_path / "cut.zip").write_bytes(self.zipped(tmp_path / "b.zip", self.parts()).read_bytes()[:200])
        with pytest.raises(ImportFormatError, match="is a damaged zip file"):
            run("chatgpt", tmp_path / "cut.zip")

    def test_a_damaged_file_of_several_leaves_the_others(self, run: Run, tmp_path: Path) -> None:
        parts = self.parts() | {"conversations-000.json": b"[{", "conversations-002.json": b"[7]"}
        report = run("chatgpt", self.zipped(tmp_path / "export.zip", parts))
        assert report.files["conversations-001.json"] == {"created": 1}
        assert report.files["conversations-000.json"] == report.files["conversations-002.json"] == {"damaged": 1}

    def test_a_zip_file_without_conversations_or_that_is_cut_off_is_refused(self, run: Run, tmp_path: Path) -> None:
        with pytest.raises(ImportFormatError, match=r"contains no file conversations\*\.json"):
            run("claude", self.zipped(tmp_path / "a.zip", {"user.json": b"{}"}))
        whole = self.zipped(tmp_path / "b.zip", self.parts())
        raw = bytearray(whole.read_bytes())
        raw[60:90] = b"\0" * 30
        whole.write_bytes(raw)
        report = run("chatgpt", whole)
        assert "cannot be unpacked" in report.damaged[0].reason
        assert report.created == 1

    def test_hidden_files_of_a_zip_file_are_left_out(self, run: Run, tmp_path: Path) -> None:
        parts = {**self.parts(), "__MACOSX/._conversations-000.json": b"\0\1", ".DS_Store": b"x"}
        report = run("chatgpt", self.zipped(tmp_path / "mac.zip", parts))
        assert report.damaged == ()
        assert len(report.files) == 4

    @pytest.mark.parametrize("at", range(0, 2000, 23))
    def test_a_zip_file_with_a_damaged_byte_gives_a_report_or_a_refusal(
        self, run: Run, tmp_path: Path, at: int
    ) -> None:
        whole = bytearray(self.zipped(tmp_path / "a.zip", self.parts()).read_bytes())
        whole[at % len(whole)] ^= 0xFF
        (tmp_path / "b.zip").write_bytes(whole)
        with contextlib.suppress(ImportFormatError):
            run("chatgpt", tmp_path / "b.zip")

    def test_a_file_that_unpacks_to_too_much_is_reported(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("recollect.importers.exports._MOST_UNPACKED", 1000)
        report = run("chatgpt", self.zipped(tmp_path / "b.zip", self.parts()))
        assert [(each.file, each.reason) for each in report.damaged] == [
            ("conversations-000.json", "has more than 1000 bytes: unpack it first")
        ]


@pytest.mark.parametrize("odd", [{"children": 5}, {"children": True}, {"message": {"create_time": 10**400}}])
def test_odd_values_of_nodes_are_no_error(run: Run, tmp_path: Path, odd: dict[str, Any]) -> None:
    path = tmp_path / "conversations.json"
    sys.set_int_max_str_digits(0)
    path.write_text(json.dumps([{"mapping": {"a": odd, "b": node("b", None, "So?")}}]))
    sys.set_int_max_str_digits(4300)
    with contextlib.suppress(ImportFormatError):
        run("chatgpt", path)


class TestNodesWithoutLinks:
    def test_nodes_with_neither_parent_nor_children_are_one_conversation(
        self, run: Run, write: Write, memory: Memory
    ) -> None:
        def bare(number: int, time: float | None) -> dict[str, Any]:
            author = {"role": "user" if number % 2 == 0 else "assistant"}
            return {"message": {"author": author, "content": {"parts": [f"text {number}"]}, "create_time": time}}

        nodes = {str(number): bare(number, 1699564800.0 + number) for number in (2, 0, 1)}
        report = run("chatgpt", write("conversations.json", [{"conversation_id": "c", "mapping": nodes}]))
        assert report.created == 3
        assert [text for _, text, _ in said(memory, "c")] == ["text 0", "text 1", "text 2"]
        assert memory.count("tag=other-branch") == 0

    def test_nodes_that_only_name_their_children_are_a_tree(self, run: Run, write: Write, memory: Memory) -> None:
        nodes = {
            each["id"]: {
                **each,
                "parent": None,
                "children": [other["id"] for other in BRANCHED if other["parent"] == each["id"]],
            }
            for each in BRANCHED
        }
        run("chatgpt", write("conversations.json", [{"conversation_id": "c", "mapping": nodes, "current_node": "a4"}]))
        assert [text for _, text, _ in said(memory, "c")] == ["Which tea?", "Green.", "How hot?", "Eighty degrees."]


class TestTitles:
    def test_the_title_of_a_chat_finds_it_and_is_its_heading_in_contexts(
        self, run: Run, write: Write, memory: Memory
    ) -> None:
        run("claude", write("conversations.json", [chat(*EDITED)]))
        memory.remember("The oven is from 2019")
        hits = memory.recall("What about the kitchen renovation?", k=1)
        assert hits[0].record.id == "m3"
        context = memory.context("kitchen renovation budget", max_tokens=500)
        assert "## Kitchen renovation\n" in str(context)
        assert '<conversation id="c-1" title="Kitchen renovation">' in str(
            memory.context("kitchen renovation budget", max_tokens=500, style="xml")
        )

    def test_without_a_title_the_heading_is_the_name_of_the_conversation(self, memory: Memory) -> None:
        memory.add_messages([{"role": "user", "content": "The budget is 5,000"}], conversation="c-9")
        assert "## c-9\n" in str(memory.context("budget", max_tokens=500))

    def test_a_title_that_may_not_be_read_is_not_shown(self, run: Run, write: Write, memory: Memory) -> None:
        run("claude", write("conversations.json", [chat(*EDITED)]), defaults={"user": "ana"})
        memory.add_messages([{"role": "user", "content": "The budget is 9,000"}], user="bob", conversation="c-1")
        context = str(memory.context("budget", max_tokens=500, user="bob"))
        assert "9,000" in context
        assert "Kitchen" not in context


class TestLaterExports:
    """What was imported before is, after a later export, what a first import of that export makes of it."""

    EARLIER = (
        message("m1", NO_PARENT, "Plan my trip to Oslo"),
        message("m2", "m1", "When do you travel?", "assistant"),
        message("m3", "m2", "In June, by train"),
        message("m4", "m3", "The train takes seven hours.", "assistant"),
    )
    EDITED = (
        *EARLIER,
        message("m5", "m2", "In July, by ferry"),
        message("m6", "m5", "The ferry takes a night.", "assistant"),
    )
    WENT_ON = (*EARLIER, message("m7", "m4", "And back?"))

    def places(self, memory: Memory) -> dict[str, tuple[str | None, int | None, tuple[str, ...]]]:
        return {record.id: (record.conversation, record.position, record.tags) for record in memory.find()}

    @pytest.mark.parametrize(
        "exports", [(EARLIER, EDITED), (EDITED, EARLIER), (EARLIER, EDITED, WENT_ON), (EDITED, WENT_ON)]
    )
    def test_turns_move_to_the_branch_in_which_the_last_export_has_them(
        self, write: Write, exports: tuple[tuple[dict[str, Any], ...], ...]
    ) -> None:
        with recollect.open(":memory:") as after, recollect.open(":memory:") as fresh:
            moved = 0
            for messages in exports:
                path = write("conversations.json", [chat(*messages)])
                moved += import_path(after, "claude", path).moved
            import_path(fresh, "claude", path)
            found = self.places(after)
            assert {each: found[each] for each in self.places(fresh)} == self.places(fresh)
            assert moved > 0
            assert import_path(after, "claude", path).moved == 0

    def test_tags_that_were_added_stay(self, run: Run, write: Write, memory: Memory) -> None:
        run("claude", write("conversations.json", [chat(*self.EARLIER)]))
        memory.update("m3", tags=["travel"])
        assert run("claude", write("conversations.json", [chat(*self.EDITED)])).moved == 2
        record = memory.get("m3")
        assert record is not None
        assert record.tags == ("other-branch", "travel")
