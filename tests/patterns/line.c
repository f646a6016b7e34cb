// Stages may begin with a slow host call. It holds its queue, so that even the null
// backend, which does everything at submit, is asynchronous.
#include "tests/patterns/line.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/memory.h"

enum {
    WORDS = 1024,
    HALF = WORDS / 2,
    BYTES = WORDS * 4,
    HALF_BYTES = BYTES / 2
};

struct slot {
    weir_buffer *in;
    weir_buffer *whole;
    weir_buffer *left;
    weir_buffer *right;
    weir_buffer *joined;
    weir_buffer *out;
};

struct line line;

static void free_slot(void *user, void *data)
{
    struct slot *slot = data;
    (void)user;
    if (!slot)
        return;
    line.slots_alive--;
    weir_buffer_destroy(&slot->out);
    weir_buffer_destroy(&slot->joined);
    weir_buffer_destroy(&slot->right);
    weir_buffer_destroy(&slot->left);
    weir_buffer_destroy(&slot->whole);
    weir_buffer_destroy(&slot->in);
    free(slot);
}

static weir_status make_slot(void *user, weir_device *device, uint32_t index, void **out_slot)
{
    struct slot *slot = calloc(1, sizeof *slot);
    (void)user, (void)index;
    EXPECT_PTR_EQ(device, rig.device);

    line.slots_alive++;
    weir_status status = rig_buffer(BYTES, WEIR_PLACE_HOST, &slot->in);
    if (status == WEIR_OK)
        status = rig_buffer(BYTES, WEIR_PLACE_DEVICE, &slot->whole);
    if (status == WEIR_OK)
        status = rig_buffer(HALF_BYTES, WEIR_PLACE_DEVICE, &slot->left);
    if (status == WEIR_OK)
        status = rig_buffer(HALF_BYTES, WEIR_PLACE_DEVICE, &slot->right);
    if (status == WEIR_OK)
        status = rig_buffer(BYTES, WEIR_PLACE_DEVICE, &slot->joined);
    if (status == WEIR_OK)
        status = rig_buffer(BYTES, WEIR_PLACE_HOST, &slot->out);
    if (status != WEIR_OK) {
        struct weir_error error = *weir_last_error();
        free_slot(NULL, slot);
        return weir_error_set(&error);
    }
    *out_slot = slot;
    return WEIR_OK;
}

static uint32_t word_of(uint32_t number, uint32_t index)
{
    return number * 65536 + index;
}

static weir_status prepare(void *user, void *data, void *data_frame)
{
    struct slot *slot = data;
    const struct frame *frame = data_frame;
    void *pointer;
    (void)user;

    weir_status status = weir_host_begin(slot->in, 0, BYTES, WEIR_ACCESS_WRITE, &pointer);
    if (status != WEIR_OK)
        return status;
    uint32_t *words = pointer;
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = word_of(frame->number, i);
    return weir_host_end(slot->in, 0, BYTES, WEIR_ACCESS_WRITE);
}

static weir_status fail_host_call(void *user)
{
    (void)user;
    return WEIR_ERROR_IO;
}

static void do_nothing(void *user, weir_status status)
{
    (void)user;
    (void)status;
}

static weir_status begin_stage(weir_queue *queue, const struct frame *frame, unsigned stage)
{
    if (!line.jitter)
        return WEIR_OK;
    return weir_queue_host_call(queue, rig_dawdle, (void *)(uintptr_t)(frame->number * 5 + stage));
}

static weir_status upload(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    (void)user;
    weir_status status = begin_stage(queue, frame, 0);
    if (status == WEIR_OK && ((struct frame *)frame)->gated)
        status = weir_queue_host_call(queue, gate_call, &line.gate);
    if (status != WEIR_OK)
        return status;
    return weir_queue_copy(queue, slot->whole, 0, slot->in, 0, BYTES);
}

static weir_status take_left(void *user, void *data, void *data_frame, weir_queue *queue)
{
    struct slot *slot = data;
    const struct frame *frame = data_frame;
    (void)user;
    weir_status status = begin_stage(queue, frame, 1);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, slot->left, 0, slot->whole, 0, HALF_BYTES);
    if (status == WEIR_OK && frame->fails_in_host_call) {
        line.failing_line = __LINE__ + 1;
        status = weir_queue_host_call(queue, fail_host_call, NULL);
    }
    if (status == WEIR_OK && frame->calls_always)
        status = weir_queue_host_call_always(queue, do_nothing, NULL);
    if (status == WEIR_OK && frame->fails_in_submit)
        return weir_queue_copy(queue, slot->left, 0, slot->whole, 0, BYTES);
    return status;
}

static weir_status take_right(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    (void)user;
    weir_status status = begin_stage(queue, frame, 2);
    if (status != WEIR_OK)
        return status;
    return weir_queue_copy(queue, slot->right, 0, slot->whole, HALF_BYTES, HALF_BYTES);
}

static weir_status join(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    (void)user;
    weir_status status = begin_stage(queue, frame, 3);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, slot->joined, 0, slot->left, 0, HALF_BYTES);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, slot->joined, HALF_BYTES, slot->right, 0, HALF_BYTES);
    return status;
}

static weir_status download(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    (void)user;
    weir_status status = begin_stage(queue, frame, 4);
    if (status != WEIR_OK)
        return status;
    return weir_queue_copy(queue, slot->out, 0, slot->joined, 0, BYTES);
}

static const struct weir_pipeline_stage diamond[] = {
    {.name = "upload", .submit = upload},
    {.name = "left", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = take_left},
    {.name = "right", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = take_right},
    {.name = "join", .depends_on = WEIR_PIPELINE_AFTER(1) | WEIR_PIPELINE_AFTER(2), .submit = join},
    {.name = "download", .depends_on = WEIR_PIPELINE_AFTER(3), .submit = download},
};

static unsigned count_wrong(const struct slot *slot, uint32_t number)
{
    unsigned wrong = 0;
    void *pointer;

    if (weir_host_begin(slot->out, 0, BYTES, WEIR_ACCESS_READ, &pointer) != WEIR_OK)
        return WORDS;
    const uint32_t *words = pointer;
    for (uint32_t i = 0; i < WORDS; i++)
        wrong += words[i] != word_of(number, i);
    WEIR_IGNORE(weir_host_end(slot->out, 0, BYTES, WEIR_ACCESS_READ));
    return wrong;
}

void line_deliver(void *user, void *data_frame, void *data,
                  const struct weir_pipeline_result *result)
{
    const struct frame *frame = data_frame;
    (void)user;
    if (result->status == WEIR_OK) {
        line.wrong_words += count_wrong(data, frame->number);
        if (line.deliver_ns > 0) {
            rig_sleep_ns((long)line.deliver_ns);
            line.early_reuses += count_wrong(data, frame->number) != 0;
        }
    }
    recorder_add(&line.recorder, data_frame, data, result);
}

weir_status line_open(const char *config)
{
    memset(&line, 0, sizeof line);
    recorder_init(&line.recorder);
    gate_init(&line.gate);
    return rig_open_with(config);
}

// The test's build may ask for frames that are prepared by so many threads.
static uint32_t prepare_threads(void)
{
    const char *asked = getenv("WEIR_TEST_PREPARE_THREADS");
    return asked ? (uint32_t)strtoul(asked, NULL, 10) : 0;
}

struct weir_pipeline_params line_params(uint32_t slot_count)
{
    return (struct weir_pipeline_params){
        .struct_size = sizeof(struct weir_pipeline_params),
        .device = rig.device,
        .label = "line",
        .stages = diamond,
        .stage_count = 5,
        .stage_size = sizeof(struct weir_pipeline_stage),
        .slot_count = slot_count,
        .slot_create = make_slot,
        .slot_destroy = free_slot,
        .prepare = prepare,
        .deliver = line_deliver,
        .prepare_threads = prepare_threads(),
    };
}

void line_run(const struct weir_pipeline_params *params, struct frame *frames, uint32_t count)
{
    ASSERT_OK(weir_pipeline_create(params, &line.pipeline));
    for (uint32_t i = 0; i < count; i++)
        ASSERT_OK(weir_pipeline_submit(line.pipeline, &frames[i]));
    ASSERT_OK(weir_pipeline_drain(line.pipeline, WEIR_FOREVER));
}

void line_expect_flat(const struct weir_pipeline_params *params, struct frame *frames,
                      uint32_t count, uint32_t warm)
{
    struct weir_counters before, after;

    line_run(params, frames, warm);
    weir_counters_read(&before);
    const unsigned long allocations = weir_test_allocations();
    for (uint32_t i = warm; i < count; i++)
        ASSERT_OK(weir_pipeline_submit(line.pipeline, &frames[i]));
    ASSERT_OK(weir_pipeline_drain(line.pipeline, WEIR_FOREVER));
    weir_counters_read(&after);
    // Allocations of a driver are in its own library and are not counted.
    EXPECT_UINT_EQ(weir_test_allocations(), allocations);
    EXPECT_UINT_EQ(after.allocations, before.allocations);
    EXPECT_UINT_EQ(after.driver_objects, before.driver_objects);
    EXPECT_UINT_GT(allocations, 0);
}

void line_close(void)
{
    EXPECT_OK(weir_pipeline_destroy(&line.pipeline));
    EXPECT_UINT_EQ(line.slots_alive, 0);
    EXPECT_UINT_EQ(line.wrong_words, 0);
    EXPECT_UINT_EQ(line.early_reuses, 0);
    rig_close();
    recorder_finish(&line.recorder);
    gate_finish(&line.gate);
}

void number_frames(struct frame *frames, uint32_t count)
{
    memset(frames, 0, count * sizeof *frames);
    for (uint32_t i = 0; i < count; i++)
        frames[i].number = i + 1;
}
