// Doubles four million numbers on the device, in chunks: while one is computed, the
// next is uploaded and the previous one downloaded.
#include <stdio.h>

#include "patterns/chunks.h"

enum {
    COUNT = 4000000,
    BLOCK = 64
};

static const char source[] = "__kernel void twice(__global const float *in, __global float *out,\n"
                             "                    uint n)\n"
                             "{\n"
                             "    uint i = (uint)get_global_id(0);\n"
                             "    if (i < n)\n"
                             "        out[i] = 2.0f * in[i];\n"
                             "}\n";

struct job {
    weir_program *program;
    weir_kernel *twice;
    weir_buffer *numbers, *in, *out, *results;
};

static weir_status launch(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct job *job = user;
    struct weir_extent grid = weir_dim((uint32_t)((chunk->count + BLOCK - 1) / BLOCK), 1, 1);
    return weir_queue_launch(queue, job->twice, grid, weir_dim(BLOCK, 1, 1),
                             weir_in(job->in, chunk->in_offset, chunk->in_size),
                             weir_out(job->out, chunk->out_offset, chunk->out_size),
                             (uint32_t)chunk->count);
}

static weir_status buffer(weir_device *device, weir_placement placement, weir_buffer **out_buffer)
{
    const struct weir_buffer_params params = {
        .struct_size = sizeof params,
        .size = COUNT * sizeof(float),
        .placement = placement,
    };
    return weir_buffer_create(device, &params, out_buffer);
}

static weir_status make(weir_device *device, struct job *job)
{
    const struct weir_program_params params = {.struct_size = sizeof params, .source = source};
    weir_status status;
    if ((status = weir_program_create(device, &params, &job->program)) ||
        (status = weir_kernel_create(job->program, "twice", &job->twice)) ||
        (status = buffer(device, WEIR_PLACE_HOST, &job->numbers)) ||
        (status = buffer(device, WEIR_PLACE_DEVICE, &job->in)) ||
        (status = buffer(device, WEIR_PLACE_DEVICE, &job->out)) ||
        (status = buffer(device, WEIR_PLACE_HOST, &job->results)))
        return status;
    return WEIR_OK;
}

static weir_status fill(struct job *job)
{
    void *numbers;
    weir_status status =
        weir_host_begin(job->numbers, 0, COUNT * sizeof(float), WEIR_ACCESS_WRITE, &numbers);
    if (status != WEIR_OK)
        return status;
    for (int i = 0; i < COUNT; i++)
        ((float *)numbers)[i] = (float)i;
    return weir_host_end(job->numbers, 0, COUNT * sizeof(float), WEIR_ACCESS_WRITE);
}

static weir_status run(weir_device *device, struct job *job)
{
    const struct weir_chunks_params params = {
        .struct_size = sizeof params,
        .device = device,
        .label = "twice",
        .element_count = COUNT,
        .in_bytes = sizeof(float),
        .out_bytes = sizeof(float),
        .granularity = BLOCK,
        .src = {job->numbers, 0},
        .in = {job->in, 0},
        .out = {job->out, 0},
        .dst = {job->results, 0},
        .kernel = launch,
        .user = job,
    };
    struct weir_chunks_plan plan;
    struct weir_event done;
    weir_chunks *chunks;

    weir_status status = weir_chunks_create(&params, &chunks);
    if (status != WEIR_OK)
        return status;
    weir_chunks_get_plan(chunks, &plan);
    printf("%u chunks in %u queues\n", (unsigned)plan.chunk_count, (unsigned)plan.queue_count);
    status = weir_chunks_run(chunks, NULL, 0, &done);
    if (status == WEIR_OK)
        status = weir_event_sync(done, WEIR_FOREVER);
    weir_chunks_destroy(&chunks);
    return status;
}

static int count_right(struct job *job)
{
    void *results;
    int right = 0;
    if (weir_host_begin(job->results, 0, COUNT * sizeof(float), WEIR_ACCESS_READ, &results))
        return 0;
    for (int i = 0; i < COUNT; i++)
        right += ((float *)results)[i] == 2.0f * (float)i;
    WEIR_CHECK(weir_host_end(job->results, 0, COUNT * sizeof(float), WEIR_ACCESS_READ));
    return right;
}

int main(void)
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    struct job job = {0};
    int right = 0;

    if (weir_open(NULL, &runtime) || weir_device_open(runtime, NULL, &device) ||
        make(device, &job) || fill(&job) || run(device, &job))
        fprintf(stderr, "%s\n", weir_last_error_text());
    else
        right = count_right(&job);
    printf("%d of %d right\n", right, COUNT);
    weir_buffer_destroy(&job.numbers);
    weir_buffer_destroy(&job.in);
    weir_buffer_destroy(&job.out);
    weir_buffer_destroy(&job.results);
    weir_kernel_destroy(&job.twice);
    weir_program_destroy(&job.program);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return right == COUNT ? 0 : 1;
}
