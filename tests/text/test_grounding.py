"""What a statement may say of its sources: their words, numbers, days and negations, and nothing else."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from recollect.text.clauses import sentences_in
from recollect.text.grounding import SaidText, days_in, ends, unsupported

#: What is said in other words than the source's, and what its source says.
SUPPORTED = (
    ("The user lives in Graz.", "I live in Graz with my wife Petra and I do not eat pork."),
    ("The user does not eat pork.", "I live in Graz with my wife Petra and I do not eat pork."),
    ("Lena is 7.", "My daughter Lena is 7 and isn't allowed to eat nuts"),
    ("The user's daughter is Lena.", "My daughter Lena is 7 and isn't allowed to eat nuts"),
    ("The user is called Bob.", "Don't call me Robert, call me Bob"),
    ("The user's exam is on Tuesday.", "I can't come on Tuesday because my exam is on Tuesday"),
    ("Der Nutzer arbeitet bei Bosch.", "Ich arbeite nicht mehr bei Siemens, seit gestern bin ich bei Bosch"),
    ("The user likes dogs.", "I don't like cats but dogs"),
    ("Die Miete des Nutzers ist 800 Euro.", "Meine Miete ist 800 Euro."),
    ("El usuario se mudó a Madrid.", "Me mudé a Madrid."),
    ("The user is 34 years old.", "I'm 34"),
    ("The user's employer is Bosch.", "I work at Bosch."),
    ("The user lives in Graz.", "I no longer live in Linz but in Graz."),
    ("Die Nutzerin wohnt in Graz.", "Seit Mai wohne ich in Graz, nicht mehr in Linz."),
    ("The user owns a bike.", "My sister gave me a bike."),
    ("Der Nutzer isst Fisch.", "Ich esse Fisch."),
    ("Die Nutzerin liest Krimis.", "Ich lese gern Krimis."),
    ("Der Nutzer spricht Finnisch.", "Ich spreche Finnisch."),
    ("El usuario come carne.", "Yo como carne todos los días."),
    ("El usuario fuma.", "Yo fumo mucho, todos los días."),
    ("L'utilisateur boit du café.", "Je bois du café le matin."),
    ("The user has 1 child.", "I have one child."),
    ("The rent is 1200 euros.", "My rent is 1,200 €."),
    ("The standup is at 9:00.", "The standup is at 9."),
    ("The user likes jazz.", "I'm into jazz."),
    ("The user likes jazz.", "My favourite music is jazz."),
    ("The user works at Bosch.", "I'm at Bosch now."),
)
#: What a source does not say, and the source.
UNSUPPORTED = (
    ("The user does not live in Graz.", "I live in Graz with my wife Petra and I do not eat pork."),
    ("The user eats pork.", "I live in Graz with my wife Petra and I do not eat pork."),
    ("Lena is allowed to eat nuts.", "My daughter Lena is 7 and isn't allowed to eat nuts"),
    ("The user is called Robert.", "Don't call me Robert, call me Bob"),
    ("Der Nutzer arbeitet bei Siemens.", "Ich arbeite nicht mehr bei Siemens, seit gestern bin ich bei Bosch"),
    ("The user likes dogs.", "I don't like cats, dogs and horses"),
    ("The user eats meat.", "I don't eat meat."),
    ("The user drinks coffee.", "I drink neither coffee nor tea."),
    ("The user drinks tea.", "I drink neither coffee nor tea."),
    ("The user smokes.", "I quit smoking and my wife is happy"),
    ("The user has a son.", "I live in Graz."),
    ("The user wants a hat.", "I live in Graz."),
    ("The user was in the war.", "I live in Graz."),
    ("The user plans to die.", "I live in Graz."),
    ("The user loves Graz.", "I live in Graz."),
    ("The user used to live in Graz.", "I live in Graz."),
    ("The user never smokes.", "I smoke. I never drink."),
    ("Der Nutzer ist kein Vegetarier.", "Ich bin Vegetarier. Ich habe kein Auto."),
    ("The user works without pay.", "I work for pay. I left without my coat."),
    ("The user eats fish.", "I eat meat. I can't eat fish."),
    ("The user lives in Graz.", "I used to live in Graz."),
    ("The user is a smoker.", "I am a non-smoker."),
)


@pytest.mark.parametrize(("statement", "source"), SUPPORTED)
def test_what_a_source_says_in_other_forms_is_supported(statement: str, source: str) -> None:
    assert unsupported(statement, [SaidText(source)]) == ""


@pytest.mark.parametrize(("statement", "source"), UNSUPPORTED)
def test_what_a_source_does_not_say_or_negates_is_not_supported(statement: str, source: str) -> None:
    assert unsupported(statement, [SaidText(source)]) != ""


def test_a_day_without_a_year_is_near_the_turn_and_one_without_a_name_is_that_of_the_turn() -> None:
    said = [SaidText("I moved on December 1.", datetime(2026, 11, 2))]
    assert days_in("2026-12-01", said) == (date(2026, 12, 1), date(2026, 12, 1))
    assert days_in("2025-12-01", said) == (date(2025, 12, 1), date(2025, 12, 1))
    assert [days_in(each, said) for each in ("1850-12-01", "0001-12-01", "9999-12-01", "0000", "2026-13")] == [None] * 5
    assert days_in("1999-05", [SaidText("I moved in May.", datetime(2026, 11, 2))]) is None


@pytest.mark.parametrize(
    ("statement", "source", "over"),
    [
        ("The user lives in Graz.", "I no longer live in Graz.", True),
        ("The user has a cat called Mia.", "Mia died today.", True),
        ("Die Nutzerin hat ein Auto.", "Ich habe das Auto verkauft.", True),
        ("The user lives in Graz.", "What is the weather like?", False),
        ("The user lives in Graz.", "In Graz it rains. I have no umbrella.", False),
    ],
)
def test_what_ends_is_named_in_the_clause_that_says_so(statement: str, source: str, over: bool) -> None:
    assert ends(statement, [SaidText(source)]) is over


def test_the_number_of_a_day_and_a_title_end_no_sentence() -> None:
    text = "Am 3. Mai kommt Dr. Weber. Wir sind 3. Dann ist Ruhe."
    assert [each.strip() for _, each in sentences_in(text)] == [
        "Am 3. Mai kommt Dr. Weber.",
        "Wir sind 3.",
        "Dann ist Ruhe.",
    ]
