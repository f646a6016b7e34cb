// Debug mode that begins when the process has objects already, or if out of memory for a record. One
// test, since the mode stays for the process.
#include <stdlib.h>

#include <weir/weir.h>

#include "tests/support/memory.h"
#include "tests/support/test.h"

static weir_status open_all(const char *text, weir_runtime **out_runtime, weir_device **out_device,
                            weir_queue **out_queue)
{
    weir_status status = weir_open(WEIR_PARAMS(weir_open, .config_text = text), out_runtime);
    if (status == WEIR_OK)
        status = weir_device_open(*out_runtime, NULL, out_device);
    return status == WEIR_OK ? weir_queue_create(*out_device, NULL, out_queue) : status;
}

WEIR_TEST(DebugLate, BeginsWithTheRuntimeThatAsksForIt)
{
    weir_runtime *before = NULL, *after = NULL;
    weir_device *device_before = NULL, *device_after = NULL;
    weir_queue *queue_before = NULL, *queue_after = NULL, *fresh = NULL;
    unsetenv("WEIR_DEBUG");
    ASSERT_INT_EQ(open_all("[weir]\nbackend = null\n", &before, &device_before, &queue_before),
                  WEIR_OK);
    // The variable takes precedence over the file.
    setenv("WEIR_DEBUG", "1", 1);
    ASSERT_INT_EQ(open_all("[weir]\nbackend = null\ndebug = 0\n", &after, &device_after,
                           &queue_after),
                  WEIR_OK);
    setenv("WEIR_DEBUG", "2", 1);
    weir_runtime *none;
    EXPECT_FAILURE(weir_open(NULL, &none), WEIR_ERROR_CONFIG,
                   "WEIR_DEBUG: 'debug' of [weir] must be 0 or 1, not '2'");

    // What has no record is used as ever, and ended as ever.
    EXPECT_INT_EQ(weir_queue_flush(queue_before), WEIR_OK);
    EXPECT_NOT_NULL(weir_device_limits(device_before));
    weir_queue_destroy(&queue_before);
    EXPECT_NULL(queue_before);

    // From then on it is noted, of any runtime.
    ASSERT_INT_EQ(weir_queue_create(device_before, NULL, &fresh), WEIR_OK);
    weir_queue *gone = fresh;
    weir_queue_destroy(&fresh);
    EXPECT_FAILURE(weir_queue_flush(gone), WEIR_ERROR_INVALID, "which was destroyed at");

    // Memory runs out somewhere in a create call, or for its record: an object without one works.
    for (long n = 1, passed = 0; passed < 3; n++) {
        ASSERT_TRUE(n < 64);
        weir_test_fail_allocation(n - 1);
        const weir_status status = weir_queue_create(device_after, NULL, &fresh);
        weir_test_fail_allocation(-1);
        if (status < 0) {
            EXPECT_INT_EQ(status, WEIR_ERROR_OUT_OF_MEMORY);
            continue;
        }
        passed++;
        EXPECT_INT_EQ(weir_queue_flush(fresh), WEIR_OK);
        weir_queue_destroy(&fresh);
        EXPECT_NULL(fresh);
    }

    weir_queue_destroy(&queue_after);
    EXPECT_INT_EQ(weir_device_close(&device_before), WEIR_OK);
    EXPECT_INT_EQ(weir_close(&before), WEIR_OK);
    EXPECT_INT_EQ(weir_device_close(&device_after), WEIR_OK);
    EXPECT_INT_EQ(weir_close(&after), WEIR_OK);
}
