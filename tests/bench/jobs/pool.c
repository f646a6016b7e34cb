// The job `pool`: what memory out of a pool costs the thread that allocates it, beside
// buffers that are created and destroyed, and on CUDA beside the driver's own pool.
//
// Nothing is submitted between an allocation and its free: only the calls are timed. The
// driver's free and allocation are work in its stream; waiting for that is not timed.
#include <stdio.h>
#include <string.h>

#include "cli/bench/work.h"
#include "tests/bench/jobs/raw.h"

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
    struct bench *bench;
    const char *asked_sizes;
    struct bench_list sizes;
    uint64_t pairs;
    weir_queue *queue;
    weir_pool *pool;
    weir_buffer *host;
    bool has_driver; // on CUDA
    struct raw_cuda cu;
    CUstream stream;
    CUmemoryPool driver_pool;
    struct row rows[BENCH_LIST_MAX * WAYS];
    size_t row_count;
};

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
    const struct weir_buffer_params params = {.struct_size = sizeof params, .size = size};
    weir_buffer *buffers[SET];
    weir_status status = WEIR_OK;
    for (size_t done = 0; done < count && status == WEIR_OK; done += out) {
        size_t have = 0;
        while (have < out && status == WEIR_OK)
            if ((status = weir_buffer_create(b->bench->device, &params, &buffers[have])) == WEIR_OK)
                have++;
        while (have > 0)
            weir_buffer_destroy(&buffers[--have]);
    }
    return status;
}

// Nanoseconds a pair; negative on failure.
static double time_weir(struct pool_bench *b, const struct row *row, uint64_t pairs,
                        weir_status (*batch)(struct pool_bench *, size_t, size_t, size_t))
{
    const size_t out = row->way == MANY ? SET : 1;
    uint64_t total = 0, done = 0;
    for (; done < pairs; done += BATCH / out * out) {
        const uint64_t began = cli_now_ns();
        if (batch(b, row->size, out, BATCH / out * out) < 0)
            return -1;
        total += cli_now_ns() - began;
        if (weir_queue_sync(b->queue, WEIR_FOREVER) < 0)
            return -1;
    }
    return (double)total / (double)done;
}

static bool driver_batch(struct pool_bench *b, size_t size, size_t out, size_t count)
{
    const struct raw_cuda *cu = &b->cu;
    CUdeviceptr blocks[SET];
    CUresult code = CUDA_SUCCESS;
    for (size_t done = 0; done < count && code == CUDA_SUCCESS; done += out) {
        size_t have = 0;
        while (have < out && code == CUDA_SUCCESS)
            code = cu->cuMemAllocFromPoolAsync(&blocks[have++], size, b->driver_pool, b->stream);
        while (have > 0 && code == CUDA_SUCCESS)
            code = cu->cuMemFreeAsync(blocks[--have], b->stream);
    }
    return code == CUDA_SUCCESS;
}

static double time_driver(struct pool_bench *b, const struct row *row, uint64_t pairs)
{
    const size_t out = row->way == MANY ? SET : 1;
    uint64_t total = 0, done = 0;
    for (; done < pairs; done += BATCH / out * out) {
        const uint64_t began = cli_now_ns();
        if (!driver_batch(b, row->size, out, BATCH / out * out))
            return -1;
        total += cli_now_ns() - began;
        if (b->cu.cuStreamSynchronize(b->stream) != CUDA_SUCCESS)
            return -1;
    }
    return (double)total / (double)done;
}

// Creating buffers is slow, so it is timed less often.
static bool measure_row(struct pool_bench *b, struct row *row)
{
    struct bench *bench = b->bench;
    const uint64_t few = b->pairs / 10 ? b->pairs / 10 : 1;
    const double pool = time_weir(b, row, b->pairs, pool_batch);
    const double buffers = time_weir(b, row, few, buffer_batch);
    if (pool < 0 || buffers < 0)
        return bench_fail_weir(bench);
    const double driver = b->has_driver ? time_driver(b, row, few) : 0;
    if (driver < 0)
        return bench_fail(bench, CLI_SETUP,
                          "the driver's pool refused %zu bytes while it was timed", row->size);
    bench_keep(bench, &row->pool, pool);
    bench_keep(bench, &row->buffers, buffers);
    if (b->has_driver)
        bench_keep(bench, &row->driver, driver);
    return true;
}

// A pool that is warm allocates nothing.
static bool is_flat(struct pool_bench *b, const struct row *row)
{
    const size_t out = row->way == MANY ? SET : 1;
    struct weir_counters before, after;
    weir_counters_read(&before);
    if (pool_batch(b, row->size, out, SET) < 0)
        return bench_fail_weir(b->bench);
    weir_counters_read(&after);
    if (before.allocations == after.allocations && before.driver_objects == after.driver_objects)
        return true;
    return bench_fail_result(b->bench,
                             "the pool was warm and still asked for memory, at %zu bytes %s",
                             row->size, ways[row->way].about);
}

static bool measure(struct pool_bench *b)
{
    struct bench *bench = b->bench;
    for (bench_start(bench); bench_turn(bench);)
        for (size_t i = 0; i < b->row_count; i++)
            if (!measure_row(b, &b->rows[i]) || (bench->turn > 0 && !is_flat(b, &b->rows[i])))
                return false;
    return true;
}

// Checking: two buffers that had the same memory one after the other each hold what was
// written to them, though nothing is waited for between.
static bool check(struct pool_bench *b, size_t size)
{
    const unsigned char values[2] = {0x5a, 0xa5};
    const size_t bytes = size < 4096 ? size : 4096;
    unsigned char *seen;
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < 2 && status == WEIR_OK; i++) {
        weir_buffer *buffer;
        if ((status = weir_pool_allocate(b->pool, b->queue, size, &buffer)) == WEIR_OK &&
            (status = weir_queue_fill(b->queue, buffer, 0, size, &values[i], 1)) == WEIR_OK &&
            (status = weir_queue_copy(b->queue, b->host, i * 4096, buffer, size - bytes, bytes)) ==
                WEIR_OK)
            status = weir_pool_free(b->queue, &buffer);
    }
    if (status < 0 || weir_queue_sync(b->queue, WEIR_FOREVER) < 0 ||
        weir_host_begin(b->host, 0, 8192, WEIR_ACCESS_READ, (void **)&seen) < 0)
        return bench_fail_weir(b->bench);
    bool right = true;
    for (size_t i = 0; i < bytes; i++)
        right = right && seen[i] == values[0] && seen[4096 + i] == values[1];
    WEIR_IGNORE(weir_host_end(b->host, 0, 8192, WEIR_ACCESS_READ));
    b->bench->checked += 2;
    return right || bench_fail_result(b->bench,
                                      "buffers of %zu bytes out of the pool hold wrong bytes; "
                                      "nothing was timed",
                                      size);
}

static bool check_all(struct pool_bench *b)
{
    for (size_t i = 0; i < b->sizes.count; i++)
        if (!check(b, (size_t)b->sizes.values[i]))
            return false;
    return true;
}

// Set-up and report.

// A pool of the driver's that keeps what is freed.
static bool make_driver_pool(struct pool_bench *b, char *message, size_t size)
{
    const struct raw_cuda *cu = &b->cu;
    cuuint64_t keep_all = UINT64_MAX;
    if (!raw_cuda_open(&b->cu, NULL, message, size))
        return false;
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                    .id = cu->device}};
    return raw_cuda_fine(cu, cu->cuStreamCreateWithPriority(&b->stream, CU_STREAM_NON_BLOCKING, 0),
                         "cuStreamCreateWithPriority", message, size) &&
           raw_cuda_fine(cu, cu->cuMemPoolCreate(&b->driver_pool, &properties), "cuMemPoolCreate",
                         message, size) &&
           raw_cuda_fine(cu,
                         cu->cuMemPoolSetAttribute(b->driver_pool,
                                                   CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all),
                         "cuMemPoolSetAttribute", message, size);
}

static void open_driver(struct pool_bench *b)
{
    char message[512] = "this is not CUDA";
    b->has_driver = strcmp(weir_runtime_backend(b->bench->runtime), "cuda") == 0 &&
                    make_driver_pool(b, message, sizeof message);
    if (!b->has_driver)
        bench_note(b->bench, "not measured: the driver's own pool: %.250s", message);
}

static bool make_rows(struct pool_bench *b)
{
    const struct weir_limits *limits = b->bench->limits;
    for (size_t i = 0; i < b->sizes.count; i++) {
        const uint64_t size = b->sizes.values[i];
        if (size > limits->max_buffer_bytes)
            return bench_fail(b->bench, CLI_USAGE,
                              "--size: a buffer of this device has at most %llu bytes",
                              (unsigned long long)limits->max_buffer_bytes);
        for (int way = 0; way < WAYS; way++)
            if (way == PAIR || size <= limits->max_buffer_bytes / SET)
                b->rows[b->row_count++] = (struct row){.size = (size_t)size, .way = (enum way)way};
    }
    return true;
}

static bool make_objects(struct pool_bench *b)
{
    const struct weir_pool_params params = {.struct_size = sizeof params, .label = "bench"};
    if (!make_rows(b) || !bench_queue(b->bench, "bench", 0, &b->queue) ||
        !bench_buffer(b->bench, "host", 8192, WEIR_PLACE_HOST, &b->host))
        return false;
    if (weir_pool_create(b->bench->device, &params, &b->pool) < 0)
        return bench_fail_weir(b->bench);
    open_driver(b);
    return true;
}

static void destroy_objects(struct pool_bench *b)
{
    if (b->driver_pool)
        b->cu.cuMemPoolDestroy(b->driver_pool);
    if (b->stream)
        b->cu.cuStreamDestroy(b->stream);
    raw_cuda_close(&b->cu);
    weir_pool_destroy(&b->pool);
    weir_buffer_destroy(&b->host);
    weir_queue_destroy(&b->queue);
}

static void report(struct pool_bench *b)
{
    static const struct bench_column columns[] = {
        {"bytes", "bytes", BENCH_NUMBER, 0},
        {"way", "", BENCH_TEXT, 0},
        {"pool_ns", "pool ns", BENCH_SPREAD, 1},
        {"buffers_ns", "create, destroy ns", BENCH_SPREAD, 1},
        {"driver_ns", "driver's pool ns", BENCH_SPREAD, 1},
        {"to_driver", "pool / driver", BENCH_SPREAD, 3},
    };
    struct cli_plot *plot = &b->bench->plot;
    struct bench_table *table =
        bench_table(b->bench, "pairs", "an allocation and its free", columns,
                    sizeof columns / sizeof *columns - (b->has_driver ? 0 : 2));
    snprintf(plot->title, sizeof plot->title, "Memory: an allocation and its free");
    snprintf(plot->y_name, sizeof plot->y_name, "ns a pair");
    for (size_t i = 0; i < b->row_count; i++) {
        const struct row *row = &b->rows[i];
        const struct bench_samples ratio = bench_ratio(&row->pool, &row->driver);
        char group[48];
        snprintf(group, sizeof group, "%zu, %s", row->size, ways[row->way].about);
        bench_row(table, (double)row->size, ways[row->way].key, &row->pool, &row->buffers,
                  &row->driver, &ratio);
        bench_plot_bar(b->bench, "pool", group, &row->pool);
        bench_plot_bar(b->bench, "create, destroy", group, &row->buffers);
        bench_plot_bar(b->bench, "driver's pool", group, &row->driver);
    }
}

static bool check_options(struct bench *bench, void *user)
{
    struct pool_bench *b = user;
    return bench_parse_list(bench, "size", b->asked_sizes, NULL, SIZE_LEAST, SIZE_MOST, &b->sizes);
}

static bool run(struct bench *bench, void *user)
{
    struct pool_bench *b = user;
    b->bench = bench;
    const bool fine = make_objects(b) && check_all(b) && measure(b);
    if (fine) {
        bench_parameter(bench, "pairs", (double)b->pairs);
        report(b);
    }
    destroy_objects(b);
    return fine;
}

static int pool_main(int argc, char **argv)
{
    struct pool_bench b = {.asked_sizes = "4K,1M,64M", .pairs = 10000};
    const struct cli_option options[] = {
        {"size", "LIST", "bytes of a buffer (4K,1M,64M)", CLI_TEXT, &b.asked_sizes, 0, 0},
        {"pairs", "N",
         "allocations with their frees in a turn (10000);\na tenth of it beside the "
         "pool",
         CLI_COUNT, &b.pairs, 1, PAIRS_MOST},
    };
    const struct bench_program program = {
        .group = "jobs",
        .name = "pool",
        .about =
            "Measures an allocation out of a pool and its free, one buffer at a time and eight,\n"
            "beside buffers that are created and destroyed, and on CUDA beside the driver's own\n"
            "pool. Fails if a warm pool asks for memory.\n",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .opens_device = true,
        .launches_nothing = true,
        .check = check_options,
        .run = run,
    };
    return bench_main(&program, &b, argc, argv);
}

const struct cli_command job_pool = {
    .name = "pool",
    .summary = "memory out of a pool beside buffers created and destroyed",
    .main = pool_main,
};
