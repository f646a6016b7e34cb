// What ranks agree on: the comparison of plans, and for WEIR_BUCKETS_AUTO what reductions of several sizes take
// on a communicator, and the sizes that follow.
//
// The bandwidth of a link still grows at sizes at which the latency no longer counts (NCCL on NVLink:
// 226 GB/s at 16 MiB, 331 at 1 GiB), so that a latency and one bandwidth would make buckets too small.
//
// On a slow link, or with many ranks on few processors, that would take minutes. So a size is tried once,
// all ranks agree on what the slowest of them found, and where that is long it is the figure, and the last.
#include "patterns/buckets_parts.h"

#include <inttypes.h>

#include "base/hash.h"
#include "patterns/shared.h"

// What all ranks of a communicator must have alike, since each sees only its own half of a mismatch:
// the parameters and the options.

void weir__buckets_tell(weir_comm *comm, const char *label)
{
    const struct weir_error cause = *weir_last_error();
    char why[sizeof cause.message + WEIR__PATTERN_LABEL_SIZE + 16];
    snprintf(why, sizeof why, "buckets '%.*s': %s", WEIR__PATTERN_LABEL_SIZE,
             weir__pattern_label(label, "buckets"), cause.message);
    if (comm)
        WEIR_IGNORE(weir_comm_abort(comm, why));
    weir_error_set(&cause);
}

// The same `size` bytes of each rank, all-gathered: `out_all` gets those of all ranks of the
// communicator. `mine[i]` are those of buckets[i]. A scratch has room for all, then for one's own.
static weir_status buckets_gather(weir_buckets *const *buckets, uint32_t count, const void *mine,
                                  size_t size, void *out_all)
{
    const size_t ranks = weir_comm_count(buckets[0]->params.comm);
    weir_buffer **scratch = calloc((size_t)count + 1, sizeof(weir_buffer *)); // never 0 bytes
    weir_status status = WEIR_OK;
    if (!scratch)
        return weir__pattern_no_memory(buckets[0]->label, "the comparison of ranks");
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
        status = weir_buffer_create_at(weir_comm_device(buckets[i]->params.comm),
                                       WEIR_PARAMS(weir_buffer, .label = buckets[i]->label,
                                                   .size = size + ranks * size),
                                       &scratch[i], buckets[i]->place.file, buckets[i]->place.line);
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++) {
        weir_queue *queue = buckets[i]->comm_queue;
        status = weir_upload(queue, scratch[i], 0, (const char *)mine + i * size, size);
        if (status == WEIR_OK)
            status = weir_queue_all_gather(queue, buckets[i]->params.comm, scratch[i], size,
                                           scratch[i], 0, size, WEIR_U8);
    }
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
        status = weir_download(buckets[i]->comm_queue, out_all, scratch[i], size, ranks * size);
    for (uint32_t i = 0; i < count; i++)
        weir_buffer_destroy(&scratch[i]);
    free(scratch);
    return status;
}

// --- the plan ---

// What a rank tells the others of its plan.
struct note {
    uint64_t parameter_count;
    uint64_t bytes;
    uint64_t parameters; // hashes
    uint64_t options;
};

static struct note describe(const weir_buckets *buckets)
{
    const struct weir_buckets_params *params = &buckets->params;
    const uint64_t options[] = {(uint64_t)params->element, (uint64_t)params->reduction,
                                (uint64_t)params->wire, buckets->plan.cap_bytes,
                                buckets->plan.first_bytes};
    struct note note = {.parameter_count = params->parameter_count,
                        .bytes = buckets->plan.bytes,
                        .options = weir_hash(0, options, sizeof options)};
    for (uint32_t i = 0; i < params->parameter_count; i++) {
        const struct weir__buckets_parameter *parameter = &buckets->parameters[i];
        const uint64_t facts[] = {parameter->offset, parameter->count, parameter->optional};
        note.parameters = weir_hash(note.parameters, parameter->name, strlen(parameter->name));
        note.parameters = weir_hash(note.parameters, facts, sizeof facts);
    }
    return note;
}

static weir_status refuse(const weir_buckets *buckets, uint32_t rank, const struct note *note,
                          const struct note *first)
{
    if (note->parameter_count != first->parameter_count || note->bytes != first->bytes)
        return weir__pattern_refuse(buckets->label, "create the buckets of one model on all ranks",
                                    "weir_buckets_create: rank %" PRIu32 " has %" PRIu64
                                    " parameters of %" PRIu64 " bytes in all, and rank 0 %" PRIu64
                                    " of %" PRIu64,
                                    rank, note->parameter_count, note->bytes,
                                    first->parameter_count, first->bytes);
    if (note->parameters != first->parameters)
        return weir__pattern_refuse(
            buckets->label, "list the same parameters in the same order",
            "weir_buckets_create: rank %" PRIu32
            " has parameters of other names, counts or another order than rank 0",
            rank);
    return weir__pattern_refuse(
        buckets->label, "pass the same values on all ranks",
        "weir_buckets_create: rank %" PRIu32
        " has another element, reduction, wire, cap_bytes or first_bytes than rank 0",
        rank);
}

static weir_status compare_plans(weir_buckets *const *buckets, uint32_t count)
{
    const uint32_t ranks = weir_comm_count(buckets[0]->params.comm);
    struct note *notes = calloc(count + ranks, sizeof *notes);
    if (!notes)
        return weir__pattern_no_memory(buckets[0]->label, "the comparison of ranks");
    struct note *all = notes + count;
    for (uint32_t i = 0; i < count; i++)
        notes[i] = describe(buckets[i]);
    weir_status status = buckets_gather(buckets, count, notes, sizeof *notes, all);
    for (uint32_t rank = 1; rank < ranks && status == WEIR_OK; rank++)
        if (memcmp(&all[rank], &all[0], sizeof *all) != 0)
            status = refuse(buckets[0], rank, &all[rank], &all[0]);
    free(notes);
    return status;
}

// The sizes of buckets for WEIR_BUCKETS_AUTO: a step is computed on paper for many of them, and the
// shortest one counts.
// Fewer buckets use the link better. The last one's reduction has no computation beside it, so the
// buckets before the end may become smaller step by step.

// What a nanosecond of communication costs the computation beside it, with which it shares
// processors and memory: measured, docs/buckets.md.
#define HIDDEN_COST 0.6

enum {
    LAST_SIZES = 6, // the cap, a half of it, a quarter, ...
    FINE = 16,      // counts of buckets up to here are all tried, larger ones in steps of 1/FINE
};

static double reduce_ns(const struct weir__buckets_curve *curve, size_t bytes)
{
    double ns_per_byte = curve->count ? curve->ns_per_byte[0] : 0;
    for (uint32_t i = 1; i < curve->count && bytes > curve->bytes[i - 1]; i++) {
        const double share =
            (double)(bytes - curve->bytes[i - 1]) / (double)(curve->bytes[i] - curve->bytes[i - 1]);
        ns_per_byte = share >= 1 ? curve->ns_per_byte[i]
                                 : curve->ns_per_byte[i - 1] +
                                       share * (curve->ns_per_byte[i] - curve->ns_per_byte[i - 1]);
    }
    return curve->latency_ns + (double)bytes * ns_per_byte;
}

// From the begin of the backward pass to the end of the last reduction.
static double step_ns(const weir_buckets *buckets, const struct weir_buckets_plan *plan,
                      const struct weir__buckets_curve *curve, double backward_ns)
{
    double end_ns = 0;
    double hidden_ns = 0;
    for (uint32_t first = 0; first < buckets->params.parameter_count;) {
        const uint32_t next = weir__buckets_end(buckets, plan, first);
        const struct weir__buckets_parameter *last = &buckets->parameters[next - 1];
        const size_t end = last->offset + last->size;
        const double due_ns = backward_ns * ((double)end / (double)plan->bytes);
        const double begin_ns = due_ns > end_ns ? due_ns : end_ns;
        const size_t size = weir__buckets_on_wire(buckets, end - buckets->parameters[first].offset);
        end_ns = begin_ns + reduce_ns(curve, size);
        if (begin_ns < backward_ns)
            hidden_ns += (end_ns < backward_ns ? end_ns : backward_ns) - begin_ns;
        first = next;
    }
    return end_ns + HIDDEN_COST * hidden_ns;
}

static struct weir_buckets_plan plan_of(const weir_buckets *buckets, size_t count, int halvings)
{
    struct weir_buckets_plan plan = buckets->plan;
    plan.cap_bytes = plan.bytes / count + (plan.bytes % count != 0);
    plan.last_bytes = plan.cap_bytes >> halvings;
    if (plan.first_bytes > plan.cap_bytes)
        plan.first_bytes = plan.cap_bytes;
    return plan;
}

void weir__buckets_choose(weir_buckets *buckets, const struct weir__buckets_curve *curve,
                          double backward_ns)
{
    struct weir_buckets_plan best = {0};
    double best_ns = -1;
    if (backward_ns <= 0)
        backward_ns = 2 * reduce_ns(curve, weir__buckets_on_wire(buckets, buckets->plan.bytes));
    for (size_t count = 1; count <= buckets->params.parameter_count; count += 1 + count / FINE)
        for (int halvings = 0; halvings < LAST_SIZES; halvings++) {
            const struct weir_buckets_plan plan = plan_of(buckets, count, halvings);
            const double ns = step_ns(buckets, &plan, curve, backward_ns);
            if (best_ns < 0 || ns < best_ns) {
                best_ns = ns;
                best = plan;
            }
        }
    buckets->plan = best;
}

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

// In nanoseconds of one reduction. The gradients, which are zeros now, stay zeros.
static weir_status time_chain(weir_buckets *const *buckets, uint32_t count, size_t size,
                              size_t chain, double *out_ns)
{
    const uint64_t begin_ns = weir_clock_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        const weir_buckets *one = buckets[i];
        weir_buffer *buffer = one->narrows ? one->wire : one->gradients;
        for (size_t n = 0; n < chain; n++)
            TRY(weir_queue_all_reduce(one->comm_queue, one->params.comm, buffer, 0, buffer, 0,
                                      size / one->wire_size, one->params.wire,
                                      one->params.reduction));
    }
    for (uint32_t i = 0; i < count; i++)
        TRY(weir_queue_sync(buckets[i]->comm_queue, WEIR_FOREVER));
    *out_ns = (double)(weir_clock_now_ns() - begin_ns) / (double)chain;
    return WEIR_OK;
}

// Makes `*number` that of the rank whose is the largest: all ranks get the same.
static weir_status agree_on_largest(weir_buckets *const *buckets, uint32_t count, double *number)
{
    const uint32_t ranks = weir_comm_count(buckets[0]->params.comm);
    double *numbers = calloc(count + ranks, sizeof *numbers);
    if (!numbers)
        return weir__pattern_no_memory(buckets[0]->label, "the figures of ranks");
    double *all = numbers + count;
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = *number;
    const weir_status status = buckets_gather(buckets, count, numbers, sizeof *numbers, all);
    for (uint32_t i = 0; i < ranks && status == WEIR_OK; i++)
        *number = all[i] > *number ? all[i] : *number;
    free(numbers);
    return status;
}

// The shortest of a few rounds; or, of a slow size, one reduction. The first one makes connections.
static weir_status time_size(weir_buckets *const *buckets, uint32_t count, size_t size,
                             double *out_ns, bool *out_slow)
{
    double once_ns;
    TRY(time_chain(buckets, count, size, 1, &once_ns));
    TRY(time_chain(buckets, count, size, 1, &once_ns));
    TRY(agree_on_largest(buckets, count, &once_ns));
    *out_ns = once_ns;
    *out_slow = once_ns > SLOW_NS;
    for (int round = 0; round < ROUNDS && !*out_slow; round++) {
        double ns;
        TRY(time_chain(buckets, count, size, chain_of(size, once_ns), &ns));
        if (round == 0 || ns < *out_ns)
            *out_ns = ns;
    }
    return *out_slow ? WEIR_OK : agree_on_largest(buckets, count, out_ns);
}

// The first size is measured where the latency is long, too: without any, all sizes would look alike.
static weir_status measure(weir_buckets *const *buckets, uint32_t count,
                           struct weir__buckets_curve *curve)
{
    const size_t bytes = weir__buckets_on_wire(buckets[0], buckets[0]->plan.bytes);
    bool slow = false;
    // The sizes that are measured: the same on all ranks.
    for (uint32_t i = 0; i < WEIR__BUCKETS_POINTS && bytes > SMALL_BYTES; i++) {
        curve->bytes[curve->count++] = point_bytes[i] < bytes ? point_bytes[i] : bytes;
        if (point_bytes[i] >= bytes)
            break;
    }
    TRY(time_size(buckets, count, bytes < SMALL_BYTES ? bytes : SMALL_BYTES, &curve->latency_ns,
                  &slow));
    for (uint32_t i = 0; i < curve->count; i++) {
        double ns = 0;
        TRY(time_size(buckets, count, curve->bytes[i], &ns, &slow));
        curve->ns_per_byte[i] =
            ns > curve->latency_ns ? (ns - curve->latency_ns) / (double)curve->bytes[i] : 0;
        // A larger one that was slower was disturbed.
        if (i > 0 && curve->ns_per_byte[i] > curve->ns_per_byte[i - 1])
            curve->ns_per_byte[i] = curve->ns_per_byte[i - 1];
        if (slow)
            curve->count = i + 1;
    }
    return WEIR_OK;
}

static weir_status choose_sizes(weir_buckets *const *buckets, uint32_t count)
{
    struct weir__buckets_curve curve = {0};
    double backward_ns = (double)buckets[0]->params.backward_ns;
    TRY(measure(buckets, count, &curve));
    TRY(agree_on_largest(buckets, count, &backward_ns));
    const double ns_per_byte = curve.count ? curve.ns_per_byte[curve.count - 1] : 0;
    for (uint32_t i = 0; i < count; i++) {
        weir__buckets_choose(buckets[i], &curve, backward_ns);
        buckets[i]->plan.latency_ns = curve.latency_ns;
        buckets[i]->plan.bytes_per_ns = ns_per_byte > 0 ? 1 / ns_per_byte : 0;
    }
    return WEIR_OK;
}

// All ranks of this process.

void weir__buckets_cut(weir_buckets *buckets)
{
    for (uint32_t first = 0; first < buckets->params.parameter_count;) {
        const uint32_t end = weir__buckets_end(buckets, &buckets->plan, first);
        const struct weir__buckets_parameter *last = &buckets->parameters[end - 1];
        const uint32_t index = buckets->plan.bucket_count++;
        const size_t offset = buckets->parameters[first].offset;
        buckets->buckets[index].range =
            (struct weir_bucket){.index = index,
                                 .first = first,
                                 .count = end - first,
                                 .offset = offset,
                                 .size = last->offset + last->size - offset};
        for (; first < end; first++)
            buckets->parameters[first].bucket = index;
    }
}

// The filled buffers may be used on any queue once the comparison has waited for this one. A difference,
// WEIR_ERROR_INVALID, is found by all ranks; of another failure the others know nothing.
weir_status weir__buckets_agree(weir_buckets *const *buckets, uint32_t count)
{
    weir_status status = compare_plans(buckets, count);
    if (status == WEIR_OK && buckets[0]->params.cap_bytes == WEIR_BUCKETS_AUTO)
        status = choose_sizes(buckets, count);
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
        weir__buckets_cut(buckets[i]);
    if (status != WEIR_OK && status != WEIR_ERROR_INVALID)
        weir__buckets_tell(buckets[0]->params.comm, buckets[0]->label);
    return status;
}
