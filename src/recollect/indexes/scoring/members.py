"""The share of the members of a class: "which pets does Ana have?" is answered by a turn about a cat.

A document gets a part of the weight of the rarest member that it contains; the members found are not added up, since
one item of a list is as good an answer as another. Surrounding turns lend nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recollect.indexes.documents.columns import NONE, Flags, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import BITS, ONE
from recollect.indexes.kernels.with_numpy import share_of
from recollect.indexes.parameters import MEMBER_SHARE, PIVOT_CONSTANT, PIVOT_SLOPE
from recollect.indexes.words.index import WordView
from recollect.indexes.words.segment import POSITION_BITS
from recollect.text.background import background_of
from recollect.text.classes import members_of
from recollect.text.languages import ENGLISH
from recollect.text.words import stem


class Member(NamedTuple):
    """A member of the class that a question asks for.

    Attributes:
        term: Its index term.
        word: The word itself.
        of: The name of the class, as in the question, in the singular.
    """

    term: str
    word: str
    of: str


class MemberShares(NamedTuple):
    """The shares of members in documents.

    Attributes:
        numbers: The documents; ascending in what `member_shares` returns.
        shares: The share of each.
        rarest: The index in `members` of the rarest member that each contains.
    """

    numbers: Ints
    shares: Ints
    rarest: Ints
    members: tuple[Member, ...]

    def of(self, numbers: Ints) -> MemberShares:
        """Return the shares of these documents, in this order; 0 for those that are not in `numbers`, which ascend."""
        at = np.minimum(self.numbers.searchsorted(numbers), max(len(self.numbers) - 1, 0))
        has = self.numbers[at] == numbers if len(self.numbers) else np.zeros(len(numbers), dtype=np.bool_)
        shares, rarest = np.zeros(len(numbers), dtype=np.int64), np.zeros(len(numbers), dtype=np.int64)
        shares[has], rarest[has] = self.shares[at[has]], self.rarest[at[has]]
        return MemberShares(numbers, shares, rarest, self.members)

    def at(self, indexes: Ints) -> MemberShares:
        """Return the shares of the documents at these indexes of `numbers`, in any order."""
        return MemberShares(self.numbers[indexes], self.shares[indexes], self.rarest[indexes], self.members)


def members_in(question: str, view: WordView) -> tuple[Member, ...]:
    """Return the members, known to a view, of the class that a question asks for; of words with one stem, the first."""
    found: dict[str, Member] = {}
    for word, of in members_of(question).items():
        term = stem(word)
        if term not in found and view.in_use(term):
            found[term] = Member(term, word, of)
    return tuple(found.values())


def member_shares(members: tuple[Member, ...], speaker: int, whole: int, view: WordView) -> MemberShares:
    """Return the share of each live document that contains a member.

    Args:
        speaker: The speaker whose documents can have a share; NONE: all but machines.
        whole: The mass of the question, by which shares are divided.
        view: The view to search.

    Cost:
        O(occurrences of the members).
    """
    table = view.table
    postings = [view.occurrences(member.term) for member in members]
    index = np.arange(len(members)).repeat(list(map(len, postings)))
    of = np.concatenate(postings) >> POSITION_BITS
    once = _changes(of) | _changes(index)
    of, index = of[once], index[once]
    counts = np.bincount(index, minlength=len(members)).tolist()
    background = background_of(ENGLISH)
    expected = [None if background is None else background.expected(member.term) for member in members]
    rarity = [view.idf(count, len(found), each) for count, found, each in zip(counts, postings, expected, strict=True)]
    weight = np.array(rarity, dtype=np.int64)[index]
    order = np.lexsort((index, -weight, of))  # the rarest member of each document is the first of its run
    chosen = order[_changes(of[order])]
    chosen = chosen[_may_answer(of[chosen], speaker, table)]
    numbers = of[chosen]
    # The saturated mass of one occurrence, by the length of the document itself.
    pivot = PIVOT_CONSTANT + (table.length[numbers].astype(np.int64) << BITS) * PIVOT_SLOPE // 10_000
    one: Ints = np.full(len(numbers), ONE, dtype=np.int64)
    return MemberShares(
        numbers, share_of(weight[chosen] * MEMBER_SHARE // 100, one, pivot, whole), index[chosen], members
    )


def _changes(values: Ints) -> Flags:
    """Return which values differ from the one before; the first does."""
    out: Flags = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=out[1:])
    return out


def _may_answer(numbers: Ints, speaker: int, table: Table) -> Flags:
    theirs: Flags = ~table.by_machine(numbers) if speaker == NONE else table.speaker[numbers] == speaker
    return theirs
