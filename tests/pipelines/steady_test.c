// Nothing is allocated in the loop once it is warm: from a tenth of the frames to the
// last, Weir's own counters do not change, and neither does the number of malloc calls
// of Weir's C code in this program (the linker wraps them; drivers and modules, which
// are shared objects, are not seen that way, and the counters see modules). Before that
// the queues' lists of waits may still grow to the size needed for the work in flight.
//
// WEIR_STEADY_FRAMES runs more frames. From RIG_LONG on, the process's memory is checked
// too, including drivers: it must not grow by more than the C library may keep.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/pipelines/rig.h"
#include "tests/support/memory.h"

#define GROWTH_BYTES (UINT64_C(4) << 20)

struct point {
    struct weir_counters counters;
    unsigned long calls;
    uint64_t resident_bytes;
};

static struct loop {
    const struct rig_image *images;
    unsigned loads;
    bool some_fail; // every seventh image cannot be loaded
    unsigned frames;
    unsigned delivered;
    unsigned succeeded;
    struct point from;
    struct point to;
} loop;

static void note(struct point *point)
{
    weir_counters_read(&point->counters);
    point->calls = weir_test_allocations();
    if (loop.frames >= RIG_LONG)
        point->resident_bytes = weir_test_resident_bytes();
}

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    const unsigned number = loop.loads++;
    const struct rig_image *image = &loop.images[number % TEST_IMAGES];
    if (loop.some_fail && number % 7 == 3)
        return WEIR_ERROR_IO;
    return rig_image_load(image, rgb, out_width, out_height);
}

static void deliver(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    loop.delivered++;
    loop.succeeded += output != NULL;
    if (loop.delivered == loop.frames / 10)
        note(&loop.from);
    if (loop.delivered == loop.frames)
        note(&loop.to);
}

static void run_loop(const struct rig *rig, uint32_t slots, bool timing)
{
    const struct weir_arr_coc_sizes sizes = {64, 4, 256};
    struct weir_arr_coc_frame frame = {.load = load};
    struct weir_arr_coc_params params =
        rig_params(rig, &sizes, test_images_max_pixels(loop.images));
    own_arr_coc arr_coc = NULL;

    params.slot_count = slots;
    params.timing = timing;
    params.deliver = deliver;
    ASSERT_OK(weir_arr_coc_create(&params, &arr_coc));
    // The same frame many times: its image is chosen when it is loaded.
    for (unsigned i = 0; i < loop.frames; i++)
        EXPECT_OK(weir_pipeline_submit(weir_arr_coc_pipeline(arr_coc), &frame));
    EXPECT_OK(weir_pipeline_drain(weir_arr_coc_pipeline(arr_coc), WEIR_FOREVER));
}

// A line for the table of a GPU machine, too.
static void expect_flat(void)
{
    if (loop.frames < RIG_LONG)
        return;
    EXPECT_UINT_GT(loop.from.resident_bytes, 0);
    EXPECT_UINT_LE(loop.to.resident_bytes, loop.from.resident_bytes + GROWTH_BYTES);
    printf("steady: %u frames, after a tenth and at the end: %llu and %llu allocations, %.1f and "
           "%.1f MiB\n",
           loop.frames, (unsigned long long)loop.from.counters.allocations,
           (unsigned long long)loop.to.counters.allocations,
           (double)loop.from.resident_bytes / 1048576, (double)loop.to.resident_bytes / 1048576);
}

static void expect_steady(uint32_t slots, bool timing, bool some_fail)
{
    struct rig_image images[TEST_IMAGES];
    struct rig rig;

    loop = (struct loop){.images = images,
                         .some_fail = some_fail,
                         .frames = rig_frames_wanted("WEIR_STEADY_FRAMES")};
    ASSERT_TRUE(loop.frames > 0);
    ASSERT_TRUE(test_images_make(images));
    if (rig_open(&rig, 0, RIG_SMALL_WEIGHTS)) {
        run_loop(&rig, slots, timing);
        rig_close(&rig);
    }
    test_images_finish(images);

    const unsigned frames = loop.frames;
    ASSERT_UINT_EQ(loop.delivered, frames);
    EXPECT_UINT_EQ(loop.succeeded, some_fail ? frames - (frames + 3) / 7 : frames);
    EXPECT_UINT_GT(loop.from.counters.allocations, 0);
    EXPECT_UINT_EQ(loop.to.counters.allocations, loop.from.counters.allocations);
    EXPECT_UINT_EQ(loop.to.counters.driver_objects, loop.from.counters.driver_objects);
    EXPECT_UINT_GT(loop.from.calls, 0);
    EXPECT_UINT_EQ(loop.to.calls, loop.from.calls);
    expect_flat();
}

WEIR_TEST(ArrCocSteady, OneSlot)
{
    expect_steady(1, false, false);
}

WEIR_TEST(ArrCocSteady, ThreeSlots)
{
    expect_steady(3, false, false);
}

WEIR_TEST(ArrCocSteady, DefaultSlotsWithTiming)
{
    expect_steady(0, true, false);
}

WEIR_TEST(ArrCocSteady, SomeFramesFail)
{
    expect_steady(3, false, true);
}
