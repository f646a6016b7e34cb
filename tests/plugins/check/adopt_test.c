// Two buffers on the same memory of the user's: one history. On backends with native handles.
#include <string.h>

#include <weir/check.h>
#include <weir/interop.h>
#include <weir/weir.h>

#include "tests/plugins/rig.h"

struct adopted {
    struct rig rig;
    weir_buffer *x; // both on the rig's memory
    weir_buffer *y;
};

static weir_buffer *adopt(const struct adopted *it, const char *label, weir_buffer *owner)
{
    struct weir_native_buffer native = {0};
    weir_buffer *buffer = NULL;
    EXPECT_OK(weir_buffer_get_native(owner, &native));
    EXPECT_OK(weir_buffer_adopt(it->rig.device,
                                WEIR_PARAMS(weir_adopt, .label = label,
                                            .native = native.memory ? (uintptr_t)native.memory
                                                                    : native.address,
                                            .size = RIG_BYTES),
                                &buffer));
    return buffer;
}

static bool start(struct adopted *it)
{
    *it = (struct adopted){.x = NULL};
    if (!rig_begin(&it->rig, "check", ""))
        return false;
    it->x = adopt(it, "x", it->rig.memory);
    it->y = adopt(it, "y", it->rig.memory);
    return it->x && it->y;
}

static void finish(struct adopted *it)
{
    EXPECT_OK(weir_queue_sync(it->rig.up, WEIR_FOREVER));
    EXPECT_OK(weir_queue_sync(it->rig.down, WEIR_FOREVER));
    weir_buffer_destroy(&it->x);
    weir_buffer_destroy(&it->y);
    EXPECT_OK(weir_device_trim(it->rig.device));
    rig_finish(&it->rig);
}

#define ADOPT_TEST(name) WEIR_TEST_WITH(CheckAdopt, name, struct adopted, it, start(it), finish(it))

ADOPT_TEST(SameMemory)
{
    const int first = __LINE__ + 1;
    EXPECT_OK(weir_queue_fill(it->rig.up, it->x, 0, 64, "\7", 1));
    const int second = __LINE__ + 1;
    EXPECT_OK(weir_queue_fill(it->rig.down, it->y, 32, 64, "\7", 1));
    EXPECT_OK(weir_queue_fill(it->rig.down, it->y, 128, 64, "\7", 1));
    ASSERT_UINT_EQ(weir_check_count(it->rig.runtime), 1);
    struct weir_check_finding finding;
    ASSERT_OK(weir_check_get(it->rig.runtime, 0, &finding));
    EXPECT_INT_EQ(finding.kind, WEIR_CHECK_WRITE_AFTER_WRITE);
    EXPECT_STR_EQ(finding.buffer, "y");
    EXPECT_UINT_EQ(finding.offset, 32);
    EXPECT_UINT_EQ(finding.size, 32);
    EXPECT_INT_EQ(finding.first.line, first);
    EXPECT_INT_EQ(finding.second.line, second);
}

// Other memory, whose handle or address may be close by.
ADOPT_TEST(OtherMemory)
{
    weir_buffer *others[8];
    weir_buffer *adopted[8];
    for (int i = 0; i < 8; i++) {
        others[i] = test_buffer(it->rig.device, "", RIG_BYTES, WEIR_PLACE_DEVICE);
        adopted[i] = adopt(it, "other", others[i]);
        EXPECT_OK(
            weir_queue_fill(i % 2 ? it->rig.up : it->rig.down, adopted[i], 0, RIG_BYTES, "\7", 1));
    }
    EXPECT_UINT_EQ(weir_check_count(it->rig.runtime), 0);
    EXPECT_OK(weir_queue_sync(it->rig.up, WEIR_FOREVER));
    EXPECT_OK(weir_queue_sync(it->rig.down, WEIR_FOREVER));
    for (int i = 0; i < 8; i++)
        weir_buffer_destroy(&adopted[i]);
    EXPECT_OK(weir_device_trim(it->rig.device));
    for (int i = 0; i < 8; i++)
        weir_buffer_destroy(&others[i]);
}
