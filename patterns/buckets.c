// The plan of buckets, their creation and destruction. What other ranks take part in, the comparison of plans and the
// measurement, is done for all ranks of this process step by step, so that one thread can serve
// several.
#include "patterns/buckets.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "kernels/buckets/buckets.h"
#include "patterns/buckets_parts.h"
#include "patterns/fail.h"
#include "patterns/shared.h"

// The plan: where each gradient lies, and which of them make a bucket.
// Views are aligned so that each can be a launch's argument, and the bytes between them are reduced
// with the rest. A gradient that is rounded for the way lies at half its offset there, so offsets
// are multiples of twice the alignment then.

#define FIRST_BYTES ((size_t)1 << 20)
#define CAP_BYTES ((size_t)25 << 20)

static weir_status check_types(const struct weir_buckets_params *params)
{
    if (weir_datatype_size(params->element) == 0)
        return weir__pattern_refuse(params->label,
                                    "set it to the type of the gradients, such as WEIR_F32",
                                    "weir_buckets_create: element is %d, which is no type",
                                    (int)params->element);
    if (params->reduction && (params->reduction < WEIR_SUM || params->reduction > WEIR_AVERAGE))
        return weir__pattern_refuse(params->label, "0 is WEIR_AVERAGE",
                                    "weir_buckets_create: reduction is %d, which is none",
                                    (int)params->reduction);
    if (params->wire && params->wire != params->element &&
        (params->wire != WEIR_BF16 || params->element != WEIR_F32))
        return weir__pattern_refuse(params->label,
                                    "0 sends gradients as they are; only f32 is sent as bf16",
                                    "weir_buckets_create: %s gradients cannot be sent as %s",
                                    weir_datatype_name(params->element),
                                    weir_datatype_name(params->wire));
    return WEIR_OK;
}

static weir_status check_params(const struct weir_buckets_params *params)
{
    if (!params->comm)
        return weir__pattern_refuse(params->label, "pass a communicator",
                                    "weir_buckets_create: params->comm is NULL");
    if (!params->parameters || params->parameter_count == 0)
        return weir__pattern_refuse(params->label,
                                    "list the model's parameters, the last layer's first",
                                    "weir_buckets_create: there are no parameters");
    if (params->parameter_size < sizeof(size_t) || params->parameter_size > WEIR_SIZED_BYTES_MAX)
        return weir__pattern_refuse(params->label, "set it to sizeof(struct weir_bucket_parameter)",
                                    "weir_buckets_create: parameter_size is %zu",
                                    params->parameter_size);
    return check_types(params);
}

static weir_status read_parameter(weir_buckets *buckets, const struct weir_buckets_params *params,
                                  uint32_t index)
{
    const char *item = (const char *)params->parameters + index * params->parameter_size;
    struct weir__buckets_parameter *parameter = &buckets->parameters[index];
    struct weir_bucket_parameter known;
    TRY(weir__pattern_item("weir_buckets_create", "weir_bucket_parameter", item,
                           params->parameter_size, &known, sizeof known));
    if (!known.name || known.count == 0)
        return weir__pattern_refuse(buckets->label, "each parameter has a name and elements",
                                    "weir_buckets_create: parameter %" PRIu32 " has %s", index,
                                    known.name ? "no elements" : "no name");
    parameter->name = strdup(known.name);
    if (!parameter->name)
        return weir__pattern_fail(buckets->label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                                  "no memory for the name of parameter %" PRIu32, index);
    parameter->count = known.count;
    parameter->optional = known.optional;
    return WEIR_OK;
}

static weir_status refuse_size(const weir_buckets *buckets, uint32_t index)
{
    return weir__pattern_refuse(
        buckets->label, "give its count in elements",
        "weir_buckets_create: with parameter %" PRIu32
        ", '%s', of %zu elements, the gradients have more bytes than a size_t can count",
        index, buckets->parameters[index].name, buckets->parameters[index].count);
}

// Places the views one after another.
static weir_status place(weir_buckets *buckets)
{
    const struct weir_limits *limits = weir_device_limits(weir_comm_device(buckets->params.comm));
    size_t alignment = limits->argument_alignment_bytes;
    size_t end = 0;
    if (alignment < buckets->element_size)
        alignment = buckets->element_size;
    alignment *= buckets->narrows ? 2 : 1;
    for (uint32_t i = 0; i < buckets->params.parameter_count; i++) {
        struct weir__buckets_parameter *parameter = &buckets->parameters[i];
        const size_t gap = (alignment - end % alignment) % alignment;
        if (gap > SIZE_MAX - end ||
            parameter->count > (SIZE_MAX - end - gap) / buckets->element_size)
            return refuse_size(buckets, i);
        parameter->offset = end + gap;
        parameter->size = parameter->count * buckets->element_size;
        end = parameter->offset + parameter->size;
    }
    buckets->plan.bytes = end;
    return WEIR_OK;
}

static void choose_caps(weir_buckets *buckets)
{
    const struct weir_buckets_params *params = &buckets->params;
    struct weir_buckets_plan *plan = &buckets->plan;
    plan->cap_bytes = params->cap_bytes ? params->cap_bytes : CAP_BYTES;
    plan->first_bytes = params->first_bytes                      ? params->first_bytes
                        : params->cap_bytes == WEIR_BUCKETS_AUTO ? WEIR_BUCKETS_AUTO
                                                                 : FIRST_BYTES;
    if (plan->first_bytes > plan->cap_bytes)
        plan->first_bytes = plan->cap_bytes;
    plan->last_bytes = plan->cap_bytes;
}

static weir_status allocate(weir_buckets *buckets)
{
    const uint32_t count = buckets->params.parameter_count;
    buckets->parameters = calloc(count, sizeof *buckets->parameters);
    buckets->buckets = calloc(count, sizeof *buckets->buckets);
    buckets->events = calloc(count, sizeof *buckets->events);
    if (buckets->parameters && buckets->buckets && buckets->events)
        return WEIR_OK;
    return weir__pattern_fail(buckets->label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                              "no memory for the plan of %" PRIu32 " parameters", count);
}

// Checks the params and lays the views out. On error nothing needs to be freed that
// free_plan() does not free.
static weir_status lay_out(const struct weir_buckets_params *params, weir_buckets *buckets)
{
    TRY(check_params(params));
    buckets->params = *params;
    buckets->params.label = weir__pattern_keep(buckets->label, params->label, "buckets");
    if (!buckets->params.reduction)
        buckets->params.reduction = WEIR_AVERAGE;
    if (!buckets->params.wire)
        buckets->params.wire = params->element;
    buckets->element_size = weir_datatype_size(params->element);
    buckets->wire_size = weir_datatype_size(buckets->params.wire);
    buckets->narrows = buckets->params.wire != params->element;
    choose_caps(buckets);
    TRY(allocate(buckets));
    for (uint32_t i = 0; i < params->parameter_count; i++)
        TRY(read_parameter(buckets, params, i));
    buckets->params.parameters = NULL;
    return place(buckets);
}

static void free_plan(weir_buckets *buckets)
{
    for (uint32_t i = 0; buckets->parameters && i < buckets->params.parameter_count; i++)
        free(buckets->parameters[i].name);
    free(buckets->parameters);
    free(buckets->buckets);
    free(buckets->events);
}

// The largest bucket that begins at that offset.
static size_t most_from(const struct weir_buckets_plan *plan, size_t offset)
{
    const size_t half = (plan->bytes - offset) / 2;
    const size_t most = half > plan->last_bytes ? half : plan->last_bytes;
    const size_t cap = offset == 0 ? plan->first_bytes : plan->cap_bytes;
    return most < cap ? most : cap;
}

uint32_t weir__buckets_end(const weir_buckets *buckets, const struct weir_buckets_plan *plan,
                           uint32_t first)
{
    const size_t offset = buckets->parameters[first].offset;
    const size_t most = most_from(plan, offset);
    uint32_t end = first + 1;
    while (end < buckets->params.parameter_count &&
           buckets->parameters[end].offset + buckets->parameters[end].size - offset <= most)
        end++;
    return end;
}

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
                             WEIR_PARAMS(weir_queue, .label = label,
                                         .priority = buckets->params.priority, .timing = timing),
                             out_queue);
}

static weir_status make_buffer(weir_buckets *buckets, const char *name, size_t size,
                               weir_buffer **out_buffer)
{
    static const uint32_t zero;
    char label[WEIR__PATTERN_LABEL_SIZE + 16];
    snprintf(label, sizeof label, "%s/%s", buckets->label, name);
    TRY(weir_buffer_create(device_of(buckets),
                           WEIR_PARAMS(weir_buffer, .label = label, .size = size), out_buffer));
    return weir_queue_fill(buckets->comm_queue, *out_buffer, 0, size, &zero, 1);
}

static weir_status make_kernels(weir_buckets *buckets)
{
    TRY(weir_program_create(device_of(buckets),
                            WEIR_PARAMS(weir_program, .label = buckets->label,
                                        .bundle = &buckets_kernels),
                            &buckets->program));
    TRY(weir_kernel_create(buckets->program, "buckets_narrow", &buckets->narrow));
    return weir_kernel_create(buckets->program, "buckets_widen", &buckets->widen);
}

static weir_status make_way(weir_buckets *buckets)
{
    const size_t bytes = buckets->plan.bytes / buckets->element_size * buckets->wire_size;
    TRY(make_kernels(buckets));
    TRY(make_queue(buckets, "narrow", false, &buckets->narrow_queue));
    TRY(make_queue(buckets, "widen", buckets->params.timing, &buckets->widen_queue));
    return make_buffer(buckets, "wire", bytes, &buckets->wire);
}

static weir_status make_parts(weir_buckets *buckets)
{
    if (weir_device_limits(device_of(buckets))->timing_history == 0)
        buckets->params.timing = false;
    TRY(make_queue(buckets, "comm", buckets->params.timing, &buckets->comm_queue));
    if (buckets->params.timing)
        TRY(make_queue(buckets, "clock", true, &buckets->clock));
    TRY(make_buffer(buckets, "gradients", buckets->plan.bytes, &buckets->gradients));
    if (buckets->narrows)
        TRY(make_way(buckets));
    return WEIR_OK;
}

static weir_status make(const struct weir_buckets_params *params, weir_comm *comm,
                        weir_buckets **out_buckets)
{
    struct weir_buckets_params mine = *params;
    weir_buckets *buckets = calloc(1, sizeof *buckets);
    if (!buckets)
        return weir__pattern_no_memory(params->label, "buckets");
    *out_buckets = buckets;
    mine.comm = comm;
    TRY(lay_out(&mine, buckets));
    return make_parts(buckets);
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
        status = weir__buckets_agree(out_buckets, count);
    for (uint32_t i = 0; i < count && status != WEIR_OK; i++)
        weir_buckets_destroy(&out_buckets[i]);
    return status;
}

weir_status weir_buckets_create_at(const struct weir_buckets_params *params,
                                   weir_buckets **out_buckets, const char *file, int line)
{
    const struct weir__place before = weir__pattern_begin(file, line);
    return weir__pattern_end(create_all("weir_buckets_create", params, NULL, 1, out_buckets),
                             before);
}

weir_status weir_buckets_create_all_at(const struct weir_buckets_params *params,
                                       weir_comm *const *comms, uint32_t count,
                                       weir_buckets **out_buckets, const char *file, int line)
{
    const struct weir__place before = weir__pattern_begin(file, line);
    weir_status status;
    if (comms && count > 0)
        status = create_all("weir_buckets_create_all", params, comms, count, out_buckets);
    else
        status = weir__pattern_refuse(NULL, "pass the communicator of each rank",
                                      "weir_buckets_create_all: there are no communicators");
    return weir__pattern_end(status, before);
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
    free_plan(gone);
    free(gone);
}

// --- the plan ---

weir_status weir__buckets_refuse_index(const weir_buckets *buckets, const char *function,
                                       const char *what, uint32_t index, uint32_t count)
{
    return weir__pattern_refuse(buckets->label, NULL,
                                "%s: there is no %s %" PRIu32 ", there are %" PRIu32, function,
                                what, index, count);
}

weir_status weir_buckets_get_view(const weir_buckets *buckets, uint32_t index,
                                  struct weir_bucket_view *out_view)
{
    *out_view = (struct weir_bucket_view){0};
    if (index >= buckets->params.parameter_count)
        return weir__buckets_refuse_index(buckets, "weir_buckets_get_view", "parameter", index,
                                          buckets->params.parameter_count);
    const struct weir__buckets_parameter *parameter = &buckets->parameters[index];
    *out_view = (struct weir_bucket_view){buckets->gradients, parameter->offset, parameter->size};
    return WEIR_OK;
}

weir_status weir_buckets_get_bucket(const weir_buckets *buckets, uint32_t index,
                                    struct weir_bucket *out_bucket)
{
    *out_bucket = (struct weir_bucket){0};
    if (index >= buckets->plan.bucket_count)
        return weir__buckets_refuse_index(buckets, "weir_buckets_get_bucket", "bucket", index,
                                          buckets->plan.bucket_count);
    *out_bucket = buckets->buckets[index].range;
    return WEIR_OK;
}

void weir_buckets_get_plan_sized(const weir_buckets *buckets, struct weir_buckets_plan *out_plan,
                                 size_t size)
{
    weir_sized_write(out_plan, size, &buckets->plan, sizeof buckets->plan);
}
