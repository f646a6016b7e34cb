// Failures.
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/transports/mpi/ranks.h"

// Failures: this rank's message is printed, and mpi_test.sh compares it.

void report(weir_status status)
{
    printf("%u: %s: %s\n", rank, weir_status_name(status), ranks_error()->message);
    fflush(stdout);
}

static struct weir_transport_call sum_call(int line)
{
    static float src[8];
    static float dst[8];
    return (struct weir_transport_call){.kind = WEIR_ALL_REDUCE,
                                        .element = WEIR_F32,
                                        .reduction = WEIR_SUM,
                                        .count = 8,
                                        .src = src,
                                        .dst = dst,
                                        .line = line};
}

// All ranks do `line` 10, then `odd` another kind. What may differ else is in tests/transports/local/failures_test.c.
void do_mismatch(uint32_t odd)
{
    void *group = join_all();
    EXPECT(run(group, sum_call(10)) == WEIR_OK);
    struct weir_transport_call call = sum_call(rank == odd ? 30 : 20);
    if (rank == odd)
        call.kind = WEIR_BARRIER;
    EXPECT(run(group, call) == WEIR_ERROR_COMM);
    report(ranks_error()->status);
    // The first cause stays.
    EXPECT(run(group, sum_call(40)) == WEIR_ERROR_COMM);
    report(ranks_error()->status);
    ops->leave(group);
}

// Rank 1 sends another count than rank 0 receives.
void do_message_mismatch(void)
{
    static float memory[16];
    void *group = join_all();
    const struct weir_transport_call call = {.kind = rank == 1 ? WEIR_SEND : WEIR_RECV,
                                             .element = WEIR_F32,
                                             .count = rank == 1 ? 3 : 4,
                                             .root = 1 - rank,
                                             .src = rank == 1 ? memory : NULL,
                                             .dst = rank == 1 ? NULL : memory,
                                             .line = 20};
    if (rank < 2)
        EXPECT(run(group, call) == WEIR_ERROR_COMM || rank == 1);
    EXPECT(run(group, sum_call(40)) == WEIR_ERROR_COMM);
    report(ranks_error()->status);
    ops->leave(group);
}

// The rank `absent` does not come in time: it is late, leaves, or is stopped.
void do_absent(const char *how, uint32_t absent)
{
    int32_t process = getpid();
    int32_t processes[16];
    void *group = join_all();
    EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_ALL_GATHER,
                                                   .element = WEIR_I32,
                                                   .count = 1,
                                                   .src = &process,
                                                   .dst = processes,
                                                   .line = 10}) == WEIR_OK);
    const bool leaves = strcmp(how, "leave") == 0;
    struct weir_transport_call call = sum_call(20);
    // Rank 0 finds out which rank is missing, and tells the others.
    call.timeout_ns = leaves || (rank && absent) ? PATIENCE : SECOND;
    if (rank == absent && leaves) {
        ops->leave(group);
        return;
    }
    if (rank == absent && strcmp(how, "stop") == 0)
        raise(SIGSTOP);
    if (rank != absent || strcmp(how, "late") != 0)
        EXPECT(run(group, call) == WEIR_ERROR_COMM);
    if (rank != absent) {
        report(ranks_error()->status);
        kill(processes[absent], SIGCONT);
    } else if (strcmp(how, "late") == 0) {
        // Until the others have told it.
        EXPECT(run(group, (struct weir_transport_call){.kind = WEIR_RECV,
                                                       .element = WEIR_U8,
                                                       .count = 1,
                                                       .root = 1 - rank,
                                                       .dst = &process}) == WEIR_ERROR_COMM);
        report(ranks_error()->status);
    } else {
        report(ranks_error()->status);
    }
    ops->leave(group);
}

static void *abort_soon(void *group)
{
    weir_clock_sleep_ns(SECOND / 5);
    ops->abort(group, "the disk is full");
    ops->abort(group, "a second reason");
    return NULL;
}

// Rank 1 aborts from another thread, while all wait for rank 2, or in a receive.
void do_abort(bool receives)
{
    uint8_t byte = 0;
    void *group = join_all();
    pthread_t thread = pthread_self();
    if (rank == 1)
        EXPECT(pthread_create(&thread, NULL, abort_soon, group) == 0);
    struct weir_transport_call call = sum_call(20);
    if (receives || rank == 2)
        call = (struct weir_transport_call){.kind = WEIR_RECV,
                                            .element = WEIR_U8,
                                            .count = 1,
                                            .root = (rank + 1) % 3,
                                            .dst = &byte};
    EXPECT(run(group, call) == WEIR_ERROR_COMM);
    report(ranks_error()->status);
    if (rank == 1)
        pthread_join(thread, NULL);
    ops->leave(group);
}

// Calls of all kinds until one fails.
void do_fail(void)
{
    static const weir_collective kinds[] = {WEIR_ALL_REDUCE, WEIR_BROADCAST,  WEIR_ALL_GATHER,
                                            WEIR_GATHER,     WEIR_ALL_TO_ALL, WEIR_SCATTER};
    float src[16] = {0};
    float dst[16];
    void *group = join_all();
    weir_status status = WEIR_OK;
    for (int i = 0; i < 18 && status == WEIR_OK; i++)
        status = run(group, (struct weir_transport_call){.kind = kinds[i % 6],
                                                         .element = WEIR_F32,
                                                         .reduction = WEIR_SUM,
                                                         .count = 4,
                                                         .src = src,
                                                         .dst = dst});
    EXPECT(status < 0);
    report(status);
    ops->leave(group);
}

// MPI that the program starts itself, and ends.
void do_own(const char *library, const char *how)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int (*init)(int *, char ***, int, int *);
    int (*finalize)(void);
    const int multiple = strstr(library, "mpi_abi") ? 4096 : 3;
    int level = strcmp(how, "single") == 0 ? 0 : multiple;
    void *group;
    EXPECT(handle);
    void *symbol = dlsym(handle, "MPI_Init_thread");
    memcpy(&init, &symbol, sizeof init);
    symbol = dlsym(handle, "MPI_Finalize");
    memcpy(&finalize, &symbol, sizeof finalize);
    EXPECT(init(NULL, NULL, level, &level) == 0);
    if (strcmp(how, "ended") == 0)
        EXPECT(finalize() == 0);
    // The library that is loaded is found without its name.
    EXPECT(open_library("") == WEIR_OK);
    const weir_status status = try_join(NULL, PATIENCE, &group);
    if (strcmp(how, "threads") != 0) {
        report(status);
    } else {
        EXPECT(status == WEIR_OK);
        EXPECT(sum_of_ranks(group, 1) == count);
        ops->leave(group);
    }
    ops->close(state);
    if (strcmp(how, "ended") != 0)
        EXPECT(finalize() == 0);
}

// Rank 1 has no memory left when a group is made, or for a message: all ranks tell it.
void do_memory(long enough, bool in_message)
{
    uint8_t byte = 0;
    void *part;
    void *group = join_all();
    const struct weir_transport_call call = {.kind = WEIR_RECV,
                                             .element = WEIR_U8,
                                             .count = 1,
                                             .root = (rank + 1) % count,
                                             .dst = &byte,
                                             .line = 20};
    const long before = ranks_blocks();
    ranks_fail_after(rank == 1 ? enough : -1);
    EXPECT((in_message ? run(group, call) : try_split(group, 0, 0, &part)) == WEIR_ERROR_COMM);
    ranks_fail_after(-1);
    EXPECT(rank != 1 || ranks_blocks() <= before + 1); // what tells the others may be under way
    report(ranks_error()->status);
    ops->leave(group);
}

void do_wrong_place(void)
{
    void *group;
    rank = rank == 1 ? 5 : rank;
    report(try_join(NULL, PATIENCE, &group));
}

void do_missing(void)
{
    void *group;
    if (rank == 0)
        report(try_join(NULL, SECOND, &group));
    else
        weir_clock_sleep_ns(4 * SECOND);
    // MPI has been started by rank 0 only, and would wait for the others at its end.
    fflush(stdout);
    _exit(0);
}
