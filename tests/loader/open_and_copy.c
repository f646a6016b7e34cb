// open_and_copy BACKEND [PLUGINS]: opens that chain, copies five bytes through the
// device and back, and prints the load report and what modules log.
#include <stdio.h>

#include <weir/weir.h>

static void print_line(void *user, weir_log_level level, const char *source, const char *message)
{
    printf("%s: %s\n", source, message);
}

static weir_status copy_on(weir_device *device)
{
    const char there[] = "weir";
    char back[sizeof there] = "";
    weir_queue *queue = NULL;
    weir_buffer *buffer = NULL;

    weir_status status =
        weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "queue"), &queue);
    if (status == WEIR_OK)
        status =
            weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = sizeof there), &buffer);
    if (status == WEIR_OK)
        status = weir_upload(queue, buffer, 0, there, sizeof there);
    if (status == WEIR_OK)
        status = weir_download(queue, back, buffer, 0, sizeof back);
    if (status == WEIR_OK)
        printf("copied %s\n", back);
    weir_buffer_destroy(&buffer);
    weir_queue_destroy(&queue);
    return status;
}

static weir_status run(weir_runtime *runtime)
{
    weir_device *device;

    printf("%s", weir_load_report_text(weir_runtime_report(runtime)));
    weir_status status = weir_device_open(runtime, NULL, &device);
    if (status != WEIR_OK)
        return status;
    status = copy_on(device);
    weir_status closed = weir_device_close(&device);
    return status == WEIR_OK ? closed : status;
}

int main(int argc, char **argv)
{
    weir_runtime *runtime;

    weir_log_set(print_line, NULL, WEIR_LOG_DEBUG);
    weir_status status =
        weir_open(WEIR_PARAMS(weir_open, .config_path = "", .backend = argc > 1 ? argv[1] : "null",
                              .plugins = argc > 2 ? argv[2] : ""),
                  &runtime);
    if (status == WEIR_OK) {
        status = run(runtime);
        WEIR_IGNORE(weir_close(&runtime));
    }
    if (status == WEIR_OK)
        return 0;
    fprintf(stderr, "%s\n", weir_last_error_text());
    return 1;
}
