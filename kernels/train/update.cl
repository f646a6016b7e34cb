// Updates of a parameter from its gradient. `copy`, if it is not NULL, is the copy of a
// weight that the passes read.

#include "kernels/train/element.cl.h"

__kernel void update_sgd(__global float *restrict values, __global const float *restrict gradient,
                         __global float *restrict momentum, __global element *restrict copy,
                         float rate, float scale, float decay, uint count)
{
    uint i = (uint)get_global_id(0);
    if (i >= count)
        return;
    float step = fma(decay, momentum[i], scale * gradient[i]);
    float value = fma(-rate, step, values[i]);
    momentum[i] = step;
    values[i] = value;
    if (copy)
        copy[i] = narrow_one(value);
}

// A gain is 1 - beta, `rate` is divided by 1 - beta1^step, and `correction` is 1 / (1 - beta2^step).
__kernel void update_adam(__global float *restrict values, __global const float *restrict gradient,
                          __global float *restrict mean, __global float *restrict square,
                          __global element *restrict copy, float rate, float scale, float beta1,
                          float gain1, float beta2, float gain2, float correction, float epsilon,
                          uint count)
{
    uint i = (uint)get_global_id(0);
    if (i >= count)
        return;
    float g = scale * gradient[i];
    float m = fma(beta1, mean[i], gain1 * g);
    float v = fma(beta2, square[i], gain2 * g * g);
    float value = fma(-rate, m / (sqrt(v * correction) + epsilon), values[i]);
    mean[i] = m;
    square[i] = v;
    values[i] = value;
    if (copy)
        copy[i] = narrow_one(value);
}
