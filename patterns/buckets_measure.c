// What reductions of several sizes take on a communicator, for WEIR_BUCKETS_AUTO.
//
// The bandwidth of a link still grows at sizes at which the latency no longer counts (NCCL on NVLink:
// 226 GB/s at 16 MiB, 331 at 1 GiB), so that a latency and one bandwidth would make buckets too small.
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "patterns/buckets_parts.h"
#include "patterns/fail.h"

#define SMALL_BYTES ((size_t)4 << 10)
#define CHAIN_BYTES ((size_t)128 << 20)

enum {
    CHAIN_LEAST = 2, // reductions that are timed together
    CHAIN_MOST = 8,
    ROUNDS = 3
};

static const size_t point_bytes[WEIR__BUCKETS_POINTS] = {
    (size_t)1 << 20, (size_t)4 << 20, (size_t)16 << 20, (size_t)64 << 20, (size_t)256 << 20,
};

static size_t chain_of(size_t size)
{
    const size_t chain = CHAIN_BYTES / size;
    return chain < CHAIN_LEAST ? CHAIN_LEAST : chain > CHAIN_MOST ? CHAIN_MOST : chain;
}

// The gradients, which are zeros now, stay zeros.
static weir_status submit_chain(weir_buckets *buckets, size_t size)
{
    weir_buffer *buffer = buckets->narrows ? buckets->wire : buckets->gradients;
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < chain_of(size) && status == WEIR_OK; i++)
        status = weir_queue_all_reduce(buckets->comm_queue, buckets->params.comm, buffer, 0, buffer,
                                       0, size / buckets->wire_size, buckets->params.wire,
                                       buckets->params.reduction);
    return status;
}

// The shortest of a few rounds, in nanoseconds of one reduction. The first one warms up.
static weir_status time_chain(weir_buckets *const *buckets, uint32_t count, size_t size,
                              double *out_ns)
{
    *out_ns = 0;
    for (int round = 0; round <= ROUNDS; round++) {
        const uint64_t begin_ns = weir_clock_now_ns();
        weir_status status = WEIR_OK;
        for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
            status = submit_chain(buckets[i], size);
        for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
            status = weir_queue_sync(buckets[i]->comm_queue, WEIR_FOREVER);
        if (status != WEIR_OK)
            return status;
        const double ns = (double)(weir_clock_now_ns() - begin_ns) / (double)chain_of(size);
        if (round == 1 || (round > 1 && ns < *out_ns))
            *out_ns = ns;
    }
    return WEIR_OK;
}

// What a rank measured.
struct figures {
    struct weir__buckets_curve curve;
    double backward_ns;
};

// The sizes that are measured: the same on all ranks.
static void list_points(const weir_buckets *buckets, struct weir__buckets_curve *curve)
{
    const size_t most = buckets->plan.bytes / buckets->element_size * buckets->wire_size;
    for (uint32_t i = 0; i < WEIR__BUCKETS_POINTS && most > SMALL_BYTES; i++) {
        curve->bytes[curve->count++] = point_bytes[i] < most ? point_bytes[i] : most;
        if (point_bytes[i] >= most)
            break;
    }
}

static weir_status measure(weir_buckets *const *buckets, uint32_t count,
                           struct weir__buckets_curve *curve)
{
    const size_t bytes = buckets[0]->plan.bytes / buckets[0]->element_size * buckets[0]->wire_size;
    *curve = (struct weir__buckets_curve){0};
    list_points(buckets[0], curve);
    weir_status status =
        time_chain(buckets, count, bytes < SMALL_BYTES ? bytes : SMALL_BYTES, &curve->latency_ns);
    for (uint32_t i = 0; i < curve->count && status == WEIR_OK; i++) {
        double ns = 0;
        status = time_chain(buckets, count, curve->bytes[i], &ns);
        curve->ns_per_byte[i] =
            ns > curve->latency_ns ? (ns - curve->latency_ns) / (double)curve->bytes[i] : 0;
    }
    return status;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static struct figures slowest_of(const struct figures *all, uint32_t ranks)
{
    struct figures slowest = all[0];
    struct weir__buckets_curve *curve = &slowest.curve;
    for (uint32_t rank = 1; rank < ranks; rank++) {
        curve->latency_ns = larger(curve->latency_ns, all[rank].curve.latency_ns);
        for (uint32_t i = 0; i < curve->count; i++)
            curve->ns_per_byte[i] = larger(curve->ns_per_byte[i], all[rank].curve.ns_per_byte[i]);
        slowest.backward_ns = larger(slowest.backward_ns, all[rank].backward_ns);
    }
    for (uint32_t i = 1; i < curve->count; i++) // a larger one that was slower was disturbed
        if (curve->ns_per_byte[i] > curve->ns_per_byte[i - 1])
            curve->ns_per_byte[i] = curve->ns_per_byte[i - 1];
    return slowest;
}

static void choose(weir_buckets *buckets, const struct figures *slowest)
{
    const struct weir__buckets_curve *curve = &slowest->curve;
    const double ns_per_byte = curve->count ? curve->ns_per_byte[curve->count - 1] : 0;
    weir__buckets_choose(buckets, curve, slowest->backward_ns);
    buckets->plan.latency_ns = curve->latency_ns;
    buckets->plan.bytes_per_ns = ns_per_byte > 0 ? 1 / ns_per_byte : 0;
}

static weir_status measure_with(weir_buckets *const *buckets, uint32_t count, struct figures *mine)
{
    struct figures *all = mine + count;
    weir_status status = measure(buckets, count, &mine[0].curve);
    for (uint32_t i = 0; i < count; i++) {
        mine[i] = mine[0];
        mine[i].backward_ns = (double)buckets[i]->params.backward_ns;
    }
    if (status == WEIR_OK)
        status = weir__buckets_gather(buckets, count, mine, sizeof *mine, all);
    if (status != WEIR_OK)
        return status;
    const struct figures slowest = slowest_of(all, weir_comm_count(buckets[0]->params.comm));
    for (uint32_t i = 0; i < count; i++)
        choose(buckets[i], &slowest);
    return WEIR_OK;
}

weir_status weir__buckets_measure(weir_buckets *const *buckets, uint32_t count)
{
    const size_t ranks = weir_comm_count(buckets[0]->params.comm);
    struct figures *figures = calloc(count + ranks, sizeof *figures);
    if (!figures)
        return weir__pattern_fail(buckets[0]->label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                                  "no memory for the figures of %zu ranks", ranks);
    const weir_status status = measure_with(buckets, count, figures);
    free(figures);
    return status;
}
