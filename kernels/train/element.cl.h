// The element of weights, activations and their gradients: float, or with TRAIN_BF16
// bfloat16, the upper half of a float. Arithmetic is float's.

#ifndef WEIR_KERNELS_TRAIN_ELEMENT_CL_H
#define WEIR_KERNELS_TRAIN_ELEMENT_CL_H

#ifdef TRAIN_BF16

typedef ushort element;

float wide(element value)
{
    return as_float((uint)value << 16);
}

// To the nearest, the even one of two. A NaN stays one.
element narrow_one(float value)
{
    uint bits = as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (element)(bits >> 16 | 0x40u);
    return (element)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#else

typedef float element;

float wide(element value)
{
    return value;
}

element narrow_one(float value)
{
    return value;
}

#endif

// To a multiple of `grid`, a power of two; 0 leaves the value as it is.
float on_grid(float value, float grid)
{
    return grid > 0.0f ? rint(value / grid) * grid : value;
}

#endif
