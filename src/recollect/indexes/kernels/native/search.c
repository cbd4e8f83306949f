/* The best documents of a question, block by block: see `kernels.search`, and `kernels.numpy_search` for the same in
 * NumPy.
 *
 * The blocks are computed in the order of their limits, the greatest first, in groups of growing size, until the limit
 * of the next one is below the worst of the best so far.
 */

#include "rank.h"
#include "walk.h"

/* Number of blocks in the first group. Each further group has twice as many. */
enum { FIRST_GROUP = 16 };

/* The state of a search. */
typedef struct {
    const rc_postings *postings;
    const rc_table *table;
    const rc_weights *weights;
    const rc_about *about;
    const rc_blocks *base;
    const rc_changes *changes;
    const rc_wanted *wanted;
    rc_scratch *scratch;
    rc_found *found;
    heap best, standing;
    int64_t passed;  /* of the documents in blocks with changes and in the tail */
} search;

static inline int64_t bar_of(const heap *of) { return of->size < of->wanted ? 1 : of->wanted ? of->totals[0] : INT64_MAX; }

/* Return the maximum factor of the documents in a block. */
static int64_t factor_in(const search *of, int64_t block) {
    int64_t factor = AT(of->base->weights, block), kinds = AT(of->base->offers, block) & of->about->kinds;
    if (of->wanted->speakers.count && AT(of->wanted->speakers, block)) {
        factor = most_of(factor, factor * of->about->favour >> BITS);
    }
    for (size_t at = 0; kinds && at < sizeof(FACTORS) / sizeof(*FACTORS); at++) {
        if ((kinds & FACTORS[at][0]) && FACTORS[at][1] > FACTORS[at][2]) {
            factor = factor * FACTORS[at][1] / FACTORS[at][2];
        }
    }
    return factor;
}

/* Return the share of a document that the extras admit; -1 for others. */
static int64_t forced_share(const rc_wanted *wanted, int64_t number) {
    int64_t low = 0, high = wanted->forced.count;
    while (low < high) {
        int64_t middle = (low + high) >> 1;
        if (AT(wanted->forced, middle) < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < wanted->forced.count && AT(wanted->forced, low) == number ? AT(wanted->forced_shares, low) : -1;
}

/* Keep a document if it can be among the best. Returns 0 or RC_NO_MEMORY. */
static int offer_row(search *of, rc_row row) {
    const rc_wanted *wanted = of->wanted;
    int64_t least = 0, most = 0, forced = wanted->forced.count ? forced_share(wanted, row.number) : -1;
    if (!row.words && !row.trigram && !row.context && !row.title && forced < 0) {
        return 0;
    }
    if (wanted->among.count && !AT(wanted->among, row.number)) {
        return 0;
    }
    int64_t block = row.number >> of->base->layout->bits;
    bool in_tail = row.number >= of->base->layout->documents;
    of->passed += in_tail || AT(of->changes->blocks, block);
    if (forced >= 0) {
        least = most = forced;
    } else if (wanted->most.count) {  /* in the tail: of any day */
        least = in_tail ? 0 : AT(wanted->least, block);
        most = in_tail ? wanted->greatest : AT(wanted->most, block);
    }
    int64_t factor = factor_of(row.number, of->table, of->about);
    int64_t total = (row.words * factor >> BITS) + (row.trigram * factor >> BITS) + (row.context * factor >> BITS) +
                    (row.session * factor >> BITS) + (row.pair * factor >> BITS) + (row.title * factor >> BITS);
    /* The parts of an extra share are rounded down one by one. */
    int64_t lower = total + most_of((least * factor >> BITS) - 1, 0), upper = total + (most * factor >> BITS);
    bool stands = AT(of->table->standing, row.number) != 0;
    if (upper < bar_of(&of->best) && !(stands && upper >= bar_of(&of->standing))) {
        return 0;
    }
    if (of->found->count == of->found->room) {
        int64_t room = of->found->room * 2 + 256;
        rc_row *more = realloc(of->found->at, (size_t)room * sizeof(rc_row));
        if (!more) {
            return RC_NO_MEMORY;
        }
        of->found->at = more;
        of->found->room = room;
    }
    of->found->at[of->found->count++] = row;
    if (lower > 0) {
        offer(&of->best, lower, 0);
        if (stands) {
            offer(&of->standing, lower, 0);
        }
    }
    return 0;
}

/* Compute the shares of the documents in a part. Returns 0 or RC_NO_MEMORY. */
static int compute(search *of, const rc_part *part) {
    walk walked;
    int status = walk_begin(&walked, of->postings, of->table, of->weights, part, of->scratch);
    if (status) {
        return status;
    }
    walk_all(&walked, of->wanted->forced);
    for (int64_t place = 0; place < walked.touched; place++) {
        rc_row row = walk_take(&walked, of->scratch->touched[place]);
        status = status ? status : offer_row(of, row);
    }
    walk_end(&walked);
    return status;
}

/* A block that can have one of the best. */
typedef struct {
    int64_t limit, block;
} candidate;

/* Move the root of a heap of candidates, the greatest limit on top, to its place. */
static void sift(candidate *heap, int64_t size, int64_t at) {
    candidate moved = heap[at];
    for (int64_t down = 2 * at + 1; down < size; down = 2 * at + 1) {
        if (down + 1 < size && heap[down + 1].limit > heap[down].limit) {
            down++;
        }
        if (heap[down].limit <= moved.limit) {
            break;
        }
        heap[at] = heap[down];
        at = down;
    }
    heap[at] = moved;
}

/* Return the lenders of a group's blocks that are not next to them, in `out`, ascending; some may occur twice. */
static rc_ints lenders_of(const search *of, const rc_flags inside, const rc_ints more, int64_t *out) {
    rc_ints far = of->base->far_blocks;
    rc_ints found = {out, 0};
    for (int64_t at = 0; at < far.count; at++) {
        if (AT(inside, AT(far, at))) {
            out[found.count++] = AT(of->base->far_lenders, at);
        }
    }
    for (int64_t at = 0; at < more.count; at++) {
        out[found.count++] = AT(more, at);
    }
    /* Mostly none, or ascending already: insertion, which is fast then, or else a sort. */
    for (int64_t at = 1; at < found.count; at++) {
        int64_t value = out[at], to = at;
        for (; to > 0 && out[to - 1] > value; to--) {
            out[to] = out[to - 1];
        }
        out[to] = value;
    }
    return found;
}

/* The arrays of a search, in one piece of memory. */
typedef struct {
    rc_ints bounds;
    candidate *candidates;
    rc_flags inside;
    int64_t *lenders;
} arrays;

static int compute_blocks(search *of, arrays *with) {
    const rc_layout *layout = of->base->layout;
    const rc_wanted *wanted = of->wanted;
    const rc_ints nothing = {NULL, 0};
    int64_t blocks = with->bounds.count, size = 0;
    /* First the blocks with changes, with the tail. */
    rc_part part = {layout, of->changes->blocks, nothing, of->changes->dead, of->changes->tail_sessions, true,
                    wanted->summaries};
    if (of->changes->any) {
        part.lenders = lenders_of(of, part.inside, of->changes->lenders, with->lenders);
        int status = compute(of, &part);
        if (status) {
            return status;
        }
    }
    for (int64_t block = 0; block < blocks; block++) {
        if (AT(with->bounds, block) == 0 || AT(of->changes->blocks, block)) {
            continue;
        }
        candidate each = {AT(with->bounds, block) * factor_in(of, block) >> BITS, block};
        with->candidates[size++] = each;
    }
    /* Blocks with standing records come first, in the order of their bounds, as long as they can have one of the best
       of these. */
    part.inside = with->inside;
    part.with_tail = false;
    for (int pass = 0; pass < 2; pass++) {
        candidate *order = with->candidates;
        int64_t left = size;
        if (pass == 0) {
            order += size;
            left = 0;
            for (int64_t at = 0; at < wanted->standing.count; at++) {
                int64_t block = AT(wanted->standing, at);
                candidate each = {AT(with->bounds, block) * wanted->standing_factor >> BITS, block};
                if (each.limit > 0 && !AT(of->changes->blocks, block)) {
                    order[left++] = each;
                }
            }
        }
        for (int64_t at = left / 2 - 1; at >= 0; at--) {
            sift(order, left, at);
        }
        const heap *bar = pass == 0 ? &of->standing : &of->best;
        for (int64_t group = pass == 0 ? of->standing.wanted : FIRST_GROUP; left > 0; group *= 2) {
            int64_t chosen = 0;
            while (left > 0 && chosen < group && order[0].limit >= bar_of(bar)) {
                int64_t block = order[0].block;
                order[0] = order[--left];
                sift(order, left, 0);
                if (AT(with->bounds, block) != -1) {  /* not computed yet */
                    AT(with->bounds, block) = -1;
                    AT(with->inside, block) = true;
                    chosen++;
                }
            }
            if (chosen == 0) {
                break;
            }
            part.lenders = lenders_of(of, part.inside, nothing, with->lenders);
            int status = compute(of, &part);
            if (status) {
                return status;
            }
            memset(with->inside.at, 0, (size_t)with->inside.count);
        }
    }
    return 0;
}

int64_t rc_search(const rc_postings *postings, const rc_table *table, const rc_weights *weights, const rc_about *about,
                  const rc_blocks *base, const rc_changes *changes, const rc_wanted *wanted, rc_scratch *scratch,
                  rc_found *found) {
    int64_t blocks = base->layout->starts.count - 1;
    search of = {postings, table, weights, about, base, changes, wanted, scratch, found, {0}, {0}, 0};
    arrays with = {{malloc((size_t)(blocks + 1) * sizeof(int64_t)), blocks},
                   malloc((size_t)(blocks + wanted->standing.count + 1) * sizeof(candidate)),
                   {calloc((size_t)blocks + 1, 1), blocks},
                   malloc((size_t)(base->far_blocks.count + changes->lenders.count + 1) * sizeof(int64_t))};
    bool enough = with.bounds.at && with.candidates && with.inside.at && with.lenders &&
                  heap_new(&of.best, wanted->best_count) && heap_new(&of.standing, wanted->standing_count);
    int64_t status = enough ? bounds_of(postings, table, weights, base->layout, wanted->summaries, with.bounds)
                            : RC_NO_MEMORY;
    if (!status && wanted->most.count) {
        for (int64_t block = 0; block < blocks; block++) {
            AT(with.bounds, block) += AT(with.bounds, block) ? AT(wanted->most, block) : 0;
        }
        int64_t last = NONE, most = 0;
        for (int64_t at = 0; at < wanted->forced.count && AT(wanted->forced, at) < base->layout->documents; at++) {
            int64_t block = AT(wanted->forced, at) >> base->layout->bits;
            int64_t share = AT(wanted->forced_shares, at) + 1;  /* above 0, so that the block can have hits */
            most = block == last ? most : 0;
            AT(with.bounds, block) += most_of(share - most, 0);
            most = most_of(share, most);
            last = block;
        }
    }
    if (!status) {
        status = compute_blocks(&of, &with);
    }
    if (!status) {
        status = union_of(base->layout, weights->terms.count, wanted->summaries, wanted->forced, wanted->kept);
    }
    free(with.bounds.at);
    free(with.candidates);
    free(with.inside.at);
    free(with.lenders);
    free(of.best.totals);
    free(of.standing.totals);
    return status < 0 ? status : status + of.passed;
}
