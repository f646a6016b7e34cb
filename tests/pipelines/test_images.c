#include "tests/pipelines/test_images.h"

#include "tests/support/made_images.h"

bool test_images_make(struct rig_image images[TEST_IMAGES])
{
    for (int i = 0; i < TEST_IMAGES; i++)
        images[i] = (struct rig_image){0};
    if (!rig_image_read(weir_test_runfile("tests/data/images/coffee.png"), &images[0]))
        return false;
    images[1] = rig_image_make(300, 201);
    made_image_noise(300, 201, 3, images[1].rgb);
    images[2] = rig_image_make(64, 640);
    made_image_gradient(64, 640, images[2].rgb);
    images[3] = rig_image_make(1, 1);
    made_image_flat(1, 1, 0x80c040, images[3].rgb);
    images[4] = rig_image_make(1, 5000);
    made_image_noise(1, 5000, 4, images[4].rgb);
    images[5] = rig_image_make(257, 255);
    made_image_checker(257, 255, 30, 0xd02000, 0x0040f0, images[5].rgb);
    return true;
}

void test_images_finish(struct rig_image images[TEST_IMAGES])
{
    for (int i = 0; i < TEST_IMAGES; i++)
        rig_image_finish(&images[i]);
}

uint64_t test_images_max_pixels(const struct rig_image images[TEST_IMAGES])
{
    uint64_t most = 0;
    for (int i = 0; i < TEST_IMAGES; i++) {
        uint64_t pixels = (uint64_t)images[i].height * (uint64_t)images[i].width;
        most = pixels > most ? pixels : most;
    }
    return most;
}
