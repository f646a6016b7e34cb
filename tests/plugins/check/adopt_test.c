// Two buffers on the same memory of the user's: one history. On backends with native handles.
#include <stdlib.h>
#include <string.h>

#include <weir/check.h>
#include <weir/interop.h>
#include <weir/weir.h>

#include "tests/support/own.h"
#include "tests/support/test.h"

enum {
    SIZE = 4096
};

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *one;
    weir_queue *two;
    weir_buffer *owner;
    weir_buffer *x; // both on the owner's memory
    weir_buffer *y;
};

static weir_buffer *adopt(const struct rig *rig, const char *label, weir_buffer *owner)
{
    struct weir_native_buffer native = {0};
    weir_buffer *buffer = NULL;
    EXPECT_OK(weir_buffer_get_native(owner, &native));
    EXPECT_OK(weir_buffer_adopt(rig->device,
                                WEIR_PARAMS(weir_adopt, .label = label,
                                            .native = native.memory ? (uintptr_t)native.memory
                                                                    : native.address,
                                            .size = SIZE),
                                &buffer));
    return buffer;
}

static void rig_open(struct rig *rig)
{
    const char *section = getenv("WEIR_TEST_SECTION"); // [cuda]
    ASSERT_OK(weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini",
                                    .config_text = section ? section : "", .plugins = "check"),
                        &rig->runtime));
    ASSERT_OK(weir_device_open(rig->runtime, NULL, &rig->device));
    rig->one = test_queue(rig->device, "one");
    rig->two = test_queue(rig->device, "two");
    rig->owner = test_buffer(rig->device, "", SIZE, WEIR_PLACE_DEVICE);
    rig->x = adopt(rig, "x", rig->owner);
    rig->y = adopt(rig, "y", rig->owner);
}

static void rig_close(struct rig *rig)
{
    EXPECT_OK(weir_queue_sync(rig->one, WEIR_FOREVER));
    EXPECT_OK(weir_queue_sync(rig->two, WEIR_FOREVER));
    weir_buffer_destroy(&rig->x);
    weir_buffer_destroy(&rig->y);
    EXPECT_OK(weir_device_trim(rig->device));
    weir_buffer_destroy(&rig->owner);
    weir_queue_destroy(&rig->one);
    weir_queue_destroy(&rig->two);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

WEIR_TEST(CheckAdopt, SameMemory)
{
    struct rig rig;
    const unsigned char seven = 7;
    rig_open(&rig);
    const int first = __LINE__ + 1;
    EXPECT_OK(weir_queue_fill(rig.one, rig.x, 0, 64, &seven, 1));
    const int second = __LINE__ + 1;
    EXPECT_OK(weir_queue_fill(rig.two, rig.y, 32, 64, &seven, 1));
    EXPECT_OK(weir_queue_fill(rig.two, rig.y, 128, 64, &seven, 1));
    ASSERT_UINT_EQ(weir_check_count(rig.runtime), 1);
    struct weir_check_finding finding;
    ASSERT_OK(weir_check_get(rig.runtime, 0, &finding));
    EXPECT_INT_EQ(finding.kind, WEIR_CHECK_WRITE_AFTER_WRITE);
    EXPECT_STR_EQ(finding.buffer, "y");
    EXPECT_UINT_EQ(finding.offset, 32);
    EXPECT_UINT_EQ(finding.size, 32);
    EXPECT_INT_EQ(finding.first.line, first);
    EXPECT_INT_EQ(finding.second.line, second);
    rig_close(&rig);
}

// Other memory, whose handle or address may be close by.
WEIR_TEST(CheckAdopt, OtherMemory)
{
    struct rig rig;
    const unsigned char seven = 7;
    rig_open(&rig);
    weir_buffer *others[8];
    weir_buffer *adopted[8];
    for (int i = 0; i < 8; i++) {
        others[i] = test_buffer(rig.device, "", SIZE, WEIR_PLACE_DEVICE);
        adopted[i] = adopt(&rig, "other", others[i]);
        EXPECT_OK(weir_queue_fill(i % 2 ? rig.one : rig.two, adopted[i], 0, SIZE, &seven, 1));
    }
    EXPECT_UINT_EQ(weir_check_count(rig.runtime), 0);
    EXPECT_OK(weir_queue_sync(rig.one, WEIR_FOREVER));
    EXPECT_OK(weir_queue_sync(rig.two, WEIR_FOREVER));
    for (int i = 0; i < 8; i++)
        weir_buffer_destroy(&adopted[i]);
    EXPECT_OK(weir_device_trim(rig.device));
    for (int i = 0; i < 8; i++)
        weir_buffer_destroy(&others[i]);
    rig_close(&rig);
}
