// The work of the benchmarks. README.md says what it computes.

// Puts each of `n` numbers `rounds` times through a generator of Knuth's, in place: as
// long as is wanted, and known without running it.
__kernel void advance(__global uint *values, uint rounds, uint n)
{
    uint i = (uint)get_global_id(0);
    if (i >= n)
        return;
    uint x = values[i];
    for (uint round = 0; round < rounds; round++)
        x = 1664525u * x + 1013904223u;
    values[i] = x;
}
