// Opening runtimes with the plugin `perturb`, for its tests. The environment names the backend, and
// its section of the configuration.
#ifndef WEIR_TESTS_PERTURB_RIG_H
#define WEIR_TESTS_PERTURB_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tests/support/test.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)

// What the plugin logged since a runtime was opened: the line with the seed, and the last other one.
static char logged[1024];
static char logged_second[1024];

static void keep(void *user, weir_log_level level, const char *source, const char *message)
{
    (void)user;
    (void)level;
    if (strcmp(source, "perturb") != 0)
        return;
    if (strncmp(message, "seed ", 5) == 0)
        snprintf(logged, sizeof logged, "%s", message);
    else
        snprintf(logged_second, sizeof logged_second, "%s", message);
}

static inline weir_status open_with(const char *plugins, const char *section,
                                    weir_runtime **out_runtime)
{
    const char *backend = getenv("WEIR_TEST_SECTION");
    char text[1024];
    snprintf(text, sizeof text, "%s\n%s", section, backend ? backend : "");
    logged[0] = logged_second[0] = '\0';
    weir_log_set(keep, NULL, WEIR_LOG_INFO);
    return weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini", .config_text = text,
                                 .plugins = plugins),
                     out_runtime);
}

static inline void open_device(const char *plugins, const char *section, weir_runtime **out_runtime,
                               weir_device **out_device)
{
    *out_device = NULL;
    EXPECT_OK(open_with(plugins, section, out_runtime));
    if (*out_runtime)
        EXPECT_OK(weir_device_open(*out_runtime, NULL, out_device));
}

static inline void close_device(weir_runtime **runtime, weir_device **device)
{
    EXPECT_OK(weir_device_close(device));
    EXPECT_OK(weir_close(runtime));
}

// A device with two queues and 64 bytes of the host's.
struct work {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_queue *other;
    weir_buffer *buffer;
};

static inline void begin(struct work *work, const char *section)
{
    *work = (struct work){NULL};
    open_device("perturb", section, &work->runtime, &work->device);
    EXPECT_OK(weir_queue_create(work->device, NULL, &work->queue));
    EXPECT_OK(weir_queue_create(work->device, NULL, &work->other));
    EXPECT_OK(weir_buffer_create(work->device,
                                 WEIR_PARAMS(weir_buffer, .size = 64, .placement = WEIR_PLACE_HOST),
                                 &work->buffer));
}

static inline void end(struct work *work)
{
    weir_buffer_destroy(&work->buffer);
    weir_queue_destroy(&work->queue);
    weir_queue_destroy(&work->other);
    close_device(&work->runtime, &work->device);
}

#define WORK_TEST(suite, name, section) \
    WEIR_TEST_WITH(suite, name, struct work, work, (begin(work, section), work->buffer), end(work))

#endif
