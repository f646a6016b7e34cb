// arr_coc_bytes DEVICE SLOTS FILE: runs the test images and writes every byte of
// their results to FILE, for a test that compares processes. The chain is the
// environment's.
#include <stdio.h>
#include <stdlib.h>

#include "tests/pipelines/rig.h"

static const struct weir_arr_coc_sizes sizes = {256, 16, 1024};

static bool write_frame(FILE *stream, const struct rig_frame *frame)
{
    if (frame->status != WEIR_OK) {
        fprintf(stderr, "arr_coc_bytes: %s\n", frame->message);
        return false;
    }
    return fwrite(frame->bytes, 1, frame->size, stream) == frame->size;
}

static bool write_all(const char *path, const struct rig_frame *frames)
{
    FILE *stream = fopen(path, "wb");
    if (!stream)
        return false;
    bool ok = true;
    for (int i = 0; i < TEST_IMAGES && ok; i++)
        ok = write_frame(stream, &frames[i]);
    return fclose(stream) == 0 && ok;
}

int main(int argc, char **argv)
{
    struct rig_image images[TEST_IMAGES];
    struct rig_frame frames[TEST_IMAGES] = {0};

    if (argc != 4 || !test_images_make(images))
        return 2;
    const struct rig_way way = {.device = strtoul(argv[1], NULL, 10),
                                .slots = (uint32_t)strtoul(argv[2], NULL, 10)};
    bool ok =
        rig_run_images(&way, &sizes, images, frames, TEST_IMAGES) && write_all(argv[3], frames);
    for (int i = 0; i < TEST_IMAGES; i++)
        rig_frame_finish(&frames[i]);
    test_images_finish(images);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
