// The language that the driver has compiled.
__kernel void version_of(__global uint *out)
{
    out[0] = __OPENCL_C_VERSION__;
}
