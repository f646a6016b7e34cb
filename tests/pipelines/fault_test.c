// Every call that a pipeline's creation makes, and every allocation in it, fails once in turn; so
// does every launch of a frame. The error names the request, and nothing is leaked: closing the rig
// fails the test if the device still has an object, and the sanitizer finds lost memory. The linker
// wraps the calls.
#include <string.h>

#include "tests/pipelines/failing_calls.h"
#include "tests/pipelines/rig.h"
#include "tests/support/made_images.h"
#include "tests/support/memory.h"

static const struct weir_arr_coc_sizes sizes = {64, 4, 256};

static weir_status create(const struct weir_arr_coc_params *params, weir_arr_coc **out_arr_coc)
{
    weir_error_set(NULL);
    const weir_status status = weir_arr_coc_create(params, out_arr_coc);
    EXPECT_TRUE((*out_arr_coc == NULL) == (status != WEIR_OK));
    if (status < 0)
        EXPECT_INT_EQ(weir_last_error()->status, status);
    return status;
}

SMALL_TEST(ArrCocFaults, EveryCallOfCreation)
{
    weir_arr_coc *arr_coc;
    bool failed = true;
    int number = 0;

    struct weir_arr_coc_params params = rig_params(rig, &sizes, 2000);
    params.slot_count = 3;
    while (failed) {
        weir_test_note("call %d", ++number);
        failing_call(number);
        const weir_status status = create(&params, &arr_coc);
        failed = failing_call_came();
        failing_call(0);
        EXPECT_INT_EQ(status, failed ? WEIR_ERROR_DEVICE : WEIR_OK);
        if (failed)
            EXPECT_CONTAINS(weir_last_error()->message, "made to fail: weir_");
        weir_arr_coc_destroy(&arr_coc);
    }
    // Four queues, a program, seven kernels, two buffers and an upload, for each slot three buffers
    // and a launch, one launch more, and a wait.
    EXPECT_INT_GE(number, 4 + 1 + 7 + 3 + 3 * 4 + 1 + 1);
}

SMALL_TEST(ArrCocFaults, EveryAllocationOfCreation)
{
    weir_arr_coc *arr_coc;
    bool failed = true;
    int refused = 0;

    struct weir_arr_coc_params params = rig_params(rig, &sizes, 2000);
    params.slot_count = 2;
    for (long number = 0; failed; number++) {
        weir_test_fail_allocation(number);
        const weir_status status = create(&params, &arr_coc);
        failed = weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
        weir_test_note("allocation %ld", number);
        // Some allocations are optional, such as a cache's.
        if (status != WEIR_OK)
            EXPECT_INT_EQ(status, WEIR_ERROR_OUT_OF_MEMORY);
        EXPECT_TRUE(failed || status == WEIR_OK);
        refused += status != WEIR_OK;
        weir_arr_coc_destroy(&arr_coc);
    }
    EXPECT_INT_GT(refused, 20);
}

SMALL_TEST(ArrCocFaults, EveryLaunchOfAFrame)
{
    static const char *const stages[] = {"texture", "relevance", "relevance", "allocation",
                                         "allocation"};
    enum {
        LAUNCHES = sizeof stages / sizeof *stages
    };
    struct rig_image image = rig_image_make(40, 50);
    struct rig_frame good, bad, after;
    own_arr_coc arr_coc = NULL;

    made_image_noise(40, 50, 1, image.rgb);
    const bool computes = rig_computes(rig);
    const uint32_t grid = computes ? sizes.grid : 0;
    struct weir_arr_coc_params params = rig_params(rig, &sizes, 2000);
    params.slot_count = 2;
    ASSERT_OK(weir_arr_coc_create(&params, &arr_coc));
    rig_frame_init(&good, &image, grid);
    EXPECT_TRUE(rig_run(arr_coc, &good, 1));
    for (int i = 0; i < LAUNCHES; i++) {
        weir_test_note("launch %d", i);
        rig_frame_init(&bad, &image, grid);
        rig_frame_init(&after, &image, grid);
        failing_call(i + 1);
        EXPECT_TRUE(rig_run(arr_coc, &bad, 1));
        EXPECT_TRUE(failing_call_came());
        EXPECT_TRUE(rig_run(arr_coc, &after, 1));
        EXPECT_INT_EQ(bad.status, WEIR_ERROR_DEVICE);
        EXPECT_STR_EQ(bad.stage, stages[i]);
        EXPECT_STR_EQ(bad.message, "made to fail: weir_queue_launch_at");
        EXPECT_INT_EQ(after.status, WEIR_OK);
        if (computes)
            EXPECT_TRUE(rig_same_bits(&good, &after));
        rig_frame_finish(&after);
        rig_frame_finish(&bad);
    }
    rig_frame_finish(&good);
    rig_image_finish(&image);
}
