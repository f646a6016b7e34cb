// The plan of buckets, their creation and destruction. What other ranks take part in, the comparison of plans and the
// measurement, is done for all ranks of this process step by step, so that one thread can serve
// several.
#include "patterns/buckets.h"

#include <inttypes.h>

#include "base/sized.h"
#include "kernels/buckets/buckets.h"
#include "patterns/buckets_parts.h"
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

// Places the views one after another.
static weir_status place_views(weir_buckets *buckets)
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
            return weir__pattern_refuse(
                buckets->label, "give its count in elements",
                "weir_buckets_create: with parameter %" PRIu32
                ", '%s', of %zu elements, the gradients have more bytes than a size_t can count",
                i, parameter->name, parameter->count);
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

// Checks the params and lays the views out.
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
    const uint32_t count = params->parameter_count;
    buckets->parameters = calloc(count, sizeof *buckets->parameters);
    buckets->buckets = calloc(count, sizeof *buckets->buckets);
    buckets->events = calloc(count, sizeof *buckets->events);
    if (!buckets->parameters || !buckets->buckets || !buckets->events)
        return weir__pattern_fail(buckets->label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                                  "no memory for the plan of %" PRIu32 " parameters", count);
    for (uint32_t i = 0; i < count; i++)
        TRY(read_parameter(buckets, params, i));
    buckets->params.parameters = NULL;
    return place_views(buckets);
}

uint32_t weir__buckets_end(const weir_buckets *buckets, const struct weir_buckets_plan *plan,
                           uint32_t first)
{
    const size_t offset = buckets->parameters[first].offset;
    const size_t half = (plan->bytes - offset) / 2;
    const size_t wanted = half > plan->last_bytes ? half : plan->last_bytes;
    const size_t cap = offset == 0 ? plan->first_bytes : plan->cap_bytes;
    const size_t most = wanted < cap ? wanted : cap;
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
    return weir__pattern_queue(device_of(buckets), buckets->params.priority, timing, buckets->place,
                               out_queue, "%s/%s", buckets->label, name);
}

static weir_status make_buffer(weir_buckets *buckets, const char *name, size_t size,
                               weir_buffer **out_buffer)
{
    static const uint32_t zero;
    char label[WEIR__PATTERN_LABEL_SIZE + 16];
    snprintf(label, sizeof label, "%s/%s", buckets->label, name);
    TRY(weir_buffer_create_at(device_of(buckets),
                              WEIR_PARAMS(weir_buffer, .label = label, .size = size), out_buffer,
                              buckets->place.file, buckets->place.line));
    return weir_queue_fill(buckets->comm_queue, *out_buffer, 0, size, &zero, 1);
}

static weir_status make_parts(weir_buckets *buckets)
{
    const struct weir__place place = buckets->place;
    if (weir_device_limits(device_of(buckets))->timing_history == 0)
        buckets->params.timing = false;
    TRY(make_queue(buckets, "comm", buckets->params.timing, &buckets->comm_queue));
    if (buckets->params.timing)
        TRY(make_queue(buckets, "clock", true, &buckets->clock));
    TRY(make_buffer(buckets, "gradients", buckets->plan.bytes, &buckets->gradients));
    if (!buckets->narrows)
        return WEIR_OK;
    TRY(weir_program_create_at(device_of(buckets),
                               WEIR_PARAMS(weir_program, .label = buckets->label,
                                           .bundle = &buckets_kernels),
                               &buckets->program, place.file, place.line));
    TRY(weir_kernel_create_at(buckets->program, "buckets_narrow", &buckets->narrow, place.file,
                              place.line));
    TRY(weir_kernel_create_at(buckets->program, "buckets_widen", &buckets->widen, place.file,
                              place.line));
    TRY(make_queue(buckets, "narrow", false, &buckets->narrow_queue));
    TRY(make_queue(buckets, "widen", buckets->params.timing, &buckets->widen_queue));
    return make_buffer(buckets, "wire", weir__buckets_on_wire(buckets, buckets->plan.bytes),
                       &buckets->wire);
}

static weir_status make(const struct weir_buckets_params *params, weir_comm *comm,
                        struct weir__place place, weir_buckets **out_buckets)
{
    struct weir_buckets_params mine = *params;
    weir_buckets *buckets = calloc(1, sizeof *buckets);
    if (!buckets)
        return weir__pattern_no_memory(params->label, "buckets");
    *out_buckets = buckets;
    buckets->place = place;
    mine.comm = comm;
    TRY(lay_out(&mine, buckets));
    return make_parts(buckets);
}

static weir_status create_all(const char *function, const struct weir_buckets_params *params,
                              weir_comm *const *comms, uint32_t count, weir_buckets **out_buckets,
                              struct weir__place place)
{
    struct weir_buckets_params known;
    for (uint32_t i = 0; i < count; i++)
        out_buckets[i] = NULL;
    weir_status status =
        weir__pattern_params(function, "weir_buckets_params", params, &known, sizeof known);
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++) {
        weir_comm *comm = comms ? comms[i] : known.comm;
        status = make(&known, comm, place, &out_buckets[i]);
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
    return weir__pattern_placed(create_all("weir_buckets_create", params, NULL, 1, out_buckets,
                                           (struct weir__place){file, line}),
                                file, line);
}

weir_status weir_buckets_create_all_at(const struct weir_buckets_params *params,
                                       weir_comm *const *comms, uint32_t count,
                                       weir_buckets **out_buckets, const char *file, int line)
{
    weir_status status;
    if (comms && count > 0)
        status = create_all("weir_buckets_create_all", params, comms, count, out_buckets,
                            (struct weir__place){file, line});
    else
        status = weir__pattern_refuse(NULL, "pass the communicator of each rank",
                                      "weir_buckets_create_all: there are no communicators");
    return weir__pattern_placed(status, file, line);
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
    for (uint32_t i = 0; gone->parameters && i < gone->params.parameter_count; i++)
        free(gone->parameters[i].name);
    free(gone->parameters);
    free(gone->buckets);
    free(gone->events);
    free(gone);
}

// --- the plan ---

// Of a `what`, of which there are `count`.
static weir_status refuse_index(const weir_buckets *buckets, const char *function, const char *what,
                                uint32_t index, uint32_t count)
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
        return refuse_index(buckets, "weir_buckets_get_view", "parameter", index,
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
        return refuse_index(buckets, "weir_buckets_get_bucket", "bucket", index,
                            buckets->plan.bucket_count);
    *out_bucket = buckets->buckets[index].range;
    return WEIR_OK;
}

void weir_buckets_get_plan_sized(const weir_buckets *buckets, struct weir_buckets_plan *out_plan,
                                 size_t size)
{
    weir_sized_write(out_plan, size, &buckets->plan, sizeof buckets->plan);
}

// Steps: marks, and the submission of buckets that they complete.
//
// A queue that marks parameters in its order needs one event for a bucket, of its last mark there.
// So an event is recorded only when another queue marks, or when the bucket is submitted.
//
// Narrowed gradients are converted on queues of their own: on the queue of the reductions the
// conversions of one bucket would stand between the reductions of two. A step's bytes on the wire need
// no wait for the step before: its gradients are written after that one was widened.

// The times of reductions. They are read when a step's place in the ring is needed again, and when
// the program asks: in neither case does anything wait, and a step that has not ended is left out.

// Adds a reduction to what is hidden and exposed. False if its times are not there.
static bool add_times(const struct weir__buckets_times *times, uint64_t reached_ns,
                      struct weir_buckets_statistics *figures)
{
    uint64_t begin_ns, end_ns;
    if (weir_event_time_ns(times->begin, &begin_ns) != WEIR_OK ||
        weir_event_time_ns(times->end, &end_ns) != WEIR_OK)
        return false;
    const uint64_t since_ns = reached_ns > begin_ns ? reached_ns : begin_ns;
    const uint64_t whole_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
    const uint64_t exposed_ns = end_ns > since_ns ? end_ns - since_ns : 0;
    figures->exposed_ns += exposed_ns;
    figures->hidden_ns += whole_ns - exposed_ns;
    return true;
}

// All times of a step, or none.
static bool add_step(const weir_buckets *buckets, uint32_t place,
                     struct weir_buckets_statistics *figures)
{
    uint64_t reached_ns;
    if (weir_event_time_ns(buckets->reached[place], &reached_ns) != WEIR_OK)
        return false;
    for (uint32_t i = 0; i < buckets->plan.bucket_count; i++)
        if (!add_times(&buckets->buckets[i].times[place], reached_ns, figures))
            return false;
    figures->timed_steps++;
    return true;
}

// Reads the times of the step that had this place in the ring before, if it has ended.
static void read_times(weir_buckets *buckets, uint32_t place)
{
    const struct weir_error before = *weir_last_error();
    struct weir_buckets_statistics figures = buckets->figures;
    if (buckets->reached[place].sequence && add_step(buckets, place, &figures)) {
        buckets->figures = figures;
        buckets->reached[place] = (struct weir_event){0, 0};
    }
    weir_error_set(before.status ? &before : NULL);
}

void weir_buckets_get_statistics_sized(weir_buckets *buckets,
                                       struct weir_buckets_statistics *out_statistics, size_t size)
{
    static const struct weir_buckets_statistics none;
    for (uint32_t place = 0; buckets && place < WEIR__BUCKETS_STEPS; place++)
        read_times(buckets, place);
    weir_sized_write(out_statistics, size, buckets ? &buckets->figures : &none, sizeof none);
}

// The step cannot be completed.
static weir_status fail_step(weir_buckets *buckets, weir_status status)
{
    buckets->in_pass = false;
    weir__buckets_tell(buckets->params.comm, buckets->label);
    return status;
}

// --- a bucket ---

static weir_status note_source(weir_buckets *buckets, struct weir__buckets_bucket *bucket)
{
    struct weir_event *event = &buckets->events[bucket->range.first + bucket->event_count];
    TRY(weir_queue_record(bucket->source, event));
    bucket->event_count++;
    return WEIR_OK;
}

static weir_status wait_for_gradients(weir_buckets *buckets, struct weir__buckets_bucket *bucket,
                                      weir_queue *queue)
{
    TRY(note_source(buckets, bucket));
    for (uint32_t i = 0; i < bucket->event_count; i++)
        TRY(weir_queue_wait(queue, buckets->events[bucket->range.first + i]));
    return WEIR_OK;
}

static weir_status narrow(weir_buckets *buckets, struct weir__buckets_bucket *bucket)
{
    const struct weir_bucket *range = &bucket->range;
    const size_t count = range->size / buckets->element_size;
    struct weir_event narrowed;
    TRY(wait_for_gradients(buckets, bucket, buckets->narrow_queue));
    TRY(weir_queue_launch_count(buckets->narrow_queue, buckets->narrow, count,
                                weir_in(buckets->gradients, range->offset, range->size),
                                weir_out(buckets->wire,
                                         weir__buckets_on_wire(buckets, range->offset),
                                         count * buckets->wire_size),
                                (uint64_t)count));
    TRY(weir_queue_record(buckets->narrow_queue, &narrowed));
    return weir_queue_wait(buckets->comm_queue, narrowed);
}

static weir_status widen(weir_buckets *buckets, struct weir__buckets_bucket *bucket)
{
    const struct weir_bucket *range = &bucket->range;
    const size_t count = range->size / buckets->element_size;
    TRY(weir_queue_wait(buckets->widen_queue, bucket->done));
    TRY(weir_queue_launch_count(buckets->widen_queue, buckets->widen, count,
                                weir_in(buckets->wire,
                                        weir__buckets_on_wire(buckets, range->offset),
                                        count * buckets->wire_size),
                                weir_out(buckets->gradients, range->offset, range->size),
                                (uint64_t)count));
    return weir_queue_record(buckets->widen_queue, &bucket->done);
}

static weir_status reduce(weir_buckets *buckets, struct weir__buckets_bucket *bucket)
{
    const struct weir_bucket *range = &bucket->range;
    weir_buffer *buffer = buckets->narrows ? buckets->wire : buckets->gradients;
    const size_t offset = weir__buckets_on_wire(buckets, range->offset);
    const size_t count = range->size / buckets->element_size;
    struct weir__buckets_times *times = &bucket->times[buckets->step % WEIR__BUCKETS_STEPS];
    if (buckets->params.timing)
        TRY(weir_queue_record(buckets->comm_queue, &times->begin));
    TRY(weir_queue_all_reduce(buckets->comm_queue, buckets->params.comm, buffer, offset, buffer,
                              offset, count, buckets->params.wire, buckets->params.reduction));
    TRY(weir_queue_record(buckets->comm_queue, &bucket->done));
    if (buckets->narrows)
        TRY(widen(buckets, bucket));
    times->end = bucket->done;
    buckets->figures.reductions++;
    buckets->figures.reduced_bytes += count * buckets->wire_size;
    return WEIR_OK;
}

static weir_status submit_due(weir_buckets *buckets)
{
    while (buckets->next < buckets->plan.bucket_count &&
           buckets->buckets[buckets->next].pending == 0) {
        struct weir__buckets_bucket *bucket = &buckets->buckets[buckets->next++];
        TRY(buckets->narrows ? narrow(buckets, bucket)
                             : wait_for_gradients(buckets, bucket, buckets->comm_queue));
        TRY(reduce(buckets, bucket));
        bucket->submitted = true;
    }
    return WEIR_OK;
}

// --- marks ---

static weir_status refuse_outside(const weir_buckets *buckets, const char *function)
{
    return weir__pattern_refuse(buckets->label, "call weir_buckets_begin() first",
                                "%s: no pass has begun", function);
}

static weir_status check_queue(const weir_buckets *buckets, const char *function,
                               const weir_queue *queue)
{
    if (!queue)
        return weir__pattern_refuse_null(function, "queue");
    if (weir_queue_device(queue) != weir_comm_device(buckets->params.comm))
        return weir__pattern_refuse(
            buckets->label, "use a queue of the communicator's device",
            "%s: queue '%s' belongs to another device than the communicator", function,
            WEIR__PATTERN_SHOWN(weir_queue_label(queue)));
    return WEIR_OK;
}

static weir_status check_mark(const weir_buckets *buckets, const char *function, uint32_t index,
                              const weir_queue *queue)
{
    if (!buckets->in_pass)
        return refuse_outside(buckets, function);
    if (index >= buckets->params.parameter_count)
        return refuse_index(buckets, function, "parameter", index, buckets->params.parameter_count);
    if (buckets->parameters[index].marked)
        return weir__pattern_refuse(
            buckets->label, "mark a parameter once a pass, after the last work on its gradient",
            "%s: '%s' is marked already in this pass", function, buckets->parameters[index].name);
    return check_queue(buckets, function, queue);
}

static weir_status mark(weir_buckets *buckets, uint32_t index, weir_queue *queue)
{
    struct weir__buckets_parameter *parameter = &buckets->parameters[index];
    struct weir__buckets_bucket *bucket = &buckets->buckets[parameter->bucket];
    weir_status status = WEIR_OK;
    parameter->marked = parameter->written = true;
    bucket->pending--;
    if (!buckets->reduces)
        return WEIR_OK;
    if (bucket->source && bucket->source != queue)
        status = note_source(buckets, bucket);
    bucket->source = queue;
    if (status == WEIR_OK)
        status = submit_due(buckets);
    return status == WEIR_OK ? WEIR_OK : fail_step(buckets, status);
}

weir_status weir_buckets_ready(weir_buckets *buckets, uint32_t index, weir_queue *queue)
{
    TRY(check_mark(buckets, "weir_buckets_ready", index, queue));
    return mark(buckets, index, queue);
}

// Zeros, unless an earlier pass has written the gradient.
static weir_status leave_out(weir_buckets *buckets, uint32_t index, weir_queue *queue)
{
    static const uint32_t zero;
    const struct weir__buckets_parameter *parameter = &buckets->parameters[index];
    weir_status status = WEIR_OK;
    if (!parameter->written)
        status = weir_queue_fill(queue, buckets->gradients, parameter->offset, parameter->size,
                                 &zero, 1);
    if (status != WEIR_OK)
        return fail_step(buckets, status);
    buckets->figures.skipped++;
    return mark(buckets, index, queue);
}

weir_status weir_buckets_skip(weir_buckets *buckets, uint32_t index, weir_queue *queue)
{
    TRY(check_mark(buckets, "weir_buckets_skip", index, queue));
    if (!buckets->parameters[index].optional)
        return weir__pattern_refuse(buckets->label, "set `optional` of the parameter",
                                    "weir_buckets_skip: '%s' is not optional",
                                    buckets->parameters[index].name);
    return leave_out(buckets, index, queue);
}

// --- passes ---

uint32_t weir_buckets_pass(const weir_buckets *buckets)
{
    return buckets->pass;
}

weir_status weir_buckets_begin(weir_buckets *buckets, bool reduce)
{
    if (buckets->in_pass)
        return weir__pattern_refuse(buckets->label, "call weir_buckets_finish() first",
                                    "weir_buckets_begin: a pass has begun already");
    TRY(weir_comm_error(buckets->params.comm));
    for (uint32_t i = 0; i < buckets->params.parameter_count; i++) {
        buckets->parameters[i].marked = false;
        buckets->parameters[i].written &= buckets->pass > 0;
    }
    for (uint32_t i = 0; i < buckets->plan.bucket_count; i++) {
        struct weir__buckets_bucket *bucket = &buckets->buckets[i];
        bucket->pending = bucket->range.count;
        bucket->event_count = 0;
        bucket->source = NULL;
        bucket->submitted = false;
    }
    if (reduce && buckets->params.timing) {
        const uint32_t place = (uint32_t)(buckets->step % WEIR__BUCKETS_STEPS);
        read_times(buckets, place);
        buckets->reached[place] = (struct weir_event){0, 0};
    }
    buckets->next = 0;
    buckets->reduces = reduce;
    buckets->in_pass = true;
    return WEIR_OK;
}

// Names the first few.
static weir_status refuse_unmarked(weir_buckets *buckets)
{
    char names[256] = "";
    char more[32] = "";
    uint32_t count = 0;
    for (uint32_t i = 0; i < buckets->params.parameter_count; i++) {
        const struct weir__buckets_parameter *parameter = &buckets->parameters[i];
        const size_t length = strlen(names);
        if (!parameter->marked && count++ < 3)
            snprintf(names + length, sizeof names - length, "%s'%.60s'", length ? ", " : "",
                     parameter->name);
    }
    if (count > 3)
        snprintf(more, sizeof more, " and %" PRIu32 " more", count - 3);
    weir_status status = weir__pattern_refuse(
        buckets->label, "mark each parameter with weir_buckets_ready(), or make it optional",
        "weir_buckets_finish: %" PRIu32 " of %" PRIu32 " parameters %s never marked: %s%s", count,
        buckets->params.parameter_count, count == 1 ? "was" : "were", names, more);
    return fail_step(buckets, status);
}

// With times, they have the one at which the program's queue has come here, on a queue that keeps them.
static weir_status finish_step(weir_buckets *buckets, weir_queue *queue)
{
    const struct weir__buckets_bucket *last = &buckets->buckets[buckets->plan.bucket_count - 1];
    struct weir_event here;
    if (buckets->params.timing) {
        TRY(weir_queue_record(queue, &here));
        TRY(weir_queue_wait(buckets->clock, here));
        TRY(weir_queue_record(buckets->clock,
                              &buckets->reached[buckets->step % WEIR__BUCKETS_STEPS]));
    }
    TRY(weir_queue_wait(queue, last->done));
    buckets->figures.steps++;
    buckets->step++;
    return WEIR_OK;
}

weir_status weir_buckets_finish(weir_buckets *buckets, weir_queue *queue)
{
    weir_status status = WEIR_OK;
    if (!buckets->in_pass)
        return refuse_outside(buckets, "weir_buckets_finish");
    TRY(check_queue(buckets, "weir_buckets_finish", queue));
    for (uint32_t i = 0; i < buckets->params.parameter_count; i++)
        if (!buckets->parameters[i].marked && buckets->parameters[i].optional)
            TRY(leave_out(buckets, i, queue));
    for (uint32_t i = 0; i < buckets->plan.bucket_count; i++)
        if (buckets->buckets[i].pending)
            return refuse_unmarked(buckets);
    if (buckets->reduces && (status = finish_step(buckets, queue)) != WEIR_OK)
        return fail_step(buckets, status);
    buckets->figures.passes++;
    buckets->pass = buckets->reduces ? 0 : buckets->pass + 1;
    buckets->in_pass = false;
    return WEIR_OK;
}

weir_status weir_buckets_wait(weir_buckets *buckets, uint32_t index, weir_queue *queue)
{
    TRY(check_queue(buckets, "weir_buckets_wait", queue));
    if (index >= buckets->plan.bucket_count)
        return refuse_index(buckets, "weir_buckets_wait", "bucket", index,
                            buckets->plan.bucket_count);
    if (!buckets->buckets[index].submitted)
        return weir__pattern_refuse(buckets->label,
                                    "mark its parameters, and those before them, first",
                                    "weir_buckets_wait: bucket %" PRIu32
                                    " of this step is not submitted yet",
                                    index);
    return weir_queue_wait(queue, buckets->buckets[index].done);
}
