// MANAGED buffers, where limits.managed_memory says that there are any.
#include <dlpack/dlpack.h>

#include "tests/conformance/pair.h"
#include "tests/conformance/suite.h"

#define N 2048u
#define BYTES ((size_t)4 * N)

static const struct weir_extent half = {N / 64, 1, 1};
static const struct weir_extent block = {32, 1, 1};

#define NEEDS_MANAGED(f)                                       \
    do {                                                       \
        if (!(f)->limits->managed_memory)                      \
            CONFORM_SKIP("this device has no managed memory"); \
    } while (0)

static weir_buffer *make_managed(struct fixture *f)
{
    return conform_buffer(f, BYTES, WEIR_PLACE_MANAGED);
}

CONFORM(Managed, TheLimitSays)
{
    struct weir_buffer_params params = {.struct_size = sizeof params,
                                        .label = "m",
                                        .size = BYTES,
                                        .placement = WEIR_PLACE_MANAGED};
    weir_buffer *buffer = NULL;
    weir_pool *pool = NULL;

    EXPECT_INVALID(weir_pool_create(f->device,
                                    WEIR_PARAMS(weir_pool, .placement = WEIR_PLACE_MANAGED), &pool),
                   "placement");
    if (f->limits->managed_memory) {
        ASSERT_OK(weir_buffer_create(f->device, &params, &buffer));
        EXPECT_INT_EQ(weir_buffer_placement(buffer), WEIR_PLACE_MANAGED);
        EXPECT_UINT_EQ(weir_buffer_size(buffer), BYTES);
        weir_buffer_destroy(&buffer);
    } else {
        EXPECT_REFUSED(weir_buffer_create(f->device, &params, &buffer), WEIR_ERROR_UNSUPPORTED,
                       "has no MANAGED memory");
        EXPECT_NULL(buffer);
    }
    params.placement = (weir_placement)3;
    EXPECT_INVALID(weir_buffer_create(f->device, &params, &buffer), "placement");
}

// The host writes all words; a kernel adds to the second half, in place.
static void alternate(struct fixture *f, weir_buffer *buffer)
{
    own_kernel increment = conform_kernel(f, "increment");
    const bool runs = conform_kernels_run(f);
    for (uint32_t round = 0; round < 20; round++) {
        uint32_t *words;
        ASSERT_OK(weir_host_whole(buffer, WEIR_ACCESS_READ_WRITE, &words));
        for (uint32_t i = 0; i < N; i++)
            words[i] = round + i;
        ASSERT_OK(weir_host_whole_end(buffer, WEIR_ACCESS_READ_WRITE));
        ASSERT_OK(weir_queue_launch(f->queue, increment, half, block,
                                    weir_inout(buffer, BYTES / 2, BYTES / 2), 1000u, N / 2));
        ASSERT_OK(weir_queue_launch(f->queue, increment, half, block,
                                    weir_inout(buffer, BYTES / 2, BYTES / 2), 1000u, N / 2));
        ASSERT_SYNC(f->queue);
        ASSERT_OK(weir_host_whole(buffer, WEIR_ACCESS_READ, &words));
        for (uint32_t i = 0; i < N; i++)
            ASSERT_UINT_EQ(words[i], round + i + (i >= N / 2 && runs ? 2000 : 0));
        ASSERT_OK(weir_host_whole_end(buffer, WEIR_ACCESS_READ));
    }
}

CONFORM(Managed, HostAndKernels)
{
    NEEDS_MANAGED(f);
    own_buffer buffer = make_managed(f);
    alternate(f, buffer);
}

// The host uses bytes that no work uses, while the device uses others of the same buffer.
CONFORM(Managed, HostWhileTheDeviceWorks)
{
    NEEDS_MANAGED(f);
    own_buffer buffer = make_managed(f);
    own_kernel spin = conform_kernel(f, "spin");
    const uint32_t seven = 7;
    void *pointer;

    ASSERT_OK(weir_host_begin(buffer, BYTES / 2, BYTES / 2, WEIR_ACCESS_WRITE, &pointer));
    memset(pointer, 0, BYTES / 2);
    for (int round = 1; round <= 5; round++) {
        ASSERT_OK(weir_queue_launch(f->queue, spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                    weir_out(buffer, 0, 64), 7u, UINT64_C(1000000)));
        ASSERT_OK(weir_queue_fill(f->queue, buffer, 64, BYTES / 2 - 64, &seven, sizeof seven));
        memset(pointer, round, BYTES / 2);
        for (size_t i = 0; i < BYTES / 2; i += 64)
            ASSERT_UINT_EQ(((unsigned char *)pointer)[i], round);
        ASSERT_SYNC(f->queue);
        EXPECT_UINT_EQ(((unsigned char *)pointer)[BYTES / 2 - 1], round);
    }
    ASSERT_OK(weir_host_end(buffer, BYTES / 2, BYTES / 2, WEIR_ACCESS_WRITE));
    uint32_t words[N];
    ASSERT_OK(weir_download(f->queue, words, buffer, 0, BYTES));
    EXPECT_UINT_EQ(words[N / 2 - 1], 7);
    EXPECT_UINT_EQ(words[N / 2], 0x05050505);
}

// Destroyed while work uses it, and made again.
CONFORM(Managed, ComeAndGo)
{
    NEEDS_MANAGED(f);
    own_buffer result = conform_device_buffer(f, BYTES);

    weir_buffer *buffer = make_managed(f);
    conform_write(f->queue, buffer, 9);
    own_gate gate = gate_on(f->queue);
    ASSERT_OK(weir_queue_copy(f->queue, result, 0, buffer, 0, BYTES));
    weir_buffer_destroy(&buffer);
    own_queue other = conform_queue(f, "other");
    for (int i = 0; i < 8; i++) {
        own_buffer another = make_managed(f);
        conform_write(other, another, 200);
    }
    gate_open(gate);
    EXPECT_TRUE(conform_holds(f->queue, result, 0, BYTES, 9, 0));
    EXPECT_OK(weir_device_trim(f->device));
}

CONFORM(Managed, InGraphs)
{
    NEEDS_MANAGED(f);
    own_buffer managed = make_managed(f);
    own_buffer host = conform_host_buffer(f, BYTES);
    own_buffer device = conform_device_buffer(f, BYTES);

    ASSERT_OK(weir_capture_begin(f->queue));
    ASSERT_OK(weir_queue_copy(f->queue, managed, 0, host, 0, BYTES));
    ASSERT_OK(weir_queue_copy(f->queue, device, 0, managed, 0, BYTES));
    ASSERT_OK(weir_queue_fill(f->queue, managed, 0, BYTES, "\3", 1));
    own_graph graph = conform_end(f->queue);
    conform_write(f->queue, host, 4);
    ASSERT_OK(weir_queue_graph(f->queue, graph));
    EXPECT_TRUE(conform_holds(f->queue, device, 0, BYTES, 4, 0));
    EXPECT_TRUE(conform_is_filled(managed, 3));
    EXPECT_INVALID(weir_graph_set_copy(graph, 0, device, 0, host, 0, BYTES),
                   "is a DEVICE buffer, and the node's was a MANAGED buffer");
}

// Of the other device: in copies and, where kernels reach it, in launches.
CONFORM(Managed, OfAPeer)
{
    NEEDS_MANAGED(f);
    NEEDS_PEERS(f, pair);
    own_kernel increment = conform_kernel(&one->f, "increment");
    own_buffer theirs = make_managed(&two->f);
    const uint32_t seven = 7;
    uint32_t words[N];

    ASSERT_OK(weir_queue_fill(one->queue, one->memory, 0, BYTES, &seven, sizeof seven));
    ASSERT_OK(weir_queue_copy(one->queue, theirs, 0, one->memory, 0, BYTES));
    const bool reaches = weir_device_can_reach(one->f.device, two->f.device);
    if (reaches)
        ASSERT_OK(weir_queue_launch(one->queue, increment, weir_dim(N / 32, 1, 1), block,
                                    weir_inout(theirs, 0, BYTES), 1u, N));
    ASSERT_SYNC(one->queue);
    ASSERT_OK(weir_download(two->queue, words, theirs, 0, BYTES));
    EXPECT_UINT_EQ(words[N - 1], reaches && conform_kernels_run(f) ? 8 : 7);
}

CONFORM(Managed, AsATensor)
{
    NEEDS_MANAGED(f);
    const int64_t shape[] = {N};
    own_buffer buffer = make_managed(f);
    struct DLManagedTensor *exported = NULL;
    const struct weir_tensor tensor = {.struct_size = sizeof tensor,
                                       .buffer = buffer,
                                       .element = WEIR_ELEMENT_UINT,
                                       .bits = 32,
                                       .dimensions = 1,
                                       .shape = shape};
    void *pointer;

    ASSERT_OK(weir_host_begin(buffer, 0, BYTES, WEIR_ACCESS_READ, &pointer));
    ASSERT_OK(weir_dlpack_export(&tensor, &exported));
    EXPECT_PTR_EQ(exported->dl_tensor.data, pointer);
    EXPECT_TRUE(exported->dl_tensor.device.device_type == kDLCPU ||
                exported->dl_tensor.device.device_type == kDLCUDA);
    exported->deleter(exported);
    ASSERT_OK(weir_host_end(buffer, 0, BYTES, WEIR_ACCESS_READ));
}

// HOST buffers as arguments of launches, where limits.host_in_kernels says that they may be.

#define NEEDS_HOST_IN_KERNELS(f)                                            \
    do {                                                                    \
        CONFORM_NEEDS_KERNELS(f);                                           \
        if (!(f)->limits->host_in_kernels)                                  \
            CONFORM_SKIP("kernels of this device cannot use HOST buffers"); \
    } while (0)

// Weir's own, and the program's.
CONFORM(HostMemory, InKernels)
{
    static _Alignas(4096) unsigned char memory[BYTES];
    NEEDS_HOST_IN_KERNELS(f);
    own_buffer buffer = conform_host_buffer(f, BYTES);
    own_buffer wrapped = NULL;
    ASSERT_OK(weir_buffer_wrap(f->device,
                               WEIR_PARAMS(weir_wrap, .pointer = memory, .size = sizeof memory),
                               &wrapped));
    alternate(f, buffer);
    alternate(f, wrapped);
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

    conform_fill(a, host, 0);
    for (uint32_t round = 0; round < 20; round++) {
        ASSERT_OK(weir_queue_launch(a, increment, weir_dim(N / 32, 1, 1), block,
                                    weir_inout(host, 0, BYTES), 1u, N));
        follow(b, a);
        ASSERT_OK(weir_queue_copy(b, device, 0, host, 0, BYTES));
        ASSERT_OK(weir_queue_launch(b, increment, weir_dim(N / 32, 1, 1), block,
                                    weir_inout(device, 0, BYTES), 1u, N));
        ASSERT_OK(weir_queue_copy(b, host, 0, device, 0, BYTES));
        follow(a, b);
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
    own_buffer host = conform_host_buffer(f, BYTES);
    own_kernel increment = conform_kernel(f, "increment");

    ASSERT_OK(weir_capture_begin(f->queue));
    ASSERT_OK(weir_queue_launch(f->queue, increment, weir_dim(N / 32, 1, 1), block,
                                weir_inout(host, 0, BYTES), 3u, N));
    own_graph graph = conform_end(f->queue);
    for (uint32_t round = 0; round < 5; round++) {
        uint32_t *words = (uint32_t *)(void *)conform_bytes(host);
        for (uint32_t i = 0; i < N; i++)
            words[i] = round * i;
        launch_and_sync(f->queue, graph);
        for (uint32_t i = 0; i < N; i++)
            ASSERT_UINT_EQ(words[i], round * i + 3);
    }
}
