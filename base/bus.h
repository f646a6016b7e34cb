// The bandwidth of a collective's busiest link.
#ifndef WEIR_BASE_BUS_H
#define WEIR_BASE_BUS_H

#include <stdint.h>

// What a collective's bytes per second are multiplied with to become those of its busiest link, as
// nccl-tests do: 2 (n - 1) / n for "all-reduce", (n - 1) / n where each rank has a part, else 1.
double weir_bus_factor(const char *kind, uint32_t rank_count);

#endif
