// Native handles, native calls between Weir's own work, and the caller's queues and memory.
#include <pthread.h>

#include "tests/conformance/native.h"

enum {
    WORDS = 1024,
    SIZE = 4 * WORDS,
};

static const struct weir_extent blocks = {WORDS / 32, 1, 1};
static const struct weir_extent block = {32, 1, 1};

// Whether word i of the buffer is `value` + i * `step`, for `count` words from `first`.
static bool holds_words(weir_queue *queue, weir_buffer *buffer, size_t first, size_t count,
                        uint32_t value, uint32_t step)
{
    uint32_t words[WORDS];
    bool same = weir_download(queue, words, buffer, 4 * first, 4 * count) == WEIR_OK;
    for (size_t i = 0; same && i < count; i++)
        same = words[i] == value + step * (uint32_t)i;
    return same;
}

CONFORM(Interop, WithoutNativeHandles)
{
    if (f->limits->native)
        CONFORM_SKIP("this device has native handles");
    own_buffer buffer = conform_device_buffer(f, SIZE);
    weir_queue *wrapped = f->queue;
    weir_buffer *adopted = buffer;
    struct weir_native_device native_device;
    struct weir_native_queue native_queue;
    struct weir_native_buffer native_buffer;

    memset(&native_buffer, 1, sizeof native_buffer);
    EXPECT_REFUSED(weir_device_get_native(f->device, &native_device), WEIR_ERROR_UNSUPPORTED,
                   "native");
    EXPECT_REFUSED(weir_queue_get_native(f->queue, &native_queue), WEIR_ERROR_UNSUPPORTED,
                   "native");
    EXPECT_REFUSED(weir_buffer_get_native(buffer, &native_buffer), WEIR_ERROR_UNSUPPORTED,
                   "native");
    EXPECT_UINT_EQ(native_buffer.address, 0);
    EXPECT_REFUSED(weir_queue_wrap(f->device, WEIR_PARAMS(weir_queue_wrap, .native = f->queue),
                                   &wrapped),
                   WEIR_ERROR_UNSUPPORTED, "native");
    EXPECT_NULL(wrapped);
    EXPECT_REFUSED(weir_buffer_adopt(f->device, WEIR_PARAMS(weir_adopt, .native = 4096, .size = 8),
                                     &adopted),
                   WEIR_ERROR_UNSUPPORTED, "native");
    EXPECT_NULL(adopted);
    EXPECT_REFUSED(weir_queue_native_array(f->queue, own_native_nothing, NULL, NULL, 0),
                   WEIR_ERROR_UNSUPPORTED, "native");
}

CONFORM(Interop, HandlesOut)
{
    CONFORM_NEEDS_NATIVE(f);
    own_queue other = conform_queue(f, "other");
    own_buffer on_device = conform_device_buffer(f, SIZE);
    own_buffer on_host = conform_host_buffer(f, SIZE);
    struct weir_native_device native_device;
    struct weir_native_queue native_queue;
    struct weir_native_queue native_other;
    struct weir_native_buffer native_buffer;

    ASSERT_OK(weir_device_get_native(f->device, &native_device));
    EXPECT_NOT_NULL(native_device.context);
    ASSERT_OK(weir_queue_get_native(f->queue, &native_queue));
    ASSERT_OK(weir_queue_get_native(other, &native_other));
    EXPECT_STR_EQ(native_queue.api, native_device.api);
    EXPECT_PTR_EQ(native_queue.context, native_device.context);
    EXPECT_NOT_NULL(native_queue.queue);
    EXPECT_PTR_NE(native_queue.queue, native_other.queue);
    ASSERT_OK(weir_buffer_get_native(on_device, &native_buffer));
    EXPECT_TRUE(native_buffer.address != 0 || native_buffer.memory != NULL);
    EXPECT_NULL(native_buffer.host);
    ASSERT_OK(weir_buffer_get_native(on_host, &native_buffer));
    ASSERT_NOT_NULL(native_buffer.host);
    *(unsigned char *)native_buffer.host = 9;
    EXPECT_INT_EQ(conform_bytes(on_host)[0], 9);
    EXPECT_REFUSED(weir_device_get_native(NULL, &native_device), WEIR_ERROR_INVALID, "device");
    EXPECT_REFUSED(weir_queue_get_native(f->queue, NULL), WEIR_ERROR_INVALID, "out_native");
    EXPECT_REFUSED(weir_buffer_get_native(NULL, &native_buffer), WEIR_ERROR_INVALID, "buffer");
}

CONFORM(Interop, NativeCallBetweenKernels)
{
    CONFORM_NEEDS_NATIVE(f);
    CONFORM_NEEDS_KERNELS(f);
    own_buffer buffer = conform_device_buffer(f, SIZE);
    own_kernel iota = conform_kernel(f, "iota");
    own_kernel increment = conform_kernel(f, "increment");
    struct native_fill fill = native_fill_of(buffer, WORDS / 2, WORDS / 2, 5);

    ASSERT_OK(weir_queue_launch(f->queue, iota, blocks, block, weir_out(buffer, 0, SIZE), 100u,
                                (unsigned)WORDS));
    ASSERT_OK(
        weir_queue_native(f->queue, native_fill, &fill, weir_out(buffer, SIZE / 2, SIZE / 2)));
    ASSERT_OK(weir_queue_launch(f->queue, increment, blocks, block, weir_inout(buffer, 0, SIZE),
                                1000u, (unsigned)WORDS));
    EXPECT_TRUE(holds_words(f->queue, buffer, 0, WORDS / 2, 1100, 1));
    EXPECT_TRUE(holds_words(f->queue, buffer, WORDS / 2, WORDS / 2, 1005, 0));
    EXPECT_INT_EQ(fill.calls, 1);
}

static weir_status store_native_thread(const struct weir_native_queue *native, void *user)
{
    *(pthread_t *)user = pthread_self();
    return WEIR_OK;
}

CONFORM(Interop, NativeCallRunsAtOnceUnlessHeld)
{
    CONFORM_NEEDS_NATIVE(f);
    pthread_t at_once = pthread_self();
    pthread_t held = pthread_self();

    memset(&at_once, 0, sizeof at_once);
    ASSERT_OK(weir_queue_native_array(f->queue, store_native_thread, &at_once, NULL, 0));
    EXPECT_TRUE(pthread_equal(at_once, pthread_self()));
    own_gate gate = gate_on(f->queue);
    ASSERT_TRUE(gate_await(gate, 1));
    ASSERT_OK(weir_queue_native_array(f->queue, store_native_thread, &held, NULL, 0));
    EXPECT_TRUE(pthread_equal(held, pthread_self()));
    gate_open(gate);
    ASSERT_SYNC(f->queue);
    EXPECT_FALSE(pthread_equal(held, pthread_self()));
}

// The order with a host call before it, arguments that live in this frame, and a buffer
// that is destroyed before the call has run.
CONFORM(Interop, HeldNativeCall)
{
    CONFORM_NEEDS_NATIVE(f);
    weir_buffer *buffer = conform_device_buffer(f, SIZE);
    own_buffer copy = conform_device_buffer(f, SIZE);
    struct native_fill fill = native_fill_of(buffer, 0, WORDS, 77);

    own_gate gate = gate_on(f->queue);
    conform_fill(f->queue, buffer, 1);
    {
        struct weir_argument arguments[] = {weir_out(buffer, 0, SIZE)};
        ASSERT_OK(weir_queue_native_array(f->queue, native_fill, &fill, arguments, 1));
        memset(arguments, 0xff, sizeof arguments);
    }
    ASSERT_OK(weir_queue_copy(f->queue, copy, 0, buffer, 0, SIZE));
    weir_buffer_destroy(&buffer);
    EXPECT_INT_EQ(fill.calls, 0);
    gate_open(gate);
    EXPECT_TRUE(holds_words(f->queue, copy, 0, WORDS, 77, 0));
    EXPECT_INT_EQ(fill.calls, 1);
}

CONFORM(Interop, NativeCallRefusals)
{
    CONFORM_NEEDS_NATIVE(f);
    own_buffer buffer = conform_device_buffer(f, SIZE);
    struct weir_argument argument = weir_in(buffer, 0, SIZE);

    EXPECT_INVALID(weir_queue_native(NULL, own_native_nothing, NULL, argument), "queue");
    EXPECT_INVALID(weir_queue_native(f->queue, NULL, NULL, argument), "function");
    EXPECT_INVALID(weir_queue_native_array(f->queue, own_native_nothing, NULL, NULL, 1),
                   "arguments");
    EXPECT_INVALID(weir_queue_native(f->queue, own_native_nothing, NULL, argument, 3.0f),
                   "argument 1 is no buffer");
    EXPECT_INVALID(weir_queue_native(f->queue, own_native_nothing, NULL, weir_in(NULL, 0, 4)),
                   "argument 0");
    EXPECT_INVALID(weir_queue_native(f->queue, own_native_nothing, NULL, weir_in(buffer, 8, SIZE)),
                   "do not lie in a buffer");
    argument.access = (weir_access)0;
    EXPECT_INVALID(weir_queue_native(f->queue, own_native_nothing, NULL, argument), "access 0");
    ASSERT_SYNC(f->queue); // nothing of that has failed the queue
}

static weir_status fail_with_detail(const struct weir_native_queue *native, void *user)
{
    const struct weir_error detail = {.status = WEIR_ERROR_DEVICE,
                                      .message = "the library's words",
                                      .native_call = "libraryCall",
                                      .native_code = 13};
    return weir_error_set(&detail);
}

static weir_status fail_plainly_natively(const struct weir_native_queue *native, void *user)
{
    return WEIR_ERROR_NOT_FOUND;
}

CONFORM(Interop, FailedNativeCall)
{
    CONFORM_NEEDS_NATIVE(f);

    EXPECT_REFUSED(weir_queue_native_array(f->queue, fail_with_detail, NULL, NULL, 0),
                   WEIR_ERROR_DEVICE, "a native call, failed: the library's words");
    EXPECT_STR_EQ(weir_last_error()->native_call, "libraryCall");
    EXPECT_CONTAINS(weir_last_error()->file, "interop.c");
    EXPECT_REFUSED(weir_queue_sync(f->queue, HANG_GUARD_NS), WEIR_ERROR_DEVICE, "native call");
    ASSERT_OK(weir_queue_recover(f->queue));

    own_gate gate = gate_on(f->queue);
    ASSERT_OK(weir_queue_native_array(f->queue, fail_plainly_natively, NULL, NULL, 0));
    gate_open(gate);
    EXPECT_REFUSED(weir_queue_sync(f->queue, HANG_GUARD_NS), WEIR_ERROR_NOT_FOUND,
                   "the function returned WEIR_ERROR_NOT_FOUND");
    ASSERT_OK(weir_queue_recover(f->queue));
    ASSERT_SYNC(f->queue);
}

struct nested {
    weir_queue *queue;
    weir_buffer *buffer;
    struct weir_event event;
    weir_graph *graph;
    weir_pool *pool;
    weir_buffer *pooled;
    struct weir_event captured; // an event of another queue's capture
};

#define REFUSED_INSIDE(call) \
    EXPECT_REFUSED(call, WEIR_ERROR_INVALID, "a native call may not call Weir")

static weir_status call_weir(const struct weir_native_queue *native, void *user)
{
    struct nested *nested = user;
    struct weir_event event;
    const unsigned char zero = 0;
    uint32_t node;
    weir_graph *graph;
    weir_buffer *buffer;
    REFUSED_INSIDE(weir_queue_record(nested->queue, &event));
    REFUSED_INSIDE(weir_queue_fill(nested->queue, nested->buffer, 0, SIZE, &zero, 1));
    REFUSED_INSIDE(weir_queue_wait(nested->queue, nested->event));
    REFUSED_INSIDE(weir_queue_wait(nested->queue, nested->captured));
    REFUSED_INSIDE(weir_queue_graph(nested->queue, nested->graph));
    REFUSED_INSIDE(weir_pool_allocate(nested->pool, nested->queue, SIZE, &buffer));
    REFUSED_INSIDE(weir_pool_free(nested->queue, &nested->pooled));
    REFUSED_INSIDE(weir_capture_begin(nested->queue));
    REFUSED_INSIDE(weir_capture_node(nested->queue, &node));
    REFUSED_INSIDE(weir_capture_end(nested->queue, NULL, &graph));
    REFUSED_INSIDE(weir_capture_cancel(nested->queue));
    EXPECT_REFUSED(weir_event_sync(nested->event, 0), WEIR_ERROR_INVALID, "may not wait");
    weir_buffer_destroy(&nested->buffer); // the last one: it was called
    return WEIR_OK;
}

// It would wait for itself, and is refused.
CONFORM(Interop, NativeCallMayNotCallItsQueue)
{
    CONFORM_NEEDS_NATIVE(f);
    own_queue other = conform_queue(f, "captures");
    struct nested nested = {.queue = f->queue, .buffer = conform_device_buffer(f, SIZE)};

    own_pool pool = nested.pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    nested.pooled = conform_take(pool, f->queue, SIZE);
    ASSERT_OK(weir_capture_begin(other));
    own_graph graph = nested.graph = conform_end(other);
    ASSERT_OK(weir_capture_begin(other));
    ASSERT_OK(weir_queue_record(other, &nested.captured));
    ASSERT_OK(weir_queue_record(f->queue, &nested.event));
    ASSERT_OK(weir_queue_native_array(f->queue, call_weir, &nested, NULL, 0));
    ASSERT_SYNC(f->queue);
    EXPECT_NULL(nested.buffer);
    ASSERT_OK(weir_capture_cancel(other));
    EXPECT_OK(weir_pool_free(f->queue, &nested.pooled));
}

struct inside {
    weir_queue *other;
    struct weir_event event;
    weir_status sync;
};

static weir_status call_natively_and_sync(void *user)
{
    struct inside *inside = user;
    weir_status status = weir_queue_native_array(inside->other, own_native_nothing, NULL, NULL, 0);
    inside->sync = weir_event_sync(inside->event, 0);
    return status;
}

// A native call within a host call leaves the host call as it was: it still may not wait.
CONFORM(Interop, HostCallAfterANativeCall)
{
    CONFORM_NEEDS_NATIVE(f);
    own_queue other = conform_queue(f, "other");
    struct inside inside = {.other = other};

    ASSERT_OK(weir_queue_record(f->queue, &inside.event));
    ASSERT_SYNC(f->queue);
    ASSERT_OK(weir_queue_host_call(f->queue, call_natively_and_sync, &inside));
    ASSERT_SYNC(f->queue);
    EXPECT_INT_EQ(inside.sync, WEIR_ERROR_INVALID);
    ASSERT_SYNC(other);
}

// Wrapped queues.

static weir_queue *wrap(struct fixture *f, void *native)
{
    weir_queue *queue;
    EXPECT_OK(weir_queue_wrap(f->device,
                              WEIR_PARAMS(weir_queue_wrap, .label = "wrapped", .native = native),
                              &queue));
    return queue;
}

// Work that a native call enqueues is flushed before another queue waits for it.
CONFORM(Interop, WrappedQueue)
{
    CONFORM_NEEDS_NATIVE(f);
    void *native = native_create_queue(f->device, false);
    ASSERT_NOT_NULL(native);
    weir_queue *queue = wrap(f, native);
    own_queue own = conform_queue(f, "own");
    own_buffer buffer = conform_device_buffer(f, SIZE);
    struct native_fill fill = native_fill_of(buffer, 0, WORDS, 21);
    struct weir_native_queue handle;

    ASSERT_NOT_NULL(queue);
    EXPECT_STR_EQ(weir_queue_label(queue), "wrapped");
    ASSERT_OK(weir_queue_get_native(queue, &handle));
    EXPECT_PTR_EQ(handle.queue, native);
    conform_fill(queue, buffer, 3);
    ASSERT_OK(weir_queue_native(queue, native_fill, &fill, weir_out(buffer, 0, SIZE)));
    follow(own, queue);
    EXPECT_TRUE(holds_words(own, buffer, 0, WORDS, 21, 0));
    EXPECT_TRUE(holds_words(queue, buffer, 0, WORDS, 21, 0));
    ASSERT_SYNC(queue);
    weir_queue_destroy(&queue);
    native_destroy_queue(f->device, native);
}

// When the queue is destroyed, Weir does not know yet that its work is done. The native
// queue may still be destroyed, and Weir does not touch it any more.
CONFORM(Interop, NativeQueueIsDestroyedAfterTheWrapped)
{
    CONFORM_NEEDS_NATIVE(f);
    void *native = native_create_queue(f->device, false);
    ASSERT_NOT_NULL(native);
    weir_queue *queue = wrap(f, native);
    own_buffer buffer = conform_device_buffer(f, SIZE);
    weir_buffer *other = conform_device_buffer(f, SIZE);
    const uint32_t value = 9;

    ASSERT_NOT_NULL(queue);
    ASSERT_OK(weir_queue_fill(queue, buffer, 0, SIZE, &value, sizeof value));
    weir_queue_destroy(&queue);
    native_finish_queue(f->device, native);
    native_destroy_queue(f->device, native);
    weir_buffer_destroy(&other);
    own_queue own = conform_queue(f, "own");
    EXPECT_TRUE(holds_words(own, buffer, 0, WORDS, 9, 0));
}

// Two Weir queues on one native queue, with a host call in the first: the second continues,
// since the first is only held inside Weir.
CONFORM(Interop, WrappedQueueOfWeirs)
{
    CONFORM_NEEDS_NATIVE(f);
    own_queue owner = conform_queue(f, "owner");
    own_buffer buffer = conform_device_buffer(f, SIZE);
    struct weir_native_queue native;
    const uint32_t first = 1;
    const uint32_t second = 2;

    ASSERT_OK(weir_queue_get_native(owner, &native));
    own_queue queue = wrap(f, native.queue);
    ASSERT_NOT_NULL(queue);
    own_gate gate = gate_on(owner);
    ASSERT_OK(weir_queue_fill(owner, buffer, 0, SIZE, &first, sizeof first));
    ASSERT_OK(weir_queue_fill(queue, buffer, 0, SIZE, &second, sizeof second));
    EXPECT_TRUE(holds_words(queue, buffer, 0, WORDS, 2, 0));
    gate_open(gate);
    ASSERT_SYNC(owner);
    EXPECT_TRUE(holds_words(queue, buffer, 0, WORDS, 1, 0));
    ASSERT_SYNC(queue);
}

CONFORM(Interop, WrapRefusals)
{
    CONFORM_NEEDS_NATIVE(f);
    struct weir_queue_wrap_params params = {.struct_size = sizeof params, .label = "wrapped"};
    struct weir_native_device native_device;
    weir_queue *queue = NULL;

    ASSERT_OK(weir_device_get_native(f->device, &native_device));
    EXPECT_INVALID(weir_queue_wrap(NULL, &params, &queue), "device");
    EXPECT_INVALID(weir_queue_wrap(f->device, NULL, &queue), "params");
    EXPECT_INVALID(weir_queue_wrap(f->device, &params, NULL), "out_queue");
    EXPECT_INVALID(weir_queue_wrap(f->device, &params, &queue), "native is NULL");
    if (weir_native_is(native_device.api, WEIR_NATIVE_CUDA)) {
        params.native = (void *)(uintptr_t)2; // CU_STREAM_PER_THREAD
        EXPECT_INVALID(weir_queue_wrap(f->device, &params, &queue), "per-thread");
        return;
    }
    params.native = native_create_queue(f->device, false);
    ASSERT_NOT_NULL(params.native);
    params.timing = true;
    if (f->limits->timing_history > 0)
        EXPECT_INVALID(weir_queue_wrap(f->device, &params, &queue), "takes no times");
    EXPECT_NULL(queue);
    native_destroy_queue(f->device, params.native);
    // Some drivers have no such queues.
    params.native = native_create_queue(f->device, true);
    if (!params.native)
        return;
    params.timing = false;
    EXPECT_INVALID(weir_queue_wrap(f->device, &params, &queue), "out of order");
    native_destroy_queue(f->device, params.native);
}

// A second opening of the device is of another context on OpenCL.
CONFORM(Interop, OfAnotherContext)
{
    CONFORM_NEEDS_NATIVE(f);
    struct weir_native_device here;
    struct weir_native_device there;
    struct weir_native_queue native_queue;
    struct weir_native_buffer native_buffer;
    own_device other = NULL;
    ASSERT_OK(weir_device_open(f->runtime,
                               WEIR_PARAMS(weir_device,
                                           .select = weir_device_count(f->runtime) > 1 ? "1" : "0"),
                               &other));
    struct fixture theirs = {.runtime = f->runtime, .device = other};
    own_queue queue = conform_queue(&theirs, "theirs");
    own_buffer buffer = conform_device_buffer(&theirs, SIZE);
    ASSERT_OK(weir_device_get_native(f->device, &here));
    ASSERT_OK(weir_device_get_native(other, &there));
    ASSERT_OK(weir_queue_get_native(queue, &native_queue));
    ASSERT_OK(weir_buffer_get_native(buffer, &native_buffer));

    weir_queue *wrapped;
    weir_buffer *adopted;
    const bool same = here.context == there.context;
    if (!same) {
        EXPECT_INVALID(weir_queue_wrap(f->device,
                                       WEIR_PARAMS(weir_queue_wrap, .native = native_queue.queue),
                                       &wrapped),
                       "another context");
        EXPECT_INVALID(weir_buffer_adopt(f->device,
                                         WEIR_PARAMS(weir_adopt,
                                                     .native =
                                                         native_buffer.address
                                                             ? native_buffer.address
                                                             : (uintptr_t)native_buffer.memory,
                                                     .size = SIZE),
                                         &adopted),
                       weir_native_is(here.api, WEIR_NATIVE_CUDA) ? "is on CUDA device"
                                                                  : "another context");
        EXPECT_NULL(wrapped);
        EXPECT_NULL(adopted);
    }
    if (same)
        CONFORM_SKIP("both openings of the device have one context");
}

// Adopted memory.

static uint64_t native_memory_of(weir_buffer *buffer)
{
    struct weir_native_buffer native;
    EXPECT_OK(weir_buffer_get_native(buffer, &native));
    return native.address ? native.address : (uintptr_t)native.memory;
}

CONFORM(Interop, AdoptedBuffer)
{
    CONFORM_NEEDS_NATIVE(f);
    own_buffer owner = conform_device_buffer(f, SIZE);
    weir_buffer *buffer;

    ASSERT_OK(weir_buffer_adopt(f->device,
                                WEIR_PARAMS(weir_adopt, .label = "adopted",
                                            .native = native_memory_of(owner), .size = SIZE / 2),
                                &buffer));
    EXPECT_UINT_EQ(weir_buffer_size(buffer), SIZE / 2);
    EXPECT_INT_EQ(weir_buffer_placement(buffer), WEIR_PLACE_DEVICE);
    conform_write(f->queue, owner, 1);
    conform_write(f->queue, buffer, 2);
    EXPECT_TRUE(conform_holds(f->queue, owner, 0, SIZE / 2, 2, 0));
    EXPECT_TRUE(conform_holds(f->queue, owner, SIZE / 2, SIZE / 2, 1, SIZE / 2));
    if (conform_kernels_run(f)) {
        own_kernel iota = conform_kernel(f, "iota");
        ASSERT_OK(weir_queue_launch(f->queue, iota, blocks, block, weir_out(buffer, 0, SIZE / 2),
                                    0u, WORDS / 2u));
        ASSERT_OK(weir_queue_launch(f->queue, iota, blocks, block,
                                    weir_out(buffer, SIZE / 4, SIZE / 4), 7000u, WORDS / 4u));
        EXPECT_TRUE(holds_words(f->queue, owner, 0, WORDS / 4, 0, 1));
        EXPECT_TRUE(holds_words(f->queue, owner, WORDS / 4, WORDS / 4, 7000, 1));
        conform_write(f->queue, buffer, 2);
    }
    weir_buffer_destroy(&buffer);
    // The memory stays.
    EXPECT_TRUE(conform_holds(f->queue, owner, 0, SIZE / 2, 2, 0));
}

CONFORM(Interop, AdoptRefusals)
{
    CONFORM_NEEDS_NATIVE(f);
    own_buffer owner = conform_device_buffer(f, SIZE);
    struct weir_adopt_params params = {.struct_size = sizeof params,
                                       .native = native_memory_of(owner),
                                       .size = SIZE};
    struct weir_native_device native;
    weir_buffer *buffer = NULL;

    ASSERT_OK(weir_device_get_native(f->device, &native));
    EXPECT_INVALID(weir_buffer_adopt(NULL, &params, &buffer), "device");
    EXPECT_INVALID(weir_buffer_adopt(f->device, &params, NULL), "out_buffer");
#define NO_ADOPTION(change, part) \
    EXPECT_INVALID_WITH(params, change, weir_buffer_adopt(f->device, &params, &buffer), part)
    NO_ADOPTION(size = 0, "0 bytes");
    NO_ADOPTION(size = (size_t)f->limits->max_buffer_bytes, "were asked for"); // more than is there
    NO_ADOPTION(native = 0, "params->native");
#undef NO_ADOPTION
    EXPECT_NULL(buffer);
    params.native = native_create_memory(f->device, SIZE, true);
    ASSERT_TRUE(params.native != 0);
    EXPECT_INVALID(weir_buffer_adopt(f->device, &params, &buffer),
                   weir_native_is(native.api, WEIR_NATIVE_CUDA) ? "no device memory"
                                                                : "read and write");
    native_destroy_memory(f->device, params.native);
}

// A cl_mem is retained, so its creator may release it at once.
CONFORM(Interop, AdoptedObjectIsRetained)
{
    CONFORM_NEEDS_NATIVE(f);
    struct weir_native_device native;
    ASSERT_OK(weir_device_get_native(f->device, &native));
    if (!weir_native_is(native.api, WEIR_NATIVE_OPENCL))
        CONFORM_SKIP("memory has no references here");
    const struct weir_adopt_params params = {.struct_size = sizeof params,
                                             .native = native_create_memory(f->device, SIZE, false),
                                             .size = SIZE};
    own_buffer buffer = NULL;

    ASSERT_TRUE(params.native != 0);
    ASSERT_OK(weir_buffer_adopt(f->device, &params, &buffer));
    native_destroy_memory(f->device, params.native);
    conform_write(f->queue, buffer, 3);
    EXPECT_TRUE(conform_holds(f->queue, buffer, 0, SIZE, 3, 0));
}
