"""Outlines: nodes as JSON, Org and Markdown, the hash of a subtree, and nodes as records."""

from __future__ import annotations

import hashlib
import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.policies.linear_patterns import faults

from recollect.common.regexes import LazyRegex
from recollect.errors import ImportFormatError, InvalidRecordError
from recollect.facets.outline.records import MARKED, NODE, attributes_of, is_node, node_fields, node_of
from recollect.facets.outline.text import json_text, line_ends, markdown, org, tags
from recollect.facets.outline.text.nodes import MAX_DEPTH, Node, check_depth, from_json, is_same, node_hash, said_digest
from recollect.records.names import MAX_NAME_BYTES
from recollect.records.record import Record

texts = st.text(st.sampled_from("ab*:#[] \t\n-<>|\u00e9\u732b\\TODO"), max_size=40)
names = st.sampled_from(["ID", "TITLE", "TAGS", "Effort", "x"])
values = st.none() | st.integers(-5, 5) | texts | st.lists(st.sampled_from("ab"), max_size=2)


@st.composite
def nodes(draw: st.DrawFn, depth: int = 3) -> Node:
    properties = draw(st.dictionaries(names, values, max_size=3))
    properties |= {name: draw(texts) for name in ("ID", "TITLE") if name in properties}
    contents = draw(st.lists(nodes(depth - 1), max_size=2)) if depth else []
    return Node(draw(st.sampled_from(["HEADLINE", "section"])), properties, draw(st.none() | texts), contents)


# JSON


@given(nodes())
@settings(max_examples=some(100))
def test_a_tree_comes_back_from_json_as_it_was(tree: Node) -> None:
    assert from_json(tree.to_json()) == tree


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "the root: is not an object"),
        ({}, "has no type"),
        ({"type": " "}, "has no type"),
        ({"type": "A", "properties": []}, "properties that are not an object"),
        ({"type": "A", "properties": {"ID": 1}}, "property ID"),
        ({"type": "A", "properties": {"TITLE": None}}, "property TITLE"),
        ({"type": "A", "raw_content": 1}, "raw_content"),
        ({"type": "A", "contents": "x"}, "contents that are not a list"),
        (
            {"type": "A", "contents": [{"type": "B"}, {"type": "B", "contents": [3]}]},
            "the root, 2, 1: is not an object",
        ),
        ({"type": "A", "content": []}, "unknown field 'content'"),
        ({"type": "A", "raw-content": 1}, "raw_content"),
        ({"type": "A", "raw-content": "a", "raw_content": "b"}, "a raw_content and a raw-content that differ"),
        ({"type": "A", "contents": ["a", b"b"]}, "the root, 2: is not an object"),
        ({"type": "A", 10**5000: 1}, "name is not a text"),
        ({"type": "A", "properties": {"x": {1}}}, "the root, property 'x': is of the type set"),
        ({"type": "A", "properties": {"x": [b""]}}, "is of the type bytes"),
        ({"type": "A", "properties": {"x": 10**5000}}, "does not fit in 64 bits"),
        ({"type": "A", "properties": {"x": 2**63}}, "does not fit in 64 bits"),
        ({"type": "A", "properties": {"x": {"y": {1: 2}}}}, "a name that is not a text"),
    ],
)
def test_what_is_no_tree_is_an_error_that_says_where(data: Any, why: str) -> None:
    with pytest.raises(ImportFormatError) as raised:
        from_json(data)
    assert why in str(raised.value)


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        ([], None),
        (["All boats."], "All boats."),
        (["All ", {"type": "bold", "contents": ["boats"]}, "."], "All ."),
        (["All boats.", "They sail."], "All boats.\nThey sail."),
        (["All boats.\n", "They sail.", " Far."], "All boats.\nThey sail. Far."),
        ([""], ""),
        (["", "a", "", "b"], "a\nb"),
    ],
)
def test_texts_among_the_contents_are_the_text_of_a_node_without_one(contents: list[Any], text: str | None) -> None:
    read = from_json({"type": "A", "contents": contents})
    assert read.raw_content == text
    assert len(read.contents) == sum(isinstance(each, dict) for each in contents)
    assert from_json(read.to_json()) == read
    given = from_json({"type": "A", "raw_content": "whole", "contents": contents})
    assert (given.raw_content, given.contents) == ("whole", read.contents)


def test_raw_content_has_two_spellings() -> None:
    one = from_json({"type": "A", "raw_content": "x"})
    assert from_json({"type": "A", "raw-content": "x"}) == one
    assert from_json({"type": "A", "raw-content": "x", "raw_content": "x"}) == one
    assert from_json({"type": "A", "raw-content": "x", "raw_content": None}) == one
    assert from_json({"type": "A", "raw_content": "y"}) != one


def test_a_tree_that_is_too_deep_is_refused_and_one_below_that_is_read() -> None:
    def chain(depth: int) -> dict[str, Any]:
        data: dict[str, Any] = {"type": "A"}
        for _ in range(depth - 1):
            data = {"type": "A", "contents": [data]}
        return data

    assert len(list(from_json(chain(MAX_DEPTH)).walk())) == MAX_DEPTH
    with pytest.raises(ImportFormatError, match="deeper than"):
        from_json(chain(MAX_DEPTH + 1))


def chain(depth: int, **properties: Any) -> Node:
    """Return a tree in which each node has one child."""
    top = Node("HEADLINE", {"TITLE": "a", **properties})
    for _ in range(depth - 1):
        top = Node("HEADLINE", {"TITLE": "a", **properties}, "", [top])
    return top


def test_what_contains_itself_is_too_deep() -> None:
    values: list[Any] = []
    values += [values, values]
    with pytest.raises(ImportFormatError, match="deeper than 64 levels"):
        from_json({"type": "A", "properties": {"x": values}})
    node = Node("A")
    node.contents += [node, node]
    with pytest.raises(ImportFormatError, match="deeper than 500 nodes"):
        node.to_json()


def test_a_negative_zero_is_read_as_zero() -> None:
    read = from_json({"type": "A", "properties": {"x": -0.0, "y": [{"z": -0.0}]}})
    assert json.dumps(read.properties) == '{"x": 0.0, "y": [{"z": 0.0}]}'


@given(nodes())
@settings(max_examples=some(100))
def test_the_json_text_of_a_tree_is_that_of_the_standard_library(tree: Node) -> None:
    assert json_text.dumps(tree) == json.dumps(tree.to_json(), ensure_ascii=False, indent=1) + "\n"


def test_the_deepest_tree_is_compared_and_written_and_one_that_differs_below_is_not_equal() -> None:
    tree = chain(MAX_DEPTH)
    assert tree == chain(MAX_DEPTH)
    assert tree != chain(MAX_DEPTH - 1)
    last = list(tree.walk())[-1]
    assert last.raw_content is None
    other = from_json(json_text.loads(json_text.dumps(tree)))
    assert other == tree
    list(other.walk())[-1].raw_content = ""
    assert other != tree
    assert is_same(other, tree)
    assert check_depth(org.parse(org.write(tree)).contents[0]) == tree


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(_JSON, st.sampled_from([None, 1]))
@settings(max_examples=some(200))
def test_json_that_is_too_deep_for_the_standard_library_is_read_as_it_reads_the_rest(value: Any, indent: Any) -> None:
    text = "[" * 3000 + json.dumps(value, indent=indent) + "]" * 3000
    with pytest.raises(RecursionError):
        json.loads(text)
    read = json_text.loads(text)
    for _ in range(3000):
        (read,) = read
    assert read == value


@pytest.mark.parametrize("end", ["", "[", "1,]", '{"a"}', '{"a":}', "{1:2}", "{,}", "1 2]", "]]", "nul]", '"'])
def test_what_is_no_json_is_refused_at_any_depth(end: str) -> None:
    deep = "[" * 3000 + end + "]" * (2999 if end.endswith("]") else 3000 if end.endswith("}") else 0)
    for text in (end, deep):
        with pytest.raises(ValueError, match=r"Expecting|Extra data|Unterminated"):
            json_text.loads(text)


# The hash


def test_the_hash_of_a_node_is_that_of_its_parts_each_with_its_length() -> None:
    def long(data: bytes) -> bytes:
        return len(data).to_bytes(8, "big") + data

    parts = [b"HEADLINE", b'{"x":1,"y":"\xc3\xa9"}', b"Title\nbody"]
    said = hashlib.sha256(b"recollect.node.1\0" + b"".join(b"\1" + long(part) for part in parts)).digest()
    assert said_digest("HEADLINE", {"y": "\u00e9", "x": 1}, "Title\nbody") == said
    children = [b"1" * 32, b"2" * 32]
    whole = hashlib.sha256(b"recollect.node.1\0" + long(b"a") + said + (2).to_bytes(8, "big") + b"".join(children))
    assert node_hash("a", said, children) == whole.digest()


def test_nothing_can_stand_for_another_node() -> None:
    digests = [
        said_digest("b", {}, None),
        said_digest("b", {}, ""),
        said_digest("b|", {}, ""),
        said_digest("", {}, "b"),
        said_digest("b", {"x": ""}, ""),
        said_digest("b", {"x": None}, ""),
    ]
    assert len(set(digests)) == len(digests)
    said, other = digests[:2]
    hashes = [node_hash("a", said, []), node_hash("a", said, [said]), node_hash("a", said, [said, said])]
    hashes += [node_hash("", said, []), node_hash("a", said, [said, other]), node_hash("a", said, [other, said])]
    assert len(set(hashes)) == len(hashes)


# Org

ORG = """#+TITLE: Boats
:PROPERTIES:
intro
* TODO [#A] Call *Bob* :work:boat:
CLOSED: [2026-01-02 Fri 10:00] SCHEDULED: <2026-01-01 Thu +1w>
:PROPERTIES:
:ID: b1
:Effort: 1:00
:END:
- a list
  :LOGBOOK:
  CLOCK: [2026-01-01 Thu 10:00]--[2026-01-01 Thu 11:00] =>  1:00
  :END:
#+BEGIN_SRC
x
#+END_SRC
*** Deep
** Child
* DONE
* Last"""


def test_org_is_read_as_its_syntax_says() -> None:
    root = org.parse(ORG)
    assert root.raw_content == "#+TITLE: Boats\n:PROPERTIES:\nintro\n"
    call, done, last = root.contents
    assert call.properties == {
        "TODO": "TODO",
        "PRIORITY": "A",
        "TAGS": ["work", "boat"],
        "TITLE": "Call *Bob*",
        "CLOSED": "[2026-01-02 Fri 10:00]",
        "SCHEDULED": "<2026-01-01 Thu +1w>",
        "ID": "b1",
        "Effort": "1:00",
    }
    assert call.raw_content is not None
    assert call.raw_content.startswith("- a list\n  :LOGBOOK:\n")
    assert call.content == f"Call *Bob*\n{call.raw_content}"
    assert [(child.title, child.properties.get("LEVEL")) for child in call.contents] == [("Deep", 3), ("Child", None)]
    assert done.properties == {"TODO": "DONE", "TITLE": ""}
    assert (last.title, last.raw_content) == ("Last", None)
    assert org.write(root) == ORG


@pytest.mark.parametrize(
    ("text", "properties", "body"),
    [
        ("* a\n:PROPERTIES:\n:X: 1\n:x: 2\n:END:\n", {"TITLE": "a"}, ":PROPERTIES:\n:X: 1\n:x: 2\n:END:\n"),
        ("* a\n:PROPERTIES:\n:X+: 1\n:END:\n", {"TITLE": "a"}, ":PROPERTIES:\n:X+: 1\n:END:\n"),
        ("* a\n:PROPERTIES:\n:TODO: 1\n:END:\n", {"TITLE": "a"}, ":PROPERTIES:\n:TODO: 1\n:END:\n"),
        ("* a\n:PROPERTIES:\n:X: 1\n", {"TITLE": "a"}, ":PROPERTIES:\n:X: 1\n"),
        ("* a\n\n:PROPERTIES:\n:X: 1\n:END:\n", {"TITLE": "a"}, "\n:PROPERTIES:\n:X: 1\n:END:\n"),
        ("* a\n:PROPERTIES:\n:id:  7 \n:END:\n", {"TITLE": "a", "ID": "7"}, ""),
        ("* a\nDEADLINE: <x> DEADLINE: <y>\n", {"TITLE": "a"}, "DEADLINE: <x> DEADLINE: <y>\n"),
        ("* TODOs :\n", {"TITLE": "TODOs :"}, ""),
        ("* a :b c:\n", {"TITLE": "a :b c:"}, ""),
        ("* [#A]\n", {"TITLE": "", "PRIORITY": "A"}, ""),
        ("* a\n:PROPERTIES:\n:END:\n", {"TITLE": "a"}, ":PROPERTIES:\n:END:\n"),
        ("* a\n:PROPERTIES:\n:X: 1\u3000\n:END:\n", {"TITLE": "a", "X": "1\u3000"}, ""),
    ],
)
def test_what_cannot_be_written_from_properties_stays_text(text: str, properties: dict[str, Any], body: str) -> None:
    (node,) = org.parse(text).contents
    assert org.write(org.parse(text)) == text
    node.properties.pop(line_ends.HEAD, None)
    assert (node.properties, node.raw_content) == (properties, body)


def test_a_file_may_have_states_of_its_own() -> None:
    root = org.parse("#+TODO: NEXT(n) WAIT | OLD(o@)\n* NEXT a\n* OLD b\n* TODO c\n")
    assert [(node.properties.get("TODO"), node.title) for node in root.contents] == [
        ("NEXT", "a"),
        ("OLD", "b"),
        (None, "TODO c"),
    ]


_LINES = [
    "* a", "** TODO b :t:", "*** [#B] c", "* ", "**", "*x", ":PROPERTIES:", ":ID: 1", ":K: v", ":END:", "", "text",
    "SCHEDULED: <2026-01-01>", "CLOSED: [x] DEADLINE: <y>--<z>", "  :PROPERTIES:", "* TODO", "* DONE :a:b:",
    "#+TODO: X",    "* X y", "\ttab", "* a\r", "\u2028* b", "* [#A] [#B] d", "* :t: e",
]  # fmt: skip


#: Lines with the ends of Unix, of Windows, and of files that were converted twice.
_MIXED = st.lists(st.tuples(st.sampled_from(_LINES), st.sampled_from(["\n", "\r\n", "\r\r\n", " \r \n"])), max_size=12)


@given(
    st.lists(st.sampled_from(_LINES), max_size=12).map("\n".join)
    | st.lists(st.sampled_from(_LINES), max_size=12).map("\r\n".join)
    | _MIXED.map(lambda lines: "".join(line + end for line, end in lines))
    | texts
)
@settings(max_examples=some(800))
def test_org_that_is_written_reads_back_to_the_same_tree(text: str) -> None:
    tree = org.parse(text)
    written = org.write(tree)
    assert org.parse(written) == tree
    assert written == text or _leaves_out_many(text)


def _leaves_out_many(text: str) -> bool:
    return any(line.startswith("*" * 100) for line in text.split("\n"))


@pytest.mark.parametrize("end", ["\r\n", "\r\r\n"])
def test_org_with_the_line_ends_of_windows_is_read_as_with_those_of_unix(end: str) -> None:
    text = ORG.replace("TODO [#A]", "NEXT [#A]").replace("intro\n", "#+TODO: NEXT\n")
    unix, windows = org.parse(text), org.parse(text.replace("\n", end))
    properties = {name for node in windows.walk() for name in node.properties}
    assert {line_ends.LINE_ENDS} <= properties
    for node in windows.walk():
        for name in (line_ends.LINE_ENDS, line_ends.OWN_ENDS):
            node.properties.pop(name, None)
        node.raw_content = node.raw_content and node.raw_content.replace("\r", "")
    assert windows == unix
    assert org.write(org.parse(text.replace("\n", end))) == text.replace("\n", end)


@pytest.mark.parametrize(
    "text",
    [
        "* a :x:\r\nb\n** c\n:PROPERTIES:\r\n:ID: 1\n:END:\r\nd\r\ne\n",
        ":PROPERTIES:\r\n:X: 1\n:END:\r\n* TODO a\nSCHEDULED: <2026-01-01>\r\n",
        "\ufeff* a :x:\r\nb\r",
        "* a\n* b\r",
        "* a\nSCHEDULED: <2026-01-01> CLOSED: [2026-01-02]\n",
        "* a               :x:y:\n  SCHEDULED: <2026-01-01>\n  :PROPERTIES:\n  :ID:       1\n  :END:\n",
        "* TODO [#A]  a \t:x:  \n\t:properties:\n\t:X:\n :end: \nb\n",
        "  :PROPERTIES:\n  :X: 1\n  :END:\n\n* a\t\n",
        "* a\r\n:PROPERTIES:\n  :X: 1\r\n:END:\n",
        "* a   :x:",
    ],
)
def test_org_is_written_to_the_byte(text: str) -> None:
    tree = org.parse(text)
    assert str(tree.contents[0].title).strip() == "a"
    assert org.write(tree) == text
    assert from_json(tree.to_json()) == tree


def test_white_space_is_kept_only_where_it_says_what_the_node_does() -> None:
    text = "* TODO a       :x:\n  :PROPERTIES:\n  :N:   1\n  :END:\n** b      :y:\n"
    for name, value, written in (
        ("TITLE", "c", "* TODO c :x:\n:PROPERTIES:\n:N: 1\n:END:\n"),
        ("TODO", "DONE", "* DONE a :x:\n:PROPERTIES:\n:N: 1\n:END:\n"),
        ("TAGS", ["x", "z"], "* TODO a :x:z:\n:PROPERTIES:\n:N: 1\n:END:\n"),
        ("N", "2", "* TODO a :x:\n:PROPERTIES:\n:N: 2\n:END:\n"),
        ("M", "1", "* TODO a :x:\n:PROPERTIES:\n:N: 1\n:M: 1\n:END:\n"),
    ):
        root = org.parse(text)
        root.contents[0].properties[name] = value
        assert org.write(root) == written + "** b      :y:\n"


def test_a_headline_that_is_written_by_itself_is_read_the_same_with_several_line_ends() -> None:
    root = org.parse("* a\n** b\r\nc\r\n* d\r\n:PROPERTIES:\n:ID: 1\r\n:END:\n* e\r")
    (a, d, e), (b,) = root.contents, root.contents[0].contents
    for node, text in ((a, "* a\n** b\nc\r\n"), (b, "* b\nc\r\n"), (e, "* e")):
        document = org.document_of(node)
        assert org.write(document) == text
        assert org.parse(text) == document
    assert org.write(org.document_of(d)) == "* d\n:PROPERTIES:\n:ID: 1\n:END:\n"


def test_a_byte_order_mark_hides_nothing_and_is_written_again() -> None:
    for format, text in ((org, "\ufeff* A :x:\n"), (markdown, "\ufeff---\ntags: x\n---\n# A\n")):  # noqa: A001
        root = format.parse(text)
        assert [node.title for node in root.contents] == ["A"]
        assert format.write(root) == text
        assert format.write(root.contents[0])[0] != "\ufeff"
    assert markdown.parse("\ufeff---\ntags: x\n---\n").properties[markdown.FRONT_MATTER] == "---\ntags: x\n---\n"
    assert json_text.loads("\ufeff[1]") == [1]


def test_more_than_a_hundred_levels_that_are_left_out_are_a_hundred() -> None:
    root = org.parse(f"* a\n{'*' * 400} b\n{'*' * 500} c\n{'*' * 450} d\n{'*' * 399} e\n*** f\n")
    (a,) = root.contents
    b, e, f = a.contents
    assert [(node.title, node.properties.get("LEVEL")) for node in (b, *b.contents, e, f)] == [
        ("b", 102), ("c", None), ("d", None), ("e", 102), ("f", 3)
    ]  # fmt: skip
    assert org.parse(org.write(root)) == root
    assert org.write(Node("HEADLINE", {"TITLE": "a", "LEVEL": 300_000_000})) == "* a"


# Several formats


@pytest.mark.parametrize("module", [org, tags, json_text, line_ends, markdown])
def test_no_pattern_of_outlines_can_take_more_than_linear_time(module: ModuleType) -> None:
    for name, pattern in vars(module).items():
        assert not isinstance(pattern, LazyRegex) or faults(str(pattern.pattern)) == [], name


def test_the_patterns_of_outlines_are_checked() -> None:
    assert {name for name, each in vars(org).items() if isinstance(each, LazyRegex)} == {"_COOKIE", "_TAG"}


@pytest.mark.parametrize(
    ("text", "properties", "body"),
    [
        (f"* a{' ' * 60_000}x\n", {"TITLE": f"a{' ' * 60_000}x"}, ""),
        (f"* a\n:PROPERTIES:\n:X: a{' ' * 20_000}b\n:END:\n", {"TITLE": "a", "X": f"a{' ' * 20_000}b"}, ""),
        (f"* a\n#+TODO: {'(' * 40_000}\n", {"TITLE": "a"}, f"#+TODO: {'(' * 40_000}\n"),
        (f"* a\nCLOSED: {'<a>--' * 20_000}\n", {"TITLE": "a"}, f"CLOSED: {'<a>--' * 20_000}\n"),
        (f"* a{':b' * 30_000}\n", {"TITLE": f"a{':b' * 30_000}"}, ""),
    ],
)
def test_long_lines_of_org_are_read(text: str, properties: dict[str, Any], body: str) -> None:
    (node,) = org.parse(text).contents
    assert (node.properties, node.raw_content) == (properties, body)


# Markdown


def test_markdown_is_read_by_its_headings() -> None:
    text = "---\ntags: [a]\n---\nintro\n\n# A *b*\n\n- list\n\n```\n# no heading\n```\n\nSet\n===\n#### Deep\nend"
    root = markdown.parse(text)
    assert root.properties == {"FRONT_MATTER": "---\ntags: [a]\n---\n"}
    assert root.raw_content == "intro\n\n"
    first, second = root.contents
    assert (first.title, first.properties["HEADING"]) == ("A b", "# A *b*\n")
    assert first.raw_content == "\n- list\n\n```\n# no heading\n```\n\n"
    assert (second.title, second.properties["HEADING"]) == ("Set", "Set\n===\n")
    assert [(node.title, node.properties, node.raw_content) for node in second.contents] == [
        ("Deep", {"TITLE": "Deep", "LEVEL": 4}, "end")
    ]
    assert markdown.write(root) == text


def test_toml_front_matter_is_front_matter() -> None:
    text = '+++\ntags = ["a"]\n# no heading\n+++\n# A\n'
    root = markdown.parse(text)
    assert root.properties == {markdown.FRONT_MATTER: text[: text.index("# A")]}
    assert [node.title for node in root.contents] == ["A"]
    assert markdown.write(root) == text
    assert markdown.parse("+++\n# A\n").contents[0].title == "A"  # it has no end


@given(
    st.lists(
        st.sampled_from(
            ["# a", "## b ##", "+++", "###### c", "#d", "x", "===", "---", "", "- # e", "```", "> # q", "\u00e9\r"]
        ),
        max_size=10,
    ).map("\n".join)
    | texts
)
@settings(max_examples=some(400))
def test_markdown_is_written_to_the_byte(text: str) -> None:
    tree = markdown.parse(text)
    assert markdown.write(tree) == text
    assert markdown.parse(markdown.write(tree)) == tree


# Records


@given(nodes(0))
@settings(max_examples=some(200))
def test_a_node_comes_back_from_its_record(node: Node) -> None:
    node_id = node.id if node.id and node.id.strip() and "\n" not in node.id and "\t" not in node.id else "n1"
    if "ID" in node.properties:
        node.properties["ID"] = node_id
    fields = node_fields(node, node_id, "p", 7)
    record = Record.load(Record(**{name: value for name, value in fields.items() if value is not None}).to_bytes())
    assert is_node(record)
    assert (record.id, record.parent, record.order) == (node_id, "p", 7)
    back = node_of(record)
    assert back == node
    assert list(back.properties) == list(node.properties)
    assert attributes_of(record) == node.attributes


def test_a_property_of_the_records_own_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match=NODE):
        node_fields(Node("A", {NODE: 1}), "a", None, 0)


# Tags


def tags_of(node: Node) -> set[str]:
    fields = node_fields(node, "n1", None, 0)
    Record(**{name: value for name, value in fields.items() if value is not None})  # it can be stored
    return set(fields["tags"])


@pytest.mark.parametrize(
    "front",
    [
        "tags: [a, private]", "tags : [private]", '"tags": [private]', "Tags: Private", "tags: [a,\n  private]",
        "tags:\n  [private]", "tags:\n  - a\n\n  # b\n  - private", "tags: >\n  private", "{tags: [private]}",
        "tags: |\n  a\n  private\n", "? tags\n: - private", "x: &a [private]\ntags: *a", 'tags: "\\x70rivate"',
        "tags: a #private", "tags:\n  - #private", "meta:\n  tags: private", "tags: {private: true}",
        "tags: [[private]]", "tags: a\ntags: private", "tags: !x private",
        # No YAML, or too much of it.
        "tags:\tprivate\n\t- b", "tags: [private", 'a: "\\UFFFFFFFF"\ntags: private', "a: b: c\ntags: private",
        "tags: private\n\x00", f"tags: {'[' * 30}private{']' * 30}", f"x: {'y ' * 10_000}\ntags: [private]",
        f"tags: {'[' * 20_000}\nprivate", "tags private",
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_private_tag_of_front_matter_counts_in_every_form(front: str, end: str) -> None:
    text = f"---\n{front}\n---\n# A\n".replace("\n", end)
    root = markdown.parse(text)
    assert root.properties[markdown.FRONT_MATTER] == text[: text.rindex("# A")]
    assert "private" in tags_of(root)


@pytest.mark.parametrize(
    "front",
    ["tags = ['private']", 'tags = [\n  "a", # b\n  "private",\n]', "[taxonomies]\ntags = ['private']",
     "x = [{tags = 'private'}]", "'tags'.private = 1", "tags = [private]", f"tags = {'[' * 9000}\nprivate"],
)  # fmt: skip
def test_a_private_tag_of_toml_counts_in_every_form(front: str) -> None:
    assert "private" in tags_of(markdown.parse(f"+++\n{front}\n+++\n# A\n"))


@pytest.mark.parametrize(
    "front",
    ["tags: [a, b-private]\nsee: private", "title: private", "private: true", "see: private\ntags: a", "", "- private",
     "x: [private", "tags: []\nnot: private"],
)  # fmt: skip
def test_other_words_of_front_matter_are_no_tags(front: str) -> None:
    assert "private" not in tags_of(markdown.parse(f"---\n{front}\n---\n# A\n"))


@pytest.mark.parametrize(
    "text",
    [
        "#+FILETAGS: :private:\n", "  #+FileTags: a private\n* A\n", "* A\n#+FILETAGS: :private:\n",
        "* A\n** B\nx\n\t#+filetags: :Private:\n* C\n", "x\r\n#+filetags: :private:\r\n* A\r\n",
        "#+filetags: :x:\n* A\r\n#+filetags: :private:\r\n", "\ufeff#+FILETAGS: private\n",
    ],
)  # fmt: skip
def test_a_private_tag_of_an_org_file_counts_for_its_root(text: str) -> None:
    root = org.parse(text)
    assert "private" in tags_of(root)
    assert org.write(root) == text


@pytest.mark.parametrize("end", ["\r\n", "\r\r\n", " \r\n", "\r \n", "\r"])
def test_the_tags_of_a_headline_count_with_any_line_end(end: str) -> None:
    for text in (f"* A :private:{end}", f"x\n* A :private:{end}y\n" if end != "\r" else f"x\n* A :private:{end}"):
        (node,) = org.parse(text).contents
        assert (node.title, node.properties["TAGS"]) == ("A", ["private"])
        assert "private" in tags_of(node)


@pytest.mark.parametrize(
    "value",
    [
        ["a", ":private:"], ["#private"], ["private "], ["work private"], ":a:private:", "[a, 'private']",
        [["private"]], [{"name": "private"}], {"private": True}, ["Private"], ("private",),
    ],
)  # fmt: skip
def test_a_private_tag_among_attributes_counts_in_every_form(value: Any) -> None:
    assert "private" in tags_of(Node("A", {"Tags": value}))


@pytest.mark.parametrize("value", [["b-private"], "privately", 3, None, True, [1]])
def test_other_values_of_tags_are_not_private(value: Any) -> None:
    assert "private" not in tags_of(Node("A", {"TAGS": value}))


def test_tags_that_no_record_can_have_are_left_out_and_the_private_one_never() -> None:
    many = " ".join(f"w{number}" for number in range(3000))
    found = tags_of(
        Node("A", {"EMBED": True}, f"#+filetags: {many} {'y' * (MAX_NAME_BYTES + 1)} {'z' * 1000} PRIVATE\n")
    )
    assert {"private", "w0", MARKED} <= found
    assert len(found) == 1001
    front = Node("A", {"FRONT_MATTER": '---\ntags: ["a\\uD800", "b\\x01c"]\n---\n'})
    assert {"b", "c"} <= tags_of(front)


def test_only_the_attribute_marks_a_node() -> None:
    assert MARKED in tags_of(Node("A", {"EMBED": "t"}))
    for value in (f":{MARKED}:", MARKED, [MARKED], ["@embed", "embed"], {MARKED: MARKED}):
        assert MARKED not in tags_of(Node("A", {"TAGS": value, "FRONT_MATTER": f"---\ntags: ['{MARKED}']\n---\n"}))
    (node,) = org.parse("* boat two :@embed:\n").contents
    assert MARKED not in tags_of(node)
