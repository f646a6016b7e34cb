// What kernels print, of drivers with cl_arm_printf; others print it themselves. A driver hands it over in
// pieces, which may end within a line.
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl.h"

// Sends a line, of which there is no more, to the log.
static void tell(const struct ocl_device *device, const char *line)
{
    device->module->host->log(WEIR_LOG_INFO, "printf", line);
}

static void tell_lines(struct ocl_device *device, bool all)
{
    struct weir_long_text *text = &device->prints.text;
    char *line = text->text;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        tell(device, line);
    }
    if (all && *line) {
        tell(device, line);
        line += strlen(line);
    }
    text->used = strlen(line);
    memmove(text->text, line, text->used + 1);
}

void ocl_print(const char *text, size_t size, size_t is_last, void *user)
{
    struct ocl_device *device = user;
    struct ocl_prints *prints = &device->prints;
    pthread_mutex_lock(&prints->lock);
    weir_long_text_add(&prints->text, "%.*s", (int)size, text);
    if (prints->text.failed)
        device->module->host->log(WEIR_LOG_WARNING, "opencl",
                                  "no memory for what a kernel printed");
    else
        tell_lines(device, is_last != 0);
    prints->text.failed = false;
    pthread_mutex_unlock(&prints->lock);
}

void ocl_prints_finish(struct ocl_device *device)
{
    if (device->prints.text.used > 0)
        tell(device, device->prints.text.text);
    free(device->prints.text.text);
    pthread_mutex_destroy(&device->prints.lock);
}
