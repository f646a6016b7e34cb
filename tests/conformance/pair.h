// Shared by the tests of two devices of a runtime. If only one device is listed, it is opened twice.
#ifndef WEIR_TESTS_CONFORMANCE_PAIR_H
#define WEIR_TESTS_CONFORMANCE_PAIR_H

#include "tests/conformance/suite.h"

#define SIZE ((size_t)8192)

struct side {
    struct fixture fixture; // of its device
    weir_queue *queue;      // these two are set once the devices are known to be peers
    weir_buffer *memory;    // DEVICE
};

struct pair {
    struct side one;
    struct side two;
    weir_runtime *own; // NULL: the fixture's has two devices
};

static inline bool open_side(struct side *side, weir_runtime *runtime, const char *select)
{
    const struct weir_device_params params = {.struct_size = sizeof params, .select = select};
    side->fixture = (struct fixture){.runtime = runtime};
    EXPECT_OK(weir_device_open(runtime, &params, &side->fixture.device));
    return side->fixture.device;
}

// The null backend has as many devices as it is told to have.
static inline bool open_pair(struct fixture *f, struct pair *pair)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "two.ini",
                                            .config_text = "[null]\ndevices = 2\n"};
    weir_runtime *runtime = f->runtime;
    *pair = (struct pair){.own = NULL};
    if (weir_device_count(runtime) < 2 && weir_open(&params, &pair->own) == WEIR_OK)
        runtime = pair->own;
    const bool one = open_side(&pair->one, runtime, "0");
    const bool two = open_side(&pair->two, runtime, weir_device_count(runtime) > 1 ? "1" : "0");
    return one && two;
}

static inline void close_side(struct side *side)
{
    weir_buffer_destroy(&side->memory);
    weir_queue_destroy(&side->queue);
    EXPECT_OK(weir_device_close(&side->fixture.device));
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
    return weir_device_can_peer(pair->one.fixture.device, pair->two.fixture.device);
}

static inline void make_objects(struct side *side, const char *label)
{
    side->queue = conform_queue(&side->fixture, label);
    side->memory = conform_device_buffer(&side->fixture, SIZE);
}

// Ends the test as skipped if the two cannot copy.
#define NEEDS_PEERS(f, pair)                              \
    do {                                                  \
        ASSERT_TRUE(open_pair(f, pair));                  \
        if (!are_peers(pair)) {                           \
            close_pair(pair);                             \
            CONFORM_SKIP("the two devices are no peers"); \
        }                                                 \
        make_objects(&(pair)->one, "one's");              \
        make_objects(&(pair)->two, "two's");              \
    } while (0)

#endif
