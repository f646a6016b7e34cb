// The differential fuzzer of the plugin `check`:
//
//     WEIR_MODULE_PATH=bazel-bin/lib/weir check_fuzz [--strict | --locks] [COUNT [SEED]]
//     check_fuzz [--strict | --locks] --program HEX
//
// --strict: programs of several threads, with `threads = strict`. --locks: the same, ordered by their
// locks: under `weir check`.
//
// Exit status 1 on a difference, of which it prints the smallest program.
#include <inttypes.h>
#include <time.h>

#include "tests/races/fuzz/program.h"

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool read_number(const char *text, uint64_t *out_number)
{
    char *end;
    *out_number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0';
}

int main(int argc, char **argv)
{
    uint64_t count = 10000, seed = 1;
    const enum ground_order order = argc > 1 && strcmp(argv[1], "--strict") == 0  ? GROUND_TOLD
                                    : argc > 1 && strcmp(argv[1], "--locks") == 0 ? GROUND_LOCKS
                                                                                  : GROUND_ONE;
    argc -= order != GROUND_ONE;
    argv += order != GROUND_ONE;
    if (argc == 3 && strcmp(argv[1], "--program") == 0)
        return drive_one(order, argv[2], stdout) ? 0 : 1;
    if (argc > 3 || (argc > 1 && !read_number(argv[1], &count)) ||
        (argc > 2 && !read_number(argv[2], &seed))) {
        fprintf(stderr, "usage: check_fuzz [--strict | --locks] [COUNT [SEED]], or check_fuzz "
                        "[--strict | --locks] --program HEX\n");
        return 2;
    }
    const double began = seconds();
    const struct drive_result result = drive(order, seed, count, stdout);
    const double took = seconds() - began;

    printf("%" PRIu64 " programs of seed %" PRIu64 " in %.1f s, %.0f a second; %" PRIu64
           " with findings, %" PRIu64 " findings; %s\n",
           result.programs, seed, took, (double)result.programs / took, result.with,
           result.findings, result.different ? "a difference" : "no difference");
    return result.different || result.programs < count ? 1 : 0;
}
