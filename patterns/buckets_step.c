// Steps: marks, and the submission of buckets that they complete.
//
// A queue that marks parameters in its order needs one event for a bucket, of its last mark there.
// So an event is recorded only when another queue marks, or when the bucket is submitted.
//
// Narrowed gradients are converted on queues of their own: on the queue of the reductions the
// conversions of one bucket would stand between the reductions of two. A step's bytes on the wire need
// no wait for the step before: its gradients are written after that one was widened.
#include "patterns/buckets_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sized.h"
#include "patterns/fail.h"

// The times of reductions. They are read when a step's place in the ring is needed again, and when
// the program asks: in neither case does anything wait, and a step that has not ended is left out.

struct span {
    uint64_t begin_ns;
    uint64_t end_ns;
};

static bool read_span(const struct weir__buckets_times *times, struct span *out_span)
{
    return weir_event_time_ns(times->begin, &out_span->begin_ns) == WEIR_OK &&
           weir_event_time_ns(times->end, &out_span->end_ns) == WEIR_OK;
}

// All times of a step, or none.
static bool can_read(const weir_buckets *buckets, uint32_t place, uint64_t *out_reached_ns)
{
    struct span span;
    if (weir_event_time_ns(buckets->reached[place], out_reached_ns) != WEIR_OK)
        return false;
    for (uint32_t i = 0; i < buckets->plan.bucket_count; i++)
        if (!read_span(&buckets->buckets[i].times[place], &span))
            return false;
    return true;
}

static void add(weir_buckets *buckets, const struct span *span, uint64_t reached_ns)
{
    const uint64_t since_ns = reached_ns > span->begin_ns ? reached_ns : span->begin_ns;
    const uint64_t whole_ns = span->end_ns > span->begin_ns ? span->end_ns - span->begin_ns : 0;
    const uint64_t exposed_ns = span->end_ns > since_ns ? span->end_ns - since_ns : 0;
    buckets->figures.exposed_ns += exposed_ns;
    buckets->figures.hidden_ns += whole_ns - exposed_ns;
}

// Reads the times of the step that had this place in the ring before, if it has ended.
static void read_times(weir_buckets *buckets, uint32_t place)
{
    const struct weir_error before = *weir_last_error();
    uint64_t reached_ns = 0;
    struct span span;
    if (buckets->reached[place].sequence && can_read(buckets, place, &reached_ns)) {
        for (uint32_t i = 0; i < buckets->plan.bucket_count; i++)
            if (read_span(&buckets->buckets[i].times[place], &span))
                add(buckets, &span, reached_ns);
        buckets->figures.timed_steps++;
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

// The place of a bucket in the buffer `wire`.
static size_t wire_offset(const weir_buckets *buckets, const struct weir_bucket *range)
{
    return range->offset / buckets->element_size * buckets->wire_size;
}

static weir_status narrow(weir_buckets *buckets, struct weir__buckets_bucket *bucket)
{
    const struct weir_bucket *range = &bucket->range;
    const size_t count = range->size / buckets->element_size;
    struct weir_event narrowed;
    TRY(wait_for_gradients(buckets, bucket, buckets->narrow_queue));
    TRY(weir_queue_launch_count(buckets->narrow_queue, buckets->narrow, count,
                                weir_in(buckets->gradients, range->offset, range->size),
                                weir_out(buckets->wire, wire_offset(buckets, range),
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
                                weir_in(buckets->wire, wire_offset(buckets, range),
                                        count * buckets->wire_size),
                                weir_out(buckets->gradients, range->offset, range->size),
                                (uint64_t)count));
    return weir_queue_record(buckets->widen_queue, &bucket->done);
}

static weir_status reduce(weir_buckets *buckets, struct weir__buckets_bucket *bucket)
{
    const struct weir_bucket *range = &bucket->range;
    weir_buffer *buffer = buckets->narrows ? buckets->wire : buckets->gradients;
    const size_t offset = wire_offset(buckets, range);
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

static weir_status submit(weir_buckets *buckets, struct weir__buckets_bucket *bucket)
{
    TRY(buckets->narrows ? narrow(buckets, bucket)
                         : wait_for_gradients(buckets, bucket, buckets->comm_queue));
    TRY(reduce(buckets, bucket));
    bucket->submitted = true;
    return WEIR_OK;
}

static weir_status submit_due(weir_buckets *buckets)
{
    while (buckets->next < buckets->plan.bucket_count &&
           buckets->buckets[buckets->next].pending == 0)
        TRY(submit(buckets, &buckets->buckets[buckets->next++]));
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
        return weir__buckets_refuse_index(buckets, function, "parameter", index,
                                          buckets->params.parameter_count);
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

// Names the first few parameters that are not marked, with commas.
static uint32_t list_unmarked(const weir_buckets *buckets, char *text, size_t size)
{
    uint32_t count = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < buckets->params.parameter_count; i++) {
        const struct weir__buckets_parameter *parameter = &buckets->parameters[i];
        const size_t length = strlen(text);
        if (parameter->marked || count++ >= 3)
            continue;
        snprintf(text + length, size - length, "%s'%.60s'", length ? ", " : "", parameter->name);
    }
    return count;
}

static weir_status refuse_unmarked(weir_buckets *buckets)
{
    char names[256];
    char more[32] = "";
    const uint32_t count = list_unmarked(buckets, names, sizeof names);
    if (count > 3)
        snprintf(more, sizeof more, " and %" PRIu32 " more", count - 3);
    weir_status status = weir__pattern_refuse(
        buckets->label, "mark each parameter with weir_buckets_ready(), or make it optional",
        "weir_buckets_finish: %" PRIu32 " of %" PRIu32 " parameters %s never marked: %s%s", count,
        buckets->params.parameter_count, count == 1 ? "was" : "were", names, more);
    return fail_step(buckets, status);
}

static weir_status skip_the_rest(weir_buckets *buckets, weir_queue *queue)
{
    for (uint32_t i = 0; i < buckets->params.parameter_count; i++)
        if (!buckets->parameters[i].marked && buckets->parameters[i].optional)
            TRY(leave_out(buckets, i, queue));
    return WEIR_OK;
}

static bool has_unmarked(const weir_buckets *buckets)
{
    for (uint32_t i = 0; i < buckets->plan.bucket_count; i++)
        if (buckets->buckets[i].pending)
            return true;
    return false;
}

// The time at which the program's queue has come here, on a queue that keeps times.
static weir_status note_reached(weir_buckets *buckets, weir_queue *queue)
{
    struct weir_event here;
    TRY(weir_queue_record(queue, &here));
    TRY(weir_queue_wait(buckets->clock, here));
    return weir_queue_record(buckets->clock,
                             &buckets->reached[buckets->step % WEIR__BUCKETS_STEPS]);
}

static weir_status finish_step(weir_buckets *buckets, weir_queue *queue)
{
    const struct weir__buckets_bucket *last = &buckets->buckets[buckets->plan.bucket_count - 1];
    weir_status status = WEIR_OK;
    if (buckets->params.timing)
        status = note_reached(buckets, queue);
    if (status == WEIR_OK)
        status = weir_queue_wait(queue, last->done);
    if (status != WEIR_OK)
        return fail_step(buckets, status);
    buckets->figures.steps++;
    buckets->step++;
    return WEIR_OK;
}

weir_status weir_buckets_finish(weir_buckets *buckets, weir_queue *queue)
{
    if (!buckets->in_pass)
        return refuse_outside(buckets, "weir_buckets_finish");
    TRY(check_queue(buckets, "weir_buckets_finish", queue));
    TRY(skip_the_rest(buckets, queue));
    if (has_unmarked(buckets))
        TRY(refuse_unmarked(buckets));
    if (buckets->reduces)
        TRY(finish_step(buckets, queue));
    buckets->figures.passes++;
    buckets->pass = buckets->reduces ? 0 : buckets->pass + 1;
    buckets->in_pass = false;
    return WEIR_OK;
}

weir_status weir_buckets_wait(weir_buckets *buckets, uint32_t index, weir_queue *queue)
{
    TRY(check_queue(buckets, "weir_buckets_wait", queue));
    if (index >= buckets->plan.bucket_count)
        return weir__buckets_refuse_index(buckets, "weir_buckets_wait", "bucket", index,
                                          buckets->plan.bucket_count);
    if (!buckets->buckets[index].submitted)
        return weir__pattern_refuse(buckets->label,
                                    "mark its parameters, and those before them, first",
                                    "weir_buckets_wait: bucket %" PRIu32
                                    " of this step is not submitted yet",
                                    index);
    return weir_queue_wait(queue, buckets->buckets[index].done);
}
