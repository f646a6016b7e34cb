// Every allocation of loading a configuration fails once in turn: nothing is
// leaked and the error reports it. The rule in BUILD makes the linker use this
// function instead of the allocator.
#include <stdlib.h>

#include "core/config/config.h"
#include "tests/support/test.h"

enum {
    MOST_ALLOCATIONS = 100
};

// Counts down to the allocation that fails; negative means that none does.
static long countdown = -1;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : __real_calloc(count, size);
}

// Returns whether the text was reached without the failure.
static bool load_with_failure(const struct weir_open_params *params, long failing,
                              weir_status expected)
{
    struct weir__config *config = NULL;
    countdown = failing;
    weir_status status = weir__config_load(params, &config);
    bool untouched = countdown >= 0;
    countdown = -1;

    if (untouched) {
        EXPECT_INT_EQ(status, expected);
    } else {
        EXPECT_INT_EQ(status, WEIR_ERROR_OUT_OF_MEMORY);
        EXPECT_NULL(config);
        EXPECT_STR_EQ(weir_last_error()->message,
                      "there is no memory left to hold the configuration");
    }
    weir__config_destroy(&config);
    return untouched;
}

static long count_allocations(const struct weir_open_params *params, weir_status expected)
{
    for (long i = 0; i < MOST_ALLOCATIONS; i++) {
        weir_test_note("allocation %ld fails", i);
        if (load_with_failure(params, i, expected)) {
            weir_test_note(NULL);
            return i;
        }
    }
    return MOST_ALLOCATIONS;
}

WEIR_TEST(ConfigMemory, EveryAllocationFailsOnce)
{
    struct weir_open_params params = {
        .struct_size = sizeof params,
        .config_text = "[weir]\nbackend = null\nplugins = check\n[opencl]\nx = 1\n",
        .backend = "null",
        .plugins = "",
        .module_path = "a",
    };
    // The configuration and its label; two sections, three keys, three arguments.
    EXPECT_INT_EQ(count_allocations(&params, WEIR_OK), 10);

    // With an error in the text, which has to be reported too.
    params.config_text = "[weir]\nbackend = null\nnonsense\n";
    EXPECT_INT_EQ(count_allocations(&params, WEIR_ERROR_CONFIG), 5);
}
