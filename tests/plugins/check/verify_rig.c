#include "tests/plugins/check/verify_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weir/check.h>

#include "tests/plugins/check/verify.h"
#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)
#define ASSERT_OK(call) ASSERT_INT_EQ(call, WEIR_OK)

static struct {
    pthread_mutex_t lock;
    size_t used;
    char text[4096];
} logged = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_line(void *user, weir_log_level level, const char *source, const char *message)
{
    (void)user;
    (void)level;
    pthread_mutex_lock(&logged.lock);
    const size_t room = sizeof logged.text - logged.used;
    if (strcmp(source, "check") == 0 && strlen(message) + 2 < room)
        logged.used += (size_t)snprintf(logged.text + logged.used, room, "%s\n", message);
    pthread_mutex_unlock(&logged.lock);
}

size_t count_notes(const char *text)
{
    size_t count = 0;
    for (const char *at = logged.text; (at = strstr(at, text)); at++)
        count++;
    return count;
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
                                              .size = BYTES,
                                              .placement = placement};
    weir_buffer *buffer = NULL;
    EXPECT_OK(weir_buffer_create(rig->device, &params, &buffer));
    return buffer;
}

static void set_contents(struct rig *rig)
{
    uint32_t words[WORDS];
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i;
    EXPECT_OK(weir_upload(rig->queue, rig->in, 0, words, BYTES));
    EXPECT_OK(weir_upload(rig->queue, rig->host, 0, words, BYTES));
    memset(words, 0, BYTES);
    EXPECT_OK(weir_upload(rig->queue, rig->out, 0, words, BYTES));
}

void rig_open(struct rig *rig, const char *section, const char *kernel)
{
    char text[256];
    *rig = (struct rig){NULL};
    logged.used = 0;
    logged.text[0] = '\0';
    weir_log_set(keep_line, NULL, WEIR_LOG_INFO);
    snprintf(text, sizeof text, "[weir]\nplugins = check\n[check]\n%s\n", section);
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "test.ini",
                                            .config_text = text};
    ASSERT_OK(weir_open(&params, &rig->runtime));
    ASSERT_OK(weir_device_open(rig->runtime, NULL, &rig->device));
    rig->queue = make_queue(rig, "work");
    rig->in = make_buffer(rig, "in", WEIR_PLACE_DEVICE);
    rig->out = make_buffer(rig, "out", WEIR_PLACE_DEVICE);
    rig->host = make_buffer(rig, "host", WEIR_PLACE_HOST);
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .bundle = &verify_kernels};
    ASSERT_OK(weir_program_create(rig->device, &program, &rig->program));
    ASSERT_OK(weir_kernel_create(rig->program, kernel, &rig->kernel));
    set_contents(rig);
}

void rig_close(struct rig *rig)
{
    weir_kernel_destroy(&rig->kernel);
    weir_program_destroy(&rig->program);
    weir_buffer_destroy(&rig->in);
    weir_buffer_destroy(&rig->out);
    weir_buffer_destroy(&rig->host);
    weir_queue_destroy(&rig->queue);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
    weir_log_set(NULL, NULL, WEIR_LOG_WARNING);
}

bool runs_kernels(const struct rig *rig)
{
    return strcmp(weir_runtime_backend(rig->runtime), "null") != 0;
}

struct weir_extent items(size_t count)
{
    return (struct weir_extent){count / 64, 1, 1};
}

void expect_finding(const struct rig *rig, const char *text)
{
    struct weir_check_finding found = {0};
    if (!runs_kernels(rig) || !*text) {
        EXPECT_SIZE_EQ(weir_check_count(rig->runtime), 0);
        EXPECT_SIZE_EQ(count_notes("verify:"), 0);
        return;
    }
    ASSERT_SIZE_EQ(weir_check_count(rig->runtime), 1);
    ASSERT_OK(weir_check_get(rig->runtime, 0, &found));
    EXPECT_STR_EQ(weir_check_kind_name(found.kind), "outside");
    EXPECT_INT_EQ(found.second.line, rig->line);
    EXPECT_UINT_EQ(found.count, 1);
    if (!strstr(found.message, text))
        weir_test_fail(__FILE__, __LINE__, "'%s' is not in '%s'", text, found.message);
}

uint32_t word_of(struct rig *rig, weir_buffer *buffer, size_t index)
{
    uint32_t word = 0;
    EXPECT_OK(weir_download(rig->queue, &word, buffer, index * 4, 4));
    return word;
}
