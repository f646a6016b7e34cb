// Collectives by NCCL on two GPUs: a program for a machine that has them, run as one process for each
// rank; submit runs as one rank too, on one GPU. The rank's GPU is that of its local rank. Rank 0 prints
// a line for each check, with the figure if there is one; each process exits with 1 if a check of its own
// failed.
//
//   comm_check speed         Weir's all-reduce, and a graph of 20, alternate with NCCL's own, on one more
//                            communicator of the same process; medians of pairs are compared
//   comm_check submit        what submits of all-reduces take beside NCCL's own, on the same communicator and
//                            on another one, and NCCL's beside themselves
//   comm_check shrink FILE   rank 1 ends with SIGKILL, and rank 0 goes on alone
//   comm_check kill FILE     rank 1 ends with SIGKILL, and has left the time in FILE
//   comm_check skip          rank 1 leaves out a collective
//   comm_check counts        the ranks' counts differ
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "base/clock.h"
#include "tests/cuda/comm_speed.h"

#define check comm_check
#define SECOND UINT64_C(1000000000)
#define GUARD_NS (60 * SECOND)

static int failures;
static weir_runtime *runtime;
static weir_device *device;
static weir_queue *queue;
static weir_buffer *buffer; // 1 GiB
static weir_comm *comm;

bool comm_check(bool good, const char *format, ...)
{
    va_list arguments;
    failures += !good;
    if (comm && weir_comm_rank(comm) != 0 && good)
        return good;
    va_start(arguments, format);
    printf("%s  ", good ? "ok  " : "FAIL");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    if (!good)
        printf("      last error: %s\n", weir_last_error_text());
    fflush(stdout);
    return good;
}

static bool create(void)
{
    const struct weir_comm_params params = {.struct_size = sizeof params, .label = "grads"};
    const uint64_t start_ns = weir_clock_now_ns();
    if (!check(weir_comm_create(device, &params, &comm) == WEIR_OK, "a communicator"))
        return false;
    return check(strncmp(weir_comm_engine(comm), "NCCL", 4) == 0, "%s, created in %.0f ms",
                 weir_comm_engine(comm), (double)(weir_clock_now_ns() - start_ns) / 1e6);
}

static bool open_all(size_t size)
{
    const char *local = getenv("LOCAL_RANK");
    const struct weir_device_params params = {.struct_size = sizeof params,
                                              .select = local ? local : "0"};
    const struct weir_buffer_params memory = {.struct_size = sizeof memory, .size = size};
    return check(weir_open(NULL, &runtime) == WEIR_OK &&
                     weir_device_open(runtime, &params, &device) == WEIR_OK &&
                     weir_queue_create(device, NULL, &queue) == WEIR_OK &&
                     weir_buffer_create(device, &memory, &buffer) == WEIR_OK,
                 "a device and its memory") &&
           create();
}

static void close_all(void)
{
    const uint64_t start_ns = weir_clock_now_ns();
    const bool first = weir_comm_rank(comm) == 0;
    weir_comm_destroy(&comm), weir_buffer_destroy(&buffer), weir_queue_destroy(&queue);
    const bool closed = weir_device_close(&device) == WEIR_OK && weir_close(&runtime) == WEIR_OK;
    if (first || !closed)
        check(closed, "everything closes, in %.0f ms",
              (double)(weir_clock_now_ns() - start_ns) / 1e6);
}

static weir_status all_reduce(size_t bytes)
{
    return weir_queue_all_reduce(queue, comm, buffer, 0, buffer, 0, bytes / 4, WEIR_F32, WEIR_SUM);
}

// Failures.

// Waits for the queue, which fails; returns how long after `since_ns` that was.
static double await_cause(uint64_t since_ns, const char *word)
{
    const weir_status status = weir_queue_sync(queue, GUARD_NS);
    const double took = (double)(weir_clock_now_ns() - since_ns) / 1e6;
    check(status == WEIR_ERROR_COMM && strstr(weir_last_error_text(), word), "the first cause: %s",
          weir_last_error_text());
    return took;
}

static void kill_one(const char *path)
{
    uint64_t killed_ns = 0;
    double took = 0;
    for (int step = 1; step <= 10; step++) {
        if (step == 8 && weir_comm_rank(comm) == 1) {
            FILE *file = fopen(path, "w");
            if (!file)
                exit(1);
            fprintf(file, "%" PRIu64, weir_clock_now_ns());
            fclose(file);
            raise(SIGKILL);
        }
        if (all_reduce(1 << 20) < 0)
            break;
        if (step < 8)
            check(weir_queue_sync(queue, GUARD_NS) == WEIR_OK, "step %d", step);
        else
            break;
    }
    took = await_cause(0, "rank 1 has died");
    char line[32] = "";
    FILE *file = fopen(path, "r");
    if (file && fgets(line, sizeof line, file))
        killed_ns = strtoull(line, NULL, 10);
    if (file)
        fclose(file);
    check(killed_ns > 0, "a time in %s", path);
    check(took - (double)killed_ns / 1e6 < 100, "SIGKILL to the first cause: %.1f ms",
          took - (double)killed_ns / 1e6);
}

// Alone, as a communicator of one rank.
static void go_on(void)
{
    const uint64_t start_ns = weir_clock_now_ns();
    weir_comm *left = NULL;
    check(weir_queue_recover(queue) == WEIR_OK, "the queue recovers");
    if (!check(weir_comm_shrink(comm, "left", &left) == WEIR_OK && weir_comm_count(left) == 1,
               "a communicator of the rank that is left, in %.0f ms",
               (double)(weir_clock_now_ns() - start_ns) / 1e6))
        return;
    weir_comm_destroy(&comm);
    comm = left;
    check(strncmp(weir_comm_engine(comm), "NCCL", 4) == 0 && all_reduce(1 << 20) == WEIR_OK &&
              weir_queue_sync(queue, GUARD_NS) == WEIR_OK,
          "an all-reduce of it by %s", weir_comm_engine(comm));
}

static void again(void)
{
    check(weir_queue_recover(queue) == WEIR_OK, "the queue recovers");
    weir_comm_destroy(&comm);
    if (create())
        check(all_reduce(1 << 20) == WEIR_OK && weir_queue_sync(queue, GUARD_NS) == WEIR_OK,
              "an all-reduce of a new communicator");
}

static void skip(void)
{
    check(all_reduce(1 << 20) == WEIR_OK && weir_queue_sync(queue, GUARD_NS) == WEIR_OK,
          "an all-reduce");
    const uint64_t start_ns = weir_clock_now_ns();
    if (weir_comm_rank(comm) == 0) {
        check(all_reduce(1 << 20) == WEIR_OK, "an all-reduce that rank 1 leaves out");
        check(true, "a call that is left out, with a timeout of WEIR_COMM_TIMEOUT: told in %.0f ms",
              await_cause(start_ns, "rank 1 has submitted nothing after all-reduce 1"));
    } else {
        while (weir_comm_error(comm) == WEIR_OK)
            weir_clock_sleep_ns(SECOND / 100);
    }
    again();
}

static void counts(void)
{
    const uint64_t start_ns = weir_clock_now_ns();
    const size_t bytes = (size_t)(weir_comm_rank(comm) == 0 ? 4 : 2) << 20;
    check(all_reduce(bytes) == WEIR_OK, "an all-reduce of %zu bytes", bytes);
    while (weir_comm_error(comm) == WEIR_OK && weir_clock_now_ns() - start_ns < GUARD_NS)
        weir_clock_sleep_ns(SECOND / 1000);
    check(weir_comm_error(comm) == WEIR_ERROR_COMM && strstr(weir_last_error_text(), "1048576"),
          "counts that differ, told in %.0f ms: %s", (double)(weir_clock_now_ns() - start_ns) / 1e6,
          weir_last_error_text());
    check(weir_queue_sync(queue, GUARD_NS) == WEIR_ERROR_COMM, "the queue has failed too");
    again();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!open_all(strcmp(what, "speed") == 0 ? COMM_SPEED_BYTES : 4 << 20))
        return 1;
    if (strcmp(what, "speed") == 0)
        comm_speed(queue, comm, buffer);
    else if (strcmp(what, "submit") == 0)
        comm_submits(queue, comm, buffer);
    else if (strcmp(what, "kill") == 0 && argc > 2)
        kill_one(argv[2]);
    else if (strcmp(what, "shrink") == 0 && argc > 2)
        kill_one(argv[2]), go_on();
    else if (strcmp(what, "skip") == 0)
        skip();
    else if (strcmp(what, "counts") == 0)
        counts();
    else
        check(false, "usage: comm_check speed | submit | kill FILE | shrink FILE | skip | counts");
    close_all();
    return failures > 0;
}
