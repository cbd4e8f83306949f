/* Dot products of vectors, and estimates of them from signs: see `scoring.dense` for the same in NumPy. */

#include "constants.h"
#include "walk.h"

void rc_products(rc_components matrix, rc_components vector, rc_ints out) {
    for (int64_t row = 0; row < out.count; row++) {
        /* 32-bit sums, which vectors of length 1 cannot overflow, let the processor multiply many at a time. */
        rc_components components = PART(matrix, row * vector.count, (row + 1) * vector.count);
        int32_t total = 0;
        for (int64_t at = 0; at < vector.count; at++) {
            total += (int32_t)AT(components, at) * (int32_t)AT(vector, at);
        }
        AT(out, row) = total;
    }
}

/* The estimate of a row: the sum of the components of the question with the signs of the row, made 0 or more. Bit `plane`
   of component i is bit i of the words of `planes` for that plane; a row of signs has as many words. */
static inline __attribute__((always_inline)) int32_t estimate(rc_ints signs, rc_numbers positive, rc_ints planes,
                                                              int64_t words, int64_t row) {
    int64_t total = 0;
    for (int64_t word = 0; word < words; word++) {
        uint64_t sign = (uint64_t)AT(signs, row * words + word);
        for (int64_t plane = 0; plane < PLANES; plane++) {
            total += (int64_t)__builtin_popcountll(sign & (uint64_t)AT(planes, plane * words + word)) << plane;
        }
    }
    return (int32_t)(2 * total - ((1 << PLANES) - 1) * AT(positive, row));
}

static inline __attribute__((always_inline)) void estimate_all(rc_ints signs, rc_numbers positive, rc_ints planes,
                                                               int64_t words, int32_t add, rc_numbers out) {
    for (int64_t row = 0; row < out.count; row++) {
        AT(out, row) = estimate(signs, positive, planes, words, row) + add;
    }
}

/* The same for the most common dimension, for which the compiler unrolls the loops. */
enum { COMMON_WORDS = 384 / 64 };

static inline __attribute__((always_inline)) void estimate_either(rc_ints signs, rc_numbers positive, rc_ints planes,
                                                                  int64_t words, int32_t add, rc_numbers out) {
    if (words == COMMON_WORDS) {
        estimate_all(signs, positive, planes, COMMON_WORDS, add, out);
    } else {
        estimate_all(signs, positive, planes, words, add, out);
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
/* Not every processor of this kind has the instruction, so it is used only where it is. */
__attribute__((target("popcnt"))) static void estimate_by_popcnt(rc_ints signs, rc_numbers positive, rc_ints planes,
                                                                 int64_t words, int32_t add, rc_numbers out) {
    estimate_either(signs, positive, planes, words, add, out);
}
#endif

static void estimate_rows(rc_ints signs, rc_numbers positive, rc_ints planes, int64_t words, int32_t add,
                          rc_numbers out) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("popcnt")) {
        estimate_by_popcnt(signs, positive, planes, words, add, out);
        return;
    }
#endif
    estimate_either(signs, positive, planes, words, add, out);
}

/* Return the least of the `wanted` greatest estimates of some rows. */
static int32_t least_estimate(rc_numbers estimates, rc_ints rows, int64_t wanted, rc_ints counts) {
    for (int64_t at = 0; at < rows.count; at++) {
        AT(counts, AT(estimates, AT(rows, at)))++;
    }
    int64_t value = counts.count - 1;
    for (int64_t above = AT(counts, value); above < wanted && value > 0; above += AT(counts, value)) {
        value--;
    }
    return (int32_t)value;
}

int64_t rc_nearest(rc_components matrix, rc_components vector, rc_ints signs, rc_numbers positive, rc_ints planes,
                   rc_ints rows, int64_t wanted, rc_numbers estimates, rc_ints counts, rc_ints places, rc_ints products) {
    int64_t words = planes.count / PLANES, found = 0;
    estimate_rows(signs, positive, planes, words, (int32_t)(((1 << PLANES) - 1) * vector.count), estimates);
    int32_t least = least_estimate(estimates, rows, wanted, counts);
    for (int64_t at = 0; at < rows.count; at++) {
        if (AT(estimates, AT(rows, at)) >= least) {
            AT(places, found) = at;
            found++;
        }
    }
    for (int64_t at = 0; at < found; at++) {
        int64_t begin = AT(rows, AT(places, at)) * vector.count;
        if (at + 1 < found) {  /* it is anywhere in memory */
            int64_t next = AT(rows, AT(places, at + 1)) * vector.count;
            for (int64_t line = 0; line < vector.count; line += 32) {
                PREFETCH(&AT(matrix, next + line));
            }
        }
        rc_components one = PART(matrix, begin, begin + vector.count);
        rc_ints product = PART(products, at, at + 1);
        rc_products(one, vector, product);
    }
    return found;
}

/* Runs of 1 << RUN_BITS documents, of which it is marked whether they get anything: few do. */
enum { RUN_BITS = 4 };

static inline void give(rc_ints out, rc_flags runs, int64_t number, int64_t amount) {
    AT(out, number) += amount;
    AT(runs, number >> RUN_BITS) = true;
}

/* Give what a turn lends to the turns in one direction; `extra` is for the nearest. */
static void lend(rc_numbers links, int64_t number, int64_t gives, const int64_t *tenths, int64_t extra, rc_ints out,
                 rc_flags runs) {
    int64_t there = AT(links, number);
    for (int step = 0; step < STEPS && there != NONE && there < out.count; step++) {
        give(out, runs, there, gives * (tenths[step] + (step == 0 ? extra : 0)));
        there = AT(links, there);
    }
}

int64_t rc_lend(const rc_table *table, rc_ints numbers, rc_ints above, int64_t unit, int64_t parts, rc_ints shares,
                rc_ints near, rc_ints context) {
    static const int64_t FORWARD[STEPS] = {FROM_BEFORE_1, FROM_BEFORE_2, FROM_BEFORE_3, FROM_BEFORE_4};
    static const int64_t BACKWARD[STEPS] = {FROM_AFTER_1, FROM_AFTER_2, FROM_AFTER_3, FROM_AFTER_4};
    rc_flags runs = {calloc((size_t)(shares.count >> RUN_BITS) + 1, 1), (shares.count >> RUN_BITS) + 1};
    if (!runs.at) {
        return RC_NO_MEMORY;
    }
    for (int64_t at = 0; at < numbers.count; at++) {
        int64_t number = AT(numbers, at), gives = AT(above, at) * DONOR_CAP / most_of(AT(table->length, number), DONOR_CAP);
        give(shares, runs, number, AT(above, at) * 10);
        lend(table->after, number, gives, FORWARD, AT(table->asks, number) ? AFTER_QUESTION : 0, shares, runs);
        lend(table->before, number, gives, BACKWARD, 0, shares, runs);
    }
    int64_t found = 0;
    for (int64_t run = next_set(runs, 0); run < runs.count; run = next_set(runs, run + 1)) {
        int64_t end = least_of((run + 1) << RUN_BITS, shares.count);
        for (int64_t number = run << RUN_BITS; number < end; number++) {
            int64_t with_context = AT(shares, number) / 10;
            if (with_context) {
                AT(near, found) = number;
                AT(context, found) = with_context;
                found++;
            }
            AT(shares, number) = with_context * unit / parts;
        }
    }
    free(runs.at);
    return found;
}
