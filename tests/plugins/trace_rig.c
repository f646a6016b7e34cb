// See the header.
#include "tests/plugins/trace_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/libcuda/image.h"

static char folder[256];

const char *rig_path(const char *name)
{
    static char paths[8][512];
    static size_t next;
    char *path = paths[next++ % 8];
    if (!folder[0]) {
        const char *base = getenv("TEST_TMPDIR");
        snprintf(folder, sizeof folder, "%s/weir_trace_XXXXXX", base ? base : "/tmp");
        if (!mkdtemp(folder))
            weir_test_fail(__FILE__, __LINE__, "no folder for files");
    }
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *rig_section(const char *path, const char *more)
{
    static char text[2048];
    snprintf(text, sizeof text, "file = %s\n%s", path, more);
    return text;
}

weir_status rig_open(const char *section, const char *plugins, weir_runtime **out_runtime)
{
    const char *base = getenv("WEIR_TEST_SECTION");
    char text[2048];
    snprintf(text, sizeof text, "%s\n[trace]\n%s\n", base ? base : "", section);
    return weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini", .config_text = text,
                                 .plugins = plugins),
                     out_runtime);
}

static bool make_objects(struct rig *rig)
{
    struct weir_bundle bundle = conformance_kernels;
    struct weir_queue_params queue = {.struct_size = sizeof queue};
    struct weir_buffer_params buffer = {.struct_size = sizeof buffer, .size = RIG_BYTES};
    struct weir_program_params program = {.struct_size = sizeof program, .bundle = &bundle};
    if (strcmp(weir_runtime_backend(rig->runtime), "cuda") == 0) {
        bundle.images = weir_test_image();
        bundle.image_count = 1;
    }
    if (weir_device_open(rig->runtime, NULL, &rig->device) < 0)
        return false;
    queue.label = "up";
    bool fine = weir_queue_create(rig->device, &queue, &rig->up) == WEIR_OK;
    queue.label = "down";
    fine = fine && weir_queue_create(rig->device, &queue, &rig->down) == WEIR_OK;
    buffer.label = "frame";
    buffer.placement = WEIR_PLACE_HOST;
    fine = fine && weir_buffer_create(rig->device, &buffer, &rig->frame) == WEIR_OK;
    buffer.label = "memory";
    buffer.placement = WEIR_PLACE_DEVICE;
    fine = fine && weir_buffer_create(rig->device, &buffer, &rig->memory) == WEIR_OK;
    fine = fine && weir_program_create(rig->device, &program, &rig->program) == WEIR_OK;
    return fine && weir_kernel_create(rig->program, "spin", &rig->kernel) == WEIR_OK;
}

bool rig_start(struct rig *rig, const char *path)
{
    return rig_start_with(rig, path, "", "trace");
}

bool rig_start_with(struct rig *rig, const char *path, const char *more, const char *plugins)
{
    *rig = (struct rig){NULL};
    if (rig_open(rig_section(path, more), plugins, &rig->runtime) == WEIR_OK && make_objects(rig))
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
    EXPECT_OK(weir_device_close(&rig->device));
    return weir_close(&rig->runtime);
}

void rig_finish(struct rig *rig)
{
    EXPECT_OK(rig_close(rig));
}

struct weir_trace *rig_read(const char *path)
{
    struct weir_trace *trace = NULL;
    char message[512] = "";
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message))
        weir_test_fail(__FILE__, __LINE__, "%s", message);
    return trace;
}

struct weir_trace *rig_end(struct rig *rig, const char *path)
{
    rig_finish(rig);
    return rig_read(path);
}

weir_status rig_count_call(void *user)
{
    ++*(int *)user;
    return WEIR_OK;
}

weir_status rig_pass_gate(void *user)
{
    struct rig_gate *gate = user;
    pthread_mutex_lock(&gate->lock);
    while (!gate->open)
        pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return WEIR_OK;
}

void rig_open_gate(struct rig_gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->opened);
    pthread_mutex_unlock(&gate->lock);
}
