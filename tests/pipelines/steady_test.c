// Nothing is allocated in the loop: between the tenth frame and the thousandth
// Weir's own counters stand still, and so do the calls of malloc that Weir's C code
// in this program makes (the linker wraps them; drivers and modules, which are
// shared objects, are not seen that way, and the counters see modules).
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/pipelines/rig.h"
#include "tests/pipelines/test_images.h"

enum {
    FROM = 10,
    FRAMES = 1000
};

static atomic_ulong calls;
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);

void *__wrap_malloc(size_t size)
{
    calls++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    calls++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *pointer, size_t size)
{
    calls++;
    return __real_realloc(pointer, size);
}

struct point {
    struct weir_counters counters;
    unsigned long calls;
};

static struct loop {
    const struct rig_image *images;
    unsigned loads;
    bool some_fail; // every seventh image cannot be loaded
    unsigned delivered;
    unsigned succeeded;
    struct point from;
    struct point to;
} loop;

static void note(struct point *point)
{
    weir_counters_read(&point->counters);
    point->calls = calls;
}

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    const unsigned number = loop.loads++;
    const struct rig_image *image = &loop.images[number % TEST_IMAGES];
    (void)user;
    (void)capacity;
    if (loop.some_fail && number % 7 == 3)
        return WEIR_ERROR_IO;
    memcpy(rgb, image->rgb, (size_t)image->height * (size_t)image->width * 3);
    *out_width = (uint32_t)image->width;
    *out_height = (uint32_t)image->height;
    return WEIR_OK;
}

static void deliver(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    (void)user;
    (void)frame;
    (void)result;
    loop.delivered++;
    loop.succeeded += output != NULL;
    if (loop.delivered == FROM)
        note(&loop.from);
    if (loop.delivered == FRAMES)
        note(&loop.to);
}

static void run_loop(const struct rig *rig, uint32_t slots, bool timing)
{
    const struct weir_arr_coc_sizes sizes = {64, 4, 256};
    struct weir_arr_coc_frame frame = {.load = load};
    struct weir_arr_coc_params params =
        rig_params(rig, &sizes, test_images_max_pixels(loop.images));
    weir_arr_coc *arr_coc;

    params.slot_count = slots;
    params.timing = timing;
    params.deliver = deliver;
    ASSERT_OK(weir_arr_coc_create(&params, &arr_coc));
    // The same frame many times: what it loads is decided when it is its turn.
    for (int i = 0; i < FRAMES; i++)
        EXPECT_OK(weir_pipeline_submit(weir_arr_coc_pipeline(arr_coc), &frame));
    EXPECT_OK(weir_pipeline_drain(weir_arr_coc_pipeline(arr_coc), WEIR_FOREVER));
    weir_arr_coc_destroy(&arr_coc);
}

static void expect_steady(uint32_t slots, bool timing, bool some_fail)
{
    struct rig_image images[TEST_IMAGES];
    struct rig rig;

    ASSERT_TRUE(test_images_make(images));
    loop = (struct loop){.images = images, .some_fail = some_fail};
    if (rig_open(&rig, 0, RIG_SMALL_WEIGHTS)) {
        run_loop(&rig, slots, timing);
        rig_close(&rig);
    }
    test_images_finish(images);

    ASSERT_UINT_EQ(loop.delivered, FRAMES);
    EXPECT_UINT_EQ(loop.succeeded, some_fail ? FRAMES - (FRAMES + 3) / 7 : FRAMES);
    EXPECT_UINT_GT(loop.from.counters.allocations, 0);
    EXPECT_UINT_EQ(loop.to.counters.allocations, loop.from.counters.allocations);
    EXPECT_UINT_EQ(loop.to.counters.driver_objects, loop.from.counters.driver_objects);
    EXPECT_UINT_EQ(loop.to.calls, loop.from.calls);
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
