/* The best documents: from shares and factors to totals, and from totals to the greatest. */

#include "rank.h"

static inline int64_t total_at(rc_ints shares, rc_ints dates, int64_t count, int64_t place, int64_t factor) {
    int64_t total = 0;
    for (int row = 0; row < RAW; row++) {
        total += AT(shares, row * count + place) * factor >> BITS;
    }
    return dates.count ? total + (AT(dates, place) * factor >> BITS) : total;
}

void rc_weigh(rc_ints numbers, rc_ints shares, rc_ints dates, const rc_table *table, const rc_about *about,
              rc_ints totals) {
    for (int64_t place = 0; place < numbers.count; place++) {
        int64_t factor = factor_of(AT(numbers, place), table, about);
        AT(totals, place) = total_at(shares, dates, numbers.count, place, factor);
    }
}

int64_t rc_best(rc_ints totals, rc_ints numbers, rc_ints micros, int64_t wanted, rc_ints places) {
    heap best;
    wanted = least_of(wanted, totals.count);
    if (wanted <= 0) {
        return 0;
    }
    if (!heap_new(&best, wanted)) {
        return RC_NO_MEMORY;
    }
    for (int64_t place = 0; place < totals.count; place++) {
        int64_t total = AT(totals, place);
        if (total > 0 && (best.size < wanted || total >= best.totals[0])) {
            offer(&best, total, AT(micros, AT(numbers, place)));
        }
    }
    int64_t found = 0, least = 1, since = INT64_MIN;
    if (best.size == wanted) {
        least = best.totals[0];
        since = best.micros[0];
    }
    for (int64_t place = 0; place < totals.count; place++) {
        int64_t total = AT(totals, place);
        if (total > least || (total == least && AT(micros, AT(numbers, place)) >= since)) {
            AT(places, found) = place;
            found++;
        }
    }
    free(best.totals);
    return found;
}

int64_t rc_best_of(rc_ints numbers, rc_ints shares, rc_ints dates, const rc_table *table, const rc_about *about,
                   int64_t wanted, rc_ints places, rc_ints totals) {
    heap best;
    int64_t found = 0, kept = 0;
    double greatest = greatest_of_all(about);
    wanted = least_of(wanted, numbers.count);
    if (wanted <= 0) {
        return 0;
    }
    if (!heap_new(&best, wanted)) {
        return RC_NO_MEMORY;
    }
    for (int64_t place = 0; place < numbers.count; place++) {
        int64_t number = AT(numbers, place), raw = dates.count ? AT(dates, place) : 0;
        int64_t least = best.size == wanted ? best.totals[0] : 1;
        for (int row = 0; row < RAW; row++) {
            raw += AT(shares, row * numbers.count + place);
        }
        if (most_total(raw, number, table, greatest) < (double)least) {
            continue;
        }
        int64_t total = total_at(shares, dates, numbers.count, place, factor_of(number, table, about));
        if (total >= least) {
            AT(places, found) = place;
            AT(totals, found) = total;
            found++;
            offer(&best, total, AT(table->micros, number));
        }
    }
    int64_t least = 1, since = INT64_MIN;
    if (best.size == wanted) {
        least = best.totals[0];
        since = best.micros[0];
    }
    for (int64_t at = 0; at < found; at++) {
        int64_t place = AT(places, at), total = AT(totals, at);
        if (total > least || (total == least && AT(table->micros, AT(numbers, place)) >= since)) {
            AT(places, kept) = place;
            AT(totals, kept) = total;
            kept++;
        }
    }
    free(best.totals);
    return kept;
}
