// The frame of the conformance suite. One program contains all its tests; the environment
// selects the backend and the chain: WEIR_BACKEND, WEIR_PLUGINS, WEIR_MODULE_PATH, and the
// driver's own variables for its device.
//
//     CONFORM(Copy, ZeroSize)
//     {
//         EXPECT_OK(weir_queue_copy(f->queue, dst, 0, src, 0, 0));
//         ...
//     }
//
// Each test gets its own runtime and device in `f`, with a queue. When the body returns without a failure all are
// closed, which must succeed: a test that does not destroy all its objects fails.
//
// Nothing here depends on a backend's name. A test is skipped by a limit, or because a probe
// showed that kernels do nothing; nothing else excuses a test.
#ifndef WEIR_TESTS_CONFORMANCE_SUITE_H
#define WEIR_TESTS_CONFORMANCE_SUITE_H

#include <string.h>

#include <weir/weir.h>

#include "tests/support/gate.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

struct fixture {
    weir_runtime *runtime;
    weir_device *device;
    const struct weir_limits *limits;
    weir_queue *queue;     // 'q'
    weir_program *program; // made by the first conform_kernel()
};

struct conform_test {
    struct weir_test test;
    void (*body)(struct fixture *f);
};

void conform_add(struct conform_test *test);

#define CONFORM(suite_, name_)                                                              \
    static void conform_##suite_##_##name_(struct fixture *f);                              \
    __attribute__((constructor)) static void conform_add_##suite_##_##name_(void)           \
    {                                                                                       \
        static struct conform_test test = {                                                 \
            .test = {.suite = #suite_, .name = #name_, .file = __FILE__, .line = __LINE__}, \
            .body = conform_##suite_##_##name_,                                             \
        };                                                                                  \
        conform_add(&test);                                                                 \
    }                                                                                       \
    static void conform_##suite_##_##name_(struct fixture *f)

// A test whose body gets a `type_ *it_` too, which is made before it and destroyed after it.
#define CONFORM_OF(suite_, name_, type_, it_, make_, destroy_)                \
    static void conform_of_##suite_##_##name_(struct fixture *f, type_ *it_); \
    CONFORM(suite_, name_)                                                    \
    {                                                                         \
        OWN(destroy_) type_ it_ = make_;                                      \
        conform_of_##suite_##_##name_(f, &it_);                               \
    }                                                                         \
    static void conform_of_##suite_##_##name_(struct fixture *f, type_ *it_)

// Ends the test as skipped by a limit, which is counted in the summary.
#define CONFORM_SKIP(...)       \
    do {                        \
        conform_skipped();      \
        WEIR_SKIP(__VA_ARGS__); \
    } while (0)
void conform_skipped(void);

// Ends the test as skipped if launches do not change memory.
#define CONFORM_NEEDS_KERNELS(f)                               \
    do {                                                       \
        if (!conform_kernels_run(f))                           \
            CONFORM_SKIP("kernels do nothing on this device"); \
    } while (0)
bool conform_kernels_run(struct fixture *f);

// The same if the device cannot time, and where `status` says that it compiles no source.
#define CONFORM_NEEDS_TIMES(f)                          \
    do {                                                \
        if ((f)->limits->timing_history == 0)           \
            CONFORM_SKIP("limits.timing_history is 0"); \
    } while (0)
#define CONFORM_COMPILED(call)                                          \
    do {                                                                \
        const weir_status conform_got_ = (call);                        \
        if (conform_got_ == WEIR_ERROR_UNSUPPORTED)                     \
            CONFORM_SKIP("this device compiles no source at run time"); \
        ASSERT_OK(conform_got_);                                        \
    } while (0)

// Every wait of the suite ends after this, so that a hang is a failure. It is
// far beyond what a loaded machine needs, and nothing is asserted about time.
#define HANG_GUARD_NS (UINT64_C(120) * 1000000000u)

// The call returns `status_`, and the error's message holds `part`.
#define EXPECT_REFUSED(call, status_, part)                \
    do {                                                   \
        weir_error_set(NULL);                              \
        const weir_status conform_got_ = (call);           \
        EXPECT_INT_EQ(conform_got_, status_);              \
        EXPECT_INT_EQ(weir_last_error()->status, status_); \
        EXPECT_CONTAINS(weir_last_error()->message, part); \
    } while (0)
// The same for an argument that is refused: the error names the line of the call.
#define EXPECT_INVALID(call, part)                        \
    do {                                                  \
        EXPECT_REFUSED(call, WEIR_ERROR_INVALID, part);   \
        EXPECT_STR_EQ(weir_last_error()->file, __FILE__); \
        EXPECT_INT_EQ(weir_last_error()->line, __LINE__); \
    } while (0)

// The same with a member of the structure changed for the call: EXPECT_INVALID_WITH(params, size = 0, call, part).
#define EXPECT_INVALID_WITH(structure, change, call, part) \
    do {                                                   \
        const __typeof__(structure) kept_ = structure;     \
        (structure).change;                                \
        EXPECT_INVALID(call, part);                        \
        (structure) = kept_;                               \
    } while (0)

// Everything submitted to the queue finishes without a failure.
#define EXPECT_SYNC(queue) EXPECT_OK(weir_queue_sync(queue, HANG_GUARD_NS))
#define ASSERT_SYNC(queue) ASSERT_OK(weir_queue_sync(queue, HANG_GUARD_NS))

// Functions that create objects. On error they fail the test and return NULL.
weir_queue *conform_queue(struct fixture *f, const char *label);
weir_queue *conform_timed_queue(struct fixture *f, const char *label);
weir_buffer *conform_buffer(struct fixture *f, size_t size, weir_placement placement);
weir_buffer *conform_device_buffer(struct fixture *f, size_t size);
weir_buffer *conform_host_buffer(struct fixture *f, size_t size);
weir_kernel *conform_kernel(struct fixture *f, const char *name);
weir_pool *conform_pool(struct fixture *f, weir_placement placement, size_t limit_bytes);
weir_buffer *conform_take(weir_pool *pool, weir_queue *queue, size_t size);
// Ends the queue's capture.
weir_graph *conform_end(weir_queue *queue);

#define own_gate OWN(gate_destroy) struct gate *

// The memory of a HOST buffer that no work uses at the moment. The test may use it until the buffer's end:
// in debug mode, which sees that, the access stays open.
unsigned char *conform_bytes(weir_buffer *buffer);

// A value for byte `index` of the data set `seed`.
unsigned char conform_pattern(size_t index, unsigned seed);

// Writes data set `seed` to a buffer of either placement, and compares a range
// of a buffer with it. Both wait.
void conform_write(weir_queue *queue, weir_buffer *buffer, unsigned seed);
bool conform_holds(weir_queue *queue, weir_buffer *buffer, size_t offset, size_t size,
                   unsigned seed, size_t first);

// Fills the buffer with a byte.
void conform_fill(weir_queue *queue, weir_buffer *buffer, unsigned char value);

// Whether each byte of a HOST buffer that no work uses at the moment is `value`.
bool conform_is_filled(weir_buffer *buffer, unsigned char value);

// Runs `function` on `count` threads at once, each with its element of the array `workers`, and
// waits for them. They may use EXPECT_x.
void conform_run_threads(void *(*function)(void *worker), void *workers, size_t worker_size,
                         int count);

// A gate of malloc(), which a host call of a test that has failed may outlive.
struct gate *gate_create(void);
// The queue's next call.
struct gate *gate_on(weir_queue *queue);
void gate_destroy(struct gate **gate); // opens it where the test has failed

// Host calls: increment an atomic_int; fail; hold the queue for 20 ms, and no other queue.
weir_status count_up(void *counter);
weir_status fail_plainly(void *unused);
weir_status sleep_a_little(void *unused);

// Fails the queue by a host call, and waits for that.
static inline void conform_fail(weir_queue *queue)
{
    EXPECT_OK(weir_queue_host_call(queue, fail_plainly, NULL));
    EXPECT_INT_EQ(weir_queue_sync(queue, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
}

// Makes `to` wait for everything that `from` has so far.
static inline void follow(weir_queue *to, weir_queue *from)
{
    EXPECT_OK(weir_queue_after(to, from));
}

static inline void launch_and_sync(weir_queue *queue, weir_graph *graph)
{
    EXPECT_OK(weir_queue_graph(queue, graph));
    EXPECT_SYNC(queue);
}

// For the tests of launches: a queue, a kernel, and three buffers.
struct bench {
    weir_queue *queue;
    weir_kernel *kernel;
    weir_buffer *a;
    weir_buffer *b;
    weir_buffer *c;
    bool runs; // conform_kernels_run()
};

static inline struct bench make_bench(struct fixture *f, const char *kernel, size_t bytes)
{
    return (struct bench){
        .queue = conform_queue(f, "q"),
        .kernel = conform_kernel(f, kernel),
        .a = conform_device_buffer(f, bytes),
        .b = conform_device_buffer(f, bytes),
        .c = conform_device_buffer(f, bytes),
        .runs = conform_kernels_run(f),
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

// A test whose body gets a bench `x` of that kernel, with buffers of BYTES.
#define CONFORM_BENCH(suite_, name_, kernel_) \
    CONFORM_OF(suite_, name_, struct bench, x, make_bench(f, kernel_, BYTES), finish_bench)

// Launches the kernel of the bench `x`, which must succeed, or be refused with a message that holds
// `part`.
#define LAUNCH(x, ...) ASSERT_OK(weir_queue_launch((x)->queue, (x)->kernel, __VA_ARGS__))
#define REFUSES(x, part, ...) \
    EXPECT_INVALID(weir_queue_launch((x)->queue, (x)->kernel, __VA_ARGS__), part)

#endif
