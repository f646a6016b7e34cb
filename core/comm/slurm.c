#include "core/comm/slurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PORT 15000u
#define PORTS 10000u

bool weir__slurm_first_host(const char *list, char *out_host, size_t size)
{
    const size_t prefix = strcspn(list, "[,");
    size_t number = 0;
    const char *suffix = "";
    if (list[prefix] == '[') {
        const char *range = list + prefix + 1;
        const char *close = strchr(range, ']');
        number = strcspn(range, "-,]"); // with leading zeros, as in node[01-16]
        if (!close || number == 0)
            return false;
        suffix = close + 1;
    }
    const size_t rest = strcspn(suffix, ",");
    if (prefix + number + rest == 0 || prefix + number + rest >= size || memchr(suffix, '[', rest))
        return false;
    snprintf(out_host, size, "%.*s%.*s%.*s", (int)prefix, list, (int)number, list + prefix + 1,
             (int)rest, suffix);
    return true;
}

uint16_t weir__slurm_port(const char *job, const char *step)
{
    const unsigned long long number =
        strtoull(job, NULL, 10) + (step ? strtoull(step, NULL, 10) * 101 : 0);
    return (uint16_t)(FIRST_PORT + number % PORTS);
}
