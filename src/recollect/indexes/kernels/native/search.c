/* The best documents of a question, block by block: see `kernels.interface`, and `kernels.numpy_search` for the same in
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
    double factor;   /* the maximum factor of a document of weight 1 */
    int64_t passed;  /* number of hits outside of the blocks without changes */
} search;

static inline int64_t bar_of(const heap *of) { return of->size < of->wanted ? 1 : of->wanted ? of->totals[0] : INT64_MAX; }

/* Return the total that a document needs to be among the best. */
static inline int64_t bar_for(const search *of, int64_t number) {
    int64_t bar = bar_of(&of->best);
    return AT(of->table->standing, number) ? least_of(bar, bar_of(&of->standing)) : bar;
}

/* Return an upper bound of the totals in a block. */
static int64_t limit_of(const search *of, int64_t block) {
    bool has_speaker = of->wanted->speakers.count && AT(of->wanted->speakers, block);
    double factor = greatest_factor(of->about, has_speaker, AT(of->base->offers, block) & of->about->kinds);
    return (int64_t)(bound_of(block, of->base, of->scratch) * factor) + 1;
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
static int offer_row(search *of, rc_row row, bool in_all) {
    const rc_wanted *wanted = of->wanted;
    int64_t least = 0, most = 0, forced = wanted->forced.count ? forced_share(wanted, row.number) : -1;
    if (!row.words && !row.trigram && !row.context && !row.title && forced < 0) {
        return 0;
    }
    if (wanted->among.count && !AT(wanted->among, row.number)) {
        return 0;
    }
    of->passed += in_all;
    if (forced >= 0) {
        least = most = forced;
    } else if (wanted->greatest && of->base && row.number < of->base->layout->documents) {
        least = AT(wanted->least, row.number >> of->base->layout->bits);
        most = AT(wanted->most, row.number >> of->base->layout->bits);
    } else {
        most = wanted->greatest;
    }
    int64_t near = wanted->near.count ? AT(wanted->near, row.number) : 0;
    least += near;
    most += near;
    int64_t bar = bar_for(of, row.number);
    int64_t shares = row.words + row.trigram + row.context + row.session + row.pair + row.title + most;
    if (most_total(shares, row.number, of->table, of->factor) < (double)bar) {
        return 0;
    }
    int64_t factor = factor_of(row.number, of->table, of->about);
    int64_t total = (row.words * factor >> BITS) + (row.trigram * factor >> BITS) + (row.context * factor >> BITS) +
                    (row.session * factor >> BITS) + (row.pair * factor >> BITS) + (row.title * factor >> BITS);
    /* The parts of an extra share are rounded down one by one. */
    int64_t lower = total + most_of((least * factor >> BITS) - 1, 0), upper = total + (most * factor >> BITS);
    if (upper < bar) {
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
        if (AT(of->table->standing, row.number)) {
            offer(&of->standing, lower, 0);
        }
    }
    return 0;
}

/* Keep the touched documents that can be among the best, and clear the sums. Returns 0 or RC_NO_MEMORY. */
static int offer_touched(search *of, walk *walked, bool in_all) {
    const rc_wanted *wanted = of->wanted;
    const rc_table *table = of->table;
    int status = 0;
    for (int64_t place = 0; place < walked->touched; place++) {
        int64_t number = of->scratch->touched[place];
        sum *from = sum_of(walked, number);
        int64_t session = table->has_turns ? AT(table->session, number) : NONE;
        int64_t near = wanted->near.count ? AT(wanted->near, number) : 0;
        int64_t raw = (int64_t)from->words + from->trigram + from->context + from->title + wanted->greatest + near +
                      of->scratch->near[number - walked->first] +
                      (session == NONE ? 0 : of->scratch->session_sums[session]);
        /* Most cannot: decide that before all else. */
        if (!wanted->forced.count && most_total(raw, number, table, of->factor) < (double)bar_for(of, number)) {
            of->passed += in_all && has_share(from) && (!wanted->among.count || AT(wanted->among, number));
            memset(from, 0, sizeof(*from));
            of->scratch->near[number - walked->first] = 0;
            continue;
        }
        rc_row row = walk_take(walked, number);
        status = status ? status : offer_row(of, row, in_all);
    }
    walked->touched = 0;
    return status;
}

/* Compute the shares of the documents in a part, or of all. Returns 0, RC_NO_MEMORY or RC_LATE. */
static int compute(search *of, const rc_part *part) {
    walk walked;
    int status = walk_begin(&walked, of->postings, of->table, of->weights, part, of->scratch);
    if (status) {
        return status;
    }
    status = walk_all(&walked, of->wanted->forced);
    status = status ? status : offer_touched(of, &walked, !part || part->with_tail);
    walk_end(&walked);
    return status;
}

/* Number of documents whose sums are in the processor's cache at the same time. */
enum { WINDOW = 4096 };

/* Compute the shares of all documents, none of which is a turn: a window of documents at a time, since none lends to
   another. Returns 0, RC_NO_MEMORY or RC_LATE. */
static int compute_plain(search *of) {
    const rc_postings *postings = of->postings;
    int64_t terms = of->weights->terms.count, count = of->table->count, forced = 0;
    walk walked;
    int status = walk_begin(&walked, postings, of->table, of->weights, NULL, of->scratch);
    plain_shares *plain = calloc((size_t)terms + 1, sizeof(plain_shares));
    rc_ints spans = {malloc((size_t)(terms + 1) * 4 * sizeof(int64_t)), 4 * terms};
    status = status || !plain || !spans.at ? RC_NO_MEMORY : 0;
    for (int64_t term = 0; !status && term < terms; term++) {
        memcpy(&AT(spans, 4 * term), &AT(postings->spans, 4 * term), 4 * sizeof(int64_t));
        int64_t occurrences = AT(spans, 4 * term + 1) - AT(spans, 4 * term) + AT(spans, 4 * term + 3) -
                              AT(spans, 4 * term + 2);
        plain_begin(&walked, &plain[term], AT(of->weights->terms, term) * TOP, occurrences);
    }
    rc_postings window = {postings->base, postings->tail, spans, postings->lengths, postings->until};
    walked.postings = &window;
    walked.plain = plain;
    for (int64_t begin = 0; !status && begin < count; begin += WINDOW) {
        bool some = false;
        for (int64_t at = 0; at < 4 * terms; at += 2) {
            rc_ints column = at % 4 ? postings->tail : postings->base;
            AT(spans, at + 1) = next_from(column, AT(spans, at), AT(postings->spans, at + 1), first_of(begin + WINDOW));
            some |= AT(spans, at + 1) > AT(spans, at);
        }
        int64_t from = forced;
        while (forced < of->wanted->forced.count && AT(of->wanted->forced, forced) < begin + WINDOW) {
            forced++;
        }
        if (some || forced > from) {
            rc_ints here = PART(of->wanted->forced, from, forced);
            walked.first = begin;
            status = walk_all(&walked, here);
            status = status ? status : offer_touched(of, &walked, true);
        }
        for (int64_t at = 0; at < 4 * terms; at += 2) {
            AT(spans, at) = AT(spans, at + 1);
        }
    }
    walk_end(&walked);
    free(plain);
    free(spans.at);
    return status;
}

/* Move the root of a heap of candidates, the greatest limit on top, to its place. */
static void sift(rc_candidate *heap, int64_t size, int64_t at) {
    rc_candidate moved = heap[at];
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

static int compared(const void *one, const void *other) {
    int64_t first = *(const int64_t *)one, second = *(const int64_t *)other;
    return (first > second) - (first < second);
}

/* Return the lenders of a group's blocks that are not next to them, in `out`, ascending; some may occur twice. */
static rc_ints lenders_of(const search *of, const rc_flags inside, const rc_ints more, int64_t *out) {
    rc_ints far = of->base->far_blocks, found = {out, 0};
    int64_t at = 0;
    for (int64_t block = next_set(inside, 0); at < far.count && block < inside.count; block = next_set(inside, block + 1)) {
        at = next_from(far, at, far.count, block);
        for (; at < far.count && AT(far, at) == block; at++) {
            out[found.count++] = AT(of->base->far_lenders, at);
        }
    }
    for (int64_t place = 0; place < more.count; place++) {
        out[found.count++] = AT(more, place);
    }
    for (int64_t place = 1; place < found.count; place++) {
        if (out[place - 1] > out[place]) {
            qsort(out, (size_t)found.count, sizeof(int64_t), compared);
            break;
        }
    }
    return found;
}

/* Compute a group of blocks, with the tail or not. Returns 0, RC_NO_MEMORY or RC_LATE. */
static int compute_group(search *of, rc_flags inside, const rc_ints more, bool with_tail, int64_t *lenders) {
    rc_part part = {of->base->layout, inside, lenders_of(of, inside, more, lenders), of->changes->dead,
                    of->changes->tail_sessions, with_tail, of->wanted->summaries};
    return compute(of, &part);
}

/* Compute the blocks of some candidates in the order of their limits, as long as these can have one of the best, in
   groups of which the first has `group` blocks. Returns 0, RC_NO_MEMORY or RC_LATE. */
static int compute_in_order(search *of, rc_candidate *order, int64_t left, int64_t group, const heap *best,
                            int64_t *lenders) {
    rc_scratch *scratch = of->scratch;
    const rc_ints nothing = {NULL, 0};
    rc_flags inside = {scratch->inside, of->base->layout->starts.count - 1};
    for (int64_t at = left / 2 - 1; at >= 0; at--) {
        sift(order, left, at);
    }
    for (; left > 0; group *= 2) {
        int64_t chosen = 0, taken = left;
        while (left > 0 && chosen < group && order[0].limit >= bar_of(best)) {
            rc_candidate next = order[0];
            order[0] = order[--left];
            sift(order, left, 0);
            order[left] = next;
            if (!scratch->done[next.block]) {
                scratch->done[next.block] = AT(inside, next.block) = true;
                chosen++;
            }
        }
        if (chosen == 0) {
            return 0;
        }
        int status = compute_group(of, inside, nothing, false, lenders);
        for (int64_t at = left; at < taken; at++) {
            AT(inside, order[at].block) = false;
        }
        if (status) {
            return status;
        }
    }
    return 0;
}

/* Raise the bounds of blocks by the shares of meaning. Those are hits only by other shares, or if they are forced. */
static void add_near(const rc_wanted *wanted, const rc_layout *layout, const rc_table *table, rc_scratch *scratch) {
    int64_t last = NONE;
    double most = 0;
    for (int64_t at = 0; at < wanted->close.count && AT(wanted->close, at) < layout->documents; at++) {
        int64_t number = AT(wanted->close, at), block = number >> layout->bits;
        double share = (double)AT(wanted->near, number) * AT(table->weight, number) / (1 << BITS);
        most = block == last ? most : 0;
        if (share > most && scratch->bounds[block] > 0) {
            scratch->bounds[block] += share - most;
            most = share;
        }
        last = block;
    }
}

/* Raise the bounds of blocks by the extra shares, also of blocks that no term reaches. */
static void add_extras(const rc_wanted *wanted, const rc_blocks *base, const rc_table *table, rc_scratch *scratch) {
    const rc_layout *layout = base->layout;
    if (!wanted->most.count) {
        return;
    }
    for (int64_t at = 0; at < scratch->bounded_count; at++) {
        int64_t block = scratch->bounded[at];
        scratch->bounds[block] += (double)AT(wanted->most, block) * weight_in(base, block);
    }
    int64_t last = NONE;
    double most = 0;
    for (int64_t at = 0; at < wanted->forced.count && AT(wanted->forced, at) < layout->documents; at++) {
        int64_t number = AT(wanted->forced, at), block = number >> layout->bits;
        double share = (double)(AT(wanted->forced_shares, at) * AT(table->weight, number)) / (1 << BITS);
        share += 1;  /* above 0, so that the block can have hits */
        most = block == last ? most : 0;
        if (share > most) {
            if (scratch->bounds[block] == 0) {
                scratch->bounded[scratch->bounded_count++] = (int32_t)block;
            }
            scratch->bounds[block] += share - most;
            most = share;
        }
        last = block;
    }
}

/* Return whether a block has a document that may be a hit. */
static bool may_have_hits(const search *of, int64_t block) {
    rc_octets kept = of->wanted->kept;
    int64_t bits = of->base->layout->bits, end = least_of((((block + 1) << bits) + 7) >> 3, kept.count);
    for (int64_t at = block << bits >> 3; at < end; at++) {
        if (AT(kept, at)) {
            return true;
        }
    }
    return false;
}

static int compute_blocks(search *of, int64_t *lenders) {
    rc_scratch *scratch = of->scratch;
    const rc_wanted *wanted = of->wanted;
    /* First the blocks with changes, with the tail. */
    int status = of->changes->any ? compute_group(of, of->changes->blocks, of->changes->lenders, true, lenders) : 0;
    if (status) {
        return status;
    }
    rc_candidate *order = scratch->candidates, *of_standing = order + scratch->blocks;
    int64_t size = 0, standing = 0;
    for (int64_t at = 0; at < scratch->bounded_count; at++) {
        int64_t block = scratch->bounded[at];
        if (!AT(of->changes->blocks, block) && (!wanted->among.count || may_have_hits(of, block))) {
            rc_candidate each = {limit_of(of, block), block};
            order[size++] = each;
        }
    }
    for (int64_t at = 0; at < wanted->standing.count; at++) {
        int64_t block = AT(wanted->standing, at);
        if (scratch->bounds[block] > 0 && !AT(of->changes->blocks, block)) {
            rc_candidate each = {limit_of(of, block), block};
            of_standing[standing++] = each;
        }
    }
    status = compute_in_order(of, of_standing, standing, of->standing.wanted, &of->standing, lenders);
    return status ? status : compute_in_order(of, order, size, FIRST_GROUP, &of->best, lenders);
}

// Returns the number of documents that are reached: `status` and those that were counted while searching.
static int64_t search_end(search *of, int64_t status) {
    free(of->best.totals);
    free(of->standing.totals);
    if (status < 0) {
        rc_release(of->found);
        return status;
    }
    return status + of->passed;
}

int64_t rc_search(const rc_postings *postings, const rc_table *table, const rc_weights *weights, const rc_about *about,
                  const rc_blocks *base, const rc_changes *changes, const rc_wanted *wanted, rc_scratch *scratch,
                  rc_found *found) {
    search of = {postings, table, weights, about, base, changes, wanted, scratch, found, {0}, {0},
                 greatest_of_all(about), 0};
    if (!base) {
        int status = heap_new(&of.best, wanted->best_count) && heap_new(&of.standing, wanted->standing_count)
                         ? table->has_turns ? compute(&of, NULL) : compute_plain(&of)
                         : RC_NO_MEMORY;
        return search_end(&of, status);
    }
    int64_t *lenders = malloc((size_t)(base->far_blocks.count + changes->lenders.count + 1) * sizeof(int64_t));
    bool enough = lenders && !walk_fit(scratch, table) && !walk_fit_blocks(scratch, base->layout) &&
                  heap_new(&of.best, wanted->best_count) && heap_new(&of.standing, wanted->standing_count);
    int64_t status = enough ? 0 : RC_NO_MEMORY;
    if (enough) {
        status = bounds_add(postings, table, weights, base, wanted->summaries, scratch);
        if (!status) {
            add_extras(wanted, base, table, scratch);
            add_near(wanted, base->layout, table, scratch);
            status = compute_blocks(&of, lenders);
        }
        for (int64_t at = 0; at < scratch->bounded_count; at++) {
            scratch->done[scratch->bounded[at]] = false;
        }
        bounds_clear(scratch);
    }
    if (!status) {
        status = union_of(base->layout, weights->terms.count, wanted->summaries, wanted->forced, wanted->kept);
    }
    free(lenders);
    return search_end(&of, status);
}
