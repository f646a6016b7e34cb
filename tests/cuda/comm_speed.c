// Collectives beside NCCL's own: calls, their bandwidth, and graphs of them. What alternates meets the same
// of what else the machine does; a ratio is that of two neighbours.
#include "tests/cuda/comm_speed.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/cuda/comm_raw.h"

enum {
    TURNS = 101,
    LONG_TURNS = 15, // of calls that take milliseconds
    CAPTURED = 20,   // collectives in a graph
    LAUNCHES = 10,
    PAIRS = 301, // of batches of submits
    BATCH = 40,
    PROFILES = 1001,
};

static weir_queue *queue;
static weir_comm *comm;
static weir_buffer *buffer;
static weir_graph *graph; // of CAPTURED all-reduces

static weir_status all_reduce(size_t bytes)
{
    return weir_queue_all_reduce(queue, comm, buffer, 0, buffer, 0, bytes / 4, WEIR_F32, WEIR_SUM);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts them.
static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

static bool open_raw(weir_queue *own_queue, weir_comm *own_comm, weir_buffer *own_buffer)
{
    queue = own_queue;
    comm = own_comm;
    buffer = own_buffer;
    if (comm_raw_open(queue, comm, buffer))
        return true;
    return comm_check(false, "NCCL beside Weir: %s", comm_raw_reason());
}

static void meet(void)
{
    if (weir_queue_barrier(queue, comm) < 0 || weir_queue_sync(queue, WEIR_FOREVER) < 0)
        comm_check(false, "a barrier");
}

// Calls and launches, with all that comes until they are complete.

// What a turn does `calls` times.
enum work {
    CALL,
    LAUNCH
};

static bool submit(bool raw, enum work work, size_t bytes)
{
    if (work == LAUNCH)
        return raw ? comm_raw_launch() : weir_queue_graph(queue, graph) == WEIR_OK;
    return raw ? comm_raw_all_reduce(COMM_RAW_OTHER, bytes) : all_reduce(bytes) == WEIR_OK;
}

// Returns the microseconds of one of them.
static double measure(bool raw, enum work work, size_t bytes, int calls)
{
    meet();
    const uint64_t start_ns = weir_clock_now_ns();
    bool good = true;
    for (int i = 0; i < calls; i++)
        good = submit(raw, work, bytes) && good;
    // With a timeout the wait would poll, with pauses.
    good = (raw ? comm_raw_finish() : weir_queue_sync(queue, WEIR_FOREVER) == WEIR_OK) && good;
    if (!good)
        comm_check(false, "an all-reduce of %zu bytes", bytes);
    return (double)(weir_clock_now_ns() - start_ns) / 1e3 / calls;
}

static void compare(const char *what, enum work work, size_t bytes, int calls)
{
    const int turns = bytes > 1024 * 1024 ? LONG_TURNS : TURNS;
    double times[2][TURNS];
    double ratios[TURNS];
    for (int turn = -2; turn < turns; turn++)
        for (int i = 0; i < 2; i++) {
            const bool raw = i == (turn & 1);
            const double took = measure(raw, work, bytes, calls);
            if (turn >= 0)
                times[raw][turn] = took;
        }
    for (int turn = 0; turn < turns; turn++)
        ratios[turn] = times[0][turn] / times[1][turn];
    const double weir = median(times[0], (size_t)turns);
    const double raw = median(times[1], (size_t)turns);
    const double ratio = median(ratios, (size_t)turns);
    comm_check(true,
               "%s of %zu KiB: Weir %.2f us, raw %.2f us (ratio %.3f, half of them from %.3f to "
               "%.3f; %.1f GB/s)",
               what, bytes / 1024, weir, raw, ratio, ratios[turns / 4], ratios[turns * 3 / 4],
               (double)bytes / weir / 1e3 * (work == LAUNCH ? CAPTURED : 1));
}

static bool capture(size_t bytes)
{
    bool good = weir_capture_begin(queue) == WEIR_OK;
    for (int i = 0; i < CAPTURED && good; i++)
        good = all_reduce(bytes) == WEIR_OK;
    return good && weir_capture_end(queue, NULL, &graph) == WEIR_OK &&
           comm_raw_capture(bytes, CAPTURED);
}

static void compare_captured(size_t bytes)
{
    if (comm_check(capture(bytes), "%d all-reduces of %zu KiB are captured", CAPTURED,
                   bytes / 1024))
        compare("a graph of 20 all-reduces", LAUNCH, bytes, LAUNCHES);
    weir_graph_destroy(&graph);
}

// Submits.

// The library that a batch is submitted to: Weir, or NCCL itself on one of two communicators.
enum library {
    WEIR,
    RAW_SAME,
    RAW_OTHER,
};

static bool call(enum library library, size_t bytes)
{
    if (library == WEIR)
        return all_reduce(bytes) == WEIR_OK;
    return comm_raw_all_reduce(library == RAW_SAME ? COMM_RAW_SAME : COMM_RAW_OTHER, bytes);
}

static void end_batch(enum library library, size_t bytes, bool good)
{
    good =
        (library == WEIR ? weir_queue_sync(queue, WEIR_FOREVER) == WEIR_OK : comm_raw_finish()) &&
        good;
    if (!good)
        comm_check(false, "all-reduces of %zu bytes", bytes);
}

// The microseconds of a submit in a batch that comes after `warm` more.
static double batch(enum library library, size_t bytes, int warm)
{
    bool good = true;
    meet();
    for (int i = 0; i < warm; i++)
        good = call(library, bytes) && good;
    const uint64_t start_ns = weir_clock_now_ns();
    for (int i = 0; i < BATCH; i++)
        good = call(library, bytes) && good;
    const uint64_t end_ns = weir_clock_now_ns();
    end_batch(library, bytes, good);
    return (double)(end_ns - start_ns) / 1e3 / BATCH;
}

static void compare_submits(const char *what, enum library first, enum library second, size_t bytes,
                            int warm)
{
    double times[2][PAIRS];
    double ratios[PAIRS];
    const enum library both[] = {first, second};
    for (int pair = -2; pair < PAIRS; pair++)
        for (int i = 0; i < 2; i++) {
            const int side = i ^ (pair & 1);
            const double took = batch(both[side], bytes, warm);
            if (pair >= 0)
                times[side][pair] = took;
        }
    for (int pair = 0; pair < PAIRS; pair++)
        ratios[pair] = times[0][pair] / times[1][pair];
    const double a = median(times[0], PAIRS);
    const double b = median(times[1], PAIRS);
    const double ratio = median(ratios, PAIRS);
    comm_check(true,
               "submit of %4zu KiB after %2d, %s: %.2f us, %.2f us (ratio %.3f, half of them from "
               "%.3f to %.3f; quarters %.2f to %.2f, %.2f to %.2f)",
               bytes / 1024, warm, what, a, b, ratio, ratios[PAIRS / 4], ratios[PAIRS * 3 / 4],
               times[0][PAIRS / 4], times[0][PAIRS * 3 / 4], times[1][PAIRS / 4],
               times[1][PAIRS * 3 / 4]);
}

// Where in a batch the time goes: the median of the first submits, one by one, and of the rest.
static void profile(const char *what, enum library library, size_t bytes)
{
    static double times[BATCH][PROFILES];
    char text[BATCH * 8] = "";
    size_t used = 0;
    for (int turn = 0; turn < PROFILES; turn++) {
        bool good = true;
        meet();
        for (int i = 0; i < BATCH; i++) {
            const uint64_t start_ns = weir_clock_now_ns();
            good = call(library, bytes) && good;
            times[i][turn] = (double)(weir_clock_now_ns() - start_ns) / 1e3;
        }
        end_batch(library, bytes, good);
    }
    for (int i = 0; i < BATCH; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, " %.2f", median(times[i], PROFILES));
    comm_check(true, "each submit of %zu KiB, %s:%s", bytes / 1024, what, text);
}

void comm_submits(weir_queue *own_queue, weir_comm *own_comm, weir_buffer *own_buffer)
{
    static const size_t sizes[] = {1024, 32 * 1024, 1024 * 1024};
    if (!open_raw(own_queue, own_comm, own_buffer))
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int warm = 0; warm <= 64; warm += warm ? 56 : 8) {
            compare_submits("Weir beside raw on the same communicator", WEIR, RAW_SAME, sizes[i],
                            warm);
            compare_submits("Weir beside raw on another one", WEIR, RAW_OTHER, sizes[i], warm);
            compare_submits("raw beside raw", RAW_SAME, RAW_SAME, sizes[i], warm);
            compare_submits("raw beside raw on another one", RAW_SAME, RAW_OTHER, sizes[i], warm);
        }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        profile("Weir", WEIR, sizes[i]);
        profile("raw", RAW_SAME, sizes[i]);
    }
    comm_raw_driver_calls();
    comm_raw_close();
}

void comm_speed(weir_queue *own_queue, weir_comm *own_comm, weir_buffer *own_buffer)
{
    if (!open_raw(own_queue, own_comm, own_buffer))
        return;
    compare_submits("Weir beside raw on the same communicator", WEIR, RAW_SAME, 1024, 0);
    compare_submits("Weir beside raw on the same communicator", WEIR, RAW_SAME, 1024 * 1024, 0);
    for (size_t bytes = 1024; bytes < COMM_SPEED_BYTES; bytes *= bytes < 1024 * 1024 ? 1024 : 16)
        compare("all-reduce", CALL, bytes, bytes < COMM_SPEED_BYTES / 16 ? 20 : 5);
    compare("all-reduce", CALL, COMM_SPEED_BYTES, 5);
    for (size_t bytes = 1024; bytes <= 16 * 1024 * 1024; bytes *= bytes < 1024 * 1024 ? 32 : 16)
        compare_captured(bytes);
    comm_raw_close();
}
