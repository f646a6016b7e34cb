// Vector clocks: records that name the past, versions that are dropped, indexes that are used again.
#include <stdlib.h>
#include <string.h>

#include "plugins/check/clock.h"
#include "tests/support/test.h"

static struct check_actors actors;

static void begin(struct check_actor *list, size_t count)
{
    memset(list, 0, count * sizeof *list);
    check_actors_init(&actors);
    for (size_t i = 0; i < count; i++)
        ASSERT_TRUE(check_actor_add(&actors, &list[i]));
}

static void end(struct check_actor *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_actor_remove(&actors, &list[i]);
    check_actors_finish(&actors);
}

static void record(struct check_actor *actor, uint64_t count)
{
    actor->recorded = count;
    actor->last = count;
}

WEIR_TEST(CheckClock, NothingIsOrderedAtFirst)
{
    struct check_actor a[2];
    begin(a, 2);
    EXPECT_FALSE(check_is_after(&actors, &a[1], a[0].index, 1));
    EXPECT_TRUE(check_is_after(&actors, &a[0], a[0].index, 1));
    EXPECT_FALSE(check_is_after(&actors, NULL, a[0].index, 1));
    end(a, 2);
}

WEIR_TEST(CheckClock, AWaitOrdersUpToTheRecord)
{
    struct check_actor a[2];
    begin(a, 2);
    record(&a[0], 5);
    a[0].last = 6;
    EXPECT_TRUE(check_actor_learn(&actors, &a[1], 1, &a[0], 5));
    EXPECT_TRUE(check_is_after(&actors, &a[1], a[0].index, 5));
    EXPECT_FALSE(check_is_after(&actors, &a[1], a[0].index, 6));
    EXPECT_FALSE(check_actor_learn(&actors, &a[1], 2, &a[0], 5));
    EXPECT_FALSE(check_actor_learn(&actors, &a[1], 2, &a[0], 3));
    end(a, 2);
}

// The record of `b` was made before `b` waited for `a`, so it does not carry that wait.
WEIR_TEST(CheckClock, ARecordIsAPointOfThePast)
{
    struct check_actor a[4];
    begin(a, 4);
    record(&a[0], 1);
    record(&a[1], 1);
    EXPECT_TRUE(check_actor_learn(&actors, &a[1], 2, &a[0], 1));
    record(&a[1], 3);
    EXPECT_TRUE(check_actor_learn(&actors, &a[2], 1, &a[1], 1));
    EXPECT_FALSE(check_is_after(&actors, &a[2], a[0].index, 1));
    EXPECT_TRUE(check_actor_learn(&actors, &a[3], 1, &a[1], 3));
    EXPECT_TRUE(check_is_after(&actors, &a[3], a[0].index, 1));
    end(a, 4);
}

// Each version of a queue that waits and records by turns is found again.
WEIR_TEST(CheckClock, VersionsAreExact)
{
    enum {
        ROUNDS = 100
    };
    struct check_actor a[3];
    begin(a, 3);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        record(&a[0], i);
        EXPECT_TRUE(check_actor_learn(&actors, &a[1], 2 * i - 1, &a[0], i));
        record(&a[1], 2 * i);
    }
    for (uint64_t i = 1; i <= ROUNDS; i++)
        EXPECT_UINT_EQ(check_actor_clock_at(&a[1], 2 * i)[a[0].index], i);
    EXPECT_TRUE(check_actor_learn(&actors, &a[2], 1, &a[1], 100));
    EXPECT_TRUE(check_is_after(&actors, &a[2], a[0].index, 50));
    EXPECT_FALSE(check_is_after(&actors, &a[2], a[0].index, 51));
    end(a, 3);
}

// Without a host that learns anything, old versions are dropped; what is then found for an old
// record is too late, never too early.
WEIR_TEST(CheckClock, VersionsAreBounded)
{
    enum {
        ROUNDS = 10000
    };
    struct check_actor a[2];
    begin(a, 2);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        record(&a[0], i);
        check_actor_learn(&actors, &a[1], 2 * i - 1, &a[0], i);
        record(&a[1], 2 * i);
    }
    EXPECT_INT_LE(a[1].version_count, CHECK_VERSIONS_MOST);
    EXPECT_INT_LE(a[1].version_capacity, CHECK_VERSIONS_MOST);
    for (uint64_t i = 1; i <= ROUNDS; i++)
        EXPECT_UINT_GE(check_actor_clock_at(&a[1], 2 * i)[a[0].index], i);
    for (uint64_t i = ROUNDS - 100; i <= ROUNDS; i++)
        EXPECT_UINT_EQ(check_actor_clock_at(&a[1], 2 * i)[a[0].index], i);
    end(a, 2);
}

// What the host knows needs no version.
WEIR_TEST(CheckClock, TheFloorDropsVersions)
{
    enum {
        ROUNDS = 1000
    };
    struct check_actor a[2];
    begin(a, 2);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        record(&a[0], i);
        check_actor_learn(&actors, &a[1], 2 * i - 1, &a[0], i);
        record(&a[1], 2 * i);
        check_floor_learn(&actors, &a[1], 2 * i);
    }
    EXPECT_INT_LE(a[1].version_capacity, 4);
    EXPECT_TRUE(check_is_after(&actors, NULL, a[0].index, ROUNDS));
    end(a, 2);
}

WEIR_TEST(CheckClock, AnIndexIsUsedAgainAboveItsOldCounts)
{
    struct check_actor a[2];
    struct check_actor next = {0};
    begin(a, 2);
    a[0].last = 7;
    check_actor_learn(&actors, &a[1], 1, &a[0], 7);
    const uint32_t index = a[0].index;
    check_actor_remove(&actors, &a[0]);
    ASSERT_TRUE(check_actor_add(&actors, &next));
    EXPECT_UINT_EQ(next.index, index);
    EXPECT_UINT_EQ(next.base, 7);
    EXPECT_TRUE(check_is_after(&actors, NULL, index, 7));
    EXPECT_FALSE(check_is_after(&actors, &a[1], index, 8));
    check_actor_remove(&actors, &next);
    end(&a[1], 1);
}

// Clocks grow with the number of actors, and keep what they know.
WEIR_TEST(CheckClock, ManyActors)
{
    enum {
        COUNT = 300
    };
    static struct check_actor a[COUNT];
    memset(a, 0, sizeof a);
    check_actors_init(&actors);
    for (size_t i = 0; i < COUNT; i++) {
        ASSERT_TRUE(check_actor_add(&actors, &a[i]));
        if (i > 0)
            check_actor_learn(&actors, &a[i], 1, &a[i - 1], 2);
        record(&a[i], 2);
        check_actor_learn(&actors, &a[i], 3, &a[i / 2], 2);
        record(&a[i], 4);
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < COUNT; j++)
            ASSERT_INT_EQ(check_is_after(&actors, &a[i], a[j].index, 2), j <= i);
    end(a, COUNT);
}
