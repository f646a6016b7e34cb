__kernel void square(__global int *numbers, uint count)
{
    uint i = (uint)get_global_id(0);
    if (i < count)
        numbers[i] *= numbers[i];
}
