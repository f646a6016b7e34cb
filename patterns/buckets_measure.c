// What reductions of several sizes take on a communicator, for WEIR_BUCKETS_AUTO.
//
// The bandwidth of a link still grows at sizes at which the latency no longer counts (NCCL on NVLink:
// 226 GB/s at 16 MiB, 331 at 1 GiB), so that a latency and one bandwidth would make buckets too small.
//
// On a slow link, or with many ranks on few processors, that would take minutes. So a size is tried once,
// all ranks agree on what the slowest of them found, and where that is long it is the figure, and the last.
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "patterns/buckets_parts.h"
#include "patterns/fail.h"

#define SMALL_BYTES ((size_t)4 << 10)
#define CHAIN_BYTES ((size_t)128 << 20)
#define SLOW_NS 50e6 // a reduction, of which a chain would take too long

enum {
    CHAIN_LEAST = 2, // reductions that are timed together
    CHAIN_MOST = 8,
    ROUNDS = 3
};

static const size_t point_bytes[WEIR__BUCKETS_POINTS] = {
    (size_t)1 << 20, (size_t)4 << 20, (size_t)16 << 20, (size_t)64 << 20, (size_t)256 << 20,
};

// Where one takes `ns`; the chain is to take no longer than a slow one.
static size_t chain_of(size_t size, double ns)
{
    const size_t chain = CHAIN_BYTES / size;
    const size_t wanted = chain < CHAIN_LEAST  ? CHAIN_LEAST
                          : chain > CHAIN_MOST ? CHAIN_MOST
                                               : chain;
    return ns * (double)wanted <= SLOW_NS ? wanted : (size_t)(SLOW_NS / ns);
}

// The gradients, which are zeros now, stay zeros.
static weir_status submit_chain(weir_buckets *buckets, size_t size, size_t chain)
{
    weir_buffer *buffer = buckets->narrows ? buckets->wire : buckets->gradients;
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < chain && status == WEIR_OK; i++)
        status = weir_queue_all_reduce(buckets->comm_queue, buckets->params.comm, buffer, 0, buffer,
                                       0, size / buckets->wire_size, buckets->params.wire,
                                       buckets->params.reduction);
    return status;
}

// In nanoseconds of one reduction.
static weir_status time_chain(weir_buckets *const *buckets, uint32_t count, size_t size,
                              size_t chain, double *out_ns)
{
    const uint64_t begin_ns = weir_clock_now_ns();
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
        status = submit_chain(buckets[i], size, chain);
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
        status = weir_queue_sync(buckets[i]->comm_queue, WEIR_FOREVER);
    *out_ns = (double)(weir_clock_now_ns() - begin_ns) / (double)chain;
    return status;
}

// What a rank measured.
struct figures {
    struct weir__buckets_curve curve;
    double backward_ns;
    double once_ns; // the reduction that was tried last
};

// What a measurement works on: the buckets of this process, and room for the figures of all ranks.
struct work {
    weir_buckets *const *buckets;
    uint32_t count;
    struct figures *mine; // of each of the buckets
    struct figures *all;
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

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static weir_status gather(const struct work *work, const struct figures *figures)
{
    for (uint32_t i = 0; i < work->count; i++) {
        work->mine[i] = *figures;
        work->mine[i].backward_ns = (double)work->buckets[i]->params.backward_ns;
    }
    return weir__buckets_gather(work->buckets, work->count, work->mine, sizeof *work->mine,
                                work->all);
}

// One reduction, by the slowest rank: all ranks get the same. The one before it makes connections.
static weir_status try_once(const struct work *work, size_t size, double *out_ns)
{
    struct figures figures = {0};
    weir_status status = time_chain(work->buckets, work->count, size, 1, &figures.once_ns);
    if (status == WEIR_OK)
        status = time_chain(work->buckets, work->count, size, 1, &figures.once_ns);
    if (status == WEIR_OK)
        status = gather(work, &figures);
    *out_ns = 0;
    for (uint32_t i = 0; i < weir_comm_count(work->buckets[0]->params.comm) && status == WEIR_OK;
         i++)
        *out_ns = larger(*out_ns, work->all[i].once_ns);
    return status;
}

// The shortest of a few rounds; or, of a slow size, one reduction.
static weir_status time_size(const struct work *work, size_t size, double *out_ns, bool *out_slow)
{
    double once_ns;
    weir_status status = try_once(work, size, &once_ns);
    *out_ns = once_ns;
    *out_slow = once_ns > SLOW_NS;
    for (int round = 0; round < ROUNDS && status == WEIR_OK && !*out_slow; round++) {
        double ns;
        status = time_chain(work->buckets, work->count, size, chain_of(size, once_ns), &ns);
        if (round == 0 || ns < *out_ns)
            *out_ns = ns;
    }
    return status;
}

// The first size is measured where the latency is long, too: without any, all sizes would look alike.
static weir_status measure(const struct work *work, struct weir__buckets_curve *curve)
{
    const weir_buckets *first = work->buckets[0];
    const size_t bytes = first->plan.bytes / first->element_size * first->wire_size;
    bool slow = false;
    *curve = (struct weir__buckets_curve){0};
    list_points(first, curve);
    weir_status status =
        time_size(work, bytes < SMALL_BYTES ? bytes : SMALL_BYTES, &curve->latency_ns, &slow);
    for (uint32_t i = 0; i < curve->count && status == WEIR_OK; i++) {
        double ns = 0;
        status = time_size(work, curve->bytes[i], &ns, &slow);
        curve->ns_per_byte[i] =
            ns > curve->latency_ns ? (ns - curve->latency_ns) / (double)curve->bytes[i] : 0;
        if (slow)
            curve->count = i + 1;
    }
    return status;
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

static weir_status measure_with(const struct work *work)
{
    struct figures figures = {0};
    weir_status status = measure(work, &figures.curve);
    if (status == WEIR_OK)
        status = gather(work, &figures);
    if (status != WEIR_OK)
        return status;
    const struct figures slowest =
        slowest_of(work->all, weir_comm_count(work->buckets[0]->params.comm));
    for (uint32_t i = 0; i < work->count; i++)
        choose(work->buckets[i], &slowest);
    return WEIR_OK;
}

weir_status weir__buckets_measure(weir_buckets *const *buckets, uint32_t count)
{
    const size_t ranks = weir_comm_count(buckets[0]->params.comm);
    struct figures *figures = calloc(count + ranks, sizeof *figures);
    if (!figures)
        return weir__pattern_fail(buckets[0]->label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                                  "no memory for the figures of %zu ranks", ranks);
    const struct work work = {buckets, count, figures, figures + count};
    const weir_status status = measure_with(&work);
    free(figures);
    return status;
}
