"""The index of a glossary's terms: BM25 on its raw scale, names above words, and names found in texts."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

from recollect.facets.glossary.index.index import DEPTH, EXACT, K1, B, Names, NameTrie, TermIndex, tokens
from recollect.text.words import terms as words_of


def words(text: str) -> list[str]:
    return [term for term, _ in words_of(text)]


def split(text: str) -> list[str]:
    return text.split()


def index_of(terms: dict[str, str], **aliases: tuple[str, ...]) -> TermIndex:
    index = TermIndex(split)
    for key, text in terms.items():
        index.put(key, key, aliases.get(key, ()), f"{key} {' '.join(aliases.get(key, ()))} {text}")
    return index


def found(names: list[str], text: str) -> list[tuple[str, str]]:
    known = Names([tokens(name) for name in names])
    return [(text[each.start : each.end], names[each.name]) for each in known.find(text)]


def test_the_score_of_a_single_term_is_that_of_true_bm25() -> None:
    index = TermIndex(words)
    index.put(
        "pii",
        "x",
        (),
        "PII Personally Identifiable Information private data sensitive info "
        "Any data that could be used to identify a specific individual.",
    )
    (hit,) = index.search("How do we handle private data?")
    assert round(hit.score, 2) == 0.68  # the value that the specification states
    assert (hit.exact, hit.words) == ((), ("data", "privat"))


def test_scores_are_those_of_a_direct_computation() -> None:
    random.seed(4)
    known = [f"w{number}" for number in range(30)]
    texts = {f"k{number}": " ".join(random.choices(known, k=random.randint(1, 20))) for number in range(60)}
    index = index_of(texts)
    docs = {key: [key, *text.split()] for key, text in texts.items()}
    mean = sum(map(len, docs.values())) / len(docs)
    for question in ("w1 w2 w3", "w4 w4 w9", "w29", "unknown w0"):
        expected = {}
        for key, doc in docs.items():
            score = 0.0
            for token in question.split():
                having = sum(token in each for each in docs.values())
                count = doc.count(token)
                idf = math.log(1 + (len(docs) - having + 0.5) / (having + 0.5))
                score += idf * count * (K1 + 1) / (count + K1 * (1 - B + B * len(doc) / mean))
            if score:
                expected[key] = score
        hits = index.search(question)
        assert {hit.id: pytest.approx(hit.score, abs=1e-3) for hit in hits} == expected
        ranked = [(-hit.score, hit.id) for hit in hits]
        assert ranked == sorted(ranked)
        for k in (1, 3, 7):
            assert index.search(question, k) == hits[:k]


def test_a_name_in_the_question_is_above_every_term_that_only_shares_words() -> None:
    index = index_of(
        {"alpha": "x", "beta": "alpha alpha alpha one two three", "gamma": "one two three"}, alpha=("one two",)
    )
    for question, name in (("what is ALPHA ?", "alpha"), ("one two three alphas", "one two")):
        best, *others = index.search(question)
        assert (best.id, best.exact) == ("alpha", (name,))
        assert best.score >= EXACT
        assert all(best.score > other.score and not other.exact for other in others)
    assert index.search("two one")[0].exact == ()


def test_statistics_are_those_of_this_index_and_follow_every_change() -> None:
    index = index_of({"a": "red", "b": "red blue", "c": "blue green green"})
    before = index.search("red green")
    index.put("d", "d", ("dee",), "d dee red red red")
    assert index.search("red green") != before
    index.put("d", "d", (), "d red")
    index.remove("d")
    index.remove("absent")
    assert index.search("red green") == before
    assert index.search("dee") == []
    assert index.mentions("dee d") == []


@settings(max_examples=some(200))
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.none() | st.lists(st.sampled_from(["x", "y", "x y", "z"]), max_size=4)),
        max_size=12,
    ),
    st.lists(st.sampled_from("xyzabcd"), max_size=5).map(" ".join),
)
def test_an_index_that_was_changed_equals_one_that_was_built_from_what_is_left(changes: Any, question: str) -> None:
    changed = TermIndex(split)
    left: dict[str, list[str]] = {}
    for key, aliases in changes:
        left.pop(key, None)
        if aliases is None:
            changed.remove(key)
        else:
            left[key] = aliases
            changed.put(key, key, aliases, " ".join([key, *aliases]))
        changed.search(question)
    built = TermIndex(split)
    for key, aliases in left.items():
        built.put(key, key, aliases, " ".join([key, *aliases]))
    assert changed.search(question) == built.search(question)
    assert changed.mentions(question) == built.mentions(question)
    assert changed.shared_names() == built.shared_names()
    assert len(changed) == len(left)


def test_a_misspelt_word_finds_a_term_on_request_only() -> None:
    index = index_of({"kubernetes": "orchestration of containers", "postgres": "a database"})
    assert index.search("kubernets") == []
    (hit,) = index.search("kubernets", typos=True)
    assert (hit.id, hit.exact) == ("kubernetes", ())
    assert hit.score < index.search("kubernetes")[0].score
    assert index.search("entirely different", typos=True) == []


def test_names_that_several_terms_have_are_listed() -> None:
    index = index_of({"A": "", "B": "", "C": ""}, A=("same", "own"), B=("SAME",), C=("a",))
    assert index.shared_names() == [("A", ("A", "C")), ("SAME", ("A", "B"))]
    (mention,) = index.mentions("the a")
    assert (mention.ids, mention.name) == (("A", "C"), "A")  # the key before the alias


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        (["cat"], "A cat, category, Cat.", [("cat", "cat"), ("Cat", "cat")]),
        (["C", "C++", "C#"], "C, C++ and C#", [("C", "C"), ("C++", "C++"), ("C#", "C#")]),
        (
            ["private", "private data"],
            "private data is private",
            [("private data", "private data"), ("private", "private")],
        ),
        (["private data"], "private\n\t data, private-data", [("private\n\t data", "private data")]),
        (["a b", "b c d"], "a b c d", [("a b", "a b")]),
        (["\u732b"], "\u9ed2\u732b\u304c\u597d\u304d", [("\u732b", "\u732b")]),
        (["caf\u00e9"], "cafe\u0301 caf\u00e9 cafe", [("cafe\u0301", "caf\u00e9"), ("caf\u00e9", "caf\u00e9")]),
        (["STRASSE"], "Stra\u00dfe", [("Stra\u00dfe", "STRASSE")]),
        (["\ufb01n"], "FIN", [("FIN", "\ufb01n")]),
        (["", " ", "\u00a0"], "any  text", []),
    ],
)
def test_names_are_found_at_word_boundaries_longest_first(names: list[str], text: str, expected: Any) -> None:
    assert found(names, text) == expected


@settings(max_examples=some(300))
@given(st.lists(st.text("ab +\u732b", max_size=6), max_size=6), st.text("ab +\u732b", max_size=30))
def test_occurrences_are_the_leftmost_longest_names(names: list[str], text: str) -> None:
    spelt = [tuple(tokens(name)) for name in names]
    said = list(tokens(text))
    expected, at = [], 0
    while at < len(said):
        fits = [each for each in spelt if each and tuple(said[at : at + len(each)]) == each]
        best = max(fits, key=len, default=())
        if best:
            expected.append(spelt.index(best))
        at += len(best) or 1
    assert [each.name for each in Names(spelt).find(text)] == expected


def test_words_beyond_the_number_of_the_first_surrogate_are_distinct() -> None:
    names = [(f"n{number}",) for number in range(60_000)]
    known = Names(names)
    assert [each.name for each in known.find("n0 n55294 n55295 n55296 n59999 n60000")] == [
        0,
        55294,
        55295,
        55296,
        59999,
    ]
    assert (
        Counter(each.name for each in known.find(" ".join(f"n{number}" for number in range(60_000)))).total() == 60_000
    )


# The names in a question


@given(data=st.data())
def test_the_trie_finds_just_the_names_that_occur_whatever_was_removed(data: st.DataObject) -> None:
    name = st.lists(st.sampled_from("ab"), min_size=1, max_size=2 * DEPTH).map(tuple)
    trie, known = NameTrie(), set[tuple[str, ...]]()
    for each in data.draw(st.lists(name, max_size=12)):
        if each in known:
            known.remove(each)
            trie.remove(each)
        else:
            known.add(each)
            trie.add(each)
    said = data.draw(st.lists(st.sampled_from("abc"), max_size=4 * DEPTH))
    wanted = {each for each in known if any(tuple(said[at : at + len(each)]) == each for at in range(len(said)))}
    found = trie.within(said)
    assert len(found) == len(set(found))
    assert set(found) == wanted
    for each in known:
        trie.remove(each)
    assert trie._root == {}


def test_a_hostile_question_takes_few_steps_whatever_names_there_are() -> None:
    class Counted(str):
        __slots__ = ()
        steps = 0

        def __hash__(self) -> int:
            Counted.steps += 1
            return super().__hash__()

    trie, word = NameTrie(), Counted("w")
    for size in range(1, 100):
        trie.add((word,) * size)
    Counted.steps = 0
    assert len(trie.within([word] * 3000)) == 99
    assert Counted.steps <= 3000 * (DEPTH + 3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("کتاب\u200cخانه", "این کتابخانه است"),
        ("کتابخانه", "این کتاب\u200cخانه است"),
        ("☕\ufe0f", "a ☕ please"),
        ("☕ bar", "the ☕\ufe0f bar"),
        ("tea", "\u200d tea \ufe0f"),
        ("co\u00adop", "the coop"),
    ],
)
def test_characters_that_are_no_part_of_a_word_make_no_difference(name: str, text: str) -> None:
    assert [named for _, named in found([name], text)] == [name]
    index = index_of({name: ""})
    assert [(each.id, bool(each.exact)) for each in index.search(text, 5)] == [(name, True)]


@given(
    st.lists(st.sampled_from(["tea", "☕", "\ufe0f", "\u200d", "\u200c", "☕\ufe0f", "", " "]), max_size=8).map("".join)
)
def test_any_text_can_be_searched_for_any_name(text: str) -> None:
    for name in ("tea", "☕", "tea \u200d ☕", "\ufe0f"):
        index_of({name: ""}).search(f"{text} tea", 5)
