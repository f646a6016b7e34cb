// A few images of different sizes, for tests that need any.
#ifndef WEIR_TESTS_PIPELINES_TEST_IMAGES_H
#define WEIR_TESTS_PIPELINES_TEST_IMAGES_H

#include "tests/pipelines/rig.h"

enum {
    TEST_IMAGES = 6
};

// A photograph, noise, a gradient, one pixel, one row, and a checkerboard.
bool test_images_make(struct rig_image images[TEST_IMAGES]);
void test_images_finish(struct rig_image images[TEST_IMAGES]);
uint64_t test_images_max_pixels(const struct rig_image images[TEST_IMAGES]);

#endif
