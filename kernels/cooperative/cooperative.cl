// Kernels whose blocks wait for each other. See README.md for the arguments.

// The sum of a block's values, in all of its work-items. `scratch` has a number for each of them.
uint sum_of_block(__local uint *scratch, uint value)
{
    const uint lane = (uint)get_local_id(0);
    scratch[lane] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint sum = 0;
    for (uint i = 0; i < (uint)get_local_size(0); i++)
        sum += scratch[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

// The sum of any number of values, in one launch of any grid: a sum for each block, and once all of these
// are there, their sum.
__kernel void sum(__global const uint *in, __global uint *partial, __global uint *out,
                  __local uint *scratch, uint n)
{
    const size_t stride = get_global_size(0);
    uint value = 0;
    for (size_t i = get_global_id(0); i < n; i += stride)
        value += in[i];
    value = sum_of_block(scratch, value);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] = value;

    weir_grid_barrier();

    if (get_group_id(0) != 0)
        return;
    value = 0;
    for (size_t i = get_local_id(0); i < get_num_groups(0); i += get_local_size(0))
        value += partial[i];
    value = sum_of_block(scratch, value);
    if (get_local_id(0) == 0)
        out[0] = value;
}

void wait_for_all(void)
{
    weir_grid_barrier();
}

uint token(uint round, uint item)
{
    return round * 2654435761u + item;
}

// In each round every work-item writes its number, and after a barrier reads that of a work-item of
// another block. The numbers that it finds wrong are counted.
__kernel void exchange(__global uint *numbers, __global uint *wrong, uint rounds)
{
    const uint items = (uint)get_global_size(0);
    const uint item = (uint)get_global_id(0);
    const uint block = (uint)get_local_size(0);
    for (uint round = 0; round < rounds; round++) {
        const uint other = (item + block * (1u + round % 7u)) % items;
        numbers[item] = token(round, item);
        wait_for_all();
        if (numbers[other] != token(round, other))
            atomic_add(wrong, 1u);
        wait_for_all();
    }
}

// A kernel of the same source that any launch runs.
__kernel void clear(__global uint *numbers)
{
    numbers[get_global_id(0)] = 0;
}
