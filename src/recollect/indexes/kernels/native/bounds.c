/* Upper bounds of the shares in each block of the base: see `kernels.search`.
 *
 * They are computed in floating point, since they need not be exact: what rounding could take from them is added.
 */

#include "walk.h"

/* More than the relative error of some thousand steps in double precision. */
static const double MARGIN = 1.0 + 1e-9;

/* The counts of the current term that the tail adds to sessions. */
typedef struct {
    int64_t *counts;
    int32_t *met;
    int64_t size;
} later;

/* Add the bounds of the shares of a term in all sessions. */
static void add_sessions(double *sums, const rc_summary *summary, later *more, double weight, const rc_table *table) {
    for (int64_t at = 0; at < summary->sessions.count; at++) {
        int64_t session = AT(summary->sessions, at), count = AT(summary->times, at);
        if (more->size) {
            count += more->counts[session];
            more->counts[session] = 0;
        }
        double mass = (double)(least_of(count, SESSION_MOST_MASS) << BITS);
        sums[session] += weight * mass / (mass + (double)AT(table->session_pivots, session));
    }
    for (int64_t at = 0; at < more->size; at++) {  /* the sessions of the tail in which the base has not this term */
        int64_t session = more->met[at];
        double mass = (double)(least_of(more->counts[session], SESSION_MOST_MASS) << BITS);
        sums[session] += weight * mass / (mass + (double)AT(table->session_pivots, session));
        more->counts[session] = 0;
    }
}

/* Collect the counts of a term in the sessions of the tail. */
static void collect(later *more, rc_span tail, const rc_table *table) {
    more->size = 0;
    for (int64_t at = tail.begin; at < tail.end;) {
        int64_t number = document_of(AT(tail.column, at)), begin = at;
        at = past(tail.column, at, tail.end);
        int64_t session = AT(table->session, number);
        if (session != NONE && AT(table->alive, number)) {
            if (more->counts[session] == 0) {
                more->met[more->size++] = (int32_t)session;
            }
            more->counts[session] += least_of(at - begin, MOST_COUNT);
        }
    }
}

/* Add the share of a pair of terms once to each block with a document in which they are near each other. */
static void add_pair(double *sums, rc_span first, rc_span second, double share, int64_t block_bits) {
    int64_t one = first.begin, other = second.begin, last = NONE;
    while (one < first.end && other < second.end) {
        int64_t gap = AT(second.column, other) - AT(first.column, one);
        if (gap <= 0) {
            other = next_from(second.column, other, second.end, AT(first.column, one) + 1);
        } else if (gap > 2) {
            one = next_from(first.column, one, first.end, AT(second.column, other) - 2);
        } else {
            int64_t block = document_of(AT(first.column, one)) >> block_bits;
            sums[block] += block == last ? 0 : share;
            last = block;
            one++;
        }
    }
}

int bounds_of(const rc_postings *postings, const rc_table *table, const rc_weights *weights, const rc_layout *layout,
              const rc_summary *const *summaries, rc_ints bounds) {
    int64_t sessions = table->session_lengths.count, blocks = bounds.count;
    double *sums = calloc((size_t)(blocks + sessions + 1), sizeof(double)), *of_sessions = sums + blocks;
    later more = {calloc((size_t)sessions + 1, sizeof(int64_t)), calloc((size_t)sessions + 1, sizeof(int32_t)), 0};
    bool enough = sums && more.counts && more.met;
    double unit = (double)((int64_t)1 << SHARE_BITS) / (double)weights->whole * MARGIN;
    for (int64_t term = 0; enough && term < weights->terms.count; term++) {
        const rc_summary *summary = summaries[term];
        double weight = (double)(AT(weights->terms, term) * TOP) / TOP_BELOW * unit / (1 << RATIO_BITS);
        for (int64_t at = 0; at < summary->blocks.count; at++) {
            sums[AT(summary->blocks, at)] += weight * AT(summary->most, at);
        }
        if (weights->live_tokens && AT(weights->sessions, term)) {
            weight = (double)AT(weights->sessions, term) * SESSION_TOP / 10 * SESSION_SHARE / 100 * unit;
            collect(&more, span_of(postings, term, true), table);
            add_sessions(of_sessions, summary, &more, weight, table);
        }
    }
    for (int64_t pair = 0; enough && pair < weights->pairs.count; pair += 3) {
        rc_span first = span_of(postings, AT(weights->pairs, pair), false);
        rc_span second = span_of(postings, AT(weights->pairs, pair + 1), false);
        add_pair(sums, first, second, (double)AT(weights->pairs, pair + 2) * MARGIN, layout->bits);
    }
    for (int64_t block = 0; enough && block < blocks; block++) {
        double most = 0;
        if (sums[block] > 0) {
            for (int64_t at = AT(layout->starts, block); at < AT(layout->starts, block + 1); at++) {
                int64_t session = AT(layout->sessions, at);
                most = session != NONE && of_sessions[session] > most ? of_sessions[session] : most;
            }
            most += sums[block] + 1;
        }
        AT(bounds, block) = (int64_t)most;
    }
    free(sums);
    free(more.counts);
    free(more.met);
    return enough ? 0 : RC_NO_MEMORY;
}

int64_t rc_summarize(rc_ints occurrences, const rc_table *table, int32_t is_title, int64_t block_bits,
                     rc_scratch *scratch, rc_shorts most, rc_numbers counts, rc_flags reached) {
    if (walk_fit(scratch, table)) {
        return RC_NO_MEMORY;
    }
    int64_t least = (int64_t)1 << RATIO_BITS;
    walk of = {NULL, table, NULL, NULL, scratch, 0, 0, 0, 0, 0, 0, {NULL, 0}};
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
        AT(most, number >> block_bits) = (uint16_t)most_of(AT(most, number >> block_bits), ratio + 1);
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
