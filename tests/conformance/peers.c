// Copies between two devices of a runtime, and what each may do while the other still
// uses its memory.
#include <pthread.h>

#include "tests/conformance/pair.h"

#define N 1024u
#define BYTES ((size_t)4 * N)

static const struct weir_extent blocks = {N / 32, 1, 1};
static const struct weir_extent block = {32, 1, 1};

static weir_buffer *make(struct side *side, unsigned on_host)
{
    return on_host ? conform_host_buffer(&side->f, SIZE) : conform_device_buffer(&side->f, SIZE);
}

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

CONFORM(Peers, AreAskedFor)
{
    OPEN_PAIR(f, pair);
    weir_device *first = one->f.device;
    weir_device *second = two->f.device;

    EXPECT_FALSE(weir_device_can_peer(NULL, first));
    EXPECT_FALSE(weir_device_can_peer(first, NULL));
    EXPECT_TRUE(weir_device_can_peer(first, first));
    EXPECT_INT_EQ(weir_device_can_peer(first, second), weir_device_can_peer(second, first));
    EXPECT_FALSE(weir_device_can_reach(NULL, first));
    EXPECT_FALSE(weir_device_can_reach(first, NULL));
    EXPECT_TRUE(weir_device_can_reach(first, first));
    if (weir_device_can_reach(first, second))
        EXPECT_TRUE(weir_device_can_peer(first, second));
    if (pair.own) { // of another runtime
        EXPECT_FALSE(weir_device_can_peer(first, f->device));
        EXPECT_FALSE(weir_device_can_reach(first, f->device));
    }
}

CONFORM(Peers, WhatIsNoPeerIsRefused)
{
    OPEN_PAIR(f, pair);
    weir_queue *queue = one->queue;
    weir_buffer *here = one->memory;
    weir_buffer *there = two->memory;
    own_buffer there_too = conform_device_buffer(&two->f, SIZE);
    const bool peers = are_peers(&pair);
    const unsigned char zero = 0;
    char bytes[16] = {0};

    if (!peers)
        EXPECT_INVALID(weir_queue_copy(queue, here, 0, there, 0, SIZE), "src belongs to device");
    EXPECT_INVALID(weir_queue_copy(queue, there_too, 0, there, 0, SIZE),
                   "neither buffer of the copy belongs to device");
    EXPECT_INVALID(weir_queue_copy_2d(queue, (struct weir_plane){there_too, 0, 64},
                                      (struct weir_plane){there, 0, 64}, 64, 2),
                   "neither buffer of the copy belongs to device");
    EXPECT_INVALID(weir_queue_fill(queue, there, 0, SIZE, &zero, 1), "dst belongs to device");
    EXPECT_INVALID(weir_upload(queue, there, 0, bytes, sizeof bytes), "another device");
    if (peers) {
        EXPECT_INVALID(weir_queue_copy(queue, here, 0, there, 8, SIZE), "src");
        EXPECT_INVALID(weir_queue_copy(queue, there, SIZE, here, 0, 1), "dst");
    }
    ASSERT_SYNC(queue);
}

// A wait and a failure cross devices.
CONFORM(Device, TwoDevices)
{
    OPEN_PAIR(f, pair);
    own_kernel kernel = conform_kernel(&two->f, "iota");

    EXPECT_INVALID(weir_queue_launch(one->queue, kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                     weir_out(one->memory, 0, SIZE), 0u, 1u),
                   "device");
    own_gate gate = gate_on(one->queue);
    const struct weir_event event = test_record(one->queue);
    ASSERT_OK(weir_queue_wait(two->queue, event));
    ASSERT_OK(weir_queue_fill(two->queue, two->memory, 0, SIZE, "x", 1));
    struct weir_event end = test_record(two->queue);
    EXPECT_INT_EQ(weir_event_sync(end, WEIR_MS(5)), WEIR_TIMEOUT);
    gate_open(gate);
    EXPECT_OK(weir_event_sync(end, HANG_GUARD_NS));
    EXPECT_OK(weir_event_query(event));

    own_gate second = gate_on(one->queue);
    ASSERT_OK(weir_queue_host_call(one->queue, fail_plainly, NULL));
    follow(two->queue, one->queue);
    end = test_record(two->queue);
    gate_open(second);
    EXPECT_REFUSED(weir_event_sync(end, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL, "host call");
}

// Both directions, from both sides, of all placements.
CONFORM(Peers, CopyBothWays)
{
    NEEDS_PEERS(f, pair);
    for (int side = 0; side < 2; side++) {
        struct side *near = side ? two : one;
        struct side *far = side ? one : two;
        for (unsigned kind = 0; kind < 4; kind++) {
            own_buffer a = make(near, kind & 1);
            own_buffer b = make(far, kind & 2);
            conform_write(near->queue, a, kind);
            ASSERT_OK(weir_queue_copy(near->queue, b, 16, a, 32, SIZE - 64));
            ASSERT_SYNC(near->queue);
            EXPECT_TRUE(conform_holds(far->queue, b, 16, SIZE - 64, kind, 32));
            conform_write(far->queue, b, kind + 4);
            ASSERT_OK(weir_queue_copy(near->queue, a, 0, b, 0, SIZE));
            EXPECT_TRUE(conform_holds(near->queue, a, 0, SIZE, kind + 4, 0));
            // Row by row, where that is what is left.
            ASSERT_OK(weir_queue_copy_2d(near->queue, (struct weir_plane){b, 0, 64},
                                         (struct weir_plane){a, 64, 96}, 40, 4));
            ASSERT_SYNC(near->queue);
            EXPECT_TRUE(conform_holds(far->queue, b, 3 * 64, 40, kind + 4, 64 + 3 * 96));
        }
    }
}

// A wait orders a copy, and where kernels reach the memory a launch, after the other device's work, and the reverse.
CONFORM(Peers, WaitsOrder)
{
    NEEDS_PEERS(f, pair);
    own_kernel increment = conform_kernel(&one->f, "increment");
    const bool launches = weir_device_can_reach(one->f.device, two->f.device);

    for (uint32_t round = 1; round <= 50; round++) {
        uint32_t words[SIZE / 4];
        ASSERT_OK(weir_queue_fill(one->queue, one->memory, 0, SIZE, &round, sizeof round));
        follow(two->queue, one->queue);
        ASSERT_OK(weir_queue_copy(two->queue, two->memory, 0, one->memory, 0, SIZE));
        follow(one->queue, two->queue);
        const uint32_t again = round + 2000;
        ASSERT_OK(weir_queue_fill(one->queue, one->memory, 0, SIZE, &again, sizeof again));
        if (launches) {
            ASSERT_OK(weir_queue_launch(one->queue, increment, blocks, block,
                                        weir_inout(two->memory, 0, BYTES), 1000u, N));
            follow(two->queue, one->queue);
        }
        if (round % 10)
            continue;
        ASSERT_OK(weir_download(two->queue, words, two->memory, 0, SIZE));
        EXPECT_UINT_EQ(words[N - 1], launches && conform_kernels_run(f) ? round + 1000 : round);
        EXPECT_UINT_EQ(words[SIZE / 4 - 1], round);
    }
}

// The second device's memory is used by a queue of the first, which is held meanwhile, in a copy and, where kernels
// reach the memory, in a launch.
CONFORM(Peers, DestroyInUse)
{
    NEEDS_PEERS(f, pair);
    own_kernel iota = conform_kernel(&one->f, "iota");
    const bool reaches = weir_device_can_reach(one->f.device, two->f.device);

    conform_write(two->queue, two->memory, 9);
    own_gate gate = gate_on(one->queue);
    if (reaches)
        ASSERT_OK(weir_queue_launch(one->queue, iota, blocks, block,
                                    weir_out(two->memory, 0, BYTES), 5u, N));
    ASSERT_OK(weir_queue_copy(one->queue, one->memory, 0, two->memory, 0, SIZE));
    weir_buffer_destroy(&two->memory);
    // Calls that check the second device's destroyed objects, and reuse memory.
    for (int i = 0; i < 4; i++) {
        own_buffer other = conform_device_buffer(&two->f, SIZE);
        conform_write(two->queue, other, 200);
    }
    EXPECT_OK(weir_device_trim(two->f.device));
    gate_open(gate);
    EXPECT_TRUE(conform_holds(one->queue, one->memory, BYTES, SIZE - BYTES, 9, BYTES));
    if (reaches)
        EXPECT_TRUE(counts_from(f, one, one->memory, 5));
    else
        EXPECT_TRUE(conform_holds(one->queue, one->memory, 0, BYTES, 9, 0));
}

static void *open_later(void *gate)
{
    gate_open(gate);
    return NULL;
}

// Closing the device of the memory waits for the other's queue.
CONFORM(Peers, CloseTheOwner)
{
    NEEDS_PEERS(f, pair);
    pthread_t thread;

    conform_write(two->queue, two->memory, 9);
    own_gate gate = gate_on(one->queue);
    ASSERT_OK(weir_queue_copy(one->queue, one->memory, 0, two->memory, 0, SIZE));
    EXPECT_INVALID(weir_device_close(&two->f.device), "still exist");
    weir_buffer_destroy(&two->memory);
    weir_queue_destroy(&two->queue);
    ASSERT_INT_EQ(pthread_create(&thread, NULL, open_later, gate), 0);
    EXPECT_OK(weir_device_close(&two->f.device));
    EXPECT_INT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_TRUE(conform_holds(one->queue, one->memory, 0, SIZE, 9, 0));
}

// Its queues finish first; then the memory has no queue to wait for.
CONFORM(Peers, CloseTheUser)
{
    NEEDS_PEERS(f, pair);

    conform_write(two->queue, two->memory, 9);
    for (int i = 0; i < 20; i++)
        ASSERT_OK(weir_queue_copy(one->queue, one->memory, 0, two->memory, 0, SIZE));
    weir_queue_destroy(&one->queue);
    weir_buffer_destroy(&one->memory);
    EXPECT_OK(weir_device_close(&one->f.device));
    EXPECT_TRUE(conform_holds(two->queue, two->memory, 0, SIZE, 9, 0));
}

struct churn {
    struct side *mine, *other;
};

// Each on one device's queue, with new memory of both.
static void *come_and_go(void *argument)
{
    const struct churn *churn = argument;
    weir_queue *queue = churn->mine->queue;
    for (int i = 0; i < 100 && !weir_test_has_failed(); i++) {
        own_buffer mine = make(churn->mine, 0);
        own_buffer theirs = make(churn->other, 0);
        conform_fill(queue, mine, 9);
        EXPECT_OK(weir_queue_copy(queue, theirs, 0, mine, 0, SIZE));
        EXPECT_OK(weir_queue_copy(queue, mine, 0, theirs, 0, SIZE));
    }
    return NULL;
}

CONFORM(Peers, ComeAndGo)
{
    NEEDS_PEERS(f, pair);
    struct churn churns[] = {{one, two}, {two, one}};
    conform_run_threads(come_and_go, churns, sizeof *churns, 2);
}

// Launches on one device that use the memory of another one, and copies of boxes between the two.

// Ends the test as skipped if kernels of the first device cannot use the second one's memory.
#define NEEDS_REACH(f, pair)                                  \
    NEEDS_PEERS(f, pair);                                     \
    if (!weir_device_can_reach(one->f.device, two->f.device)) \
    CONFORM_SKIP("kernels do not reach memory of the other device")

// A kernel writes the other device's memory, which a queue of that device reads, and the reverse.
CONFORM(PeerKernels, ReadAndWrite)
{
    NEEDS_REACH(f, pair);
    own_kernel iota = conform_kernel(&one->f, "iota");
    own_kernel increment = conform_kernel(&one->f, "increment");

    for (int on_host = 0; on_host < 2; on_host++) {
        if (on_host && !weir_device_limits(one->f.device)->host_in_kernels)
            continue;
        own_buffer theirs = make(two, on_host);
        ASSERT_OK(
            weir_queue_launch(one->queue, iota, blocks, block, weir_out(theirs, 0, BYTES), 5u, N));
        follow(two->queue, one->queue);
        EXPECT_TRUE(counts_from(f, two, theirs, 5));
        ASSERT_OK(weir_queue_copy(two->queue, theirs, 0, theirs, BYTES / 2, BYTES / 2));
        ASSERT_OK(weir_queue_copy(two->queue, theirs, BYTES / 2, theirs, 0, BYTES / 2));
        follow(one->queue, two->queue);
        ASSERT_OK(weir_queue_launch(one->queue, increment, weir_dim(N / 64, 1, 1), block,
                                    weir_inout(theirs, 0, BYTES / 2), 100u, N / 2));
        ASSERT_SYNC(one->queue);
        uint32_t words[N];
        ASSERT_OK(weir_download(two->queue, words, theirs, 0, BYTES));
        for (uint32_t i = 0; i < N && conform_kernels_run(f); i++)
            ASSERT_UINT_EQ(words[i], 5 + N / 2 + i % (N / 2) + (i < N / 2 ? 100 : 0));
    }
}

static void refuse_adopted(struct side *one, struct side *two, weir_kernel *iota)
{
    static unsigned char memory[4096];
    own_buffer wrapped = NULL;
    const weir_status status =
        weir_buffer_wrap(two->f.device,
                         WEIR_PARAMS(weir_wrap, .pointer = memory, .size = sizeof memory),
                         &wrapped);
    EXPECT_OK(status);
    // Two devices of one GPU have one address for it, and the null backend has one memory.
    if (status == WEIR_OK &&
        weir_queue_launch(one->queue, iota, blocks, block, weir_out(wrapped, 0, BYTES), 1u, N) < 0)
        EXPECT_CONTAINS(weir_last_error()->message, "wrapped memory of another device");
    EXPECT_SYNC(one->queue);
}

CONFORM(PeerKernels, WhatIsOutOfReachIsRefused)
{
    OPEN_PAIR(f, pair);
    own_kernel iota = conform_kernel(&one->f, "iota");
    weir_buffer *there = two->memory;

    if (weir_device_can_reach(one->f.device, two->f.device)) {
        EXPECT_INVALID(weir_queue_launch(one->queue, iota, blocks, block,
                                         weir_out(there, SIZE, BYTES), 1u, N),
                       "do not lie in");
        refuse_adopted(one, two, iota);
    } else {
        EXPECT_INVALID(weir_queue_launch(one->queue, iota, blocks, block, weir_out(there, 0, BYTES),
                                         1u, N),
                       "it got a buffer of another device");
    }
    // A graph belongs to one device.
    ASSERT_OK(weir_capture_begin(one->queue));
    if (are_peers(&pair))
        EXPECT_INVALID(weir_queue_copy(one->queue, one->memory, 0, there, 0, SIZE),
                       "a graph holds no copies between devices");
    EXPECT_INVALID(weir_queue_launch(one->queue, iota, blocks, block, weir_out(there, 0, BYTES), 1u,
                                     N),
                   "a buffer of another device");
    ASSERT_OK(
        weir_queue_launch(one->queue, iota, blocks, block, weir_out(one->memory, 0, BYTES), 1u, N));
    own_graph graph = conform_end(one->queue);
    const struct weir_argument arguments[] = {weir_out(there, 0, BYTES), weir__argument_u32(1),
                                              weir__argument_u32(N)};
    EXPECT_INVALID(weir_graph_set_launch(graph, 0, blocks, block, arguments, 3),
                   "a buffer of another device");
}

// Whole rows from slice to slice, and not; from and to every placement.
CONFORM(Peers, Copy3D)
{
    static const size_t slice_pitches[] = {640, 650};
    NEEDS_PEERS(f, pair);
    for (unsigned kind = 0; kind < 8; kind++) {
        own_buffer a = make(one, kind & 1);
        own_buffer b = make(two, kind & 2);
        const size_t slice = slice_pitches[kind >> 2];
        conform_write(one->queue, a, 1);
        conform_write(two->queue, b, 2);
        ASSERT_OK(weir_queue_copy_3d(one->queue, (struct weir_volume){b, 8, 64, slice},
                                     (struct weir_volume){a, 100, 96, 960}, 40, 9, 8));
        ASSERT_SYNC(one->queue);
        for (size_t z = 0; z < 8; z++)
            for (size_t y = 0; y < 9; y++) {
                const size_t at = 8 + slice * z + 64 * y;
                ASSERT_TRUE(conform_holds(two->queue, b, at, 40, 1, 100 + 960 * z + 96 * y));
                ASSERT_TRUE(conform_holds(two->queue, b, at + 40, 24, 2, at + 40));
            }
        // And back, packed.
        conform_write(two->queue, b, 3);
        ASSERT_OK(weir_queue_copy_3d(one->queue, (struct weir_volume){a, 0, 40, 360},
                                     (struct weir_volume){b, 0, 64, slice}, 40, 9, 8));
        EXPECT_TRUE(conform_holds(one->queue, a, 7 * 360 + 8 * 40, 40, 3, 7 * slice + 8 * 64));
    }
}
