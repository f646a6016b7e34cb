// The plan of a job in chunks: its params are checked, and sizes, queues and the order of all operations chosen.
#include "patterns/chunks_parts.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

// The sizes of chunks that the library chooses.
// How many. Cutting a transfer of t seconds into n chunks leaves about t / n in which only one engine
// works, at the beginning and at the end, and costs the start of n operations. The sum is least at
// n = sqrt(t / cost): the square root of the job's bytes divided by the bytes that are transferred in the
// time of one start. If the same cores copy and compute, none of this applies; a chunk is then a piece that
// stays in their cache from its upload to its download.
// Growing. A chunk that is much larger than the one before arrives after that one has left, and the way
// down waits; so each is a little larger, up to what one of n equal chunks has, and the first is the only one
// that the way down waits for as a whole. At the end, where the last kernel and the last download come after
// all uploads, they shrink faster. What that gains was measured: docs/chunks.md.

// At 55.3 GB/s, in the 4.4 + 0.6 µs of a launch, a record and a wait; measured on an H200.
#define BYTES_PER_START ((size_t)256 * 1024)
// Measured on an H200: with smaller ones the chunks that come of growing cost more than the first one gains.
#define LEAST_BYTES ((size_t)4 * 1024 * 1024)
#define GROWTH 20 // each chunk is larger by so manieth a part
// None has more than such a part of what is left, so that each is a quarter smaller at the end.
#define TAIL 4
// The largest chunk is at most so many times the least: then at most 48 chunks come of growing.
#define RATIO_MAX 16
// With about 1,000 operations pending, drivers block further submits. CHOSEN_EQUAL_MAX leaves room for those
// that come of growing.
#define CHOSEN_CHUNKS_MAX 256
#define CHOSEN_EQUAL_MAX (CHOSEN_CHUNKS_MAX - 48)
// Measured on PoCL: flat between 0.5 and 4 MiB.
#define BYTES_PER_CACHED_CHUNK ((size_t)1024 * 1024)

// Bytes of an element in the direction of more bytes.
static size_t widest(const struct weir_chunks_params *params)
{
    return params->in_bytes > params->out_bytes ? params->in_bytes : params->out_bytes;
}

static uint32_t cached_count(size_t bytes)
{
    size_t pieces = bytes > 0 ? (bytes - 1) / BYTES_PER_CACHED_CHUNK + 1 : 1;
    return pieces < CHOSEN_CHUNKS_MAX ? (uint32_t)pieces : CHOSEN_CHUNKS_MAX;
}

// The square root, rounded to nearest: the first n with ratio <= n (n + 1).
static uint32_t balanced_count(size_t bytes, uint32_t most)
{
    uint32_t count = 1;
    while (count < most && (size_t)count * (count + 1) < bytes / BYTES_PER_START)
        count++;
    return count;
}

// How many bytes the next chunk gets of those that are left. The last two share them.
static size_t take(size_t size, size_t least, size_t left)
{
    const size_t most = left / TAIL > least ? left / TAIL : least;

    size = size < most ? size : most;
    if (left <= size)
        return left;
    return left < 2 * size ? left / 2 : size;
}

// Cuts into chunks that grow, and stores their ends, in units, in `ends` unless it is NULL.
static uint32_t grow(const struct weir_chunks_params *params, size_t unit, size_t units,
                     size_t *ends)
{
    // A unit that is the only one may be larger than what can be counted in bytes.
    const size_t unit_bytes = units > 1 ? unit * widest(params) : 0;
    if (unit_bytes == 0) {
        if (ends && units > 0)
            ends[0] = units;
        return (uint32_t)units;
    }

    const size_t bytes = params->element_count * widest(params);
    const size_t most = (bytes - 1) / balanced_count(bytes, CHOSEN_EQUAL_MAX) + 1;
    const size_t least = most / RATIO_MAX > LEAST_BYTES ? most / RATIO_MAX : LEAST_BYTES;
    size_t size = least, at = 0, end = 0;
    uint32_t count = 0;

    while (end < units) {
        size = size < most ? size : most;
        at += take(size, least, bytes - at);
        end = at / unit_bytes > end ? at / unit_bytes : end + 1;
        if (at == bytes)
            end = units;
        if (ends)
            ends[count] = end;
        count++;
        size += size / GROWTH;
    }
    return count;
}

// Chunks of the same size, but for a unit.
static void cut_evenly(const weir_chunks *chunks)
{
    const uint32_t count = chunks->plan.chunk_count;
    const size_t each = count > 0 ? chunks->units / count : 0;
    const size_t more = count > 0 ? chunks->units % count : 0; // chunks with one unit more

    for (uint32_t i = 0; i < count; i++)
        chunks->cuts[i] = (i + 1) * each + (i + 1 < more ? i + 1 : more);
}

// The same chunks in the other order.
static void turn_round(const weir_chunks *chunks)
{
    const uint32_t count = chunks->plan.chunk_count;

    for (uint32_t i = 0; i < count / 2; i++) {
        size_t *early = &chunks->cuts[i], *late = &chunks->cuts[count - 2 - i];
        const size_t other = chunks->units - *late;
        *late = chunks->units - *early;
        *early = other;
    }
}

// If the device has no copy engines and shares the host's memory, the cores that compute
// also copy.
static bool on_cores(const struct weir_chunks_params *params)
{
    const struct weir_limits *limits = weir_device_limits(params->device);
    return limits->unified_memory && limits->copy_engines_to_device == 0 &&
           limits->copy_engines_to_host == 0;
}

static bool grows(const struct weir_chunks_params *params, const struct weir_chunks_plan *plan)
{
    return params->chunk_count == 0 && plan->layout == WEIR_CHUNKS_BY_ENGINE && !on_cores(params);
}

// How many chunks a job is cut into, by its params and the layout and unit of its plan.
static uint32_t chunks_count(const struct weir_chunks_params *params,
                             const struct weir_chunks_plan *plan, size_t units)
{
    const size_t bytes = params->element_count * widest(params);
    uint32_t count = params->chunk_count;

    if (grows(params, plan))
        return grow(params, plan->unit, units, NULL);
    if (count == 0)
        count = on_cores(params) ? cached_count(bytes) : balanced_count(bytes, CHOSEN_CHUNKS_MAX);
    return count < units ? count : (uint32_t)units;
}

struct weir_chunk weir__chunks_at(const weir_chunks *chunks, uint32_t index)
{
    const struct weir_chunks_params *params = &chunks->params;
    size_t first = index > 0 ? chunks->cuts[index - 1] * chunks->plan.unit : 0;
    size_t count = chunks->cuts[index] * chunks->plan.unit - first;

    // The last chunk's units may extend past the elements, and wrap.
    if (index + 1 == chunks->plan.chunk_count)
        count = params->element_count - first;
    return (struct weir_chunk){
        .index = index,
        .first = first,
        .count = count,
        .in_offset = params->in.offset + first * params->in_bytes,
        .in_size = count * params->in_bytes,
        .out_offset = params->out.offset + first * params->out_bytes,
        .out_size = count * params->out_bytes,
    };
}

void weir__chunks_write_cuts(weir_chunks *chunks)
{
    if (!grows(&chunks->params, &chunks->plan)) {
        cut_evenly(chunks);
    } else {
        grow(&chunks->params, chunks->plan.unit, chunks->units, chunks->cuts);
        if (chunks->params.in_bytes > chunks->params.out_bytes)
            turn_round(chunks);
    }
    for (uint32_t i = 0; i < chunks->plan.chunk_count; i++) {
        const struct weir_chunk chunk = weir__chunks_at(chunks, i);
        if (i == 0)
            chunks->plan.first_count = chunk.count;
        if (chunk.count > chunks->plan.most_count)
            chunks->plan.most_count = chunk.count;
    }
}

// The plan of a job: the checks of its params, its queues, and the order of the operations.

// The number of channels to which a CUDA context maps its streams by default.
#define CHANNELS 8

// Where cores copy, each copy by one of them: while one queue copies, the other one has work for the rest.
#define QUEUES_ON_CORES 2

bool weir__chunks_has(const struct weir_chunks_params *params, enum weir__chunks_stage stage)
{
    if (stage == WEIR__CHUNKS_COMPUTE)
        return true;
    return (stage == WEIR__CHUNKS_UPLOAD ? params->in_bytes : params->out_bytes) > 0;
}

// --- checks ---

static const char *placement_name(weir_placement placement)
{
    if (placement == WEIR_PLACE_MANAGED)
        return "MANAGED";
    return placement == WEIR_PLACE_HOST ? "HOST" : "DEVICE";
}

static weir_status check_range(const struct weir_chunks_params *params, const char *name,
                               const struct weir_chunks_place *place, size_t bytes,
                               weir_placement placement)
{
    if (!place->buffer)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID, "set it",
                                  "weir_chunks_create: params->%s has no buffer", name);
    if (weir_buffer_placement(place->buffer) != placement)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID,
                                  "src and dst are HOST buffers, in and out DEVICE buffers",
                                  "weir_chunks_create: params->%s is a %s buffer", name,
                                  placement_name(weir_buffer_placement(place->buffer)));

    size_t size = weir_buffer_size(place->buffer);
    if (place->offset > size || params->element_count > (size - place->offset) / bytes)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID,
                                  "use a larger buffer, or fewer elements",
                                  "weir_chunks_create: %zu elements of %zu bytes from offset %zu "
                                  "do not fit into params->%s of %zu bytes",
                                  params->element_count, bytes, place->offset, name, size);

    size_t alignment = weir_device_limits(params->device)->argument_alignment_bytes;
    if (placement == WEIR_PLACE_DEVICE && alignment > 0 && place->offset % alignment != 0)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID, NULL,
                                  "weir_chunks_create: the offset of params->%s, %zu, must be a "
                                  "multiple of the device's argument alignment, %zu",
                                  name, place->offset, alignment);
    return WEIR_OK;
}

static bool same_place(const struct weir_chunks_place *a, const struct weir_chunks_place *b)
{
    return a->buffer == b->buffer && a->offset == b->offset;
}

// Two ranges of the job must be disjoint, or the same element by element. They are known
// to be inside their buffers, so their ends do not wrap.
static weir_status check_pair(const struct weir_chunks_params *params, const char *names,
                              const struct weir_chunks_place *up,
                              const struct weir_chunks_place *down)
{
    if (up->buffer != down->buffer || params->element_count == 0)
        return WEIR_OK;
    if (up->offset + params->element_count * params->in_bytes <= down->offset ||
        down->offset + params->element_count * params->out_bytes <= up->offset)
        return WEIR_OK;
    if (same_place(up, down) && params->in_bytes == params->out_bytes)
        return WEIR_OK;
    return weir__pattern_fail(params->label, WEIR_ERROR_INVALID,
                              "give them the same offset and bytes per element, or disjoint ranges",
                              "weir_chunks_create: %s overlap without being the same", names);
}

static weir_status check_places(const struct weir_chunks_params *params)
{
    bool up = weir__chunks_has(params, WEIR__CHUNKS_UPLOAD);
    bool down = weir__chunks_has(params, WEIR__CHUNKS_DOWNLOAD);
    weir_status status = WEIR_OK;

    if (up)
        status = check_range(params, "src", &params->src, params->in_bytes, WEIR_PLACE_HOST);
    if (up && status == WEIR_OK)
        status = check_range(params, "in", &params->in, params->in_bytes, WEIR_PLACE_DEVICE);
    if (down && status == WEIR_OK)
        status = check_range(params, "out", &params->out, params->out_bytes, WEIR_PLACE_DEVICE);
    if (down && status == WEIR_OK)
        status = check_range(params, "dst", &params->dst, params->out_bytes, WEIR_PLACE_HOST);
    if (up && down && status == WEIR_OK)
        status = check_pair(params, "params->in and params->out", &params->in, &params->out);
    if (up && down && status == WEIR_OK)
        status = check_pair(params, "params->src and params->dst", &params->src, &params->dst);
    return status;
}

static weir_status check_choices(const struct weir_chunks_params *params)
{
    if ((unsigned)params->order > WEIR_CHUNKS_INTERLEAVED ||
        (unsigned)params->layout > WEIR_CHUNKS_BY_CHUNK)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID,
                                  "use one of enum weir_chunks_order and of enum "
                                  "weir_chunks_layout",
                                  "weir_chunks_create: order %d in layout %d does not exist",
                                  (int)params->order, (int)params->layout);
    if (params->chunk_count > WEIR_CHUNKS_MAX || params->queue_count > WEIR_CHUNKS_QUEUES_MAX)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID, "0 lets the library choose",
                                  "weir_chunks_create: %" PRIu32 " chunks in %" PRIu32
                                  " queues; the limits are %d and %d",
                                  params->chunk_count, params->queue_count, WEIR_CHUNKS_MAX,
                                  WEIR_CHUNKS_QUEUES_MAX);
    if (params->layout == WEIR_CHUNKS_BY_ENGINE && params->queue_count > 0)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID,
                                  "leave queue_count 0, or use WEIR_CHUNKS_BY_CHUNK",
                                  "weir_chunks_create: %" PRIu32 " queues by engine; their number "
                                  "follows from the job",
                                  params->queue_count);
    return WEIR_OK;
}

static weir_status check(const struct weir_chunks_params *params)
{
    if (!params->device || !params->kernel)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID, "set it",
                                  "weir_chunks_create: params->%s is NULL",
                                  params->device ? "kernel" : "device");
    if (params->in_bytes == 0 && params->out_bytes == 0)
        return weir__pattern_fail(params->label, WEIR_ERROR_INVALID,
                                  "set in_bytes, out_bytes or both",
                                  "weir_chunks_create: in_bytes and out_bytes are both 0");

    weir_status status = check_choices(params);
    return status == WEIR_OK ? check_places(params) : status;
}

// --- sizes ---

static size_t greatest_common_divisor(size_t a, size_t b)
{
    while (b > 0) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// The least common multiple, or 0 if it does not fit. Neither is 0.
static size_t common_multiple(size_t a, size_t b)
{
    size_t factor = b / greatest_common_divisor(a, b);
    return factor > SIZE_MAX / a ? 0 : a * factor;
}

// The least number of elements whose bytes are a multiple of `alignment`.
static size_t elements_aligned(size_t bytes, size_t alignment)
{
    return bytes > 0 ? alignment / greatest_common_divisor(bytes, alignment) : 1;
}

static size_t alignment_of(const struct weir_chunks_params *params)
{
    size_t alignment = weir_device_limits(params->device)->argument_alignment_bytes;
    return alignment > 0 ? alignment : 1;
}

// The elements of a unit; 0 if the number does not fit.
static size_t choose_unit(const struct weir_chunks_params *params)
{
    size_t alignment = alignment_of(params);
    size_t unit = common_multiple(elements_aligned(params->in_bytes, alignment),
                                  elements_aligned(params->out_bytes, alignment));
    return unit > 0 ? common_multiple(unit, params->granularity > 0 ? params->granularity : 1) : 0;
}

static weir_status refuse_granularity(const struct weir_chunks_params *params)
{
    return weir__pattern_fail(params->label, WEIR_ERROR_INVALID, "use a smaller granularity",
                              "weir_chunks_create: no multiple of the granularity, %zu, that is "
                              "aligned to %zu bytes can be counted",
                              params->granularity, alignment_of(params));
}

// --- queues ---

static bool chosen_for_cores(const struct weir_chunks_params *params)
{
    return params->layout == WEIR_CHUNKS_LAYOUT_AUTO && params->queue_count == 0 &&
           on_cores(params);
}

static weir_chunks_order choose_order(const struct weir_chunks_params *params,
                                      const struct weir_chunks_plan *plan)
{
    if (params->order != WEIR_CHUNKS_ORDER_AUTO)
        return params->order;
    return plan->queue_count == 1 || chosen_for_cores(params) ? WEIR_CHUNKS_DEPTH_FIRST
                                                              : WEIR_CHUNKS_INTERLEAVED;
}

static weir_chunks_layout choose_layout(const struct weir_chunks_params *params)
{
    if (params->layout != WEIR_CHUNKS_LAYOUT_AUTO)
        return params->layout;
    return params->queue_count > 0 || on_cores(params) ? WEIR_CHUNKS_BY_CHUNK
                                                       : WEIR_CHUNKS_BY_ENGINE;
}

static uint32_t choose_queue_count(const struct weir_chunks_params *params,
                                   const struct weir_chunks_plan *plan)
{
    const uint32_t chunks = plan->chunk_count > 0 ? plan->chunk_count : 1;
    uint32_t count = 0;

    if (plan->layout == WEIR_CHUNKS_BY_ENGINE) {
        for (int stage = 0; stage < WEIR__CHUNKS_STAGES; stage++)
            count += weir__chunks_has(params, (enum weir__chunks_stage)stage);
        return count;
    }
    count = params->queue_count > 0 ? params->queue_count : CHANNELS;
    if (chosen_for_cores(params))
        count = QUEUES_ON_CORES;
    return count < chunks ? count : chunks;
}

weir_status weir__chunks_plan(const struct weir_chunks_params *params,
                              struct weir_chunks_plan *out_plan, size_t *out_units)
{
    weir_status status = check(params);
    if (status != WEIR_OK)
        return status;
    out_plan->unit = choose_unit(params);
    if (out_plan->unit == 0)
        return refuse_granularity(params);

    *out_units = params->element_count / out_plan->unit;
    *out_units += params->element_count % out_plan->unit > 0;
    out_plan->layout = choose_layout(params);
    out_plan->chunk_count = chunks_count(params, out_plan, *out_units);
    out_plan->queue_count = choose_queue_count(params, out_plan);
    out_plan->order = choose_order(params, out_plan);
    return WEIR_OK;
}

// --- the order ---

uint32_t weir__chunks_queue(const weir_chunks *chunks, enum weir__chunks_stage stage,
                            uint32_t chunk)
{
    if (chunks->plan.layout == WEIR_CHUNKS_BY_ENGINE)
        return chunks->queue_of[stage];
    return chunk % chunks->plan.queue_count;
}

static void add_step(weir_chunks *chunks, enum weir__chunks_stage stage, uint32_t chunk)
{
    if (chunk >= chunks->plan.chunk_count || !weir__chunks_has(&chunks->params, stage))
        return;
    chunks->steps[chunks->step_count++] = (struct weir__chunks_step){stage, chunk, true};
}

static void mark_flushes(weir_chunks *chunks)
{
    for (uint32_t i = 0; i + 1 < chunks->step_count; i++) {
        struct weir__chunks_step *step = &chunks->steps[i];
        const struct weir__chunks_step *next = step + 1;
        step->flush = weir__chunks_queue(chunks, step->stage, step->chunk) !=
                      weir__chunks_queue(chunks, next->stage, next->chunk);
    }
}

void weir__chunks_write_steps(weir_chunks *chunks)
{
    uint32_t count = chunks->plan.chunk_count;

    if (chunks->plan.order == WEIR_CHUNKS_BREADTH_FIRST) {
        for (int stage = 0; stage < WEIR__CHUNKS_STAGES; stage++)
            for (uint32_t i = 0; i < count; i++)
                add_step(chunks, (enum weir__chunks_stage)stage, i);
        mark_flushes(chunks);
        return;
    }
    bool ahead = chunks->plan.order == WEIR_CHUNKS_INTERLEAVED;
    if (ahead)
        add_step(chunks, WEIR__CHUNKS_UPLOAD, 0);
    for (uint32_t i = 0; i < count; i++) {
        if (!ahead)
            add_step(chunks, WEIR__CHUNKS_UPLOAD, i);
        add_step(chunks, WEIR__CHUNKS_COMPUTE, i);
        if (ahead)
            add_step(chunks, WEIR__CHUNKS_UPLOAD, i + 1);
        add_step(chunks, WEIR__CHUNKS_DOWNLOAD, i);
    }
    mark_flushes(chunks);
}
