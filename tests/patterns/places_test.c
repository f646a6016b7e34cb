// A pattern's creation has the line of the program: in an error, and in what a device that cannot be
// closed tells of the queues and buffers that the pattern has made.

#include "patterns/buckets.h"
#include "patterns/chunks.h"
#include "patterns/device_link.h"
#include "patterns/loader.h"
#include "patterns/queue_pool.h"
#include "tests/patterns/rig.h"

#define EXPECT_PLACED(call)                               \
    do {                                                  \
        weir_error_set(NULL);                             \
        EXPECT_INT_LT(call, 0);                           \
        EXPECT_STR_EQ(weir_last_error()->file, __FILE__); \
        EXPECT_INT_EQ(weir_last_error()->line, __LINE__); \
    } while (0)

#define PLACES_TEST(name) \
    WEIR_TEST_BETWEEN(PatternPlaces, name, EXPECT_OK(rig_open(NULL)), rig_close())

static weir_status submit_nothing(void *user, void *slot, void *frame, weir_queue *queue)
{
    return WEIR_OK;
}

static weir_status launch_nothing(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    return WEIR_OK;
}

static weir_status read_nothing(void *user, uint64_t index, void *memory, size_t capacity,
                                size_t *out_size)
{
    *out_size = 0;
    return WEIR_OK;
}

// One error of each; those of the patterns and those of what is in them.
PLACES_TEST(OfErrors)
{
    struct weir_chunks_params chunks = {.struct_size = sizeof chunks};
    struct weir_loader_params loader = {.struct_size = sizeof loader,
                                        .label = "frames",
                                        .batch_bytes = 64,
                                        .source = read_nothing,
                                        .priority = INT32_MAX};
    weir_chunks *made_chunks;
    weir_loader *made_loader;
    weir_pipeline *made_pipeline;
    weir_pipeline_group *made_group;
    weir_queue_pool *made_pool;
    weir_device_link *made_link;
    weir_buckets *made_buckets;
    EXPECT_PLACED(weir_chunks_create(NULL, &made_chunks));
    EXPECT_PLACED(weir_chunks_create(&chunks, &made_chunks));
    EXPECT_PLACED(weir_loader_create(NULL, &made_loader));
    loader.device = rig.device;
    EXPECT_PLACED(weir_loader_create(&loader, &made_loader)); // weir_queue_create()'s
    EXPECT_CONTAINS(weir_last_error()->message, "priority");
    EXPECT_PLACED(weir_pipeline_create(NULL, &made_pipeline));
    EXPECT_PLACED(weir_pipeline_create(WEIR_PARAMS(weir_pipeline, .label = "p"), &made_pipeline));
    const struct weir_pipeline_group_params *wrong = &(struct weir_pipeline_group_params){0};
    EXPECT_PLACED(weir_pipeline_group_create(wrong, &made_group));
    EXPECT_PLACED(weir_queue_pool_create(NULL, &made_pool));
    EXPECT_PLACED(weir_device_link_create(NULL, &made_link));
    EXPECT_PLACED(weir_buckets_create(NULL, &made_buckets));
    EXPECT_PLACED(weir_buckets_create_all(NULL, NULL, 0, &made_buckets));
}

static weir_status fail_with_place(void *user, weir_device *device, uint32_t index, void **out_slot)
{
    weir_buffer *none;
    return weir_buffer_create_at(device, NULL, &none, "slots.c", 7);
}

// A callback's error has its own.
PLACES_TEST(OfACallback)
{
    const struct weir_pipeline_stage stage = {.name = "stage", .submit = submit_nothing};
    weir_pipeline *pipeline;
    EXPECT_INT_LT(weir_pipeline_create(WEIR_PARAMS(weir_pipeline, .device = rig.device,
                                                   .stages = &stage, .stage_count = 1,
                                                   .stage_size = sizeof stage,
                                                   .slot_create = fail_with_place),
                                       &pipeline),
                  0);
    EXPECT_STR_EQ(weir_last_error()->file, "slots.c");
    EXPECT_INT_EQ(weir_last_error()->line, 7);
}

static int made_at;

// Creates on this line.
#define MAKE(call) ASSERT_OK((made_at = __LINE__, (call)))

// The device cannot be closed, and tells where it was made.
static void expect_left(const char *what)
{
    char wanted[256];
    weir_device *device = rig.device;
    snprintf(wanted, sizeof wanted, "%s:%d)", __FILE__, made_at);
    EXPECT_FAILURE(weir_device_close(&device), WEIR_ERROR_INVALID, what);
    EXPECT_CONTAINS(weir_last_error()->message, wanted);
    EXPECT_NOT_CONTAINS(weir_last_error()->message, "created at patterns/");
}

static void expect_left_of_chunks(void)
{
    own_buffer src = test_buffer(rig.device, "src", 4096, WEIR_PLACE_HOST);
    own_buffer in = test_buffer(rig.device, "in", 4096, WEIR_PLACE_DEVICE);
    OWN(weir_chunks_destroy) weir_chunks *chunks = NULL;
    const struct weir_chunks_params params = {.struct_size = sizeof params,
                                              .device = rig.device,
                                              .label = "job",
                                              .element_count = 1024,
                                              .in_bytes = 4,
                                              .src = {src, 0},
                                              .in = {in, 0},
                                              .kernel = launch_nothing};
    MAKE(weir_chunks_create(&params, &chunks));
    expect_left("the queue 'job/");
}

PLACES_TEST(OfWhatIsLeft)
{
    const struct weir_pipeline_stage stage = {.name = "stage", .submit = submit_nothing};
    const struct weir_pipeline_params line = {.struct_size = sizeof line,
                                              .device = rig.device,
                                              .label = "", // none
                                              .stages = &stage,
                                              .stage_count = 1,
                                              .stage_size = sizeof stage};
    const struct weir_loader_params frames = {.struct_size = sizeof frames,
                                              .device = rig.device,
                                              .label = "frames",
                                              .batch_bytes = 64,
                                              .slot_count = 2,
                                              .source = read_nothing};
    weir_pipeline *pipeline;
    weir_loader *loader;
    OWN(weir_queue_pool_destroy) weir_queue_pool *pool = NULL;
    MAKE(weir_pipeline_create(&line, &pipeline));
    expect_left("the queue 'pipeline/stage'");
    ASSERT_OK(weir_pipeline_destroy(&pipeline));
    expect_left_of_chunks();
    MAKE(weir_loader_create(&frames, &loader));
    expect_left("the queue 'frames'");
    expect_left("the buffer 'frames'");
    ASSERT_OK(weir_loader_destroy(&loader));
    MAKE(weir_queue_pool_create(WEIR_PARAMS(weir_queue_pool, .device = rig.device), &pool));
    expect_left("the queue 'pool/normal/0'");
}
