// The job `pageable`: copies of memory that is not pinned, up and down, each call blocking until the copy is done:
// weir_upload() and weir_download(), beside the driver's own copy, and bare copies of pinned memory, which bound both.
#include <string.h>

#include "base/text.h"
#include "tests/bench/jobs/drivers.h"

enum {
    SIZES_MOST = 12,
    REPEATS_MAX = 200
};

#define SIZE_LEAST ((size_t)4096)      // sizes are this times powers of 4
#define READY_BYTES ((size_t)64 << 20) // small copies are repeated up to this
#define PINNED_BYTES ((size_t)64 << 20)

struct pageable;

// One way of copying, to or from the beginning of the device's memory.
struct way {
    const char *name;
    void (*copy)(struct pageable *p, bool up, size_t size);
    bool raw, is_bound;
};

enum {
    WEIR,
    DRIVER,
    PINNED,
    WAYS
};

struct pageable {
    uint64_t least, most;
    unsigned char *src, *dst;
    weir_queue *queue;
    weir_buffer *memory;
    bool has_raw;
    struct side raw;
    struct bench_samples ms[SIZES_MOST][2][WAYS];
};

static void copy_weir(struct pageable *p, bool up, size_t size)
{
    cli_fine(up ? weir_upload(p->queue, p->memory, 0, p->src, size)
                : weir_download(p->queue, p->dst, p->memory, 0, size));
}

static void copy_driver(struct pageable *p, bool up, size_t size)
{
    if (up)
        SIDE_CU(p->raw.cu, cuMemcpyHtoD, p->raw.cu->memories[0], p->src, size);
    else
        SIDE_CU(p->raw.cu, cuMemcpyDtoH, p->dst, p->raw.cu->memories[0], size);
}

// Copies nothing of the program's memory: what the link can do.
static void copy_pinned(struct pageable *p, bool up, size_t size)
{
    CUstream stream = p->raw.cu->queues[0];
    for (size_t at = 0; at < size; at += PINNED_BYTES) {
        const size_t bytes = size - at < PINNED_BYTES ? size - at : PINNED_BYTES;
        if (up)
            SIDE_CU(p->raw.cu, cuMemcpyHtoDAsync, p->raw.cu->memories[0] + at, p->raw.pinned[0],
                    bytes, stream);
        else
            SIDE_CU(p->raw.cu, cuMemcpyDtoHAsync, p->raw.pinned[0], p->raw.cu->memories[0] + at,
                    bytes, stream);
    }
    p->raw.calls->finish(&p->raw, 0);
}

static const struct way ways[WAYS] = {
    [WEIR] = {"copy", copy_weir, false, false},
    [DRIVER] = {"driver", copy_driver, true, false},
    [PINNED] = {"pinned", copy_pinned, true, true},
};

static bool has_way(const struct pageable *p, size_t way)
{
    return p->has_raw || !ways[way].raw;
}

// Opening.

static void open_all(struct pageable *p)
{
    p->src = cli_allocate(1, (size_t)p->most);
    p->dst = cli_allocate(1, (size_t)p->most);
    bench_queue(bench.device, "pageable", 0, &p->queue);
    bench_buffer(bench.device, "memory", (size_t)p->most, WEIR_PLACE_DEVICE, &p->memory);
    p->has_raw = side_open(&p->raw, &side_cuda_calls, bench.device, NULL);
    if (!p->has_raw)
        return;
    side_queues(&p->raw, 1);
    p->raw.calls->memory(&p->raw, 0, (size_t)p->most);
    p->raw.calls->pinned(&p->raw, 0, PINNED_BYTES);
}

// Whole, and a size that is a multiple of nothing.
static void check_way(struct pageable *p, size_t way)
{
    const size_t sizes[] = {(size_t)p->most, (size_t)(p->most - p->most / 3 - 1)};
    for (size_t i = 0; i < p->most; i++)
        p->src[i] = (unsigned char)(i * 7 + (i >> 12) + (i >> 21) + way);
    for (size_t i = 0; i < 2; i++) {
        memset(p->dst, 0, (size_t)p->most);
        ways[way].copy(p, true, sizes[i]);
        ways[way].copy(p, false, sizes[i]);
        bench.checked++;
        if (memcmp(p->src, p->dst, sizes[i]) != 0)
            cli_fail(CLI_FAILED, "%s: bytes that went up and down differ", ways[way].name);
    }
}

// Measuring.

static size_t size_of(size_t index)
{
    return SIZE_LEAST << 2 * index;
}

static bool has_size(const struct pageable *p, size_t index)
{
    return size_of(index) >= p->least && size_of(index) <= p->most;
}

static void measure_way(struct pageable *p, size_t index, bool up, size_t way)
{
    static const char suffixes[] = "KMG";
    const size_t size = size_of(index), repeats = READY_BYTES / size;
    const size_t count = repeats < 1 ? 1 : repeats > REPEATS_MAX ? REPEATS_MAX : repeats;
    const unsigned unit = size >> 30 ? 2 : size >> 20 ? 1 : 0;
    const uint64_t began = cli_now_ns();
    for (size_t i = 0; i < count; i++)
        ways[way].copy(p, up, size);
    bench_figure(&p->ms[index][up][way], (double)(cli_now_ns() - began) * 1e-6 / (double)count,
                 "%s_%s_%zu%c", ways[way].name, up ? "up" : "down", size >> 10 * (unit + 1),
                 suffixes[unit]);
}

// Each way goes first in turn.
static void measure(struct pageable *p)
{
    for (size_t i = 0; i < SIZES_MOST; i++)
        for (size_t k = 0; has_size(p, i) && k < WAYS; k++) {
            const size_t way = (size_t)((k + bench.turn) % WAYS);
            if (!has_way(p, way))
                continue;
            measure_way(p, i, true, way);
            measure_way(p, i, false, way);
        }
}

static void put_way(const struct pageable *p, struct bench_table *table, size_t index, bool up,
                    size_t way)
{
    const struct bench_samples ms = p->ms[index][up][way];
    char size[WEIR_TEXT_QUANTITY_SIZE];
    bench_text(table, "size", "size", weir_text_bytes(size, size_of(index)));
    bench_text(table, "direction", "", up ? "up" : "down");
    bench_text(table, "way", "way", ways[way].name);
    bench_value(table, "ms", "ms", 4, ms);
    bench_value(table, "to_weir", "to Weir's", 3, bench_ratio(ms, p->ms[index][up][WEIR]));
    if (up)
        bench_plot_bar(ways[way].name, size, ms);
}

static void report(struct pageable *p)
{
    struct bench_table *table = bench_table("copies", "one copy");
    bench_plot("Copies of memory that is not pinned", "", "milliseconds");
    for (size_t i = 0; i < SIZES_MOST; i++)
        for (size_t k = 0; has_size(p, i) && k < 2 * WAYS; k++)
            if (has_way(p, k % WAYS))
                put_way(p, table, i, k < WAYS, k % WAYS);
}

static void run(void *user)
{
    struct pageable *p = user;
    open_all(p);
    for (size_t i = 0; i < WAYS; i++)
        if (has_way(p, i) && !ways[i].is_bound)
            check_way(p, i);
    for (bench_start(); bench_turn();)
        measure(p);
    report(p);
}

int job_pageable(int argc, char **argv)
{
    static struct pageable p = {.least = 4096, .most = 1 << 30};
    static const struct cli_option options[] = {
        {"least", "N", "bytes of the smallest copy (4096)", CLI_COUNT, &p.least, 1, UINT32_MAX},
        {"most", "N", "bytes of the largest copy (1 GiB)", CLI_COUNT, &p.most, SIZE_LEAST,
         UINT64_C(1) << 32},
    };
    static const struct bench_program program = {
        .about = "Measures copies of memory that is not pinned, beside the driver's own copy, and\n"
                 "copies of pinned memory.\n",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .opens_device = true,
        .launches_nothing = true,
        .serves = true,
        .run = run,
    };
    return bench_main(&program, &p, argc, argv);
}
