// The same bits from the same images: in two runs, with one and with several slots
// in flight, and on every device of the chain.
#include <string.h>

#include "tests/pipelines/rig.h"

enum {
    ROUNDS = 3,
    FRAMES = ROUNDS * TEST_IMAGES
};

static const struct weir_arr_coc_sizes sizes = {256, 16, 1024};

static const struct rig_way ways[] = {
    {0, 1, false, false}, {0, 3, false, false}, {0, 0, true, false},  {0, 1, false, true},
    {0, 3, false, true},  {1, 1, false, false}, {1, 3, false, false},
};

static void finish_all(struct rig_frame frames[FRAMES])
{
    for (size_t i = 0; i < FRAMES; i++)
        rig_frame_finish(&frames[i]);
}

static void expect_images_differ(const struct rig_frame frames[FRAMES])
{
    EXPECT_TRUE(frames[0].size != frames[1].size ||
                memcmp(frames[0].bytes, frames[1].bytes, frames[0].size) != 0);
}

// All frames of an image have the bits of its first one in the first way.
static void expect_same(const struct rig_way *way, const struct rig_frame first[FRAMES],
                        const struct rig_frame frames[FRAMES])
{
    for (size_t i = 0; i < FRAMES; i++)
        if (!rig_same_bits(&first[i % TEST_IMAGES], &frames[i]))
            WEIR_FAIL("frame %zu on device %zu, %u slots, timing %d, graphs %d", i, way->device,
                      (unsigned)way->slots, way->timing, way->graphs);
}

WEIR_TEST(ArrCocDeterminism, EveryWay)
{
    const size_t devices = rig_device_count();
    struct rig_image images[TEST_IMAGES];
    struct rig_frame first[FRAMES], frames[FRAMES];

    ASSERT_TRUE(test_images_make(images));
    if (rig_run_images(&ways[0], &sizes, images, first, FRAMES)) {
        expect_images_differ(first);
        expect_same(&ways[0], first, first);
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            if (ways[i].device >= devices)
                continue;
            if (rig_run_images(&ways[i], &sizes, images, frames, FRAMES))
                expect_same(&ways[i], first, frames);
            finish_all(frames);
        }
    }
    finish_all(first);
    test_images_finish(images);
}
