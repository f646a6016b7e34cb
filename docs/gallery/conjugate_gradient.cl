__kernel void apply(__global const float *p, __global float *q)
{
    uint i = (uint)get_global_id(0);
    uint count = (uint)get_global_size(0);
    q[i] = 4 * p[i] - (i > 0 ? p[i - 1] : 0) - (i + 1 < count ? p[i + 1] : 0);
}

// For one block.
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void dot_product(
    __global const float *a, __global const float *b, __global float *out, uint count)
{
    __local float scratch[256];
    uint t = (uint)get_local_id(0);
    float sum = 0;
    for (uint i = t; i < count; i += (uint)get_local_size(0))
        sum += a[i] * b[i];
    scratch[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = (uint)get_local_size(0) / 2; step > 0; step /= 2) {
        if (t < step)
            scratch[t] += scratch[t + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0)
        *out = scratch[0];
}

__kernel void move(__global const float *p, __global const float *q, __global const float *rr,
                   __global const float *pq, __global float *x, __global float *r)
{
    uint i = (uint)get_global_id(0);
    float alpha = *pq > 0 ? *rr / *pq : 0;
    x[i] += alpha * p[i];
    r[i] -= alpha * q[i];
}

__kernel void turn(__global float *p, __global const float *r, __global const float *rr,
                   __global const float *before)
{
    uint i = (uint)get_global_id(0);
    float beta = *before > 0 ? *rr / *before : 0;
    p[i] = r[i] + beta * p[i];
}
