// The job `pool`: what memory out of a pool costs the thread that allocates it, beside
// buffers that are created and destroyed, and on CUDA beside the driver's own pool.
//
// Nothing is submitted between an allocation and its free: only the calls are timed. The
// driver's free and allocation are work in its stream; waiting for that is not timed.
#include <stdio.h>

#include "tests/bench/jobs/drivers.h"

enum {
    BATCH = 100, // pairs between two waits: well below what makes a driver block
    SET = 8,     // buffers that are out at once in the second way
    PAIRS_MOST = 100000000
};

#define SIZE_LEAST 8
#define SIZE_MOST (UINT64_C(1) << 40)

enum way {
    PAIR, // one buffer, again and again
    MANY, // SET buffers, then all of them are freed
    WAYS
};

static const struct {
    const char *key;
    const char *about;
} ways[] = {
    {"pair", "one at a time"},
    {"set", "8 at a time"},
};

struct row {
    size_t size;
    enum way way;
    struct bench_samples pool;
    struct bench_samples buffers;
    struct bench_samples driver;
};

struct pool_bench {
    struct bench_list sizes;
    uint64_t pairs;
    weir_queue *queue;
    weir_pool *pool;
    weir_buffer *host;
    bool has_driver;    // on CUDA
    struct side driver; // its queue 0
    CUmemoryPool driver_pool;
    struct row rows[BENCH_LIST_MAX * WAYS];
    size_t row_count;
};

static size_t out_of(const struct row *row)
{
    return row->way == MANY ? SET : 1;
}

// One batch of `count` pairs, each way of having memory.

static weir_status pool_batch(struct pool_bench *b, size_t size, size_t out, size_t count)
{
    weir_buffer *buffers[SET];
    weir_status status = WEIR_OK;
    for (size_t done = 0; done < count && status == WEIR_OK; done += out) {
        size_t have = 0;
        while (have < out && status == WEIR_OK)
            if ((status = weir_pool_allocate(b->pool, b->queue, size, &buffers[have])) == WEIR_OK)
                have++;
        while (have > 0 && status == WEIR_OK)
            status = weir_pool_free(b->queue, &buffers[--have]);
    }
    return status;
}

static weir_status buffer_batch(struct pool_bench *b, size_t size, size_t out, size_t count)
{
    (void)b;
    const struct weir_buffer_params params = {.struct_size = sizeof params, .size = size};
    weir_buffer *buffers[SET];
    weir_status status = WEIR_OK;
    for (size_t done = 0; done < count && status == WEIR_OK; done += out) {
        size_t have = 0;
        while (have < out && status == WEIR_OK)
            if ((status = weir_buffer_create(bench.device, &params, &buffers[have])) == WEIR_OK)
                have++;
        while (have > 0)
            weir_buffer_destroy(&buffers[--have]);
    }
    return status;
}

static weir_status driver_batch(struct pool_bench *b, size_t size, size_t out, size_t count)
{
    const struct side_cuda *cu = b->driver.cu;
    CUdeviceptr blocks[SET];
    CUresult code = CUDA_SUCCESS;
    for (size_t done = 0; done < count && code == CUDA_SUCCESS; done += out) {
        size_t have = 0;
        while (have < out && code == CUDA_SUCCESS)
            code =
                cu->cuMemAllocFromPoolAsync(&blocks[have++], size, b->driver_pool, cu->queues[0]);
        while (have > 0 && code == CUDA_SUCCESS)
            code = cu->cuMemFreeAsync(blocks[--have], cu->queues[0]);
    }
    side_cuda_check(cu, code, "a call of the driver's pool");
    return WEIR_OK;
}

// Nanoseconds a pair.
static double time_batches(struct pool_bench *b, const struct row *row, uint64_t pairs,
                           weir_status (*batch)(struct pool_bench *, size_t, size_t, size_t))
{
    const size_t out = out_of(row), step = BATCH / out * out;
    uint64_t total = 0, done = 0;
    for (; done < pairs; done += step) {
        const uint64_t began = cli_now_ns();
        cli_fine(batch(b, row->size, out, step));
        total += cli_now_ns() - began;
        bench_sync(b->queue);
        if (batch == driver_batch)
            b->driver.calls->finish(&b->driver, 0);
    }
    return (double)total / (double)done;
}

// Creating buffers is slow, so it is timed less often.
static void measure_row(struct pool_bench *b, struct row *row)
{
    const uint64_t few = b->pairs / 10 ? b->pairs / 10 : 1;
    bench_keep(&row->pool, time_batches(b, row, b->pairs, pool_batch));
    bench_keep(&row->buffers, time_batches(b, row, few, buffer_batch));
    if (b->has_driver)
        bench_keep(&row->driver, time_batches(b, row, few, driver_batch));
}

// Checking: two buffers that had the same memory one after the other each hold what was
// written to them, though nothing is waited for between.
static void check(struct pool_bench *b, size_t size)
{
    static const unsigned char values[2] = {0x5a, 0xa5};
    const size_t bytes = size < 4096 ? size : 4096;
    bool right = true;
    for (size_t i = 0; i < 2; i++) {
        weir_buffer *buffer;
        cli_fine(weir_pool_allocate(b->pool, b->queue, size, &buffer));
        cli_fine(weir_queue_fill(b->queue, buffer, 0, size, &values[i], 1));
        cli_fine(weir_queue_copy(b->queue, b->host, i * 4096, buffer, size - bytes, bytes));
        cli_fine(weir_pool_free(b->queue, &buffer));
    }
    bench_sync(b->queue);
    const unsigned char *seen = bench_begin(b->host, WEIR_ACCESS_READ);
    for (size_t i = 0; i < bytes; i++)
        right = right && seen[i] == values[0] && seen[4096 + i] == values[1];
    bench_end(b->host, WEIR_ACCESS_READ);
    bench.checked += 2;
    if (!right)
        cli_fail(CLI_FAILED,
                 "buffers of %zu bytes out of the pool hold wrong bytes; nothing was timed", size);
}

// Set-up and report.

static void destroy_driver_pool(void *object)
{
    struct pool_bench *b = object;
    b->driver.cu->cuMemPoolDestroy(b->driver_pool);
}

// A pool of the driver's that keeps what is freed.
static void open_driver(struct pool_bench *b)
{
    cuuint64_t keep_all = UINT64_MAX;
    b->has_driver = side_open(&b->driver, &side_cuda_calls, bench.device, NULL);
    if (!b->has_driver)
        return;
    struct side_cuda *cu = b->driver.cu;
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                    .id = cu->device}};
    side_queues(&b->driver, 1);
    SIDE_CU(cu, cuMemPoolCreate, &b->driver_pool, &properties);
    cli_own(destroy_driver_pool, b);
    SIDE_CU(cu, cuMemPoolSetAttribute, b->driver_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            &keep_all);
}

static void make_rows(struct pool_bench *b)
{
    const uint64_t most = bench.limits->max_buffer_bytes;
    for (size_t i = 0; i < b->sizes.count; i++) {
        const uint64_t size = b->sizes.values[i];
        if (size > most)
            cli_fail(CLI_USAGE, "--size: a buffer of this device has at most %llu bytes",
                     (unsigned long long)most);
        for (int way = 0; way < WAYS; way++)
            if (way == PAIR || size <= most / SET)
                b->rows[b->row_count++] = (struct row){.size = (size_t)size, .way = (enum way)way};
    }
}

CLI_DESTROYER(destroy_pool, weir_pool_destroy)

static void make_objects(struct pool_bench *b)
{
    make_rows(b);
    bench_queue(bench.device, "bench", 0, &b->queue);
    bench_buffer(bench.device, "host", 8192, WEIR_PLACE_HOST, &b->host);
    cli_fine(weir_pool_create(bench.device, WEIR_PARAMS(weir_pool, .label = "bench"), &b->pool));
    cli_own(destroy_pool, &b->pool);
    open_driver(b);
}

static void report(struct pool_bench *b)
{
    struct bench_table *table = bench_table("pairs", "an allocation and its free");
    bench_plot("Memory: an allocation and its free", "", "ns a pair");
    for (size_t i = 0; i < b->row_count; i++) {
        const struct row *row = &b->rows[i];
        char group[48];
        snprintf(group, sizeof group, "%zu, %s", row->size, ways[row->way].about);
        bench_number(table, "bytes", "bytes", (double)row->size);
        bench_text(table, "way", "", ways[row->way].key);
        bench_value(table, "pool_ns", "pool ns", 1, row->pool);
        bench_value(table, "buffers_ns", "create, destroy ns", 1, row->buffers);
        bench_plot_bar("pool", group, row->pool);
        bench_plot_bar("create, destroy", group, row->buffers);
        if (!b->has_driver)
            continue;
        bench_value(table, "driver_ns", "driver's pool ns", 1, row->driver);
        bench_value(table, "to_driver", "pool / driver", 3, bench_ratio(row->pool, row->driver));
        bench_plot_bar("driver's pool", group, row->driver);
    }
}

static void run(void *user)
{
    struct pool_bench *b = user;
    make_objects(b);
    for (size_t i = 0; i < b->sizes.count; i++)
        check(b, (size_t)b->sizes.values[i]);
    for (bench_start(); bench_turn();)
        for (size_t i = 0; i < b->row_count; i++)
            measure_row(b, &b->rows[i]);
    bench_parameter("pairs", (double)b->pairs);
    report(b);
}

int job_pool(int argc, char **argv)
{
    static struct pool_bench b = {
        .sizes = {.text = "4K,1M,64M", .minimum = SIZE_LEAST, .maximum = SIZE_MOST},
        .pairs = 10000,
    };
    static const struct cli_option options[] = {
        {"size", "LIST", "bytes of a buffer (4K,1M,64M)", CLI_VALUES, &b.sizes, 0, 0},
        {"pairs", "N",
         "allocations with their frees in a turn (10000);\na tenth of it beside the "
         "pool",
         CLI_COUNT, &b.pairs, 1, PAIRS_MOST},
    };
    static const struct bench_program program = {
        .about =
            "Measures an allocation out of a pool and its free, one buffer at a time and eight,\n"
            "beside buffers that are created and destroyed, and on CUDA beside the driver's own\n"
            "pool.\n",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .opens_device = true,
        .launches_nothing = true,
        .run = run,
    };
    return bench_main(&program, &b, argc, argv);
}
