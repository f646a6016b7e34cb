// A job in chunks: its plan, its life and its runs. All sizes are planned at creation, so a run only submits.
//
// Waits between queues, BY_ENGINE. Within a run each stage of a chunk waits for the
// stage before it. Between runs a stage waits until the previous run no longer needs
// the bytes that it overwrites: an upload waits for that chunk's kernel, a kernel for
// that chunk's download. If a download writes the bytes that the next upload reads or
// overwrites (in place, or src and dst the same), the upload waits for the download,
// and so does the kernel after it. The queue of a stage orders the stage's own runs.
//
// BY_CHUNK needs only the waits of the final join: a chunk's operations are in the same
// queue in every run.
#include "patterns/chunks.h"

#include <inttypes.h>

#include "base/sized.h"
#include "base/text.h"
#include "patterns/shared.h"

enum stage {
    STAGE_UPLOAD,
    STAGE_COMPUTE,
    STAGE_DOWNLOAD,
    STAGES,
};

struct weir_chunks {
    struct weir_chunks_params params; // `label` is the copy
    char label[WEIR__PATTERN_LABEL_SIZE];
    char summary[WEIR__PATTERN_LABEL_SIZE]; // of the plan, for traces
    struct weir_chunks_plan plan;
    size_t cuts[WEIR_CHUNKS_MAX]; // the element at which each chunk ends
    bool in_place;                // a download writes bytes of the next run's upload

    // The ends of each chunk's stages, in the latest run that reached them. BY_ENGINE
    // only; a zeroed event was not recorded.
    struct weir_event ends[WEIR_CHUNKS_MAX][STAGES];
    weir_queue *latest; // that this run submitted to
    // BY_ENGINE: those of the stages that the job has, in order.
    weir_queue *queues[WEIR_CHUNKS_QUEUES_MAX];
    uint32_t queue_of[STAGES]; // BY_ENGINE

    bool broken; // runs are refused with this:
    struct weir_error cause;
};

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

// The same chunks in the other order.
static void turn_round(size_t *cuts, uint32_t count, size_t units)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        size_t *early = &cuts[i], *late = &cuts[count - 2 - i];
        const size_t other = units - *late;
        *late = units - *early;
        *early = other;
    }
}

// Cuts into chunks that grow, or shrink if more is uploaded than downloaded; in units. Returns their count.
static uint32_t grow(const struct weir_chunks_params *params, size_t unit, size_t units,
                     size_t *cuts)
{
    // The only unit may be larger than what can be counted in bytes.
    if (units <= 1) {
        cuts[0] = units;
        return (uint32_t)units;
    }
    const size_t unit_bytes = unit * widest(params);
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
        cuts[count++] = end;
        size += size / GROWTH;
    }
    if (params->in_bytes > params->out_bytes)
        turn_round(cuts, count, units);
    return count;
}

// If the device has no copy engines and shares the host's memory, the cores that compute
// also copy.
static bool on_cores(const struct weir_chunks_params *params)
{
    const struct weir_limits *limits = weir_device_limits(params->device);
    return limits->unified_memory && limits->copy_engines_to_device == 0 &&
           limits->copy_engines_to_host == 0;
}

// Cuts into chunks of the same size, but for a unit; in units. Returns their count.
static uint32_t cut_evenly(const struct weir_chunks_params *params, size_t units, size_t *cuts)
{
    const size_t bytes = params->element_count * widest(params);
    uint32_t count = params->chunk_count;

    if (count == 0)
        count = on_cores(params) ? cached_count(bytes) : balanced_count(bytes, CHOSEN_CHUNKS_MAX);
    if (count > units)
        count = (uint32_t)units;
    for (uint32_t i = 0; i < count; i++) {
        const size_t more = units % count; // chunks with one unit more
        cuts[i] = (i + 1) * (units / count) + (i + 1 < more ? i + 1 : more);
    }
    return count;
}

// Cuts the job, by the layout and unit of its plan.
static void cut(weir_chunks *chunks)
{
    const struct weir_chunks_params *params = &chunks->params;
    struct weir_chunks_plan *plan = &chunks->plan;
    const size_t elements = params->element_count;
    const size_t units = elements / plan->unit + (elements % plan->unit > 0);
    const bool grows =
        params->chunk_count == 0 && plan->layout == WEIR_CHUNKS_BY_ENGINE && !on_cores(params);
    size_t first = 0;

    plan->chunk_count = grows ? grow(params, plan->unit, units, chunks->cuts)
                              : cut_evenly(params, units, chunks->cuts);
    for (uint32_t i = 0; i < plan->chunk_count; i++) {
        // The last chunk's units may extend past the elements, and wrap.
        const size_t end = i + 1 < plan->chunk_count ? chunks->cuts[i] * plan->unit : elements;
        if (i == 0)
            plan->first_count = end;
        if (end - first > plan->most_count)
            plan->most_count = end - first;
        chunks->cuts[i] = first = end;
    }
}

static struct weir_chunk chunk_at(const weir_chunks *chunks, uint32_t index)
{
    const struct weir_chunks_params *params = &chunks->params;
    const size_t first = index > 0 ? chunks->cuts[index - 1] : 0;
    const size_t count = chunks->cuts[index] - first;
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

// The plan of a job: the checks of its params, and its queues.

// The number of channels to which a CUDA context maps its streams by default.
#define CHANNELS 8

// Where cores copy, each copy by one of them: while one queue copies, the other one has work for the rest.
#define QUEUES_ON_CORES 2

static bool has_stage(const struct weir_chunks_params *params, enum stage stage)
{
    if (stage == STAGE_COMPUTE)
        return true;
    return (stage == STAGE_UPLOAD ? params->in_bytes : params->out_bytes) > 0;
}

// --- checks ---

static weir_status check_range(const struct weir_chunks_params *params, const char *name,
                               const struct weir_chunks_place *place, size_t bytes,
                               weir_placement placement)
{
    if (!place->buffer)
        return weir__pattern_refuse(params->label, "set it",
                                    "weir_chunks_create: params->%s has no buffer", name);
    if (weir_buffer_placement(place->buffer) != placement)
        return weir__pattern_refuse(params->label,
                                    "src and dst are HOST buffers, in and out DEVICE buffers",
                                    "weir_chunks_create: params->%s is no %s buffer", name,
                                    placement == WEIR_PLACE_HOST ? "HOST" : "DEVICE");

    size_t size = weir_buffer_size(place->buffer);
    if (place->offset > size || params->element_count > (size - place->offset) / bytes)
        return weir__pattern_refuse(params->label, "use a larger buffer, or fewer elements",
                                    "weir_chunks_create: %zu elements of %zu bytes from offset %zu "
                                    "do not fit into params->%s of %zu bytes",
                                    params->element_count, bytes, place->offset, name, size);

    size_t alignment = weir_device_limits(params->device)->argument_alignment_bytes;
    if (placement == WEIR_PLACE_DEVICE && alignment > 0 && place->offset % alignment != 0)
        return weir__pattern_refuse(params->label, NULL,
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
    return weir__pattern_refuse(
        params->label, "give them the same offset and bytes per element, or disjoint ranges",
        "weir_chunks_create: %s overlap without being the same", names);
}

static weir_status check_places(const struct weir_chunks_params *params)
{
    bool up = has_stage(params, STAGE_UPLOAD);
    bool down = has_stage(params, STAGE_DOWNLOAD);

    if (up)
        TRY(check_range(params, "src", &params->src, params->in_bytes, WEIR_PLACE_HOST));
    if (up)
        TRY(check_range(params, "in", &params->in, params->in_bytes, WEIR_PLACE_DEVICE));
    if (down)
        TRY(check_range(params, "out", &params->out, params->out_bytes, WEIR_PLACE_DEVICE));
    if (down)
        TRY(check_range(params, "dst", &params->dst, params->out_bytes, WEIR_PLACE_HOST));
    if (up && down)
        TRY(check_pair(params, "params->in and params->out", &params->in, &params->out));
    if (up && down)
        TRY(check_pair(params, "params->src and params->dst", &params->src, &params->dst));
    return WEIR_OK;
}

static weir_status check_choices(const struct weir_chunks_params *params)
{
    if ((unsigned)params->order > WEIR_CHUNKS_INTERLEAVED ||
        (unsigned)params->layout > WEIR_CHUNKS_BY_CHUNK)
        return weir__pattern_refuse(
            params->label, "use one of enum weir_chunks_order and of enum weir_chunks_layout",
            "weir_chunks_create: order %d in layout %d does not exist", (int)params->order,
            (int)params->layout);
    if (params->chunk_count > WEIR_CHUNKS_MAX || params->queue_count > WEIR_CHUNKS_QUEUES_MAX)
        return weir__pattern_refuse(params->label, "0 lets the library choose",
                                    "weir_chunks_create: %" PRIu32 " chunks in %" PRIu32
                                    " queues; the limits are %d and %d",
                                    params->chunk_count, params->queue_count, WEIR_CHUNKS_MAX,
                                    WEIR_CHUNKS_QUEUES_MAX);
    if (params->layout == WEIR_CHUNKS_BY_ENGINE && params->queue_count > 0)
        return weir__pattern_refuse(params->label,
                                    "leave queue_count 0, or use WEIR_CHUNKS_BY_CHUNK",
                                    "weir_chunks_create: %" PRIu32
                                    " queues by engine; their number follows from the job",
                                    params->queue_count);
    return WEIR_OK;
}

static weir_status check(const struct weir_chunks_params *params)
{
    if (!params->device || !params->kernel)
        return weir__pattern_refuse(params->label, "set it",
                                    "weir_chunks_create: params->%s is NULL",
                                    params->device ? "kernel" : "device");
    if (params->in_bytes == 0 && params->out_bytes == 0)
        return weir__pattern_refuse(params->label, "set in_bytes, out_bytes or both",
                                    "weir_chunks_create: in_bytes and out_bytes are both 0");

    TRY(check_choices(params));
    return check_places(params);
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
        for (int stage = 0; stage < STAGES; stage++)
            count += has_stage(params, (enum stage)stage);
        return count;
    }
    count = params->queue_count > 0 ? params->queue_count : CHANNELS;
    if (chosen_for_cores(params))
        count = QUEUES_ON_CORES;
    return count < chunks ? count : chunks;
}

static weir_status make_plan(weir_chunks *chunks)
{
    const struct weir_chunks_params *params = &chunks->params;
    struct weir_chunks_plan *plan = &chunks->plan;
    TRY(check(params));
    const size_t argument = weir_device_limits(params->device)->argument_alignment_bytes;
    const size_t alignment = argument > 0 ? argument : 1;
    plan->unit = common_multiple(elements_aligned(params->in_bytes, alignment),
                                 elements_aligned(params->out_bytes, alignment));
    if (plan->unit > 0 && params->granularity > 0)
        plan->unit = common_multiple(plan->unit, params->granularity);
    if (plan->unit == 0)
        return weir__pattern_refuse(params->label, "use a smaller granularity",
                                    "weir_chunks_create: no multiple of the granularity, %zu, that "
                                    "is aligned to %zu bytes can be counted",
                                    params->granularity, alignment);
    plan->layout = choose_layout(params);
    cut(chunks);
    plan->queue_count = choose_queue_count(params, plan);
    plan->order = choose_order(params, plan);
    chunks->in_place =
        params->in_bytes > 0 && params->out_bytes > 0 &&
        (same_place(&params->in, &params->out) || same_place(&params->src, &params->dst));
    return WEIR_OK;
}

static const char *const stage_names[] = {"upload", "compute", "download"};

// --- creation and destruction ---

static weir_status make_queues(weir_chunks *chunks, struct weir__place place)
{
    const struct weir_chunks_params *params = &chunks->params;
    bool by_engine = chunks->plan.layout == WEIR_CHUNKS_BY_ENGINE;
    uint32_t made = 0;

    for (int i = 0; by_engine && i < STAGES; i++) {
        if (!has_stage(params, (enum stage)i))
            continue;
        chunks->queue_of[i] = made;
        TRY(weir__pattern_queue(params->device, params->priority, false, place,
                                &chunks->queues[made++], "%s/%s", chunks->label, stage_names[i]));
    }
    for (; made < chunks->plan.queue_count; made++)
        TRY(weir__pattern_queue(params->device, params->priority, false, place,
                                &chunks->queues[made], "%s/%u", chunks->label, (unsigned)made));
    return WEIR_OK;
}

static weir_status fill_chunks(weir_chunks *chunks, const struct weir_chunks_params *params,
                               struct weir__place place)
{
    TRY(weir__pattern_params("weir_chunks_create", "weir_chunks_params", params, &chunks->params,
                             sizeof chunks->params));
    chunks->params.label = weir__pattern_keep(chunks->label, chunks->params.label, "chunks");
    TRY(make_plan(chunks));
    snprintf(chunks->summary, sizeof chunks->summary, "%u chunks of at most %s",
             (unsigned)chunks->plan.chunk_count,
             weir_text_bytes(chunks->plan.most_count * widest(&chunks->params)).text);
    return make_queues(chunks, place);
}

weir_status weir_chunks_create_at(const struct weir_chunks_params *params, weir_chunks **out_chunks,
                                  const char *file, int line)
{
    weir_chunks *chunks = *out_chunks = calloc(1, sizeof *chunks);
    const weir_status status = chunks
                                   ? fill_chunks(chunks, params, (struct weir__place){file, line})
                                   : weir__pattern_no_memory(NULL, "a job in chunks");
    if (status != WEIR_OK)
        weir_chunks_destroy(out_chunks);
    return weir__pattern_placed(status, file, line);
}

void weir_chunks_destroy(weir_chunks **chunks)
{
    if (!chunks || !*chunks)
        return;
    weir_chunks *gone = *chunks;

    for (uint32_t i = 0; i < gone->plan.queue_count; i++)
        weir_queue_destroy(&gone->queues[i]);
    free(gone);
    *chunks = NULL;
}

// --- running ---

static weir_status wait_if_recorded(weir_queue *queue, struct weir_event event)
{
    return event.sequence > 0 ? weir_queue_wait(queue, event) : WEIR_OK;
}

// BY_ENGINE. For stages after this one, `ends` still holds events of an earlier run.
static weir_status wait_for_others(const weir_chunks *chunks, enum stage stage,
                                   const struct weir_event *ends, weir_queue *queue)
{
    if (stage == STAGE_DOWNLOAD)
        return wait_if_recorded(queue, ends[STAGE_COMPUTE]);
    if (stage == STAGE_UPLOAD)
        return wait_if_recorded(queue, ends[chunks->in_place ? STAGE_DOWNLOAD : STAGE_COMPUTE]);

    if (!chunks->in_place)
        TRY(wait_if_recorded(queue, ends[STAGE_DOWNLOAD]));
    return wait_if_recorded(queue, ends[STAGE_UPLOAD]);
}

static weir_status submit_work(const weir_chunks *chunks, enum stage stage, weir_queue *queue,
                               const struct weir_chunk *chunk)
{
    const struct weir_chunks_params *params = &chunks->params;
    size_t src_offset = params->src.offset + chunk->first * params->in_bytes;
    size_t dst_offset = params->dst.offset + chunk->first * params->out_bytes;

    if (stage == STAGE_UPLOAD)
        return weir_queue_copy(queue, params->in.buffer, chunk->in_offset, params->src.buffer,
                               src_offset, chunk->in_size);
    if (stage == STAGE_DOWNLOAD)
        return weir_queue_copy(queue, params->dst.buffer, dst_offset, params->out.buffer,
                               chunk->out_offset, chunk->out_size);
    weir__pattern_forget();
    const weir_status status = params->kernel(params->user, queue, chunk);
    if (status == WEIR_OK)
        return WEIR_OK;
    return weir__pattern_callback_failed(chunks->label, "the kernel callback", status);
}

static weir_status submit_to(weir_chunks *chunks, weir_queue *queue, enum stage stage,
                             uint32_t index)
{
    const bool by_engine = chunks->plan.layout == WEIR_CHUNKS_BY_ENGINE;
    const struct weir_chunk chunk = chunk_at(chunks, index);
    struct weir_event *ends = chunks->ends[index];
    if (by_engine)
        TRY(wait_for_others(chunks, stage, ends, queue));
    TRY(submit_work(chunks, stage, queue, &chunk));
    return by_engine ? weir_queue_record(queue, &ends[stage]) : WEIR_OK;
}

// One operation, of a stage and a chunk that there may be.
static weir_status submit(weir_chunks *chunks, enum stage stage, uint32_t chunk)
{
    weir_runtime *runtime = weir_device_runtime(chunks->params.device);
    if (chunk >= chunks->plan.chunk_count || !has_stage(&chunks->params, stage))
        return WEIR_OK;
    weir_queue *queue = chunks->queues[chunks->plan.layout == WEIR_CHUNKS_BY_ENGINE
                                           ? chunks->queue_of[stage]
                                           : chunk % chunks->plan.queue_count];
    // Work must not stay in a driver's buffer until some later wait happens to flush it.
    if (chunks->latest && chunks->latest != queue)
        TRY(weir_queue_flush(chunks->latest));
    chunks->latest = queue;
    weir_region_push(runtime, "chunk", chunk);
    const weir_status status = submit_to(chunks, queue, stage, chunk);
    weir_region_pop(runtime);
    return status;
}

static weir_status submit_all(weir_chunks *chunks)
{
    const uint32_t count = chunks->plan.chunk_count;
    const bool breadth = chunks->plan.order == WEIR_CHUNKS_BREADTH_FIRST;
    const bool ahead = chunks->plan.order == WEIR_CHUNKS_INTERLEAVED;

    chunks->latest = NULL;
    for (int stage = 0; breadth && stage < STAGES; stage++)
        for (uint32_t i = 0; i < count; i++)
            TRY(submit(chunks, (enum stage)stage, i));
    for (uint32_t i = 0; !breadth && i < count; i++) {
        if (!ahead || i == 0)
            TRY(submit(chunks, STAGE_UPLOAD, i));
        TRY(submit(chunks, STAGE_COMPUTE, i));
        if (ahead)
            TRY(submit(chunks, STAGE_UPLOAD, i + 1));
        TRY(submit(chunks, STAGE_DOWNLOAD, i));
    }
    return WEIR_OK;
}

// BY_ENGINE, all work of the job comes after its first queue, so only that queue waits
// for `after`; BY_CHUNK, every queue does.
static weir_status wait_before(weir_chunks *chunks, const struct weir_event *after, size_t count)
{
    uint32_t heads = chunks->plan.layout == WEIR_CHUNKS_BY_ENGINE ? 1 : chunks->plan.queue_count;

    for (uint32_t q = 0; q < heads; q++)
        for (size_t i = 0; i < count; i++)
            TRY(weir_queue_wait(chunks->queues[q], after[i]));
    return WEIR_OK;
}

// Records the event at which all queues have joined, in the last chunk's queue: the
// join delays that queue's next work least, since it comes last in a run.
static weir_status join(weir_chunks *chunks, struct weir_event *out_done)
{
    bool by_engine = chunks->plan.layout == WEIR_CHUNKS_BY_ENGINE;
    uint32_t count = chunks->plan.queue_count;
    uint32_t chunk_count = chunks->plan.chunk_count;
    uint32_t last = chunk_count == 0 ? 0 : by_engine ? count - 1 : (chunk_count - 1) % count;

    for (uint32_t i = 0; !by_engine && i < count; i++) {
        struct weir_event end;
        if (i == last)
            continue;
        TRY(weir_queue_record(chunks->queues[i], &end));
        TRY(weir_queue_wait(chunks->queues[last], end));
    }
    TRY(weir_queue_record(chunks->queues[last], out_done));
    return weir_queue_flush(chunks->queues[last]);
}

static weir_status check_run(const weir_chunks *chunks, const struct weir_event *after,
                             size_t count)
{
    if (!chunks)
        return weir__pattern_refuse_null("weir_chunks_run", "chunks");
    for (size_t i = 0; i < count; i++) {
        if (!after || after[i].sequence == 0)
            return weir__pattern_refuse(chunks->label,
                                        "record first: weir_queue_record() returns the event",
                                        "weir_chunks_run: event %zu of %zu in `after` is %s", i,
                                        count, after ? "zero" : "missing");
    }
    return chunks->broken ? weir_error_set(&chunks->cause) : WEIR_OK;
}

weir_status weir_chunks_run(weir_chunks *chunks, const struct weir_event *after, size_t count,
                            struct weir_event *out_done)
{
    *out_done = (struct weir_event){0, 0};

    TRY(check_run(chunks, after, count));
    weir_runtime *runtime = weir_device_runtime(chunks->params.device);
    weir_region_push(runtime, chunks->summary, WEIR_NO_NUMBER);
    weir_status status = wait_before(chunks, after, count);
    weir_region_pop(runtime);
    if (status != WEIR_OK)
        return status;

    status = submit_all(chunks);
    if (status == WEIR_OK)
        status = join(chunks, out_done);
    if (status != WEIR_OK) {
        // Half of the run was submitted; another run may begin only after that half has
        // finished.
        chunks->broken = true;
        chunks->cause = *weir_last_error();
        *out_done = (struct weir_event){0, 0};
    }
    return status;
}

weir_status weir_chunks_recover(weir_chunks *chunks)
{
    struct weir__pattern_first first = {.status = WEIR_OK};
    if (!chunks)
        return weir__pattern_refuse_null("weir_chunks_recover", "chunks");
    // A queue fails only when it reaches its wait for the failed event. So all queues
    // are synced, in the order of the stages, before any is recovered.
    for (uint32_t i = 0; i < chunks->plan.queue_count; i++)
        WEIR_IGNORE(weir_queue_sync(chunks->queues[i], WEIR_FOREVER));
    for (uint32_t i = 0; i < chunks->plan.queue_count; i++)
        weir__pattern_note(&first, weir_queue_recover(chunks->queues[i]));
    if (first.status < 0)
        return weir__pattern_first(&first);
    // Events recorded before the failure was cleared would keep reporting it.
    memset(chunks->ends, 0, sizeof chunks->ends);
    chunks->broken = false;
    return WEIR_OK;
}

void weir_chunks_get_plan_sized(const weir_chunks *chunks, struct weir_chunks_plan *out_plan,
                                size_t size)
{
    weir_sized_write(out_plan, size, &chunks->plan, sizeof chunks->plan);
}

weir_status weir_chunks_get_chunk(const weir_chunks *chunks, uint32_t index,
                                  struct weir_chunk *out_chunk)
{
    memset(out_chunk, 0, sizeof *out_chunk);
    if (index >= chunks->plan.chunk_count)
        return weir__pattern_refuse(chunks->label, NULL,
                                    "weir_chunks_get_chunk: there is no chunk %u, only %u",
                                    (unsigned)index, (unsigned)chunks->plan.chunk_count);
    *out_chunk = chunk_at(chunks, index);
    return WEIR_OK;
}
