/* Upper bounds of the shares in the blocks of the base: see `kernels.interface`.
 *
 * They are computed in floating point, since they need not be exact: what rounding could take from them is added. Only
 * blocks that a term reaches are visited.
 */

#include "rank.h"
#include "walk.h"

/* Add to the bound of a block. */
static inline void raise(rc_scratch *scratch, int64_t block, double by) {
    if (scratch->bounds[block] == 0) {
        scratch->bounded[scratch->bounded_count++] = (int32_t)block;
    }
    scratch->bounds[block] += by;
}

static inline void raise_session(rc_scratch *scratch, int64_t session, double by) {
    if (scratch->session_bounds[session] == 0) {
        scratch->bounded_sessions[scratch->bounded_session_count++] = (int32_t)session;
    }
    scratch->session_bounds[session] += by;
}

static inline double session_ratio(int64_t count, int64_t session, const rc_table *table) {
    double mass = (double)(least_of(count, SESSION_MOST_MASS) << BITS);
    return mass / (mass + (double)AT(table->session_pivots, session));
}

/* Collect the counts of a term in the sessions of the tail; returns the number of these sessions, which are in `met`. */
static int64_t collect(rc_scratch *scratch, rc_span tail, const rc_table *table) {
    int64_t size = 0;
    for (int64_t at = tail.begin; at < tail.end;) {
        int64_t number = document_of(AT(tail.column, at)), begin = at;
        at = past(tail.column, at, tail.end);
        int64_t session = AT(table->session, number);
        if (session != NONE && AT(table->alive, number)) {
            if (scratch->masses[session] == 0) {
                scratch->met[size++] = (int32_t)session;
            }
            scratch->masses[session] += least_of(at - begin, MOST_COUNT);
        }
    }
    return size;
}

/* Add the bounds of the shares of a term in all sessions. */
static void add_sessions(rc_scratch *scratch, const rc_summary *summary, rc_span tail, double weight,
                         const rc_table *table) {
    int64_t size = collect(scratch, tail, table);
    for (int64_t at = 0; at < summary->sessions.count; at++) {
        int64_t session = AT(summary->sessions, at), count = AT(summary->times, at);
        if (size) {
            count += scratch->masses[session];
            scratch->masses[session] = 0;
        }
        raise_session(scratch, session, weight * session_ratio(count, session, table));
    }
    for (int64_t at = 0; at < size; at++) {  /* the sessions of the tail in which the base has not this term */
        int64_t session = scratch->met[at];
        if (scratch->masses[session]) {
            raise_session(scratch, session, weight * session_ratio(scratch->masses[session], session, table));
            scratch->masses[session] = 0;
        }
    }
}

/* Add the share of a pair of terms once to each block with a document in which they are near each other. */
static void add_pair(rc_scratch *scratch, rc_span first, rc_span second, double share, const rc_blocks *base) {
    int64_t one = first.begin, other = second.begin, last = NONE;
    while (one < first.end && other < second.end) {
        int64_t gap = AT(second.column, other) - AT(first.column, one);
        if (gap <= 0) {
            other = next_from(second.column, other, second.end, AT(first.column, one) + 1);
        } else if (gap > 2) {
            one = next_from(first.column, one, first.end, AT(second.column, other) - 2);
        } else {
            int64_t block = document_of(AT(first.column, one)) >> base->layout->bits;
            if (block != last) {
                raise(scratch, block, share * weight_in(base, block));
            }
            last = block;
            one++;
        }
    }
}

int bounds_add(const rc_postings *postings, const rc_table *table, const rc_weights *weights, const rc_blocks *base,
               const rc_summary *const *summaries, rc_scratch *scratch) {
    double unit = (double)((int64_t)1 << SHARE_BITS) / (double)weights->whole * MARGIN;
    for (int64_t term = 0; term < weights->terms.count; term++) {
        const rc_summary *summary = summaries[term];
        if (is_late(postings->until)) {
            return RC_LATE;
        }
        double weight = (double)(AT(weights->terms, term) * TOP) / TOP_BELOW * unit / (1 << WEIGHED_BITS);
        for (int64_t at = 0; at < summary->blocks.count; at++) {
            raise(scratch, AT(summary->blocks, at), weight * AT(summary->most, at));
        }
        if (weights->live_tokens && AT(weights->sessions, term)) {
            weight = (double)AT(weights->sessions, term) * SESSION_TOP / 10 * SESSION_SHARE / 100 * unit;
            add_sessions(scratch, summary, span_of(postings, term, true), weight, table);
        }
    }
    for (int64_t pair = 0; pair < weights->pairs.count; pair += 3) {
        rc_span first = span_of(postings, AT(weights->pairs, pair), false);
        rc_span second = span_of(postings, AT(weights->pairs, pair + 1), false);
        if (is_late(postings->until)) {
            return RC_LATE;
        }
        add_pair(scratch, first, second, (double)AT(weights->pairs, pair + 2) * MARGIN, base);
    }
    return 0;
}

double bound_of(int64_t block, const rc_blocks *base, const rc_scratch *scratch) {
    const rc_layout *layout = base->layout;
    double most = 0;
    for (int64_t at = AT(layout->starts, block); at < AT(layout->starts, block + 1); at++) {
        int64_t session = AT(layout->sessions, at);
        if (session != NONE && scratch->session_bounds[session] > most) {
            most = scratch->session_bounds[session];
        }
    }
    return scratch->bounds[block] + most * weight_in(base, block) + 1;
}

void bounds_clear(rc_scratch *scratch) {
    for (int64_t at = 0; at < scratch->bounded_count; at++) {
        scratch->bounds[scratch->bounded[at]] = 0;
    }
    for (int64_t at = 0; at < scratch->bounded_session_count; at++) {
        scratch->session_bounds[scratch->bounded_sessions[at]] = 0;
    }
    scratch->bounded_count = scratch->bounded_session_count = 0;
}

int64_t rc_summarize(rc_ints occurrences, const rc_table *table, int32_t is_title, int64_t block_bits,
                     rc_scratch *scratch, rc_shorts most, rc_numbers counts, rc_flags reached) {
    if (walk_fit(scratch, table)) {
        return RC_NO_MEMORY;
    }
    int64_t least = (int64_t)1 << RATIO_BITS;
    walk of = {NULL, table, NULL, NULL, scratch, 0, 0, 0, 0, 0, 0, {NULL, 0}, 0, NULL};
    for (int64_t at = 0; at < occurrences.count;) {
        int64_t number = document_of(AT(occurrences, at)), begin = at;
        at = past(occurrences, at, occurrences.count);
        int64_t times = least_of(at - begin, MOST_COUNT), session = AT(table->session, number);
        if (is_title) {
            add_mass(&of, number, TITLE_MASS);
        } else if (session == NONE) {
            add_mass(&of, number, times << BITS);
        } else {
            AT(counts, session) += (int32_t)times;
            add_turn(&of, number, times);
        }
    }
    for (int64_t place = 0; place < of.reached; place++) {
        int64_t number = scratch->reach[place], mass = scratch->sums[number].mass;
        int64_t below = mass + pivot_of(number, table);
        int64_t ratio = quotient(mass << RATIO_BITS, below, 1.0 / (double)below);
        scratch->sums[number].mass = scratch->sums[number].own = 0;
        least = least_of(least, ratio);
        int64_t weighed = ((ratio + 1) * AT(table->weight, number) >> (BITS + RATIO_BITS - WEIGHED_BITS)) + 1;
        AT(most, number >> block_bits) = (uint16_t)most_of(AT(most, number >> block_bits), weighed);
        AT(reached, number) = true;
    }
    return least;
}

int64_t union_of(const rc_layout *layout, int64_t terms, const rc_summary *const *summaries, rc_ints more,
                 rc_octets kept) {
    rc_octets bits = {calloc((size_t)kept.count + 1, 1), kept.count};
    if (!bits.at) {
        return RC_NO_MEMORY;
    }
    for (int64_t term = 0; term < terms; term++) {
        const rc_summary *summary = summaries[term];
        for (int64_t at = 0; at < summary->bits.count; at++) {
            AT(bits, at) |= AT(summary->bits, at);
        }
        for (int64_t at = 0; at < summary->reached.count; at++) {
            int64_t number = AT(summary->reached, at);
            AT(bits, number >> 3) |= (uint8_t)(0x80 >> (number & 7));
        }
    }
    for (int64_t at = 0; at < more.count; at++) {
        int64_t number = AT(more, at);
        if (number < layout->documents) {
            AT(bits, number >> 3) |= (uint8_t)(0x80 >> (number & 7));
        }
    }
    int64_t count = 0;
    for (int64_t at = 0; at < bits.count; at++) {
        uint8_t octet = AT(bits, at) & AT(kept, at);
        octet = (uint8_t)(octet - ((octet >> 1) & 0x55));
        octet = (uint8_t)((octet & 0x33) + ((octet >> 2) & 0x33));
        count += (octet + (octet >> 4)) & 0x0F;
    }
    free(bits.at);
    return count;
}
