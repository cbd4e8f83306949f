"""Segments and kernels: whatever form an index has, and whatever walks it, the answers are the same to the bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import FULL, some, spread
from tests.text import conversations as own
from tests.text.conversations import advance, answers, document, made_of

from recollect.indexes.documents import string_table as strings
from recollect.indexes.documents.columns import FIELDS, NEVER, NONE, Document, Ints
from recollect.indexes.documents.string_table import Pieces, Strings, session_name
from recollect.indexes.fixed_point import ONE
from recollect.indexes.kernels import blocks, choose, numpy_search
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.kernels.interface import Kernels
from recollect.indexes.kernels.native import kernels as native_kernels
from recollect.indexes.kernels.types import About, Extras, Reached, Wanted
from recollect.indexes.parameters import SPEAKER, SPEAKING_ASSISTANT
from recollect.indexes.scoring.scores import WeightedQuery, weighed
from recollect.indexes.scoring.signals import read
from recollect.indexes.words.index import QueryTerm, WordIndex, WordView
from recollect.indexes.words.merge import merged
from recollect.indexes.words.segment import LONGEST, MOST_COUNT, Builder, Segment
from recollect.indexes.words.surface_forms import form, form_parts, trigram_keys
from recollect.ledger.commits import Branch
from recollect.stores.derived.segment_files import SegmentFiles
from recollect.stores.derived.shared import Made

COMPILED = native_kernels.NativeKernels()
Step = tuple[list[str], list[Document]]


def built(stored: list[Document]) -> Segment:
    builder = Builder()
    for each in stored:
        builder.add(each)
    return builder.segment()


class TestSegments:
    @given(own.collections())
    def test_a_segment_answers_as_an_index_that_grew_one_by_one(self, stored: list[Document]) -> None:
        assert answers(WordIndex(built(stored)).view()) == answers(made_of(stored).view())

    @given(own.collections(), own.histories)
    def test_an_index_goes_on_from_a_segment(self, first: list[Document], history: list[Step]) -> None:
        index, stored = WordIndex(built(first)), {each.id: each for each in first}
        views = [(index.view(), answers(index.view()))]
        for step in history:
            advance(index, stored, step)
            assert answers(index.view()) == answers(made_of(stored.values()).view())
            views.append((index.view(), answers(index.view())))
        for view, before in views:
            assert answers(view) == before

    @given(own.collections(), own.histories, st.data())
    def test_merging_changes_no_answer_at_any_time(
        self, first: list[Document], history: list[Step], data: st.DataObject
    ) -> None:
        index, stored = WordIndex(built(first)), {each.id: each for each in first}
        for step in history:
            advance(index, stored, step)
            view = index.view()
            later = data.draw(st.booleans())
            if later:  # what comes after the view is no part of what is merged
                index.apply((), [document("later", "tea boat", session="s1", position=9)])
            segment = merged(view)
            assert segment.count == view.table.live_count
            assert answers(WordIndex(segment).view()) == answers(made_of(stored.values()).view())
            if not later:
                index = WordIndex(segment)
            else:
                index.apply(["later"], [])

    @given(own.collections(), own.histories, st.booleans())
    def test_a_merged_segment_equals_one_built_from_its_records(
        self, first: list[Document], history: list[Step], digests: bool
    ) -> None:
        def still(stored: list[Document]) -> list[Document]:
            """No turns, all of one time and of nobody: a segment leaves them and their numbers in order."""
            return [
                each._replace(
                    session=None,
                    sort_key=(0, 0, each.id),
                    micros=0,
                    speaker="",
                    text=bytes([len(each.terms) + 1]) * 32 if digests else b"",
                    payload=each.id.encode() * len(each.terms),
                )
                for each in stored
            ]

        index, stored = WordIndex(built(still(first))), {each.id: each for each in still(first)}
        for removed, added in history:
            advance(index, stored, (removed, still(added)))
            table = index.view().table
            live = np.flatnonzero(table.alive[: table.count]).tolist()
            segment = merged(index.view())
            for name, array in built([stored[table.id(number)] for number in live]).arrays.items():
                assert array.dtype == segment.arrays[name].dtype
                assert array.tolist() == segment.arrays[name].tolist(), name
            index = WordIndex(segment)

    @given(st.lists(st.sampled_from(["ana", "bob", None]), min_size=1, max_size=8), st.data())
    def test_whose_a_record_is_and_who_said_it_goes_through_merging(
        self, users: list[str | None], data: st.DataObject
    ) -> None:
        def said(at: int, user: str | None) -> Document:
            fields = ("knowledge", None, user, None, None, None, f"source {at}")
            return document(f"r{at}", "tea", speaker=user or "", session=user)._replace(fields=fields)

        stored = [said(at, user) for at, user in enumerate(users)]
        split = data.draw(st.integers(0, len(stored)))
        index = WordIndex(built(stored[:split]))
        index.apply([], stored[split:])
        gone = data.draw(st.sets(st.sampled_from([each.id for each in stored])))
        index.apply(gone, [])
        segment = merged(index.view())
        table = WordIndex(segment).view().table
        for each in stored:
            number = table.number(each.id)
            assert (number == NONE) == (each.id in gone)
            if number != NONE:
                texts = [int(getattr(table, name)[number]) for name in FIELDS]
                assert tuple(None if text == NONE else table.values[text] for text in texts) == each.fields
                speaker, session = int(table.speaker[number]), int(table.session[number])
                assert (table.speakers.known[speaker][0] if speaker != NONE else "") == each.speaker
                assert (None if session == NONE else segment.sessions[session]) == (
                    None if each.session is None else session_name(each.session)
                )
        assert len(table.speakers.known) == len({each.speaker for each in stored if each.id not in gone} - {""})

    @given(own.collections(), own.histories, own.histories)
    @settings(max_examples=some(40))
    def test_a_fork_of_an_index_with_a_segment_goes_its_own_way(
        self, first: list[Document], here: list[Step], there: list[Step]
    ) -> None:
        index, stored = WordIndex(built(first)), {each.id: each for each in first}
        fork, forked = index.fork(), dict(stored)
        for step in here:
            advance(index, stored, step)
        for step in there:
            advance(fork, forked, step)
        assert answers(index.view()) == answers(made_of(stored.values()).view())
        assert answers(fork.view()) == answers(made_of(forked.values()).view())

    @given(own.collections(expiring=True), st.sampled_from([0, 10, 25]))
    def test_what_is_due_in_a_segment_is_as_if_it_had_never_been(self, stored: list[Document], now: int) -> None:
        view = WordIndex(built(stored)).view()
        assert answers(view.at(now)) == answers(made_of(each for each in stored if each.expires > now).view())

    def test_turns_of_one_place_and_time_stand_by_their_ids(self) -> None:
        turns = [document(name, "tea", session="s", micros=4) for name in ("b", "c", "a", "d")]
        table = WordIndex(built(turns)).view().table
        at = table.number("a")
        order = [at]
        while table.after[order[-1]] != NONE:
            order.append(int(table.after[order[-1]]))
        assert [table.id(number) for number in order] == ["a", "b", "c", "d"]

    def test_digests_are_kept_whole_and_none_stays_none(self) -> None:
        digests = [b"\0" * 31 + b"\1", b"", b"\1" + b"\0" * 31]
        stored = [document(f"r{at}", "tea")._replace(text=digest) for at, digest in enumerate(digests)]
        for segment in (built(stored), merged(WordIndex(built(stored)).view())):
            table = WordIndex(segment).view().table
            assert [table.rows.text(table.number(each.id)) for each in stored] == digests

    def test_the_first_due_is_reported_again_when_it_is_gone(self) -> None:
        index = WordIndex(built([document("a", "tea", expires=10), document("b", "tea", expires=20)]))
        assert index.view().table.first_due == 10
        index.apply(["a"], [])
        assert index.view().table.first_due == 20
        index.apply(["b"], [])
        assert index.view().table.first_due == NEVER


class TestPieces:
    @given(st.lists(st.binary(max_size=5), max_size=12), st.data())
    def test_those_that_are_taken_are_what_they_were(self, stored: list[bytes], data: st.DataObject) -> None:
        pieces = Pieces.of(stored)
        assert [pieces[at] for at in range(len(pieces))] == stored
        kept = data.draw(st.lists(st.sampled_from(range(len(stored))), unique=True).map(sorted)) if stored else []
        both = pieces.taken(np.array(kept, dtype=np.int64), pieces)
        assert [both[at] for at in range(len(both))] == [stored[at] for at in kept] + stored

    @given(st.lists(st.binary(max_size=4), min_size=1, max_size=8), st.data())
    def test_records_stand_in_the_index_through_tail_fork_and_merging(
        self, payloads: list[bytes], data: st.DataObject
    ) -> None:
        stored = [document(f"r{at}", "tea")._replace(payload=payload) for at, payload in enumerate(payloads)]
        split = data.draw(st.integers(0, len(stored)))
        index = WordIndex(built(stored[:split]))
        index.apply([], stored[split:])
        gone = data.draw(st.sets(st.sampled_from([each.id for each in stored])))
        index.apply(gone, [])
        for view in (index.view(), index.fork().view(), WordIndex(merged(index.view())).view()):
            for each in stored:
                if each.id not in gone:
                    assert view.table.rows.payload(view.table.number(each.id)) == each.payload


def few_keys(encoded: bytes) -> bytes:
    """A digest that many strings have."""
    return bytes(7) + bytes([len(encoded) % 3])


class TestStrings:
    @given(st.lists(st.text(max_size=5), unique=True), st.data(), st.sampled_from([few_keys, strings._digest]))
    def test_those_that_are_taken_and_more_are_as_if_there_were_no_others(
        self, texts: list[str], data: st.DataObject, digest: Callable[[bytes], bytes]
    ) -> None:
        split = data.draw(st.integers(0, len(texts)))
        kept = [at for at in range(split) if data.draw(st.booleans())]
        with patch.object(strings, "_digest", digest):
            taken = Strings.of(texts[:split]).taken(np.array(kept, dtype=np.int64), Strings.of(texts[split:]))
            rebuilt = Strings.of([texts[at] for at in kept] + texts[split:])
            for name, array in taken.arrays("a").items():
                assert array.dtype == rebuilt.arrays("a")[name].dtype
                assert array.tolist() == rebuilt.arrays("a")[name].tolist()

    @given(
        st.lists(st.text(max_size=3), unique=True),
        st.lists(st.text(max_size=3), unique=True),
        st.sampled_from([few_keys, strings._digest]),
    )
    def test_many_are_found_at_once_also_where_others_have_their_keys(
        self, texts: list[str], wanted: list[str], digest: Callable[[bytes], bytes]
    ) -> None:
        wanted = list(dict.fromkeys([*wanted, *texts[::2]]))
        with patch.object(strings, "_digest", digest):
            found = Strings.of(texts).numbers_of(Strings.of(wanted)).tolist()
        assert found == [texts.index(text) if text in texts else NONE for text in wanted]

    @given(st.lists(st.text(max_size=5), unique=True))
    def test_strings_are_found_by_number_and_by_what_they_are(self, texts: list[str]) -> None:
        stored = Strings.of(texts)
        assert [stored[at] for at in range(len(stored))] == texts
        assert [stored.find(text) for text in texts] == list(range(len(texts)))
        assert stored.find("none of these") == NONE

    @given(st.lists(st.text(max_size=5), unique=True))
    def test_strings_can_be_numbered_by_their_keys(self, texts: list[str]) -> None:
        stored = Strings.of(texts)
        again = Strings.of([texts[number] for number in stored.order.tolist()])
        assert stored.ranks()[stored.order].tolist() == list(range(len(texts)))
        for name, array in stored.by_key().arrays("a").items():
            assert array.dtype == again.arrays("a")[name].dtype
            assert array.tolist() == again.arrays("a")[name].tolist()

    @given(st.lists(st.text(alphabet=st.sampled_from("abé字\U00020000"), min_size=4, max_size=9), unique=True))
    def test_the_trigrams_of_many_words_are_those_of_each(self, words: list[str]) -> None:
        stored = [document(f"r{at}", word) for at, word in enumerate(words)]
        segment = built(stored)
        forms = [
            parts[0] for parts in map(form_parts, map(segment.terms.__getitem__, segment.forms.terms.tolist())) if parts
        ]
        assert segment.forms.sizes.tolist() == [len(trigram_keys(word)) for word in forms]
        begin = 0
        for key, end in zip(segment.arrays["grams.keys"], segment.arrays["grams.ends"], strict=True):
            have = [at for at, word in enumerate(forms) if int(key) in trigram_keys(word)]
            assert segment.arrays["grams.forms"][begin:end].tolist() == have
            begin = end
        assert len(segment.arrays["grams.keys"]) == len({key for word in forms for key in trigram_keys(word)})

    @given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
    def test_a_session_has_a_name_of_its_own(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        assert (session_name(one) == session_name(other)) == (one == other)

    def test_a_form_is_a_word_with_its_stem_and_no_other_term_is_one(self) -> None:
        assert form_parts(form("boats", "boat")) == ("boats", "boat")
        assert form_parts("boat") is None


def reached_by(kernels: Kernels, asked: WeightedQuery, forced: Any, about: About) -> dict[Any, Any]:
    """All that kernels say of a question, to the bit: documents by number, their shares, sums and matches."""
    asked = dataclasses.replace(asked, kernels=kernels)
    found = asked.reach(np.array(forced, dtype=np.int64))
    table = asked.view.table
    dates = np.arange(len(found.numbers), dtype=np.int64) * 0 + 7
    totals = kernels.weigh(found, dates, table, about)
    for wanted in (1, 3, 1000):
        places, best = kernels.best_of(found, dates, table, about, wanted)
        assert sorted(places.tolist()) == sorted(kernels.best(totals, found.numbers, table, wanted).tolist())
        assert best.tolist() == totals[places].tolist()
    if not forced:
        agreed_on_the_best(kernels, asked, about)
    factors = np.arange(len(found.numbers), dtype=np.int64) * 1000 + 60_000
    order = np.argsort(found.numbers)
    where = asked.postings, table, asked.weights, found.numbers[order]
    ranks = np.arange(len(asked.terms))[::-1].copy()
    rows, lenders = kernels.explained(*where, factors, ranks)
    explained = [(*row[:-2], *lenders[row[-2] : row[-1]]) for row in rows]
    numbers, signals = found.numbers[order], found.shares[:, order]
    parts: dict[Any, Any] = {"numbers": numbers, "signals": signals, "totals": totals[order]}
    return parts | kernels.matched(*where)._asdict() | {"rows": explained}


def alike(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    """Return whether two answers are the same to the bit."""

    def same(name: Any) -> bool:
        return one[name] == other[name] if isinstance(one[name], list) else np.array_equal(one[name], other[name])

    return one.keys() == other.keys() and all(map(same, one))


#: The number of documents with standing tags that are requested with the best.
STANDING = 2


def agreed_on_the_best(kernels: Kernels, asked: WeightedQuery, about: About) -> None:
    """That a search for the best finds the best of all documents and of those with standing tags, with the same shares,
    also among some documents and with shares that do not come from postings."""
    table = asked.view.table
    alive = np.flatnonzero(table.alive[: table.count])

    def of(numbers: Ints) -> Ints:
        found: Ints = np.where(numbers % 3 == 0, (numbers % 7 + 1) << 26, (numbers % 2) << 25)
        return found

    def at_most(share: int) -> Callable[[Any, Any], tuple[Ints, Ints]]:
        return lambda first, last: (np.zeros(len(first), dtype=np.int64), np.full(len(first), share))

    forced, none = alive[alive % 3 == 0], alive[:0]
    for extras in (None, Extras(forced, of(forced), at_most(1 << 25), of), Extras(none, none, at_most(7 << 26), of)):
        whole = asked.reach(alive[:0] if extras is None else extras.numbers)
        for step in (None, 2, 7):
            among = None if step is None else np.arange(table.count) % step == 0
            expected = whole if among is None else whole.within(among)
            for count in (2, 1000):
                agreed_on_the_best_of(kernels, asked, expected, about, Wanted(count, STANDING, among, extras))


def agreed_on_the_best_of(kernels: Kernels, asked: WeightedQuery, whole: Reached, about: About, wanted: Wanted) -> None:
    """The same of one search; `whole` is what it could find."""
    table = asked.view.table
    shares = dict(zip(whole.numbers.tolist(), whole.shares.T.tolist(), strict=True))
    found = asked.reach_best(about, wanted)
    assert found.passed == whole.passed == len(shares)
    assert len({*found.numbers.tolist()}) == len(found.numbers)
    for number, row in zip(found.numbers.tolist(), found.shares.T.tolist(), strict=True):
        assert row == shares[number]
    tags = table.standing[: table.count] != 0
    for kept, count in ((tags | True, wanted.best), (tags, wanted.standing)):
        best = []
        for reached in (whole.within(kept), found.within(kept)):
            more = np.zeros(0, dtype=np.int64) if wanted.extras is None else wanted.extras.of(reached.numbers)
            places, totals = kernels.best_of(reached, more, table, about, count)
            best.append(sorted(zip(reached.numbers[places].tolist(), totals.tolist(), strict=True)))
        assert best[0] == best[1]


MANY_WORDS = [f"w{at}" for at in range(150)]


@cache
def many_documents(turns: bool, seed: int) -> WordIndex:
    """More documents than a block has, in segment and tail, some of them dead, some standing."""
    draw = Random(seed)

    def made(at: int) -> Document:
        text = draw.choices(MANY_WORDS, [1 / (rank + 1) for rank in range(150)], k=draw.choice([1, 5, 30, 90]))
        of_session: dict[str, Any] = {"session": f"s{at // 50}", "position": at} if turns and at % 9 else {}
        plain = document(f"r{at:05}", " ".join(text), micros=at % 7, **of_session)
        weight = draw.choice([ONE, ONE, ONE, ONE * 3 // 5, ONE * 23 // 20])
        standing, offers = int(at % 97 == 0), draw.choice([0, 1, 2, 6])
        return plain._replace(manner=weight * (1 + standing), standing=standing, offers=offers)

    index = WordIndex(built([made(at) for at in range(3000)]))
    index.apply((f"r{at:05}" for at in range(0, 3000, 11)), [made(at) for at in range(3000, 6000)])
    return index


@pytest.fixture(params=[(1, 1), (4, 64), None], ids=["small blocks", "blocks", "all"])
def _pruned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even the smallest index is searched by blocks, or none."""
    if request.param is None:
        monkeypatch.setattr(choose, "LEAST", 10**9)
        return
    bits, first = request.param
    monkeypatch.setattr(choose, "LEAST", 0)
    monkeypatch.setattr(choose, "CHANGED", 1)
    monkeypatch.setattr(choose, "FEW", 0)
    monkeypatch.setattr(choose, "FEW_PLAIN", 0)
    monkeypatch.setattr(numpy_search, "_FIRST", first)
    monkeypatch.setattr(blocks, "BITS", bits)
    monkeypatch.setattr(blocks, "_BASES", WeakKeyDictionary())


@pytest.mark.usefixtures("_pruned")
class TestKernels:
    @given(own.collections(), own.histories, st.sampled_from(own.QUESTIONS), st.data())
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_compiled_and_not_they_give_the_same_bits(
        self, first: list[Document], history: list[Step], question: str, data: st.DataObject
    ) -> None:
        index, stored = WordIndex(built(first)), {each.id: each for each in first}
        for step in history:
            advance(index, stored, step)
        view = index.view()
        asked = read(question + " boat tea red", view, date(2026, 1, 1))
        weighs = weighed(view, asked.asked, asked.sequence)
        forced = data.draw(st.lists(st.sampled_from(sorted(numbers_of(view))), unique=True)) if stored else []
        about = About(
            data.draw(st.sampled_from([NONE, 0])),
            data.draw(st.sampled_from([(), (1,), (2, 4)])),
            data.draw(st.sampled_from([SPEAKER, SPEAKING_ASSISTANT])),
        )
        one, other = (reached_by(kernels, weighs, forced, about) for kernels in (numpy_kernels.KERNELS, COMPILED))
        assert alike(one, other)
        tallies = [kernels.tally(weighs.postings, view.table) for kernels in (numpy_kernels.KERNELS, COMPILED)]
        assert (tallies[0] == tallies[1]).all()

    @pytest.mark.parametrize(("terms", "turns"), spread([1, 2, 7, 12, 40, 63, 64, 128, 150], [False, True], every=9))
    def test_many_documents_are_settled_alike(self, terms: int, turns: bool) -> None:
        """Terms that share marks, and words that stand in for others."""
        view = many_documents(turns, terms if FULL else 64).view()
        asked = Random(terms).sample(MANY_WORDS, terms)
        wanted = [
            QueryTerm(form, form, ONE - 100 * at, "other" if at % 5 == 4 else "") for at, form in enumerate(asked)
        ]
        weighs = weighed(view, wanted, asked)
        plain, dated = About(NONE, ()), About(NONE, (1, 2))
        cases: list[tuple[list[int], About]] = [([0, 3, 4096, 5999], dated)]
        if FULL or terms < 50:  # NumPy takes a second for each of this many terms
            cases += [([], plain), ([], dated), ([0, 3, 4096, 5999], plain)]
        for forced, about in cases:
            one, other = (reached_by(each, weighs, forced, about) for each in (numpy_kernels.KERNELS, COMPILED))
            assert alike(one, other)

    @pytest.mark.parametrize("parted", [False, True] if FULL else [True])
    def test_very_long_documents_and_counts_give_the_same_bits(self, *, parted: bool) -> None:
        sizes = (LONGEST - 1, LONGEST, LONGEST + 1, 2 * MOST_COUNT + 4, 3, 70)
        stored = [
            document(f"r{size}x{times}", " ".join(["tea"] * times + ["boat"] * (size - times)))
            for size in sizes
            for times in (1, 2, 3, MOST_COUNT + 1)
            if times < size or size == 3
        ]
        index = WordIndex(built(stored[:10] if parted else stored))
        index.apply([], stored[10:] if parted else [])
        view = index.view()
        wanted = [QueryTerm("tea", "tea", ONE), QueryTerm("boat", "boat", ONE)]
        weighs = weighed(view, wanted, ["tea", "boat"])
        one, other = (reached_by(kernels, weighs, [], About(NONE, ())) for kernels in (numpy_kernels.KERNELS, COMPILED))
        assert alike(one, other)
        assert len(one["numbers"]) == len(stored)

    def test_a_word_of_one_long_session_and_few_others_gives_the_same_bits(self) -> None:
        """Its share of the session is above 2 there: more than 31 bits."""
        stored = [document(f"t{at}", "tea", session="long", position=at) for at in range(200)]
        stored += [document(f"o{at}", "boat", session=f"s{at}") for at in range(10)]
        view = WordIndex(built(stored)).view()
        asked = read("tea", view, date(2026, 1, 1))
        of_this_memory_alone = [each._replace(expected=None) for each in asked.asked]
        weighs = weighed(view, of_this_memory_alone, asked.sequence)
        one, other = (reached_by(kernels, weighs, [], About(NONE, ())) for kernels in (numpy_kernels.KERNELS, COMPILED))
        assert alike(one, other)
        assert max(one["signals"][3]) > 2**31

    def test_what_a_day_admits_also_has_the_share_of_its_session_where_no_word_of_the_question_is(self) -> None:
        """Its block has no document that a term reaches."""
        stored = [
            document(f"t{at:03}", "tea" if at < 40 else "boat", session="s", position=at, micros=at) for at in range(99)
        ]
        stored += [document(f"o{at:03}", "tea " + "boat " * (20 + at)) for at in range(200)]
        view = WordIndex(built(stored)).view()
        asked = read("tea", view, date(2026, 1, 1))
        numbers = np.array([view.table.number("t070")])
        weighs = weighed(view, asked.asked, asked.sequence)
        whole = weighs.reach(numbers)
        sums = whole.shares.sum(axis=0)
        of_session = int(sums[whole.numbers == numbers].item())
        # It is the best with this share and that of its session, and not with only this share.
        share = int(sums.max()) - of_session // 2
        extras = Extras(
            numbers,
            np.array([share]),
            lambda first, last: (np.zeros(len(first), dtype=np.int64), np.zeros(len(first), dtype=np.int64)),
            lambda those: np.where(those == numbers, share, 0),
        )
        assert of_session > 1000
        for kernels in (numpy_kernels.KERNELS, COMPILED):
            of_kernels = dataclasses.replace(weighs, kernels=kernels)
            for count in (1, 30, 150):
                agreed_on_the_best_of(
                    kernels, of_kernels, whole, About(NONE, ()), Wanted(count, STANDING, None, extras)
                )

    def test_blocks_are_left_out_only_if_no_share_of_a_document_is_rounded_to_nothing(self) -> None:
        view = many_documents(True, 64).view()
        asked = read("w1 w2", view, date(2026, 1, 1))
        weighs = weighed(view, asked.asked, asked.sequence)
        about, wanted = About(NONE, ()), Wanted(2, STANDING)
        for whole in (weighs.weights.whole, *(1 << bits for bits in range(40, 62, 3))):
            longer = dataclasses.replace(weighs, weights=weighs.weights._replace(whole=whole))
            for kernels in (numpy_kernels.KERNELS, COMPILED):
                of_kernels = dataclasses.replace(longer, kernels=kernels)
                agreed_on_the_best_of(kernels, of_kernels, of_kernels.reach(np.zeros(0, dtype=np.int64)), about, wanted)

    @given(own.collections(), st.lists(st.sampled_from(own.QUESTIONS), min_size=2, max_size=4))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_nothing_of_one_question_is_left_for_the_next(self, stored: list[Document], questions: list[str]) -> None:
        view = WordIndex(built(stored)).view()
        wanted = [
            weighed(view, (each := read(text, view, date(2026, 1, 1))).asked, each.sequence) for text in questions
        ]
        about = About(NONE, ())
        alone = [reached_by(native_kernels.NativeKernels(), each, [], about) for each in wanted]
        shared = native_kernels.NativeKernels()
        assert all(map(alike, (reached_by(shared, each, [], about) for each in wanted), alone))

    @given(
        st.lists(st.tuples(st.integers(-1, 4), st.integers(-2, 2)), max_size=60),
        st.integers(1, 12),
    )
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_the_best_are_those_of_a_full_sort_with_all_that_tie(
        self, drawn: list[tuple[int, int]], wanted: int
    ) -> None:
        index = made_of([document(f"r{at}", "tea", micros=micros) for at, (_, micros) in enumerate(drawn)])
        table = index.view().table
        totals = np.array([total for total, _ in drawn], dtype=np.int64)
        order = sorted((each for each in drawn if each[0] > 0), reverse=True)
        expected = (
            {at for at, each in enumerate(drawn) if each[0] > 0 and each >= order[:wanted][-1]} if order else set()
        )
        for kernels in (numpy_kernels.KERNELS, COMPILED):
            assert set(kernels.best(totals, np.arange(len(drawn)), table, wanted).tolist()) == expected

    def test_a_wrong_kernel_would_be_noticed(self) -> None:
        class Wrong(numpy_kernels.NumpyKernels):
            def reach(self, *args: Any) -> Reached:
                found = super().reach(*args)
                return found._replace(shares=found.shares + 1)

        view = made_of([document("a", "tea"), document("b", "red boat")]).view()
        asked = read("tea", view, date(2026, 1, 1))
        weighs = weighed(view, asked.asked, asked.sequence)
        about = About(NONE, ())
        assert not alike(reached_by(Wrong(), weighs, [], about), reached_by(COMPILED, weighs, [], about))


def numbers_of(view: WordView) -> list[int]:
    return np.flatnonzero(view.table.alive[: view.table.count]).tolist()


BRANCH = Branch("notes")
MADE = Made("rules", 7, "ab")


class TestFiles:
    @pytest.fixture
    def files(self, tmp_path: Path) -> SegmentFiles:
        return SegmentFiles(str(tmp_path / "m.db.index"), "uuid")

    @pytest.fixture
    def stored(self) -> list[Document]:
        return [
            document("a", "the lighthouse", session="s", position=0, speaker="Ana"),
            document("b", "red boats", session="s", position=1, expires=20),
            document("c", "我喜欢 boats"),
        ]

    def path(self, tmp_path: Path) -> Path:
        (found,) = (tmp_path / "m.db.index").glob("*.seg")
        return found

    @given(stored=own.collections())
    def test_what_is_read_answers_as_what_was_written(
        self, tmp_path_factory: pytest.TempPathFactory, stored: list[Document]
    ) -> None:
        files = SegmentFiles(str(tmp_path_factory.mktemp("index")), "uuid")
        segment = built(stored)
        assert files.write(BRANCH, segment, MADE)
        found = files.read(BRANCH, MADE.rules)
        assert found is not None
        assert found[1] == MADE
        assert answers(WordIndex(found[0]).view()) == answers(WordIndex(segment).view())

    def test_what_is_read_can_go_on(self, files: SegmentFiles, stored: list[Document]) -> None:
        files.write(BRANCH, built(stored), MADE)
        found = files.read(BRANCH, MADE.rules)
        assert found is not None
        index = WordIndex(found[0])
        index.apply(["b"], [document("d", "a boat", session="s", position=5)])
        assert own.postings(index.view(), "boat") == ["c", "d"]
        again = files.read(BRANCH, MADE.rules)
        assert again is not None
        assert answers(WordIndex(again[0]).view()) == answers(made_of(stored).view())

    def test_only_its_owner_may_read_it(self, files: SegmentFiles, stored: list[Document], tmp_path: Path) -> None:
        files.write(BRANCH, built(stored), MADE)
        assert self.path(tmp_path).stat().st_mode & 0o777 == 0o600
        assert self.path(tmp_path).parent.stat().st_mode & 0o777 == 0o700

    def test_every_byte_counts(
        self, files: SegmentFiles, stored: list[Document], tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        files.write(BRANCH, built(stored), MADE)
        path = self.path(tmp_path)
        good = path.read_bytes()
        for at in range(0, len(good), 13):
            path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
            caplog.clear()
            assert files.read(BRANCH, MADE.rules) is None
            assert "recall rebuilds it" in caplog.text
        for size in (0, 1, 40, 100, len(good) - 1):
            path.write_bytes(good[:size])
            assert files.read(BRANCH, MADE.rules) is None
        path.write_bytes(good + b"\0")
        assert files.read(BRANCH, MADE.rules) is None
        path.write_bytes(good)
        assert files.read(BRANCH, MADE.rules) is not None

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("occurrences", lambda column: column + (1 << 40)),
            ("occurrences", lambda column: column - (1 << 40)),
            ("occurrences", lambda column: column[:-1]),
            ("offsets", lambda column: column[:-1]),
            ("offsets", lambda column: column[::-1]),
            ("after", lambda column: column + 100),
            ("session", lambda column: column + 100),
            ("speaker", lambda column: column + 100),
            ("weight", lambda column: column.astype(np.int64)),
            ("alive", lambda column: ~column),
            ("ids.ends", lambda column: column + 1),
            ("offsets", lambda column: np.append(1, column[1:])),
            ("terms.order", lambda column: column + 100),
            ("terms.order", lambda column: column[::-1]),
            ("terms.keys", lambda column: column[::-1]),
            ("grams.forms", lambda column: column + 100),
            ("lengths", lambda column: column[:-1]),
            ("ids.order", lambda column: column * 0),
        ],
    )
    def test_what_is_whole_but_no_segment_is_not_used(
        self, files: SegmentFiles, stored: list[Document], name: str, change: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Its digest is right, as its author can compute one; kernels would step out of their columns."""
        segment = built(stored)
        segment.arrays[name] = change(segment.arrays[name])
        assert files.write(BRANCH, segment, MADE)
        assert files.read(BRANCH, MADE.rules) is None
        assert "recall rebuilds it" in caplog.text

    def test_forms_that_no_trigram_leads_to_are_not_used(self, files: SegmentFiles, stored: list[Document]) -> None:
        segment = built(stored)
        for name in ("grams.keys", "grams.ends"):
            segment.arrays[name] = segment.arrays[name][:0]
        assert files.write(BRANCH, segment, MADE)
        assert files.read(BRANCH, MADE.rules) is None

    def test_what_processes_left_that_died_while_writing_is_cleared_away(
        self, files: SegmentFiles, stored: list[Document], tmp_path: Path
    ) -> None:
        files.write(BRANCH, built(stored), MADE)
        left = Path(f"{self.path(tmp_path)}.4711.new")
        left.write_bytes(b"half")
        files.write(BRANCH, built(stored), MADE)
        assert not left.exists()

    def test_what_others_made_is_not_used(self, files: SegmentFiles, stored: list[Document], tmp_path: Path) -> None:
        assert files.read(BRANCH, MADE.rules) is None
        files.write(BRANCH, built(stored), MADE)
        assert files.read(BRANCH, "other rules") is None
        assert files.read(Branch("others"), MADE.rules) is None
        other = SegmentFiles(str(tmp_path / "m.db.index"), "other uuid")
        assert other.read(BRANCH, MADE.rules) is None
        # Not even where its file has the other's name.
        self.path(tmp_path).rename(other._path(BRANCH))
        assert other.read(BRANCH, MADE.rules) is None

    def test_one_process_writes_at_a_time(self, files: SegmentFiles, stored: list[Document]) -> None:
        files.write(BRANCH, built(stored), MADE)
        with files._alone() as first, SegmentFiles(files._folder, "uuid")._alone() as second:
            assert (first, second) == (True, False)
            assert not files.write(BRANCH, built(stored[:1]), MADE)
        found = files.read(BRANCH, MADE.rules)
        assert found is not None
        assert found[0].count == 3

    def test_where_it_cannot_be_kept_nothing_is_lost(
        self, stored: list[Document], tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "occupied").write_text("")
        files = SegmentFiles(str(tmp_path / "occupied"), "uuid")
        assert not files.write(BRANCH, built(stored), MADE)
        assert "could not be saved" in caplog.text
        assert not SegmentFiles(str(tmp_path / "index"), "uuid", read_only=True).write(BRANCH, built(stored), MADE)
        assert not (tmp_path / "index").exists()


def test_one_writer_at_a_time_saves_segments(tmp_path: Path) -> None:
    first, second = (SegmentFiles(str(tmp_path), "uuid") for _ in range(2))
    with first._alone() as one, second._alone() as two:
        assert (one, two) == (True, False)
    with second._alone() as two:
        assert two
