// The list of held operations, and the ring of waits.
#include <string.h>

#include "core/queue/held.h"
#include "core/queue/wait_ring.h"
#include "tests/support/test.h"

static struct weir_operation fill_of(uint64_t sequence, const void *pattern, size_t size)
{
    return (struct weir_operation){
        .struct_size = sizeof(struct weir_operation),
        .kind = WEIR_OPERATION_FILL,
        .sequence = sequence,
        .u.fill = {.pattern = pattern, .pattern_size = size},
    };
}

WEIR_TEST(Held, IsFirstInFirstOut)
{
    struct weir__held_list list = {0};

    EXPECT_NULL(weir__held_pop(&list));
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 1; i <= 10; i++) {
            const struct weir_operation operation = {.struct_size = sizeof(struct weir_operation),
                                                     .kind = WEIR_OPERATION_RECORD,
                                                     .sequence = i};
            ASSERT_TRUE(weir__held_push(&list, &operation));
        }
        for (uint64_t i = 1; i <= 10; i++) {
            struct weir__held *held = weir__held_pop(&list);
            ASSERT_NOT_NULL(held);
            EXPECT_UINT_EQ(held->operation.sequence, i);
            weir__held_recycle(&list, held);
        }
        EXPECT_NULL(weir__held_pop(&list));
    }
    weir__held_finish(&list);
}

WEIR_TEST(Held, OwnsWhatItsOperationsPointTo)
{
    struct weir__held_list list = {0};
    unsigned char pattern[16];
    unsigned char large[5000];
    unsigned char want[sizeof large];
    const unsigned small = 7;

    memset(pattern, 1, sizeof pattern);
    const struct weir_operation fill = fill_of(1, pattern, sizeof pattern);
    ASSERT_TRUE(weir__held_push(&list, &fill));
    memset(pattern, 2, sizeof pattern);

    memset(large, 3, sizeof large);
    memset(want, 3, sizeof want);
    struct weir_argument arguments[40];
    for (size_t i = 0; i < 40; i++)
        arguments[i] = i % 2 ? weir_value(&small, sizeof small) : weir__argument_u32(8);
    arguments[39] = weir_value(large, sizeof large);
    const struct weir_operation launch = {
        .struct_size = sizeof(struct weir_operation),
        .kind = WEIR_OPERATION_LAUNCH,
        .u.launch = {.arguments = arguments, .argument_count = 40},
    };
    ASSERT_TRUE(weir__held_push(&list, &launch));
    memset(large, 4, sizeof large);
    memset(arguments, 0, sizeof arguments);

    struct weir__held *held = weir__held_pop(&list);
    for (size_t i = 0; i < 16; i++)
        EXPECT_INT_EQ(((const unsigned char *)held->operation.u.fill.pattern)[i], 1);
    weir__held_recycle(&list, held);
    held = weir__held_pop(&list);
    const struct weir_argument *copies = held->operation.u.launch.arguments;
    ASSERT_SIZE_EQ(held->operation.u.launch.argument_count, 40);
    EXPECT_UINT_EQ(copies[0].bits, 8);
    EXPECT_NULL(copies[0].pointer);
    EXPECT_MEM_EQ(copies[1].pointer, &small, sizeof small);
    EXPECT_MEM_EQ(copies[37].pointer, &small, sizeof small);
    EXPECT_MEM_EQ(copies[39].pointer, want, sizeof want);
    weir__held_recycle(&list, held);
    weir__held_finish(&list);
}

// A launch without arguments has none to copy.
WEIR_TEST(Held, TakesALaunchOfNothing)
{
    struct weir__held_list list = {0};
    const struct weir_operation launch = {.struct_size = sizeof(struct weir_operation),
                                          .kind = WEIR_OPERATION_LAUNCH};
    ASSERT_TRUE(weir__held_push(&list, &launch));
    struct weir__held *held = weir__held_pop(&list);
    EXPECT_SIZE_EQ(held->operation.u.launch.argument_count, 0);
    weir__held_recycle(&list, held);
    weir__held_finish(&list);
}

WEIR_TEST(Held, ReusesItsNodes)
{
    struct weir__held_list list = {0};
    struct weir_counters before;
    struct weir_counters after;
    unsigned char pattern[16] = {0};

    for (int round = 0; round < 5; round++) {
        if (round == 1)
            weir_counters_read(&before);
        for (uint64_t i = 0; i < 50; i++) {
            const struct weir_operation fill = fill_of(i, pattern, 16);
            ASSERT_TRUE(weir__held_push(&list, &fill));
        }
        struct weir__held *held;
        while ((held = weir__held_pop(&list)))
            weir__held_recycle(&list, held);
    }
    weir_counters_read(&after);
    EXPECT_UINT_EQ(after.allocations, before.allocations);
    weir__held_finish(&list);
}

static struct weir__wait wait_of(uint64_t own, uint64_t queue, uint64_t sequence)
{
    return (struct weir__wait){.own = own, .event = {queue, sequence}};
}

static bool push(struct weir__wait_ring *waits, struct weir__wait wait)
{
    return weir__wait_ring_push(waits, &wait);
}

WEIR_TEST(Waits, PushGetAndDrop)
{
    struct weir__wait_ring waits = {0};
    struct weir__wait wait;

    EXPECT_FALSE(push(&waits, wait_of(1, 1, 1)));
    EXPECT_FALSE(weir__wait_ring_get(&waits, 0, UINT64_MAX, &wait));
    ASSERT_TRUE(weir__wait_ring_grow(&waits));
    // Far around the ring, with three in it.
    for (uint64_t i = 1; i < 1000; i++) {
        ASSERT_TRUE(push(&waits, wait_of(i, 7, i)));
        if (i <= 3)
            continue;
        weir__wait_ring_drop(&waits, i - 3);
        ASSERT_TRUE(weir__wait_ring_get(&waits, 0, UINT64_MAX, &wait));
        ASSERT_UINT_EQ(wait.own, i - 2);
        ASSERT_TRUE(weir__wait_ring_get(&waits, 2, i, &wait));
        ASSERT_UINT_EQ(wait.own, i);
        ASSERT_FALSE(weir__wait_ring_get(&waits, 2, i - 1, &wait));
        ASSERT_FALSE(weir__wait_ring_get(&waits, 3, UINT64_MAX, &wait));
    }
    weir__wait_ring_finish(&waits);
}

WEIR_TEST(Waits, CoverByTheLatestOfAProducer)
{
    struct weir__wait_ring waits = {0};

    ASSERT_TRUE(weir__wait_ring_grow(&waits));
    ASSERT_TRUE(push(&waits, wait_of(1, 7, 10)));
    ASSERT_TRUE(push(&waits, wait_of(2, 8, 99)));
    ASSERT_TRUE(push(&waits, wait_of(3, 7, 20)));
    EXPECT_TRUE(weir__wait_ring_covers(&waits, (struct weir_event){7, 20}));
    EXPECT_TRUE(weir__wait_ring_covers(&waits, (struct weir_event){7, 5}));
    EXPECT_FALSE(weir__wait_ring_covers(&waits, (struct weir_event){7, 21}));
    EXPECT_TRUE(weir__wait_ring_covers(&waits, (struct weir_event){8, 99}));
    EXPECT_FALSE(weir__wait_ring_covers(&waits, (struct weir_event){9, 1}));
    weir__wait_ring_drop(&waits, 2);
    EXPECT_FALSE(weir__wait_ring_covers(&waits, (struct weir_event){8, 99}));
    weir__wait_ring_finish(&waits);
}

static bool keep_odd(void *user, const struct weir__wait *wait)
{
    ++*(int *)user;
    return wait->own % 2;
}

WEIR_TEST(Waits, FilterAndGrowKeepTheOrder)
{
    struct weir__wait_ring waits = {0};
    struct weir__wait wait;
    uint64_t pushed = 0;
    int asked = 0;

    ASSERT_TRUE(weir__wait_ring_grow(&waits));
    const uint32_t first = waits.capacity;
    while (push(&waits, wait_of(pushed + 1, 1, pushed + 1)))
        pushed++;
    EXPECT_UINT_EQ(pushed, first);
    weir__wait_ring_filter(&waits, keep_odd, &asked);
    EXPECT_INT_EQ(asked, (int)first);
    ASSERT_TRUE(weir__wait_ring_grow(&waits)); // half full: stays
    EXPECT_UINT_EQ(waits.capacity, first);
    while (push(&waits, wait_of(pushed + 1, 1, pushed + 1)))
        pushed++;
    ASSERT_TRUE(weir__wait_ring_grow(&waits));
    EXPECT_UINT_EQ(waits.capacity, 2 * first);
    uint64_t last = 0;
    uint32_t count = 0;
    for (; weir__wait_ring_get(&waits, count, UINT64_MAX, &wait); count++) {
        EXPECT_UINT_GT(wait.own, last);
        last = wait.own;
    }
    EXPECT_UINT_EQ(count, first);
    weir__wait_ring_finish(&waits);
}
