// Opening runtimes with the plugin `perturb`, for its tests. The environment names the backend, and
// its section of the configuration.
#ifndef WEIR_TESTS_PERTURB_RIG_H
#define WEIR_TESTS_PERTURB_RIG_H

#include <stdio.h>
#include <string.h>

#include "tests/plugins/rig.h"

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
    logged[0] = logged_second[0] = '\0';
    weir_log_set(keep, NULL, WEIR_LOG_INFO);
    return rig_open(plugins, section, out_runtime);
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

static inline void begin(struct rig *work, const char *section)
{
    *work = (struct rig){NULL};
    EXPECT_OK(open_with("perturb", section, &work->runtime));
    EXPECT_OK(rig_create(work));
}

#define WORK_TEST(suite, name, section)                                                \
    WEIR_TEST_WITH(suite, name, struct rig, work, (begin(work, section), work->frame), \
                   rig_finish(work))

#endif
