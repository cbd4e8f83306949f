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

int rc_matched(const rc_postings *postings, const rc_table *table, const rc_weights *weights, rc_ints hits,
               rc_ints factors, rc_flags reached, rc_ints shares, rc_ints own, rc_flags lent, rc_ints around,
               rc_flags lends) {
    int64_t terms = weights->terms.count, plain = terms - weights->title_of.count;
    double by_whole = 1.0 / (double)weights->whole;
    for (int64_t hit = 0; hit < hits.count; hit++) {
        if (is_late(postings->until)) {
            return RC_LATE;
        }
        int64_t number = AT(hits, hit), factor = AT(factors, hit), pivot = pivot_of(number, table);
        int64_t at = AT(table->before, number);
        for (int step = 0; step < 2 * STEPS; step++) {
            if (step == STEPS) {
                at = AT(table->after, number);
            }
            at = is_turn_of(at, table) ? at : NONE;
            AT(around, 2 * STEPS * hit + step) = at;
            if (at != NONE) {
                at = step < STEPS ? AT(table->before, at) : AT(table->after, at);
            }
        }
        for (int64_t term = 0; term < terms; term++) {
            int64_t place = terms * hit + term, times = count_of(postings, term, number);
            int64_t weight = AT(weights->terms, term) * TOP;
            if (term >= plain) {
                if (times) {
                    times = count_of(postings, AT(weights->title_of, term - plain), number);
                    int64_t share = title_share(weight, times, pivot, weights->whole, by_whole);
                    AT(reached, place) = share > 0;
                    AT(shares, place) = share * factor >> BITS;
                }
                continue;
            }
            int64_t its_own = times << BITS, mass = its_own;
            for (int step = 0; step < 2 * STEPS; step++) {
                int64_t there = AT(around, 2 * STEPS * hit + step);
                int64_t of_turn = there == NONE ? 0 : count_of(postings, term, there);
                if (of_turn) {
                    AT(lends, 2 * STEPS * place + step) = true;
                    int64_t lending = step < STEPS ? lending_after(step, AT(table->asks, there))
                                                   : lending_before(step - STEPS);
                    mass += lent_by(of_turn, AT(table->length, there)) * lending / 10;
                }
            }
            if (mass == 0) {
                continue;
            }
            int64_t share = share_of(weight, mass, pivot, weights->whole, by_whole);
            AT(reached, place) = share > 0;
            share = share * factor >> BITS;
            AT(shares, place) = share;
            AT(own, place) = share * its_own / mass;
            AT(lent, place) = mass > its_own;
        }
    }
    return 0;
}
