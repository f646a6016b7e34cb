// Kernels of verify_test.c, on words. Those with faults are launched with ranges that they leave.

__kernel void add(__global const uint *in, __global uint *out, uint by)
{
    size_t i = get_global_id(0);
    out[i] = in[i] + by;
}

// With the test that `add` lacks.
__kernel void add_some(__global const uint *in, __global uint *out, uint by, uint count)
{
    size_t i = get_global_id(0);
    if (i < count)
        out[i] = in[i] + by;
}

// The sum with the word on either side.
__kernel void halo(__global const uint *in, __global uint *out)
{
    size_t i = get_global_id(0);
    out[i] = in[(int)i - 1] + in[i] + in[i + 1];
}

// Without its neighbours.
__kernel void same(__global const uint *in, __global uint *out)
{
    size_t i = get_global_id(0);
    out[i] = in[i];
}

__kernel void write_before(__global uint *out)
{
    size_t i = get_global_id(0);
    out[(int)i - 1] = 7;
}

// Writes into the first, too.
__kernel void move(__global const uint *in, __global uint *out)
{
    size_t i = get_global_id(0);
    out[i] = in[i];
    ((__global uint *)in)[i] = 0;
}

__kernel void bump(__global uint *values)
{
    values[get_global_id(0)] += 1;
}

// Every third word only.
__kernel void thirds(__global uint *out)
{
    size_t i = get_global_id(0);
    if (i % 3 == 0)
        out[i] = 3;
}

// The order of the work-items, which differs from run to run where they run in threads.
__kernel void race_for_it(__global uint *ticket, __global uint *out)
{
    size_t i = get_global_id(0);
    for (uint k = 0; k < 100; k++)
        out[i] = atomic_inc(&ticket[0]);
}
