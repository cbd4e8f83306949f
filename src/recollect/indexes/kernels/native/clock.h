/* The clock by which work ends: that of Python's `time.monotonic_ns`. */

#ifndef RC_CLOCK_H
#define RC_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Where a system has no such clock, or Python uses another one, only the callers look at it. */
#if defined(__APPLE__)
#define RC_CLOCK CLOCK_UPTIME_RAW
#elif defined(CLOCK_MONOTONIC)
#define RC_CLOCK CLOCK_MONOTONIC
#endif

/* Return whether a time is over. It can change meanwhile: another thread ends the work so. */
static inline bool is_late(const int64_t *until) {
#ifdef RC_CLOCK
    struct timespec now;
    if (until && !clock_gettime(RC_CLOCK, &now)) {
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec >= *(const volatile int64_t *)until;
    }
#else
    (void)until;
#endif
    return false;
}

#endif
