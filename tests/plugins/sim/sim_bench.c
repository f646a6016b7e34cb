// What an operation costs the engine, for several numbers of operations and of queues.
//
//     sim_bench
#include <stdio.h>

#include "tests/plugins/sim/load.h"

int main(void)
{
    static const uint32_t queues[] = {1, 8, 64, 512};
    for (int operations = 10000; operations <= 1000000; operations *= 10)
        for (size_t i = 0; i < sizeof queues / sizeof *queues; i++) {
            const double took = load_seconds(queues[i], operations);
            printf("%8d operations %4u queues: %8.3f s, %5.0f ns each\n", operations, queues[i],
                   took, took * 1e9 / operations);
        }
    return 0;
}
