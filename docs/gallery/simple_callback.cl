__kernel void twice(__global int *numbers)
{
    numbers[get_global_id(0)] *= 2;
}
