// Sums of figures from files, saturating at the largest number.
#ifndef WEIR_BASE_SUM_H
#define WEIR_BASE_SUM_H

#include <stdint.h>

static inline uint64_t weir_sum(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static inline void weir_sum_add(uint64_t *total, uint64_t more)
{
    *total = weir_sum(*total, more);
}

#endif
