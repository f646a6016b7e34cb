// Shared by the tests of two devices of a runtime. If only one device is listed, it is opened twice.
#ifndef WEIR_TESTS_CONFORMANCE_PAIR_H
#define WEIR_TESTS_CONFORMANCE_PAIR_H

#include "tests/conformance/suite.h"

#define SIZE ((size_t)8192)

struct side {
    struct fixture f;    // of its device
    weir_queue *queue;   // these two are set once the devices are known to be peers
    weir_buffer *memory; // DEVICE
};

struct pair {
    struct side one;
    struct side two;
    weir_runtime *own; // NULL: the fixture's has two devices
};

static inline void open_side(struct side *side, weir_runtime *runtime, const char *select)
{
    side->f = (struct fixture){.runtime = runtime};
    EXPECT_OK(
        weir_device_open(runtime, WEIR_PARAMS(weir_device, .select = select), &side->f.device));
}

// The null backend has as many devices as it is told to have.
static inline struct pair open_pair(struct fixture *f)
{
    weir_runtime *runtime = f->runtime;
    struct pair pair = {.own = NULL};
    if (weir_device_count(runtime) < 2 &&
        weir_open(WEIR_PARAMS(weir_open, .config_path = "two.ini",
                              .config_text = "[null]\ndevices = 2\n"),
                  &pair.own) == WEIR_OK)
        runtime = pair.own;
    open_side(&pair.one, runtime, "0");
    open_side(&pair.two, runtime, weir_device_count(runtime) > 1 ? "1" : "0");
    return pair;
}

static inline void close_side(struct side *side)
{
    weir_program_destroy(&side->f.program);
    weir_buffer_destroy(&side->memory);
    weir_queue_destroy(&side->queue);
    EXPECT_OK(weir_device_close(&side->f.device));
}

// Objects that the test has destroyed or closed are NULL by then.
static inline void close_pair(struct pair *pair)
{
    close_side(&pair->one);
    close_side(&pair->two);
    EXPECT_OK(weir_close(&pair->own));
}

static inline bool are_peers(const struct pair *pair)
{
    return weir_device_can_peer(pair->one.f.device, pair->two.f.device);
}

static inline void make_objects(struct side *side, const char *label)
{
    side->queue = conform_queue(&side->f, label);
    side->memory = conform_device_buffer(&side->f, SIZE);
}

// The two for the rest of the test, with their objects.
#define own_pair OWN(close_pair) struct pair
#define OPEN_PAIR(f_, pair)                      \
    own_pair pair = open_pair(f_);               \
    struct side *const one = &pair.one;          \
    struct side *const two = &pair.two;          \
    ASSERT_TRUE(one->f.device && two->f.device); \
    make_objects(one, "one's");                  \
    make_objects(two, "two's")

// The same, and ends the test as skipped if the two cannot copy.
#define NEEDS_PEERS(f_, pair) \
    OPEN_PAIR(f_, pair);      \
    if (!are_peers(&pair))    \
    CONFORM_SKIP("the two devices are no peers")

#endif
