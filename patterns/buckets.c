// Creation and destruction. What other ranks take part in, the comparison of plans and the
// measurement, is done for all ranks of this process step by step, so that one thread can serve
// several.
#include "patterns/buckets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sized.h"
#include "kernels/buckets/buckets.h"
#include "patterns/buckets_parts.h"
#include "patterns/fail.h"
#include "patterns/place.h"

static weir_device *device_of(const weir_buckets *buckets)
{
    return weir_comm_device(buckets->params.comm);
}

static weir_status make_queue(weir_buckets *buckets, const char *name, bool timing,
                              weir_queue **out_queue)
{
    char label[WEIR__PATTERN_LABEL_SIZE + 16];
    snprintf(label, sizeof label, "%s/%s", buckets->label, name);
    return weir_queue_create(device_of(buckets),
                             &(struct weir_queue_params){
                                 .struct_size = sizeof(struct weir_queue_params),
                                 .label = label,
                                 .priority = buckets->params.priority,
                                 .timing = timing,
                             },
                             out_queue);
}

static weir_status make_buffer(weir_buckets *buckets, const char *name, size_t size,
                               weir_buffer **out_buffer)
{
    static const uint32_t zero;
    char label[WEIR__PATTERN_LABEL_SIZE + 16];
    snprintf(label, sizeof label, "%s/%s", buckets->label, name);
    weir_status status = weir_buffer_create(device_of(buckets),
                                            &(struct weir_buffer_params){
                                                .struct_size = sizeof(struct weir_buffer_params),
                                                .label = label,
                                                .size = size,
                                            },
                                            out_buffer);
    if (status != WEIR_OK)
        return status;
    return weir_queue_fill(buckets->comm_queue, *out_buffer, 0, size, &zero, 1);
}

static weir_status make_kernels(weir_buckets *buckets)
{
    const struct weir_program_params params = {.struct_size = sizeof params,
                                               .label = buckets->label,
                                               .bundle = &buckets_kernels};
    weir_status status = weir_program_create(device_of(buckets), &params, &buckets->program);
    if (status == WEIR_OK)
        status = weir_kernel_create(buckets->program, "buckets_narrow", &buckets->narrow);
    if (status == WEIR_OK)
        status = weir_kernel_create(buckets->program, "buckets_widen", &buckets->widen);
    return status;
}

static weir_status make_way(weir_buckets *buckets)
{
    const size_t bytes = buckets->plan.bytes / buckets->element_size * buckets->wire_size;
    weir_status status = make_kernels(buckets);
    if (status == WEIR_OK)
        status = make_queue(buckets, "narrow", false, &buckets->narrow_queue);
    if (status == WEIR_OK)
        status = make_queue(buckets, "widen", buckets->params.timing, &buckets->widen_queue);
    if (status == WEIR_OK)
        status = make_buffer(buckets, "wire", bytes, &buckets->wire);
    return status;
}

static weir_status make_parts(weir_buckets *buckets)
{
    if (weir_device_limits(device_of(buckets))->timing_history == 0)
        buckets->params.timing = false;
    weir_status status = make_queue(buckets, "comm", buckets->params.timing, &buckets->comm_queue);
    if (status == WEIR_OK && buckets->params.timing)
        status = make_queue(buckets, "clock", true, &buckets->clock);
    if (status == WEIR_OK)
        status = make_buffer(buckets, "gradients", buckets->plan.bytes, &buckets->gradients);
    if (status == WEIR_OK && buckets->narrows)
        status = make_way(buckets);
    return status;
}

static weir_status make(const struct weir_buckets_params *params, weir_comm *comm,
                        weir_buckets **out_buckets)
{
    struct weir_buckets_params mine = *params;
    weir_buckets *buckets = calloc(1, sizeof *buckets);
    if (!buckets)
        return weir__pattern_fail(params->label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                                  "no memory for buckets");
    mine.comm = comm;
    weir_status status = weir__buckets_lay_out(&mine, buckets);
    if (status == WEIR_OK)
        status = make_parts(buckets);
    *out_buckets = buckets;
    return status;
}

// The filled buffers may be used on any queue once the comparison has waited for this one. A difference,
// WEIR_ERROR_INVALID, is found by all ranks; of another failure the others know nothing.
static weir_status agree(weir_buckets *const *buckets, uint32_t count)
{
    weir_status status = weir__buckets_compare(buckets, count);
    if (status == WEIR_OK && buckets[0]->params.cap_bytes == WEIR_BUCKETS_AUTO)
        status = weir__buckets_measure(buckets, count);
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
        weir__buckets_cut(buckets[i]);
    if (status != WEIR_OK && status != WEIR_ERROR_INVALID)
        weir__buckets_tell(buckets[0]->params.comm, buckets[0]->label);
    return status;
}

static weir_status create_all(const char *function, const struct weir_buckets_params *params,
                              weir_comm *const *comms, uint32_t count, weir_buckets **out_buckets)
{
    struct weir_buckets_params known;
    for (uint32_t i = 0; i < count; i++)
        out_buckets[i] = NULL;
    weir_status status =
        weir__pattern_params(function, "weir_buckets_params", params, &known, sizeof known);
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++) {
        weir_comm *comm = comms ? comms[i] : known.comm;
        status = make(&known, comm, &out_buckets[i]);
        if (status != WEIR_OK)
            weir__buckets_tell(comm, known.label);
    }
    if (status == WEIR_OK)
        status = agree(out_buckets, count);
    for (uint32_t i = 0; i < count && status != WEIR_OK; i++)
        weir_buckets_destroy(&out_buckets[i]);
    return status;
}

weir_status(weir_buckets_create)(const struct weir_buckets_params *params,
                                 weir_buckets **out_buckets)
{
    return create_all("weir_buckets_create", params, NULL, 1, out_buckets);
}

weir_status weir_buckets_create_at(const struct weir_buckets_params *params,
                                   weir_buckets **out_buckets, const char *file, int line)
{
    const struct weir__place before = weir__pattern_begin(file, line);
    return weir__pattern_end((weir_buckets_create)(params, out_buckets), before);
}

weir_status(weir_buckets_create_all)(const struct weir_buckets_params *params,
                                     weir_comm *const *comms, uint32_t count,
                                     weir_buckets **out_buckets)
{
    if (!comms || count == 0)
        return weir__pattern_fail(NULL, WEIR_ERROR_INVALID, "pass the communicator of each rank",
                                  "weir_buckets_create_all: there are no communicators");
    return create_all("weir_buckets_create_all", params, comms, count, out_buckets);
}

weir_status weir_buckets_create_all_at(const struct weir_buckets_params *params,
                                       weir_comm *const *comms, uint32_t count,
                                       weir_buckets **out_buckets, const char *file, int line)
{
    const struct weir__place before = weir__pattern_begin(file, line);
    return weir__pattern_end((weir_buckets_create_all)(params, comms, count, out_buckets), before);
}

void weir_buckets_destroy(weir_buckets **buckets)
{
    if (!buckets || !*buckets)
        return;
    weir_buckets *gone = *buckets;
    *buckets = NULL;
    weir_queue_destroy(&gone->clock);
    weir_queue_destroy(&gone->widen_queue);
    weir_queue_destroy(&gone->narrow_queue);
    weir_queue_destroy(&gone->comm_queue);
    weir_kernel_destroy(&gone->widen);
    weir_kernel_destroy(&gone->narrow);
    weir_program_destroy(&gone->program);
    weir_buffer_destroy(&gone->wire);
    weir_buffer_destroy(&gone->gradients);
    weir__buckets_free_plan(gone);
    free(gone);
}

// --- the plan ---

weir_status weir_buckets_get_view(const weir_buckets *buckets, uint32_t index,
                                  struct weir_bucket_view *out_view)
{
    *out_view = (struct weir_bucket_view){0};
    if (index >= buckets->params.parameter_count)
        return weir__pattern_fail(buckets->label, WEIR_ERROR_INVALID, NULL,
                                  "weir_buckets_get_view: there is no parameter %" PRIu32
                                  ", there are %" PRIu32,
                                  index, buckets->params.parameter_count);
    const struct weir__buckets_parameter *parameter = &buckets->parameters[index];
    *out_view = (struct weir_bucket_view){buckets->gradients, parameter->offset, parameter->size};
    return WEIR_OK;
}

weir_status weir_buckets_get_bucket(const weir_buckets *buckets, uint32_t index,
                                    struct weir_bucket *out_bucket)
{
    *out_bucket = (struct weir_bucket){0};
    if (index >= buckets->plan.bucket_count)
        return weir__pattern_fail(buckets->label, WEIR_ERROR_INVALID, NULL,
                                  "weir_buckets_get_bucket: there is no bucket %" PRIu32
                                  ", there are %" PRIu32,
                                  index, buckets->plan.bucket_count);
    *out_bucket = buckets->buckets[index].range;
    return WEIR_OK;
}

void weir_buckets_get_plan_sized(const weir_buckets *buckets, struct weir_buckets_plan *out_plan,
                                 size_t size)
{
    weir_sized_write(out_plan, size, &buckets->plan, sizeof buckets->plan);
}
