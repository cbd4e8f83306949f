"""The rules by which attributes are found: each has texts that it reads and texts that it leaves, in four languages."""

from __future__ import annotations

import re

import pytest
from tests.policies.linear_patterns import faults

from recollect.text.attributes import LANGUAGES, same_value, stated
from recollect.text.attributes.rules import _in_sentence, _language, described

RULES = [
    pytest.param(code, at, id=f"{code} {at} {rule['attribute']}")
    for code in LANGUAGES
    for at, rule in enumerate(described(code))
]


def test_all_languages_have_rules_for_what_changes_often() -> None:
    common = {"home", "employer", "job", "age", "name", "car", "diet", "marital status", "smoking", "time of {topic}"}
    for code in LANGUAGES:
        assert common <= {rule["attribute"] for rule in described(code)}, code


@pytest.mark.parametrize(("code", "at"), RULES)
def test_a_rule_reads_its_examples_and_leaves_the_others(code: str, at: int) -> None:
    language, rule = _language(code), described(code)[at]
    alone = language._replace(rules=(language.rules[at],))
    assert rule["states"]
    assert rule["leaves"]
    for text in rule["states"]:
        plain, (marked,) = re.sub("[⟦⟧]", "", text), re.findall("⟦(.*?)⟧", text)
        (fact, *_) = _in_sentence(alone, 0, plain, "Ana")
        assert fact.value == (rule.get("value") or marked.strip(" .,;:!")), text
        assert fact.attribute in [each.attribute for each in stated(plain, speaker="Ana")], f"no sign of it: {text}"
    for text in rule["leaves"]:
        assert list(_in_sentence(alone, 0, text, "Ana")) == [], text


@pytest.mark.parametrize(("code", "at"), RULES)
def test_no_rule_can_take_more_than_linear_time(code: str, at: int) -> None:
    assert faults(described(code)[at]["pattern"], re.IGNORECASE) == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_words_of_uncertainty_take_linear_time(code: str) -> None:
    assert faults(_language(code).uncertain.pattern, re.IGNORECASE) == []
    assert faults(r"(?:\w+ )*x", re.IGNORECASE) != [], "control"


@pytest.mark.parametrize(
    "text",
    [
        "Wenn ich in Bern wohne, zahle ich mehr.",
        "Wohne ich in Bern?",
        "Ich wohne nicht in Bern.",
        "Früher wohne ich in Bern.",
        "Die Sabine hat geschrieben: „Ich wohne jetzt in Basel!“",
        "Si vivo en Lima, pago más.",
        "¿Vivo en Lima?",
        "No vivo en Lima.",
        "Mi abuela decía: «Mi postre favorito es la fruta».",
        "Si j'habite à Lyon, je paie plus.",
        "Thomas m'a écrit : « Je vis à Berlin maintenant ! »",
        "Je n'habite pas à Lyon.",
    ],
)
def test_what_is_uncertain_past_asked_or_quoted_states_nothing(text: str) -> None:
    assert stated(text, speaker="Ana") == []


def test_what_negates_another_clause_leaves_a_statement() -> None:
    (fact,) = stated("Jetzt hab ich zwei Kinder und gar keinen Schlaf mehr.", speaker="Ana")
    assert fact[:3] == ("number of children", "zwei", "Ana")


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Mein Bruder lebt in Leipzig.", "Ana's bruder"),
        ("Mi prima vive en Cádiz.", "Ana's prima"),
        ("Ma sœur est enceinte.", "Ana's sœur"),
        ("Dad's been retired since June.", "Ana's dad"),
        ("The deadline is on Friday.", None),
        ("The library closes at 8 pm.", "Ana"),
    ],
)
def test_whose_attribute_it_is(text: str, subject: str | None) -> None:
    assert [fact.subject for fact in stated(text, speaker="Ana")][:1] == [subject]


@pytest.mark.parametrize(
    ("one", "other", "attribute", "same"),
    [
        ("8 pm", "20 h", "", True),
        ("20 h", "huit heures du soir", "", True),
        ("at 9:15", "9:45", "", False),
        ("montags", "am Montag", "", True),
        ("lunes a las 9", "martes a las 9", "", False),
        ("zwei", "2", "", True),
        ("trois", "3", "", True),
        ("780 Euro", "845 Euro", "", False),
        ("NYC", "New York", "", True),
        ("Scotland", "Leith", "home", True),
        ("Scotland", "Wales", "home", False),
        ("Scotland", "Leith", "team", False),
        ("Leeds", "Sheffield", "home", False),
    ],
)
def test_values_are_compared_in_four_languages(one: str, other: str, attribute: str, same: bool) -> None:
    assert same_value(one, other, attribute) is same
    assert same_value(other, one, attribute) is same
