// See the header.
#include "tests/plugins/rig.h"

#include <pthread.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/libcuda/image.h"

static struct {
    pthread_mutex_t lock;
    char plugins[64];
    size_t used;
    char text[8192];
} logged = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_line(void *user, weir_log_level level, const char *source, const char *message)
{
    pthread_mutex_lock(&logged.lock);
    const size_t room = sizeof logged.text - logged.used;
    if (strstr(logged.plugins, source) && strlen(message) + 2 < room)
        logged.used += (size_t)snprintf(logged.text + logged.used, room, "%s\n", message);
    pthread_mutex_unlock(&logged.lock);
}

const char *rig_logged(void)
{
    return logged.text;
}

size_t rig_count_logged(const char *text)
{
    size_t count = 0;
    for (const char *at = logged.text; (at = strstr(at, text)); at++)
        count++;
    return count;
}

weir_status rig_open(const char *plugins, const char *lines, weir_runtime **out_runtime)
{
    const char *base = getenv("WEIR_TEST_SECTION");
    char text[2048];
    snprintf(text, sizeof text, "%s\n%s\n", base ? base : "", lines);
    logged.used = 0;
    logged.text[0] = '\0';
    snprintf(logged.plugins, sizeof logged.plugins, "%s", plugins);
    // What the plugin trace tells is for programs that have set no log.
    weir_log_set(keep_line, NULL, strcmp(plugins, "trace") == 0 ? WEIR_LOG_WARNING : WEIR_LOG_INFO);
    return weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini", .config_text = text,
                                 .plugins = plugins),
                     out_runtime);
}

static weir_status create_queue(struct rig *rig, const char *label, weir_queue **out_queue)
{
    return weir_queue_create(rig->device, WEIR_PARAMS(weir_queue, .label = label), out_queue);
}

static weir_status create_buffer(struct rig *rig, const char *label, weir_placement placement,
                                 weir_buffer **out_buffer)
{
    return weir_buffer_create(rig->device,
                              WEIR_PARAMS(weir_buffer, .label = label, .size = RIG_BYTES,
                                          .placement = placement),
                              out_buffer);
}

weir_status rig_create(struct rig *rig)
{
    rig->gate = (struct gate){0};
    RIG_TRY(weir_device_open(rig->runtime, NULL, &rig->device));
    RIG_TRY(create_queue(rig, "up", &rig->up));
    RIG_TRY(create_queue(rig, "down", &rig->down));
    RIG_TRY(create_buffer(rig, "frame", WEIR_PLACE_HOST, &rig->frame));
    return create_buffer(rig, "memory", WEIR_PLACE_DEVICE, &rig->memory);
}

void rig_expect_refused(const char *plugins, const char *lines, weir_status status,
                        const char *message, const char *remedy)
{
    weir_runtime *runtime = NULL;
    weir_test_note("%s", lines);
    EXPECT_FAILURE(rig_open(plugins, lines, &runtime), status, message);
    EXPECT_CONTAINS(weir_last_error()->remedy, remedy);
    EXPECT_NULL(runtime);
    WEIR_IGNORE(weir_close(&runtime));
    weir_test_note(NULL);
}

// It takes images that only name kernels. On a machine with a GPU tests run with its driver.
static bool has_tests_libcuda(void)
{
    const char *section = getenv("WEIR_TEST_SECTION");
    return section && strstr(section, "libcuda");
}

weir_status rig_create_kernel(struct rig *rig)
{
    struct weir_bundle bundle = conformance_kernels;
    if (has_tests_libcuda()) {
        bundle.images = weir_test_image();
        bundle.image_count = 1;
    }
    RIG_TRY(weir_program_create(rig->device,
                                WEIR_PARAMS(weir_program, .label = "program", .bundle = &bundle),
                                &rig->program));
    return weir_kernel_create(rig->program, "spin", &rig->kernel);
}

bool rig_begin(struct rig *rig, const char *plugins, const char *lines)
{
    *rig = (struct rig){NULL};
    if (rig_open(plugins, lines, &rig->runtime) == WEIR_OK && rig_create(rig) == WEIR_OK &&
        rig_create_kernel(rig) == WEIR_OK)
        return true;
    weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return false;
}

weir_status rig_close(struct rig *rig)
{
    weir_kernel_destroy(&rig->kernel);
    weir_program_destroy(&rig->program);
    weir_buffer_destroy(&rig->frame);
    weir_buffer_destroy(&rig->memory);
    weir_queue_destroy(&rig->up);
    weir_queue_destroy(&rig->down);
    weir_trace_destroy(&rig->trace);
    EXPECT_OK(weir_device_close(&rig->device));
    return weir_close(&rig->runtime);
}

void rig_finish(struct rig *rig)
{
    EXPECT_OK(rig_close(rig));
}

const char *rig_trace(const char *path, const char *more)
{
    static char text[2048];
    snprintf(text, sizeof text, "[trace]\nfile = %s\n%s", path, more);
    return text;
}

bool rig_start(struct rig *rig, const char *file, const char *more, const char *plugins)
{
    char path[sizeof rig->path];
    snprintf(path, sizeof path, "%s", *file && *file != '/' ? weir_test_path(file) : file);
    const bool begun = rig_begin(rig, plugins, rig_trace(path, more));
    memcpy(rig->path, path, sizeof path);
    return begun;
}

struct weir_trace *rig_read(const char *path)
{
    struct weir_trace *trace = NULL;
    char message[512] = "";
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message))
        weir_test_fail(__FILE__, __LINE__, "%s", message);
    return trace;
}

const struct weir_trace *rig_end(struct rig *rig)
{
    static const struct weir_trace none = {.meta = {.backend = "", .plugins = ""}};
    rig_finish(rig);
    rig->trace = rig_read(rig->path);
    return rig->trace ? rig->trace : &none;
}

size_t rig_count_spans(const struct weir_trace *trace, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->span_count; i++)
        count += strcmp(trace->spans[i].name, name) == 0;
    return count;
}

weir_status rig_count_call(void *user)
{
    ++*(int *)user;
    return WEIR_OK;
}

weir_status rig_fail_call(void *user)
{
    return WEIR_ERROR_HOST_CALL;
}
