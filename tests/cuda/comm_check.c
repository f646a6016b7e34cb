// Collectives by NCCL on two GPUs: a program for a machine that has them, run as one process for each
// rank; submit runs as one rank too, on one GPU. The rank's GPU is that of its local rank. Rank 0 prints
// a line for each check, with the figure if there is one; each process exits with 1 if a check of its own
// failed.
//
//   comm_check speed         Weir's all-reduce, and a graph of 20, alternate with NCCL's own, on the same
//                            communicator; medians of pairs are compared
//   comm_check submit        what submits of all-reduces take beside NCCL's own; also as one process, on one GPU
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
static weir_buffer *buffer;
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
    const uint64_t start_ns = weir_clock_now_ns();
    if (!check(weir_comm_create(device, WEIR_PARAMS(weir_comm, .label = "grads"), &comm) == WEIR_OK,
               "a communicator"))
        return false;
    return check(strncmp(weir_comm_engine(comm), "NCCL", 4) == 0, "%s, created in %.0f ms",
                 weir_comm_engine(comm), (double)(weir_clock_now_ns() - start_ns) / 1e6);
}

static bool open_device(void)
{
    const char *local = getenv("LOCAL_RANK");
    return check(weir_open(NULL, &runtime) == WEIR_OK &&
                     weir_device_open(runtime,
                                      WEIR_PARAMS(weir_device, .select = local ? local : "0"),
                                      &device) == WEIR_OK &&
                     weir_queue_create(device, NULL, &queue) == WEIR_OK,
                 "a device and a queue");
}

static bool create_buffer(size_t size)
{
    return check(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = size), &buffer) ==
                     WEIR_OK,
                 "%zu bytes", size);
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

static void skip(const char *path)
{
    (void)path;
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

static void counts(const char *path)
{
    (void)path;
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

static void shrink(const char *path)
{
    kill_one(path);
    go_on();
}

static void speed(const char *path)
{
    (void)path;
    comm_speed(queue, comm, buffer);
}

static void submits(const char *path)
{
    (void)path;
    comm_submits(queue, comm, buffer);
}

static const struct mode {
    const char *name;
    void (*run)(const char *path);
    bool has_path;
    bool runs_alone; // with one rank
    size_t bytes;    // of the buffer
} modes[] = {
    {"speed", speed, .bytes = COMM_SPEED_BYTES},
    {"submit", submits, .bytes = 4 << 20, .runs_alone = true},
    {"kill", kill_one, .bytes = 4 << 20, .has_path = true},
    {"shrink", shrink, .bytes = 4 << 20, .has_path = true},
    {"skip", skip, .bytes = 4 << 20},
    {"counts", counts, .bytes = 4 << 20},
};

static const struct mode *find_mode(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0 && argc > 1 + modes[i].has_path)
            return &modes[i];
    return NULL;
}

static bool has_ranks(const struct mode *mode)
{
    if (weir_comm_count(comm) > 1)
        return true;
    return mode->runs_alone
               ? check(true, "1 GPU: one rank")
               : check(false, "'%s' needs two ranks with a GPU each, as weir launch -n 2 starts",
                       mode->name);
}

int main(int argc, char **argv)
{
    const struct mode *mode = find_mode(argc, argv);
    if (!mode) {
        printf("usage: comm_check speed | submit | kill FILE | shrink FILE | skip | counts\n");
        return 1;
    }
    if (!open_device() || !create())
        return 1;
    if (has_ranks(mode) && create_buffer(mode->bytes))
        mode->run(argc > 2 ? argv[2] : NULL);
    close_all();
    return failures > 0;
}
