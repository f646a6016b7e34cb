// What the source was compiled as.
__kernel void tell(__global uint *out)
{
    out[0] = __OPENCL_C_VERSION__;
#ifdef __FAST_RELAXED_MATH__
    out[1] = 1;
#else
    out[1] = 0;
#endif
}
