/* The working memory of a question, and how masses are added to it. */

#ifndef RC_WALK_H
#define RC_WALK_H

#include "clock.h"
#include "score.h"

/* A block that can have one of the best documents. */
typedef struct {
    int64_t limit, block;
} rc_candidate;

/* The sums of a document: the mass of the current term, its own part, and the shares of the terms so far. */
typedef struct {
    int64_t mass, own;
    int32_t words, trigram, context, title;
} sum;

struct rc_scratch {
    int64_t documents, sessions;
    sum *sums;
    int32_t *near;                   /* the shares of pairs */
    int32_t *reach, *touched;        /* documents: those of the current term, and all */
    int64_t *masses, *session_sums;  /* of sessions: the mass of the current term, and the shares so far */
    int32_t *met;                    /* sessions with a share, then those of the current term */
    int32_t *wanted;                 /* the sessions of wanted documents */
    uint8_t *is_wanted;              /* whether each session is one of them */
    /* Of a search (`walk_fit_blocks`). */
    int64_t blocks;
    double *bounds, *session_bounds;                   /* upper bounds of shares, before they are rounded */
    int32_t *bounded, *bounded_sessions;               /* the blocks and the sessions with a bound */
    int64_t bounded_count, bounded_session_count;
    uint8_t *inside, *done;                            /* whether each block is in the current group, and computed */
    rc_candidate *candidates;
};

static inline bool has_share(const sum *of) { return of->words || of->trigram || of->title || of->context; }

/* For documents shorter than this the share of a single occurrence is computed once for a term, if it has more. */
enum { SHORT = 64 };

/* The shares of a term in documents that are not turns. */
typedef struct {
    int64_t weight;
    bool known;
    int32_t once[SHORT];
} plain_shares;

/* A question while it is processed. */
typedef struct {
    const rc_postings *postings;
    const rc_table *table;
    const rc_weights *weights;
    const rc_part *part;  /* NULL: all documents */
    rc_scratch *scratch;
    double by_whole;
    int64_t touched;   /* number of documents in `scratch->touched` */
    int64_t sessions;  /* number of sessions in `scratch->met` with a share */
    int64_t reached;   /* number of documents in `scratch->reach` */
    int64_t met;       /* end of the sessions of the current term in `scratch->met` */
    int64_t wanted;    /* number of sessions in `scratch->wanted` */
    rc_ints ranges;    /* begins and ends of the documents of the base that are wanted or lend to wanted ones */
    int64_t first;     /* the document of the first sum in `scratch->sums` */
    const plain_shares *plain;  /* of each term; NULL if they are not known */
    bool late;         /* whether the time was over before all was added */
} walk;

static inline sum *sum_of(const walk *of, int64_t number) { return &of->scratch->sums[number - of->first]; }

/* Return whether the shares of a document are wanted. */
static inline bool is_wanted(const rc_part *part, int64_t number) {
    return !part || (number < part->layout->documents ? AT(part->inside, number >> part->layout->bits) : part->with_tail);
}

static inline void touch(walk *of, int64_t number) {
    if (!has_share(sum_of(of, number))) {
        of->scratch->touched[of->touched++] = (int32_t)number;
    }
}

static inline void add_mass(walk *of, int64_t number, int64_t mass) {
    sum *to = sum_of(of, number);
    if (to->mass == 0) {
        of->scratch->reach[of->reached++] = (int32_t)number;
        PREFETCH(&AT(of->table->pivots, number));
    }
    to->mass += mass;
}

/* Add the mass of a turn to itself and to the turns around it. */
static inline void add_turn(walk *of, int64_t number, int64_t times) {
    const rc_table *table = of->table;
    add_mass(of, number, times << BITS);
    sum_of(of, number)->own += times << BITS;
    int64_t lent = lent_by(times, AT(table->length, number));
    bool asks = AT(table->asks, number);
    int64_t there = AT(table->after, number);
    for (int step = 0; step < STEPS && is_turn_of(there, table); step++) {
        int64_t given = lent * lending_after(step, asks) / 10;
        if (given > 0) {
            add_mass(of, there, given);
        }
        there = AT(table->after, there);
    }
    there = AT(table->before, number);
    for (int step = 0; step < STEPS && is_turn_of(there, table); step++) {
        int64_t given = lent * lending_before(step) / 10;
        if (given > 0) {
            add_mass(of, there, given);
        }
        there = AT(table->before, there);
    }
}


/* Make room for a table. Returns 0, or RC_NO_MEMORY, and then there is no room for any. */
int walk_fit(rc_scratch *scratch, const rc_table *table);

/* Compute the shares of a term in documents that are not turns; `weight` is the term's weight times TOP. */
void plain_begin(const walk *of, plain_shares *shares, int64_t weight, int64_t occurrences);

/* Begin to walk all documents, or a part of them. Returns 0 or RC_NO_MEMORY. */
int walk_begin(walk *of, const rc_postings *postings, const rc_table *table, const rc_weights *weights,
               const rc_part *part, rc_scratch *scratch);

/* Add the shares of all terms, and the documents of `forced`. Their numbers are then in `scratch->touched`. Returns 0 or
   RC_LATE. */
int walk_all(walk *of, rc_ints forced);

/* Return the shares of a touched document, and clear its sums. */
rc_row walk_take(walk *of, int64_t number);

/* Clear the rest of the working memory. */
void walk_end(walk *of);

/* Make room for the blocks of a base, after that for its table. Returns 0, or RC_NO_MEMORY, and then there is no room
   for any. */
int walk_fit_blocks(rc_scratch *scratch, const rc_layout *layout);

/* Return the maximum weight of the documents in a block. */
static inline double weight_in(const rc_blocks *base, int64_t block) {
    return (double)AT(base->weights, block) / (1 << BITS);
}

/* Compute the upper bounds of the shares of a document, times its weight, in all blocks that a term reaches. Returns 0
   or RC_LATE. */
int bounds_add(const rc_postings *postings, const rc_table *table, const rc_weights *weights,
               const rc_blocks *base, const rc_summary *const *summaries, rc_scratch *scratch);

/* Return the bound of such a block. */
double bound_of(int64_t block, const rc_blocks *base, const rc_scratch *scratch);

/* Clear all bounds. */
void bounds_clear(rc_scratch *scratch);

/* Return the number of documents that a term reaches or that are in `more`, and are kept; or RC_NO_MEMORY. */
int64_t union_of(const rc_layout *layout, int64_t terms, const rc_summary *const *summaries, rc_ints more,
                 rc_octets kept);

/* Return the first index from `at` on whose flag is set, or the number of flags. */
static inline int64_t next_set(rc_flags flags, int64_t at) {
    const uint8_t *found = at < flags.count ? memchr(flags.at + at, true, (size_t)(flags.count - at)) : NULL;
    return found ? found - flags.at : flags.count;
}

#endif
