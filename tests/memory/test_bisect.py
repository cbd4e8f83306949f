"""Bisection finds a commit that changed an answer, and says why (docs/bisect.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.conftest import OVER_LOOPBACK
from tests.examples import in_full
from tests.memory.bisect_cases import COMMITS, Case, Clock, history

import recollect
from recollect import filters as f
from recollect.engine.results import Hits
from recollect.errors import BisectError, InvalidArgumentError, ScopeError, UnknownTargetError
from recollect.memory.bisection.search import Halving
from recollect.memory.bisection.values import Bisected, Flip, HitChange

SEAT = "Which seat does Ana prefer?"
WINDOW, AISLE = "Ana prefers window seats", "Ana prefers aisle seats"
HOUR = timedelta(hours=1)


@pytest.fixture
def recalls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions of all recalls, counted outside of the bisection."""
    asked: list[str] = []
    recall = recollect.Memory.recall

    def counted(self: recollect.Memory, question: str, *args: Any, **options: Any) -> Hits:
        asked.append(question)
        return recall(self, question, *args, **options)

    monkeypatch.setattr(recollect.Memory, "recall", counted)
    return asked


def best(memory: recollect.Memory, question: str, seq: int) -> tuple[str, str | bytes] | None:
    """The first answer as of a commit, by a plain recall."""
    hits = memory.at(seq).recall(question, k=1)
    return (hits[0].record.id, hits[0].record.content) if hits else None


def changes_at(memory: recollect.Memory, question: str, seq: int, good: int) -> bool:
    """Return whether the answer is that of a good commit before a commit, and another one at it."""
    expected = best(memory, question, good)
    return best(memory, question, seq - 1) == expected != best(memory, question, seq)


def filled(memory: recollect.Memory, until: int) -> None:
    """Add commits about something else up to a seq."""
    for number in range(memory.seq + 1, until + 1):
        memory.remember(f"Note {number} about the weather", id=f"note {number}")


def reasons(found: Bisected) -> dict[str, str]:
    return {each.id: each.reason for each in found.why}


def only(found: Bisected, record_id: str) -> HitChange:
    (change,) = (each for each in found.why if each.id == record_id)
    return change


@pytest.mark.skipif(OVER_LOOPBACK, reason="the search is the same over a wire")
def test_two_hundred_planted_changes_are_found_in_less_than_twenty_recalls_each(recalls: list[str]) -> None:
    memory, cases = history(1, 200)
    assert sum(len(case.flips) in (3, 5) for case in cases) == 50
    wrong: list[tuple[Case, Bisected]] = []
    most = 0
    with memory:
        for case in cases:
            recalls.clear()
            found = memory.bisect(case.question, 1, COMMITS)
            assert found.calls == len(recalls)
            most = max(most, len(recalls))
            assert found.seq is not None
            if found.seq not in case.flips[::2] or not changes_at(memory, case.question, found.seq, 1):
                wrong.append((case, found))
    assert wrong == []
    assert most < 20


def test_the_check_of_planted_changes_notices_a_wrong_commit(memory: recollect.Memory) -> None:
    memory.remember(WINDOW, id="seat")
    filled(memory, 5)
    memory.update("seat", content=AISLE)
    filled(memory, 9)
    assert [seq for seq in range(2, 10) if changes_at(memory, SEAT, seq, 1)] == [6]


def _long(memory: recollect.Memory, clock: Clock, commits: int, changed: int) -> None:
    memory.remember(WINDOW, id="seat")
    for number in range(2, commits + 1):
        clock.time += timedelta(minutes=1)
        if number == changed:
            memory.update("seat", content=AISLE)
        else:
            memory.remember(f"Weather {number}", id=f"note {number % 50}", if_exists="update")


@pytest.mark.parametrize(("commits", "most"), [(1000, 12), pytest.param(10_000, 16, marks=in_full)])
def test_the_number_of_recalls_grows_with_the_logarithm_of_the_commits(
    commits: int, most: int, recalls: list[str]
) -> None:
    clock = Clock()
    with recollect.open(":memory:", clock=clock) as memory:
        _long(memory, clock, commits, commits * 2 // 3)
        recalls.clear()
        assert memory.bisect(SEAT, 1).seq == commits * 2 // 3
    assert len(recalls) <= most


@pytest.mark.stores("memory", "sqlite", "loopback")
def test_the_result_names_the_commit_its_writer_and_the_change_as_text_and_as_json(memory: recollect.Memory) -> None:
    memory.remember(WINDOW, id="seat")
    filled(memory, 12)
    with memory.batch(actor="agent 7", reason="a new profile") as batch:
        batch.update("seat", content=AISLE)
    filled(memory, 20)
    found = memory.bisect(SEAT, 1)
    assert (found.seq, found.good, found.bad, found.flips_seen, found.skipped) == (13, 12, 13, 1, ())
    assert found.flips == (Flip(12, 13),)
    assert found.commit is not None
    assert (found.commit.actor, found.commit.reason) == ("agent 7", "a new profile")
    change = only(found, "seat")
    assert (change.reason, change.rank_before, change.rank_after) == ("changed text", 1, 1)
    assert change.before is not None
    assert change.after is not None
    assert (change.before.text, change.after.text) == (WINDOW, AISLE)
    assert str(found) == "commit 13 is the first bad one"
    assert str(change) == f"changed text, rank 1 -> 1: {WINDOW!r} -> {AISLE!r}"
    assert "commit 13 is the first bad one" in repr(found)
    assert repr(change).startswith("<HitChange seat changed text, rank 1 -> 1")
    data = found.to_json()
    assert (data["seq"], data["flips_seen"], data["commit"]["actor"]) == (13, 1, "agent 7")
    assert Bisected.from_json(data).to_json() == data


@pytest.mark.stores("memory", "loopback")
def test_an_answer_that_became_good_is_found_the_other_way_round(memory: recollect.Memory) -> None:
    memory.remember(AISLE, id="seat")
    filled(memory, 7)
    memory.update("seat", content=WINDOW)
    filled(memory, 11)
    found = memory.bisect(SEAT, good=memory.seq, bad=1)
    assert (found.seq, found.good, found.bad) == (8, 8, 7)
    assert str(found) == "commit 8 is the first good one"
    assert memory.bisect(SEAT, good=memory.seq, bad=0, expect="Ana").seq == 1


def test_moments_are_named_as_for_at() -> None:
    clock = Clock()
    with recollect.open(":memory:", clock=clock) as memory:
        memory.remember(WINDOW, id="seat")
        memory.snapshot("before")
        first = memory.root
        clock.time += HOUR
        noon = clock.time - timedelta(minutes=1)
        for seq in range(2, 6):
            clock.time += HOUR
            memory.update("seat", content=AISLE) if seq == 4 else memory.remember(f"Note {seq}")
        for good in (1, "before", first, noon, memory.snapshots()[0]):
            assert memory.bisect(SEAT, good).seq == 4
        assert memory.bisect(SEAT, 1, memory.root).seq == 4
        assert memory.bisect(SEAT, 1, datetime(2030, 1, 1, tzinfo=UTC)).seq == 4
        assert memory.at(4).bisect(SEAT, 1).bad == 4
        assert memory.at(2).bisect(SEAT, 1, 5).commit == memory.bisect(SEAT, 1).commit
        with pytest.raises(UnknownTargetError):
            memory.bisect(SEAT, 1, 77)


def test_an_answer_is_good_by_a_text_in_one_of_the_first_hits(memory: recollect.Memory) -> None:
    memory.remember(WINDOW, id="seat")
    memory.remember("The window row, says Bob, has a seat", id="bob")  # 2
    memory.update("bob", content="A seat, says Bob")  # 3
    memory.forget("seat")  # 4
    assert memory.bisect(SEAT, 1, expect="window").seq == 4
    assert memory.bisect(SEAT, 2, expect="window", k=2).seq == 4
    assert memory.bisect(SEAT, 2, expect="window row", k=2).seq == 3


def test_a_judge_sees_the_hits_of_each_commit_once(memory: recollect.Memory) -> None:
    memory.remember(WINDOW, id="seat")
    filled(memory, 30)
    memory.forget("seat")
    filled(memory, 40)
    seen: list[int] = []

    def judge(hits: Hits) -> bool:
        seen.append(hits.watermark)
        return bool(hits)

    assert memory.bisect(SEAT, 1, judge=judge).seq == 31
    assert len(set(seen)) == len(seen) <= 8
    exit_code: Any = lambda _hits: 0  # noqa: E731 - it is good, and not true
    with pytest.raises(InvalidArgumentError, match="must return True, False or None"):
        memory.bisect(SEAT, 1, judge=exit_code)


def test_what_recall_is_restricted_by_restricts_the_question(memory: recollect.Memory) -> None:
    memory.remember(WINDOW, id="seat", user="ana", tags=["travel"])
    memory.remember("Seat", id="bob", user="bob")  # 2
    filled(memory, 5)
    memory.update("seat", content=AISLE)  # 6
    assert memory.bisect("Which seat?", 1, user="ana").seq == 6
    assert memory.bisect("Which seat?", 1, where="tag=travel").seq == 6
    assert memory.bisect("Which seat?", 1, where=f.user("ana"), min_origin="user", language="en").seq == 6
    assert memory.bisect("Which seat?", 1).seq == 2


def test_ends_that_do_not_differ_are_refused_with_both_answers(memory: recollect.Memory) -> None:
    memory.remember(WINDOW, id="seat")
    filled(memory, 4)
    with pytest.raises(BisectError, match=r"both ends are good: at commit 1 the answer is seat \(Ana prefers window"):
        memory.bisect(SEAT, 1)
    with pytest.raises(
        BisectError, match="both ends are bad: at commit 0 the answer is no hit, at commit 4 it is seat"
    ):
        memory.bisect(SEAT, 0, expect="aisle")
    with pytest.raises(BisectError, match="exchange them"):
        memory.bisect(SEAT, 0, expect="window")
    with pytest.raises(InvalidArgumentError, match="is commit 4, as is good"):
        memory.bisect(SEAT, memory.root)


def test_an_end_that_cannot_be_judged_is_refused(memory: recollect.Memory) -> None:
    memory.remember(WINDOW, id="seat")
    memory.forget("seat")
    with pytest.raises(BisectError, match="an end cannot be judged"):
        memory.bisect(SEAT, 1, judge=lambda hits: bool(hits) or None)


def test_wrong_arguments_are_refused(memory: recollect.Memory) -> None:
    memory.remember(WINDOW)
    call: Any = memory.bisect
    refused: dict[str, dict[str, Any]] = {
        "expect": {"expect": " "},
        "judge": {"judge": "window"},
        "combined with a judge": {"expect": "window", "judge": bool},
        "combined with all": {"last": True, "all": True},
        "k": {"k": 0},
        "samples": {"samples": -1},
    }
    for name, options in refused.items():
        with pytest.raises(InvalidArgumentError, match=name):
            call(SEAT, 0, **options)


def test_a_scope_is_refused_because_numbers_cover_the_namespace(memory: recollect.Memory) -> None:
    memory.remember(WINDOW, user="ana")
    with pytest.raises(ScopeError, match="a bisection"):
        memory.scoped(user="ana").bisect(SEAT, datetime(2026, 1, 1, tzinfo=UTC))


def test_the_awaited_call_is_the_same(memory: recollect.Memory) -> None:
    memory.remember(WINDOW, id="seat")
    filled(memory, 4)
    memory.forget("seat")

    async def found() -> Bisected:
        return await recollect.AsyncMemory(memory).bisect(SEAT, 1)

    assert asyncio.run(found()) == memory.bisect(SEAT, 1)


# Commits that cannot be judged.


def test_commits_that_cannot_be_judged_are_passed_over(memory: recollect.Memory) -> None:
    memory.remember(WINDOW, id="seat")
    filled(memory, 30)
    memory.forget("seat")
    filled(memory, 60)

    def judge(hits: Hits) -> bool | None:
        return None if 25 <= hits.watermark <= 29 or hits.watermark == 45 else bool(hits)

    found = memory.bisect(SEAT, 1, judge=judge)
    assert found.seq == 31
    assert set(found.skipped) <= {25, 26, 27, 28, 29, 45}
    assert found.skipped


def test_if_those_around_the_change_cannot_be_judged_the_result_is_a_range(memory: recollect.Memory) -> None:
    memory.remember(WINDOW, id="seat")
    filled(memory, 30)
    memory.forget("seat")
    filled(memory, 60)
    found = memory.bisect(SEAT, 1, judge=lambda hits: None if 28 <= hits.watermark <= 33 else bool(hits))
    assert (found.seq, found.good, found.bad, found.commit) == (None, 27, 34, None)
    assert found.skipped == (28, 29, 30, 31, 32, 33)
    assert str(found) == "one of the commits 28 to 34: those before 34 could not be judged"
    assert (only(found, "seat").reason, only(found, "seat").cause) == ("gone", "forgotten")


def test_a_commit_whose_answer_was_erased_cannot_be_judged(memory: recollect.Memory) -> None:
    filled(memory, 10)
    memory.remember(WINDOW, id="seat")  # 11
    filled(memory, 20)
    memory.erase("seat")  # 21
    filled(memory, 25)
    memory.remember(WINDOW, id="seat")  # 26
    filled(memory, 40)
    found = memory.bisect(SEAT, good=40, bad=0)
    assert (found.seq, found.good, found.bad) == (26, 26, 25)
    assert found.skipped
    assert set(found.skipped) <= set(range(11, 21))
    with pytest.raises(BisectError, match="cannot be judged"):
        memory.bisect(SEAT, good=40, bad=15)


# Answers that change more often than once.


def _alternating(memory: recollect.Memory, flips: tuple[int, ...], until: int) -> None:
    memory.remember(WINDOW, id="seat")
    for seq in range(2, until + 1):
        if seq in flips:
            memory.update("seat", content=AISLE if flips.index(seq) % 2 == 0 else WINDOW)
        else:
            memory.remember(f"Note {seq} about the weather", id=f"note {seq}")


def _flips(memory: recollect.Memory, until: int) -> list[int]:
    """All changes of the answer, by a recall for each commit."""
    answers = [best(memory, SEAT, seq) for seq in range(1, until + 1)]
    return [seq for seq, (old, new) in enumerate(pairwise(answers), 2) if old != new]


def test_all_finds_every_change_where_as_many_commits_are_sampled(memory: recollect.Memory) -> None:
    flips = (4, 5, 11, 12, 13, 25, 33)
    _alternating(memory, flips, 40)
    assert _flips(memory, 40) == list(flips)
    found = memory.bisect(SEAT, 1, all=True, samples=40)
    assert [flip.seq for flip in found.flips] == list(flips)
    assert (found.seq, found.flips_seen) == (33, 7)
    assert "7 changes seen" in repr(found)
    assert memory.bisect(SEAT, 1, all=True).flips == found.flips, "30 samples of 38, and halving"


def test_all_finds_the_changes_that_samples_separate(memory: recollect.Memory) -> None:
    _alternating(memory, (20, 50, 80), 100)
    found = memory.bisect(SEAT, 1, all=True, samples=3)
    assert [flip.seq for flip in found.flips] == [20, 50, 80]
    assert found.flips == (Flip(19, 20), Flip(50, 49), Flip(79, 80))
    assert found.calls < 25


def test_samples_show_that_an_answer_changed_more_often(memory: recollect.Memory) -> None:
    _alternating(memory, (20, 50, 80), 100)
    assert memory.bisect(SEAT, 1).flips_seen == 1
    found = memory.bisect(SEAT, 1, samples=3)
    assert (found.seq, found.flips_seen) == (80, 3)


def test_last_finds_the_newest_change(memory: recollect.Memory) -> None:
    _alternating(memory, (10, 20, 90), 100)
    assert memory.bisect(SEAT, 1, last=True).seq == 90
    assert memory.bisect(SEAT, 1, 15, last=True).seq == 10


def test_last_passes_over_commits_that_cannot_be_judged(memory: recollect.Memory) -> None:
    _alternating(memory, (20, 50, 80), 100)
    found = memory.bisect(
        SEAT, 1, last=True, judge=lambda hits: None if 90 <= hits.watermark < 100 else "window" in hits[0].record.text
    )
    assert found.seq == 80
    found = memory.bisect(
        SEAT, 1, last=True, judge=lambda hits: None if 1 < hits.watermark < 100 else "window" in hits[0].record.text
    )
    assert (found.seq, found.good, found.bad) == (None, 1, 100)


def test_a_search_is_right_for_every_sequence_of_verdicts() -> None:
    """Of all verdicts on eight commits, skipped ones included, each interval that is found has ends that differ."""
    for number in range(3**6):
        middle = [(number // 3**place) % 3 for place in range(6)]
        verdicts: list[bool | None] = [True, *({0: True, 1: False, 2: None}[each] for each in middle), False]
        for call in (Halving.halve, Halving.gallop):
            asked: list[int] = []

            def judge(seq: int, verdicts: list[bool | None] = verdicts, asked: list[int] = asked) -> bool | None:
                asked.append(seq)
                return verdicts[seq]

            search = Halving(judge)
            search.verdict(0), search.verdict(7)
            low, high = call(search, 0, 7)
            assert (verdicts[low], verdicts[high]) == (True, False)
            assert all(verdicts[seq] is None for seq in range(low + 1, high))
            assert len(asked) == len(set(asked))


# Why.


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(clock: Clock) -> Iterator[recollect.Memory]:
    with recollect.open(":memory:", clock=clock) as memory:
        yield memory


def _changed(memory: recollect.Memory, clock: Clock, change: Callable[[], object], **options: Any) -> Bisected:
    """Bisect a memory to which a change is made, with some commits around it."""
    clock.time += HOUR
    for number in range(3):
        memory.remember(f"Note {number} before", id=f"before {number}")
    good = memory.seq
    clock.time += HOUR
    change()
    seq = memory.seq
    clock.time += HOUR
    for number in range(3):
        memory.remember(f"Note {number} after", id=f"after {number}")
    found = memory.bisect(SEAT, good, **options)
    assert found.seq == seq
    return found


@pytest.fixture
def two(timed: recollect.Memory, clock: Clock) -> recollect.Memory:
    """A memory with two answers, of which one is better."""
    timed.remember(WINDOW, id="seat")
    clock.time += HOUR
    timed.remember("Ana has a seat", id="other")
    return timed


def test_a_new_record_displaces_the_answer(two: recollect.Memory, clock: Clock) -> None:
    found = _changed(two, clock, lambda: two.remember("Which seat does Ana prefer? The front seat", id="front"))
    assert reasons(found) == {"front": "new", "seat": "displaced"}
    assert only(found, "seat").by == ("front",)
    assert (only(found, "seat").rank_before, only(found, "seat").rank_after) == (1, None)
    assert only(found, "seat").score_after is not None, "it is a hit still"
    assert "displaced, by front" in str(only(found, "seat"))


@pytest.mark.parametrize(
    ("cause", "change"),
    [
        ("forgotten", lambda memory: memory.forget("seat")),
        ("rolled back", lambda memory: memory.revert(1)),
        ("evicted", lambda memory: memory.remember("One too many", id="more")),
    ],
)
def test_an_answer_that_went_has_the_cause_of_the_log(
    two: recollect.Memory, clock: Clock, cause: str, change: Callable[[recollect.Memory], object]
) -> None:
    def remove() -> None:
        if cause == "evicted":
            two.set_quota(records=two.count(), when_full="oldest")
        change(two)
        two.set_quota()

    found = _changed(two, clock, remove)
    assert (only(found, "seat").reason, only(found, "seat").cause) == ("gone", cause)
    assert reasons(found)["other"] == "moved up"
    assert only(found, "other").by == ("seat",)


def test_an_answer_that_expired_went_with_the_next_commit(timed: recollect.Memory, clock: Clock) -> None:
    timed.remember(WINDOW, id="seat", expires=clock.time + HOUR + timedelta(minutes=30))
    timed.remember("Ana has a seat", id="other")
    found = _changed(timed, clock, lambda: timed.remember("The next commit"))
    assert (only(found, "seat").reason, only(found, "seat").cause) == ("gone", "expired")


def test_an_answer_that_expired_and_was_not_removed_yet_lapsed(timed: recollect.Memory, clock: Clock) -> None:
    expires = clock.time + HOUR + timedelta(minutes=30)
    timed.remember_all({"content": f"Noise {number}", "expires": expires - HOUR / 4} for number in range(1200))
    timed.remember(WINDOW, id="seat", expires=expires)
    found = _changed(timed, clock, lambda: timed.remember("The next commit"))
    assert (only(found, "seat").reason, only(found, "seat").cause) == ("lapsed", "expired")


def test_an_answer_that_was_merged_is_superseded_by_the_merged_record(two: recollect.Memory, clock: Clock) -> None:
    found = _changed(two, clock, lambda: two.merge(["seat", "other"], "Ana prefers a seat"))
    assert (only(found, "seat").reason, only(found, "seat").cause) == ("gone", "superseded")
    (merged,) = only(found, "seat").by
    assert only(found, merged).reason == "new"


def test_an_answer_that_is_replaced_lapses(timed: recollect.Memory, clock: Clock) -> None:
    timed.remember(WINDOW, id="seat")
    found = _changed(timed, clock, lambda: timed.supersede("seat", AISLE))
    assert only(found, "seat").reason == "lapsed"
    assert only(found, "seat").cause == "superseded"
    (new,) = only(found, "seat").by
    assert only(found, new).reason == "new"


def test_a_replacement_takes_effect_at_its_time(timed: recollect.Memory, clock: Clock) -> None:
    start = clock.time
    timed.remember(WINDOW, id="seat")
    timed.remember(AISLE, id="later", supersedes=["seat"], valid_from=start + 1.5 * HOUR)
    found = _changed(timed, clock, lambda: timed.remember("The next commit"))
    assert reasons(found) == {"later": "became valid", "seat": "lapsed"}
    assert (only(found, "seat").cause, only(found, "seat").by) == ("superseded", ("later",))


def test_an_answer_lapses_when_its_validity_ends(timed: recollect.Memory, clock: Clock) -> None:
    timed.remember(WINDOW, id="seat", valid_to=clock.time + 1.5 * HOUR)
    timed.remember("Ana has a chair and a seat", id="other")
    found = _changed(timed, clock, lambda: timed.remember("The next commit"))
    assert (only(found, "seat").reason, only(found, "seat").cause) == ("lapsed", "valid_to")


def test_an_answer_is_valid_again_when_its_heir_is_forgotten(timed: recollect.Memory, clock: Clock) -> None:
    timed.remember(WINDOW, id="seat")
    timed.remember(AISLE, id="new", supersedes=["seat"])
    found = _changed(timed, clock, lambda: timed.forget("new"))
    assert (only(found, "seat").reason, only(found, "seat").by) == ("became valid", ("new",))


def test_a_word_that_many_records_have_is_commoner(timed: recollect.Memory, clock: Clock) -> None:
    timed.remember("The first is quxa", id="a")
    timed.remember("The second is quxb", id="b")
    timed.remember("More of quxb there, and much else that has nothing to do with it at all", id="c")

    def more() -> None:
        with timed.batch() as batch:
            for number in range(6):
                batch.remember(f"Number {number} is a kind of quxa that comes much later", id=f"m{number}")

    good = timed.seq
    more()
    found = timed.bisect("quxa or quxb", good)
    assert reasons(found) == {"b": "rarer word", "a": "commoner word"}
    word = only(found, "a").words[0]
    assert (word.word, word.records_before, word.records_after) == ("quxa", 1, 7)
    assert word.after < word.before
    assert "(1 -> 7 records)" in str(only(found, "a"))


def test_a_field_and_a_class_that_changed_are_named(two: recollect.Memory, clock: Clock) -> None:
    two.update("seat", tags=["travel"])
    found = _changed(two, clock, lambda: two.update("seat", tags=["home"]), where="tag=travel")
    assert (only(found, "seat").reason, only(found, "seat").cause) == ("changed fields", "tags")


def test_an_endorsement_changes_the_class(timed: recollect.Memory, clock: Clock) -> None:
    timed.as_origin("assistant").remember(WINDOW, id="seat")
    found = _changed(timed, clock, lambda: timed.endorse("seat"), min_origin="user")
    assert (only(found, "seat").reason, only(found, "seat").cause) == ("changed class", "assistant -> user")


def test_turns_around_an_answer_lend_it_words(timed: recollect.Memory, clock: Clock) -> None:
    timed.remember("Which seat should I book for Ana?", id="asked", conversation="c", role="user")
    timed.remember("I will take that one", id="answer", conversation="c", role="assistant")
    timed.remember("Ana likes red", id="other")
    found = _changed(
        timed,
        clock,
        lambda: timed.update("asked", content="Good morning"),
        where=f.id("answer", "other"),
        judge=lambda hits: bool(hits) and hits[0].record.id == "answer",
    )
    assert only(found, "answer").reason == "neighbours"
    assert only(found, "answer").by == ("asked",)
    assert {each.word for each in only(found, "answer").words} >= {"seat"}


def test_the_date_of_a_question_moves_on(timed: recollect.Memory, clock: Clock) -> None:
    timed.remember("It rains", id="rain", time=clock.time)
    timed.remember("What happened then", id="other", time=clock.time - 9 * 24 * HOUR)
    for number in range(2):
        clock.time += 24 * HOUR
        timed.remember(f"Note {number}", id=f"note {number}", time=clock.time - 30 * 24 * HOUR)
    found = timed.bisect("What happened yesterday?", 3, expect="rains", k=2)
    assert (only(found, "rain").reason, only(found, "rain").cause) == ("score", "date 0.200 -> 0.000")


def test_hits_that_keep_their_rank_are_left_out_unless_only_scores_changed(two: recollect.Memory, clock: Clock) -> None:
    found = _changed(two, clock, lambda: two.update("other", content="Ana has no chair"), k=2, expect="Ana has a seat")
    assert reasons(found) == {"other": "changed text"}
    least = two.at(two.seq).recall(SEAT)[0].score

    two.remember("A chair is a seat, which seat?", id="more")
    first = two.seq - 1
    found = two.bisect(SEAT, first, judge=lambda hits: hits[0].score == least)
    assert found.seq == first + 1
    assert {each.id for each in found.why} <= {"seat", "more"}


@in_full
def test_every_change_of_a_case_is_found_by_all() -> None:
    memory, cases = history(3, 8)
    with memory:
        for case in cases:
            found = memory.bisect(case.question, 1, COMMITS, all=True, samples=COMMITS)
            assert tuple(flip.seq for flip in found.flips) == case.flips
