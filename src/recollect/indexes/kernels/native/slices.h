/* Access to arrays. In a checked build (-DRC_CHECKED) an index out of bounds ends the process with a message. */

#ifndef RC_SLICES_H
#define RC_SLICES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interface.h"

#ifdef RC_CHECKED
static inline int64_t rc_in_bounds(int64_t index, int64_t count, const char *file, int line) {
    if (index < 0 || index >= count) {
        fprintf(stderr, "%s:%d: index %lld is out of bounds of %lld elements\n", file, line, (long long)index,
                (long long)count);
        abort();
    }
    return index;
}
#define AT(array, index) ((array).at[rc_in_bounds((int64_t)(index), (array).count, __FILE__, __LINE__)])
#else
#define AT(array, index) ((array).at[index])
#endif

#ifdef __GNUC__
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)(address))
#endif

/* The part of an array from `begin` to before `end`. */
#define PART(array, begin, end) {(array).at + (begin), (end) - (begin)}

static inline int64_t least_of(int64_t one, int64_t other) { return one < other ? one : other; }
static inline int64_t most_of(int64_t one, int64_t other) { return one > other ? one : other; }

#endif
