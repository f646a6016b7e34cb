// Frames while one operation in a hundred gets a fault: each frame either has the bits of a run
// without faults, or tells its first cause, which is a fault; all are delivered, in order, and the
// process's memory does not grow.
//
// WEIR_INJECTED_FRAMES runs more frames. From RIG_LONG on, the memory is checked: from a tenth of the
// frames to the last it must not grow by more than the C library and the drivers may keep.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "tests/pipelines/rig.h"
#include "tests/support/memory.h"

#define GROWTH_BYTES (UINT64_C(8) << 20)

static const struct weir_arr_coc_sizes sizes = {64, 4, 256};

static struct run {
    const struct rig_image *images;
    bool computes;                 // the backend does
    bool learns;                   // it has no faults: the digests are stored
    uint64_t digests[TEST_IMAGES]; // of the results without a fault
    unsigned frames;
    unsigned delivered;
    unsigned succeeded;
    unsigned failed;
    unsigned wrong; // neither of both
    uint64_t resident_bytes[2];
} run;

// One image.
struct frame {
    struct weir_arr_coc_frame frame; // first: the pipeline returns it
    unsigned image;
};

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    return rig_image_load(&run.images[*(const unsigned *)user], rgb, out_width, out_height);
}

static uint64_t add(uint64_t digest, const void *data, size_t size)
{
    const struct weir_siphash_key key = {{digest, size}};
    return weir_siphash(&key, data, size);
}

static uint64_t digest_of(const struct weir_arr_coc_output *output)
{
    const size_t map = (size_t)sizes.grid * sizes.grid * sizeof(float);
    uint64_t digest = add(1, output->relevance, map);
    digest = add(digest, output->scores, 3 * map);
    digest = add(digest, output->balance, 3 * sizeof(float));
    digest = add(digest, output->patches, (size_t)output->patch_count * 3 * sizeof(int32_t));
    return add(digest, output->tokens, (size_t)output->token_count * 13 * sizeof(float));
}

static void judge(const struct frame *frame, const struct weir_arr_coc_output *output)
{
    if (!run.computes) // its results are undefined
        return;
    const uint64_t digest = digest_of(output);
    if (run.learns)
        run.digests[frame->image] = digest;
    else
        run.wrong += digest != run.digests[frame->image];
}

static bool tells_fault(const struct weir_pipeline_result *result)
{
    return result->error && strstr(result->error->message, "the plugin fault injected ") &&
           strstr(result->error->remedy, "` repeats it");
}

static void deliver(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    if (output) {
        run.succeeded++;
        judge((const struct frame *)(const void *)frame, output);
    } else {
        run.failed++;
        run.wrong += !tells_fault(result);
    }
    run.wrong += result->sequence != run.delivered++;
    if (run.delivered == run.frames / 10)
        run.resident_bytes[0] = weir_test_resident_bytes();
    if (run.delivered == run.frames)
        run.resident_bytes[1] = weir_test_resident_bytes();
}

// Creation submits work too, and so may get a fault: then it is tried again, with other numbers.
static bool create(const struct rig *rig, bool graphs, weir_arr_coc **out_arr_coc)
{
    struct weir_arr_coc_params params = rig_params(rig, &sizes, test_images_max_pixels(run.images));
    params.slot_count = 3;
    params.deliver = deliver;
    params.graphs = graphs;
    for (int i = 0; i < 100; i++) {
        if (weir_arr_coc_create(&params, out_arr_coc) == WEIR_OK)
            return true;
        if (!strstr(weir_last_error_text(), "the plugin fault injected "))
            break;
    }
    weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return false;
}

static void run_frames(const struct rig *rig, unsigned count, bool graphs)
{
    struct frame frames[TEST_IMAGES];
    own_arr_coc arr_coc = NULL;
    run.frames = count;
    run.delivered = run.succeeded = run.failed = run.wrong = 0;
    if (!create(rig, graphs, &arr_coc))
        return;
    for (unsigned i = 0; i < TEST_IMAGES; i++) {
        frames[i] = (struct frame){.frame = {.load = load}, .image = i};
        frames[i].frame.user = &frames[i].image;
    }
    for (unsigned i = 0; i < count; i++)
        EXPECT_OK(
            weir_pipeline_submit(weir_arr_coc_pipeline(arr_coc), &frames[i % TEST_IMAGES].frame));
    EXPECT_OK(weir_pipeline_drain(weir_arr_coc_pipeline(arr_coc), WEIR_FOREVER));
}

static void run_in_chain(const char *plugins, const char *fault, unsigned count, bool graphs)
{
    struct rig rig;
    setenv("WEIR_PLUGINS", plugins, 1);
    setenv("WEIR_FAULT_FAULT", fault, 1);
    setenv("WEIR_FAULT_ONE_IN", "100", 1);
    setenv("WEIR_FAULT_SEED", "11", 1);
    setenv("WEIR_FAULT_DELAY_MS", "1", 1);
    if (rig_open(&rig, 0, RIG_SMALL_WEIGHTS)) {
        run.computes = rig_computes(&rig);
        run_frames(&rig, count, graphs);
        rig_close(&rig);
    }
    unsetenv("WEIR_PLUGINS");
    unsetenv("WEIR_FAULT_FAULT");
}

static void expect_flat(const char *fault)
{
    const double mebibyte = 1048576;
    if (run.frames < RIG_LONG)
        return;
    EXPECT_UINT_GT(run.resident_bytes[0], 0);
    EXPECT_UINT_LE(run.resident_bytes[1], run.resident_bytes[0] + GROWTH_BYTES);
    printf("injected: %s: %u frames, %u failed, after a tenth and at the end %.1f and %.1f MiB\n",
           fault, run.frames, run.failed, (double)run.resident_bytes[0] / mebibyte,
           (double)run.resident_bytes[1] / mebibyte);
}

static void expect_survived(const char *fault, bool graphs)
{
    struct rig_image images[TEST_IMAGES];
    const unsigned count = rig_frames_wanted("WEIR_INJECTED_FRAMES");
    ASSERT_UINT_GT(count, 0);
    ASSERT_TRUE(test_images_make(images));
    run = (struct run){.images = images, .learns = true};
    run_in_chain("", "", TEST_IMAGES, graphs);
    EXPECT_UINT_EQ(run.succeeded, TEST_IMAGES);
    run.learns = false;
    run_in_chain("fault", fault, count, graphs);
    EXPECT_UINT_EQ(run.delivered, count);
    EXPECT_UINT_EQ(run.succeeded + run.failed, count);
    EXPECT_UINT_EQ(run.wrong, 0);
    if (strcmp(fault, "slow") == 0)
        EXPECT_UINT_EQ(run.failed, 0);
    else
        EXPECT_UINT_GT(run.failed, 0);
    expect_flat(fault);
    test_images_finish(images);
}

WEIR_TEST(ArrCocInjected, Refusals)
{
    expect_survived("refuse", false);
}

WEIR_TEST(ArrCocInjected, LaterFailures)
{
    expect_survived("fail", false);
}

WEIR_TEST(ArrCocInjected, Delays)
{
    expect_survived("slow", false);
}

WEIR_TEST(ArrCocInjected, LaterFailuresOfGraphs)
{
    expect_survived("fail", true);
}
