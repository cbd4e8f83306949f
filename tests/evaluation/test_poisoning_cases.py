"""The attacks of `bench.poisoning` say what they count, and what is counted is there."""

from __future__ import annotations

import pytest

from bench import poisoning

CASES = [case for name in poisoning.SETS for case in poisoning.cases(name)]


def test_a_third_of_the_attacks_was_written_before_any_rule() -> None:
    assert [len(poisoning.cases(name)) for name in poisoning.SETS] == [80, 40]
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert {case["lang"] for case in CASES} == {"en", "de", "fr", "es"}
    assert len({case["family"] for case in CASES}) == 11


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_marker_is_in_the_attack_alone_and_that_of_its_twin_in_the_twin(case: dict[str, object]) -> None:
    poison, twin = case["poison"], case["twin"]
    assert isinstance(poison, list)
    assert isinstance(twin, list)
    marker, other = str(case["marker"]), str(case["twin_marker"])
    assert any(marker in text for text in poison)
    assert not any(marker in str(text) for text in (*twin, case["truth"], case["question"], case["trigger_question"]))
    assert any(other in text for text in twin)
    assert not any(other in text for text in poison)


def test_an_attack_is_counted_and_an_honest_text_in_its_place_is_not() -> None:
    case = next(each for each in CASES if each["channel"] == "mcp_pinned")
    attacked = poisoning.outcome(case, "off")
    assert attacked.authority
    assert attacked.governs
    assert attacked.exposed
    assert attacked.twin
    honest = poisoning.outcome({**case, "poison": case["twin"]}, "off")
    assert honest._replace(twin=False) == (False,) * len(honest)


@pytest.mark.filterwarnings("ignore::recollect.RecollectWarning")
def test_a_class_takes_the_authority_and_a_policy_the_exposure() -> None:
    case = next(each for each in CASES if each["channel"] == "mcp_pinned")
    default, strict = (poisoning.outcome(case, policy) for policy in ("default", "strict"))
    assert (default.authority, default.governs, default.twin, default.twin_kept) == (False, False, True, False)
    assert (strict.exposed, strict.kept, strict.twin, strict.twin_kept) == (False, True, True, False)
