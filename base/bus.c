#include "base/bus.h"

#include <string.h>

double weir_bus_factor(const char *kind, uint32_t rank_count)
{
    static const char *const of_parts[] = {"all-gather", "reduce-scatter", "all-to-all", "gather",
                                           "scatter"};
    const double share = rank_count > 0 ? (rank_count - 1.0) / rank_count : 0;
    if (strcmp(kind, "all-reduce") == 0)
        return 2 * share;
    for (size_t i = 0; i < sizeof of_parts / sizeof *of_parts; i++)
        if (strcmp(kind, of_parts[i]) == 0)
            return share;
    return 1;
}
