// clang-tidy: -Ibazel-bin/tests/abi/newer -DNEWER -DLIBRARY_IS_NEWER=0
// What is built on the API, the patterns and reports, in a program whose headers may be newer than
// the library's: each is created, used and asked for its figures once. With newer headers (NEWER),
// what was appended to params is set once.
#include <stdio.h>
#include <string.h>

#include <weir/patterns/chunks.h>
#include <weir/patterns/loader.h>
#include <weir/patterns/pipeline.h>
#include <weir/patterns/queue_pool.h>
#include <weir/report.h>
#include <weir/weir.h>

#include "tests/support/own.h"
#include "tests/support/test.h"

enum {
    WORDS = 4096,
    BYTES = WORDS * 4,
    BATCHES = 5,
    FRAMES = 6,
    SLOTS = 2
};

#ifdef NEWER
// A call with params that have something in a field which an older library lacks.
static void expect_tail(weir_status status)
{
    EXPECT_INT_EQ(status, LIBRARY_IS_NEWER ? WEIR_OK : WEIR_ERROR_INVALID);
    if (!LIBRARY_IS_NEWER)
        EXPECT_CONTAINS(weir_last_error()->message, "is not zero");
}
#define TRY_TAIL(given, call) ((given).newer[3] = 1, expect_tail(call), (given).newer[3] = 0)
#define EXPECT_NO_TAIL(structure) EXPECT_UINT_EQ((structure).newer[0] | (structure).newer[3], 0)
#else
#define TRY_TAIL(given, call) (void)(given)
#define EXPECT_NO_TAIL(structure) (void)(structure)
#endif

static weir_runtime *runtime;
static weir_device *device;

static bool open_chain(const char *plugins, const char *config)
{
    const struct weir_section *const sections[] = {weir_pipeline_section()};
    runtime = NULL;
    device = NULL;
    EXPECT_OK(weir_open(WEIR_PARAMS(weir_open, .config_path = "clients.ini", .config_text = config,
                                    .plugins = plugins, .sections = sections, .section_count = 1),
                        &runtime));
    EXPECT_OK(weir_device_open(runtime, NULL, &device));
    return device;
}

static void close_chain(void)
{
    EXPECT_OK(weir_device_close(&device));
    EXPECT_OK(weir_close(&runtime));
}

#define CLIENT_TEST(name)                                                                   \
    WEIR_TEST_BETWEEN(Clients, name,                                                        \
                      ASSERT_TRUE(open_chain(NULL, "[pipeline]\nslots = 2\ntiming = 1\n")), \
                      close_chain())

static weir_buffer *make_buffer(weir_placement placement)
{
    return test_buffer(device, NULL, BYTES, placement);
}

static weir_status copy_nothing(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    return WEIR_OK;
}

CLIENT_TEST(Chunks)
{
    weir_chunks *chunks;
    struct weir_chunks_plan plan;
    own_buffer host = make_buffer(WEIR_PLACE_HOST);
    own_buffer memory = make_buffer(WEIR_PLACE_DEVICE);
    struct weir_chunks_params params = {
        .struct_size = sizeof params,
        .device = device,
        .element_count = WORDS / 2,
        .in_bytes = 4,
        .out_bytes = 4,
        .src = {host, 0},
        .in = {memory, 0},
        .out = {memory, BYTES / 2},
        .dst = {host, BYTES / 2},
        .kernel = copy_nothing,
        .chunk_count = 4,
    };

    ASSERT_OK(weir_chunks_create(&params, &chunks));
    weir_chunks_get_plan(chunks, &plan);
    EXPECT_UINT_EQ(plan.chunk_count, 4);
    EXPECT_NO_TAIL(plan);
    weir_chunks_destroy(&chunks);
    TRY_TAIL(params, weir_chunks_create(&params, &chunks));
    weir_chunks_destroy(&chunks);
}

static weir_status make_batch(void *user, uint64_t index, void *memory, size_t capacity,
                              size_t *out_size)
{
    *out_size = index < BATCHES ? capacity : 0;
    return WEIR_OK;
}

CLIENT_TEST(Loader)
{
    const size_t share = BYTES / BATCHES;
    struct weir_loader_params params = {
        .struct_size = sizeof params,
        .device = device,
        .batch_bytes = share,
        .slot_count = SLOTS,
        .source = make_batch,
    };
    weir_loader *loader;
    struct weir_loader_statistics figures;
    struct weir_batch batch;
    own_queue queue = test_queue(device, NULL);

    ASSERT_OK(weir_loader_create(&params, &loader));
    while (weir_loader_next(loader, queue, &batch) == WEIR_OK && batch.buffer)
        EXPECT_OK(weir_loader_release(loader, &batch, queue));
    weir_loader_get_statistics(loader, &figures);
    EXPECT_UINT_EQ(figures.delivered, BATCHES);
    EXPECT_UINT_EQ(figures.bytes, BATCHES * share);
    EXPECT_NO_TAIL(figures);
    EXPECT_OK(weir_loader_destroy(&loader));

    TRY_TAIL(params, weir_loader_create(&params, &loader));
    EXPECT_OK(weir_loader_destroy(&loader));
}

CLIENT_TEST(QueuePool)
{
    struct weir_queue_pool_params params = {
        .struct_size = sizeof params,
        .device = device,
        .queue_counts = {[WEIR_QUEUE_NORMAL] = 2, [WEIR_QUEUE_HIGH] = 1},
        .channel_count = 2,
    };
    struct weir_queue_pool_statistics figures;
    weir_queue_pool *queues;
    weir_queue *queue;

    ASSERT_OK(weir_queue_pool_create(&params, &queues));
    for (unsigned i = 0; i < 3; i++)
        EXPECT_OK(weir_queue_pool_get(queues, i ? WEIR_QUEUE_NORMAL : WEIR_QUEUE_HIGH, &queue));
    weir_queue_pool_get_statistics(queues, &figures);
    EXPECT_UINT_EQ(figures.queue_count, 3);
    EXPECT_UINT_EQ(figures.channel_count, 2);
    EXPECT_UINT_EQ(figures.classes[WEIR_QUEUE_NORMAL].gets, 2);
    EXPECT_NO_TAIL(figures);
    weir_queue_pool_destroy(&queues);

    TRY_TAIL(params, weir_queue_pool_create(&params, &queues));
    weir_queue_pool_destroy(&queues);
}

static weir_status make_slot(void *user, weir_device *made_for, uint32_t index, void **out_slot)
{
    EXPECT_PTR_EQ(made_for, device);
    *out_slot = user;
    return WEIR_OK;
}

static void destroy_slot(void *user, void *slot)
{
}

static weir_status submit_nothing(void *user, void *slot, void *frame, weir_queue *queue)
{
    return WEIR_OK;
}

static void deliver(void *user, void *frame, void *slot, const struct weir_pipeline_result *result)
{
    uint32_t *delivered = user;
    EXPECT_OK(result->status);
    EXPECT_UINT_EQ(result->sequence, (*delivered)++);
    EXPECT_UINT_EQ(result->stage_count, 2);
    EXPECT_NO_TAIL(*result);
}

CLIENT_TEST(Pipeline)
{
    uint32_t delivered = 0;
    struct weir_pipeline_stage stages[2] = {
        {.name = "upload", .submit = submit_nothing},
        {.name = "download", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = submit_nothing},
    };
    struct weir_pipeline_params params = {
        .struct_size = sizeof params,
        .device = device,
        .stages = stages,
        .stage_count = 2,
        .stage_size = sizeof stages[0],
        .slot_create = make_slot,
        .slot_destroy = destroy_slot,
        .deliver = deliver,
        .user = &delivered,
    };
    struct weir_pipeline_statistics figures;
    weir_pipeline *pipeline = NULL;

    EXPECT_OK(weir_pipeline_params_from_settings(runtime, NULL, &params));
    EXPECT_UINT_EQ(params.slot_count, SLOTS);
    ASSERT_OK(weir_pipeline_create(&params, &pipeline));
    for (uint32_t i = 0; i < FRAMES; i++)
        EXPECT_OK(weir_pipeline_submit(pipeline, &delivered));
    EXPECT_OK(weir_pipeline_drain(pipeline, WEIR_FOREVER));
    EXPECT_UINT_EQ(delivered, FRAMES);
    weir_pipeline_get_statistics(pipeline, &figures);
    EXPECT_UINT_EQ(figures.succeeded, FRAMES);
    EXPECT_STR_EQ(figures.stages[1].name, "download");
    EXPECT_NO_TAIL(figures);
    EXPECT_OK(weir_pipeline_destroy(&pipeline));

    TRY_TAIL(params, weir_pipeline_create(&params, &pipeline));
    EXPECT_OK(weir_pipeline_destroy(&pipeline));
    TRY_TAIL(stages[1], weir_pipeline_create(&params, &pipeline));
    EXPECT_OK(weir_pipeline_destroy(&pipeline));
}

static void make_trace(const char *path)
{
    char config[512];
    snprintf(config, sizeof config, "[trace]\nfile = %s\n", path);
    ASSERT_TRUE(open_chain("trace", config));
    weir_queue *queue = test_queue(device, NULL);
    weir_buffer *from = make_buffer(WEIR_PLACE_HOST);
    weir_buffer *to = make_buffer(WEIR_PLACE_DEVICE);

    for (int i = 0; i < 3; i++)
        EXPECT_OK(weir_queue_copy(queue, to, 0, from, 0, BYTES));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    weir_buffer_destroy(&from);
    weir_buffer_destroy(&to);
    weir_queue_destroy(&queue);
    close_chain();
}

static void expect_report(const weir_report *report)
{
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    const struct weir_report_row *row = weir_report_find_row(report, WEIR_REPORT_KINDS, "copy");
    const struct weir_report_bubble *bubble = weir_report_get_bubble(report, false, 0);
    struct weir_report_overlap overlap;
    struct weir_report_finding finding;

    EXPECT_UINT_EQ(summary->operations, 3);
    EXPECT_NO_TAIL(*summary);
    ASSERT_TRUE(row && bubble);
    EXPECT_UINT_EQ(row->count, 3);
    EXPECT_UINT_EQ(row->bytes, 3 * BYTES);
    EXPECT_NO_TAIL(*row);
    EXPECT_UINT_EQ(bubble->end_ns - bubble->begin_ns, summary->longest_bubble_ns);
    EXPECT_NO_TAIL(*bubble);
    EXPECT_OK(weir_report_get_overlap(report, "copy", "compute", &overlap));
    EXPECT_UINT_EQ(overlap.second.most_ns, 0);
    EXPECT_NO_TAIL(overlap);
    EXPECT_OK(weir_report_check(report, "dropped<=0", &finding));
    EXPECT_TRUE(finding.holds);
    EXPECT_CONTAINS(finding.sentence, "dropped");
    EXPECT_NO_TAIL(finding);
}

WEIR_TEST(Clients, Report)
{
    const char *path = weir_test_path("clients.json");
    struct weir_report_params params = {.struct_size = sizeof params, .bubble_limit = 10};
    weir_report *report;

    make_trace(path);
    ASSERT_OK(weir_report_read(path, &params, &report));
    expect_report(report);
    weir_report_destroy(&report);

    TRY_TAIL(params, weir_report_read(path, &params, &report));
    weir_report_destroy(&report);
}
