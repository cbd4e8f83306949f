/* The constants of the score, as in `indexes.parameters` and the modules that it names: a test compares them. */

#ifndef RC_CONSTANTS_H
#define RC_CONSTANTS_H

/* indexes.fixed_point */
#define BITS 16
#define SHARE_BITS 30

/* indexes.documents.columns, indexes.words.postings */
#define NONE (-1)
#define POSITION_BITS 16
#define MOST_COUNT 32767
#define LONGEST 32767

/* indexes.parameters */
#define FROM_BEFORE_1 4
#define FROM_BEFORE_2 3
#define FROM_BEFORE_3 1
#define FROM_BEFORE_4 1
#define FROM_AFTER_1 2
#define FROM_AFTER_2 2
#define FROM_AFTER_3 1
#define FROM_AFTER_4 1
#define STEPS 4
#define AFTER_QUESTION 6
#define DONOR_CAP 12
#define PIVOT_CONSTANT 39321
#define PIVOT_SLOPE 225
#define TOP 5
#define TOP_BELOW 2
#define SESSION_TOP 22
#define SESSION_CONSTANT 3
#define SESSION_SLOPE 9
#define SESSION_MOST_MASS 32768
#define SESSION_SHARE 70
#define TITLE_MASS 45875
#define ANSWER_OF 23
#define ANSWER_OUT_OF 20
#define PAST_OF 11
#define PAST_OUT_OF 10
#define RECOLLECTED_OF 5
#define RECOLLECTED_OUT_OF 8
#define ASKED_OF 2
#define ASKED_OUT_OF 5
#define PLANES 2

/* text.answers: the kinds of answers, instructions, and texts that only ask. */
#define TIME 1
#define NUMBER 2
#define NAME 4
#define PAST 8
#define REASON 16
#define INSTRUCTION 32
#define ASKS 64

/* indexes.kernels.types: the rows of shares, and the fractions of ratios and of weighed ratios. */
#define RAW 6
#define RATIO_BITS 15
#define WEIGHED_BITS 13

/* facets.sdr.index.types */
#define FACTOR_BITS 16

#endif
