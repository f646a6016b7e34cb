// See the header.
#include "tests/plugins/check/rig.h"

char rig_told[8192];

static void keep(void *user, weir_log_level level, const char *source, const char *message)
{
    const size_t used = strlen(rig_told);
    if (level <= WEIR_LOG_INFO && strcmp(source, "check") == 0)
        snprintf(rig_told + used, sizeof rig_told - used, "%s\n", message);
}

void rig_fill(weir_queue *queue, weir_buffer *buffer, size_t offset, size_t size)
{
    EXPECT_OK(weir_queue_fill(queue, buffer, offset, size, "\7", 1));
}

void rig_sync(weir_queue *queue)
{
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
}

void rig_use(weir_buffer *buffer, weir_access access)
{
    void *pointer;
    EXPECT_OK(weir_host_begin(buffer, 0, SIZE, access, &pointer));
    EXPECT_OK(weir_host_end(buffer, 0, SIZE, access));
}

void rig_follow(weir_queue *queue, weir_queue *other)
{
    EXPECT_OK(weir_queue_after(queue, other));
}

void rig_open_with(struct rig *rig, const char *plugins, const char *section)
{
    static const char *const labels[RIG_QUEUES] = {"one", "two", "three"};
    char text[2048];
    snprintf(text, sizeof text, "[check]\n%s\n", section);
    rig_told[0] = '\0';
    weir_log_set(keep, NULL, WEIR_LOG_INFO);
    ASSERT_OK(weir_open(WEIR_PARAMS(weir_open, .backend = "null", .plugins = plugins,
                                    .config_path = "rig.ini", .config_text = *section ? text : ""),
                        &rig->runtime));
    ASSERT_OK(weir_device_open(rig->runtime, NULL, &rig->device));
    for (int i = 0; i < RIG_QUEUES; i++)
        rig->queues[i] = test_queue(rig->device, labels[i]);
    rig->a = test_buffer(rig->device, "a", SIZE, WEIR_PLACE_DEVICE);
    rig->b = test_buffer(rig->device, "b", SIZE, WEIR_PLACE_DEVICE);
    rig->host = test_buffer(rig->device, "host", SIZE, WEIR_PLACE_HOST);
    rig_fill(rig->one, rig->a, 0, SIZE);
    rig_fill(rig->one, rig->b, 0, SIZE);
    rig_fill(rig->one, rig->host, 0, SIZE);
    rig_sync(rig->one);
}

void rig_open(struct rig *rig, const char *section)
{
    rig_open_with(rig, "check", section);
}

void rig_close(struct rig *rig)
{
    for (int i = 0; i < RIG_QUEUES && rig->runtime; i++)
        rig_sync(rig->queues[i]);
    weir_buffer_destroy(&rig->a);
    weir_buffer_destroy(&rig->b);
    weir_buffer_destroy(&rig->host);
    for (int i = 0; i < RIG_QUEUES; i++)
        weir_queue_destroy(&rig->queues[i]);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
    weir_log_set(NULL, NULL, WEIR_LOG_INFO);
}

struct weir_check_finding rig_finding(const struct rig *rig, size_t index)
{
    struct weir_check_finding found = {0};
    EXPECT_OK(weir_check_get(rig->runtime, index, &found));
    return found;
}
