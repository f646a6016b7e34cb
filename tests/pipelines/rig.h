// The environment of an ARR-COC pipeline under test: a runtime and a device of the
// chain that the environment selects, seeded weights and a query, images in
// memory, and copies of the results.
//
// The functions that return bool report their failure to the running test. If
// memory cannot be allocated the program ends.
#ifndef WEIR_TESTS_PIPELINES_RIG_H
#define WEIR_TESTS_PIPELINES_RIG_H

#include "pipelines/arr_coc/arr_coc.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

#define RIG_WEIGHTS "pipelines/arr_coc/weights/arr_coc_weights.safetensors"
#define RIG_SMALL_WEIGHTS "tests/pipelines/small_weights.safetensors" // D = 7

#define own_arr_coc OWN(weir_arr_coc_destroy) weir_arr_coc *

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_arr_coc_weights *weights;
    float *query;
    size_t query_size;
};

// Opens a runtime, device `index` of it, and weights from a runfile.
bool rig_open(struct rig *rig, size_t index, const char *weights);

// Closes all of it. A device that still has objects fails the test.
void rig_close(struct rig *rig);

// A test with a rig of the first device and small weights, `rig`.
#define SMALL_TEST(suite, name)                                                       \
    WEIR_TEST_WITH(suite, name, struct rig, rig, rig_open(rig, 0, RIG_SMALL_WEIGHTS), \
                   rig_close(rig))

// Whether kernels do something, which those of null do not.
bool rig_computes(const struct rig *rig);

// How many devices the chain has.
size_t rig_device_count(void);

struct rig_image {
    int height;
    int width;
    unsigned char *rgb;
};

// An image with room for its pixels, and one that is read from a runfile.
struct rig_image rig_image_make(int height, int width);
bool rig_image_read(const char *path, struct rig_image *out_image);
void rig_image_finish(struct rig_image *image);
#define own_image OWN(rig_image_finish) struct rig_image

// One frame: its input and a copy of its results. A failed frame has its status,
// message and stage, and no arrays. It must not be moved after its initialisation.
struct rig_frame {
    struct weir_arr_coc_frame frame;
    const struct rig_image *image;
    weir_status load_status; // what loading returns instead of an image
    int deliveries;
    weir_status status;
    char message[768];
    char stage[32];
    unsigned char *bytes; // of all results of a frame that succeeded: counts, then the arrays
    size_t size;
    struct weir_arr_coc_output output; // its arrays are in there
    uint32_t grid;
};

// With `grid` 0 no copies are made: the null backend computes nothing, and its
// results are undefined memory.

void rig_frame_init(struct rig_frame *frame, const struct rig_image *image, uint32_t grid);
void rig_frame_finish(struct rig_frame *frame);

// Params with everything of the rig's filled in, for `sizes` and images of at most
// `max_pixels`; frames must be struct rig_frame.
struct weir_arr_coc_params rig_params(const struct rig *rig, const struct weir_arr_coc_sizes *sizes,
                                      uint64_t max_pixels);

// Submits `count` frames and waits until all are delivered.
bool rig_run(weir_arr_coc *arr_coc, struct rig_frame *frames, size_t count);

void *rig_alloc(size_t count, size_t size);

#endif
