// Every call that the Tarn backend makes fails once in turn, while one program runs that makes
// all of them. Whatever that leads to, nothing crashes or hangs, the error names the call, and
// nothing of the driver's is left.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/libtarn/control.h"
#include "tests/support/test.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)
#define BYTES 4096

static const char library[] = "tests/support/libtarn/libtarn.so.1";

static struct {
    void (*fail)(const char *name, long n, tarn_result result);
    long (*calls)(const char *name);
    long (*live)(void);
    const char *(*name)(size_t i);
} tarn;

struct objects {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queues[2];
    weir_buffer *on_device;
    weir_buffer *on_host;
    weir_buffer *wrapped;
    weir_buffer *pinned_twice; // wraps the HOST buffer
    weir_program *bundled;
    weir_program *built;
    weir_kernel *twice;
    const char *failing;     // the call that is to fail; NULL: none
    long failing_at;         // its number
    bool call_fails_first;   // the host call's failure is the cause of all after it
    struct weir_error cause; // of the failure that recovering clears
};

static unsigned char memory[BYTES];

// ISO C has no conversion from an object pointer to a function pointer.
static bool find(void *handle, const char *name, void *function)
{
    void *address = dlsym(handle, name);
    memcpy(function, &address, sizeof address);
    return address;
}

static bool set_up(void)
{
    void *handle = dlopen(weir_test_runfile(library), RTLD_NOW | RTLD_LOCAL);
    return handle && find(handle, "tarn_test_fail", &tarn.fail) &&
           find(handle, "tarn_test_calls", &tarn.calls) &&
           find(handle, "tarn_test_live", &tarn.live) && find(handle, "tarn_test_name", &tarn.name);
}

static weir_status open_device(struct objects *all)
{
    char text[1024];
    snprintf(text, sizeof text, "[weir]\nbackend = tarn\n[tarn]\nlibrary = %s\ncache = 0\n",
             library);
    const struct weir_open_params params = {
        .struct_size = sizeof params,
        .config_path = "test.ini",
        .config_text = text,
        .module_path = weir_test_runfile("tests/backends/tarn"),
    };
    weir_status status = weir_open(&params, &all->runtime);
    return status == WEIR_OK ? weir_device_open(all->runtime, NULL, &all->device) : status;
}

static weir_status create_queues(struct objects *all)
{
    struct weir_queue_params params = {.struct_size = sizeof params, .label = "first"};
    weir_status status = weir_queue_create(all->device, &params, &all->queues[0]);
    params.label = "timed";
    params.timing = true;
    return status == WEIR_OK ? weir_queue_create(all->device, &params, &all->queues[1]) : status;
}

static weir_status create_buffers(struct objects *all)
{
    struct weir_buffer_params params = {.struct_size = sizeof params, .size = BYTES};
    struct weir_wrap_params wrap = {.struct_size = sizeof wrap, .pointer = memory, .size = BYTES};
    weir_status status = weir_buffer_create(all->device, &params, &all->on_device);
    params.placement = WEIR_PLACE_HOST;
    if (status == WEIR_OK)
        status = weir_buffer_create(all->device, &params, &all->on_host);
    if (status == WEIR_OK)
        status = weir_buffer_wrap(all->device, &wrap, &all->wrapped);
    if (status == WEIR_OK)
        status = weir_host_begin(all->on_host, 0, BYTES, WEIR_ACCESS_READ, &wrap.pointer);
    if (status == WEIR_OK)
        status = weir_host_end(all->on_host, 0, BYTES, WEIR_ACCESS_READ);
    return status == WEIR_OK ? weir_buffer_wrap(all->device, &wrap, &all->pinned_twice) : status;
}

static weir_status create_programs(struct objects *all)
{
    const struct weir_program_params bundled = {.struct_size = sizeof bundled,
                                                .bundle = &conformance_kernels};
    const struct weir_program_params built = {
        .struct_size = sizeof built,
        .source = "__kernel void twice(__global const uint *in, __global uint *out, uint n) {}\n",
    };
    weir_status status = weir_program_create(all->device, &bundled, &all->bundled);
    if (status == WEIR_OK)
        status = weir_program_create(all->device, &built, &all->built);
    return status == WEIR_OK ? weir_kernel_create(all->built, "twice", &all->twice) : status;
}

static weir_status submit(struct objects *all, struct weir_event *out_event)
{
    weir_queue *queue = all->queues[0];
    const struct weir_plane dst = {all->on_host, 0, 128};
    const struct weir_plane src = {all->wrapped, 0, 64};
    weir_status status = weir_queue_fill(queue, all->on_device, 0, BYTES, "ab", 2);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, all->on_host, 0, all->on_device, 0, BYTES);
    if (status == WEIR_OK)
        status = weir_queue_copy_2d(queue, dst, src, 64, 8);
    if (status == WEIR_OK)
        status = weir_queue_copy_3d(queue, (struct weir_volume){all->on_host, 0, 32, 128},
                                    (struct weir_volume){all->wrapped, 0, 16, 64}, 16, 2, 3);
    if (status == WEIR_OK)
        status = weir_queue_fill_2d(queue, dst, 64, 2, "abcd", 4);
    if (status == WEIR_OK)
        status =
            weir_queue_launch(queue, all->twice, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                              weir_in(all->on_device, 0, 64), weir_out(all->on_host, 0, 64), 16u);
    return status == WEIR_OK ? weir_queue_record(queue, out_event) : status;
}

static weir_status wait_for_all(struct objects *all, struct weir_event event)
{
    struct weir_event timed;
    uint64_t time_ns;
    weir_status status = weir_queue_wait(all->queues[1], event);
    if (status == WEIR_OK)
        status = weir_queue_record(all->queues[1], &timed);
    if (status == WEIR_OK)
        status = weir_event_sync(timed, GUARD_NS);
    if (status == WEIR_OK)
        status = weir_event_sync(event, WEIR_FOREVER);
    if (status == WEIR_OK)
        status = weir_event_time_ns(timed, &time_ns);
    weir_program_destroy(&all->bundled); // unloaded when the device is idle
    for (int i = 0; i < 2 && status == WEIR_OK; i++) {
        status = weir_queue_record(all->queues[0], &event);
        if (status == WEIR_OK)
            status = weir_event_sync(event, WEIR_FOREVER);
    }
    return status;
}

static weir_status fail_plainly(void *user)
{
    struct objects *all = user;
    all->call_fails_first = all->failing && tarn.calls(all->failing) < all->failing_at;
    return WEIR_ERROR_INVALID;
}

// Recovering is what finishes a queue.
static weir_status recover(struct objects *all)
{
    weir_queue *queue = all->queues[0];
    weir_status status = weir_queue_host_call(queue, fail_plainly, all);
    if (status == WEIR_OK) {
        EXPECT_INT_LT(weir_queue_sync(queue, WEIR_FOREVER), 0);
        all->cause = *weir_last_error();
    }
    weir_error_set(NULL);
    return status == WEIR_OK ? weir_queue_recover(queue) : status;
}

static weir_status run(struct objects *all)
{
    struct weir_event event;
    weir_status status = open_device(all);
    if (status == WEIR_OK)
        status = create_queues(all);
    if (status == WEIR_OK)
        status = create_buffers(all);
    if (status == WEIR_OK)
        status = create_programs(all);
    if (status == WEIR_OK)
        status = submit(all, &event);
    if (status == WEIR_OK)
        status = wait_for_all(all, event);
    if (status == WEIR_OK)
        status = recover(all);
    return status == WEIR_OK ? weir_device_trim(all->device) : status;
}

static void destroy(struct objects *all)
{
    weir_kernel_destroy(&all->twice);
    weir_program_destroy(&all->built);
    weir_program_destroy(&all->bundled);
    weir_buffer_destroy(&all->pinned_twice);
    weir_buffer_destroy(&all->wrapped);
    weir_buffer_destroy(&all->on_host);
    weir_buffer_destroy(&all->on_device);
    for (int i = 0; i < 2; i++)
        weir_queue_destroy(&all->queues[i]);
    weir_device_close(&all->device);
    weir_close(&all->runtime);
}

static bool is_of_contexts(const char *name)
{
    return strcmp(name, "tarn_context_set_current") == 0 ||
           strcmp(name, "tarn_context_get_current") == 0;
}

// Whether a failure of the call may go unnoticed: of one that gives something back, of one that
// puts the caller's context back, and of questions that have another answer.
static bool may_pass(const char *name)
{
    static const char *const names[] = {
        "tarn_context_destroy",     "tarn_stream_destroy", "tarn_event_destroy",
        "tarn_memory_free",         "tarn_host_free",      "tarn_host_unregister",
        "tarn_module_unload",       "tarn_stream_query",   "tarn_event_query",
        "tarn_context_set_current", "tarn_host_register",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

// The failure is told: by the call that failed, or by the queue until it was recovered. Of a
// queue that has failed already, the first cause is told.
static void expect_told(const struct objects *all, weir_status status,
                        const struct weir_error *error)
{
    const bool asks_why = strcmp(all->failing, "tarn_memory_query") == 0; // registering fails
    if (status < 0)
        EXPECT_STR_EQ(error->native_call, asks_why ? "tarn_host_register" : all->failing);
    else if (all->call_fails_first)
        EXPECT_CONTAINS(all->cause.message, "a host call, failed: the function returned");
    else if (!may_pass(all->failing))
        EXPECT_STR_EQ(all->cause.native_call, all->failing);
}

static void fail_call(const char *name, long n)
{
    struct objects all = {.failing = name, .failing_at = tarn.calls(name) + n};
    const long before = tarn.live();
    weir_test_note("%s, call %ld", name, n);
    weir_error_set(NULL);
    tarn.fail(name, n, TARN_INVALID_VALUE);
    weir_status status = run(&all);
    const struct weir_error error = *weir_last_error();
    if (is_of_contexts(name)) // a destroy cannot do without
        tarn.fail(name, 0, TARN_OK);
    destroy(&all);
    tarn.fail(name, 0, TARN_OK);
    expect_told(&all, status, &error);
    EXPECT_INT_EQ(tarn.live(), before);
    weir_test_note(NULL);
}

WEIR_TEST(TarnFailures, EveryCallFailsOnce)
{
    struct objects all = {.runtime = NULL};
    long calls[64] = {0};
    ASSERT_TRUE(set_up());
    ASSERT_INT_EQ(run(&all), WEIR_OK);
    destroy(&all);
    EXPECT_INT_EQ(tarn.live(), 0);
    for (size_t i = 0; tarn.name(i); i++)
        calls[i] = tarn.calls(tarn.name(i));
    for (size_t i = 0; tarn.name(i); i++) {
        weir_test_note("%s", tarn.name(i));
        EXPECT_INT_GT(calls[i], 0); // a call that is not made would be proved by nothing
        for (long n = 1; n <= calls[i] && n <= 12; n++)
            fail_call(tarn.name(i), n);
    }
}

WEIR_TEST(TarnFailures, MemoryThatRunsOutIsFoundAmongWhatIsKept)
{
    struct objects all = {.runtime = NULL};
    struct weir_buffer_params params = {.struct_size = sizeof params, .size = BYTES};
    ASSERT_TRUE(set_up());
    ASSERT_INT_EQ(open_device(&all), WEIR_OK);
    ASSERT_INT_EQ(weir_buffer_create(all.device, &params, &all.on_device), WEIR_OK);
    weir_buffer_destroy(&all.on_device);
    const long frees = tarn.calls("tarn_memory_free");
    tarn.fail("tarn_memory_allocate", 1, TARN_OUT_OF_MEMORY);
    params.size = 16 * BYTES;
    EXPECT_INT_EQ(weir_buffer_create(all.device, &params, &all.on_device), WEIR_OK);
    EXPECT_INT_EQ(tarn.calls("tarn_memory_free"), frees + 1);
    destroy(&all);
}

WEIR_TEST(TarnFailures, StructuresByValueAreRefused)
{
    struct objects all = {.runtime = NULL};
    const struct weir_program_params params = {
        .struct_size = sizeof params,
        .source = "__kernel void twice(__global uint *out, struct pair p) {}\n",
    };
    ASSERT_TRUE(set_up());
    const long before = tarn.live();
    ASSERT_INT_EQ(open_device(&all), WEIR_OK);
    EXPECT_INT_EQ(weir_program_create(all.device, &params, &all.built), WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(weir_last_error()->message, "does not tell the size of 'pair'");
    destroy(&all);
    EXPECT_INT_EQ(tarn.live(), before);
}

WEIR_TEST(TarnFailures, AMachineWithoutTarn)
{
    weir_runtime *runtime;
    const struct weir_open_params params = {
        .struct_size = sizeof params,
        .config_path = "test.ini",
        .config_text = "[weir]\nbackend = tarn\n[tarn]\nlibrary = libtarn_is_nowhere.so\n",
        .module_path = weir_test_runfile("tests/backends/tarn"),
    };
    EXPECT_INT_LT(weir_open(&params, &runtime), 0);
    EXPECT_CONTAINS(weir_last_error_text(), "libtarn_is_nowhere.so");
    EXPECT_CONTAINS(weir_last_error_text(), "install Tarn's driver");
}
