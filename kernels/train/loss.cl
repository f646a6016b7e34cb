// Softmax cross-entropy: the loss of each sample, whether its largest output is that of its
// label, and the gradient of the loss. Then the sums over samples.

#include "kernels/train/element.cl.h"
#include "kernels/train/tile.cl.h"

// A label that is no class: no loss, no gradient, not right.
void set_nothing(__global element *gradient, __global float2 *result, uint classes)
{
    for (uint i = 0; i < classes; i++)
        gradient[i] = narrow_one(0.0f);
    *result = (float2)(0.0f, 0.0f);
}

__kernel void cross_entropy(__global const element *restrict outputs,
                            __global const uint *restrict labels,
                            __global element *restrict gradients, __global float2 *restrict results,
                            uint samples, uint classes, float grid)
{
    uint sample = (uint)get_global_id(0);
    if (sample >= samples)
        return;
    __global const element *output = outputs + (size_t)sample * classes;
    __global element *gradient = gradients + (size_t)sample * classes;
    uint label = labels[sample];
    if (label >= classes) {
        set_nothing(gradient, results + sample, classes);
        return;
    }

    uint best = 0;
    float most = wide(output[0]), sum = 0.0f;
    for (uint i = 1; i < classes; i++)
        if (wide(output[i]) > most) {
            most = wide(output[i]);
            best = i;
        }
    for (uint i = 0; i < classes; i++)
        sum += exp(wide(output[i]) - most);
    for (uint i = 0; i < classes; i++) {
        float share = exp(wide(output[i]) - most) / sum - (i == label ? 1.0f : 0.0f);
        gradient[i] = narrow_one(on_grid(share, grid));
    }
    float loss = log(sum) - (wide(output[label]) - most);
    results[sample] = (float2)(on_grid(loss, grid), best == label ? 1.0f : 0.0f);
}

__kernel __attribute__((reqd_work_group_size(TRAIN_RESULT_ITEMS, 1, 1))) void sum_results(
    __global const float2 *restrict results, __global float *out, uint samples, uint add)
{
    __local float2 parts[TRAIN_RESULT_ITEMS];
    uint lane = (uint)get_local_id(0);
    float2 sum = (float2)(0.0f, 0.0f);

    for (uint i = lane; i < samples; i += TRAIN_RESULT_ITEMS)
        sum += results[i];
    parts[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane > 0)
        return;
    for (uint i = 1; i < TRAIN_RESULT_ITEMS; i++)
        sum += parts[i];
    out[0] = add ? out[0] + sum.x : sum.x;
    out[1] = add ? out[1] + sum.y : sum.y;
}
