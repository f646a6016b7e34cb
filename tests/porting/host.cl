// For host_test.c.
__kernel void scale(__global const float *in, __global float *out, float factor)
{
    size_t i = get_global_id(0);
    out[i] = factor * in[i];
}

__kernel void look_up(__constant float *table, __global float *out)
{
    size_t i = get_global_id(0);
    out[i] = table[i % 4];
}

__kernel void sum(__global const float *in, __global float *out, __local float *scratch)
{
    size_t t = get_local_id(0);
    scratch[t] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t == 0)
        for (size_t i = 1; i < get_local_size(0); i++)
            scratch[0] += scratch[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = scratch[0];
}

// Each block takes the numbers of the next one, after all have written theirs.
__kernel void exchange(__global const float *in, __global float *middle, __global float *out)
{
    size_t i = get_global_id(0);
    middle[i] = in[i];
    weir_grid_barrier();
    out[i] = middle[(i + get_local_size(0)) % get_global_size(0)];
}

// Arguments of other kinds than buffers: a pointer that may be null, a flag, a char, a vector.
__kernel void arguments(__global const float *maybe, uchar flag, char sign, float4 vector,
                        __global float *out)
{
    size_t i = get_global_id(0);
    out[i] = (maybe ? maybe[i] : -1.0f) + (float)flag + (float)sign + vector.z;
}

// Memory by its address.
__kernel void follow(ulong address, __global float *out)
{
    __global const float *numbers = (__global const float *)address;
    out[get_global_id(0)] = numbers[get_global_id(0)];
}

__kernel void say(int number)
{
    if (get_global_id(0) == 0)
        printf("the number is %d\n", number);
}
