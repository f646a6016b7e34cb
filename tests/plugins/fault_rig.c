// See the header.
#include "tests/plugins/fault_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/libcuda/image.h"

static struct {
    pthread_mutex_t lock;
    size_t used;
    char text[8192];
} logged = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int reached;

static void keep_line(void *user, weir_log_level level, const char *source, const char *message)
{
    pthread_mutex_lock(&logged.lock);
    const size_t room = sizeof logged.text - logged.used;
    if (strcmp(source, "fault") == 0 && strlen(message) + 2 < room)
        logged.used += (size_t)snprintf(logged.text + logged.used, room, "%s\n", message);
    pthread_mutex_unlock(&logged.lock);
}

const char *rig_log(void)
{
    return logged.text;
}

const char *rig_section(const char *fault, int at, const char *more)
{
    static char text[512];
    snprintf(text, sizeof text, "fault = %s\nat = %d\n%s", fault, at, more);
    return text;
}

weir_status rig_open(struct rig *rig, const char *section)
{
    const char *base = getenv("WEIR_TEST_SECTION");
    char text[2048];
    *rig = (struct rig){NULL};
    logged.used = 0;
    logged.text[0] = '\0';
    weir_log_set(keep_line, NULL, WEIR_LOG_INFO);
    snprintf(text, sizeof text, "%s\n[fault]\n%s\n", base ? base : "", section);
    return weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini", .config_text = text,
                                 .plugins = "fault"),
                     &rig->runtime);
}

static weir_status create_queue(struct rig *rig, const char *label, weir_queue **out_queue)
{
    return weir_queue_create(rig->device, WEIR_PARAMS(weir_queue, .label = label), out_queue);
}

static weir_status create_buffer(struct rig *rig, const char *label, weir_placement placement,
                                 weir_buffer **out_buffer)
{
    return weir_buffer_create(rig->device,
                              WEIR_PARAMS(weir_buffer, .label = label, .size = RIG_WORDS * 4,
                                          .placement = placement),
                              out_buffer);
}

// It takes images that only name kernels.
static bool has_tests_libcuda(void)
{
    const char *section = getenv("WEIR_TEST_SECTION");
    return section && strstr(section, "libcuda");
}

static weir_status create_program(struct rig *rig)
{
    struct weir_bundle bundle = conformance_kernels;
    if (has_tests_libcuda()) {
        bundle.images = weir_test_image();
        bundle.image_count = 1;
    }
    return weir_program_create(rig->device,
                               WEIR_PARAMS(weir_program, .label = "program", .bundle = &bundle),
                               &rig->program);
}

static weir_status create_graph(struct rig *rig)
{
    const uint32_t nine = 9;
    weir_status status = weir_capture_begin(rig->down);
    if (status == WEIR_OK)
        status = weir_queue_fill(rig->down, rig->memory, 8, 4, &nine, 4);
    return status == WEIR_OK
               ? weir_capture_end(rig->down, WEIR_PARAMS(weir_graph, .label = "graph"), &rig->graph)
               : status;
}

#define TRY(call)                      \
    do {                               \
        const weir_status try_ = call; \
        if (try_ < 0)                  \
            return try_;               \
    } while (0)

weir_status rig_create(struct rig *rig)
{
    TRY(weir_device_open(rig->runtime, NULL, &rig->device));
    TRY(create_queue(rig, "up", &rig->up));
    TRY(create_queue(rig, "down", &rig->down));
    TRY(create_buffer(rig, "frame", WEIR_PLACE_HOST, &rig->frame));
    TRY(create_buffer(rig, "memory", WEIR_PLACE_DEVICE, &rig->memory));
    TRY(create_program(rig));
    TRY(weir_kernel_create(rig->program, "spin", &rig->kernel));
    return create_graph(rig);
}

bool rig_start(struct rig *rig, const char *section)
{
    if (rig_open(rig, section) == WEIR_OK && rig_create(rig) == WEIR_OK)
        return true;
    weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return false;
}

void rig_finish(struct rig *rig)
{
    weir_graph_destroy(&rig->graph);
    weir_kernel_destroy(&rig->kernel);
    weir_program_destroy(&rig->program);
    weir_buffer_destroy(&rig->frame);
    weir_buffer_destroy(&rig->memory);
    weir_queue_destroy(&rig->up);
    weir_queue_destroy(&rig->down);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

static weir_status count_call(void *user)
{
    ++*(int *)user;
    return WEIR_OK;
}

static void *begin(const struct rig *rig, weir_access access)
{
    void *pointer = NULL;
    EXPECT_OK(weir_host_begin(rig->frame, 0, RIG_WORDS * 4, access, &pointer));
    return pointer;
}

static void fill_frame(const struct rig *rig)
{
    uint32_t *words = begin(rig, WEIR_ACCESS_WRITE);
    for (uint32_t i = 0; i < RIG_WORDS; i++)
        words[i] = 100 + i;
    EXPECT_OK(weir_host_end(rig->frame, 0, RIG_WORDS * 4, WEIR_ACCESS_WRITE));
}

// Also says how far it came.
#define STEP(number, call) \
    do {                   \
        reached = number;  \
        TRY(call);         \
    } while (0)

weir_status rig_submit(struct rig *rig)
{
    const uint32_t seven = 7;
    fill_frame(rig);
    STEP(RIG_COPY_IN, weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, RIG_WORDS * 4));
    STEP(RIG_RECORD, weir_queue_record(rig->up, &rig->copied));
    STEP(RIG_WAIT, weir_queue_wait(rig->down, rig->copied));
    STEP(RIG_LAUNCH, weir_queue_launch(rig->down, rig->kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                       weir_out(rig->memory, RIG_RESULTS, 64), 7u, UINT64_C(1000)));
    STEP(RIG_FILL, weir_queue_fill(rig->down, rig->memory, 4, 4, &seven, 4));
    STEP(RIG_CALL, weir_queue_host_call(rig->down, count_call, &rig->calls));
    STEP(RIG_LAUNCH_GRAPH, weir_queue_graph(rig->down, rig->graph));
    STEP(RIG_COPY_OUT, weir_queue_copy(rig->down, rig->frame, 0, rig->memory, 0, 64));
    STEP(RIG_LAST, weir_queue_record(rig->down, &rig->last));
    return WEIR_OK;
}

int rig_reached(void)
{
    return reached;
}

void rig_expect_results(const struct rig *rig)
{
    const uint32_t *words = begin(rig, WEIR_ACCESS_READ);
    EXPECT_UINT_EQ(words[0], 100);
    EXPECT_UINT_EQ(words[1], 7);
    EXPECT_UINT_EQ(words[2], 9);
    EXPECT_UINT_EQ(words[3], 103);
    EXPECT_INT_EQ(rig->calls, 1);
    EXPECT_OK(weir_host_end(rig->frame, 0, RIG_WORDS * 4, WEIR_ACCESS_READ));
}
