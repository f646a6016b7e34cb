// Frames of a few images in a loop. In every way they have the same bits. Once the loop is warm nothing is allocated:
// from a tenth of the frames to the last, Weir's own counters do not change, and neither does the number of malloc calls
// of Weir's C code in this program (the linker wraps them; drivers and modules, which are shared objects, are not seen
// that way, and the counters see modules); before that the queues' lists of waits may still grow to the size needed for
// the work in flight. And while one operation in a hundred gets a fault, each frame either has the bits of a run without
// faults, or tells its first cause, which is a fault; all are delivered, in order.
//
// WEIR_STEADY_FRAMES and WEIR_INJECTED_FRAMES run more frames. From LONG on, the process's memory is checked too,
// including drivers: it must not grow by more than the C library and the drivers may keep.

#include "base/hash.h"
#include "tests/pipelines/rig.h"
#include "tests/support/made_images.h"
#include "tests/support/memory.h"

enum {
    TEST_IMAGES = 6,
    FRAMES = 1000,
    LONG = 5000
};

static const struct weir_arr_coc_sizes small = {64, 4, 256}, usual = {256, 16, 1024};

struct point {
    struct weir_counters counters;
    unsigned long calls;
    uint64_t resident_bytes;
};

static struct loop {
    struct rig_image images[TEST_IMAGES];
    const struct weir_arr_coc_sizes *sizes;
    bool computes;                 // the backend does, else results are undefined
    bool learns;                   // the digests of this run are stored
    bool some_fail;                // every seventh image cannot be loaded
    uint64_t digests[TEST_IMAGES]; // of the results
    unsigned loads;
    unsigned frames;
    unsigned delivered;
    unsigned succeeded;
    unsigned wrong; // neither the digest nor a cause, or in another order
    struct point from, to;
} loop;

static void note(struct point *point)
{
    weir_counters_read(&point->counters);
    point->calls = weir_test_allocations();
    if (loop.frames >= LONG)
        point->resident_bytes = weir_test_resident_bytes();
}

// `user` is the image.
static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    if (loop.loads++ % 7 == 3 && loop.some_fail)
        return WEIR_ERROR_IO;
    const struct rig_image *image = user;
    memcpy(rgb, image->rgb, (size_t)image->height * (size_t)image->width * 3);
    *out_width = (uint32_t)image->width;
    *out_height = (uint32_t)image->height;
    return WEIR_OK;
}

static uint64_t digest_of(const struct weir_arr_coc_output *output)
{
    const size_t map = (size_t)loop.sizes->grid * loop.sizes->grid * sizeof(float);
    uint64_t digest = weir_hash(1, output->relevance, map);
    digest = weir_hash(digest, output->scores, 3 * map);
    digest = weir_hash(digest, output->balance, 3 * sizeof(float));
    digest = weir_hash(digest, output->patches, (size_t)output->patch_count * 3 * sizeof(int32_t));
    return weir_hash(digest, output->tokens, (size_t)output->token_count * 13 * sizeof(float));
}

static void judge(const struct rig_image *image, const struct weir_arr_coc_output *output)
{
    if (!loop.computes)
        return;
    const uint64_t digest = digest_of(output);
    uint64_t *known = &loop.digests[image - loop.images];
    if (loop.learns)
        *known = digest;
    else
        loop.wrong += digest != *known;
}

static bool tells_cause(const struct weir_pipeline_result *result)
{
    return loop.some_fail ||
           (result->error && strstr(result->error->message, "the plugin fault injected ") &&
            strstr(result->error->remedy, "` repeats it"));
}

static void deliver(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    loop.succeeded += output != NULL;
    if (output)
        judge(frame->user, output);
    else
        loop.wrong += !tells_cause(result);
    loop.wrong += result->sequence != loop.delivered++;
    if (loop.delivered == loop.frames / 10)
        note(&loop.from);
    if (loop.delivered == loop.frames)
        note(&loop.to);
}

struct way {
    size_t device;
    uint32_t slots;
    bool timing;
    bool graphs;
};

// Creation submits work too, and so may get a fault: then it is tried again, with other numbers.
static weir_status create(const struct rig *rig, const struct way *way, weir_arr_coc **out_arr_coc)
{
    const struct rig_image *largest = &loop.images[0];
    struct weir_arr_coc_params params =
        rig_params(rig, loop.sizes, (uint64_t)largest->height * (uint64_t)largest->width);
    weir_status status = WEIR_NOT_READY;
    params.pipeline.slot_count = way->slots;
    params.pipeline.timing = way->timing;
    params.pipeline.graphs = way->graphs;
    params.deliver = deliver;
    for (int i = 0; i < 100 && status != WEIR_OK; i++) {
        status = weir_arr_coc_create(&params, out_arr_coc);
        if (status != WEIR_OK && !strstr(weir_last_error_text(), "the plugin fault injected "))
            break;
    }
    return status;
}

// Runs the images in turn, on a device of its own.
static void run(const struct way *way, const char *weights, unsigned count)
{
    struct weir_arr_coc_frame frames[TEST_IMAGES];
    weir_arr_coc *arr_coc = NULL;
    struct rig rig;
    loop.frames = count;
    loop.delivered = loop.succeeded = loop.wrong = loop.loads = 0;
    ASSERT_UINT_GT(count, 0);
    ASSERT_TRUE(rig_open(&rig, way->device, weights));
    loop.computes = rig_computes(&rig);
    if (IS_OK(create(&rig, way, &arr_coc))) {
        for (unsigned i = 0; i < TEST_IMAGES; i++)
            frames[i] = (struct weir_arr_coc_frame){.load = load, .user = &loop.images[i]};
        for (unsigned i = 0; i < count; i++)
            EXPECT_OK(
                weir_pipeline_submit(weir_arr_coc_pipeline(arr_coc), &frames[i % TEST_IMAGES]));
        EXPECT_OK(weir_pipeline_drain(weir_arr_coc_pipeline(arr_coc), WEIR_FOREVER));
        weir_arr_coc_destroy(&arr_coc);
    }
    rig_close(&rig);
    EXPECT_UINT_EQ(loop.delivered, count);
    EXPECT_UINT_EQ(loop.wrong, 0);
}

// A photograph, which is the largest, noise, a gradient, one pixel, one row, and a checkerboard.
static void open_loop(const struct weir_arr_coc_sizes *sizes)
{
    static const int shapes[TEST_IMAGES][2] = {{0},    {300, 201}, {64, 640},
                                               {1, 1}, {1, 5000},  {257, 255}};
    struct rig_image *images = loop.images;
    loop = (struct loop){.sizes = sizes, .learns = true};
    ASSERT_TRUE(rig_image_read(weir_test_runfile("tests/data/images/coffee.png"), &images[0]));
    for (int i = 1; i < TEST_IMAGES; i++)
        images[i] = rig_image_make(shapes[i][0], shapes[i][1]);
    made_image(MADE_NOISE, 300, 201, 3, 0, images[1].rgb);
    made_image(MADE_GRADIENT, 64, 640, 0, 0, images[2].rgb);
    made_image(MADE_FLAT, 1, 1, 0x80c040, 0, images[3].rgb);
    made_image(MADE_NOISE, 1, 5000, 4, 0, images[4].rgb);
    made_image(MADE_CHECKER, 257, 255, 0xd02000, 0x0040f0, images[5].rgb);
}

static void close_loop(void)
{
    for (int i = 0; i < TEST_IMAGES; i++)
        rig_image_finish(&loop.images[i]);
}

#define LOOP_TEST(suite, name, sizes) WEIR_TEST_BETWEEN(suite, name, open_loop(sizes), close_loop())

// --- bits ---

// In two runs, with one and with several slots in flight, as graphs, which are captured again for an image of another
// size, and on every device of the chain.
LOOP_TEST(ArrCocDeterminism, EveryWay, &usual)
{
    static const struct way ways[] = {
        {0, 1, false, false}, {0, 3, false, false}, {0, 0, true, false},  {0, 1, false, true},
        {0, 3, false, true},  {1, 1, false, false}, {1, 3, false, false},
    };
    const size_t devices = rig_device_count();
    run(&ways[0], RIG_WEIGHTS, TEST_IMAGES);
    EXPECT_TRUE(loop.digests[0] != loop.digests[1]);
    loop.learns = false;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        weir_test_note("way %zu", i);
        if (ways[i].device >= devices)
            continue;
        run(&ways[i], RIG_WEIGHTS, 3 * TEST_IMAGES);
        EXPECT_UINT_EQ(loop.succeeded, 3 * TEST_IMAGES);
    }
}

// --- memory ---

static unsigned frames_wanted(const char *variable)
{
    const char *text = getenv(variable);
    return text ? (unsigned)strtoul(text, NULL, 10) : FRAMES;
}

// And prints a line for the table of a GPU machine.
static void expect_no_growth(const char *loop_name, uint64_t most_bytes)
{
    if (loop.frames < LONG)
        return;
    EXPECT_UINT_GT(loop.from.resident_bytes, 0);
    EXPECT_UINT_LE(loop.to.resident_bytes, loop.from.resident_bytes + most_bytes);
    printf("%s: %u frames, %u failed, after a tenth and at the end: %llu and %llu allocations, "
           "%.1f and %.1f MiB\n",
           loop_name, loop.frames, loop.frames - loop.succeeded,
           (unsigned long long)loop.from.counters.allocations,
           (unsigned long long)loop.to.counters.allocations,
           (double)loop.from.resident_bytes / 1048576, (double)loop.to.resident_bytes / 1048576);
}

static void expect_steady(uint32_t slots, bool timing, bool some_fail)
{
    const struct way way = {.slots = slots, .timing = timing};
    const unsigned frames = frames_wanted("WEIR_STEADY_FRAMES");
    loop.some_fail = some_fail;
    run(&way, RIG_SMALL_WEIGHTS, frames);
    EXPECT_UINT_EQ(loop.succeeded, some_fail ? frames - (frames + 3) / 7 : frames);
    EXPECT_UINT_GT(loop.from.counters.allocations, 0);
    EXPECT_UINT_EQ(loop.to.counters.allocations, loop.from.counters.allocations);
    EXPECT_UINT_EQ(loop.to.counters.driver_objects, loop.from.counters.driver_objects);
    EXPECT_UINT_GT(loop.from.calls, 0);
    EXPECT_UINT_EQ(loop.to.calls, loop.from.calls);
    expect_no_growth("steady", UINT64_C(4) << 20);
}

LOOP_TEST(ArrCocSteady, OneSlot, &small)
{
    expect_steady(1, false, false);
}

LOOP_TEST(ArrCocSteady, ThreeSlots, &small)
{
    expect_steady(3, false, false);
}

LOOP_TEST(ArrCocSteady, DefaultSlotsWithTiming, &small)
{
    expect_steady(0, true, false);
}

LOOP_TEST(ArrCocSteady, SomeFramesFail, &small)
{
    expect_steady(3, false, true);
}

// --- faults ---

static void expect_survived(const char *fault, bool graphs)
{
    const struct way way = {.slots = 3, .graphs = graphs};
    char name[64];
    run(&way, RIG_SMALL_WEIGHTS, TEST_IMAGES);
    EXPECT_UINT_EQ(loop.succeeded, TEST_IMAGES);
    loop.learns = false;
    setenv("WEIR_PLUGINS", "fault", 1);
    setenv("WEIR_FAULT_FAULT", fault, 1);
    setenv("WEIR_FAULT_ONE_IN", "100", 1);
    setenv("WEIR_FAULT_SEED", "11", 1);
    setenv("WEIR_FAULT_DELAY_MS", "1", 1);
    run(&way, RIG_SMALL_WEIGHTS, frames_wanted("WEIR_INJECTED_FRAMES"));
    unsetenv("WEIR_PLUGINS");
    EXPECT_TRUE((loop.succeeded == loop.frames) == (strcmp(fault, "slow") == 0));
    snprintf(name, sizeof name, "injected: %s", fault);
    expect_no_growth(name, UINT64_C(8) << 20);
}

LOOP_TEST(ArrCocInjected, Refusals, &small)
{
    expect_survived("refuse", false);
}

LOOP_TEST(ArrCocInjected, LaterFailures, &small)
{
    expect_survived("fail", false);
}

LOOP_TEST(ArrCocInjected, Delays, &small)
{
    expect_survived("slow", false);
}

LOOP_TEST(ArrCocInjected, LaterFailuresOfGraphs, &small)
{
    expect_survived("fail", true);
}
