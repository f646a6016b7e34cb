// One rank as a process: program RANK COUNT RENDEZVOUS STEPS TIMEOUT_MS [SHRINK_MS [poor|fork]]
//
// It runs STEPS small all-reduces, writes "waiting", and reads a line; then it runs a large one, and writes
// its status and the error. With STEPS 0 it writes "waiting" after three, and goes on until
// one fails. With STEPS -1 the last rank leaves after one, and ranks 0 and 1 trade messages until one
// fails, and write "waiting" after three. With SHRINK_MS it goes on after that with the ranks that
// are left, if not at once then after the failure of the first attempt, and writes their number with
// its own, and that failure, as the error. With "poor" it has no descriptors to join them, and tries once.
// With "fork" it forks a child once it has joined, which lives until the standard input ends. A SHRINK_MS of 0
// is none.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/transports/local/ranks.h"

#define LARGE ((size_t)1 << 18)

static float memory[LARGE];

static weir_status sum(struct rank *rank, size_t count, uint64_t timeout_ns)
{
    return rank_call(rank, (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                                        .element = WEIR_F32,
                                                        .reduction = WEIR_MAXIMUM,
                                                        .count = count,
                                                        .src = memory,
                                                        .dst = memory,
                                                        .timeout_ns = timeout_ns});
}

static void say(const char *text)
{
    puts(text);
    fflush(stdout);
}

static weir_status trade(struct rank *rank)
{
    static char other[64];
    const struct weir_transport_part parts[] = {
        {sizeof parts[0], 1 - rank->rank, false, WEIR_U8, sizeof other, memory},
        {sizeof parts[0], 1 - rank->rank, true, WEIR_U8, sizeof other, other},
    };
    return rank_call(rank, (struct weir_transport_call){.kind = WEIR_EXCHANGE,
                                                        .parts = parts,
                                                        .part_count = 2});
}

static weir_status work_when_left(struct rank *rank, uint64_t timeout_ns)
{
    weir_status status = sum(rank, 3, timeout_ns);
    for (long i = 0; !status && rank->rank < 2; i++) {
        status = trade(rank);
        if (i == 2)
            say("waiting");
    }
    return status;
}

static weir_status work(struct rank *rank, long steps, uint64_t timeout_ns)
{
    char line[16];
    weir_status status = WEIR_OK;
    for (long i = 0; !status && (steps == 0 || i < steps); i++) {
        status = sum(rank, steps == 0 ? LARGE : 3, timeout_ns);
        if (steps == 0 && i == 2)
            say("waiting");
    }
    if (status)
        return status;
    say("waiting");
    (void)!fgets(line, sizeof line, stdin);
    for (size_t i = 0; i < LARGE; i++)
        memory[i] = (float)(rank->rank + i);
    status = sum(rank, LARGE, timeout_ns);
    for (size_t i = 0; !status && i < LARGE; i++)
        status = memory[i] == (float)(rank->count - 1 + i) ? WEIR_OK : WEIR_ERROR_INVALID;
    return status;
}

// What is left is enough to listen, and to make a group without a connection.
static void use_up_descriptors(void)
{
    struct rlimit limit;
    const int next = dup(0);
    close(next);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)next + 2;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static weir_status go_on(struct rank *rank, uint64_t timeout_ns, bool poor)
{
    char first[sizeof rank->error.message] = "";
    if (poor)
        use_up_descriptors();
    weir_status status = rank_shrink(rank, timeout_ns);
    if (status && !poor) {
        snprintf(first, sizeof first, ", after: %.240s", rank->error.message);
        status = rank_shrink(rank, timeout_ns);
    }
    if (!status)
        status = sum(rank, 3, timeout_ns);
    if (!status)
        snprintf(rank->error.message, sizeof rank->error.message, "rank %u of %u%.256s", rank->rank,
                 rank->count, first);
    return status;
}

static void await_end_of_input(void)
{
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
}

// The child has the parent's files as they are after fork(), but for the output, whose end the test awaits.
static void fork_child(void)
{
    if (fork() != 0)
        return;
    close(1);
    await_end_of_input();
    _exit(0);
}

int main(int count, char **arguments)
{
    if (count < 6 || count > 8)
        return 2;
    const char *more = count == 8 ? arguments[7] : "";
    struct rank rank = {.rank = (uint32_t)strtoul(arguments[1], NULL, 10)};
    struct weir_transport_setup setup = ranks_setup("process");
    setup.count = (uint32_t)strtoul(arguments[2], NULL, 10);
    setup.rendezvous = arguments[3];
    weir_status status = rank_join(&rank, &setup);
    if (strcmp(more, "fork") == 0)
        fork_child();
    const long steps = strtol(arguments[4], NULL, 10);
    const uint64_t timeout_ns = strtoull(arguments[5], NULL, 10) * 1000 * 1000;
    if (!status)
        status = steps < 0 ? work_when_left(&rank, timeout_ns) : work(&rank, steps, timeout_ns);
    const uint64_t shrink_ns = count > 6 ? strtoull(arguments[6], NULL, 10) * 1000 * 1000 : 0;
    const bool goes_on = status && shrink_ns > 0;
    if (goes_on)
        status = go_on(&rank, shrink_ns, strcmp(more, "poor") == 0);
    printf("%d %s\n", (int)status, status || goes_on ? rank.error.message : "");
    rank_leave(&rank);
    return 0;
}
