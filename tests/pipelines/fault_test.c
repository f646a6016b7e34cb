// Every call that a pipeline's creation makes, and every allocation in it, fails once in turn; so
// does every launch of a frame, and every call of weir_arr_coc_compile(). The error names the
// request, and nothing is leaked: closing the rig fails the test if the device still has an object,
// and the sanitizer finds lost memory. The linker wraps the calls.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/pipelines/rig.h"
#include "tests/support/made_images.h"

static const struct weir_arr_coc_sizes sizes = {64, 4, 256};

// Counts down to the call that fails; 0: none. Calls of Weir and of the allocator
// are counted apart.
static atomic_int calls_left;
static atomic_int allocations_left;

static bool is_last(atomic_int *left)
{
    return *left > 0 && atomic_fetch_sub(left, 1) == 1;
}

static weir_status injected(const char *call)
{
    struct weir_error error = {.status = WEIR_ERROR_DEVICE};
    snprintf(error.message, sizeof error.message, "made to fail: %s", call);
    return weir_error_set(&error);
}

// WRAP(name, declaration of parameters, their names)
#define WRAP(name, parameters, names)                                        \
    weir_status __real_##name parameters;                                    \
    weir_status __wrap_##name parameters;                                    \
    weir_status __wrap_##name parameters                                     \
    {                                                                        \
        return is_last(&calls_left) ? injected(#name) : __real_##name names; \
    }
WRAP(weir_buffer_create_at,
     (weir_device * device, const struct weir_buffer_params *params, weir_buffer **out,
      const char *file, int line),
     (device, params, out, file, line))
WRAP(weir_queue_create_at,
     (weir_device * device, const struct weir_queue_params *params, weir_queue **out,
      const char *file, int line),
     (device, params, out, file, line))
WRAP(weir_program_create_at,
     (weir_device * device, const struct weir_program_params *params, weir_program **out,
      const char *file, int line),
     (device, params, out, file, line))
WRAP(weir_kernel_create_at,
     (weir_program * program, const char *name, weir_kernel **out, const char *file, int line),
     (program, name, out, file, line))
WRAP(weir_upload_at,
     (weir_queue * queue, weir_buffer *dst, size_t offset, const void *src, size_t size,
      const char *file, int line),
     (queue, dst, offset, src, size, file, line))
WRAP(weir_queue_launch_at,
     (weir_queue * queue, weir_kernel *kernel, struct weir_extent grid, struct weir_extent block,
      const struct weir_argument *arguments, size_t count, const char *file, int line),
     (queue, kernel, grid, block, arguments, count, file, line))
WRAP(weir_queue_fill_at,
     (weir_queue * queue, weir_buffer *buffer, size_t offset, size_t size, const void *pattern,
      size_t pattern_size, const char *file, int line),
     (queue, buffer, offset, size, pattern, pattern_size, file, line))
WRAP(weir_queue_sync_at, (weir_queue * queue, uint64_t timeout_ns, const char *file, int line),
     (queue, timeout_ns, file, line))
#undef WRAP

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);

void *__wrap_malloc(size_t size)
{
    return is_last(&allocations_left) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_last(&allocations_left) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *pointer, size_t size)
{
    return is_last(&allocations_left) ? NULL : __real_realloc(pointer, size);
}

// Creates with the given call, or allocation, failing. Returns whether that call or
// allocation was reached.
static bool create_with(const struct weir_arr_coc_params *params, atomic_int *left, int number,
                        weir_arr_coc **out_arr_coc, weir_status *out_status)
{
    weir_error_set(NULL);
    *left = number;
    *out_status = weir_arr_coc_create(params, out_arr_coc);
    bool reached = *left == 0;
    *left = 0;
    EXPECT_TRUE((*out_arr_coc == NULL) == (*out_status != WEIR_OK));
    if (*out_status < 0)
        EXPECT_INT_EQ(weir_last_error()->status, *out_status);
    return reached;
}

WEIR_TEST(ArrCocFaults, EveryCallOfCreation)
{
    struct rig rig;
    weir_arr_coc *arr_coc;
    weir_status status;
    int number = 1;

    ASSERT_TRUE(rig_open(&rig, 0, RIG_SMALL_WEIGHTS));
    struct weir_arr_coc_params params = rig_params(&rig, &sizes, 2000);
    params.slot_count = 3;
    for (; create_with(&params, &calls_left, number, &arr_coc, &status); number++) {
        weir_test_note("call %d", number);
        EXPECT_INT_EQ(status, WEIR_ERROR_DEVICE);
        EXPECT_CONTAINS(weir_last_error()->message, "made to fail: weir_");
        weir_arr_coc_destroy(&arr_coc);
    }
    EXPECT_INT_EQ(status, WEIR_OK);
    weir_arr_coc_destroy(&arr_coc);
    // Four queues, a program, seven kernels, two buffers and an upload, for each slot three buffers
    // and a launch, one launch more, and a wait.
    EXPECT_INT_GE(number, 4 + 1 + 7 + 3 + 3 * 4 + 1 + 1);
    rig_close(&rig);
}

WEIR_TEST(ArrCocFaults, EveryAllocationOfCreation)
{
    struct rig rig;
    weir_arr_coc *arr_coc;
    weir_status status;
    int number = 1, refused = 0;

    ASSERT_TRUE(rig_open(&rig, 0, RIG_SMALL_WEIGHTS));
    struct weir_arr_coc_params params = rig_params(&rig, &sizes, 2000);
    params.slot_count = 2;
    for (; create_with(&params, &allocations_left, number, &arr_coc, &status); number++) {
        weir_test_note("allocation %d", number);
        // Some allocations are optional, such as a cache's.
        if (status != WEIR_OK)
            EXPECT_INT_EQ(status, WEIR_ERROR_OUT_OF_MEMORY);
        refused += status != WEIR_OK;
        weir_arr_coc_destroy(&arr_coc);
    }
    EXPECT_INT_EQ(status, WEIR_OK);
    weir_arr_coc_destroy(&arr_coc);
    EXPECT_INT_GT(refused, 20);
    rig_close(&rig);
}

static const char *next_kernel(void *user)
{
    size_t *index = user;
    return weir_arr_coc_kernel_name((*index)++);
}

WEIR_TEST(ArrCocFaults, EveryCallOfCompile)
{
    struct rig rig;
    weir_status status = WEIR_ERROR_DEVICE;
    int number = 1;

    ASSERT_TRUE(rig_open(&rig, 0, RIG_SMALL_WEIGHTS));
    const struct weir_arr_coc_params params = rig_params(&rig, &sizes, 2000);
    for (; status != WEIR_OK; number++) {
        size_t next = 0;
        weir_test_note("call %d", number);
        calls_left = number;
        status = weir_arr_coc_compile(&params, next_kernel, &next);
        if (calls_left > 0)
            break;
        EXPECT_INT_EQ(status, WEIR_ERROR_DEVICE);
        EXPECT_CONTAINS(weir_last_error()->message, "made to fail: weir_");
    }
    calls_left = 0;
    EXPECT_INT_EQ(status, WEIR_OK);
    // A queue, a program, seven kernels, two buffers, the slot's three, five fills, and seven launches
    // and waits.
    EXPECT_INT_GE(number, 1 + 1 + 7 + 2 + 3 + 5 + 2 * 7);
    rig_close(&rig);
}

WEIR_TEST(ArrCocFaults, EveryLaunchOfAFrame)
{
    static const char *const stages[] = {"texture", "relevance", "relevance", "allocation",
                                         "allocation"};
    enum {
        LAUNCHES = sizeof stages / sizeof *stages
    };
    struct rig_image image = rig_image_make(40, 50);
    struct rig_frame good, bad, after;
    struct rig rig;
    weir_arr_coc *arr_coc;

    made_image_noise(40, 50, 1, image.rgb);
    ASSERT_TRUE(rig_open(&rig, 0, RIG_SMALL_WEIGHTS));
    const bool computes = strcmp(weir_runtime_backend(rig.runtime), "null") != 0;
    const uint32_t grid = computes ? sizes.grid : 0;
    struct weir_arr_coc_params params = rig_params(&rig, &sizes, 2000);
    params.slot_count = 2;
    ASSERT_OK(weir_arr_coc_create(&params, &arr_coc));
    rig_frame_init(&good, &image, grid);
    EXPECT_TRUE(rig_run(arr_coc, &good, 1));
    for (int i = 0; i < LAUNCHES; i++) {
        weir_test_note("launch %d", i);
        rig_frame_init(&bad, &image, grid);
        rig_frame_init(&after, &image, grid);
        calls_left = i + 1;
        EXPECT_TRUE(rig_run(arr_coc, &bad, 1));
        EXPECT_INT_EQ(calls_left, 0);
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
    weir_arr_coc_destroy(&arr_coc);
    rig_frame_finish(&good);
    rig_close(&rig);
    rig_image_finish(&image);
}
