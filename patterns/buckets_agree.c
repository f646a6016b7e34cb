// What all ranks of a communicator must have alike, since each sees only its own half of a mismatch:
// the parameters and the options.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "patterns/buckets_parts.h"
#include "patterns/fail.h"
#include "patterns/place.h"

void weir__buckets_tell(weir_comm *comm, const char *label)
{
    const struct weir_error cause = *weir_last_error();
    char why[sizeof cause.message + WEIR__PATTERN_LABEL_SIZE + 16];
    snprintf(why, sizeof why, "buckets '%.*s': %s", WEIR__PATTERN_LABEL_SIZE,
             weir__pattern_label(label, "buckets"), cause.message);
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
