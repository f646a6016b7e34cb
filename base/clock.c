// CLOCK_MONOTONIC: it does not jump when somebody sets the time.
#include "base/clock.h"

#define NS_PER_SECOND UINT64_C(1000000000)

uint64_t weir_clock_now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

struct timespec weir_clock_timespec(uint64_t time_ns)
{
    return (struct timespec){.tv_sec = (time_t)(time_ns / NS_PER_SECOND),
                             .tv_nsec = (long)(time_ns % NS_PER_SECOND)};
}

void weir_clock_sleep_ns(uint64_t duration_ns)
{
    const struct timespec time = weir_clock_timespec(duration_ns);
    nanosleep(&time, NULL);
}
