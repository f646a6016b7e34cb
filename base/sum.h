// Sums of figures from files, saturating at the largest number.
#ifndef WEIR_BASE_SUM_H
#define WEIR_BASE_SUM_H

#include <stdint.h>

static inline void weir_sum_add(uint64_t *total, uint64_t more)
{
    *total = more > UINT64_MAX - *total ? UINT64_MAX : *total + more;
}

#endif
