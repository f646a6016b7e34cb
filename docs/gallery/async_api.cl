__kernel void add(__global int *numbers, int value, uint count)
{
    uint i = (uint)get_global_id(0);
    if (i < count)
        numbers[i] += value;
}
