// The plugin `trace` on a real chain: what was submitted is in the file, once, as it was.
// Run for each backend; the environment names it.
#define _DEFAULT_SOURCE // usleep

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/module/module.h>
#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "patterns/chunks.h"
#include "patterns/pipeline.h"
#include "report/trace.h"
#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)
#define ASSERT_OK(call) ASSERT_INT_EQ(call, WEIR_OK)

enum {
    BYTES = 1 << 18
};

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *up;
    weir_queue *down;
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *frame;  // HOST
    weir_buffer *memory; // DEVICE
};

static char folder[256];

static const char *in_folder(const char *name)
{
    static char paths[8][512];
    static size_t next;
    char *path = paths[next++ % 8];
    if (!folder[0]) {
        const char *base = getenv("TEST_TMPDIR");
        snprintf(folder, sizeof folder, "%s/weir_trace_XXXXXX", base ? base : "/tmp");
        if (!mkdtemp(folder))
            weir_test_fail(__FILE__, __LINE__, "no folder for files");
    }
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static weir_status open_with(const char *section, const char *plugins, weir_runtime **out_runtime)
{
    const char *base = getenv("WEIR_TEST_SECTION");
    char text[2048];
    snprintf(text, sizeof text, "%s\n[trace]\n%s\n", base ? base : "", section);
    return weir_open(&(struct weir_open_params){.struct_size = sizeof(struct weir_open_params),
                                                .config_path = "test.ini",
                                                .config_text = text,
                                                .plugins = plugins},
                     out_runtime);
}

static bool make_objects(struct rig *rig)
{
    static const char image_text[] =
        "fake image: vector_add scale saxpy iota increment spin block_sum two_locals "
        "barrier_in_helper store_values required_block geometry fill_pattern check_pattern fused";
    static const struct weir_image image = {WEIR_IMAGE_CUBIN, 90, image_text,
                                            sizeof image_text - 1};
    struct weir_bundle bundle = conformance_kernels;
    struct weir_queue_params queue = {.struct_size = sizeof queue};
    struct weir_buffer_params buffer = {.struct_size = sizeof buffer, .size = BYTES};
    struct weir_program_params program = {.struct_size = sizeof program, .bundle = &bundle};
    if (strcmp(weir_runtime_backend(rig->runtime), "cuda") == 0) {
        bundle.images = &image; // of the tests' libcuda
        bundle.image_count = 1;
    }
    if (weir_device_open(rig->runtime, NULL, &rig->device) < 0)
        return false;
    queue.label = "up";
    bool fine = weir_queue_create(rig->device, &queue, &rig->up) == WEIR_OK;
    queue.label = "down";
    fine = fine && weir_queue_create(rig->device, &queue, &rig->down) == WEIR_OK;
    buffer.label = "frame";
    buffer.placement = WEIR_PLACE_HOST;
    fine = fine && weir_buffer_create(rig->device, &buffer, &rig->frame) == WEIR_OK;
    buffer.label = "memory";
    buffer.placement = WEIR_PLACE_DEVICE;
    fine = fine && weir_buffer_create(rig->device, &buffer, &rig->memory) == WEIR_OK;
    fine = fine && weir_program_create(rig->device, &program, &rig->program) == WEIR_OK;
    return fine && weir_kernel_create(rig->program, "spin", &rig->kernel) == WEIR_OK;
}

static bool start(struct rig *rig, const char *section, const char *plugins)
{
    *rig = (struct rig){NULL};
    if (open_with(section, plugins, &rig->runtime) == WEIR_OK && make_objects(rig))
        return true;
    weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return false;
}

static void finish(struct rig *rig)
{
    weir_kernel_destroy(&rig->kernel);
    weir_program_destroy(&rig->program);
    weir_buffer_destroy(&rig->frame);
    weir_buffer_destroy(&rig->memory);
    weir_queue_destroy(&rig->up);
    weir_queue_destroy(&rig->down);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

// "file = PATH", and what else stands in the section.
static const char *section_for(const char *path, const char *more)
{
    static char text[2048];
    snprintf(text, sizeof text, "file = %s\n%s", path, more);
    return text;
}

static struct weir_trace *read_trace(const char *path)
{
    struct weir_trace *trace = NULL;
    char message[512] = "";
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message))
        weir_test_fail(__FILE__, __LINE__, "%s", message);
    return trace;
}

static const struct weir_trace_queue *queue_named(const struct weir_trace *trace, const char *label)
{
    for (size_t i = 0; i < trace->queue_count; i++)
        if (strcmp(trace->queues[i].label, label) == 0)
            return &trace->queues[i];
    weir_test_fail(__FILE__, __LINE__, "no queue '%s'", label);
    return NULL;
}

// What was submitted.

struct expected {
    enum weir_trace_kind kind;
    enum weir_trace_engine engine;
    uint64_t bytes;
    int line;
    const char *region;
    const char *name;
    const char *dst;
    const char *src;
};

static weir_status be_called(void *user)
{
    ++*(int *)user;
    return WEIR_OK;
}

#define NOTE(kind_, engine_, bytes_, region_, name_, dst_, src_) \
    (expected[count++] =                                         \
         (struct expected){kind_, engine_, bytes_, __LINE__ - 1, region_, name_, dst_, src_})

#define SPIN(queue, rig)                                                          \
    weir_queue_launch(queue, (rig)->kernel, weir_dim(2, 1, 1), weir_dim(1, 1, 1), \
                      weir_out((rig)->memory, 0, 64), 7u, UINT64_C(1000))

// Submits to `down` behind an event of `up`, and notes it. Each NOTE stands in the line
// behind its call.
static size_t submit_all(struct rig *rig, struct expected *expected, int *calls)
{
    const uint32_t pattern = 7;
    const struct weir_plane to = {rig->memory, 0, 64};
    const struct weir_plane from = {rig->frame, 0, 128};
    struct weir_event event;
    size_t count = 0;
    weir_region_push(rig->runtime, "frame", 12);
    EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, BYTES));
    NOTE(WEIR_TRACE_COPY, WEIR_ENGINE_TO_DEVICE, BYTES, "frame 12", "", "memory", "frame");
    EXPECT_OK(weir_queue_record(rig->up, &event));
    weir_region_push(rig->runtime, "texture", WEIR_NO_NUMBER);
    EXPECT_OK(weir_queue_wait(rig->down, event));
    EXPECT_OK(weir_queue_fill(rig->down, rig->memory, 0, 4096, &pattern, sizeof pattern));
    NOTE(WEIR_TRACE_FILL, WEIR_ENGINE_ON_DEVICE, 4096, "frame 12/texture", "", "memory", "");
    EXPECT_OK(SPIN(rig->down, rig));
    NOTE(WEIR_TRACE_LAUNCH, WEIR_ENGINE_KERNELS, 0, "frame 12/texture", "spin", "", "");
    weir_region_pop(rig->runtime);
    EXPECT_OK(weir_queue_copy_2d(rig->down, to, from, 32, 100));
    NOTE(WEIR_TRACE_COPY_2D, WEIR_ENGINE_TO_DEVICE, 3200, "frame 12", "", "memory", "frame");
    EXPECT_OK(weir_queue_host_call(rig->down, be_called, calls));
    NOTE(WEIR_TRACE_HOST_CALL, WEIR_ENGINE_HOST, 0, "frame 12", "", "", "");
    weir_region_pop(rig->runtime);
    EXPECT_OK(weir_queue_copy(rig->down, rig->frame, 0, rig->memory, 0, 0));
    NOTE(WEIR_TRACE_COPY, WEIR_ENGINE_NONE, 0, "", "", "frame", "memory");
    EXPECT_OK(weir_queue_copy(rig->down, rig->frame, 0, rig->memory, 0, 1000));
    NOTE(WEIR_TRACE_COPY, WEIR_ENGINE_TO_HOST, 1000, "", "", "frame", "memory");
    return count;
}

static void expect_operation(const struct weir_trace_operation *operation,
                             const struct expected *expected)
{
    EXPECT_INT_EQ(operation->kind, expected->kind);
    EXPECT_INT_EQ(operation->engine, expected->engine);
    EXPECT_UINT_EQ(operation->bytes, expected->bytes);
    EXPECT_INT_EQ(operation->line, expected->line);
    EXPECT_CONTAINS(operation->file, "trace_test.c");
    EXPECT_STR_EQ(operation->region, expected->region);
    EXPECT_STR_EQ(operation->name, expected->name);
    EXPECT_STR_EQ(operation->dst_label, expected->dst);
    EXPECT_STR_EQ(operation->src_label, expected->src);
    EXPECT_UINT_EQ(operation->thread, (uint64_t)getpid());
    EXPECT_UINT_LT(0, operation->submit_ns);
    EXPECT_UINT_LE(operation->submit_ns, operation->submit_end_ns);
    EXPECT_FALSE(operation->failed);
    EXPECT_TRUE(operation->timed == (expected->engine != WEIR_ENGINE_NONE));
    if (operation->timed) {
        EXPECT_UINT_LE(operation->start_ns, operation->end_ns);
        // As exact as the pair of clocks, which on the tests' libcuda is a thread's wake.
        EXPECT_UINT_LE(operation->submit_ns, operation->start_ns + 300000);
    }
}

// All operations of both queues, and the one wait.
static void expect_all(const struct weir_trace *trace, const struct expected *expected,
                       size_t count)
{
    const struct weir_trace_queue *up = queue_named(trace, "up");
    const struct weir_trace_queue *down = queue_named(trace, "down");
    ASSERT_NOT_NULL(up);
    ASSERT_NOT_NULL(down);
    ASSERT_SIZE_EQ(up->operation_count, 1);
    ASSERT_SIZE_EQ(down->operation_count, count - 1);
    const struct weir_trace_operation *first = &trace->operations[up->first_operation];
    const struct weir_trace_operation *rest = &trace->operations[down->first_operation];
    expect_operation(first, &expected[0]);
    for (size_t i = 1; i < count; i++) {
        weir_test_note("operation %zu", i);
        expect_operation(&rest[i - 1], &expected[i]);
        if (i > 1 && rest[i - 1].timed && rest[i - 2].timed)
            EXPECT_UINT_LE(rest[i - 2].end_ns, rest[i - 1].start_ns);
        EXPECT_SIZE_EQ(rest[i - 1].wait_count, i == 1 ? 1 : 0);
    }
    weir_test_note(NULL);
    ASSERT_SIZE_EQ(rest[0].wait_count, 1);
    EXPECT_UINT_EQ(rest[0].waits[0].queue, up->id);
    EXPECT_UINT_EQ(rest[0].waits[0].sequence, 2);
    EXPECT_FALSE(rest[0].waits[0].implied);
    EXPECT_SIZE_EQ(rest[0].waits[0].operation, up->first_operation);
    EXPECT_UINT_LE(first->end_ns, rest[0].start_ns + 300000);
}

WEIR_TEST(Trace, HasEveryOperationOnce)
{
    const char *path = in_folder("once.json");
    struct expected expected[16];
    struct rig rig;
    int calls = 0;
    ASSERT_TRUE(start(&rig, section_for(path, ""), "trace"));
    const size_t count = submit_all(&rig, expected, &calls);
    EXPECT_OK(weir_queue_sync(rig.down, WEIR_FOREVER));
    finish(&rig);
    EXPECT_INT_EQ(calls, 1);
    struct weir_trace *trace = read_trace(path);
    ASSERT_NOT_NULL(trace);
    EXPECT_FALSE(trace->meta.truncated);
    EXPECT_UINT_EQ(trace->meta.dropped, 0);
    EXPECT_UINT_EQ(trace->meta.unfinished, 0);
    EXPECT_STR_EQ(trace->meta.plugins, "trace");
    EXPECT_SIZE_EQ(trace->device_count, 1);
    EXPECT_SIZE_EQ(trace->note_count, 0);
    expect_all(trace, expected, count);
    weir_trace_destroy(&trace);
}

WEIR_TEST(Trace, HasRegionsAndWaitsOfTheHost)
{
    const char *path = in_folder("spans.json.gz");
    struct expected expected[16];
    struct rig rig;
    int calls = 0;
    size_t regions = 0;
    size_t syncs = 0;
    ASSERT_TRUE(start(&rig, section_for(path, ""), "trace"));
    weir_region_pop(rig.runtime); // outside of any
    submit_all(&rig, expected, &calls);
    EXPECT_OK(weir_queue_sync(rig.down, WEIR_FOREVER));
    for (int i = 0; i < 40; i++) // deeper than is kept
        weir_region_push(rig.runtime, "a region with a rather long name, longer than is kept", 1);
    for (int i = 0; i < 40; i++)
        weir_region_pop(rig.runtime);
    finish(&rig);
    struct weir_trace *trace = read_trace(path);
    ASSERT_NOT_NULL(trace);
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct weir_trace_span *span = &trace->spans[i];
        EXPECT_UINT_LE(span->begin_ns, span->end_ns);
        EXPECT_UINT_EQ(span->thread, (uint64_t)getpid());
        regions += span->kind == WEIR_TRACE_REGION;
        syncs += span->kind == WEIR_TRACE_SYNC;
        if (span->kind == WEIR_TRACE_REGION && strcmp(span->name, "frame") == 0)
            EXPECT_UINT_EQ(span->number, 12);
    }
    EXPECT_SIZE_EQ(regions, 2 + 32);
    EXPECT_TRUE(syncs >= 1 || strcmp(trace->meta.backend, "null") == 0);
    weir_trace_destroy(&trace);
}

WEIR_TEST(Trace, StandsTwiceInAChain)
{
    const char *path = in_folder("twice.json");
    struct expected expected[16];
    struct rig rig;
    int calls = 0;
    ASSERT_TRUE(start(&rig, section_for(path, ""), "trace, trace"));
    const size_t count = submit_all(&rig, expected, &calls);
    EXPECT_OK(weir_queue_sync(rig.down, WEIR_FOREVER));
    finish(&rig);
    EXPECT_INT_EQ(calls, 1);
    // Whichever of the two was there first: the inner link, as chains open from behind.
    struct weir_trace *inner = read_trace(path);
    struct weir_trace *outer = read_trace(in_folder("twice.2.json"));
    ASSERT_NOT_NULL(inner);
    ASSERT_NOT_NULL(outer);
    expect_all(inner, expected, count);
    expect_all(outer, expected, count);
    EXPECT_STR_EQ(outer->meta.plugins, "trace, trace");
    weir_trace_destroy(&inner);
    weir_trace_destroy(&outer);
}

WEIR_TEST(Trace, OfTwoRuntimesAtOnce)
{
    const char *path = in_folder("two.json");
    struct expected expected[2][16];
    struct rig rigs[2];
    int calls = 0;
    size_t counts[2];
    for (size_t i = 0; i < 2; i++)
        ASSERT_TRUE(start(&rigs[i], section_for(path, ""), "trace"));
    for (size_t i = 0; i < 2; i++)
        counts[i] = submit_all(&rigs[i], expected[i], &calls);
    for (size_t i = 0; i < 2; i++)
        EXPECT_OK(weir_queue_sync(rigs[i].down, WEIR_FOREVER));
    for (size_t i = 0; i < 2; i++)
        finish(&rigs[i]);
    for (size_t i = 0; i < 2; i++) {
        struct weir_trace *trace = read_trace(i == 0 ? path : in_folder("two.2.json"));
        ASSERT_NOT_NULL(trace);
        expect_all(trace, expected[i], counts[i]);
        weir_trace_destroy(&trace);
    }
}

// A graph is one operation of its queue, with the name of the graph.
WEIR_TEST(Trace, OfGraphs)
{
    const char *path = in_folder("graphs.json");
    const struct weir_graph_params params = {.struct_size = sizeof params, .label = "round"};
    struct rig rig;
    weir_graph *graph;
    ASSERT_TRUE(start(&rig, section_for(path, ""), "trace"));
    EXPECT_OK(weir_capture_begin(rig.up));
    EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, BYTES));
    EXPECT_OK(SPIN(rig.up, &rig));
    EXPECT_OK(weir_queue_copy(rig.up, rig.frame, 0, rig.memory, 0, BYTES));
    ASSERT_OK(weir_capture_end(rig.up, &params, &graph));
    for (size_t i = 0; i < 5; i++)
        EXPECT_OK(weir_queue_graph(rig.up, graph));
    EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
    EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
    weir_graph_destroy(&graph);
    finish(&rig);
    struct weir_trace *trace = read_trace(path);
    ASSERT_NOT_NULL(trace);
    ASSERT_SIZE_EQ(trace->operation_count, 6);
    EXPECT_UINT_EQ(trace->meta.unfinished, 0);
    for (size_t i = 0; i < 5; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        EXPECT_INT_EQ(operation->kind, WEIR_TRACE_GRAPH);
        EXPECT_STR_EQ(operation->name, "round");
        EXPECT_TRUE(operation->timed);
        EXPECT_UINT_LE(operation->start_ns, operation->end_ns);
        EXPECT_UINT_LE(operation->end_ns, trace->operations[i + 1].start_ns);
    }
    weir_trace_destroy(&trace);
}

// Patterns name their parts by themselves.

static weir_status compute_chunk(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct rig *rig = user;
    return weir_queue_launch(queue, rig->kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                             weir_out(rig->memory, chunk->in_offset, 64), 7u, UINT64_C(1000));
}

static weir_status run_chunks(struct rig *rig)
{
    weir_chunks *chunks;
    struct weir_event done;
    const struct weir_chunks_params params = {
        .struct_size = sizeof params,
        .device = rig->device,
        .src = {rig->frame, 0},
        .in = {rig->memory, 0},
        .out = {rig->memory, 0},
        .dst = {rig->frame, 0},
        .element_count = BYTES,
        .in_bytes = 1,
        .out_bytes = 1,
        .chunk_count = 4,
        .kernel = compute_chunk,
        .user = rig,
    };
    weir_status status = weir_chunks_create(&params, &chunks);
    if (status == WEIR_OK)
        status = weir_chunks_run(chunks, NULL, 0, &done);
    if (status == WEIR_OK)
        status = weir_event_sync(done, WEIR_FOREVER);
    weir_chunks_destroy(&chunks);
    return status;
}

static weir_status submit_frame(void *user, void *slot, void *frame, weir_queue *queue)
{
    struct rig *rig = user;
    (void)slot;
    (void)frame;
    return weir_queue_copy(queue, rig->memory, 0, rig->frame, 0, 64);
}

static weir_status run_pipeline(struct rig *rig)
{
    static const struct weir_pipeline_stage stage = {.name = "texture", .submit = submit_frame};
    weir_pipeline *pipeline;
    const struct weir_pipeline_params params = {
        .struct_size = sizeof params,
        .device = rig->device,
        .stages = &stage,
        .stage_count = 1,
        .user = rig,
    };
    weir_status status = weir_pipeline_create(&params, &pipeline);
    for (size_t i = 0; i < 3 && status == WEIR_OK; i++)
        status = weir_pipeline_submit(pipeline, rig);
    if (status == WEIR_OK)
        status = weir_pipeline_drain(pipeline, WEIR_FOREVER);
    weir_pipeline_destroy(&pipeline);
    return status;
}

static size_t count_in(const struct weir_trace *trace, const char *region)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->operation_count; i++)
        count += strcmp(trace->operations[i].region, region) == 0;
    return count;
}

WEIR_TEST(Trace, NamesWhatPatternsDo)
{
    const char *path = in_folder("patterns.json");
    struct rig rig;
    ASSERT_TRUE(start(&rig, section_for(path, ""), "trace"));
    EXPECT_OK(run_chunks(&rig));
    EXPECT_OK(run_pipeline(&rig));
    finish(&rig);
    struct weir_trace *trace = read_trace(path);
    ASSERT_NOT_NULL(trace);
    EXPECT_SIZE_EQ(trace->operation_count, 4 * 3 + 3);
    for (size_t i = 0; i < 4; i++) {
        char region[32];
        snprintf(region, sizeof region, "chunk %zu", i);
        EXPECT_SIZE_EQ(count_in(trace, region), 3);
    }
    for (size_t i = 0; i < 3; i++) {
        char region[32];
        snprintf(region, sizeof region, "frame %zu/texture", i);
        EXPECT_SIZE_EQ(count_in(trace, region), 1);
    }
    weir_trace_destroy(&trace);
}

// Several threads share queues; each operation keeps the thread that submitted it.
static void *submit_some(void *user)
{
    struct rig *rig = user;
    for (size_t i = 0; i < 500; i++) {
        weir_region_push(rig->runtime, "step", i);
        EXPECT_OK(weir_queue_copy(i % 2 ? rig->up : rig->down, rig->memory, i % 2 * 64, rig->frame,
                                  0, 64));
        weir_region_pop(rig->runtime);
    }
    return NULL;
}

WEIR_TEST(Trace, OfSeveralThreads)
{
    const char *path = in_folder("threads.json");
    struct rig rig;
    pthread_t threads[3];
    ASSERT_TRUE(start(&rig, section_for(path, ""), "trace"));
    for (size_t i = 0; i < 3; i++)
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, submit_some, &rig), 0);
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
    EXPECT_OK(weir_queue_sync(rig.down, WEIR_FOREVER));
    finish(&rig);
    struct weir_trace *trace = read_trace(path);
    ASSERT_NOT_NULL(trace);
    EXPECT_SIZE_EQ(trace->operation_count + (size_t)trace->meta.dropped, 1500);
    uint64_t last = 0;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        EXPECT_TRUE(strncmp(operation->region, "step ", 5) == 0);
        if (i > 0 && operation->queue == trace->operations[i - 1].queue)
            EXPECT_UINT_LT(last, operation->sequence);
        last = operation->sequence;
    }
    weir_trace_destroy(&trace);
}

// A queue that is destroyed at once loses nothing, however many come and go.
WEIR_TEST(Trace, OfQueuesThatComeAndGo)
{
    const char *path = in_folder("come.json");
    struct rig rig;
    ASSERT_TRUE(start(&rig, section_for(path, ""), "trace"));
    for (size_t i = 0; i < 100; i++) {
        weir_queue *queue;
        ASSERT_OK(weir_queue_create(rig.device, NULL, &queue));
        EXPECT_OK(weir_queue_copy(queue, rig.memory, i * 2048, rig.frame, 0, 2048));
        if (i % 2)
            EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
        weir_queue_destroy(&queue);
    }
    finish(&rig);
    struct weir_trace *trace = read_trace(path);
    ASSERT_NOT_NULL(trace);
    EXPECT_SIZE_EQ(trace->operation_count, 100);
    EXPECT_SIZE_EQ(trace->queue_count, 100);
    for (size_t i = 0; i < trace->operation_count; i++)
        EXPECT_TRUE(trace->operations[i].timed);
    weir_trace_destroy(&trace);
}

static weir_status fail(void *user)
{
    (void)user;
    return WEIR_ERROR_HOST_CALL;
}

// What lies behind a failure never runs, and is in the trace without times.
WEIR_TEST(Trace, OfAQueueThatFails)
{
    const char *path = in_folder("fails.json");
    struct rig rig;
    int calls = 0;
    ASSERT_TRUE(start(&rig, section_for(path, ""), "trace"));
    EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
    EXPECT_OK(weir_queue_host_call(rig.up, fail, NULL));
    EXPECT_INT_LT(weir_queue_sync(rig.up, WEIR_FOREVER), 0);
    EXPECT_OK(weir_queue_recover(rig.up));
    EXPECT_OK(weir_queue_host_call(rig.up, be_called, &calls));
    EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
    EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
    finish(&rig);
    EXPECT_INT_EQ(calls, 1);
    struct weir_trace *trace = read_trace(path);
    ASSERT_NOT_NULL(trace);
    ASSERT_SIZE_EQ(trace->operation_count, 4);
    for (size_t i = 0; i < 4; i++)
        EXPECT_TRUE(trace->operations[i].timed);
    weir_trace_destroy(&trace);
}

// Memory and drops.

// More than the ring holds, at once: what is not kept is counted, and the submitter is
// not held up. On a queue that is held by a host call nothing completes meanwhile.
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
};

static weir_status pass_gate(void *user)
{
    struct gate *gate = user;
    pthread_mutex_lock(&gate->lock);
    while (!gate->open)
        pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return WEIR_OK;
}

WEIR_TEST(Trace, CountsWhatItDoesNotKeep)
{
    const char *path = in_folder("drops.json");
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct rig rig;
    ASSERT_TRUE(start(&rig, section_for(path, "buffer = 1024"), "trace"));
    EXPECT_OK(weir_queue_host_call(rig.up, pass_gate, &gate));
    for (size_t i = 0; i < 3000; i++)
        EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.opened);
    pthread_mutex_unlock(&gate.lock);
    EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
    // And there is room again behind it.
    usleep(300000);
    for (size_t i = 0; i < 5; i++)
        EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 32));
    EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
    finish(&rig);
    struct weir_trace *trace = read_trace(path);
    ASSERT_NOT_NULL(trace);
    EXPECT_UINT_EQ(trace->meta.dropped, 3000 - 1023);
    ASSERT_SIZE_EQ(trace->operation_count, 1024 + 5);
    for (size_t i = 0; i < trace->operation_count; i++)
        EXPECT_TRUE(trace->operations[i].timed);
    EXPECT_UINT_EQ(trace->operations[1028].bytes, 32);
    weir_trace_destroy(&trace);
}

static size_t resident_bytes(void)
{
    char line[128] = "";
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && !fgets(line, sizeof line, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    const char *second = strchr(line, ' ');
    return second ? strtoul(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

// Four hundred thousand operations take no more memory than the first hundred thousand.
WEIR_TEST(Trace, TakesNoMoreAndMoreMemory)
{
    const char *path = in_folder("long.json");
    struct rig rig;
    struct weir_counters before;
    struct weir_counters after;
    size_t warm = 0;
    ASSERT_TRUE(start(&rig, section_for(path, "buffer = 2048"), "trace"));
    for (size_t i = 0; i < 400; i++) {
        if (i == 100) {
            warm = resident_bytes();
            weir_counters_read(&before);
        }
        weir_region_push(rig.runtime, "round", i);
        for (size_t k = 0; k < 1000; k++)
            if (weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64) < 0)
                WEIR_FAIL("%s", weir_last_error_text());
        EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
        weir_region_pop(rig.runtime);
    }
    weir_counters_read(&after);
    EXPECT_UINT_EQ(after.allocations, before.allocations);
    if (!WEIR_MODULE_SANITIZER[0]) // sanitizers keep what was freed
        EXPECT_UINT_LE(resident_bytes(), warm + (24u << 20));
    finish(&rig);
    unlink(path);
}

// An end in the middle.

// Runs in a process of its own, which the tests below start and kill.
WEIR_TEST(TraceChild, WorksForEver)
{
    const char *path = getenv("WEIR_TEST_CHILD");
    struct rig rig;
    if (!path)
        WEIR_SKIP("this is not the child");
    ASSERT_TRUE(start(&rig, section_for(path, "flush = 20"), "trace"));
    for (;;) {
        ASSERT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 4096));
        ASSERT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
        usleep(20); // the null backend is faster than any writer
    }
}

static pid_t start_child(const char *path)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child != 0)
        return child;
    setenv("WEIR_TEST_CHILD", path, 1);
    execl("/proc/self/exe", "trace_test", "--gtest_filter=TraceChild.*", (char *)NULL);
    _exit(3);
}

static void kill_and_read(const char *name)
{
    const char *path = in_folder(name);
    struct stat status = {.st_size = 0};
    const pid_t child = start_child(path);
    for (int i = 0; i < 2000 && status.st_size < 200000; i++) {
        usleep(10000);
        if (stat(path, &status) != 0)
            status.st_size = 0;
    }
    usleep(50000);
    EXPECT_INT_EQ(kill(child, SIGKILL), 0);
    int ended;
    EXPECT_INT_EQ(waitpid(child, &ended, 0), child);
    EXPECT_TRUE(WIFSIGNALED(ended));
    struct weir_trace *trace = read_trace(path);
    ASSERT_NOT_NULL(trace);
    EXPECT_TRUE(trace->meta.truncated);
    EXPECT_TRUE(trace->operation_count > 100);
    for (size_t i = 0; i < trace->operation_count; i++) {
        EXPECT_UINT_EQ(trace->operations[i].bytes, 4096);
        EXPECT_TRUE(trace->operations[i].timed);
    }
    weir_trace_destroy(&trace);
}

WEIR_TEST(TraceKilled, LeavesAReadableFile)
{
    kill_and_read("killed.json");
}

WEIR_TEST(TraceKilled, CompressedToo)
{
    kill_and_read("killed.json.gz");
}

// What cannot be.

static void expect_refused(const char *section, const char *words)
{
    weir_runtime *runtime = NULL;
    weir_test_note("%s", section);
    EXPECT_INT_LT(open_with(section, "trace", &runtime), 0);
    EXPECT_NULL(runtime);
    EXPECT_CONTAINS(weir_last_error_text(), words);
    weir_close(&runtime);
    weir_test_note(NULL);
}

WEIR_TEST(TraceRefuses, WrongValues)
{
    char text[600] = "file = /";
    expect_refused("buffer = 1023", "1024");
    expect_refused("buffer = many", "buffer");
    expect_refused("flush = 0", "flush");
    expect_refused("flush = 60001", "60000");
    expect_refused("fiel = x.json", "did you mean 'file'?");
    expect_refused("file = /nowhere/at/all/trace.json", "/nowhere/at/all/trace.json");
    expect_refused("file = /", "/");
    memset(text + 8, 'a', 170);
    snprintf(text + 178, sizeof text - 178, "/b.json");
    expect_refused(text, "No such file");
}

static char logged[4096];

static void keep_log(void *user, weir_log_level level, const char *source, const char *message)
{
    (void)user;
    (void)level;
    if (strcmp(source, "trace") == 0)
        snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", message);
}

WEIR_TEST(TraceRefuses, AFileWithoutPermission)
{
    const char *path = in_folder("mine.json");
    if (geteuid() == 0)
        WEIR_SKIP("root may write anything");
    FILE *file = fopen(path, "w");
    ASSERT_NOT_NULL(file);
    fclose(file);
    ASSERT_INT_EQ(chmod(path, 0400), 0);
    expect_refused(section_for(path, ""), path);
}

// A disk that is full is found while writing, and told; the program goes on.
WEIR_TEST(TraceRefuses, AFullDisk)
{
    struct rig rig;
    logged[0] = '\0';
    weir_log_set(keep_log, NULL, WEIR_LOG_WARNING);
    ASSERT_TRUE(start(&rig, section_for("/dev/full", "flush = 1"), "trace"));
    for (size_t i = 0; i < 200; i++) {
        EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
        EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
        usleep(1000);
    }
    finish(&rig);
    weir_log_set(NULL, NULL, WEIR_LOG_WARNING);
    EXPECT_CONTAINS(logged, "/dev/full");
    EXPECT_CONTAINS(logged, "No space left");
}

// What is no file is neither numbered nor removed.
WEIR_TEST(Trace, IntoWhatIsNoFile)
{
    struct stat status;
    weir_runtime *runtimes[2];
    for (size_t i = 0; i < 2; i++)
        ASSERT_OK(open_with("file = /dev/null", "trace", &runtimes[i]));
    for (size_t i = 0; i < 2; i++)
        EXPECT_OK(weir_close(&runtimes[i]));
    EXPECT_INT_EQ(stat("/dev/null", &status), 0);
    EXPECT_INT_NE(stat("/dev/null.2", &status), 0);
}

// A runtime that opens no device leaves no file.
WEIR_TEST(Trace, OfNothingLeavesNothing)
{
    const char *path = in_folder("nothing.json");
    weir_runtime *runtime;
    struct stat status;
    ASSERT_OK(open_with(section_for(path, ""), "trace", &runtime));
    EXPECT_OK(weir_close(&runtime));
    EXPECT_INT_NE(stat(path, &status), 0);
}

// Report and page.
WEIR_TEST(Trace, MakesReportAndPage)
{
    const char *path = in_folder("all.json");
    char more[1200];
    struct expected expected[16];
    struct rig rig;
    struct stat status;
    int calls = 0;
    snprintf(more, sizeof more, "report = %s\nhtml = %s", in_folder("all.txt"),
             in_folder("all.html"));
    ASSERT_TRUE(start(&rig, section_for(path, more), "trace"));
    submit_all(&rig, expected, &calls);
    EXPECT_OK(weir_queue_sync(rig.down, WEIR_FOREVER));
    finish(&rig);
    ASSERT_INT_EQ(stat(in_folder("all.txt"), &status), 0);
    EXPECT_TRUE(status.st_size > 200);
    ASSERT_INT_EQ(stat(in_folder("all.html"), &status), 0);
    EXPECT_TRUE(status.st_size > 2000);
}

// Copies in one direction never overlap where the device has one engine for them, however
// many queues they come from.
WEIR_TEST(Trace, CopiesOfOneDirectionShareAnEngine)
{
    const char *path = in_folder("engine.json");
    struct rig rig;
    weir_queue *queues[4];
    ASSERT_TRUE(start(&rig, section_for(path, ""), "trace"));
    if (weir_device_limits(rig.device)->copy_engines_to_device != 1) {
        finish(&rig);
        WEIR_SKIP("this device has no engine for copies");
    }
    for (size_t i = 0; i < 4; i++)
        ASSERT_OK(weir_queue_create(rig.device, NULL, &queues[i]));
    for (size_t i = 0; i < 64; i++)
        EXPECT_OK(weir_queue_copy(queues[i % 4], rig.memory, i % 4 * (BYTES / 4), rig.frame, 0,
                                  BYTES / 4));
    for (size_t i = 0; i < 4; i++) {
        EXPECT_OK(weir_queue_sync(queues[i], WEIR_FOREVER));
        weir_queue_destroy(&queues[i]);
    }
    finish(&rig);
    struct weir_trace *trace = read_trace(path);
    ASSERT_NOT_NULL(trace);
    ASSERT_SIZE_EQ(trace->operation_count, 64);
    if (!getenv("WEIR_TEST_STARTS") || strcmp(getenv("WEIR_TEST_STARTS"), "earliest") != 0) {
        weir_trace_destroy(&trace); // the tests' libcuda has an engine for each stream
        return;
    }
    for (size_t i = 0; i < 64; i++) {
        const struct weir_trace_operation *one = &trace->operations[i];
        EXPECT_TRUE(one->timed);
        EXPECT_FALSE(one->start_is_earliest);
        for (size_t k = 0; k < i; k++) {
            const struct weir_trace_operation *other = &trace->operations[k];
            EXPECT_TRUE(one->start_ns >= other->end_ns || other->start_ns >= one->end_ns);
        }
    }
    weir_trace_destroy(&trace);
}
