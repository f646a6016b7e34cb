// Each number becomes the mean of its neighbours, `steps` times; an even number of steps ends in `a`.
__kernel void relax(__global float *a, __global float *b, uint count, uint steps)
{
    for (uint step = 0; step < steps; step++) {
        __global const float *from = step % 2 == 0 ? a : b;
        __global float *to = step % 2 == 0 ? b : a;
        for (uint i = (uint)get_global_id(0); i < count; i += (uint)get_global_size(0))
            to[i] = 0.5f * (from[i > 0 ? i - 1 : 0] + from[i + 1 < count ? i + 1 : i]);
        weir_grid_barrier();
    }
}
