// The engine's time grows in proportion to the operations, and not with the queues.
#include "tests/plugins/sim/load.h"
#include "tests/support/test.h"

enum {
    TRIES = 5,
    FEW = 20000,
    MANY = 8 * FEW,
};

// Processor time of an operation: the least of some tries, since other load only adds to it.
static double each(uint32_t queues, int operations)
{
    double least = 0;
    for (int i = 0; i < TRIES; i++) {
        const double seconds = load_seconds(queues, operations) / operations;
        least = i == 0 || seconds < least ? seconds : least;
    }
    return least;
}

// With a search of all operations that are kept it would be eight times as long, and of all queues 64 times.
WEIR_TEST(Growth, WithOperationsAndQueues)
{
    const double few = each(8, FEW);
    EXPECT_TRUE(few > 0);
    EXPECT_TRUE(each(8, MANY) < 3 * few);
    EXPECT_TRUE(each(512, FEW) < 8 * few);
}
