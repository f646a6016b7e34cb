#include <stdio.h>
#include <stdlib.h>
#include <weir/report.h>
#include <weir/weir.h>

enum {
    CHUNKS = 8,
    BYTES = 1 << 20
};

static void check(weir_status status)
{
    if (status < 0)
        fprintf(stderr, "%s\n", weir_last_error_text()), exit(1);
}

// Copies each chunk to the device on one queue and clears it there on another.
static void work(weir_device *device)
{
    const struct weir_queue_params named[] = {
        {.struct_size = sizeof named[0], .label = "up"},
        {.struct_size = sizeof named[1], .label = "clear"},
    };
    const struct weir_buffer_params host_memory = {.struct_size = sizeof host_memory,
                                                   .size = BYTES,
                                                   .placement = WEIR_PLACE_HOST};
    const struct weir_buffer_params device_memory = {.struct_size = sizeof device_memory,
                                                     .size = BYTES,
                                                     .placement = WEIR_PLACE_DEVICE};
    const unsigned char zero = 0;
    weir_queue *up, *clear;
    weir_buffer *from, *to;

    check(weir_queue_create(device, &named[0], &up));
    check(weir_queue_create(device, &named[1], &clear));
    check(weir_buffer_create(device, &host_memory, &from));
    check(weir_buffer_create(device, &device_memory, &to));
    for (int i = 0; i < CHUNKS; i++) {
        struct weir_event copied, cleared;
        check(weir_queue_copy(up, to, 0, from, 0, BYTES));
        check(weir_queue_record(up, &copied));
        check(weir_queue_wait(clear, copied));
        check(weir_queue_fill(clear, to, 0, BYTES, &zero, 1));
        check(weir_queue_record(clear, &cleared));
        check(weir_queue_wait(up, cleared));
    }
    check(weir_queue_sync(clear, WEIR_FOREVER));
    weir_buffer_destroy(&from), weir_buffer_destroy(&to);
    weir_queue_destroy(&up), weir_queue_destroy(&clear);
}

int main(void)
{
    static const char *const conditions[] = {"dropped<=0", "busy queue:clear>0", "idle<=99%"};
    const struct weir_open_params params = {.struct_size = sizeof params, .plugins = "trace"};
    weir_runtime *runtime;
    weir_device *device;
    weir_report *report;
    int failed = 0;

    check(weir_open(&params, &runtime));
    check(weir_device_open(runtime, NULL, &device));
    work(device);
    check(weir_device_close(&device));
    check(weir_close(&runtime)); // the trace is complete

    check(weir_report_read("trace.json", NULL, &report));
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        struct weir_report_finding result;
        check(weir_report_check(report, conditions[i], &result));
        printf("%s: %s\n", result.holds ? "holds" : "fails", result.sentence);
        failed |= !result.holds;
    }
    weir_report_destroy(&report);
    return failed;
}
