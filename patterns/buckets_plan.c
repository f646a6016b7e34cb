// The plan: where each gradient lies, and which of them make a bucket.
//
// Views are aligned so that each can be a launch's argument, and the bytes between them are reduced
// with the rest. A gradient that is rounded for the way lies at half its offset there, so offsets
// are multiples of twice the alignment then.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "patterns/buckets_parts.h"
#include "patterns/fail.h"

#define FIRST_BYTES ((size_t)1 << 20)
#define CAP_BYTES ((size_t)25 << 20)

static weir_status check_types(const struct weir_buckets_params *params)
{
    if (weir_datatype_size(params->element) == 0)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID,
                                  "set it to the type of the gradients, such as WEIR_F32",
                                  "weir_buckets_create: element is %d, which is no type",
                                  (int)params->element);
    if (params->reduction && (params->reduction < WEIR_SUM || params->reduction > WEIR_AVERAGE))
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID, "0 is WEIR_AVERAGE",
                                  "weir_buckets_create: reduction is %d, which is none",
                                  (int)params->reduction);
    if (params->wire && params->wire != params->element &&
        (params->wire != WEIR_BF16 || params->element != WEIR_F32))
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID,
                                  "0 sends gradients as they are; only f32 is sent as bf16",
                                  "weir_buckets_create: %s gradients cannot be sent as %s",
                                  weir_datatype_name(params->element),
                                  weir_datatype_name(params->wire));
    return WEIR_OK;
}

static weir_status check_params(const struct weir_buckets_params *params)
{
    if (!params->comm)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID, "pass a communicator",
                                  "weir_buckets_create: params->comm is NULL");
    if (!params->parameters || params->parameter_count == 0)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID,
                                  "list the model's parameters, the last layer's first",
                                  "weir_buckets_create: there are no parameters");
    if (params->parameter_size < sizeof(size_t) || params->parameter_size > WEIR_SIZED_BYTES_MAX)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID,
                                  "set it to sizeof(struct weir_bucket_parameter)",
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
    weir_status status = weir__pattern_item("weir_buckets_create", "weir_bucket_parameter", item,
                                            params->parameter_size, &known, sizeof known);
    if (status != WEIR_OK)
        return status;
    if (!known.name || known.count == 0)
        return weir__pattern_fail(buckets->label, WEIR_ERROR_INVALID,
                                  "each parameter has a name and elements",
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
    return weir__pattern_fail(
        buckets->label, WEIR_ERROR_INVALID, "give its count in elements",
        "weir_buckets_create: with parameter %" PRIu32
        ", '%s', of %zu elements, the gradients have more bytes than a size_t "
        "can count",
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

weir_status weir__buckets_lay_out(const struct weir_buckets_params *params, weir_buckets *buckets)
{
    weir_status status = check_params(params);
    if (status != WEIR_OK)
        return status;
    buckets->params = *params;
    snprintf(buckets->label, sizeof buckets->label, "%s",
             weir__pattern_label(params->label, "buckets"));
    buckets->params.label = buckets->label;
    if (!buckets->params.reduction)
        buckets->params.reduction = WEIR_AVERAGE;
    if (!buckets->params.wire)
        buckets->params.wire = params->element;
    buckets->element_size = weir_datatype_size(params->element);
    buckets->wire_size = weir_datatype_size(buckets->params.wire);
    buckets->narrows = buckets->params.wire != params->element;
    choose_caps(buckets);
    status = allocate(buckets);
    for (uint32_t i = 0; i < params->parameter_count && status == WEIR_OK; i++)
        status = read_parameter(buckets, params, i);
    buckets->params.parameters = NULL;
    return status == WEIR_OK ? place(buckets) : status;
}

void weir__buckets_free_plan(weir_buckets *buckets)
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

static void make_bucket(weir_buckets *buckets, uint32_t first, uint32_t end)
{
    const struct weir__buckets_parameter *last = &buckets->parameters[end - 1];
    const uint32_t index = buckets->plan.bucket_count++;
    const size_t offset = buckets->parameters[first].offset;
    buckets->buckets[index].range =
        (struct weir_bucket){.index = index,
                             .first = first,
                             .count = end - first,
                             .offset = offset,
                             .size = last->offset + last->size - offset};
    for (uint32_t i = first; i < end; i++)
        buckets->parameters[i].bucket = index;
}

void weir__buckets_cut(weir_buckets *buckets)
{
    for (uint32_t first = 0; first < buckets->params.parameter_count;) {
        const uint32_t end = weir__buckets_end(buckets, &buckets->plan, first);
        make_bucket(buckets, first, end);
        first = end;
    }
}
