// The fuzzer of what strangers and peers say to the transport "local":
//
//     strangers_fuzz [SECONDS [SEED [FIRST [ROUNDS]]]]
//
// An hour, and one round again:
//
//     bazel run --config=asan-ubsan //tests/fuzz/strangers:strangers_fuzz -- 3600 7
//     bazel run --config=asan-ubsan //tests/fuzz/strangers:strangers_fuzz -- 60 7 1234 1
//
// Exit status 1 if a rule is broken.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/strangers/drive.h"

static uint64_t number_of(int argc, char **argv, int index, uint64_t fallback)
{
    return argc > index ? strtoull(argv[index], NULL, 10) : fallback;
}

int main(int argc, char **argv)
{
    const uint64_t seed = number_of(argc, argv, 2, 1);
    const struct drive_result result =
        drive(seed, number_of(argc, argv, 3, 0), number_of(argc, argv, 4, UINT64_MAX),
              (double)number_of(argc, argv, 1, 10));
    printf("seed %" PRIu64 ": %" PRIu64 " rounds, %" PRIu64 " connections, %" PRIu64
           " hellos, %.0f s\n",
           seed, result.rounds, result.connections, result.hellos, result.seconds);
    for (uint64_t i = 0; i < DRIVE_FUZZERS; i++)
        printf("%s: %" PRIu64 " believed\n", drive_name(i), result.believed[i]);
    printf("%" PRIu64 " rounds more than 1 s late; the worst %.3f s, round %" PRIu64 " (%s)\n",
           result.late, (double)result.worst_ns / 1e9, result.worst_round,
           drive_name(result.worst_round));
    if (result.broken)
        printf("round %" PRIu64 " (%s): %s\n", result.broken_round, drive_name(result.broken_round),
               result.broken);
    return result.broken ? 1 : 0;
}
