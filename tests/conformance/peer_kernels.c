// Launches on one device that use the memory of another one, and copies of boxes between the two.
#include "tests/conformance/pair.h"

#define N 1024u
#define BYTES ((size_t)4 * N)

static const struct weir_extent blocks = {N / 32, 1, 1};
static const struct weir_extent block = {32, 1, 1};

static weir_buffer *make(struct side *side, int on_host)
{
    return on_host ? conform_host_buffer(&side->fixture, BYTES)
                   : conform_device_buffer(&side->fixture, BYTES);
}

static weir_buffer *make_large(struct side *side, unsigned on_host)
{
    return on_host ? conform_host_buffer(&side->fixture, SIZE)
                   : conform_device_buffer(&side->fixture, SIZE);
}

// Ends the test as skipped if kernels of the first device cannot use the second one's memory.
#define NEEDS_REACH(f, pair)                                                      \
    NEEDS_PEERS(f, pair);                                                         \
    if (!weir_device_can_reach(pair.one.fixture.device, pair.two.fixture.device)) \
    CONFORM_SKIP("kernels do not reach memory of the other device")

// Whether each word of the buffer is its index plus `first`, where kernels run.
static bool counts_from(struct fixture *f, struct side *side, weir_buffer *buffer, uint32_t first)
{
    static uint32_t words[N];
    EXPECT_OK(weir_download(side->queue, words, buffer, 0, BYTES));
    for (uint32_t i = 0; i < N && conform_kernels_run(f); i++)
        if (words[i] != first + i) {
            weir_test_fail(__FILE__, __LINE__, "word %u is %u and should be %u", i, words[i],
                           first + i);
            return false;
        }
    return true;
}

CONFORM(PeerKernels, AreAskedFor)
{
    OPEN_PAIR(f, pair);
    weir_device *one = pair.one.fixture.device;
    weir_device *two = pair.two.fixture.device;

    EXPECT_FALSE(weir_device_can_reach(NULL, one));
    EXPECT_FALSE(weir_device_can_reach(one, NULL));
    EXPECT_TRUE(weir_device_can_reach(one, one));
    if (weir_device_can_reach(one, two))
        EXPECT_TRUE(weir_device_can_peer(one, two));
    if (pair.own)
        EXPECT_FALSE(weir_device_can_reach(one, f->device)); // of another runtime
}

// A kernel writes the other device's memory, which a queue of that device reads, and the reverse.
CONFORM(PeerKernels, ReadAndWrite)
{
    NEEDS_REACH(f, pair);
    own_kernel iota = conform_kernel(&pair.one.fixture, "iota");
    own_kernel increment = conform_kernel(&pair.one.fixture, "increment");
    struct weir_event event;

    for (int on_host = 0; on_host < 2; on_host++) {
        if (on_host && !weir_device_limits(pair.one.fixture.device)->host_in_kernels)
            continue;
        weir_buffer *theirs = make(&pair.two, on_host);
        ASSERT_OK(weir_queue_launch(pair.one.queue, iota, blocks, block, weir_out(theirs, 0, BYTES),
                                    5u, N));
        ASSERT_OK(weir_queue_record(pair.one.queue, &event));
        ASSERT_OK(weir_queue_wait(pair.two.queue, event));
        EXPECT_TRUE(counts_from(f, &pair.two, theirs, 5));
        ASSERT_OK(weir_queue_copy(pair.two.queue, theirs, 0, theirs, BYTES / 2, BYTES / 2));
        ASSERT_OK(weir_queue_copy(pair.two.queue, theirs, BYTES / 2, theirs, 0, BYTES / 2));
        ASSERT_OK(weir_queue_record(pair.two.queue, &event));
        ASSERT_OK(weir_queue_wait(pair.one.queue, event));
        ASSERT_OK(weir_queue_launch(pair.one.queue, increment, weir_dim(N / 64, 1, 1), block,
                                    weir_inout(theirs, 0, BYTES / 2), 100u, N / 2));
        ASSERT_SYNC(pair.one.queue);
        uint32_t words[N];
        ASSERT_OK(weir_download(pair.two.queue, words, theirs, 0, BYTES));
        for (uint32_t i = 0; i < N && conform_kernels_run(f); i++)
            ASSERT_UINT_EQ(words[i], 5 + N / 2 + i % (N / 2) + (i < N / 2 ? 100 : 0));
        weir_buffer_destroy(&theirs);
    }
    weir_kernel_destroy(&iota);
}

// Waits order such launches as they order copies.
CONFORM(PeerKernels, WaitsOrder)
{
    NEEDS_REACH(f, pair);
    own_kernel increment = conform_kernel(&pair.one.fixture, "increment");
    struct weir_event event;

    for (uint32_t round = 1; round <= 50; round++) {
        ASSERT_OK(weir_queue_fill(pair.two.queue, pair.two.memory, 0, SIZE, &round, sizeof round));
        ASSERT_OK(weir_queue_record(pair.two.queue, &event));
        ASSERT_OK(weir_queue_wait(pair.one.queue, event));
        ASSERT_OK(weir_queue_launch(pair.one.queue, increment, blocks, block,
                                    weir_inout(pair.two.memory, 0, BYTES), 1000u, N));
        ASSERT_OK(weir_queue_record(pair.one.queue, &event));
        ASSERT_OK(weir_queue_wait(pair.two.queue, event));
        uint32_t words[2];
        ASSERT_OK(weir_download(pair.two.queue, words, pair.two.memory, BYTES - 4, 8));
        if (conform_kernels_run(f))
            ASSERT_UINT_EQ(words[0], round + 1000);
        ASSERT_UINT_EQ(words[1], round);
    }
}

static void refuse_adopted(struct pair *pair, weir_kernel *iota)
{
    static unsigned char memory[4096];
    own_buffer wrapped = NULL;
    const weir_status status =
        weir_buffer_wrap(pair->two.fixture.device,
                         WEIR_PARAMS(weir_wrap, .pointer = memory, .size = sizeof memory),
                         &wrapped);
    EXPECT_OK(status);
    // Two devices of one GPU have one address for it, and the null backend has one memory.
    if (status == WEIR_OK && weir_queue_launch(pair->one.queue, iota, blocks, block,
                                               weir_out(wrapped, 0, BYTES), 1u, N) < 0)
        EXPECT_CONTAINS(weir_last_error()->message, "wrapped memory of another device");
    EXPECT_SYNC(pair->one.queue);
}

CONFORM(PeerKernels, WhatIsOutOfReachIsRefused)
{
    OPEN_PAIR(f, pair);
    make_objects(&pair.one, "one's");
    make_objects(&pair.two, "two's");
    own_kernel iota = conform_kernel(&pair.one.fixture, "iota");
    weir_buffer *there = pair.two.memory;
    own_graph graph = NULL;

    if (weir_device_can_reach(pair.one.fixture.device, pair.two.fixture.device)) {
        EXPECT_INVALID(weir_queue_launch(pair.one.queue, iota, blocks, block,
                                         weir_out(there, SIZE, BYTES), 1u, N),
                       "do not lie in");
        refuse_adopted(&pair, iota);
    } else {
        EXPECT_INVALID(weir_queue_launch(pair.one.queue, iota, blocks, block,
                                         weir_out(there, 0, BYTES), 1u, N),
                       "it got a buffer of another device");
    }
    // A graph belongs to one device.
    ASSERT_OK(weir_capture_begin(pair.one.queue));
    EXPECT_INVALID(weir_queue_launch(pair.one.queue, iota, blocks, block, weir_out(there, 0, BYTES),
                                     1u, N),
                   "a buffer of another device");
    ASSERT_OK(weir_queue_launch(pair.one.queue, iota, blocks, block,
                                weir_out(pair.one.memory, 0, BYTES), 1u, N));
    ASSERT_OK(weir_capture_end(pair.one.queue, NULL, &graph));
    const struct weir_argument arguments[] = {weir_out(there, 0, BYTES), weir__argument_u32(1),
                                              weir__argument_u32(N)};
    EXPECT_INVALID(weir_graph_set_launch(graph, 0, blocks, block, arguments, 3),
                   "a buffer of another device");
}

// The second device's memory is used by a launch of the first, which is held meanwhile.
CONFORM(PeerKernels, DestroyInUse)
{
    NEEDS_REACH(f, pair);
    own_kernel add = conform_kernel(&pair.one.fixture, "increment");
    own_gate gate = gate_create();
    const uint32_t seven = 7;

    ASSERT_OK(weir_queue_fill(pair.two.queue, pair.two.memory, 0, SIZE, &seven, sizeof seven));
    ASSERT_SYNC(pair.two.queue);
    ASSERT_OK(weir_queue_host_call(pair.one.queue, gate_function, gate));
    ASSERT_OK(weir_queue_launch(pair.one.queue, add, blocks, block,
                                weir_inout(pair.two.memory, 0, BYTES), 1u, N));
    ASSERT_OK(weir_queue_copy(pair.one.queue, pair.one.memory, 0, pair.two.memory, 0, SIZE));
    weir_buffer_destroy(&pair.two.memory);
    for (int i = 0; i < 4; i++) {
        weir_buffer *other = conform_device_buffer(&pair.two.fixture, SIZE);
        conform_write(pair.two.queue, other, 200);
        weir_buffer_destroy(&other);
    }
    EXPECT_OK(weir_device_trim(pair.two.fixture.device));
    gate_open(gate);
    uint32_t words[SIZE / 4];
    ASSERT_OK(weir_download(pair.one.queue, words, pair.one.memory, 0, SIZE));
    EXPECT_UINT_EQ(words[0], conform_kernels_run(f) ? 8 : 7);
    EXPECT_UINT_EQ(words[N - 1], words[0]);
    EXPECT_UINT_EQ(words[N], 7);
}

// Whole rows from slice to slice, and not; from and to every placement.
CONFORM(Peers, Copy3D)
{
    static const size_t slice_pitches[] = {640, 650};
    NEEDS_PEERS(f, pair);
    for (unsigned kind = 0; kind < 8; kind++) {
        weir_buffer *a = make_large(&pair.one, kind & 1);
        weir_buffer *b = make_large(&pair.two, kind & 2);
        const size_t slice = slice_pitches[kind >> 2];
        conform_write(pair.one.queue, a, 1);
        conform_write(pair.two.queue, b, 2);
        ASSERT_OK(weir_queue_copy_3d(pair.one.queue, (struct weir_volume){b, 8, 64, slice},
                                     (struct weir_volume){a, 100, 96, 960}, 40, 9, 8));
        ASSERT_SYNC(pair.one.queue);
        for (size_t z = 0; z < 8; z++)
            for (size_t y = 0; y < 9; y++) {
                const size_t at = 8 + slice * z + 64 * y;
                ASSERT_TRUE(conform_holds(pair.two.queue, b, at, 40, 1, 100 + 960 * z + 96 * y));
                ASSERT_TRUE(conform_holds(pair.two.queue, b, at + 40, 24, 2, at + 40));
            }
        // And back, packed.
        conform_write(pair.two.queue, b, 3);
        ASSERT_OK(weir_queue_copy_3d(pair.one.queue, (struct weir_volume){a, 0, 40, 360},
                                     (struct weir_volume){b, 0, 64, slice}, 40, 9, 8));
        EXPECT_TRUE(conform_holds(pair.one.queue, a, 7 * 360 + 8 * 40, 40, 3, 7 * slice + 8 * 64));
        weir_buffer_destroy(&a);
        weir_buffer_destroy(&b);
    }
}
