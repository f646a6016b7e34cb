// A device of the chain that the environment selects, its runtime, and a queue. Link with //tests/support:device.
#ifndef WEIR_TESTS_SUPPORT_DEVICE_H
#define WEIR_TESTS_SUPPORT_DEVICE_H

#include "tests/support/own.h"

struct test_device {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
};

// False fails the test. What is open then is closed by test_device_close() all the same.
static inline bool test_device_open_by(struct test_device *on,
                                       const struct weir_open_params *params)
{
    *on = (struct test_device){0};
    return IS_OK(weir_open(params, &on->runtime)) &&
           IS_OK(weir_device_open(on->runtime, NULL, &on->device)) &&
           IS_OK(weir_queue_create(on->device, NULL, &on->queue));
}

static inline bool test_device_open(struct test_device *on)
{
    return test_device_open_by(on, NULL);
}

static inline void test_device_close(struct test_device *on)
{
    weir_queue_destroy(&on->queue);
    EXPECT_OK(weir_device_close(&on->device));
    EXPECT_OK(weir_close(&on->runtime));
}
#define own_test_device OWN(test_device_close) struct test_device

// A test with one, `on_`.
#define DEVICE_TEST(suite_, name_, on_)                                           \
    WEIR_TEST_WITH(suite_, name_, struct test_device, on_, test_device_open(on_), \
                   test_device_close(on_))

#endif
