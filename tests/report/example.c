#include <stdio.h>
#include <weir/report.h>
#include <weir/weir.h>

enum {
    CHUNKS = 8,
    SLOTS = 2,
    COUNT = 1 << 18, // numbers of a chunk
    BYTES = COUNT * sizeof(float)
};

static const char source[] = "__kernel void scale(__global float *numbers)\n"
                             "{\n"
                             "    numbers[get_global_id(0)] *= 2.0f;\n"
                             "}\n";

// Copies each chunk to the device on one queue, and doubles its numbers there on another.
static void work(weir_device *device)
{
    weir_queue *up, *run;
    weir_buffer *host, *slots;
    weir_program *program;
    weir_kernel *scale;
    struct weir_event copied, done[SLOTS];

    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "up"), &up));
    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "run"), &run));
    WEIR_CHECK(weir_buffer_create(
        device, WEIR_PARAMS(weir_buffer, .size = BYTES, .placement = WEIR_PLACE_HOST), &host));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = SLOTS * BYTES), &slots));
    WEIR_CHECK(weir_program_create(device, WEIR_PARAMS(weir_program, .source = source), &program));
    WEIR_CHECK(weir_kernel_create(program, "scale", &scale));
    for (size_t i = 0; i < CHUNKS; i++) {
        const size_t slot = i % SLOTS;
        if (i >= SLOTS)
            WEIR_CHECK(weir_queue_wait(up, done[slot]));
        WEIR_CHECK(weir_queue_copy(up, slots, slot * BYTES, host, 0, BYTES));
        WEIR_CHECK(weir_queue_record(up, &copied));
        WEIR_CHECK(weir_queue_wait(run, copied));
        WEIR_CHECK(weir_queue_launch(run, scale, weir_dim(COUNT / 64, 1, 1), weir_dim(64, 1, 1),
                                     weir_inout(slots, slot * BYTES, BYTES)));
        WEIR_CHECK(weir_queue_record(run, &done[slot]));
    }
    WEIR_CHECK(weir_queue_sync(run, WEIR_FOREVER));
    weir_kernel_destroy(&scale), weir_program_destroy(&program);
    weir_buffer_destroy(&host), weir_buffer_destroy(&slots);
    weir_queue_destroy(&up), weir_queue_destroy(&run);
}

int main(void)
{
    static const char *const conditions[] = {"dropped<=0", "busy queue:run>0",
                                             "overlap copy/compute>=60%"};
    weir_runtime *runtime;
    weir_device *device;
    weir_report *report;
    int failed = 0;

    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    work(device);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime)); // the trace is complete

    WEIR_CHECK(weir_report_read("trace.json", NULL, &report));
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        struct weir_report_finding result;
        WEIR_CHECK(weir_report_check(report, conditions[i], &result));
        printf("%s: %s\n", result.holds ? "holds" : "fails", result.sentence);
        failed |= !result.holds;
    }
    weir_report_destroy(&report);
    return failed;
}
