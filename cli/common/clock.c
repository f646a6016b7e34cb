#include "cli/common/clock.h"

#include <stddef.h>
#include <time.h>

#include "base/clock.h"

static const struct weir_host_clock *used;

void cli_clock_use(const struct weir_host_clock *clock)
{
    used = clock;
}

bool cli_clock_is_virtual(void)
{
    return used != NULL;
}

uint64_t cli_now_ns(void)
{
    return used ? used->now_ns(used->user) : weir_clock_now_ns();
}

uint64_t cli_processor_time_ns(void)
{
    struct timespec time;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0
               ? (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec
               : 0;
}
