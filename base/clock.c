// CLOCK_MONOTONIC: it does not jump when the time is set.
#include "base/clock.h"

#define NS_PER_SECOND UINT64_C(1000000000)
#define SHORTEST_PAUSE_NS UINT64_C(2000)
#define LONGEST_PAUSE_NS UINT64_C(1000000)

uint64_t weir_clock_now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

uint64_t weir_clock_deadline(uint64_t timeout_ns)
{
    const uint64_t now_ns = weir_clock_now_ns();
    return timeout_ns < UINT64_MAX - now_ns ? now_ns + timeout_ns : UINT64_MAX;
}

uint64_t weir_clock_left(uint64_t deadline_ns)
{
    const uint64_t now_ns = deadline_ns == UINT64_MAX ? 0 : weir_clock_now_ns();
    return now_ns < deadline_ns ? deadline_ns - now_ns : 0;
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

bool weir_clock_pause(uint64_t start_ns, uint64_t timeout_ns, uint64_t *pause_ns)
{
    const uint64_t passed_ns = weir_clock_now_ns() - start_ns;
    if (passed_ns >= timeout_ns)
        return false;
    const uint64_t left_ns = timeout_ns - passed_ns;
    *pause_ns = *pause_ns == 0 ? SHORTEST_PAUSE_NS : 2 * *pause_ns;
    if (*pause_ns > LONGEST_PAUSE_NS)
        *pause_ns = LONGEST_PAUSE_NS;
    weir_clock_sleep_ns(*pause_ns < left_ns ? *pause_ns : left_ns);
    return true;
}
