// Frees that wait for an idle device: objects, registrations of memory, and pinned blocks.
#include <weir/kit/idle.h>

#include <stdlib.h>

#include "tests/support/host.h"
#include "tests/support/test.h"

static struct weir_kit_registrations registrations = WEIR_KIT_REGISTRATIONS;

struct device {
    bool idle;
    unsigned asked;
    unsigned unregistered;
    void *last;
};

static bool is_idle(void *user)
{
    struct device *device = user;
    device->asked++;
    return device->idle;
}

static void unregister(void *user, void *pointer)
{
    struct device *device = user;
    device->unregistered++;
    device->last = pointer;
}

static weir_kit_idle *make(struct device *device)
{
    const struct weir_kit_idle_params params = {
        .host = &test_host,
        .device = device,
        .is_idle = is_idle,
        .registrations = &registrations,
        .unregister = unregister,
    };
    weir_kit_idle *idle = NULL;
    test_host_reset();
    EXPECT_OK(weir_kit_idle_create(&params, &idle));
    return idle;
}

static void end(weir_kit_idle *idle)
{
    weir_kit_idle_destroy(&idle);
    EXPECT_NULL(idle);
    weir_kit_idle_destroy(&idle);
    EXPECT_INT_EQ(test_host_blocks(), 0);
}

struct thing {
    struct weir_kit_idle_entry entry;
    unsigned *given_back;
};

static void give_back(struct weir_kit_idle_entry *entry)
{
    struct thing *thing = (struct thing *)(void *)entry;
    ++*thing->given_back;
    free(thing);
}

static void put(weir_kit_idle *idle, unsigned *given_back)
{
    struct thing *thing = calloc(1, sizeof *thing);
    ASSERT_NOT_NULL(thing);
    thing->entry.give_back = give_back;
    thing->given_back = given_back;
    weir_kit_idle_put(idle, &thing->entry);
}

WEIR_TEST(KitIdle, ThingsWaitForAnIdleDevice)
{
    struct device device = {.idle = true};
    unsigned given_back = 0;
    weir_kit_idle *idle = make(&device);
    weir_kit_idle_settle(idle);
    EXPECT_UINT_EQ(device.asked, 0); // nothing is kept, so the driver is not queried
    device.idle = false;
    put(idle, &given_back);
    put(idle, &given_back);
    weir_kit_idle_settle(idle);
    EXPECT_UINT_EQ(device.asked, 1);
    EXPECT_UINT_EQ(given_back, 0);
    device.idle = true;
    weir_kit_idle_settle(idle);
    EXPECT_UINT_EQ(given_back, 2);
    weir_kit_idle_settle(idle);
    EXPECT_UINT_EQ(device.asked, 2);
    end(idle);
}

WEIR_TEST(KitIdle, ADrainDoesNotAskTheDriver)
{
    struct device device = {.idle = false};
    unsigned given_back = 0;
    weir_kit_idle *idle = make(&device);
    put(idle, &given_back);
    weir_kit_idle_drain(idle);
    EXPECT_UINT_EQ(given_back, 1);
    EXPECT_UINT_EQ(device.asked, 0);
    end(idle);
}

WEIR_TEST(KitIdle, BuffersOverOneRangeShareARegistration)
{
    static char memory[100];
    struct device device = {.idle = true};
    weir_kit_idle *idle = make(&device);
    EXPECT_NULL(weir_kit_registration_share(idle, memory, 50));
    struct weir_kit_registration *first = weir_kit_registration_add(idle, memory, 50);
    ASSERT_NOT_NULL(first);
    EXPECT_TRUE(weir_kit_registration_share(idle, memory + 10, 40) == first);
    EXPECT_NULL(weir_kit_registration_share(idle, memory + 10, 41)); // one byte more
    EXPECT_TRUE(weir_kit_registration_touches(idle, memory + 49, 10));
    EXPECT_FALSE(weir_kit_registration_touches(idle, memory + 50, 10));
    weir_kit_registration_put(idle, first);
    weir_kit_idle_settle(idle);
    EXPECT_UINT_EQ(device.unregistered, 0);
    weir_kit_registration_put(idle, first);
    EXPECT_UINT_EQ(device.unregistered, 0);
    weir_kit_idle_settle(idle);
    EXPECT_UINT_EQ(device.unregistered, 1);
    EXPECT_TRUE(device.last == memory);
    end(idle);
}

// The memory of an unused registration may be gone, and its address be that of other memory.
WEIR_TEST(KitIdle, UnusedRegistrationsInTheWayEnd)
{
    static char memory[100];
    struct device first = {.idle = false};
    struct device second = {.idle = false};
    weir_kit_idle *of_first = make(&first);
    weir_kit_idle *of_second = make(&second);
    struct weir_kit_registration *old = weir_kit_registration_add(of_first, memory, 50);
    ASSERT_NOT_NULL(old);
    weir_kit_registration_put(of_first, old);
    EXPECT_NULL(weir_kit_registration_share(of_second, memory + 40, 20));
    EXPECT_UINT_EQ(second.unregistered, 1);
    EXPECT_FALSE(weir_kit_registration_touches(of_second, memory, 100));
    weir_kit_idle_settle(of_first); // has nothing any more
    EXPECT_UINT_EQ(first.asked, 0);
    weir_kit_idle_destroy(&of_first);
    end(of_second);
}

static void free_block(void *device, struct weir_kit_block *block)
{
    ++*(unsigned *)device;
    free(block);
}

static void put_block(struct weir_kit_blocks *blocks, size_t size)
{
    struct weir_kit_block *block = calloc(1, sizeof *block);
    ASSERT_NOT_NULL(block);
    block->size = size;
    weir_kit_block_put(blocks, block);
}

WEIR_TEST(KitIdle, BlocksServeWhatTheyFit)
{
    struct weir_kit_blocks list;
    struct weir_kit_blocks *blocks = &list;
    unsigned freed = 0;
    weir_kit_blocks_init(blocks);
    put_block(blocks, 300);
    put_block(blocks, 100);
    put_block(blocks, 200);
    EXPECT_NULL(weir_kit_block_take(blocks, 301, 1000));
    EXPECT_NULL(weir_kit_block_take(blocks, 101, 199));
    struct weir_kit_block *block = weir_kit_block_take(blocks, 90, 300);
    ASSERT_NOT_NULL(block);
    EXPECT_UINT_EQ(block->size, 100); // the smallest
    EXPECT_NULL(weir_kit_block_take(blocks, 100, 100));
    weir_kit_block_put(blocks, block);
    weir_kit_blocks_empty(blocks, free_block, &freed);
    EXPECT_UINT_EQ(freed, 3);
    weir_kit_blocks_empty(blocks, free_block, &freed);
    EXPECT_UINT_EQ(freed, 3);
    weir_kit_blocks_finish(blocks);
}

WEIR_TEST(KitIdle, BlockSizesGrowByAnEighthAtMost)
{
    EXPECT_UINT_EQ(weir_kit_block_size(1), 4096);
    EXPECT_UINT_EQ(weir_kit_block_size(4096), 4096);
    for (size_t size = 65536; size < (size_t)1 << 40; size = size * 5 / 4 + 1) {
        const size_t rounded = weir_kit_block_size(size);
        EXPECT_UINT_GE(rounded, size);
        EXPECT_UINT_LE(rounded - size, size / 8);
        EXPECT_UINT_EQ(weir_kit_block_size(rounded), rounded);
    }
    EXPECT_UINT_EQ(weir_kit_block_size(SIZE_MAX), SIZE_MAX);
}
