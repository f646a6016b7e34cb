#include "tests/pipelines/measure.h"

#include <math.h>
#include <stdlib.h>

static struct arr_coc_reference_weights reference_weights(const struct rig *rig)
{
    const struct arr_coc_tensors *tensors = weir_arr_coc_weights_tensors(rig->weights);
    return (struct arr_coc_reference_weights){
        .participatory_0_weight = tensors->participatory_0_weight,
        .participatory_0_bias = tensors->participatory_0_bias,
        .participatory_2_weight = tensors->participatory_2_weight,
        .participatory_2_bias = tensors->participatory_2_bias,
        .balancer_0_weight = tensors->balancer_0_weight,
        .balancer_0_bias = tensors->balancer_0_bias,
        .balancer_2_weight = tensors->balancer_2_weight,
        .balancer_2_bias = tensors->balancer_2_bias,
        .balancer_4_weight = tensors->balancer_4_weight,
        .balancer_4_bias = tensors->balancer_4_bias,
    };
}

void expected_init(struct expected *expected, const struct rig *rig,
                   const struct weir_arr_coc_sizes *sizes, const struct rig_image *image)
{
    const struct arr_coc_reference_weights weights = reference_weights(rig);
    const size_t pixels = (size_t)sizes->side * sizes->side;
    const size_t patches = (size_t)sizes->grid * sizes->grid;

    *expected = (struct expected){
        .dims = {(int)sizes->side, (int)sizes->grid, (int)sizes->budget, (int)rig->query_size},
        .texture = rig_alloc(pixels * WEIR_ARR_COC_CHANNELS, sizeof(double)),
        .scores = rig_alloc(3 * patches, sizeof(double)),
        .relevance = rig_alloc(patches, sizeof(double)),
    };
    arr_coc_reference_texture(&expected->dims, image->rgb, image->height, image->width,
                              expected->texture);
    arr_coc_reference_relevance(&expected->dims, &weights, expected->texture, rig->query,
                                expected->scores, expected->balance, expected->relevance);
}

void expected_finish(struct expected *expected)
{
    free(expected->texture);
    free(expected->scores);
    free(expected->relevance);
    *expected = (struct expected){0};
}

static double farthest(const double *wanted, const float *found, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++) {
        double distance = fabs((double)found[i] - wanted[i]);
        if (isnan(distance))
            return INFINITY;
        most = fmax(most, distance);
    }
    return most;
}

static void measure_relevance(const struct expected *expected, const struct rig *rig,
                              const struct rig_frame *frame, const float *texture,
                              struct distances *out)
{
    const struct arr_coc_reference_weights weights = reference_weights(rig);
    const size_t patches = (size_t)expected->dims.grid * (size_t)expected->dims.grid;
    const size_t pixels = (size_t)expected->dims.size * (size_t)expected->dims.size;
    double *promoted = rig_alloc(pixels * WEIR_ARR_COC_CHANNELS, sizeof *promoted);
    double *scores = rig_alloc(3 * patches, sizeof *scores);
    double *relevance = rig_alloc(patches, sizeof *relevance);
    double balance[3];

    for (size_t i = 0; i < pixels * WEIR_ARR_COC_CHANNELS; i++)
        promoted[i] = (double)texture[i];
    arr_coc_reference_relevance(&expected->dims, &weights, promoted, rig->query, scores, balance,
                                relevance);
    out->own_relevance = farthest(relevance, frame->relevance, patches);
    out->own_scores = farthest(scores, frame->scores, 3 * patches);
    out->own_balance = farthest(balance, frame->balance, 3);
    out->relevance = farthest(expected->relevance, frame->relevance, patches);
    out->scores = farthest(expected->scores, frame->scores, 3 * patches);
    out->balance = farthest(expected->balance, frame->balance, 3);
    free(relevance);
    free(scores);
    free(promoted);
}

static bool same_patches(const struct expected *expected, const struct rig_frame *frame)
{
    const size_t patches = (size_t)expected->dims.grid * (size_t)expected->dims.grid;
    int32_t *wanted = rig_alloc(3 * patches, sizeof *wanted);
    int tokens = 0;
    int count = arr_coc_reference_allocate(&expected->dims, frame->relevance, wanted, &tokens);
    bool same = weir_test_check_int(__FILE__, __LINE__, "patches", "==", "the reference's",
                                    frame->output.patch_count, count) &&
                weir_test_check_int(__FILE__, __LINE__, "tokens", "==", "the reference's",
                                    frame->output.token_count, tokens) &&
                weir_test_check_int(__FILE__, __LINE__, "tokens", "<=", "the budget", tokens,
                                    expected->dims.budget) &&
                weir_test_check_mem(__FILE__, __LINE__, "patches", "the reference's",
                                    frame->patches, wanted, (size_t)count * 3 * sizeof *wanted);
    free(wanted);
    return same;
}

bool measure(const struct expected *expected, const struct rig *rig, const struct rig_frame *frame,
             const float *texture, struct distances *out)
{
    const size_t pixels = (size_t)expected->dims.size * (size_t)expected->dims.size;
    *out = (struct distances){0};
    out->texture = farthest(expected->texture, texture, pixels * WEIR_ARR_COC_CHANNELS);
    measure_relevance(expected, rig, frame, texture, out);
    if (!same_patches(expected, frame))
        return false;

    size_t count = (size_t)frame->output.token_count * WEIR_ARR_COC_CHANNELS;
    double *tokens = rig_alloc(count, sizeof *tokens);
    arr_coc_reference_compress(&expected->dims, expected->texture, frame->patches,
                               (int)frame->output.patch_count, tokens);
    out->tokens = farthest(tokens, frame->tokens, count);
    free(tokens);
    return true;
}
