/* Dot products of vectors: see `scoring.dense` for the same in NumPy. */

#include "slices.h"

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
