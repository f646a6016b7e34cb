#include "cli/common/clock.h"

#include <stddef.h>

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
