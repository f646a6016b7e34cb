// What an operation costs on the null backend, without the plugin `sim` and with it: user time of the
// processor for uploads, kernels, fills, downloads, records, waits, host calls and graphs (mixed.h).
//
//     chain_bench
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "tests/plugins/sim/mixed.h"

enum {
    RUNS = 3 // of which the least counts: other load only adds to it
};

static double user_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6;
}

static double measure(const char *plugins, uint32_t queues, uint64_t operations)
{
    double least = 0;
    for (int i = 0; i < RUNS; i++) {
        struct mixed *mixed = mixed_open(plugins, queues, queues <= 8);
        const double begin = user_seconds();
        mixed_run(mixed, operations, NULL, NULL);
        const double seconds = user_seconds() - begin;
        mixed_close(&mixed);
        least = i == 0 || seconds < least ? seconds : least;
    }
    return least;
}

int main(void)
{
    static const uint32_t queues[] = {1, 8, 64, 512};
    static const uint64_t operations[] = {10000, 100000, 1000000};
    printf("%10s  %7s  %14s  %9s  %s\n", "operations", "queues", "without sim, s", "with it",
           "ns an operation more");
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            const double without = measure("", queues[k], operations[i]);
            const double with = measure("sim", queues[k], operations[i]);
            printf("%10llu  %7u  %14.3f  %9.3f  %.0f\n", (unsigned long long)operations[i],
                   (unsigned)queues[k], without, with,
                   1e9 * (with - without) / (double)operations[i]);
            fflush(stdout);
        }
    return 0;
}
