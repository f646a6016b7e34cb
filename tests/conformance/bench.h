// Shared by the tests of launches: a queue, a kernel, and three buffers.
#ifndef WEIR_TESTS_CONFORMANCE_BENCH_H
#define WEIR_TESTS_CONFORMANCE_BENCH_H

#include "tests/conformance/suite.h"

struct bench {
    weir_queue *queue;
    weir_kernel *kernel;
    weir_buffer *a;
    weir_buffer *b;
    weir_buffer *c;
};

static inline struct bench make_bench(struct fixture *f, const char *kernel, size_t bytes)
{
    return (struct bench){
        .queue = conform_queue(f, "q"),
        .kernel = conform_kernel(f, kernel),
        .a = conform_device_buffer(f, bytes),
        .b = conform_device_buffer(f, bytes),
        .c = conform_device_buffer(f, bytes),
    };
}

static inline void finish_bench(struct bench *bench)
{
    EXPECT_SYNC(bench->queue);
    weir_kernel_destroy(&bench->kernel);
    weir_buffer_destroy(&bench->a);
    weir_buffer_destroy(&bench->b);
    weir_buffer_destroy(&bench->c);
    weir_queue_destroy(&bench->queue);
}

#define own_bench OWN(finish_bench) struct bench

// Launches the kernel of the bench `x`, which must succeed, or be refused with a message that holds
// `part`.
#define LAUNCH(x, ...) ASSERT_OK(weir_queue_launch((x)->queue, (x)->kernel, __VA_ARGS__))
#define REFUSES(x, part, ...) \
    EXPECT_INVALID(weir_queue_launch((x)->queue, (x)->kernel, __VA_ARGS__), part)

#endif
