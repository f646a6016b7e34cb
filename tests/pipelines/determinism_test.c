// The same bits from the same images: in two runs, with one and with several slots
// in flight, on every device of the chain, and in other processes with cold and
// warm caches of programs.
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/pipelines/rig.h"
#include "tests/unit/io_made_files.h"

extern char **environ;

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

// Other processes.

// Runs the program arr_coc_bytes with `home` for its caches; it writes to `path`.
static bool run_process(const char *home, const char *device, const char *slots, const char *path)
{
    char *program = (char *)weir_test_runfile("tests/pipelines/arr_coc_bytes");
    char *arguments[] = {program, (char *)device, (char *)slots, (char *)path, NULL};
    char pocl[4096];
    pid_t child;
    int status = 0;

    snprintf(pocl, sizeof pocl, "%s/pocl", home);
    setenv("HOME", home, 1);
    setenv("XDG_CACHE_HOME", home, 1);
    setenv("POCL_CACHE_DIR", pocl, 1);
    if (posix_spawn(&child, program, NULL, NULL, arguments, environ) != 0)
        return false;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void expect_same_files(const char *a_path, const char *b_path)
{
    size_t a_size, b_size;
    OWN_MEMORY unsigned char *a = made_file_read(a_path, &a_size);
    OWN_MEMORY unsigned char *b = made_file_read(b_path, &b_size);

    EXPECT_UINT_GT(a_size, 1000);
    EXPECT_UINT_EQ(a_size, b_size);
    if (a && b && a_size == b_size)
        EXPECT_MEM_EQ(a, b, a_size);
}

WEIR_TEST(ArrCocDeterminism, ColdAndWarmCaches)
{
    const char *home = weir_test_temp_dir();
    const char *other_home = weir_test_temp_dir();
    const char *cold = made_path(home, "cold");
    const char *warm = made_path(home, "warm");
    const char *again = made_path(home, "cold-again");

    ASSERT_TRUE(run_process(home, "0", "3", cold));
    ASSERT_INT_GT(made_folder_count(home), 1);
    ASSERT_TRUE(run_process(home, "0", "1", warm));
    ASSERT_TRUE(run_process(other_home, "0", "3", again));
    expect_same_files(cold, warm);
    expect_same_files(cold, again);
}
