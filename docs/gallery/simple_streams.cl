__kernel void set(__global int *numbers, int value, uint count, uint steps)
{
    uint i = (uint)get_global_id(0);
    int sum = 0;
    for (uint step = 0; step < steps; step++)
        sum += value;
    if (i < count)
        numbers[i] = sum;
}
