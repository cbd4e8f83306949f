"""The constants of the score: what each signal counts for. docs/architecture.md has the formulas."""

from __future__ import annotations

from recollect.indexes.fixed_point import ONE

#: What the turns around lend, in tenths, nearest first; the turn right before lends more where it asked a question.
FROM_BEFORE = (4, 3, 1, 1)
FROM_AFTER = (2, 2, 1, 1)
AFTER_QUESTION = 6
#: A turn lends at most about so many tokens.
DONOR_CAP = 12
#: K = 1.5 (0.4 + 0.6 length / 40), as 0.6 + 0.0225 length.
PIVOT_CONSTANT, PIVOT_SLOPE = 6 * ONE // 10, 225
#: The saturated mass is at most k1 + 1 = 2.5, as a fraction.
TOP = (5, 2)
#: Of sessions: BM25 with k1 = 1.2 and b = 3/4 over their mean length, in tenths: k1 + 1, k1 (1 - b), k1 b. And the
#: maximum mass of a term.
SESSION_TOP, SESSION_CONSTANT, SESSION_SLOPE = 22, 3, 9
SESSION_MOST_MASS = 1 << 15
#: What the signals beside the words count for, in hundredths.
SESSION_SHARE, PAIR_SHARE, DATE_SHARE = 70, 20, 10
#: What a document counts for whose speaker was asked about, and one that offers the kind of answer that is asked for.
SPEAKER, ANSWER = (5, 4), (23, 20)
#: What a cosine above the floor counts for, in hundredths.
DENSE_SHARE = 40
#: Maximum number of known stems that replace an unknown word, and their minimum Dice coefficient, in hundredths.
MOST_STEMS, LEAST_DICE = 3, 35
