// What weir_open() does before it loads modules. Nothing of Weir was used in this process before.
#include "base/barrier.h"
#include "tests/unit/core_backend.h"

// The system takes long for it once a driver has started threads, so it is not left to the first queue.
WEIR_TEST(Open, RegistersTheProcessForBarriers)
{
    struct control control;
    EXPECT_TRUE(!weir_barrier_is_shared);
    ASSERT_TRUE(control_open(&control));
    const bool registered = weir_barrier_is_shared;
    weir_barrier_init();
    EXPECT_INT_EQ(registered, weir_barrier_is_shared); // where the kernel can
    control_close(&control);
}
