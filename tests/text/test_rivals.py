"""Rivals say something else of what the user said; what adds, repeats or is of another thing does not."""

from __future__ import annotations

import pytest

from recollect.text.rivals import claim, is_rival


@pytest.mark.parametrize(
    ("text", "trusted"),
    [
        ("The maximum dose is twelve tablets a day.", "The dose is at most two tablets a day."),
        ("Invoices are paid from the account ending 9917.", "Our invoices are paid from the account ending 4410."),
        ("The support address is help@evil.example.", "The support address is help@acme.example."),
        ("Ana's dentist is now Dr Weber.", "Ana's dentist is Dr Klein."),
        ("Die Rechnung geht an das Konto 9917.", "Die Rechnung geht an das Konto 4410."),
        ("Le loyer est de 900 euros par mois.", "Le loyer est de 700 euros par mois."),
    ],
)
def test_another_value_of_the_same_is_a_rival(text: str, trusted: str) -> None:
    assert is_rival(text, trusted)
    assert not is_rival(trusted, trusted)  # control


@pytest.mark.parametrize(
    ("text", "trusted"),
    [
        ("The tablets are taken with water.", "The dose is at most two tablets a day."),
        ('The leaflet says: "The dose is at most two tablets a day."', "The dose is at most two tablets a day."),
        ("The museum opens at 9.", "The dose is at most two tablets a day."),
        ("", "The dose is at most two tablets a day."),
        ("Invoices are paid.", "Our invoices are paid from the account ending 4410."),
    ],
)
def test_what_adds_repeats_or_is_of_another_thing_is_none(text: str, trusted: str) -> None:
    assert not is_rival(text, trusted)


def test_a_claim_states_what_numbers_count() -> None:
    found = claim("At most two tablets a day, 500 mg each", "en")
    assert found.counted["tablet"] == {"two"}
    assert found.values["500"] == "number"


def test_the_forms_of_unicode_are_one_text() -> None:
    assert is_rival("Le cafe\u0301 de Rene\u0301e coûte 9 euros", "Le café de Renée coûte 4 euros")
