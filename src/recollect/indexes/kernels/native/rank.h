/* The factors of documents, and heaps of the best totals. */

#ifndef RC_RANK_H
#define RC_RANK_H

#include "score.h"

/* The factor of each kind of a document, as a fraction; ascending. */
static const int64_t FACTORS[][3] = {
    {TIME, ANSWER_OF, ANSWER_OUT_OF},   {NUMBER, ANSWER_OF, ANSWER_OUT_OF},
    {NAME, ANSWER_OF, ANSWER_OUT_OF},   {PAST, PAST_OF, PAST_OUT_OF},
    {REASON, ANSWER_OF, ANSWER_OUT_OF}, {INSTRUCTION, RECOLLECTED_OF, RECOLLECTED_OUT_OF},
    {ASKS, ASKED_OF, ASKED_OUT_OF},
};

/* Return a factor multiplied by those of some kinds, ascending. */
static inline int64_t of_kinds(int64_t factor, int64_t kinds) {
    for (size_t at = 0; kinds && at < sizeof(FACTORS) / sizeof(*FACTORS); at++) {
        if (kinds & FACTORS[at][0]) {
            factor = factor * FACTORS[at][1] / FACTORS[at][2];
            kinds ^= FACTORS[at][0];
        }
    }
    return factor;
}

/* Return the factor of a document's shares. */
static inline int64_t factor_of(int64_t number, const rc_table *table, const rc_about *about) {
    int64_t factor = AT(table->weight, number);
    if (about->speaker != NONE && AT(table->speaker, number) == about->speaker) {
        factor = factor * about->favour >> BITS;
    }
    return of_kinds(factor, AT(table->offers, number) & about->kinds);
}

/* More than the relative error of some thousand steps in double precision. */
static const double MARGIN = 1.0 + 1e-9;

/* Return an upper bound of the factor of a document of weight 1 that offers some kinds, by the speaker or not. It is as
   exact as doubles are: factors are rounded down, so none is above it. */
static inline double greatest_factor(const rc_about *about, bool is_by_speaker, int64_t kinds) {
    double factor = MARGIN;
    if (is_by_speaker && about->favour > (int64_t)1 << BITS) {
        factor *= (double)about->favour / (1 << BITS);
    }
    for (size_t at = 0; kinds && at < sizeof(FACTORS) / sizeof(*FACTORS); at++) {
        if ((kinds & FACTORS[at][0]) && FACTORS[at][1] > FACTORS[at][2]) {
            factor = factor * (double)FACTORS[at][1] / (double)FACTORS[at][2];
        }
    }
    return factor;
}

/* Return the same for any document. */
static inline double greatest_of_all(const rc_about *about) {
    return greatest_factor(about, about->speaker != NONE, about->kinds);
}

/* Return an upper bound of the total of a document with these shares, given the greatest factor of weight 1. */
static inline double most_total(int64_t shares, int64_t number, const rc_table *table, double factor) {
    return (double)(shares * AT(table->weight, number)) * factor / (1 << BITS);
}

/* A heap of the best totals, and of the times of those that tie: the least is on top. */
typedef struct {
    int64_t *totals, *micros, size, wanted;
} heap;

static inline bool below(int64_t total, int64_t micros, int64_t of_total, int64_t of_micros) {
    return total < of_total || (total == of_total && micros < of_micros);
}

static inline void replace_least(heap *of, int64_t total, int64_t micros) {
    int64_t at = 0;
    for (int64_t down = 1; down < of->size; down = 2 * at + 1) {
        int64_t other = down + 1;
        if (other < of->size && below(of->totals[other], of->micros[other], of->totals[down], of->micros[down])) {
            down = other;
        }
        if (!below(of->totals[down], of->micros[down], total, micros)) {
            break;
        }
        of->totals[at] = of->totals[down];
        of->micros[at] = of->micros[down];
        at = down;
    }
    of->totals[at] = total;
    of->micros[at] = micros;
}

static inline void insert(heap *of, int64_t total, int64_t micros) {
    int64_t at = of->size++;
    while (at > 0 && below(total, micros, of->totals[(at - 1) >> 1], of->micros[(at - 1) >> 1])) {
        of->totals[at] = of->totals[(at - 1) >> 1];
        of->micros[at] = of->micros[(at - 1) >> 1];
        at = (at - 1) >> 1;
    }
    of->totals[at] = total;
    of->micros[at] = micros;
}

static inline void offer(heap *of, int64_t total, int64_t micros) {
    if (of->size < of->wanted) {
        insert(of, total, micros);
    } else if (below(of->totals[0], of->micros[0], total, micros)) {
        replace_least(of, total, micros);
    }
}

static inline bool heap_new(heap *of, int64_t wanted) {
    of->totals = malloc((size_t)(wanted + 1) * 2 * sizeof(int64_t));
    of->micros = of->totals ? of->totals + wanted + 1 : NULL;
    of->size = 0;
    of->wanted = wanted;
    return of->totals != NULL;
}

#endif
