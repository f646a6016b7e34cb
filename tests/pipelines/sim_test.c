// ARR-COC's results are bit for bit those without the plugin `sim`: with 1 to 4 slots, with and without
// graphs, on GPUs of stream queues and of engine queues, which order the frames differently in time.
#include <stdio.h>
#include <stdlib.h>

#include "tests/pipelines/rig.h"
#include "tests/pipelines/test_images.h"

enum {
    ROUNDS = 2,
    FRAMES = ROUNDS * TEST_IMAGES,
    SLOTS = 4
};

static const struct weir_arr_coc_sizes sizes = {256, 16, 1024};

static bool write_costs(char *path, size_t size)
{
    static const char *const kernels[] = {
        "texture_position", "texture_image", "position_means",  "patch_scores",
        "relevance",        "scale",         "allocate_tokens", "compress_tokens",
    };
    snprintf(path, size, "%s/costs.ini", getenv("TEST_TMPDIR"));
    FILE *file = fopen(path, "w");
    for (size_t i = 0; file && i < sizeof kernels / sizeof *kernels; i++)
        fprintf(file, "[kernel %s]\nfixed_ns = %zu\n", kernels[i], 5000 + 4000 * i);
    return file && fclose(file) == 0;
}

// `gpu`: NULL runs without sim.
static bool run_as(const char *gpu, uint32_t slots, bool graphs, const struct rig_image *images,
                   struct rig_frame frames[FRAMES])
{
    struct rig rig;
    weir_arr_coc *arr_coc;
    bool ok = false;
    for (size_t i = 0; i < FRAMES; i++)
        rig_frame_init(&frames[i], &images[i % TEST_IMAGES], sizes.grid);
    setenv("WEIR_PLUGINS", gpu ? "sim" : "", 1);
    setenv("WEIR_SIM_GPU", gpu ? gpu : "", 1);
    if (!rig_open(&rig, 0, RIG_WEIGHTS))
        return false;
    // (what the model says, and PoCL does not)
    EXPECT_TRUE((weir_device_limits(rig.device)->copy_engines_to_device == 1) == (gpu != NULL));
    struct weir_arr_coc_params params = rig_params(&rig, &sizes, test_images_max_pixels(images));
    params.slot_count = slots;
    params.graphs = graphs;
    if (rig_ok(__FILE__, __LINE__, "weir_arr_coc_create", weir_arr_coc_create(&params, &arr_coc))) {
        ok = rig_run(arr_coc, frames, FRAMES);
        weir_arr_coc_destroy(&arr_coc);
    }
    rig_close(&rig);
    return ok;
}

static void finish_all(struct rig_frame frames[FRAMES])
{
    for (size_t i = 0; i < FRAMES; i++)
        rig_frame_finish(&frames[i]);
}

static void compare_with(const char *gpu)
{
    struct rig_image images[TEST_IMAGES];
    struct rig_frame first[FRAMES], other[FRAMES];
    char costs[512];
    ASSERT_TRUE(write_costs(costs, sizeof costs) && test_images_make(images));
    setenv("WEIR_SIM_COSTS", costs, 1);
    ASSERT_TRUE(run_as(NULL, 1, false, images, first));
    for (uint32_t i = 0; i < 2 * SLOTS; i++) {
        const uint32_t slots = 1 + i / 2;
        const bool graphs = i % 2;
        EXPECT_TRUE(run_as(gpu, slots, graphs, images, other));
        for (size_t k = 0; k < FRAMES; k++)
            if (!rig_same_bits(&first[k], &other[k]))
                WEIR_FAIL("%s, %u slots, graphs %d: frame %zu", gpu, (unsigned)slots, graphs, k);
        finish_all(other);
    }
    finish_all(first);
    test_images_finish(images);
}

WEIR_TEST(ArrCocSim, StreamQueues)
{
    compare_with("h200");
}

WEIR_TEST(ArrCocSim, EngineQueues)
{
    compare_with("c2050");
}
