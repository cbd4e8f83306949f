"""Signs, digits, points and scripts: what is one word to people is one, and what is not is not, in every part."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import recollect
from recollect.text.folding import folded, same_letters

#: A question, the text that it means, and one that differs only in what matters.
SIGNS = """
C++ = I write C++ every day = I write C every day
C# = I write C# at work = I write C at work
F# = F# is nice = F is nice
g++ = compile it with g++ = compile it with g
.NET = we use .NET here = we use NET here
.NET = we use (.NET) here = we use (NET) here
C++ = we wrote C++11 code = we wrote C code
−5 = it was −5 outside = it was 5 outside
O− = my blood type is O− = my blood type is O+
€5 = it cost €5 there = it cost 5 there
O+ = my blood type is O+ = my blood type is O-
O- = my blood type is O- = my blood type is O+
A+ = she got an A+ = she got an A-
-5 = it was -5 outside = it was 5 outside
--no-cache = run it with --no-cache = run it with no cache
@ana = ask @ana please = ask ana please
#tag = see #tag please = see tag please
$VAR = set $VAR first = set VAR first
a->b = the arrow a->b = the arrow a b
1.2.3 = version 1.2.3 is out = version 3.2.1 is out
/usr/bin = it is in /usr/bin = it is in bin usr
C:\\temp = look in C:\\temp = look in temp C
CVE-2024-1234 = CVE-2024-1234 is fixed = CVE-2023-1234 is fixed
#123 = issue #123 is closed = issue 123 is closed
aa:bb:cc:dd:ee:ff = mac aa:bb:cc:dd:ee:ff = mac ff:ee:dd:cc:bb:aa
10.0.0.1 = host 10.0.0.1 = host 1.0.0.10
"""
NUMBERS = """
0301234567 = call 030 123 4567 = call 030 123 4568
030-1234567 = call 0301234567 = call 030 123 4568
+49 30 1234567 = call +49 (30) 123-4567 = call +49 (30) 123-4568
0049 30 1234567 = call +49 30 1234567 = call +49 30 1234568
0049301234567 = call +49 30 1234567 = call +49 30 1234568
DE89370400440532013000 = iban DE89 3704 0044 0532 0130 00 = iban DE88 3704 0044 0532 0130 00
DE89 3704 0044 0532 0130 00 = iban DE89370400440532013000 = iban DE88370400440532013000
9783161484100 = isbn 978-3-16-148410-0 = isbn 978-3-16-148410-1
1240 = it cost 1,240 euros = it cost 1,241 euros
1 240 = it cost 1.240,00 euros = it cost 1.241,00 euros
1.240,00 = it cost 1240 euros = it cost 1241 euros
BAB1234 = plate B-AB 1234 = plate B-AB 1235
B AB 1234 = plate B-AB1234 = plate B-AB1235
3f2a9c1 = commit 3f2a9c1d77b0aa12 = commit 3f2a9c2d77b0aa12
3f2a9c1d77 = commit 3f2a9c1d77b0aa12aa12aa12 = commit 3f2a9c1d78b0aa12aa12aa12
"""
SCRIPTS = """
أحمد = زارنا أَحْمَدُ أمس = زارنا علي أمس
احمد = زارنا أحمد أمس = زارنا علي أمس
كتاب = هذا كتـــاب جديد = هذا قلم جديد
علي = جاء على اليوم = جاء زيد اليوم
يك = این یک است = این دو است
שלום = שָׁלוֹם לכולם = תודה לכולם
123 = العدد ١٢٣ = العدد ١٢٤
42 = संख्या ४२ है = संख्या ४३ है
١٢٣ = room 123 is free = room 124 is free
ネコ = ねこが好き = いぬが好き
ねこ = ネコが好き = イヌが好き
집 = 집을 샀다 = 차를 샀다
집 = 집에서 잤다 = 차에서 잤다
हिन्दी = मुझे हिंदी पसंद है = मुझे चाय पसंद है
हिंदी = मुझे हिन्दी पसंद है = मुझे चाय पसंद है
Hà Nội = Tôi sống ở Hà Nội = Tôi sống ở Huế
Ha Noi = Tôi sống ở Hà Nội = Tôi sống ở Huế
ısparta = ISPARTA'da gül var = BURSA'da gül var
istanbul = İSTANBUL'da deniz var = BURSA'da deniz var
ışık = IŞIK yandı ve biz orada değildik ama sen vardın = SESİ geldi ve biz orada değildik ama sen vardın
"""


def cases(table: str) -> Iterator[tuple[str, str, str]]:
    for line in table.strip().splitlines():
        question, meant, other = line.split(" = ")
        yield question, meant, other


@pytest.mark.parametrize(("question", "meant", "other"), [*cases(SIGNS), *cases(NUMBERS), *cases(SCRIPTS)])
@pytest.mark.parametrize("newest", ["meant", "other"])
def test_the_text_that_is_meant_comes_first(question: str, meant: str, other: str, newest: str) -> None:
    with recollect.open(":memory:", embedder="none", zone="UTC") as memory:
        for number, text in enumerate((other, meant) if newest == "meant" else (meant, other)):
            memory.remember(text, time=datetime(2026, 1, 1 + number, tzinfo=UTC))
        for asked in (question, f"{question}?", f"What about {question}?"):
            assert next(hit.record.content for hit in memory.recall(asked)) == meant


def test_without_what_matters_the_newest_of_equal_texts_comes_first() -> None:
    """The control: a question without the sign does not tell the texts apart."""
    with recollect.open(":memory:", embedder="none", zone="UTC") as memory:
        for number, text in enumerate(("I write C++ every day", "I write C every day")):
            memory.remember(text, time=datetime(2026, 1, 1 + number, tzinfo=UTC))
        first, second = memory.recall("What do I write every day?")
        assert first.record.content == "I write C every day"
        assert first.score == pytest.approx(second.score, abs=1e-6)


def test_a_sign_in_the_title_above_a_section_counts() -> None:
    with recollect.open(":memory:") as memory:
        for language in ("C++", "C"):
            memory.remember("Run the installer.", id=language, metadata={"headings": [language, "Setup"]})
        assert memory.recall("C++ setup", k=1)[0].record.id == "C++"


def test_a_question_with_a_sign_that_no_text_has_is_answered_by_its_words() -> None:
    with recollect.open(":memory:", embedder="none") as memory:
        memory.remember("I write C every day")
        (hit,) = memory.recall("C++")
        assert hit.score == memory.recall("C")[0].score


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I write C++ every day", "I write C every day"),
        ("My blood type is O+ as of now", "My blood type is O- as of now"),
        ("It was -5 degrees in the yard", "It was 5 degrees in the yard"),
        ("The team builds it on .NET now", "The team builds it on NET now"),
        ("The team builds it (on .NET) now", "The team builds it (on NET) now"),
        ("It was −5 degrees in the yard", "It was 5 degrees in the yard"),
        ("Please send the résumé today", "Please send the resume today"),
    ],
)
def test_texts_with_other_signs_or_accents_are_no_exact_duplicates(one: str, other: str) -> None:
    with recollect.open(":memory:", embedder="none") as memory:
        memory.remember(one)
        memory.remember(other)
        assert memory.duplicates(likeness="exact") == []
        memory.remember(f"{one}!")
        assert [len(group.records) for group in memory.duplicates(likeness="exact")] == [2]


@pytest.mark.parametrize(
    ("term", "has", "has_not"),
    [
        ("C", "she writes C at home", "she writes C# and C++ at home"),
        ("C++", "she writes C++ at home", "she writes C at home"),
        ("NET", "the NET is down", "we use .NET here"),
        (".NET", "we use .NET here", "the NET is down"),
        ("istanbul", "we flew to İstanbul", "we flew to Bursa"),
        ("كتاب", "هذا كِتَابٌ", "هذا قلم"),
        ("ノア", "ノアがいる", "食事のあとで"),
        ("C++", "she writes C++11 code", "she writes C11 code"),
        ("resume", "the resume is here", "the résumé is here"),
    ],
)
def test_a_glossary_finds_a_term_where_recall_does(term: str, has: str, has_not: str) -> None:
    with recollect.open(":memory:", embedder="none") as memory:
        memory.glossary.memorize(term, "a thing", category="word", agent_id="a")
        assert [found.name for found in memory.glossary.annotate(has, "a")] == [term]
        assert memory.glossary.annotate(has_not, "a") == []


def test_decimal_digits_of_every_script_are_digits() -> None:
    """Of those that Unicode 14 has: this Python may know more."""
    known = [chr(point) for point in range(0x110000) if unicodedata.category(chr(point)) == "Nd"]
    later = {char for char in known if folded(char) == char and not char.isascii()}
    assert len(known) - len(later) >= 650
    assert all(folded(char) == str(unicodedata.decimal(char)) for char in known if char not in later)
    if unicodedata.unidata_version == "14.0.0":
        assert later == set()


def test_accents_count_where_names_are_compared_and_not_where_words_are_searched() -> None:
    assert (folded("Résumé"), same_letters("Résumé")) == ("resume", "résumé")
    assert same_letters("E\u0301") == same_letters("É")
