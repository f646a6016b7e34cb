// The job `pageable`: copies of memory that is not pinned, up and down, each call blocking until the copy is done:
// weir_upload() and weir_download(), beside the driver's own copy, and bare copies of pinned memory, which bound both.

#include "tests/bench/jobs/drivers.h"

enum {
    SIZES_MOST = 12,
    REPEATS_MAX = 200
};

#define SIZE_LEAST ((size_t)4096)
#define READY_BYTES ((size_t)64 << 20) // small copies are repeated up to this
#define PINNED_BYTES ((size_t)64 << 20)

enum way {
    WEIR,
    DRIVER,
    PINNED, // of nothing of the program's memory: what the link can do
    WAYS
};

static const char *const names[WAYS] = {"copy", "driver", "pinned"};

struct pageable {
    uint64_t most;
    size_t sizes; // SIZE_LEAST times powers of 4, up to `most`
    unsigned char *src, *dst;
    weir_queue *queue;
    weir_buffer *memory;
    size_t ways; // on CUDA all of them
    struct side raw;
    struct bench_samples ms[SIZES_MOST][2][WAYS];
};

// One copy, to or from the beginning of the device's memory.
static void copy(struct pageable *p, enum way way, bool up, size_t size)
{
    const struct side_cuda *cu = p->raw.cu;
    if (way == WEIR && up)
        cli_fine(weir_upload(p->queue, p->memory, 0, p->src, size));
    else if (way == WEIR)
        cli_fine(weir_download(p->queue, p->dst, p->memory, 0, size));
    else if (way == DRIVER && up)
        SIDE_CU(cu, cuMemcpyHtoD, cu->memory, p->src, size);
    else if (way == DRIVER)
        SIDE_CU(cu, cuMemcpyDtoH, p->dst, cu->memory, size);
    for (size_t at = 0; way == PINNED && at < size; at += PINNED_BYTES)
        p->raw.calls->copy(&p->raw, 0, up, 0, size - at < PINNED_BYTES ? size - at : PINNED_BYTES);
    if (way == PINNED)
        p->raw.calls->finish(&p->raw, 0);
}

// Opening.

static void open_all(struct pageable *p)
{
    p->src = cli_allocate(1, (size_t)p->most);
    p->dst = cli_allocate(1, (size_t)p->most);
    bench_queue(bench.device, "pageable", 0, &p->queue);
    bench_buffer(bench.device, "memory", (size_t)p->most, WEIR_PLACE_DEVICE, &p->memory);
    while (SIZE_LEAST << 2 * p->sizes <= p->most)
        p->sizes++;
    p->ways = DRIVER;
    if (!side_open(&p->raw, &side_cuda_calls, bench.device, NULL))
        return;
    p->ways = WAYS;
    side_queues(&p->raw, 1);
    p->raw.calls->memory(&p->raw, (size_t)p->most);
    p->raw.calls->pinned(&p->raw, 0, PINNED_BYTES);
}

// Whole, and a size that is a multiple of nothing.
static void check_way(struct pageable *p, enum way way)
{
    const size_t sizes[] = {(size_t)p->most, (size_t)(p->most - p->most / 3 - 1)};
    for (size_t i = 0; i < p->most; i++)
        p->src[i] = (unsigned char)(i * 7 + (i >> 12) + (i >> 21) + way);
    for (size_t i = 0; i < 2; i++) {
        memset(p->dst, 0, (size_t)p->most);
        copy(p, way, true, sizes[i]);
        copy(p, way, false, sizes[i]);
        bench.checked++;
        if (memcmp(p->src, p->dst, sizes[i]) != 0)
            cli_fail(CLI_FAILED, "%s: bytes that went up and down differ", names[way]);
    }
}

// Measuring.

static void measure_way(struct pageable *p, size_t index, bool up, enum way way)
{
    const size_t size = SIZE_LEAST << 2 * index, repeats = READY_BYTES / size;
    const size_t count = repeats < 1 ? 1 : repeats > REPEATS_MAX ? REPEATS_MAX : repeats;
    const uint64_t began = cli_now_ns();
    for (size_t i = 0; i < count; i++)
        copy(p, way, up, size);
    const double ms = (double)(cli_now_ns() - began) * 1e-6 / (double)count;
    bench_keep(&p->ms[index][up][way], ms);
    bench_serve(ms, "%s_%s_%zu", names[way], up ? "up" : "down", size);
}

// Each way goes first in turn.
static void measure(struct pageable *p)
{
    for (size_t i = 0; i < p->sizes; i++)
        for (size_t k = 0; k < p->ways; k++) {
            const enum way way = (enum way)((k + bench.turn) % p->ways);
            measure_way(p, i, true, way);
            measure_way(p, i, false, way);
        }
}

static void put_way(const struct pageable *p, struct bench_table *table, size_t index, bool up,
                    enum way way)
{
    const struct bench_samples ms = p->ms[index][up][way];
    const char *size = bench_bytes(SIZE_LEAST << 2 * index);
    bench_text(table, "size", "size", size);
    bench_text(table, "direction", "", up ? "up" : "down");
    bench_text(table, "way", "way", names[way]);
    bench_value(table, "ms", "ms", 4, ms);
    bench_value(table, "to_weir", "to Weir's", 3, bench_ratio(ms, p->ms[index][up][WEIR]));
    if (up)
        bench_plot_bar(names[way], size, ms);
}

static void run(void *user)
{
    struct pageable *p = user;
    open_all(p);
    check_way(p, WEIR);
    if (p->ways == WAYS)
        check_way(p, DRIVER);
    for (bench_start(); bench_turn();)
        measure(p);
    struct bench_table *table = bench_table("copies", "one copy");
    bench_plot("Copies of memory that is not pinned", "", "milliseconds");
    for (size_t i = 0; i < p->sizes; i++)
        for (size_t k = 0; k < 2 * p->ways; k++)
            put_way(p, table, i, k < p->ways, (enum way)(k % p->ways));
}

int job_pageable(int argc, char **argv)
{
    static struct pageable p = {.most = 1 << 30};
    static const struct cli_option options[] = {
        {"most", "N", "bytes of the largest copy (1 GiB)", CLI_COUNT, &p.most, SIZE_LEAST,
         UINT64_C(1) << 32},
    };
    static const struct bench_program program = {
        .options = options,
        .option_count = BENCH_COUNT(options),
        .launches_nothing = true,
        .serves = true,
        .run = run,
    };
    return bench_main(&program, &p, argc, argv);
}
