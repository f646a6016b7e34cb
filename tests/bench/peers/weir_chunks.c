// The chunk job with patterns/chunks: as `auto` does it, and in the forms that the raw
// peers have too.
#include "tests/bench/peers/chunk_job.h"

#include "kernels/conformance/conformance.h"
#include "patterns/chunks.h"
#include "tests/bench/peers/weir.h"

struct form {
    const char *name;
    weir_chunks_order order;
    weir_chunks_layout layout;
    uint32_t queues;
    uint32_t chunks;
};

static const struct form forms[] = {
    {"auto", WEIR_CHUNKS_ORDER_AUTO, WEIR_CHUNKS_LAYOUT_AUTO, 0, 0},
    {"one_queue", WEIR_CHUNKS_DEPTH_FIRST, WEIR_CHUNKS_BY_CHUNK, 1, 1},
    {"depth_first_8", WEIR_CHUNKS_DEPTH_FIRST, WEIR_CHUNKS_BY_CHUNK, 8, 8},
    {"depth_first_16", WEIR_CHUNKS_DEPTH_FIRST, WEIR_CHUNKS_BY_CHUNK, 16, 16},
    {"interleaved_8_64_chunks", WEIR_CHUNKS_INTERLEAVED, WEIR_CHUNKS_BY_CHUNK, 8, 64},
    {"three_queues_64_chunks", WEIR_CHUNKS_INTERLEAVED, WEIR_CHUNKS_BY_ENGINE, 0, 64},
};

enum {
    FORMS = sizeof forms / sizeof *forms
};

struct job {
    uint64_t bytes;
    size_t size;
    float factor;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *up, *down;
    weir_program *program;
    weir_kernel *scale;
    weir_buffer *src, *in, *out, *dst;
};

static weir_status multiply(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct job *job = user;
    const struct weir_extent grid =
        weir_dim((uint32_t)((chunk->count + CHUNK_BLOCK - 1) / CHUNK_BLOCK), 1, 1);
    return weir_queue_launch(queue, job->scale, grid, weir_dim(CHUNK_BLOCK, 1, 1),
                             weir_in(job->in, chunk->in_offset, chunk->in_size),
                             weir_out(job->out, chunk->out_offset, chunk->out_size), job->factor,
                             (uint32_t)chunk->count);
}

static bool make_chunks(struct job *job, const struct form *form, weir_chunks **out_chunks)
{
    const struct weir_chunks_params params = {
        .struct_size = sizeof params,
        .device = job->device,
        .label = form->name,
        .element_count = job->size / sizeof(float),
        .in_bytes = sizeof(float),
        .out_bytes = sizeof(float),
        .granularity = CHUNK_BLOCK,
        .src = {job->src, 0},
        .in = {job->in, 0},
        .out = {job->out, 0},
        .dst = {job->dst, 0},
        .kernel = multiply,
        .user = job,
        .order = form->order,
        .layout = form->layout,
        .queue_count = form->queues,
        .chunk_count = form->chunks,
    };
    return weir_peer_fine(weir_chunks_create(&params, out_chunks));
}

static bool run(weir_chunks *chunks, double *out_ms)
{
    struct weir_event done;
    const double began = peer_now_ms();
    const bool fine = weir_peer_fine(weir_chunks_run(chunks, NULL, 0, &done)) &&
                      weir_peer_fine(weir_event_sync(done, WEIR_FOREVER));
    *out_ms = peer_now_ms() - began;
    return fine;
}

static bool spoil(struct job *job)
{
    static const uint32_t pattern = 0xffffffffu;
    return weir_peer_fine(
               weir_queue_fill(job->up, job->in, 0, job->size, &pattern, sizeof pattern)) &&
           weir_peer_fine(
               weir_queue_fill(job->up, job->out, 0, job->size, &pattern, sizeof pattern)) &&
           weir_peer_fine(weir_queue_sync(job->up, WEIR_FOREVER));
}

static bool check_form(struct job *job, const struct form *form, float factor)
{
    weir_chunks *chunks;
    double ms;
    job->factor = factor;
    if (!spoil(job) || !make_chunks(job, form, &chunks))
        return false;
    if (form == &forms[0]) {
        struct weir_chunks_plan plan;
        weir_chunks_get_plan(chunks, &plan);
        peer_fact("auto_chunks", plan.chunk_count);
        peer_fact("auto_queues", plan.queue_count);
    }
    const bool fine = run(chunks, &ms);
    weir_chunks_destroy(&chunks);
    const float *dst = fine ? weir_peer_map(job->dst, WEIR_ACCESS_READ) : NULL;
    if (!dst)
        return false;
    const size_t wrong = chunk_wrong(dst, job->size, factor);
    peer_checked(1);
    return weir_peer_unmap(job->dst, WEIR_ACCESS_READ) &&
           (!wrong || peer_fail("%s: %zu numbers are wrong", form->name, wrong));
}

static bool make_objects(struct job *job)
{
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .label = "peer",
                                                .bundle = &conformance_kernels};
    return weir_peer_queue(job->device, "up", &job->up) &&
           weir_peer_queue(job->device, "down", &job->down) &&
           weir_peer_fine(weir_program_create(job->device, &program, &job->program)) &&
           weir_peer_fine(weir_kernel_create(job->program, "scale", &job->scale)) &&
           weir_peer_buffer(job->device, "src", job->size, WEIR_PLACE_HOST, &job->src) &&
           weir_peer_buffer(job->device, "dst", job->size, WEIR_PLACE_HOST, &job->dst) &&
           weir_peer_buffer(job->device, "in", job->size, WEIR_PLACE_DEVICE, &job->in) &&
           weir_peer_buffer(job->device, "out", job->size, WEIR_PLACE_DEVICE, &job->out);
}

static bool open_job(void *user)
{
    struct job *job = user;
    job->size = chunk_size(job->bytes);
    if (!weir_peer_open(&job->runtime, &job->device) || !make_objects(job))
        return false;
    float *src = weir_peer_map(job->src, WEIR_ACCESS_WRITE);
    if (!src)
        return false;
    chunk_fill(src, job->size);
    bool fine = weir_peer_unmap(job->src, WEIR_ACCESS_WRITE);
    for (size_t i = 0; fine && i < FORMS; i++)
        fine = check_form(job, &forms[i], (float)(2 + i));
    peer_fact("bytes", (double)job->size);
    return fine;
}

// The bare copies of Weir, each in its queue.
static bool time_copies(struct job *job, const char *name, bool up, bool down)
{
    double ms = 0;
    for (int i = 0; i < 2; i++) {
        const double began = peer_now_ms();
        if ((up && (!weir_peer_fine(weir_queue_copy(job->up, job->in, 0, job->src, 0, job->size)) ||
                    !weir_peer_fine(weir_queue_flush(job->up)))) ||
            (down &&
             (!weir_peer_fine(weir_queue_copy(job->down, job->dst, 0, job->out, 0, job->size)) ||
              !weir_peer_fine(weir_queue_flush(job->down)))) ||
            !weir_peer_fine(weir_queue_sync(job->up, WEIR_FOREVER)) ||
            !weir_peer_fine(weir_queue_sync(job->down, WEIR_FOREVER)))
            return false;
        ms = peer_now_ms() - began;
    }
    peer_value(name, ms);
    return true;
}

static bool round_job(void *user)
{
    struct job *job = user;
    bool fine = time_copies(job, "both_ways", true, true);
    for (size_t i = 0; fine && i < FORMS; i++) {
        weir_chunks *chunks;
        double ms;
        if (!make_chunks(job, &forms[i], &chunks))
            return false;
        for (int k = 0; fine && k < 2; k++)
            fine = run(chunks, &ms);
        weir_chunks_destroy(&chunks);
        peer_value(forms[i].name, ms);
    }
    return fine;
}

static void close_job(void *user)
{
    struct job *job = user;
    weir_buffer_destroy(&job->src);
    weir_buffer_destroy(&job->in);
    weir_buffer_destroy(&job->out);
    weir_buffer_destroy(&job->dst);
    weir_kernel_destroy(&job->scale);
    weir_program_destroy(&job->program);
    weir_queue_destroy(&job->up);
    weir_queue_destroy(&job->down);
    weir_peer_close(&job->runtime, &job->device);
}

int main(int argc, char **argv)
{
    static struct job job;
    const struct peer peer = {
        .name = "weir_chunks",
        .about = "Copies, multiplies and copies back in chunks, with Weir's pattern.",
        .open = open_job,
        .round = round_job,
        .close = close_job,
    };
    return chunk_main(&peer, &job, &job.bytes, argc, argv);
}
