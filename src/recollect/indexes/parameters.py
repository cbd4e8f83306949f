"""The constants of the score: the weights of its signals. docs/architecture.md has the formulas."""

from __future__ import annotations

from recollect.indexes.fixed_point import ONE

#: The fractions, in tenths, that surrounding turns contribute, nearest first. The previous turn contributes more if it
#: ends with a question.
FROM_BEFORE = (4, 3, 1, 1)
FROM_AFTER = (2, 2, 1, 1)
AFTER_QUESTION = 6
#: The part of the greatest share of words among the turns around it that a turn without any of the words can get.
MOST_LENT = (9, 10)
#: Approximate maximum of tokens that a turn contributes to another.
DONOR_CAP = 12
#: K = 1.5 (0.4 + 0.6 length / 40), as 0.6 + 0.0225 length.
PIVOT_CONSTANT, PIVOT_SLOPE = 6 * ONE // 10, 225
#: The maximum of the saturated mass, k1 + 1 = 2.5, as a fraction.
TOP = (5, 2)
#: The session signal: BM25 with k1 = 1.2 and b = 3/4 over the mean length of sessions. In tenths: k1 + 1, k1 (1 - b),
#: k1 b. Then the maximum mass of a term.
SESSION_TOP, SESSION_CONSTANT, SESSION_SLOPE = 22, 3, 9
SESSION_MOST_MASS = 1 << 15
#: The mass that a word in the titles above a document adds to its occurrences in the text, each of which has ONE.
TITLE_MASS = 7 * ONE // 10
#: The weights of the signals other than words, in hundredths.
SESSION_SHARE, PAIR_SHARE, DATE_SHARE = 70, 20, 10
#: The factors for a document by the speaker in question, and for one by the assistant if a question asks what it said,
#: which also removes the assistant's reduction (`text.manner`). With 16 bits of fraction.
SPEAKER, SPEAKING_ASSISTANT = ONE * 5 // 4, ONE * 25 // 12
#: The factor for a document that provides the kind of answer in question, and for one with a statement about the past
#: if the question is about the past.
ANSWER, PAST_ANSWER = (23, 20), (11, 10)
#: The factor for a standing instruction if a question asks what was said or done: it removes that of its manner.
RECOLLECTED_INSTRUCTION = (5, 8)
#: The factor for a document that only asks, unless the question is about questions.
ASKED = (2, 5)
#: If a question asks for an order of events or a summary: what a turn gains at the beginning of its session, less the
#: further it is from it; the factor of each turn of a session after its best, for an order; and the factor for an
#: assistant's turns, for a summary, which removes that of its manner.
OPENING, SPREAD, SUMMARIZED_ASSISTANT = (1, 2), (4, 5), (5, 3)
#: The weight of a member of the class that a question asks for ("which pets ...?": a cat), in hundredths of its IDF.
MEMBER_SHARE = 60
#: What is added to the weight of a turn with this many new words or more, and the number (`words.novelty`).
NOVEL, NEW_WORDS = (3, 10), 16
#: The factor for a document that is not valid at the time in question.
LAPSED = (1, 2)
#: The least part of a rival's score with which a document can prevail over it: if the question has a word such as "now"
#: or "before" or names a time, and otherwise, if both have all of its words (`scoring.rivals`).
RIVAL, RIVAL_OF_ALL_WORDS = (2, 5), (19, 20)
#: The shares of a speaker's turns if nothing but their name is left of a question, in hundredths: if it asks what they
#: said, which ranks their turns first, and otherwise.
SAID_SHARE, NAMED_SHARE = 200, 10
#: `scoring.nearest`: up to how many documents all are compared. Of more: the least number whose exact cosines are
#: computed; the divisor of the number of all documents that gives another least number; and the bits of a question's
#: components in the estimates that choose them.
ALL_COMPARED, NEAREST, NEAREST_PART, PLANES = 1024, 512, 192, 2
#: `scoring.dense`: how much of what the median cosine has above the floor is added to it, and of how many records
#: all may answer.
RISE, FEW_VECTORS = (9, 10), 4
#: A document is also a hit by its meaning alone if it has this part of what suffices for that, and this part of the
#: greatest.
NEARLY_ALONE, NEAR_THE_GREATEST = (3, 5), (3, 4)
#: A name is not embedded if at least this many records have it, and one in this many (`scoring.speakers`).
COMMON, COMMON_PART = 4, 3
#: Maximum number of standing instructions and preferences that are returned with the hits.
STANDING = 10
#: Maximum number of known stems that replace an unknown word, and their minimum Dice coefficient, in hundredths.
MOST_STEMS, LEAST_DICE = 3, 25
#: One edit of a word changes at most this many of its trigrams.
CHANGED_TRIGRAMS = 4
#: The weight of a part of a compound in the question, and of a compound of its words, beside that of the words.
COMPOUND_WEIGHT = ONE // 2
