// What all ranks of a communicator must have alike, since each sees only its own half of a mismatch:
// the parameters, the options, and a cap that is measured.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "patterns/buckets_parts.h"
#include "patterns/fail.h"

#define SMALL_BYTES ((size_t)4 << 10)
#define LARGE_BYTES ((size_t)32 << 20)

enum {
    CHAIN = 8, // reductions that are timed together
    ROUNDS = 3
};

void weir__buckets_tell(weir_comm *comm, const char *label)
{
    const struct weir_error cause = *weir_last_error();
    char why[sizeof cause.message + WEIR__BUCKETS_LABEL_SIZE + 16];
    snprintf(why, sizeof why, "buckets '%.*s': %s", WEIR__BUCKETS_LABEL_SIZE,
             label ? label : "buckets", cause.message);
    if (comm)
        (void)weir_comm_abort(comm, why);
    weir_error_set(&cause);
}

// One rank's share of a gather: its bytes, then room for those of all ranks.
static weir_status make_scratch(const weir_buckets *buckets, size_t size, weir_buffer **out_buffer)
{
    const size_t ranks = weir_comm_count(buckets->params.comm);
    return weir_buffer_create(weir_comm_device(buckets->params.comm),
                              &(struct weir_buffer_params){
                                  .struct_size = sizeof(struct weir_buffer_params),
                                  .label = buckets->label,
                                  .size = size + ranks * size,
                              },
                              out_buffer);
}

static weir_status submit_gather(weir_buckets *buckets, weir_buffer *scratch, const void *mine,
                                 size_t size)
{
    weir_status status = weir_upload(buckets->comm_queue, scratch, 0, mine, size);
    if (status != WEIR_OK)
        return status;
    return weir_queue_all_gather(buckets->comm_queue, buckets->params.comm, scratch, size, scratch,
                                 0, size, WEIR_U8);
}

weir_status weir__buckets_gather(weir_buckets *const *buckets, uint32_t count, const void *mine,
                                 size_t size, void *out_all)
{
    const size_t ranks = weir_comm_count(buckets[0]->params.comm);
    weir_buffer **scratch = calloc((size_t)count + 1, sizeof(weir_buffer *)); // never 0 bytes
    weir_status status = WEIR_OK;
    if (!scratch)
        return weir__pattern_fail(buckets[0]->label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                                  "no memory to compare the ranks");
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
        status = make_scratch(buckets[i], size, &scratch[i]);
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
        status = submit_gather(buckets[i], scratch[i], (const char *)mine + i * size, size);
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

static uint64_t mix(uint64_t so_far, const void *bytes, size_t size)
{
    const struct weir_siphash_key key = {{so_far, size}};
    return weir_siphash(&key, bytes, size);
}

static struct note describe(const weir_buckets *buckets)
{
    const struct weir_buckets_params *params = &buckets->params;
    const uint64_t options[] = {(uint64_t)params->element, (uint64_t)params->reduction,
                                (uint64_t)params->wire, buckets->plan.cap_bytes,
                                buckets->plan.first_bytes};
    struct note note = {.parameter_count = params->parameter_count,
                        .bytes = buckets->plan.bytes,
                        .options = mix(0, options, sizeof options)};
    for (uint32_t i = 0; i < params->parameter_count; i++) {
        const struct weir__buckets_parameter *parameter = &buckets->parameters[i];
        const uint64_t facts[] = {parameter->offset, parameter->count, parameter->optional};
        note.parameters = mix(note.parameters, parameter->name, strlen(parameter->name));
        note.parameters = mix(note.parameters, facts, sizeof facts);
    }
    return note;
}

static weir_status refuse(const weir_buckets *buckets, uint32_t rank, const struct note *note,
                          const struct note *first)
{
    if (note->parameter_count != first->parameter_count || note->bytes != first->bytes)
        return weir__pattern_fail(buckets->label, WEIR_ERROR_INVALID,
                                  "create the buckets of one model on all ranks",
                                  "weir_buckets_create: rank %" PRIu32 " has %" PRIu64
                                  " parameters of %" PRIu64 " bytes in all, and rank 0 %" PRIu64
                                  " of %" PRIu64,
                                  rank, note->parameter_count, note->bytes, first->parameter_count,
                                  first->bytes);
    if (note->parameters != first->parameters)
        return weir__pattern_fail(
            buckets->label, WEIR_ERROR_INVALID, "list the same parameters in the same order",
            "weir_buckets_create: rank %" PRIu32
            " has parameters of other names, counts or another order than rank 0",
            rank);
    return weir__pattern_fail(
        buckets->label, WEIR_ERROR_INVALID, "pass the same values on all ranks",
        "weir_buckets_create: rank %" PRIu32
        " has another element, reduction, wire, cap_bytes or first_bytes than rank 0",
        rank);
}

static weir_status compare(weir_buckets *const *buckets, uint32_t count, struct note *notes)
{
    const uint32_t ranks = weir_comm_count(buckets[0]->params.comm);
    struct note *all = notes + count;
    for (uint32_t i = 0; i < count; i++)
        notes[i] = describe(buckets[i]);
    weir_status status = weir__buckets_gather(buckets, count, notes, sizeof *notes, all);
    for (uint32_t rank = 1; rank < ranks && status == WEIR_OK; rank++)
        if (memcmp(&all[rank], &all[0], sizeof *all) != 0)
            status = refuse(buckets[0], rank, &all[rank], &all[0]);
    return status;
}

weir_status weir__buckets_compare(weir_buckets *const *buckets, uint32_t count)
{
    const size_t ranks = weir_comm_count(buckets[0]->params.comm);
    struct note *notes = calloc(count + ranks, sizeof *notes);
    if (!notes)
        return weir__pattern_fail(buckets[0]->label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                                  "no memory to compare %zu ranks", ranks);
    const weir_status status = compare(buckets, count, notes);
    free(notes);
    return status;
}

// --- the measurement ---

// The gradients, which are zeros now, stay zeros.
static weir_status submit_chain(weir_buckets *buckets, size_t size)
{
    weir_buffer *buffer = buckets->narrows ? buckets->wire : buckets->gradients;
    weir_status status = WEIR_OK;
    for (int i = 0; i < CHAIN && status == WEIR_OK; i++)
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
        const double ns = (double)(weir_clock_now_ns() - begin_ns) / CHAIN;
        if (round == 1 || (round > 1 && ns < *out_ns))
            *out_ns = ns;
    }
    return WEIR_OK;
}

// What a rank measured.
struct figures {
    double latency_ns;
    double ns_per_byte;
    double backward_ns;
};

static weir_status measure(weir_buckets *const *buckets, uint32_t count, struct figures *figures)
{
    const size_t bytes = buckets[0]->plan.bytes / buckets[0]->element_size * buckets[0]->wire_size;
    const size_t large = bytes < LARGE_BYTES ? bytes : LARGE_BYTES;
    const size_t small = large < SMALL_BYTES ? large : SMALL_BYTES;
    double small_ns = 0;
    double large_ns = 0;
    weir_status status = time_chain(buckets, count, small, &small_ns);
    if (status == WEIR_OK)
        status = time_chain(buckets, count, large, &large_ns);
    figures->latency_ns = small_ns;
    figures->ns_per_byte =
        large > small && large_ns > small_ns ? (large_ns - small_ns) / (double)(large - small) : 0;
    return status;
}

// The time of a step with k buckets of G bytes is about max(C, G/β) + min(C, G/β)/k + kα: the
// first bucket's computation, or the last one's reduction, has nothing beside it. One more bucket
// pays as long as it saves more of min(C, G/β) than it costs, which ends at about √(min(C, G/β)/α).
static void choose_cap(weir_buckets *buckets, const struct figures *slowest)
{
    struct weir_buckets_plan *plan = &buckets->plan;
    const double bytes =
        (double)plan->bytes / (double)buckets->element_size * (double)buckets->wire_size;
    double alone_ns = bytes * slowest->ns_per_byte;
    if (slowest->backward_ns > 0 && slowest->backward_ns < alone_ns)
        alone_ns = slowest->backward_ns;
    size_t count = 1;
    while (count < buckets->params.parameter_count &&
           alone_ns / (double)(count * (count + 1)) > slowest->latency_ns)
        count++;
    plan->cap_bytes = plan->bytes / count + (plan->bytes % count != 0);
    if (plan->first_bytes > plan->cap_bytes)
        plan->first_bytes = plan->cap_bytes;
    plan->latency_ns = slowest->latency_ns;
    plan->bytes_per_ns = slowest->ns_per_byte > 0 ? 1 / slowest->ns_per_byte : 0;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static struct figures slowest_of(const struct figures *all, uint32_t ranks)
{
    struct figures slowest = all[0];
    for (uint32_t rank = 1; rank < ranks; rank++) {
        slowest.latency_ns = larger(slowest.latency_ns, all[rank].latency_ns);
        slowest.ns_per_byte = larger(slowest.ns_per_byte, all[rank].ns_per_byte);
        slowest.backward_ns = larger(slowest.backward_ns, all[rank].backward_ns);
    }
    return slowest;
}

static weir_status measure_with(weir_buckets *const *buckets, uint32_t count, struct figures *mine)
{
    struct figures *all = mine + count;
    weir_status status = measure(buckets, count, &mine[0]);
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
        choose_cap(buckets[i], &slowest);
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
