// Kernels that print. See README.md.

__kernel void print_items(__global int *results, uint first, uint n)
{
    uint i = (uint)get_global_id(0);
    if (i < n)
        results[i] = printf("item %u of %s: %d%%, %.1f\n", first + i, "print", -(int)i, 0.5f * i);
}
