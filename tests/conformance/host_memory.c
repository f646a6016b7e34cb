// HOST buffers as arguments of launches, where limits.host_in_kernels says that they may be.
#include <string.h>

#include "tests/conformance/suite.h"

#define N 1024u
#define BYTES ((size_t)4 * N)

static const struct weir_extent half = {N / 64, 1, 1};
static const struct weir_extent block = {32, 1, 1};

#define NEEDS_HOST_IN_KERNELS(f)                                            \
    do {                                                                    \
        CONFORM_NEEDS_KERNELS(f);                                           \
        if (!(f)->limits->host_in_kernels)                                  \
            CONFORM_SKIP("kernels of this device cannot use HOST buffers"); \
    } while (0)

// The host writes all words; a kernel adds to the second half, in place.
static void alternate(struct fixture *f, weir_buffer *buffer)
{
    own_queue queue = conform_queue(f, "q");
    own_kernel increment = conform_kernel(f, "increment");
    for (uint32_t round = 0; round < 20; round++) {
        void *pointer;
        ASSERT_OK(weir_host_begin(buffer, 0, BYTES, WEIR_ACCESS_READ_WRITE, &pointer));
        uint32_t *words = pointer;
        for (uint32_t i = 0; i < N; i++)
            words[i] = round + i;
        ASSERT_OK(weir_host_end(buffer, 0, BYTES, WEIR_ACCESS_READ_WRITE));
        ASSERT_OK(weir_queue_launch(queue, increment, half, block,
                                    weir_inout(buffer, BYTES / 2, BYTES / 2), 1000u, N / 2));
        ASSERT_OK(weir_queue_launch(queue, increment, half, block,
                                    weir_inout(buffer, BYTES / 2, BYTES / 2), 1000u, N / 2));
        ASSERT_SYNC(queue);
        ASSERT_OK(weir_host_begin(buffer, 0, BYTES, WEIR_ACCESS_READ, &pointer));
        words = pointer;
        for (uint32_t i = 0; i < N; i++)
            ASSERT_UINT_EQ(words[i], round + i + (i < N / 2 ? 0 : 2000));
        ASSERT_OK(weir_host_end(buffer, 0, BYTES, WEIR_ACCESS_READ));
    }
}

CONFORM(HostMemory, InKernels)
{
    NEEDS_HOST_IN_KERNELS(f);
    own_buffer buffer = conform_host_buffer(f, BYTES);
    alternate(f, buffer);
}

CONFORM(HostMemory, WrappedInKernels)
{
    static _Alignas(4096) unsigned char memory[BYTES];
    NEEDS_HOST_IN_KERNELS(f);
    weir_buffer *buffer = NULL;
    ASSERT_OK(weir_buffer_wrap(f->device,
                               WEIR_PARAMS(weir_wrap, .pointer = memory, .size = sizeof memory),
                               &buffer));
    alternate(f, buffer);
    weir_buffer_destroy(&buffer);
    EXPECT_OK(weir_device_trim(f->device));
}

// A kernel's result is copied on another queue, and the reverse.
CONFORM(HostMemory, BetweenQueues)
{
    NEEDS_HOST_IN_KERNELS(f);
    own_queue a = conform_queue(f, "a");
    own_queue b = conform_queue(f, "b");
    own_buffer host = conform_host_buffer(f, BYTES);
    own_buffer device = conform_device_buffer(f, BYTES);
    own_kernel increment = conform_kernel(f, "increment");
    const uint32_t zero = 0;
    struct weir_event event;

    ASSERT_OK(weir_queue_fill(a, host, 0, BYTES, &zero, sizeof zero));
    for (uint32_t round = 0; round < 20; round++) {
        ASSERT_OK(weir_queue_launch(a, increment, weir_dim(N / 32, 1, 1), block,
                                    weir_inout(host, 0, BYTES), 1u, N));
        ASSERT_OK(weir_queue_record(a, &event));
        ASSERT_OK(weir_queue_wait(b, event));
        ASSERT_OK(weir_queue_copy(b, device, 0, host, 0, BYTES));
        ASSERT_OK(weir_queue_launch(b, increment, weir_dim(N / 32, 1, 1), block,
                                    weir_inout(device, 0, BYTES), 1u, N));
        ASSERT_OK(weir_queue_copy(b, host, 0, device, 0, BYTES));
        ASSERT_OK(weir_queue_record(b, &event));
        ASSERT_OK(weir_queue_wait(a, event));
    }
    ASSERT_SYNC(a);
    const uint32_t *words = (const uint32_t *)(const void *)conform_bytes(host);
    for (uint32_t i = 0; i < N; i++)
        ASSERT_UINT_EQ(words[i], 40);
}

// What the host writes between launches of a graph is seen by the next one.
CONFORM(HostMemory, InGraphs)
{
    NEEDS_HOST_IN_KERNELS(f);
    own_queue queue = conform_queue(f, "q");
    own_buffer host = conform_host_buffer(f, BYTES);
    own_kernel increment = conform_kernel(f, "increment");
    own_graph graph = NULL;

    ASSERT_OK(weir_capture_begin(queue));
    ASSERT_OK(weir_queue_launch(queue, increment, weir_dim(N / 32, 1, 1), block,
                                weir_inout(host, 0, BYTES), 3u, N));
    ASSERT_OK(weir_capture_end(queue, NULL, &graph));
    for (uint32_t round = 0; round < 5; round++) {
        uint32_t *words = (uint32_t *)(void *)conform_bytes(host);
        for (uint32_t i = 0; i < N; i++)
            words[i] = round * i;
        ASSERT_OK(weir_queue_graph(queue, graph));
        ASSERT_SYNC(queue);
        for (uint32_t i = 0; i < N; i++)
            ASSERT_UINT_EQ(words[i], round * i + 3);
    }
}
