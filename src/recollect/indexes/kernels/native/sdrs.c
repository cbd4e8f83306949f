/* Search of SDRs: see `facets.sdr.index.types` for the interface, and `facets.sdr.index.with_numpy` for the same in
 * NumPy.
 *
 * The sums of the base's rows are collected bit by bit in one column, which fits the processor's cache at a hundred
 * thousand rows. Then the column is scanned in blocks, and a block is skipped if its greatest sum cannot be among the
 * best so far. Loops over whole columns are written so that the compiler vectorises them.
 */

#include "score.h"

/* Number of rows in a block: enough to compare many at once, few enough that blocks are often skipped. */
enum { ROWS = 64 };

/* Add the weight of a bit to the sums of the rows that have it. */
static void add_bit(rc_places rows, int32_t weight, rc_numbers sums) {
    for (int64_t at = 0; at < rows.count; at++) {
        AT(sums, AT(rows, at)) += weight;
    }
}

/* Add the weight of a common bit, which is a plain column. */
static void add_common_bit(rc_bytes flags, int32_t weight, rc_numbers sums) {
    for (int64_t row = 0; row < sums.count; row++) {
        AT(sums, row) += weight & AT(flags, row);
    }
}

static int64_t value_of(const rc_query *query, int64_t total, int64_t size) {
    return ((total * query->inverse >> query->shift) * AT(query->factors, size) >> FACTOR_BITS) + query->add;
}

static bool ranks_below(int64_t value, int64_t number, int64_t of_value, int64_t of_number) {
    return value < of_value || (value == of_value && number > of_number);
}

/* Insert a row into the heap of the best rows if it ranks high enough, and return the heap's new size.
 *
 * Until the end, `hamming` is the place of each row: an index in the base, or after that in the tail.
 */
static int64_t offer_row(rc_best_rows *best, int64_t size, int64_t value, int64_t number, int64_t place) {
    int64_t at = 0;
    if (size < best->values.count) {
        for (at = size++; at > 0; at = (at - 1) >> 1) {
            int64_t up = (at - 1) >> 1;
            if (ranks_below(AT(best->values, up), AT(best->numbers, up), value, number)) {
                break;
            }
            AT(best->values, at) = AT(best->values, up);
            AT(best->numbers, at) = AT(best->numbers, up);
            AT(best->hamming, at) = AT(best->hamming, up);
        }
    } else if (ranks_below(AT(best->values, 0), AT(best->numbers, 0), value, number)) {
        for (int64_t down = 1; down < size; down = 2 * at + 1) {
            int64_t other = down + 1;
            if (other < size && ranks_below(AT(best->values, other), AT(best->numbers, other), AT(best->values, down),
                                            AT(best->numbers, down))) {
                down = other;
            }
            if (ranks_below(value, number, AT(best->values, down), AT(best->numbers, down))) {
                break;
            }
            AT(best->values, at) = AT(best->values, down);
            AT(best->numbers, at) = AT(best->numbers, down);
            AT(best->hamming, at) = AT(best->hamming, down);
            at = down;
        }
    } else {
        return size;
    }
    AT(best->values, at) = value;
    AT(best->numbers, at) = number;
    AT(best->hamming, at) = place;
    return size;
}

/* Return the least sum whose value can be `least`, since no factor is above 1. */
static int64_t least_sum(const rc_query *query, int64_t least) {
    int64_t above = -((query->add - least) * ((int64_t)1 << query->shift));
    /* Rounded towards minus infinity of the negative: up. */
    return above >= 0 ? (above + query->inverse - 1) / query->inverse : -(-above / query->inverse);
}

static int64_t best_of_base(const rc_base *base, const rc_query *query, rc_numbers sums, rc_best_rows *best) {
    int64_t count = base->sizes.count, size = 0, bar = least_sum(query, query->least);
    for (int64_t begin = 0; begin < count; begin += ROWS) {
        int64_t end = least_of(begin + ROWS, count);
        rc_numbers block = PART(sums, begin, end);
        int32_t most = AT(block, 0);
        for (int64_t at = 0; at < block.count; at++) {
            most = AT(block, at) > most ? AT(block, at) : most;
        }
        for (int64_t row = begin; most >= bar && row < end; row++) {
            if (AT(sums, row) < bar || !AT(base->rows.alive, row)) {
                continue;
            }
            int64_t value = value_of(query, AT(sums, row), AT(base->sizes, row));
            if (value >= query->least) {
                size = offer_row(best, size, value, AT(base->rows.numbers, row), row);
                if (size == best->values.count) {
                    bar = least_sum(query, AT(best->values, 0));
                }
            }
        }
    }
    return size;
}

/* The bits of a row. */
static rc_shorts bits_of(const rc_rows *rows, int64_t row) {
    rc_shorts out = PART(rows->bits, AT(rows->offsets, row), AT(rows->offsets, row + 1));
    return out;
}

int64_t rc_best_sdrs(const rc_base *base, const rc_rows *tail, const rc_query *query, rc_numbers sums,
                     rc_best_rows *best) {
    for (int64_t row = 0; row < sums.count; row++) {
        AT(sums, row) = (int32_t)(-query->penalty * AT(base->sizes, row));
    }
    for (int64_t at = 0; at < query->bits.count; at++) {
        int64_t bit = AT(query->bits, at), row = AT(base->common, bit);
        int32_t weight = AT(query->weights, bit);
        if (row == NONE) {
            rc_places rows = PART(base->postings, AT(base->starts, bit), AT(base->starts, bit + 1));
            add_bit(rows, weight, sums);
        } else {
            rc_bytes flags = PART(base->flags, row * sums.count, (row + 1) * sums.count);
            add_common_bit(flags, weight, sums);
        }
    }
    int64_t count = sums.count, size = best_of_base(base, query, sums, best);
    for (int64_t row = 0; row < tail->numbers.count; row++) {
        if (!AT(tail->alive, row)) {
            continue;
        }
        rc_shorts bits = bits_of(tail, row);
        int64_t total = -query->penalty * bits.count;
        for (int64_t at = 0; at < bits.count; at++) {
            total += AT(query->weights, AT(bits, at));
        }
        int64_t value = value_of(query, total, bits.count);
        if (value >= query->least) {
            size = offer_row(best, size, value, AT(tail->numbers, row), count + row);
        }
    }
    for (int64_t hit = 0; hit < size; hit++) {
        int64_t place = AT(best->hamming, hit);
        rc_shorts bits = place < count ? bits_of(&base->rows, place) : bits_of(tail, place - count);
        int64_t differ = query->bits.count + bits.count;
        for (int64_t at = 0; at < bits.count; at++) {
            differ -= AT(query->weights, AT(bits, at)) ? 2 : 0;
        }
        AT(best->hamming, hit) = differ;
    }
    return size;
}
