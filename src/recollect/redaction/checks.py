"""Check digits and forms that a pattern of redaction cannot express. Each function takes the text that was found."""

from __future__ import annotations

from collections.abc import Callable

_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_CHINESE_WEIGHTS, _CHINESE_DIGITS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2), "10X98765432"
#: What a letter or digit at an odd position of an Italian codice fiscale counts.
_ITALIAN_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            *(1, 0, 5, 7, 9, 13, 15, 17, 19, 21),
            *(1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        ),
        strict=True,
    )
)


def luhn(found: str) -> bool:
    """Return whether a text has 13 to 19 digits with a valid check digit (ISO/IEC 7812-1).

    >>> luhn("4111 1111 1111 1111"), luhn("4111 1111 1111 1112")
    (True, False)
    """
    digits = _digits(found)
    doubled = sum(sum(divmod(2 * each, 10)) for each in digits[-2::-2])
    return 13 <= len(digits) <= 19 and (doubled + sum(digits[-1::-2])) % 10 == 0


def iban(found: str) -> bool:
    """Return whether a text is an IBAN with valid check digits (ISO 13616).

    >>> iban("DE89 3704 0044 0532 0130 00"), iban("DE88 3704 0044 0532 0130 00")
    (True, False)
    """
    plain = found.replace(" ", "").replace("-", "")
    return 15 <= len(plain) <= 34 and int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1


def identity_letters(found: str) -> bool:
    """Return whether a Spanish DNI or NIE, or an Italian codice fiscale, has its check letter. A British NINO has none.

    >>> identity_letters("12345678Z"), identity_letters("X1234567L"), identity_letters("12345678A")
    (True, True, False)
    """
    plain = found.replace(" ", "")
    if len(plain) == 16:
        counted = sum(_ITALIAN_ODD[each] for each in plain[:15:2])
        counted += sum(int(each) if each.isdigit() else ord(each) - ord("A") for each in plain[1:15:2])
        return ord(plain[15]) - ord("A") == counted % 26
    if plain[:2].isalpha():
        return True
    return plain[-1] == _DNI[int({"X": "0", "Y": "1", "Z": "2"}.get(plain[0], plain[0]) + plain[1:-1]) % 23]


def identity_digits(found: str) -> bool:
    """Return whether a Brazilian CPF, a Chinese resident number or a French NIR has its check digits.

    >>> identity_digits("111.444.777-35"), identity_digits("11010519491231002X"), identity_digits("255081416802538")
    (True, True, True)
    """
    plain = found.replace(" ", "").upper()
    if "." in plain:
        digits = _digits(plain)
        return all(
            sum(digit * weight for digit, weight in zip(digits, range(count + 1, 1, -1), strict=False)) * 10 % 11 % 10
            == digits[count]
            for count in (9, 10)
        )
    if len(plain) == 18:
        total = sum(int(each) * weight for each, weight in zip(plain, _CHINESE_WEIGHTS, strict=False))
        return plain[17] == _CHINESE_DIGITS[total % 11]
    corsican = {"A": 1_000_000, "B": 2_000_000}
    number = int(plain[:13].replace("A", "0").replace("B", "0")) - corsican.get(plain[6], 0)
    return 97 - number % 97 == int(plain[13:])


def named_id(found: str) -> bool:
    """Return whether a text that is called an identity number has at least five digits.

    >>> named_id("Aadhaar: 1234 5678 9012"), named_id("tax 2026")
    (True, False)
    """
    return len(_digits(found)) >= 5


def ten_digits(found: str) -> bool:
    """Return whether a text has ten to twelve digits, as phone numbers with their area have.

    >>> ten_digits("020 7946 0958"), ten_digits("0123 4567")
    (True, False)
    """
    return 10 <= len(_digits(found)) <= 12


def _digits(text: str) -> list[int]:
    return [int(each) for each in text if each.isdigit()]


#: The checks by the name that the patterns use.
CHECKS: dict[str, Callable[[str], bool]] = {
    check.__name__: check for check in (luhn, iban, identity_letters, identity_digits, named_id, ten_digits)
}
