#include "tests/plugins/check/hints_rig.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)
#define ASSERT_OK(call) ASSERT_INT_EQ(call, WEIR_OK)

char told[4096];

static void keep(void *user, weir_log_level level, const char *source, const char *message)
{
    const size_t used = strlen(told);
    (void)user;
    if (level <= WEIR_LOG_INFO && strcmp(source, "check") == 0)
        snprintf(told + used, sizeof told - used, "%s\n", message);
}

weir_queue *make_queue(struct rig *rig, const char *label)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = label};
    weir_queue *queue = NULL;
    EXPECT_OK(weir_queue_create(rig->device, &params, &queue));
    return queue;
}

static weir_buffer *make_buffer(struct rig *rig, const char *label, weir_placement placement)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = label,
                                              .size = SIZE,
                                              .placement = placement};
    weir_buffer *buffer = NULL;
    EXPECT_OK(weir_buffer_create(rig->device, &params, &buffer));
    return buffer;
}

void fill(weir_queue *queue, weir_buffer *buffer, size_t offset, size_t size)
{
    EXPECT_OK(weir_queue_fill(queue, buffer, offset, size, "", 1));
}

void copy(weir_queue *queue, weir_buffer *to, weir_buffer *from)
{
    EXPECT_OK(weir_queue_copy(queue, to, 0, from, 0, SIZE));
}

void use(weir_buffer *buffer, weir_access access)
{
    void *pointer;
    EXPECT_OK(weir_host_begin(buffer, 0, SIZE, access, &pointer));
    EXPECT_OK(weir_host_end(buffer, 0, SIZE, access));
}

void sync(weir_queue *queue)
{
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
}

void sync_at(weir_queue *queue, int line)
{
    EXPECT_OK(weir_queue_sync_at(queue, WEIR_FOREVER, "syncs", line));
}

void wait_for(weir_queue *queue, weir_queue *other, int line)
{
    struct weir_event event;
    EXPECT_OK(weir_queue_record(other, &event));
    EXPECT_OK(weir_queue_wait_at(queue, event, "waits", line));
}

void rig_open(struct rig *rig)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "test.ini",
                                            .config_text = "[weir]\nbackend = null\n"
                                                           "plugins = check\n"
                                                           "[check]\nhints = 1\n"};
    told[0] = '\0';
    weir_log_set(keep, NULL, WEIR_LOG_INFO);
    ASSERT_OK(weir_open(&params, &rig->runtime));
    ASSERT_OK(weir_device_open(rig->runtime, NULL, &rig->device));
    rig->one = make_queue(rig, "one");
    rig->two = make_queue(rig, "two");
    rig->three = make_queue(rig, "three");
    rig->a = make_buffer(rig, "a", WEIR_PLACE_DEVICE);
    rig->b = make_buffer(rig, "b", WEIR_PLACE_DEVICE);
    rig->host = make_buffer(rig, "host", WEIR_PLACE_HOST);
    fill(rig->one, rig->a, 0, SIZE);
    fill(rig->one, rig->b, 0, SIZE);
    fill(rig->one, rig->host, 0, SIZE);
    sync(rig->one);
}

void rig_close(struct rig *rig)
{
    sync(rig->one);
    sync(rig->two);
    sync(rig->three);
    weir_buffer_destroy(&rig->a);
    weir_buffer_destroy(&rig->b);
    weir_buffer_destroy(&rig->host);
    weir_queue_destroy(&rig->one);
    weir_queue_destroy(&rig->two);
    weir_queue_destroy(&rig->three);
    ASSERT_OK(weir_device_close(&rig->device));
    ASSERT_OK(weir_close(&rig->runtime));
    weir_log_set(NULL, NULL, WEIR_LOG_INFO);
}

void expect_silence(struct rig *rig)
{
    rig_close(rig);
    EXPECT_STR_EQ(told, "");
}
