// A fixed sequence of numbers, so that two runs are the same. Bytes vary in place of bandwidths: their
// time is the same, and what both directions share stays the model's.
#include "plugins/sim/sim.h"

#define CALLS_A_SLOW_ONE 100
#define SLOW_ONE 10

// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
static uint64_t next(struct sim_jitter *jitter)
{
    uint64_t z = jitter->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t sim_vary(struct sim_jitter *jitter, uint64_t amount)
{
    if (!(jitter->share > 0))
        return amount;
    const double at = (double)(next(jitter) >> 11) * 0x1p-52 - 1; // -1 to 1
    return (uint64_t)((double)amount * (1 + jitter->share * at) + 0.5);
}

uint64_t sim_vary_call(struct sim_jitter *jitter, uint64_t ns)
{
    if (!(jitter->share > 0))
        return ns;
    const bool slow = next(jitter) % CALLS_A_SLOW_ONE == 0;
    return sim_vary(jitter, slow ? SLOW_ONE * ns : ns);
}
