// Prints what a copy, a record, a wait and a launch cost on null: "NAME NANOSECONDS" lines. calls.py runs it.
#include <stdio.h>
#include <time.h>

#include <weir/weir.h>

#define COUNT 200000
#define SOURCE "kernel void scale(global const float *src, global float *dst, float factor) {}"

// Times COUNT runs of a statement, and syncs so that nothing piles up.
#define TIME(name, statement)                                  \
    do {                                                       \
        const double begin = now_ns();                         \
        for (int i = 0; i < COUNT; i++)                        \
            statement;                                         \
        printf("%s %.0f\n", name, (now_ns() - begin) / COUNT); \
        WEIR_CHECK(weir_queue_sync(queue, WEIR_FOREVER));      \
    } while (0)

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(void)
{
    const struct weir_open_params open = {.struct_size = sizeof open,
                                          .config_path = "",
                                          .backend = "null"};
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue, *other;
    weir_buffer *a, *b;
    weir_program *program;
    weir_kernel *kernel;
    struct weir_event event;
    WEIR_CHECK(weir_open(&open, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "a"), &queue));
    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "b"), &other));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = 64), &a));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = 64), &b));
    WEIR_CHECK(weir_program_create(device, WEIR_PARAMS(weir_program, .source = SOURCE), &program));
    WEIR_CHECK(weir_kernel_create(program, "scale", &kernel));
    WEIR_CHECK(weir_queue_record(other, &event));

    TIME("copy", WEIR_IGNORE(weir_queue_copy(queue, a, 0, b, 0, 64)));
    TIME("record", WEIR_IGNORE(weir_queue_record(queue, &event)));
    WEIR_CHECK(weir_queue_record(other, &event));
    TIME("wait", WEIR_IGNORE(weir_queue_wait(queue, event)));
    TIME("sync", WEIR_IGNORE(weir_queue_sync(queue, WEIR_FOREVER)));
    TIME("launch",
         WEIR_IGNORE(weir_queue_launch(queue, kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                       weir_whole_in(a), weir_whole_out(b), 2.0f)));
    return 0;
}
