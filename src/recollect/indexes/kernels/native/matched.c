/* What is read from postings without adding up shares: counts of terms, and the shares of each term in some documents. */

#include "clock.h"
#include "score.h"

int rc_tally(const rc_postings *postings, const rc_table *table, rc_ints out) {
    int32_t *stamps = calloc((size_t)table->session_lengths.count + 1, sizeof(int32_t));
    if (!stamps) {
        return RC_NO_MEMORY;
    }
    for (int64_t term = 0; term < postings->spans.count / 4; term++) {
        if ((term & 3) == 0 && is_late(postings->until)) {
            free(stamps);
            return RC_LATE;
        }
        for (int in_tail = 0; in_tail < 2; in_tail++) {
            rc_span span = span_of(postings, term, in_tail);
            for (int64_t at = span.begin; at < span.end;) {
                int64_t number = document_of(AT(span.column, at)), begin = at;
                at = past(span.column, at, span.end);
                if (!AT(table->alive, number)) {
                    continue;
                }
                AT(out, 3 * term) += 1;
                AT(out, 3 * term + 1) += least_of(at - begin, MOST_COUNT);
                int64_t session = AT(table->session, number);
                if (session != NONE && stamps[session] != term + 1) {
                    stamps[session] = (int32_t)term + 1;
                    AT(out, 3 * term + 2) += 1;
                }
            }
        }
    }
    free(stamps);
    return 0;
}

/* Store the turns around a document, the previous ones first, the nearest first; NONE where there is none. */
static void turns_around(int64_t number, const rc_table *table, int64_t *around) {
    int64_t at = AT(table->before, number);
    for (int step = 0; step < 2 * STEPS; step++) {
        if (step == STEPS) {
            at = AT(table->after, number);
        }
        at = is_turn_of(at, table) ? at : NONE;
        around[step] = at;
        if (at != NONE) {
            at = step < STEPS ? AT(table->before, at) : AT(table->after, at);
        }
    }
}

/* What a term has in a document: its mass there, that of the document itself, and how many turns lend the rest. */
typedef struct {
    int64_t mass, own, lent;
} term_mass;

/* Return the mass of a term in a document; `lenders` gets the turns around it that have the term. */
static term_mass mass_of(const rc_postings *postings, const rc_table *table, int64_t term, int64_t number,
                         const int64_t *around, int64_t *lenders) {
    int64_t own = count_of(postings, term, number) << BITS;
    term_mass out = {own, own, 0};
    for (int step = 0; step < 2 * STEPS; step++) {
        int64_t there = around[step];
        int64_t times = there == NONE ? 0 : count_of(postings, term, there);
        if (times) {
            int64_t lending =
                step < STEPS ? lending_after(step, AT(table->asks, there)) : lending_before(step - STEPS);
            out.mass += lent_by(times, AT(table->length, there)) * lending / 10;
            lenders[out.lent++] = there;
        }
    }
    return out;
}

/* Return what the title term at a place of `weights->title_of` adds to the share of its term in a document. */
static int64_t title_part(const rc_postings *postings, const rc_weights *weights, int64_t at, int64_t number,
                          int64_t pivot, double by_whole) {
    int64_t term = weights->terms.count - weights->title_of.count + at;
    if (!count_of(postings, term, number)) {
        return 0;
    }
    int64_t times = count_of(postings, AT(weights->title_of, at), number);
    return title_share(AT(weights->terms, term) * TOP, times, pivot, weights->whole, by_whole);
}

int rc_matched(const rc_postings *postings, const rc_table *table, const rc_weights *weights, rc_ints hits,
               rc_ints shares, rc_ints own, rc_ints titles) {
    int64_t terms = weights->terms.count - weights->title_of.count, around[2 * STEPS], lenders[2 * STEPS];
    double by_whole = 1.0 / (double)weights->whole;
    for (int64_t hit = 0; hit < hits.count; hit++) {
        if (is_late(postings->until)) {
            return RC_LATE;
        }
        int64_t number = AT(hits, hit), pivot = pivot_of(number, table);
        turns_around(number, table, around);
        for (int64_t term = 0; term < terms; term++) {
            term_mass found = mass_of(postings, table, term, number, around, lenders);
            if (found.mass) {
                int64_t weight = AT(weights->terms, term) * TOP;
                int64_t share = share_of(weight, found.mass, pivot, weights->whole, by_whole);
                AT(shares, terms * hit + term) = share;
                AT(own, terms * hit + term) = share * found.own / found.mass;
            }
        }
        for (int64_t at = 0; at < weights->title_of.count; at++) {
            int64_t place = terms * hit + AT(weights->title_of, at);
            AT(titles, place) = title_part(postings, weights, at, number, pivot, by_whole);
        }
    }
    return 0;
}

/* Move the last of some rows to its place: by descending share, then by ascending rank of the term. */
static void sink(rc_match *first, rc_match *row, rc_ints ranks) {
    rc_match moved = *row;
    while (row > first && (moved.share > row[-1].share || (moved.share == row[-1].share &&
                                                           AT(ranks, moved.term) < AT(ranks, row[-1].term)))) {
        *row = row[-1];
        row--;
    }
    *row = moved;
}

int64_t rc_explained(const rc_postings *postings, const rc_table *table, const rc_weights *weights, rc_ints hits,
                     rc_ints factors, rc_ints ranks, rc_ints rows, rc_ints lenders) {
    int64_t terms = weights->terms.count - weights->title_of.count, count = 0, lent = 0, around[2 * STEPS];
    double by_whole = 1.0 / (double)weights->whole;
    rc_match *out = (rc_match *)rows.at;
    for (int64_t hit = 0; hit < hits.count; hit++) {
        if (is_late(postings->until)) {
            return RC_LATE;
        }
        int64_t number = AT(hits, hit), factor = AT(factors, hit), pivot = pivot_of(number, table), first = count;
        turns_around(number, table, around);
        for (int64_t term = 0; term < terms; term++) {
            term_mass found = mass_of(postings, table, term, number, around, &AT(lenders, lent));
            int64_t weight = AT(weights->terms, term) * TOP, title = 0;
            int64_t share = found.mass ? share_of(weight, found.mass, pivot, weights->whole, by_whole) : 0;
            for (int64_t at = 0; at < weights->title_of.count; at++) {
                if (AT(weights->title_of, at) == term) {
                    title = title_part(postings, weights, at, number, pivot, by_whole) * factor >> BITS;
                }
            }
            if (share <= 0 && title <= 0) {
                continue;
            }
            share = share * factor >> BITS;
            int64_t own = found.mass ? share * found.own / found.mass : 0;
            int64_t begin = lent;
            lent += found.mass > found.own ? found.lent : 0;
            rc_match row = {hit, term, share + title, own, title, begin, lent};
            out[count] = row;
            sink(out + first, out + count, ranks);
            count++;
        }
    }
    return count;
}
