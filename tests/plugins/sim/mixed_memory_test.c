// The plugin's memory with operations of all kinds but host calls, which the library keeps while they hold a
// queue: what is in use while a thousand are in flight is the same after ten times as many of them.
#define _GNU_SOURCE // mallinfo2

#include <malloc.h>
#include <stdio.h>

#include "tests/plugins/sim/mixed.h"
#include "tests/support/test.h"

enum {
    WARM = 100000, // the launches of graphs come at other places of the thousand each time
    MANY = 10 * WARM,
    SLACK = 8192, // bytes: what does not grow with the operations, such as the C library's
};

// Of all modules of the process.
static void note_most(void *user)
{
    const size_t bytes = mallinfo2().uordblks;
    size_t *most = user;
    if (bytes > *most)
        *most = bytes;
}

static void compare(uint32_t queues)
{
    struct mixed *mixed = mixed_open("sim", queues, false);
    size_t few = 0, many = 0;
    mixed_run(mixed, WARM, note_most, &few);
    mixed_run(mixed, MANY, note_most, &many);
    mixed_close(&mixed);
    printf("%u queues: at most %zu bytes, then %zu\n", (unsigned)queues, few, many);
    EXPECT_SIZE_GT(few, 0);
    EXPECT_SIZE_LT(many, few + SLACK);
}

WEIR_TEST(MixedMemory, IsThatOfWhatIsInFlight)
{
    compare(1);
    compare(8);
    compare(64);
}
