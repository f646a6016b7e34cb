// The ranks of weir bench comm: one that a launcher started, or several in this process.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/comm.h"

const weir_collective comm_kinds[] = {
    WEIR_ALL_REDUCE,     WEIR_REDUCE,     WEIR_BROADCAST, WEIR_ALL_GATHER,
    WEIR_REDUCE_SCATTER, WEIR_ALL_TO_ALL, WEIR_EXCHANGE,
};
const char *const comm_kind_names[] = {"all-reduce",     "reduce",     "broadcast", "all-gather",
                                       "reduce-scatter", "all-to-all", "exchange",  NULL};

// Opening.

static bool make_buffers(struct comm_bench *b, struct comm_rank *rank, size_t bytes)
{
    const struct weir_queue_params queue = {.struct_size = sizeof queue, .label = "bench"};
    const struct weir_buffer_params memory = {
        .struct_size = sizeof memory,
        .label = "bench",
        .size = bytes,
        .placement = b->host_memory ? WEIR_PLACE_HOST : WEIR_PLACE_DEVICE,
    };
    const struct weir_buffer_params time = {.struct_size = sizeof time,
                                            .label = "bench/time",
                                            .size = sizeof(double)};
    return (weir_queue_create(rank->device, &queue, &rank->queue) == WEIR_OK &&
            weir_buffer_create(rank->device, &memory, &rank->src) == WEIR_OK &&
            weir_buffer_create(rank->device, &memory, &rank->dst) == WEIR_OK &&
            weir_buffer_create(rank->device, &time, &rank->time) == WEIR_OK) ||
           bench_fail_weir(b->bench);
}

bool comm_open(struct comm_bench *b)
{
    size_t bytes = 0;
    for (size_t i = 0; i < b->sizes.count; i++)
        bytes = b->sizes.values[i] > bytes ? (size_t)b->sizes.values[i] : bytes;
    if (!bench_ranks_open(b->bench, b->asked_ranks, &b->all))
        return false;
    b->first = b->all.first;
    b->count = b->all.count;
    b->local_count = b->all.local_count;
    for (uint32_t i = 0; i < b->local_count; i++) {
        b->ranks[i].device = b->all.ranks[i].device;
        b->ranks[i].comm = b->all.ranks[i].comm;
        if (!make_buffers(b, &b->ranks[i], bytes))
            return false;
    }
    return true;
}

void comm_close(struct comm_bench *b)
{
    for (uint32_t i = b->local_count; i-- > 0;) {
        struct comm_rank *rank = &b->ranks[i];
        weir_buffer_destroy(&rank->time);
        weir_buffer_destroy(&rank->dst);
        weir_buffer_destroy(&rank->src);
        weir_queue_destroy(&rank->queue);
    }
    bench_ranks_close(b->bench, &b->all);
}

// Collectives.

static weir_status submit(const struct comm_bench *b, const struct comm_rank *rank,
                          const struct comm_row *row)
{
    const uint32_t own = weir_comm_rank(rank->comm);
    struct weir_collective_params params = {
        .struct_size = sizeof params,
        .kind = row->kind,
        .element = WEIR_F32,
        .reduction = WEIR_SUM,
        .dst = rank->dst,
        .src = rank->src,
        .count = row->count,
    };
    const struct weir_exchange ring[] = {
        {rank->src, 0, row->count, WEIR_F32, (own + 1) % b->count, false},
        {rank->dst, 0, row->count, WEIR_F32, (own + b->count - 1) % b->count, true},
    };
    if (row->kind == WEIR_EXCHANGE) {
        params.src = params.dst = NULL;
        params.count = 0;
        params.exchanges = ring;
        params.exchange_count = 2;
    }
    return weir_queue_collective(rank->queue, rank->comm, &params);
}

static weir_status submit_all(const struct comm_bench *b, const struct comm_row *row)
{
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < b->local_count && status == WEIR_OK; i++)
        status = row ? submit(b, &b->ranks[i], row)
                     : weir_queue_barrier(b->ranks[i].queue, b->ranks[i].comm);
    return status;
}

static weir_status sync_all(const struct comm_bench *b)
{
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < b->local_count && status == WEIR_OK; i++)
        status = weir_queue_sync(b->ranks[i].queue, WEIR_FOREVER);
    return status;
}

static weir_status submit_way(const struct comm_bench *b, const struct comm_row *row,
                              enum comm_way way)
{
    return way == COMM_RAW ? comm_raw_submit(b->raw, row) : submit_all(b, row);
}

static weir_status sync_way(const struct comm_bench *b, enum comm_way way)
{
    return way == COMM_RAW ? comm_raw_sync(b->raw) : sync_all(b);
}

double comm_slowest(struct comm_bench *b, double value)
{
    double slowest = value;
    for (uint32_t i = 0; i < b->local_count; i++) {
        const struct comm_rank *rank = &b->ranks[i];
        if (weir_upload(rank->queue, rank->time, 0, &value, sizeof value) < 0 ||
            weir_queue_all_reduce(rank->queue, rank->comm, rank->time, 0, rank->time, 0, 1,
                                  WEIR_F64, WEIR_MAXIMUM) < 0)
            return -1;
    }
    const struct comm_rank *first = &b->ranks[0];
    if (sync_all(b) < 0 ||
        weir_download(first->queue, &slowest, first->time, 0, sizeof slowest) < 0)
        return -1;
    return slowest;
}

double comm_time(struct comm_bench *b, const struct comm_row *row, enum comm_way way)
{
    if (submit_all(b, NULL) < 0 || sync_all(b) < 0)
        return -1;
    const uint64_t began = cli_now_ns();
    for (uint64_t i = 0; i < b->iterations; i++)
        if (submit_way(b, row, way) < 0)
            return -1;
    if (sync_way(b, way) < 0)
        return -1;
    return comm_slowest(b, (double)(cli_now_ns() - began) / (double)b->iterations);
}

// Checking.

// Sums of them over all ranks are exact.
static float number(uint32_t rank, uint64_t index)
{
    return (float)((rank + 1) * (1 + index % 5));
}

static float total(uint32_t ranks, uint64_t index)
{
    const uint64_t sum = (uint64_t)ranks * (ranks + 1) / 2 * (1 + index % 5);
    return (float)sum;
}

static float expected(const struct comm_row *row, uint32_t rank, uint32_t count, uint64_t index)
{
    const uint32_t part = (uint32_t)(index / row->count);
    const uint64_t within = index % row->count;
    switch (row->kind) {
    case WEIR_BROADCAST:
        return number(0, index);
    case WEIR_ALL_GATHER:
        return number(part, within);
    case WEIR_REDUCE_SCATTER:
        return total(count, rank * row->count + index);
    case WEIR_ALL_TO_ALL:
        return number(part, rank * row->count + within);
    case WEIR_EXCHANGE:
        return number((rank + count - 1) % count, index);
    default:
        return total(count, index);
    }
}

// The elements that a rank has written.
static uint64_t written(const struct comm_row *row, uint32_t rank, uint32_t count)
{
    if (row->kind == WEIR_REDUCE)
        return rank == 0 ? row->count : 0;
    return row->kind == WEIR_ALL_GATHER || row->kind == WEIR_ALL_TO_ALL ? row->count * count
                                                                        : row->count;
}

static bool fill(struct comm_bench *b, const struct comm_rank *rank, float *numbers, size_t bytes)
{
    const uint32_t own = weir_comm_rank(rank->comm);
    const uint32_t nothing = 0xffffffff; // no number
    for (size_t i = 0; i < bytes / sizeof *numbers; i++)
        numbers[i] = number(own, i);
    return (weir_queue_fill(rank->queue, rank->dst, 0, bytes, &nothing, sizeof nothing) ==
                WEIR_OK &&
            weir_upload(rank->queue, rank->src, 0, numbers, bytes) == WEIR_OK) ||
           bench_fail_weir(b->bench);
}

static bool compare(struct comm_bench *b, const struct comm_row *row, enum comm_way way,
                    const struct comm_rank *rank, float *numbers)
{
    const uint32_t own = weir_comm_rank(rank->comm);
    const uint64_t elements = written(row, own, b->count);
    if (weir_download(rank->queue, numbers, rank->dst, 0, elements * sizeof *numbers) < 0)
        return bench_fail_weir(b->bench);
    b->bench->checked++;
    for (uint64_t i = 0; i < elements; i++)
        if (numbers[i] != expected(row, own, b->count, i))
            return bench_fail_result(
                b->bench, "%s%s of %zu bytes: element %llu of rank %u is %g in place of %g",
                way == COMM_RAW ? "raw " : "", weir_collective_name(row->kind), row->bytes,
                (unsigned long long)i, (unsigned)own, (double)numbers[i],
                (double)expected(row, own, b->count, i));
    return true;
}

bool comm_check(struct comm_bench *b, const struct comm_row *row, enum comm_way way)
{
    const size_t bytes = row->bytes / sizeof(float) * sizeof(float);
    float *numbers = malloc(bytes);
    bool fine = numbers != NULL;
    if (!fine)
        return bench_fail(b->bench, CLI_FAILED, "no memory to check %zu bytes", bytes);
    for (uint32_t i = 0; i < b->local_count && fine; i++)
        fine = fill(b, &b->ranks[i], numbers, bytes);
    // What fills them is on Weir's queues.
    if (fine && (sync_all(b) < 0 || submit_way(b, row, way) < 0 || sync_way(b, way) < 0))
        fine = bench_fail_weir(b->bench);
    for (uint32_t i = 0; i < b->local_count && fine; i++)
        fine = compare(b, row, way, &b->ranks[i], numbers);
    free(numbers);
    return fine;
}
