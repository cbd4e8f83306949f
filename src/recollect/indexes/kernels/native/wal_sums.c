/* The sums of a frame in an SQLite WAL (https://www.sqlite.org/fileformat2.html, section 4.2): for the 32-bit words a, b
   of each eight bytes, one += a + two; two += b + one. */

#include "constants.h"
#include "slices.h"

static uint32_t word(const uint8_t *at, int highest_first) {
    return highest_first ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
                         : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static uint64_t summed(const uint8_t *data, int64_t bytes, uint64_t sums, int highest_first) {
    uint32_t one = (uint32_t)(sums >> 32), two = (uint32_t)sums;
    for (int64_t at = 0; at + 8 <= bytes; at += 8) {
        one += word(data + at, highest_first) + two;
        two += word(data + at + 4, highest_first) + one;
    }
    return (uint64_t)one << 32 | two;
}

uint64_t rc_frame_sums(const char *head, const char *page, int64_t bytes, uint64_t sums, int highest_first) {
    sums = summed((const uint8_t *)head, 8, sums, highest_first);
    return summed((const uint8_t *)page, bytes, sums, highest_first);
}
