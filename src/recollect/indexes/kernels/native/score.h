/* The arithmetic of the score, and searches in postings. */

#ifndef RC_SCORE_H
#define RC_SCORE_H

#include "constants.h"
#include "slices.h"

static const int64_t ONE = (int64_t)1 << BITS;
static const int64_t FROM_BEFORE[STEPS] = {FROM_BEFORE_1, FROM_BEFORE_2, FROM_BEFORE_3, FROM_BEFORE_4};
static const int64_t FROM_AFTER[STEPS] = {FROM_AFTER_1, FROM_AFTER_2, FROM_AFTER_3, FROM_AFTER_4};

/* Return above / below, rounded down, without a division: for non-negative numbers with a quotient below 2^52. */
static inline int64_t quotient(int64_t above, int64_t below, double inverse) {
    int64_t out = (int64_t)((double)above * inverse);
    int64_t rest = above - out * below;
    while (rest < 0) {
        out--;
        rest += below;
    }
    while (rest >= below) {
        out++;
        rest -= below;
    }
    return out;
}

/* Return the share of a mass of a term. `weight` is the term's weight times TOP. */
static inline int64_t share_of(int64_t weight, int64_t mass, int64_t pivot, int64_t whole, double by_whole) {
    int64_t below = TOP_BELOW * (mass + pivot);
    int64_t saturated = quotient(weight * mass, below, 1.0 / (double)below);
    return quotient(saturated << SHARE_BITS, whole, by_whole);
}

/* Return what a title adds to the share of a term that occurs `times` times in the text. */
static inline int64_t title_share(int64_t weight, int64_t times, int64_t pivot, int64_t whole, double by_whole) {
    int64_t mass = least_of(times, MOST_COUNT) << BITS;
    return share_of(weight, mass + TITLE_MASS, pivot, whole, by_whole) -
           share_of(weight, mass, pivot, whole, by_whole);
}

/* Return the share of a term in a session that has this mass of it. */
static inline int64_t session_share(int64_t weight, int64_t count, int64_t pivot, int64_t whole) {
    int64_t mass = least_of(count, SESSION_MOST_MASS) << BITS;
    int64_t saturated = weight * SESSION_TOP * mass / (10 * (mass + pivot));
    return (saturated * SESSION_SHARE / 100 << SHARE_BITS) / whole;
}

/* Return the mass that a turn lends to others, before the fraction of each. */
static inline int64_t lent_by(int64_t times, int64_t length) {
    return (times * DONOR_CAP << BITS) / most_of(length, DONOR_CAP);
}

/* Return the tenths that a turn lends to the one that is `step` + 1 turns after it, and before it. */
static inline int64_t lending_after(int step, bool asks) {
    return FROM_BEFORE[step] + (step == 0 && asks ? AFTER_QUESTION : 0);
}
static inline int64_t lending_before(int step) { return FROM_AFTER[step]; }

static inline bool is_turn_of(int64_t number, const rc_table *table) { return number != NONE && number < table->count; }

/* Return K of a document, the mass at which a term is half saturated: by its length and those of the turns around. */
static inline int64_t computed_pivot(int64_t number, const rc_table *table) {
    int64_t total = (int64_t)AT(table->length, number) << BITS;
    int64_t at = AT(table->before, number);
    for (int step = 0; step < STEPS && is_turn_of(at, table); step++) {
        int64_t lending = lending_after(step, AT(table->asks, at));
        total += (least_of(AT(table->length, at), DONOR_CAP) * lending << BITS) / 10;
        at = AT(table->before, at);
    }
    at = AT(table->after, number);
    for (int step = 0; step < STEPS && is_turn_of(at, table); step++) {
        total += (least_of(AT(table->length, at), DONOR_CAP) * lending_before(step) << BITS) / 10;
        at = AT(table->after, at);
    }
    return PIVOT_CONSTANT + total * PIVOT_SLOPE / 10000;
}

/* Return K of a document, computed at most once for a table. Threads may store the same value at the same time. */
static inline int64_t pivot_of(int64_t number, const rc_table *table) {
    int64_t pivot = AT(table->pivots, number);
    if (pivot == 0) {
        pivot = computed_pivot(number, table);
        AT(table->pivots, number) = pivot;
    }
    return pivot;
}

static inline int64_t document_of(int64_t occurrence) { return occurrence >> POSITION_BITS; }
static inline int64_t first_of(int64_t number) { return number << POSITION_BITS; }

/* Return the first index from `low` to `high` at which an ascending column is not below `least`. */
static inline int64_t first_from(rc_ints column, int64_t low, int64_t high, int64_t least) {
    while (low < high) {
        int64_t middle = (low + high) >> 1;
        if (AT(column, middle) < least) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Do as `first_from`, in steps that grow from `low`: fast if the index is near. */
static inline int64_t next_from(rc_ints column, int64_t low, int64_t high, int64_t least) {
    int64_t step = 1;
    while (low + step < high && AT(column, low + step) < least) {
        low += step;
        step *= 2;
    }
    return first_from(column, low, least_of(low + step, high), least);
}

/* Return the end of the occurrences of the document at an index of a column. */
static inline int64_t past(rc_ints column, int64_t at, int64_t end) {
    int64_t number = document_of(AT(column, at));
    do {
        at++;
    } while (at < end && document_of(AT(column, at)) == number);
    return at;
}

/* Return the count of a term in a document, from a part of a column. */
static inline int64_t count_in(rc_ints column, int64_t begin, int64_t end, int64_t number) {
    int64_t first = first_from(column, begin, end, first_of(number));
    int64_t at = first;
    while (at < end && document_of(AT(column, at)) == number) {
        at++;
    }
    return least_of(at - first, MOST_COUNT);
}

/* The span of a term in one of the two columns of postings. */
typedef struct {
    rc_ints column;
    int64_t begin, end;
} rc_span;

static inline rc_span span_of(const rc_postings *postings, int64_t term, bool in_tail) {
    int64_t at = 4 * term + (in_tail ? 2 : 0);
    rc_span out = {in_tail ? postings->tail : postings->base, AT(postings->spans, at), AT(postings->spans, at + 1)};
    return out;
}

/* Return the count of a term in a document, which is in one of the two columns. */
static inline int64_t count_of(const rc_postings *postings, int64_t term, int64_t number) {
    rc_span base = span_of(postings, term, false), tail = span_of(postings, term, true);
    int64_t times = count_in(base.column, base.begin, base.end, number);
    return times ? times : count_in(tail.column, tail.begin, tail.end, number);
}

#endif
