// Stages may begin with a slow host call. It holds its queue, so that even the null
// backend, which does everything at submit, is asynchronous.
#include "tests/patterns/line.h"

#include "patterns/shared.h"

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

static weir_device *second_of(weir_device *device)
{
    return line.other ? line.other : device;
}

static void free_slot(void *user, void *data)
{
    struct slot *slot = data;
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

    line.slots_alive++;
    slot->in = test_buffer(device, "in", BYTES, WEIR_PLACE_HOST);
    slot->whole = test_buffer(device, "whole", BYTES, WEIR_PLACE_DEVICE);
    slot->left = test_buffer(device, "left", HALF_BYTES, WEIR_PLACE_DEVICE);
    slot->right = test_buffer(device, "right", HALF_BYTES, WEIR_PLACE_DEVICE);
    slot->joined = test_buffer(second_of(device), "joined", BYTES, WEIR_PLACE_DEVICE);
    slot->out = test_buffer(second_of(device), "out", BYTES, WEIR_PLACE_HOST);
    *out_slot = slot;
    return WEIR_OK;
}

static uint32_t first_word(uint32_t number)
{
    return number * 65536;
}

static weir_status prepare(void *user, void *data, void *data_frame)
{
    struct slot *slot = data;
    const struct frame *frame = data_frame;
    rig_write_words(slot->in, 0, WORDS, first_word(frame->number));
    return WEIR_OK;
}

static void do_nothing(void *user, weir_status status)
{
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
    TRY(begin_stage(queue, frame, 0));
    if (((struct frame *)frame)->gated)
        TRY(weir_queue_host_call(queue, gate_pass, &line.gate));
    return weir_queue_copy(queue, slot->whole, 0, slot->in, 0, BYTES);
}

static weir_status take_left(void *user, void *data, void *data_frame, weir_queue *queue)
{
    struct slot *slot = data;
    const struct frame *frame = data_frame;
    TRY(begin_stage(queue, frame, 1));
    TRY(weir_queue_copy(queue, slot->left, 0, slot->whole, 0, HALF_BYTES));
    line.failing_line = __LINE__ + 2;
    if (frame->fails_in_host_call)
        TRY(weir_queue_host_call(queue, rig_fail, NULL));
    if (frame->calls_always)
        TRY(weir_queue_host_call_always(queue, do_nothing, NULL));
    return frame->fails_in_submit ? weir_queue_copy(queue, slot->left, 0, slot->whole, 0, BYTES)
                                  : WEIR_OK;
}

static weir_status take_right(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    TRY(begin_stage(queue, frame, 2));
    return weir_queue_copy(queue, slot->right, 0, slot->whole, HALF_BYTES, HALF_BYTES);
}

static weir_status take(weir_queue *queue, weir_buffer *dst, size_t offset, weir_buffer *src)
{
    return line.link ? weir_device_link_copy(line.link, queue, dst, offset, src, 0, HALF_BYTES)
                     : weir_queue_copy(queue, dst, offset, src, 0, HALF_BYTES);
}

static weir_status join(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    TRY(begin_stage(queue, frame, 3));
    TRY(take(queue, slot->joined, 0, slot->left));
    return take(queue, slot->joined, HALF_BYTES, slot->right);
}

static weir_status download(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    TRY(begin_stage(queue, frame, 4));
    return weir_queue_copy(queue, slot->out, 0, slot->joined, 0, BYTES);
}

static struct weir_pipeline_stage diamond[] = {
    {.name = "upload", .submit = upload},
    {.name = "left", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = take_left},
    {.name = "right", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = take_right},
    {.name = "join", .depends_on = WEIR_PIPELINE_AFTER(1) | WEIR_PIPELINE_AFTER(2), .submit = join},
    {.name = "download", .depends_on = WEIR_PIPELINE_AFTER(3), .submit = download},
};

static unsigned count_wrong(const struct slot *slot, uint32_t number)
{
    return (unsigned)rig_wrong_words(slot->out, 0, WORDS, first_word(number));
}

void line_deliver(void *user, void *data_frame, void *data,
                  const struct weir_pipeline_result *result)
{
    const struct frame *frame = data_frame;
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
    for (uint32_t i = 0; i < FRAMES_MAX; i++)
        line.frames[i].number = i + 1;
    recorder_init(&line.recorder);
    return rig_open(config);
}

// The test's build may ask for frames that are prepared by so many threads.
static uint32_t prepare_threads(void)
{
    const char *asked = getenv("WEIR_TEST_PREPARE_THREADS");
    return asked ? (uint32_t)strtoul(asked, NULL, 10) : 0;
}

struct weir_pipeline_params line_params(uint32_t slot_count)
{
    return line_params_on(rig.device, slot_count);
}

struct weir_pipeline_params line_params_on(weir_device *device, uint32_t slot_count)
{
    diamond[3].device = diamond[4].device = line.other;
    return (struct weir_pipeline_params){
        .struct_size = sizeof(struct weir_pipeline_params),
        .device = device,
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

weir_status line_create(struct weir_pipeline_params params)
{
    return weir_pipeline_create(&params, &line.pipeline);
}

void line_submit(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        ASSERT_OK(weir_pipeline_submit(line.pipeline, &line.frames[i]));
}

void line_drain(void)
{
    ASSERT_OK(weir_pipeline_drain(line.pipeline, WEIR_FOREVER));
}

void line_run(struct weir_pipeline_params params, uint32_t count)
{
    ASSERT_OK(line_create(params));
    line_submit(0, count);
    line_drain();
}

void line_expect_flat(struct weir_pipeline_params params, uint32_t count, uint32_t warm)
{
    line_run(params, warm);
    const struct rig_flat flat = rig_flat_begin();
    line_submit(warm, count - warm);
    line_drain();
    rig_flat_expect(&flat);
}

void line_expect_order(uint32_t count)
{
    ASSERT_UINT_EQ(recorder_count(&line.recorder), count);
    for (uint32_t i = 0; i < count; i++) {
        weir_test_note("delivery %u", i);
        EXPECT_PTR_EQ(recorder_at(&line.recorder, i)->frame, &line.frames[i]);
        if (!line.in_group)
            EXPECT_UINT_EQ(recorder_at(&line.recorder, i)->sequence, i);
    }
    weir_test_note(NULL);
}

void line_expect_ok(uint32_t count)
{
    line_expect_order(count);
    EXPECT_UINT_EQ(recorder_count_of(&line.recorder, WEIR_OK), count);
}

void line_close(void)
{
    EXPECT_OK(weir_pipeline_destroy(&line.pipeline));
    weir_device_link_destroy(&line.link);
    EXPECT_OK(weir_device_close(&line.other));
    EXPECT_UINT_EQ(line.slots_alive, 0);
    EXPECT_UINT_EQ(line.wrong_words, 0);
    EXPECT_UINT_EQ(line.early_reuses, 0);
    rig_close();
}
