"""Markdown as sections: any text is divided, nothing of it is lost, and headings are those of CommonMark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.text.markdown import Section, front_matter_end, sections

#: Lines that begin, end and interrupt blocks.
LINES = (
    "",
    "text",
    "# A",
    "## B ##",
    "###### C",
    "#",
    "===",
    "---",
    "- item",
    "  # in an item",
    "    code",
    "\t# code",
    "```",
    "~~~~",
    "```sh",
    "> quote",
    "> # in a quote",
    "| a | b |",
    "|---|---|",
    "<div>",
    "</div>",
    "[a]: http://example.org",
    "1. one",
    "# *a* `b` [c](d)",
    "# 标题",
    "\u2028# no line of its own",
    "\x0b",
)
markdown = st.lists(
    st.sampled_from(LINES) | st.text(st.characters(exclude_characters="\0\n\r"), max_size=20), min_size=1
)


@given(markdown, st.integers(0, 3))
def test_the_sections_of_any_text_are_all_its_lines_in_order(lines: list[str], start: int) -> None:
    start = min(start, len(lines))
    found = sections(lines, start)
    assert [number for each in found for number in range(each.first, each.end)] == list(range(start, len(lines)))
    for each in found:
        assert each.first <= each.body <= each.end
        assert (each.level == 0) == (each.body == each.first)
        assert all(each.body <= first < end <= each.end for first, end in each.code)
    assert all(each.level > 0 for each in found[1:])


@given(markdown)
def test_the_titles_above_a_section_are_those_of_lower_levels_before_it(lines: list[str]) -> None:
    path: list[Section] = []
    for each in sections(lines):
        if not each.level:
            continue
        path = [above for above in path if above.level < each.level]
        assert each.above == tuple(above.title for above in path)
        path.append(each)


@given(markdown)
def test_front_matter_ends_behind_its_last_line(lines: list[str]) -> None:
    end = front_matter_end(lines)
    if end:
        assert lines[0].rstrip() == "---"
        assert lines[end - 1].rstrip() in ("---", "...")
        assert not any(line.rstrip() in ("---", "...") for line in lines[1 : end - 1])
    else:
        assert lines[0].rstrip() != "---" or not any(line.rstrip() in ("---", "...") for line in lines[1:])


def test_code_is_where_its_fences_are() -> None:
    found = sections("# A\n```\n# no\n```\ntext\n~~~\nx\n\n# B\n- a\n  ```\n  b\n  ```".split("\n"))
    assert [each.code for each in found] == [((1, 4), (5, 13))]
    found = sections("# A\n```\n# no\n```\n# B\n- a\n  ```\n  b\n  ```\ntext".split("\n"))
    assert [each.code for each in found] == [((1, 4),), ((6, 9),)]


def test_a_very_long_heading_is_its_own_title() -> None:
    (section,) = sections(["# " + "*a* " * 1000])
    assert section.title == ("*a* " * 1000).strip()
