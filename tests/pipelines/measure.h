// The differences of a backend from the float64 reference, stage by stage.
#ifndef WEIR_TESTS_PIPELINES_MEASURE_H
#define WEIR_TESTS_PIPELINES_MEASURE_H

#include "tests/pipelines/rig.h"
#include "tests/support/arr_coc_reference.h"

// The reference's result for one image.
struct expected {
    struct arr_coc_reference_dims dims;
    double *texture;
    double *scores;
    double *relevance;
    double balance[3];
};

void expected_init(struct expected *expected, const struct rig *rig,
                   const struct weir_arr_coc_sizes *sizes, const struct rig_image *image);
void expected_finish(struct expected *expected);

// Largest absolute differences; infinite where a value is not a number.
struct distances {
    double texture;
    // Stage 2, of all stages together.
    double relevance;
    double scores;
    double balance;
    // Stage 2 only, on the backend's own texture.
    double own_relevance;
    double own_scores;
    double own_balance;
    double tokens;
};

// Measures one frame that succeeded and its texture, and checks stage 3: patches,
// sides, order and counts are exactly those that the reference computes from the
// frame's own relevance. Returns whether they are.
bool measure(const struct expected *expected, const struct rig *rig, const struct rig_frame *frame,
             const float *texture, struct distances *out_distances);

#endif
