"""`Bisection`: the call that finds the commit which changed the answer to a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from recollect import filters as f
from recollect.arguments.checks import check_count, check_text
from recollect.arguments.signatures import all_named
from recollect.calls.history import Target
from recollect.calls.namespace import NamespaceCalls
from recollect.common.reprs import line
from recollect.engine.history_results import RecordVersion
from recollect.engine.results import Hit, Hits
from recollect.errors import BisectError, InvalidArgumentError, ScopeError
from recollect.filters.text_form import Where
from recollect.filters.tree import Filter
from recollect.memory.bisection.causes import changes_of
from recollect.memory.bisection.search import Halving
from recollect.memory.bisection.values import Bisected, Flip
from recollect.records.origins import Origin
from recollect.records.record import Instant, Record

#: Says whether an answer is good; None if it cannot be judged.
Judge: TypeAlias = Callable[[Hits], bool | None]
#: Number of commits that `all` judges before it halves, unless a call says otherwise.
SAMPLES = 30
#: Maximum number of characters of an answer in an error.
_SHOWN = 80


@all_named
class Bisection(NamespaceCalls):
    """The call that finds the commit which changed an answer."""

    def bisect(
        self,
        question: str,
        good: Target,
        bad: Target | None = None,
        *,
        expect: str | None = None,
        judge: Judge | None = None,
        k: int = 1,
        last: bool = False,
        all: bool = False,  # noqa: A002 - as on the command line
        samples: int | None = None,
        where: Where | None = None,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        min_origin: Origin | None = None,
        reference: Instant | None = None,
        language: str | None = None,
    ) -> Bisected:
        """Find the commit that changed the answer to a question, by halving the commits between two moments, and why.

            found = memory.bisect("Which seat does Ana prefer?", good=10, expect="window")
            print(found, found.commit.actor, found.commit.reason, found.why)

        The answer as of the commit before it is good, and that as of the commit is bad. If `good` is later than `bad`,
        it is the other way round: the commit that made the answer good is found. If the answer changed only once, it
        is the only such commit, and otherwise one of them.

        Args:
            question: The question, as for `recall`.
            good: A moment with a good answer: see `at`. Of a time, the newest commit at or before it counts.
            bad: A moment with a bad answer; default: the newest commit.
            expect: An answer is good if the text of one of the first `k` hits contains this, in upper and lower case
                as it is here.
            judge: A function of the first `k` hits (`Hits`) that returns True if they are good, False if they are bad,
                and None if it cannot say; `hits.watermark` is the seq. Without it and `expect`, an answer is good if
                its first hit has the id and the text of the one at `good`.
            k: Number of hits.
            last: Search from the end, in steps that double: finds the newest change, unless two changes lie between
                two steps.
            all: Search every change between the commits that are judged: `samples`, and what halving judges.
            samples: Number of commits, at equal distances, that are judged before; default: 30 with `all`, else 0. With
                as many as there are commits, `all` finds every change.
            where: As for `recall`, like the following arguments.
            user: Only records of this user and those without a user.
            agent: Only records of this agent and those without an agent.
            conversation: Only records of this conversation and those without one.
            min_origin: Only records of this class of origin or a more trusted one.
            reference: The time of the question. Default: of each answer, the time of its commit.
            language: The language of the question.

        Returns:
            The two commits, and what became of each hit. If those between them could not be judged, they are the ends
            of a range: `seq` is None then. A commit cannot be judged if `judge` returns None, or if a record that is a
            hit at one of the ends had a text there that was erased.

        Raises:
            BisectError: The answers at both ends are good, or both are bad, or one of them cannot be judged.
            UnknownTargetError: There is no such moment.
            ScopeError: This memory is scoped: the numbers of commits cover the whole namespace.
            InvalidArgumentError: An argument is invalid, or both moments are the same commit.
            StoreError: The store failed.

        Cost:
            About log2 of the number of commits recalls as of the past (see `at`), and at most two more for the
            explanation, with two for a word that became rarer or commoner; with `last` up to twice as many.
        """
        if self._scope.fixed:
            raise ScopeError("a bisection, which names commits of the whole namespace,", str(self._scope))
        if expect is not None:
            check_text("expect", expect)
        if judge is not None and not callable(judge):
            raise InvalidArgumentError("judge", judge, "must be a function of the hits")
        if judge is not None and expect is not None:
            raise InvalidArgumentError("expect", expect, "cannot be combined with a judge: leave one of them out")
        if last and all:
            raise InvalidArgumentError("last", last, "cannot be combined with all: leave one of them out")
        check_count("k", k)
        check_count("samples", samples, least=0, optional=True)
        ends = self.at(good).seq, self.seq if bad is None else self.at(bad).seq
        if ends[0] == ends[1]:
            raise InvalidArgumentError("bad", bad, f"is commit {ends[1]}, as is good: name two moments")
        condition = self._read(where, user, agent, conversation, min_origin)
        answers = _Answers(self, question, k, condition, reference, language)
        # A memory of the past lacks later commits, and has no `history`.
        present = type(self)(self._present, self._branch)
        judging = _Judging(present, answers, ends, expect, judge)
        search = Halving(judging.verdict)
        judging.check_ends(search)
        low, high = sorted(ends)
        search.probe(low, high, (SAMPLES if all else 0) if samples is None else samples)
        for interval in reversed(search.intervals if all else search.intervals[-1:]):
            search.gallop(*interval) if last else search.halve(*interval)
        flips = [Flip(*(each if search.verdict(each[0]) else each[::-1])) for each in search.intervals]
        # The newest one ends with the verdict of the later end, so it changes the answer as the ends do.
        low, high = search.intervals[-1]
        commits = present.changes(since=low, limit=high - low)
        why = changes_of(answers.as_of(low), answers.as_of(high), commits)
        return Bisected(
            question=question,
            good=flips[-1].good,
            bad=flips[-1].bad,
            commit=commits[0] if high - low == 1 else None,
            calls=answers.calls,
            skipped=search.skipped,
            flips=tuple(flips),
            why=why,
        )


class _Answers:
    """The answers to a question as of commits. Each commit is asked once.

    Args:
        memory: The memory.
        question: The question.
        k: Number of hits.
        where: Which records are asked for.
        reference: The time of the question; None: that of each commit.
        language: The language of the question.
    """

    def __init__(
        self,
        memory: NamespaceCalls,
        question: str,
        k: int,
        where: Filter,
        reference: Instant | None,
        language: str | None,
    ) -> None:
        self.memory = memory
        self.calls = 0
        self._question = question
        self._k = k
        self._where = where
        self._reference = reference
        self._language = language
        self._hits: dict[int, Hits] = {}

    def at(self, seq: int) -> Hits:
        """Return the first hits as of a commit."""
        if seq not in self._hits:
            self._hits[seq] = self.recall(seq, self._question, self._k, self._where)
        return self._hits[seq]

    def among(self, seq: int, ids: Sequence[str]) -> Hits:
        """Return the hits among some records as of a commit: a filter changes no score."""
        return self.recall(seq, self._question, len(ids), f.all_of(self._where, f.id(*ids)))

    def recall(self, seq: int, question: str, k: int, where: Filter) -> Hits:
        """Ask as of a commit."""
        self.calls += 1
        past = self.memory.at(seq)
        return past.recall(question, k, where, reference=self._reference, language=self._language)

    def as_of(self, seq: int) -> _Commit:
        """Return a commit as what explains the change of an answer asks about it."""
        return _Commit(self, seq)


class _Commit:
    """What is asked about a commit to explain its answer (`causes.AsOf`)."""

    def __init__(self, answers: _Answers, seq: int) -> None:
        self._answers = answers
        self._seq = seq
        self._memory = answers.memory.at(seq)
        self.hits = answers.at(seq)

    def among(self, ids: Sequence[str]) -> Hits:
        """Return the hits among these records, whatever their rank."""
        return self._answers.among(self._seq, ids)

    def records(self, ids: Sequence[str]) -> Mapping[str, Record | None]:
        """Return the records with these ids; None for one that is not live."""
        return dict(zip(ids, self._memory.get_all(ids), strict=True))

    def superseding(self, record_id: str) -> Sequence[Record]:
        """Return the live records that replace one."""
        return self._memory.find(f.supersedes(record_id), limit=None)

    def reached(self, word: str) -> int:
        """Return how many records a word reaches."""
        return self._answers.recall(self._seq, word, 1, f.everything()).plan.passed


class _Judging:
    """The verdict on the answers as of commits.

    Args:
        memory: The memory of the present.
        answers: The answers.
        ends: The commits that are named as good and as bad.
        expect: The text that a good answer has; None if another rule decides.
        judge: The function of the caller that decides; None if another rule decides.
    """

    def __init__(
        self, memory: NamespaceCalls, answers: _Answers, ends: tuple[int, int], expect: str | None, judge: Judge | None
    ) -> None:
        self._memory = memory
        self._answers = answers
        self._ends = ends
        self._expect = expect
        self._judge = judge
        self._versions: dict[str, list[RecordVersion]] = {}
        # The later end first: it is nearest to the present, from which its index is derived.
        first_hits = {seq: answers.at(seq) for seq in sorted(ends, reverse=True)}
        self._best = _best(first_hits[ends[0]])
        self._known = {hit.record.id for hits in first_hits.values() for hit in hits}

    def verdict(self, seq: int) -> bool | None:
        """Return whether the answer as of a commit is good; None if it cannot be judged."""
        hits = self._answers.at(seq)
        if self._judge is None:
            is_good = _best(hits) == self._best if self._expect is None else _contains(hits, self._expect)
            # What was erased could not make it bad.
            return True if is_good else None if self._lacks_erased(hits, seq) else False
        if self._lacks_erased(hits, seq):
            return None
        verdict = self._judge(hits)
        # A number may be an exit code, of which 0 is good.
        if verdict is not None and not isinstance(verdict, bool):
            raise InvalidArgumentError("judge", verdict, "must return True, False or None")
        return verdict

    def _lacks_erased(self, hits: Hits, seq: int) -> bool:
        """Return whether a record that is a hit at one of the ends had an erased text as of a commit."""
        missing = self._known - {hit.record.id for hit in hits}
        return any(self._is_erased(each, seq) for each in missing)

    def _is_erased(self, record_id: str, seq: int) -> bool:
        if record_id not in self._versions:
            self._versions[record_id] = self._memory.history(record_id)
        until = [each for each in self._versions[record_id] if each.commit.seq <= seq]
        return bool(until) and until[-1].erased

    def check_ends(self, search: Halving) -> None:
        """Check that one end has a good answer and the other one a bad one.

        Raises:
            BisectError: It is not so.
        """
        good, bad = (search.verdict(seq) for seq in self._ends)
        if good and bad is False:
            return
        if good is None or bad is None:
            problem = "the answer at an end cannot be judged"
        elif good == bad:
            problem = f"both ends are {'good' if good else 'bad'}"
        else:
            problem = "the good end is bad and the bad end is good: exchange them"
        shown = (_shown(self._answers.at(seq)) for seq in self._ends)
        raise BisectError(problem, self._ends[0], next(shown), self._ends[1], next(shown))


def _best(hits: Hits) -> tuple[str, str | bytes] | None:
    """Return the id and the content of the first hit."""
    return (hits[0].record.id, hits[0].record.content) if hits else None


def _contains(hits: Hits, text: str) -> bool:
    return any(text in hit.record.text for hit in hits)


def _shown(hits: Hits) -> str:
    """Return the first hit of an answer for a message."""
    best: Hit | None = hits[0] if hits else None
    return "no hit" if best is None else f"{line(best.record.id, 40)} ({line(best.record.content, _SHOWN)})"
