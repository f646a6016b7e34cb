// The cost of the plugin `check`: without it and with it in turns, on the backend that WEIR_BACKEND
// names.
//
//     check_bench [--turns N]
//
// A call of each kind and a sequence of copy, launch, record and wait over two queues, in
// nanoseconds a call; then submits in turns over 8 queues and 10,000 buffers, of which each gets a
// write and later a read by another queue, for several numbers of submits: the time of each must not
// grow with their number. Exit status 1 if a call fails.
#define _GNU_SOURCE // mallinfo2, clock_gettime

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

#include "kernels/bench/bench.h"

enum {
    TURNS_MOST = 101,
    CALLS = 20000,
    QUEUES = 8,
    BUFFERS = 10000,
    SIZE = 4096,
};

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_program *program;
    weir_kernel *kernel;
    weir_queue *queues[QUEUES];
    weir_buffer *buffers[BUFFERS];
    weir_buffer *host;
};

static int turns = 11;

static void must(weir_status status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s\n", weir_last_error_text());
    exit(1);
}

static void open_rig(struct rig *rig, const char *plugins)
{
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .bundle = &bench_kernels};
    must(weir_open(WEIR_PARAMS(weir_open, .config_path = "", .plugins = plugins), &rig->runtime));
    must(weir_device_open(rig->runtime, NULL, &rig->device));
    must(weir_program_create(rig->device, &program, &rig->program));
    must(weir_kernel_create(rig->program, "advance", &rig->kernel));
    for (int i = 0; i < QUEUES; i++)
        must(weir_queue_create(rig->device, WEIR_PARAMS(weir_queue, .label = "bench"),
                               &rig->queues[i]));
    for (int i = 0; i < BUFFERS; i++) {
        must(weir_buffer_create(rig->device, WEIR_PARAMS(weir_buffer, .size = SIZE),
                                &rig->buffers[i]));
        must(weir_queue_fill(rig->queues[0], rig->buffers[i], 0, SIZE, "", 1));
    }
    must(weir_queue_sync(rig->queues[0], WEIR_FOREVER));
    must(weir_buffer_create(rig->device,
                            WEIR_PARAMS(weir_buffer, .size = SIZE, .placement = WEIR_PLACE_HOST),
                            &rig->host));
}

static void close_rig(struct rig *rig)
{
    for (int i = 0; i < BUFFERS; i++)
        weir_buffer_destroy(&rig->buffers[i]);
    weir_buffer_destroy(&rig->host);
    for (int i = 0; i < QUEUES; i++)
        weir_queue_destroy(&rig->queues[i]);
    weir_kernel_destroy(&rig->kernel);
    weir_program_destroy(&rig->program);
    must(weir_device_close(&rig->device));
    must(weir_close(&rig->runtime));
}

static int by_size(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median(double *values)
{
    qsort(values, (size_t)turns, sizeof *values, by_size);
    return values[turns / 2];
}

// Jobs: `count` calls, or sequences of calls.

static void copies(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++)
        must(weir_queue_copy(rig->queues[0], rig->buffers[0], 0, rig->buffers[1], 0, 64));
}

static void launches(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++)
        must(weir_queue_launch(rig->queues[0], rig->kernel, weir_dim(1, 1, 1), weir_dim(64, 1, 1),
                               weir_inout(rig->buffers[0], 0, 256), 1u, 64u));
}

static void records(struct rig *rig, int count)
{
    struct weir_event event;
    for (int i = 0; i < count; i++)
        must(weir_queue_record(rig->queues[0], &event));
}

// Each wait is for a new event.
static void records_and_waits(struct rig *rig, int count)
{
    struct weir_event event;
    for (int i = 0; i < count; i++) {
        must(weir_queue_record(rig->queues[i & 1], &event));
        must(weir_queue_wait(rig->queues[~i & 1], event));
    }
}

static void sequences(struct rig *rig, int count)
{
    struct weir_event event;
    for (int i = 0; i < count; i++) {
        weir_queue *queue = rig->queues[i & 1];
        must(weir_queue_copy(queue, rig->buffers[0], 0, rig->buffers[1], 0, 256));
        must(weir_queue_launch(queue, rig->kernel, weir_dim(1, 1, 1), weir_dim(64, 1, 1),
                               weir_inout(rig->buffers[0], 0, 256), 1u, 64u));
        must(weir_queue_record(queue, &event));
        must(weir_queue_wait(rig->queues[~i & 1], event));
    }
}

static void accesses(struct rig *rig, int count)
{
    void *bytes;
    for (int i = 0; i < count; i++) {
        must(weir_host_begin(rig->host, 0, 64, WEIR_ACCESS_WRITE, &bytes));
        must(weir_host_end(rig->host, 0, 64, WEIR_ACCESS_WRITE));
    }
}

// Queue i copies what queue i - 1 wrote before, which it has waited for.
static void turns_over_buffers(struct rig *rig, int count)
{
    struct weir_event event;
    for (int i = 0; i < count; i++) {
        weir_queue *queue = rig->queues[i % QUEUES];
        must(weir_queue_copy(queue, rig->buffers[(i + 1) % BUFFERS], 0, rig->buffers[i % BUFFERS],
                             0, SIZE));
        must(weir_queue_record(queue, &event));
        must(weir_queue_wait(rig->queues[(i + 1) % QUEUES], event));
    }
}

// Of this thread alone: other work of the machine does not count.
static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double time_of(struct rig *rig, void (*job)(struct rig *, int), int count)
{
    const double begin = now_ns();
    job(rig, count);
    const double passed = now_ns() - begin;
    for (int i = 0; i < QUEUES; i++)
        must(weir_queue_sync(rig->queues[i], WEIR_FOREVER));
    return passed / count;
}

static void compare(struct rig rigs[2], const char *name, void (*job)(struct rig *, int), int count)
{
    double plain[TURNS_MOST];
    double checked[TURNS_MOST];
    double ratios[TURNS_MOST];
    for (int i = 0; i < turns; i++) {
        plain[i] = time_of(&rigs[0], job, count);
        checked[i] = time_of(&rigs[1], job, count);
        ratios[i] = checked[i] / plain[i];
    }
    const double without = median(plain);
    const double with = median(checked);
    printf("%-34s %7d  %8.1f  %8.1f  %6.2f\n", name, count, without, with, median(ratios));
}

static int read_turns(int argc, char **argv)
{
    if (argc == 1)
        return 11;
    const long count = argc == 3 && strcmp(argv[1], "--turns") == 0 ? strtol(argv[2], NULL, 10) : 0;
    return count >= 1 && count <= TURNS_MOST ? (int)count : 0;
}

int main(int argc, char **argv)
{
    static struct rig rigs[2];
    turns = read_turns(argc, argv);
    if (!turns) {
        fprintf(stderr, "usage: check_bench [--turns N], N from 1 to %d\n", TURNS_MOST);
        return 2;
    }
    open_rig(&rigs[0], "");
    const size_t before = mallinfo2().uordblks;
    open_rig(&rigs[1], "check");
    const size_t opened = mallinfo2().uordblks;
    printf("%-34s %7s  %8s  %8s  %6s\n", "ns each, median", "count", "without", "with", "ratio");
    compare(rigs, "copy", copies, CALLS);
    compare(rigs, "launch", launches, CALLS);
    compare(rigs, "record", records, CALLS);
    compare(rigs, "record, wait", records_and_waits, CALLS);
    compare(rigs, "copy, launch, record, wait", sequences, CALLS);
    compare(rigs, "host_begin, host_end", accesses, CALLS);
    for (int count = 8192; count < 40000; count *= 2)
        compare(rigs, "turns: copy, record, wait", turns_over_buffers, count + (count == 32768));
    printf("memory of the second rig: %zu bytes at the beginning, %zu at the end\n",
           opened - before, mallinfo2().uordblks - before);
    close_rig(&rigs[0]);
    close_rig(&rigs[1]);
    return 0;
}
