"""Results within a budget of tokens, whatever their contents are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.server.mcp.budget import beginning, fitting, tokens_of
from recollect.server.mcp.tools import compact

CONTENTS = st.text(max_size=300) | st.text('"\\\n\x00', max_size=300) | st.text("日本🙂", max_size=300)


@given(st.lists(CONTENTS, max_size=8), st.integers(-10, 400))
def test_the_first_items_fit_and_only_the_last_is_shortened(contents: list[str], budget: int) -> None:
    items = [{"id": f"i{at}", "content": content} for at, content in enumerate(contents)]
    shown = fitting(items, budget)
    assert bool(shown) == bool(items)
    assert shown[:-1] == items[: max(len(shown) - 1, 0)]
    if len(shown) > 1:
        assert sum(tokens_of(compact(item)) for item in shown) <= budget
    for item, whole in zip(shown[-1:], items[len(shown) - 1 :], strict=False):
        assert whole["content"].startswith(item["content"])
        assert item.get("shortened", len(item["content"])) == len(whole["content"])


def test_the_first_item_has_a_short_text_even_without_room() -> None:
    [item] = fitting([{"id": "i", "content": "x" * 10_000}], -50)
    assert item == {"id": "i", "content": "x" * 80, "shortened": 10_000}


def test_a_text_ends_at_a_character() -> None:
    assert beginning("日本語", 1) == "日"
    assert beginning("日本語", 100) == "日本語"
