"""Meaning in recall: the golden values of the specification, what turns lend, and what of a question is embedded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect.models.embedding.base import Floors

#: Two rules are newer than the specification: a turn that only asks counts two fifths, and a day is no name, so that it
#: does not answer "which ...?".
ONLY_ASKS, NO_NAME = 0.4, 1 / 1.15
LIKE_MINILM = Floors(share=0.1, alone=0.4, weight=0.25)


class Toy:
    """An embedder whose texts have given cosines with every question."""

    name, dimension, floors = "toy/1", 2, LIKE_MINILM

    def __init__(self, cosines: dict[str, float]) -> None:
        self.cosines = cosines
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[list[float]]:
        if asking:
            self.asked += texts
            return [[1.0, 0.0] for _ in texts]
        return [[each, math.sqrt(1 - each * each)] for each in map(self.cosines.__getitem__, texts)]


def told(turns: list[tuple[str, str, str, float]], **fields: Any) -> tuple[Memory, Toy]:
    """A memory of turns: (session, speaker, text, cosine with the question)."""
    embedder = Toy({f"{speaker}: {text}" if speaker else text: cosine for _, speaker, text, cosine in turns})
    memory = recollect.open(":memory:", embedder=embedder)
    for place, (session, speaker, text, _) in enumerate(turns):
        memory.remember(
            text, id=str(place), kind="conversation", conversation="c", session=session, speaker=speaker or None,
            position=place, **{name: each[place] for name, each in fields.items()},
        )  # fmt: skip
    memory.embed_all()
    return memory, embedder


def dense(memory: Memory, question: str) -> dict[str, float]:
    return {hit.record.id: hit.why.shares.get("dense", 0.0) for hit in memory.recall(question)}


def test_a_reply_needs_what_the_question_before_it_says() -> None:
    memory, _ = told(
        [
            ("s", "Ana", "Which walk shall we take on Sunday?", 0.5),
            ("s", "Bob", "The one along the river.", 0.3),
            ("s", "Ana", "Fine with me.", 0.05),
            ("s", "Bob", "I bought new boots.", 0.2),
        ]
    )
    hits = memory.recall("Which hike did they choose?")
    assert [hit.record.id for hit in hits] == ["1", "0"]
    assert [hit.score for hit in hits] == pytest.approx([0.163715, ONLY_ASKS * NO_NAME * 0.159935], abs=1e-5)


def test_a_factor_applies_to_meaning_too() -> None:
    memory, embedder = told(
        [
            ("s", "Ana", "I adopted a kitten.", 0.45),
            ("s", "Bob", "My kitten sleeps all day.", 0.45),
            ("t", "Ana", "The meeting is on Monday.", 0.1),
        ]
    )
    found = dense(memory, "Which animal does Ana keep?")
    assert found == {"0": pytest.approx(0.156599, abs=1e-5), "1": pytest.approx(0.146160, abs=1e-5)}
    assert embedder.asked == ["Which animal does keep?"]


def test_an_instruction_a_question_and_an_answer_count_by_their_manner() -> None:
    memory, _ = told(
        [
            ("s", "", "Always answer in French.", 0.3),
            ("s", "", "How can I descale the kettle?", 0.6),
            ("s", "", "Boil vinegar and water, then rinse it twice.", 0.4),
        ],
        role=("user", "user", "assistant"),
    )
    found = dense(memory, "Cleaning limescale from a kettle")
    assert found == {
        "1": pytest.approx(ONLY_ASKS * 0.190889, abs=1e-5),
        "0": pytest.approx(0.152092, abs=1e-5),
        "2": pytest.approx(0.141090, abs=1e-5),
    }


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("What did Ana paint for Bob's sister?", "What did paint for sister?"),
        ("What is Ana's bowl made of?", "What is bowl made of?"),
        ("What is Ana’s bowl made of?", "What is bowl made of?"),
        ("what did ana say?", "what did say?"),
        ("Who is Caro?", "Who is Caro?"),
        ("Ana?", "Ana?"),
    ],
)
def test_names_of_speakers_are_not_embedded(question: str, asked: str) -> None:
    memory, embedder = told([("s", "Ana", "Hello.", 0.0), ("s", "Bob", "Hello, too.", 0.0)])
    memory.recall(question)
    assert embedder.asked == [asked]


def test_names_within_a_scope_are_those_of_its_records() -> None:
    embedder = Toy({"Ana: Hello.": 0.0, "Bob: Hello.": 0.0})
    memory = recollect.open(":memory:", embedder=embedder)
    for user, speaker in (("u", "Ana"), ("v", "Bob")):
        memory.remember("Hello.", kind="conversation", conversation="c", speaker=speaker, user=user)
    memory.embed_all()
    memory.scoped(user="u").recall("Did Ana meet Bob?")
    assert embedder.asked == ["Did meet Bob?"]


@pytest.mark.parametrize(
    ("facts", "question", "asked"),
    [
        (6, "Who is Ana's boss?", "Who is boss?"),
        (6, "Who is the boss of Ana?", "Who is the boss of ?"),
        (6, "WHO IS ANA?", "WHO IS ANA?"),  # capitals do not mark names here
        (6, "Ana: who is her boss?", "Ana: who is her boss?"),  # the first word of a sentence always has one
        (6, "Hello! Ana has which boss?", "Hello! Ana has which boss?"),
        (6, "Wer ist der Chef von Ana und was mag sie?", "Wer ist der Chef von Ana und was mag sie?"),  # all nouns do
        (6, "Which cake does Bob like?", "Which cake does Bob like?"),  # one fact is about Bob
        (6, "Does she like tea?", "Does she like tea?"),  # a topic that all facts share is no name
        (3, "Who is Ana's boss?", "Who is Ana's boss?"),  # three facts about a person are few
    ],
)
def test_a_name_that_many_records_have_is_not_embedded(facts: int, question: str, asked: str) -> None:
    texts = [f"Ana likes tea number {number}" for number in range(facts)]
    embedder = Toy(dict.fromkeys([*texts, "Bob likes cake"], 0.0))
    memory = recollect.open(":memory:", embedder=embedder)
    memory.remember_all([*texts, "Bob likes cake"])
    memory.embed_all()
    memory.recall(question)
    assert embedder.asked == [asked]


def test_names_are_counted_in_live_records_of_all_languages_and_a_third_must_have_them() -> None:
    english = [f"Ana likes tea number {number}" for number in range(4)]
    more = [f"the harbour has boat number {number}" for number in range(9)]
    embedder = Toy(dict.fromkeys([*english, *more], 0.0))
    memory = recollect.open(":memory:", embedder=embedder)
    memory.remember_all(english + more[:8])
    memory.embed_all()
    memory.recall("Who is Ana?")
    memory.remember(more[8])
    memory.recall("Who is Ana?")  # four of thirteen
    memory.forget(memory.find(limit=1, order="newest")[0].id)
    memory.recall("Who is Ana?")
    memory.forget(next(record.id for record in memory.find() if record.content == english[0]))
    memory.recall("Where is Ana?")  # three are few
    assert embedder.asked == ["Who is ?", "Who is Ana?", "Where is Ana?"]


def test_the_floor_rises_in_a_large_memory_as_in_a_small_one() -> None:
    """Up to 1,024 records by the median of the cosines, then by an estimate of it."""
    cosines = [0.3 + 0.0001 * number for number in range(1024)]
    small, large = similar_to(cosines), similar_to([*cosines, 0.35])
    floors = [memory.recall("Wo?").plan.floor or 0.0 for memory in (small, large)]
    assert floors[0] == pytest.approx(0.1 + 0.9 * 0.25115 * 1020 / 1024, abs=0.001)
    assert floors[1] == pytest.approx(floors[0], abs=0.06)


def similar_to(cosines: Sequence[float]) -> Memory:
    """A memory of facts that share no word with a question, with these cosines; their ids are places."""
    texts = {f"fact {number}": cosine for number, cosine in enumerate(cosines)}
    memory = recollect.open(":memory:", embedder=Toy(texts))
    for number, text in enumerate(texts):
        memory.remember(text, id=str(number))
    memory.embed_all()
    return memory


def test_what_the_middle_of_a_memory_has_in_common_with_a_question_says_nothing() -> None:
    """An English model gives German texts cosines of a half: only the one that stands out is a hit."""
    memory = similar_to([0.5] * 30 + [0.75])
    hits = memory.recall("Wo?")
    assert [hit.record.id for hit in hits] == ["30"]
    assert hits.plan.floor == pytest.approx(0.4, abs=1e-6)  # `alone`; without that limit 0.1 + 0.9 x 0.4 x 27 / 31
    assert hits[0].why.cosine == pytest.approx(0.75, abs=1e-4)
    # The control: where the others are far, the floor stays, and as similar ones are hits.
    apart = similar_to([0.05] * 30 + [0.5]).recall("Wo?")
    assert [hit.record.id for hit in apart] == ["30"]
    assert apart.plan.floor == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("cosines", "found"),
    [
        ([0.35, 0.27, 0.02], ["0"]),  # the closest needs three fifths of 0.3 above the floor of 0.1
        ([0.35, 0.30, 0.02], ["0", "1"]),  # and so does what has three quarters of that
        ([0.27, 0.26, 0.02], []),
        ([0.60, 0.41, 0.39], ["0", "1"]),  # 0.4 is enough however close another is
    ],
)
def test_the_closest_is_a_hit_at_a_lower_cosine_than_others(cosines: list[float], found: list[str]) -> None:
    assert [hit.record.id for hit in similar_to(cosines).recall("Wo?")] == found


def test_of_a_memory_that_is_all_about_what_is_asked_all_are_hits() -> None:
    assert len(similar_to([0.75] * 20).recall("Wo?", k=30)) == 20
    assert len(similar_to([0.5] * 4).recall("Wo?", k=30)) == 4  # of four, all may answer


def test_a_question_to_an_english_memory_and_to_one_of_noise_have_other_confidences() -> None:
    noise, answer = similar_to([0.5] * 30 + [0.55]), similar_to([0.05] * 30 + [0.55])
    assert not noise.recall("Wo?")
    assert answer.recall("Wo?")[0].confidence > 0.3
    assert noise.recall("fact", min_confidence="auto").plan.closest == pytest.approx(0.55, abs=1e-4)


def test_an_answer_says_that_some_records_have_no_vector_yet() -> None:
    memory = recollect.open(":memory:", embedder=Toy({"Ana likes tea": 0.5, "Bob likes cake": 0.5}))
    memory.remember("Ana likes tea", user="ana")
    memory.remember(b"\x00\x01", media_type="image/png", user="ana")  # has nothing to embed
    memory.embed_all()
    assert memory.recall("Who?").plan.notes == ()
    memory.remember("Bob likes cake", user="bob")
    assert "some records have no vector" in memory.recall("Who?").plan.notes[0]
    assert memory.scoped(user="ana").recall("Who?").plan.notes == ()  # what others have makes no difference
    memory.embed_all()
    assert memory.recall("Who?").plan.notes == ()


def test_vectors_outside_of_a_scope_make_no_difference_in_it() -> None:
    def hits(embedded: bool) -> Any:
        memory = recollect.open(":memory:", embedder=Toy({"Bob likes tea": 0.5}))
        for number in range(20):
            memory.remember(f"Ana has boat number {number}", user="ana")
        memory.remember("Bob likes tea", user="bob")
        if embedded:
            memory.scoped(user="bob").embed_all()
        return memory.scoped(user="ana").recall("Which boat has Ana?")

    without, beside = hits(False), hits(True)
    assert [(hit.score, hit.confidence) for hit in without] == [(hit.score, hit.confidence) for hit in beside]
    assert "no record that may be asked has a vector" in beside.plan.notes[0]


def test_what_another_namespace_asked_makes_no_difference() -> None:
    memory = recollect.open(":memory:", embedder=Toy({"Ana likes tea": 0.5}))
    memory.remember("Ana likes tea")
    memory.embed_all()
    other = memory.namespace("other")
    other.remember("Bob likes tea")
    memory.recall("Who likes tea?")
    plan = other.recall("Who likes tea?").plan
    assert (plan.vectors, plan.vector, plan.closest) == (None, "", None)


@pytest.mark.parametrize("kernels", ["native", "numpy"])
def test_confident_hits_are_found_behind_others_that_are_only_close(
    kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recollect.indexes.kernels import choose
    from recollect.indexes.kernels import with_numpy as numpy_kernels
    from recollect.indexes.scoring import scores

    if kernels == "numpy":
        monkeypatch.setattr(scores, "chosen", lambda: numpy_kernels.KERNELS)
    else:
        assert choose.uses_native()
    words = "alpha beta gamma delta epsilon zeta".split()  # one of many, so that it is a small share
    close = {f"close {number}": 0.72 for number in range(3000)}
    far = {f"{words[number % 6]} thing {number}": 0.0 for number in range(600)}
    dull = {f"dull {number}": 0.0 for number in range(2400)}
    memory = recollect.open(":memory:", embedder=Toy({**close, **dull, **far}))
    memory.remember_all([*close, *dull, *far])
    memory.embed_all()
    question = " ".join(words)
    every = memory.recall(question, k=3600)
    assert {str(hit.record.content).split()[0] for hit in every[:3000]} == {"close"}
    least = every[3000].confidence
    assert least > every[0].confidence
    for k in (1, 50):
        assert len(memory.recall(question, k=k, min_confidence=least)) == k
