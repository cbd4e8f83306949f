"""The division of a text into pieces."""

from __future__ import annotations

import pytest

from recollect.text.pieces import LONGEST, Span, markdown_pieces, paragraphs


def texts(text: str, found: list[Span]) -> list[str]:
    return [text[each.start : each.end] for each in found]


class TestHeadingsWithoutText:
    def test_a_paragraph_above_a_line_of_hyphens_is_a_piece(self) -> None:
        text = "# Guide\nWelcome.\n\nThe emergency number is 4711.\n---\n\n# Next\nSome text.\n"
        found = list(markdown_pieces(text))
        assert texts(text, found) == [
            "# Guide\nWelcome.",
            "The emergency number is 4711.\n---",
            "# Next\nSome text.",
        ]
        assert found[1].headings == ("Guide", "The emergency number is 4711.")

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("# TODO: renew the contract\n\n# Next\ntext", ["# TODO: renew the contract", "# Next\ntext"]),
            ("## Deeper\n\n# Next\ntext", ["## Deeper", "# Next\ntext"]),
            ("# Title\n\n## Next\ntext", ["## Next\ntext"]),
            ("# A\n\n## B\n\n# C", ["## B", "# C"]),
            ("text\n\n# Last\n\n", ["text", "# Last"]),
        ],
    )
    def test_a_heading_is_a_piece_unless_it_is_the_title_of_the_next_section(
        self, text: str, expected: list[str]
    ) -> None:
        assert texts(text, list(markdown_pieces(text))) == expected

    def test_the_piece_of_a_heading_takes_no_name_of_a_section(self) -> None:
        names = [each.name for each in markdown_pieces("# A\n\n# B\ntext\n\n# A\ntext\n")]
        assert names == ["a/heading", "b", "a"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("blank", [0, 1, 2, 5])
@pytest.mark.parametrize("body", ["word " * 900, "x" * 1993 + "\n" + "y" * 1500, "x" * 1990 + "\n\n" + "y" * 1990])
def test_a_piece_has_at_most_2000_characters_with_every_line_end(end: str, blank: int, body: str) -> None:
    text = ("# A\n" + "\n" * blank + body).replace("\n", end)
    found = list(markdown_pieces(text))
    assert len(found) > 1
    assert max(each.end - each.start for each in found) <= LONGEST


def test_a_form_feed_ends_a_paragraph_of_plain_text() -> None:
    text = "One\ntwo.\fThree.\f\n\f Four.\n\fFive."
    found = list(paragraphs(text))
    assert texts(text, found) == ["One\ntwo.", "Three.", " Four.", "Five."]
    assert [each.line for each in found] == [0, 1, 2, 3]
    assert [each.name for each in found] == ["one", "three", "four", "five"]
