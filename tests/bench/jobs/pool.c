// The job `pool`: what memory out of a pool costs the thread that allocates it, beside
// buffers that are created and destroyed, and on CUDA beside the driver's own pool.
//
// Nothing is submitted between an allocation and its free: only the calls are timed. The
// driver's free and allocation are work in its stream; waiting for that is not timed.
#include "tests/bench/jobs/drivers.h"

enum {
    BATCH = 100, // pairs between two waits: well below what makes a driver block
    SET = 8,     // buffers that are out at once in the second way
    PAIRS_MOST = 100000000
};

#define SIZE_LEAST 8
#define SIZE_MOST (UINT64_C(1) << 40)

// Where memory comes from.
enum source {
    POOL,
    BUFFERS, // created and destroyed
    DRIVER,  // the driver's own pool
    SOURCES
};

static const struct {
    const char *key;
    size_t out; // buffers at once
} ways[] = {{"pair", 1}, {"set", SET}};

struct row {
    size_t size;
    size_t way;
    struct bench_samples ns[SOURCES];
};

struct pool_bench {
    struct bench_list sizes;
    uint64_t pairs;
    weir_queue *queue;
    weir_pool *pool;
    weir_buffer *checked; // two halves
    int sources;          // the driver's on CUDA alone
    struct side driver;   // its queue 0
    CUmemoryPool driver_pool;
    struct row rows[BENCH_LIST_MAX * BENCH_COUNT(ways)];
    size_t row_count;
};

// One of the memories of a batch, which is a buffer or, of the driver's, an address.
union memory {
    weir_buffer *buffer;
    CUdeviceptr address;
};

static void take(struct pool_bench *b, enum source source, size_t size, union memory *memory)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params, .size = size};
    const struct side_cuda *cu = b->driver.cu;
    if (source == POOL)
        bench_fine(weir_pool_allocate(b->pool, b->queue, size, &memory->buffer));
    else if (source == BUFFERS)
        bench_fine(weir_buffer_create(bench.device, &params, &memory->buffer));
    else
        SIDE_CU(cu, cuMemAllocFromPoolAsync, &memory->address, size, b->driver_pool, cu->queues[0]);
}

static void give(struct pool_bench *b, enum source source, union memory *memory)
{
    const struct side_cuda *cu = b->driver.cu;
    if (source == POOL)
        bench_fine(weir_pool_free(b->queue, &memory->buffer));
    else if (source == BUFFERS)
        weir_buffer_destroy(&memory->buffer);
    else
        SIDE_CU(cu, cuMemFreeAsync, memory->address, cu->queues[0]);
}

// Nanoseconds a pair.
static double time_pairs(struct pool_bench *b, const struct row *row, uint64_t pairs,
                         enum source source)
{
    const size_t out = ways[row->way].out;
    union memory memory[SET];
    uint64_t total = 0, done = 0;
    while (done < pairs) {
        const uint64_t began = cli_now_ns();
        for (size_t i = 0; i < BATCH / out; i++) {
            for (size_t k = 0; k < out; k++)
                take(b, source, row->size, &memory[k]);
            for (size_t k = out; k-- > 0;)
                give(b, source, &memory[k]);
        }
        total += cli_now_ns() - began;
        done += BATCH / out * out;
        bench_sync(b->queue);
        if (source == DRIVER)
            b->driver.calls->finish(&b->driver, 0);
    }
    return (double)total / (double)done;
}

// Creating buffers is slow, so it is timed less often.
static void measure_row(struct pool_bench *b, struct row *row)
{
    const uint64_t few = b->pairs / 10 ? b->pairs / 10 : 1;
    for (int source = 0; source < b->sources; source++)
        bench_keep(&row->ns[source],
                   time_pairs(b, row, source == POOL ? b->pairs : few, (enum source)source));
}

// Checking: two buffers that had the same memory one after the other each hold what was
// written to them, though nothing is waited for between.
static void check(struct pool_bench *b, size_t size)
{
    static const unsigned char values[2] = {0x5a, 0xa5};
    unsigned char seen[2 * 4096] = {0};
    const size_t bytes = size < 4096 ? size : 4096;
    bool right = true;
    for (size_t i = 0; i < 2; i++) {
        weir_buffer *buffer;
        cli_fine(weir_pool_allocate(b->pool, b->queue, size, &buffer));
        cli_fine(weir_queue_fill(b->queue, buffer, 0, size, &values[i], 1));
        cli_fine(weir_queue_copy(b->queue, b->checked, i * 4096, buffer, size - bytes, bytes));
        cli_fine(weir_pool_free(b->queue, &buffer));
    }
    cli_fine(weir_download(b->queue, seen, b->checked, 0, sizeof seen));
    for (size_t i = 0; i < bytes; i++)
        right = right && seen[i] == values[0] && seen[4096 + i] == values[1];
    bench.checked += 2;
    if (!right)
        cli_fail(CLI_FAILED,
                 "buffers of %zu bytes out of the pool hold wrong bytes; nothing was timed", size);
}

// Set-up and report.

// A pool of the driver's that keeps what is freed.
static void open_driver(struct pool_bench *b)
{
    cuuint64_t keep_all = UINT64_MAX;
    b->sources = DRIVER;
    if (!side_open(&b->driver, &side_cuda_calls, bench.device, NULL))
        return;
    b->sources = SOURCES;
    struct side_cuda *cu = b->driver.cu;
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                    .id = cu->device}};
    side_queues(&b->driver, 1);
    SIDE_CU(cu, cuMemPoolCreate, &b->driver_pool, &properties);
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
        for (size_t way = 0; way < BENCH_COUNT(ways); way++)
            if (size <= most / ways[way].out)
                b->rows[b->row_count++] = (struct row){.size = (size_t)size, .way = way};
    }
}

CLI_DESTROYER(destroy_pool, weir_pool_destroy)

static void report(struct pool_bench *b)
{
    struct bench_table *table = bench_table("pairs", "an allocation and its free");
    bench_plot("Memory: an allocation and its free", "", "ns a pair");
    for (size_t i = 0; i < b->row_count; i++) {
        const struct row *row = &b->rows[i];
        const char *group = cli_text("%zu, %s", row->size, ways[row->way].key);
        bench_number(table, "bytes", "bytes", (double)row->size);
        bench_text(table, "way", "", ways[row->way].key);
        bench_value(table, "pool_ns", "pool ns", 1, row->ns[POOL]);
        bench_value(table, "buffers_ns", "create, destroy ns", 1, row->ns[BUFFERS]);
        bench_plot_bar("pool", group, row->ns[POOL]);
        bench_plot_bar("create, destroy", group, row->ns[BUFFERS]);
        if (b->sources == DRIVER)
            continue;
        bench_value(table, "driver_ns", "driver's pool ns", 1, row->ns[DRIVER]);
        bench_value(table, "to_driver", "pool / driver", 3,
                    bench_ratio(row->ns[POOL], row->ns[DRIVER]));
        bench_plot_bar("driver's pool", group, row->ns[DRIVER]);
    }
}

static void run(void *user)
{
    struct pool_bench *b = user;
    make_rows(b);
    bench_queue(bench.device, "bench", 0, &b->queue);
    bench_buffer(bench.device, "checked", 8192, WEIR_PLACE_DEVICE, &b->checked);
    cli_fine(weir_pool_create(bench.device, WEIR_PARAMS(weir_pool, .label = "bench"), &b->pool));
    cli_own(destroy_pool, &b->pool);
    open_driver(b);
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
        .options = options,
        .option_count = BENCH_COUNT(options),
        .launches_nothing = true,
        .run = run,
    };
    return bench_main(&program, &b, argc, argv);
}
