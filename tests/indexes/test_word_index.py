"""The word index: its scores are the specification's, and depend on what is indexed and on nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.text import conversations as own
from tests.text.conversations import advance, answers, document, made_of, of_words, reference_scores

from recollect.indexes.documents.columns import NEVER, NONE, Document
from recollect.indexes.documents.table import TableBuilder
from recollect.indexes.words import novelty
from recollect.indexes.words.index import QueryTerm, WordIndex, WordView, query_terms
from recollect.text.words import terms

UNIT = 2**30


@pytest.fixture(autouse=True, scope="module")
def _without_novelty() -> Iterator[None]:
    """Turns count as if all of their words had been said before: test_novelty.py is about new ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(novelty, "NOVEL", (0, 1))
        yield


def asked(view: WordView, question: str) -> list[QueryTerm]:
    return query_terms(view, terms(question))


def score(view: WordView, question: str, record_id: str) -> float:
    return own.total_of(of_words(view, asked(view, question)), view.table.number(record_id)) / UNIT


class TestFormulas:
    """Worked by hand from section 2.5: with one asked word, BM / U = m / (m + K)."""

    def test_a_short_record_of_its_own(self) -> None:
        view = made_of([document("a", "tea"), document("b", "red boat")]).view()
        # K = 1.5 (0.4 + 0.6 * 1/40) = 0.6225
        assert score(view, "tea", "a") == pytest.approx(1 / 1.6225, rel=1e-4)
        assert score(view, "tea", "b") == 0

    def test_lengths_are_absolute(self) -> None:
        long = "tea " + "boat " * 39
        # 40 tokens: K = 1.5, whatever the others' lengths are.
        for others in ([], [document("b", "red")], [document("b", "red " * 400)]):
            assert score(made_of([document("a", long), *others]).view(), "tea", "a") == pytest.approx(0.4, rel=1e-4)

    def test_what_the_turn_before_lends(self) -> None:
        turns = [document("a", "tea", session="s", position=0), document("b", "red boat", session="s", position=1)]
        # m = 0.4; the length is 2 + 0.4 * 1, so K = 0.6 + 0.0225 * 2.4 = 0.654
        assert score(made_of(turns).view(), "tea", "b") == pytest.approx(0.4 / 1.054, rel=1e-4)

    def test_what_a_question_lends_to_its_answer(self) -> None:
        turns = [
            document("a", "tea", session="s", position=0, asks=True),
            document("b", "red boat", session="s", position=1),
            document("c", "red boat", session="s", position=2),
        ]
        view = made_of(turns).view()
        # To b: 0.4 + 0.6, with 0.2 * 2 tokens from c: K = 0.6 + 0.0225 * 3.4. To c, two places on, no more than 0.3.
        assert score(view, "tea", "b") == pytest.approx(1 / (1 + 0.6 + 0.0225 * 3.4), rel=1e-4)
        assert score(view, "tea", "c") == pytest.approx(0.3 / (0.3 + 0.6 + 0.0225 * (2 + 0.4 * 2 + 0.3)), rel=1e-4)

    def test_what_the_turn_after_lends_which_no_question_raises(self) -> None:
        turns = [
            document("a", "red boat", session="s", position=0),
            document("b", "tea", session="s", position=1, asks=True),
        ]
        assert score(made_of(turns).view(), "tea", "a") == pytest.approx(0.2 / (0.2 + 0.6 + 0.0225 * 2.2), rel=1e-4)

    def test_a_long_turn_lends_no_more_than_twelve_tokens(self) -> None:
        turns = [
            document("a", "tea " * 24, session="s", position=0),
            document("b", "red boat", session="s", position=1),
        ]
        # 24 tokens at 12/24: 12 tokens of mass and of length, times 0.4.
        assert score(made_of(turns).view(), "tea", "b") == pytest.approx(4.8 / (4.8 + 0.6 + 0.0225 * 6.8), rel=1e-4)

    def test_the_kernel_reaches_four_places_each_way(self) -> None:
        turns = [document(f"t{at}", "tea" if at == 5 else "red", session="s", position=at) for at in range(11)]
        view = made_of(turns).view()
        found = [at for at in range(11) if score(view, "tea", f"t{at}") > 0]
        assert found == [1, 2, 3, 4, 5, 6, 7, 8, 9]

    def test_nothing_is_lent_to_another_session_or_to_what_is_no_turn(self) -> None:
        stored = [
            document("a", "tea", session="s1", position=0),
            document("b", "red", session="s2", position=1),
            document("c", "red", position=1),
        ]
        view = made_of(stored).view()
        assert [score(view, "tea", each) for each in "bc"] == [0, 0]

    def test_turns_stand_in_the_order_of_place_then_time_then_id(self) -> None:
        stored = [
            document("z", "tea", session="s", position=0, micros=1),
            document("y", "red", session="s", position=0, micros=2),
            document("x", "boat", session="s", position=0, micros=2),
        ]
        view = made_of(reversed(stored)).view()
        table = view.table
        order = [table.number("z")]
        while table.after[order[-1]] != NONE:
            order.append(int(table.after[order[-1]]))
        assert [table.id(int(at)) for at in order] == ["z", "x", "y"]

    def test_inverse_frequencies_are_mixed(self) -> None:
        stored = [document(f"r{at}", "tea") for at in range(3)] + [document("b", "boat boat boat")]
        view = made_of(stored).view()
        scores = of_words(view, [QueryTerm("tea", "tea", 65_536), QueryTerm("boat", "boat", 65_536)])
        # N = 4, T = 6; tea: df 3, cf 3; boat: df 1, cf 3.
        tea, boat = (0.35667494 + 0.91629073) / 2, (1.20397280 + 0.91629073) / 2
        assert scores.mass == pytest.approx(2.5 * (tea + boat) * 65_536, rel=1e-4)
        expected = boat / (tea + boat) * 3 / (3 + 0.6 + 0.0225 * 3)
        assert own.total_of(scores, view.table.number("b")) / UNIT == pytest.approx(expected, rel=1e-4)

    def test_a_word_that_was_not_said_weighs_in_the_whole(self) -> None:
        view = made_of([document("a", "tea"), document("b", "red boat")]).view()
        alone, among = score(view, "tea", "a"), score(view, "tea qqqq", "a")
        # N = 302, T = 12,003. tea: df = cf = 1 + 20/16, as in general language. An unknown word: 0.
        tea = (math.log(1 + (302 - 2.25 + 0.5) / 2.75) + math.log(1 + 12_003 / 3.25)) / 2
        unknown = (math.log(1 + 302.5 / 0.5) + math.log(1 + 12_003)) / 2
        assert among / alone == pytest.approx(tea / (tea + unknown), rel=1e-4)

    def test_asking_twice_counts_twice(self) -> None:
        view = made_of([document("a", "wug"), document("b", "blick")]).view()  # of equal rarity in general language
        assert score(view, "wug wug blick", "a") == pytest.approx(2 * score(view, "wug blick blick", "a"), rel=1e-3)

    def test_an_empty_index_and_an_empty_question_score_nothing(self) -> None:
        empty = WordIndex().view()
        assert not len(of_words(empty, asked(empty, "tea boat")).numbers)
        view = made_of([document("a", "tea")]).view()
        assert not len(of_words(view, []).numbers)

    @given(own.collections(), st.sampled_from(own.QUESTIONS))
    def test_scores_are_those_of_the_formulas_in_floating_point(self, stored: list[Document], question: str) -> None:
        view = made_of(stored).view()
        wanted = asked(view, question)
        scores = of_words(view, wanted)
        expected, whole = reference_scores(stored, wanted)
        assert scores.mass / 65_536 == pytest.approx(whole, rel=1e-3, abs=1e-3)
        for each in stored:
            found = own.total_of(scores, view.table.number(each.id)) / UNIT
            assert found == pytest.approx(expected[each.id], rel=1e-3, abs=1e-3)
            assert (found > 0) == (expected[each.id] > 0)

    @given(own.collections(), st.sets(st.sampled_from(own.IDS)))
    def test_to_see_some_is_to_see_an_index_of_only_those(self, stored: list[Document], seen: set[str]) -> None:
        some = own.only(made_of(stored).view(), seen)
        alone = made_of([each for each in stored if each.id in seen]).view()
        assert answers(some) == answers(alone)
        assert some.table.session_lengths.sum() == alone.table.session_lengths.sum()

    @given(own.collections(), st.sets(st.sampled_from(own.IDS)))
    def test_to_see_everything_is_to_see_without_conditions(self, stored: list[Document], more: set[str]) -> None:
        view = made_of(stored).view()
        assert answers(own.only(view, [*(each.id for each in stored), *more])) == answers(view)


class TestShares:
    @given(own.collections(), st.sampled_from(own.QUESTIONS))
    def test_shares_sum_to_the_score_exactly(self, stored: list[Document], question: str) -> None:
        view = made_of(stored).view()
        scores = of_words(view, asked(view, question))
        for number, place in own.places(scores).items():
            matches = own.explained(scores, [place])[0][1]
            assert sum(match.share for match in matches) == scores.totals[place] <= UNIT
            assert sum(match.own for match in matches if not match.like) == own.share_of(scores, number, "words")
            assert sum(match.own for match in matches if match.like) == own.share_of(scores, number, "trigram")
            assert sum(match.title for match in matches) == own.share_of(scores, number, "title")
            lent = sum(match.share - match.own - match.title for match in matches)
            assert lent == own.share_of(scores, number, "context")
            assert all(0 <= match.own <= match.own + match.title <= match.share for match in matches)
            assert [match.share for match in matches] == sorted((match.share for match in matches), reverse=True)

    @given(own.collections(), st.sampled_from(own.QUESTIONS))
    def test_lenders_are_the_turns_within_four_places_that_have_the_word(
        self, stored: list[Document], question: str
    ) -> None:
        view = made_of(stored).view()
        wanted = asked(view, question)
        scores = of_words(view, wanted)
        by_word = {(query.word, query.like): query.term for query in wanted}
        reached = own.places(scores)
        for each in stored:
            turns = sorted(
                (other for other in stored if other.session == each.session), key=lambda other: other.sort_key
            )
            at = turns.index(each)
            near = [*reversed(turns[max(0, at - 4) : at]), *turns[at + 1 : at + 5]] if each.session else []
            place = reached.get(view.table.number(each.id))
            for match in own.explained(scores, [place])[0][1] if place is not None else ():
                term = by_word[match.word, match.like]
                having = tuple(other.id for other in near if term in [stored for stored, _ in other.terms])
                assert match.lent_by == having
                assert bool(match.own) == (term in [stored for stored, _ in each.terms])

    def test_why_names_the_word_as_asked_and_the_word_that_stood_in(self) -> None:
        stored = [
            document("a", "the lighthouse", session="s", position=0),
            document("b", "red boats", session="s", position=1),
        ]
        view = made_of(stored).view()
        scores = of_words(view, asked(view, "lihgthouse Boat"))
        first, second = own.explained(scores, [own.places(scores)[view.table.number("b")]])[0][1]
        assert (first.word, first.like, first.lent_by) == ("boat", "", ())
        assert (second.word, second.like, second.own, second.lent_by) == ("lihgthouse", "lighthouse", 0, ("a",))


class TestDerived:
    """The index is a function of what is indexed: how it came to be does not show."""

    @given(own.histories)
    def test_after_any_history_it_equals_the_rebuilt_index(
        self, history: list[tuple[list[str], list[Document]]]
    ) -> None:
        index, stored = WordIndex(), dict[str, Document]()
        for step in history:
            advance(index, stored, step)
            assert answers(index.view()) == answers(
                made_of(sorted(stored.values(), key=lambda each: each.sort_key)).view()
            )

    @given(own.collections(), st.randoms())
    def test_the_order_of_arrival_does_not_matter(self, stored: list[Document], order: object) -> None:
        before = answers(made_of(stored).view())
        order.shuffle(stored)  # type: ignore[attr-defined]
        one_by_one = WordIndex()
        for each in stored:
            one_by_one.apply((), [each])
        assert answers(one_by_one.view()) == before

    @given(own.histories)
    def test_old_views_answer_as_they_did_to_the_bit(self, history: list[tuple[list[str], list[Document]]]) -> None:
        index, stored = WordIndex(), dict[str, Document]()
        views = [(index.view(), answers(index.view()))]
        for step in history:
            advance(index, stored, step)
            if len(step[0]) != 1:  # now and then a view is not asked for between two steps
                view = index.view()
                views.append((view, answers(view)))
        for view, before in views:
            assert answers(view) == before

    @given(own.histories, own.histories, own.histories)
    @settings(max_examples=some(60))
    def test_a_fork_and_its_original_go_their_own_ways(
        self,
        before: list[tuple[list[str], list[Document]]],
        here: list[tuple[list[str], list[Document]]],
        there: list[tuple[list[str], list[Document]]],
    ) -> None:
        index, stored = WordIndex(), dict[str, Document]()
        for step in before:
            advance(index, stored, step)
        old = index.view()
        answered = answers(old)
        fork, forked = index.fork(), dict(stored)
        second, seconds = fork.fork(), dict(stored)
        for at in range(max(len(here), len(there))):
            if at < len(here):
                advance(index, stored, here[at])
            if at < len(there):
                advance(fork, forked, there[at])
                advance(second, seconds, there[-1 - at])
            for one, content in ((index, stored), (fork, forked), (second, seconds)):
                assert answers(one.view()) == answers(made_of(content.values()).view())
        assert answers(old) == answered

    def test_a_fork_does_not_see_what_the_original_writes_later(self) -> None:
        index = made_of([document("a", "tea")])
        fork = index.fork()
        index.apply((), [document(f"o{at}", "tea") for at in range(3)])
        fork.apply((), [document(f"f{at}", "boat") for at in range(5)])
        view = fork.view()
        assert own.postings(view, "tea") == ["a"]
        fork.apply((), [document("more", "tea")])
        assert own.postings(fork.view(), "tea") == ["a", "more"]
        assert own.postings(index.view(), "tea") == ["a", "o0", "o1", "o2"]

    def test_a_fork_of_a_fork_does_not_see_it_either(self) -> None:
        index = made_of([document("a", "tea")])
        first = index.fork()
        index.apply((), [document(f"o{at}", "tea") for at in range(3)])
        first.apply((), [document(f"f{at}", "boat") for at in range(5)])
        second = first.fork()
        assert own.postings(second.view(), "tea") == ["a"]
        second.apply((), [document("more", "tea")])
        assert own.postings(second.view(), "tea") == ["a", "more"]
        assert own.postings(first.view(), "tea") == ["a"]

    def test_a_word_form_that_is_gone_stands_in_for_nothing(self) -> None:
        """Though another form of its stem is still there."""
        index = made_of([document("a", "connects"), document("b", "connected")])
        index.apply(["b"], [])
        rebuilt = made_of([document("a", "connects")])
        assert asked(index.view(), "conected") == asked(rebuilt.view(), "conected")
        assert [each.like for each in asked(index.view(), "conected")] == ["", "connects"]

    def test_a_word_form_that_comes_later_stands_in_for_nothing_in_an_old_view(self) -> None:
        index = made_of([document("a", "connects")])
        view = index.view()
        before = asked(view, "conected")
        index.apply((), [document("b", "connected")])
        assert asked(view, "conected") == before
        assert asked(index.view(), "conected") != before


class TestExpiry:
    @given(own.collections(expiring=True), st.sampled_from([0, 9, 10, 15, 20, 30, 40]))
    def test_what_is_due_is_as_if_it_had_never_been(self, stored: list[Document], now: int) -> None:
        view = made_of(stored).view()
        before = answers(view)
        left = [each for each in stored if each.expires > now]
        assert answers(view.at(now)) == answers(made_of(left).view())
        assert answers(view) == before

    @given(own.histories, st.sampled_from([9, 10, 25, 40]))
    def test_old_views_know_what_is_due_as_well(
        self, history: list[tuple[list[str], list[Document]]], now: int
    ) -> None:
        index, stored = WordIndex(), dict[str, Document]()
        views: list[tuple[WordView, list[Document]]] = []
        for step in history:
            advance(index, stored, step)
            views.append((index.view(), list(stored.values())))
        for view, then in views:
            assert answers(view.at(now)) == answers(made_of(each for each in then if each.expires > now).view())

    @given(own.collections(expiring=True))
    def test_time_goes_on(self, stored: list[Document]) -> None:
        view = made_of(stored).view()
        assert answers(view.at(12).at(25)) == answers(view.at(25))

    def test_where_nothing_is_due_the_view_is_itself(self) -> None:
        view = made_of([document("a", "tea", expires=10), document("b", "tea")]).view()
        assert view.at(9) is view
        assert view.at(10) is not view
        assert made_of([document("a", "tea")]).view().at(NEVER - 1).table.live_count == 1


class TestNumbers:
    def test_an_old_view_finds_a_record_that_was_given_a_new_number_long_after(self) -> None:
        index = made_of([document(f"r{at}", "tea") for at in range(16)])
        view = index.view()
        index.apply((), [document(f"more{at}", "tea") for at in range(40)])
        index.apply(["r3", "r5"], [document("r3", "boat")])
        index.apply(["r3"], [document("r3", "red")])
        assert [view.table.number(each) for each in ("r0", "r3", "r5", "more0", "nobody")] == [0, 3, 5, NONE, NONE]
        assert list(view.table.mask(["r3", "more1", "r5"]).nonzero()[0]) == [3, 5]
        assert index.view().table.number("r5") == NONE

    @given(own.histories)
    def test_a_record_has_one_number_while_it_is_stored(self, history: list[tuple[list[str], list[Document]]]) -> None:
        index, stored = WordIndex(), dict[str, Document]()
        views: list[tuple[WordView, set[str]]] = []
        for step in history:
            advance(index, stored, step)
            views.append((index.view(), set(stored)))
        for view, then in views:
            numbers = {each: view.table.number(each) for each in own.IDS}
            assert {each for each, number in numbers.items() if number != NONE} == then
            assert all(view.table.id(int(number)) == each for each, number in numbers.items() if number != NONE)
            assert view.table.live_count == len(then)

    def test_to_remove_what_is_not_there_changes_nothing(self) -> None:
        documents = TableBuilder()
        documents.add(document("a", "tea"))
        documents.remove("b")
        documents.remove("a")
        documents.remove("a")
        assert (documents.count, documents.view().live_count, documents.view().tokens) == (1, 0, 0)

    def test_no_ids_mask_nothing(self) -> None:
        assert not made_of([document("a", "tea")]).view().table.mask([]).any()


class TestNames:
    def test_the_name_of_a_speaker_is_left_out_where_other_words_remain(self) -> None:
        view = made_of([document("a", "tea", speaker="Ana Smith"), document("b", "Ana likes boats")]).view()
        assert [each.term for each in asked(view, "does Ana like tea?")] == ["like", "tea"]
        assert [each.term for each in asked(view, "Ana?")] == ["ana"]
        assert [each.term for each in asked(view, "Ana Smith")] == ["ana", "smith"]

    def test_it_is_a_name_no_more_when_its_turns_are_gone(self) -> None:
        index = made_of([document("a", "tea", speaker="Ana"), document("b", "Ana likes boats")])
        index.apply(["a"], [])
        assert [each.term for each in asked(index.view(), "does Ana like tea?")] == ["ana", "like", "tea"]
