// Copies between two devices of a runtime, and what each may do while the other still
// uses its memory. Where one device is listed, the second is another opening of it.
#include <pthread.h>
#include <string.h>

#include "tests/conformance/suite.h"

#define SIZE ((size_t)8192)

struct pair {
    struct fixture one;
    struct fixture two;
    weir_runtime *own; // NULL: the fixture's has two devices
};

// The null backend has as many devices as it is told to have.
static bool open_pair(struct fixture *f, struct pair *pair)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "two.ini",
                                            .config_text = "[null]\ndevices = 2\n"};
    *pair = (struct pair){.one = {.runtime = f->runtime}};
    if (weir_device_count(f->runtime) < 2 && weir_open(&params, &pair->own) == WEIR_OK)
        pair->one.runtime = pair->own;
    pair->two.runtime = pair->one.runtime;
    const bool two = weir_device_count(pair->one.runtime) > 1;
    EXPECT_OK(weir_device_open(pair->one.runtime,
                               &(struct weir_device_params){.struct_size =
                                                                sizeof(struct weir_device_params),
                                                            .select = "0"},
                               &pair->one.device));
    EXPECT_OK(weir_device_open(pair->one.runtime,
                               &(struct weir_device_params){.struct_size =
                                                                sizeof(struct weir_device_params),
                                                            .select = two ? "1" : "0"},
                               &pair->two.device));
    return pair->one.device && pair->two.device;
}

static void close_pair(struct pair *pair)
{
    EXPECT_OK(weir_device_close(&pair->one.device));
    EXPECT_OK(weir_device_close(&pair->two.device));
    EXPECT_OK(weir_close(&pair->own));
}

// Ends the test as skipped where the two cannot copy.
#define NEEDS_PEERS(f, pair)                                                 \
    do {                                                                     \
        ASSERT_TRUE(open_pair(f, pair));                                     \
        if (!weir_device_can_peer((pair)->one.device, (pair)->two.device)) { \
            close_pair(pair);                                                \
            CONFORM_SKIP("the two devices are no peers");                    \
        }                                                                    \
    } while (0)

CONFORM(Peers, AreAskedFor)
{
    struct pair pair;
    ASSERT_TRUE(open_pair(f, &pair));
    weir_device *one = pair.one.device;
    weir_device *two = pair.two.device;

    EXPECT_FALSE(weir_device_can_peer(NULL, one));
    EXPECT_FALSE(weir_device_can_peer(one, NULL));
    EXPECT_TRUE(weir_device_can_peer(one, one));
    EXPECT_INT_EQ(weir_device_can_peer(one, two), weir_device_can_peer(two, one));
    if (pair.own)
        EXPECT_FALSE(weir_device_can_peer(one, f->device)); // of another runtime
    close_pair(&pair);
}

CONFORM(Peers, WhatIsNoPeerIsRefused)
{
    struct pair pair;
    ASSERT_TRUE(open_pair(f, &pair));
    weir_queue *queue = conform_queue(&pair.one, "one's");
    weir_buffer *here = conform_device_buffer(&pair.one, SIZE);
    weir_buffer *there = conform_device_buffer(&pair.two, SIZE);
    weir_buffer *there_too = conform_device_buffer(&pair.two, SIZE);
    const bool peers = weir_device_can_peer(pair.one.device, pair.two.device);
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
    weir_buffer_destroy(&here);
    weir_buffer_destroy(&there);
    weir_buffer_destroy(&there_too);
    weir_queue_destroy(&queue);
    close_pair(&pair);
}

// Both directions, from both sides, of all placements.
CONFORM(Peers, CopyBothWays)
{
    struct pair pair;
    NEEDS_PEERS(f, &pair);
    weir_queue *queues[] = {conform_queue(&pair.one, "one's"), conform_queue(&pair.two, "two's")};
    for (int side = 0; side < 2; side++) {
        struct fixture *near = side ? &pair.two : &pair.one;
        struct fixture *far = side ? &pair.one : &pair.two;
        for (unsigned kind = 0; kind < 4; kind++) {
            weir_buffer *a =
                kind & 1 ? conform_host_buffer(near, SIZE) : conform_device_buffer(near, SIZE);
            weir_buffer *b =
                kind & 2 ? conform_host_buffer(far, SIZE) : conform_device_buffer(far, SIZE);
            conform_write(queues[side], a, kind);
            ASSERT_OK(weir_queue_copy(queues[side], b, 16, a, 32, SIZE - 64));
            ASSERT_SYNC(queues[side]);
            EXPECT_TRUE(conform_holds(queues[!side], b, 16, SIZE - 64, kind, 32));
            conform_write(queues[!side], b, kind + 4);
            ASSERT_OK(weir_queue_copy(queues[side], a, 0, b, 0, SIZE));
            EXPECT_TRUE(conform_holds(queues[side], a, 0, SIZE, kind + 4, 0));
            // Row by row, where that is what is left.
            ASSERT_OK(weir_queue_copy_2d(queues[side], (struct weir_plane){b, 0, 64},
                                         (struct weir_plane){a, 64, 96}, 40, 4));
            ASSERT_SYNC(queues[side]);
            EXPECT_TRUE(conform_holds(queues[!side], b, 3 * 64, 40, kind + 4, 64 + 3 * 96));
            weir_buffer_destroy(&a);
            weir_buffer_destroy(&b);
        }
    }
    weir_queue_destroy(&queues[0]);
    weir_queue_destroy(&queues[1]);
    close_pair(&pair);
}

CONFORM(Peers, Copy2D)
{
    struct pair pair;
    NEEDS_PEERS(f, &pair);
    weir_queue *one = conform_queue(&pair.one, "one's");
    weir_queue *two = conform_queue(&pair.two, "two's");
    weir_buffer *a = conform_device_buffer(&pair.one, SIZE);
    weir_buffer *b = conform_device_buffer(&pair.two, SIZE);

    conform_write(one, a, 1);
    conform_write(two, b, 2);
    ASSERT_OK(weir_queue_copy_2d(one, (struct weir_plane){b, 8, 64},
                                 (struct weir_plane){a, 100, 96}, 40, 20));
    ASSERT_SYNC(one);
    for (size_t row = 0; row < 20; row++) {
        EXPECT_TRUE(conform_holds(two, b, 8 + 64 * row, 40, 1, 100 + 96 * row));
        EXPECT_TRUE(conform_holds(two, b, 48 + 64 * row, 24, 2, 48 + 64 * row));
    }
    weir_buffer_destroy(&a);
    weir_buffer_destroy(&b);
    weir_queue_destroy(&one);
    weir_queue_destroy(&two);
    close_pair(&pair);
}

// A wait orders a copy behind the other device's work, and the other way round.
CONFORM(Peers, WaitsOrderCopies)
{
    struct pair pair;
    NEEDS_PEERS(f, &pair);
    weir_queue *one = conform_queue(&pair.one, "one's");
    weir_queue *two = conform_queue(&pair.two, "two's");
    weir_buffer *a = conform_device_buffer(&pair.one, SIZE);
    weir_buffer *b = conform_device_buffer(&pair.two, SIZE);
    struct weir_event event;

    for (uint32_t round = 1; round <= 50; round++) {
        ASSERT_OK(weir_queue_fill(one, a, 0, SIZE, &round, sizeof round));
        ASSERT_OK(weir_queue_record(one, &event));
        ASSERT_OK(weir_queue_wait(two, event));
        ASSERT_OK(weir_queue_copy(two, b, 0, a, 0, SIZE));
        ASSERT_OK(weir_queue_record(two, &event));
        ASSERT_OK(weir_queue_wait(one, event));
        const uint32_t again = round + 1000;
        ASSERT_OK(weir_queue_fill(one, a, 0, SIZE, &again, sizeof again));
        if (round % 10)
            continue;
        uint32_t words[SIZE / 4];
        ASSERT_OK(weir_download(two, words, b, 0, SIZE));
        EXPECT_UINT_EQ(words[0], round);
        EXPECT_UINT_EQ(words[SIZE / 4 - 1], round);
    }
    weir_buffer_destroy(&a);
    weir_buffer_destroy(&b);
    weir_queue_destroy(&one);
    weir_queue_destroy(&two);
    close_pair(&pair);
}

// A graph is of one device.
CONFORM(Peers, NotInGraphs)
{
    struct pair pair;
    NEEDS_PEERS(f, &pair);
    weir_queue *one = conform_queue(&pair.one, "one's");
    weir_buffer *a = conform_device_buffer(&pair.one, SIZE);
    weir_buffer *b = conform_device_buffer(&pair.two, SIZE);
    weir_graph *graph = NULL;

    ASSERT_OK(weir_capture_begin(one));
    EXPECT_INVALID(weir_queue_copy(one, a, 0, b, 0, SIZE),
                   "a graph holds no copies between devices");
    ASSERT_OK(weir_queue_copy(one, a, 0, a, SIZE / 2, SIZE / 2));
    ASSERT_OK(weir_capture_end(one, NULL, &graph));
    weir_graph_destroy(&graph);
    weir_buffer_destroy(&a);
    weir_buffer_destroy(&b);
    weir_queue_destroy(&one);
    close_pair(&pair);
}

// The second device's memory is used by a queue of the first, which is held meanwhile.
CONFORM(Peers, DestroyInUse)
{
    struct pair pair;
    NEEDS_PEERS(f, &pair);
    weir_queue *one = conform_queue(&pair.one, "one's");
    weir_queue *two = conform_queue(&pair.two, "two's");
    weir_buffer *a = conform_device_buffer(&pair.one, SIZE);
    weir_buffer *b = conform_device_buffer(&pair.two, SIZE);
    struct gate *gate = gate_create();

    conform_write(two, b, 9);
    ASSERT_OK(weir_queue_host_call(one, gate_function, gate));
    ASSERT_OK(weir_queue_copy(one, a, 0, b, 0, SIZE));
    weir_buffer_destroy(&b);
    // What looks through the second device's destroyed objects, and uses memory again.
    for (int i = 0; i < 4; i++) {
        weir_buffer *other = conform_device_buffer(&pair.two, SIZE);
        conform_write(two, other, 200);
        weir_buffer_destroy(&other);
    }
    EXPECT_OK(weir_device_trim(pair.two.device));
    gate_open(gate);
    EXPECT_TRUE(conform_holds(one, a, 0, SIZE, 9, 0));
    gate_destroy(&gate);
    weir_buffer_destroy(&a);
    weir_queue_destroy(&one);
    weir_queue_destroy(&two);
    close_pair(&pair);
}

static void *open_later(void *gate)
{
    gate_open(gate);
    return NULL;
}

// Closing the device of the memory waits for the other's queue.
CONFORM(Peers, CloseTheOwner)
{
    struct pair pair;
    NEEDS_PEERS(f, &pair);
    weir_queue *one = conform_queue(&pair.one, "one's");
    weir_queue *two = conform_queue(&pair.two, "two's");
    weir_buffer *a = conform_device_buffer(&pair.one, SIZE);
    weir_buffer *b = conform_device_buffer(&pair.two, SIZE);
    struct gate *gate = gate_create();
    pthread_t thread;

    conform_write(two, b, 9);
    ASSERT_OK(weir_queue_host_call(one, gate_function, gate));
    ASSERT_OK(weir_queue_copy(one, a, 0, b, 0, SIZE));
    EXPECT_INVALID(weir_device_close(&pair.two.device), "still exists");
    weir_buffer_destroy(&b);
    weir_queue_destroy(&two);
    ASSERT_INT_EQ(pthread_create(&thread, NULL, open_later, gate), 0);
    EXPECT_OK(weir_device_close(&pair.two.device));
    EXPECT_INT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_TRUE(conform_holds(one, a, 0, SIZE, 9, 0));
    gate_destroy(&gate);
    weir_buffer_destroy(&a);
    weir_queue_destroy(&one);
    close_pair(&pair);
}

// Its queues finish first; the memory then has nobody to wait for.
CONFORM(Peers, CloseTheUser)
{
    struct pair pair;
    NEEDS_PEERS(f, &pair);
    weir_queue *one = conform_queue(&pair.one, "one's");
    weir_queue *two = conform_queue(&pair.two, "two's");
    weir_buffer *a = conform_device_buffer(&pair.one, SIZE);
    weir_buffer *b = conform_device_buffer(&pair.two, SIZE);

    conform_write(two, b, 9);
    for (int i = 0; i < 20; i++)
        ASSERT_OK(weir_queue_copy(one, a, 0, b, 0, SIZE));
    weir_queue_destroy(&one);
    weir_buffer_destroy(&a);
    EXPECT_OK(weir_device_close(&pair.one.device));
    EXPECT_TRUE(conform_holds(two, b, 0, SIZE, 9, 0));
    weir_buffer_destroy(&b);
    weir_queue_destroy(&two);
    close_pair(&pair);
}

struct churn {
    struct pair *pair;
    weir_queue *queue; // of the other device
    bool failed;
};

static void *come_and_go(void *argument)
{
    struct churn *churn = argument;
    for (int i = 0; i < 100 && !churn->failed; i++) {
        weir_buffer *mine = NULL;
        weir_buffer *theirs = NULL;
        const struct weir_buffer_params params = {.struct_size = sizeof params, .size = SIZE};
        churn->failed = weir_buffer_create(churn->pair->one.device, &params, &mine) < 0 ||
                        weir_buffer_create(churn->pair->two.device, &params, &theirs) < 0 ||
                        weir_queue_copy(churn->queue, mine, 0, theirs, 0, SIZE) < 0 ||
                        weir_queue_copy(churn->queue, theirs, 0, mine, 0, SIZE) < 0;
        weir_buffer_destroy(&mine);
        weir_buffer_destroy(&theirs);
    }
    return NULL;
}

CONFORM(Peers, ComeAndGo)
{
    struct pair pair;
    NEEDS_PEERS(f, &pair);
    struct churn churns[] = {{.pair = &pair, .queue = conform_queue(&pair.one, "one's")},
                             {.pair = &pair, .queue = conform_queue(&pair.two, "two's")}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, come_and_go, &churns[i]), 0);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT_EQ(pthread_join(threads[i], NULL), 0);
        EXPECT_FALSE(churns[i].failed);
        weir_queue_destroy(&churns[i].queue);
    }
    close_pair(&pair);
}
