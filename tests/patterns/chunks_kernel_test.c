// `chunks` with real kernels, on a backend that runs them: scaled floats through
// separate buffers, and numbers that every run increments in place.
#include "kernels/conformance/conformance.h"
#include "patterns/chunks.h"
#include "tests/patterns/rig.h"

enum {
    COUNT = 100003,
    BLOCK = 64,
    RUNS = 5
};

static weir_program *program;
static weir_kernel *kernel;
static weir_buffer *host, *device_in, *device_out, *host_out;
static weir_chunks *chunks;

static struct weir_extent grid_for(const struct weir_chunk *chunk)
{
    return weir_dim((uint32_t)((chunk->count + BLOCK - 1) / BLOCK), 1, 1);
}

static weir_status launch_scale(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    return weir_queue_launch(queue, kernel, grid_for(chunk), weir_dim(BLOCK, 1, 1),
                             weir_in(device_in, chunk->in_offset, chunk->in_size),
                             weir_out(device_out, chunk->out_offset, chunk->out_size), 2.0f,
                             (uint32_t)chunk->count);
}

static weir_status launch_increment(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    return weir_queue_launch(queue, kernel, grid_for(chunk), weir_dim(BLOCK, 1, 1),
                             weir_inout(device_in, chunk->in_offset, chunk->in_size), 1u,
                             (uint32_t)chunk->count);
}

static void open_kernel(const char *name)
{
    ASSERT_OK(rig_open());
    ASSERT_OK(weir_program_create(rig.device,
                                  WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                  &program));
    ASSERT_OK(weir_kernel_create(program, name, &kernel));
    ASSERT_OK(rig_buffer(COUNT * 4, WEIR_PLACE_HOST, &host));
    ASSERT_OK(rig_buffer(COUNT * 4, WEIR_PLACE_HOST, &host_out));
    ASSERT_OK(rig_buffer(COUNT * 4, WEIR_PLACE_DEVICE, &device_in));
    ASSERT_OK(rig_buffer(COUNT * 4, WEIR_PLACE_DEVICE, &device_out));
}

static void close_kernel(void)
{
    weir_buffer_destroy(&host);
    weir_buffer_destroy(&host_out);
    weir_buffer_destroy(&device_in);
    weir_buffer_destroy(&device_out);
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    rig_close();
}

static struct weir_chunks_params params_for(uint32_t queues)
{
    return (struct weir_chunks_params){
        .struct_size = sizeof(struct weir_chunks_params),
        .device = rig.device,
        .element_count = COUNT,
        .in_bytes = 4,
        .out_bytes = 4,
        .src = {host, 0},
        .in = {device_in, 0},
        .out = {device_out, 0},
        .dst = {host_out, 0},
        .kernel = launch_scale,
        .granularity = BLOCK,
        .layout = queues == 0 ? WEIR_CHUNKS_BY_ENGINE : WEIR_CHUNKS_BY_CHUNK,
        .queue_count = queues,
        .chunk_count = 9,
    };
}

static void fill(float factor)
{
    void *pointer;
    ASSERT_OK(weir_host_begin(host, 0, COUNT * 4, WEIR_ACCESS_WRITE, &pointer));
    for (uint32_t i = 0; i < COUNT; i++)
        ((float *)pointer)[i] = factor * (float)i;
    ASSERT_OK(weir_host_end(host, 0, COUNT * 4, WEIR_ACCESS_WRITE));
}

static size_t count_wrong(float factor)
{
    size_t wrong = 0;
    void *pointer;
    if (weir_host_begin(host_out, 0, COUNT * 4, WEIR_ACCESS_READ, &pointer) != WEIR_OK)
        return COUNT;
    for (uint32_t i = 0; i < COUNT; i++)
        wrong += ((float *)pointer)[i] != factor * (float)i;
    WEIR_IGNORE(weir_host_end(host_out, 0, COUNT * 4, WEIR_ACCESS_READ));
    return wrong;
}

WEIR_TEST(ChunksKernel, Scales)
{
    struct weir_event done;

    open_kernel("scale");
    for (uint32_t queues = 0; queues <= 3; queues++) {
        const struct weir_chunks_params params = params_for(queues);
        ASSERT_OK(weir_chunks_create(&params, &chunks));
        fill((float)(queues + 1));
        ASSERT_OK(weir_chunks_run(chunks, NULL, 0, &done));
        ASSERT_OK(weir_event_sync(done, WEIR_FOREVER));
        EXPECT_UINT_EQ(count_wrong(2.0f * (float)(queues + 1)), 0);
        weir_chunks_destroy(&chunks);
    }
    close_kernel();
}

// One place on the device, one on the host: a run's input is the output of the run
// before, so an increment is lost if any two runs are out of order.
WEIR_TEST(ChunksKernel, RunsBuildOnEachOther)
{
    struct weir_event done;

    open_kernel("increment");
    for (uint32_t queues = 0; queues <= 3; queues++) {
        struct weir_chunks_params params = params_for(queues);
        params.out = params.in;
        params.dst = params.src;
        params.kernel = launch_increment;
        ASSERT_OK(weir_chunks_create(&params, &chunks));
        rig_write_words(host, 0, COUNT, 0);
        for (unsigned run = 0; run < RUNS; run++)
            ASSERT_OK(weir_chunks_run(chunks, NULL, 0, &done));
        ASSERT_OK(weir_event_sync(done, WEIR_FOREVER));
        EXPECT_UINT_EQ(rig_wrong_words(host, 0, COUNT, RUNS), 0);
        weir_chunks_destroy(&chunks);
    }
    close_kernel();
}
