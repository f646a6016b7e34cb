// The kernel of the benchmarks. README.md says what it computes.

// Applies Knuth's generator `rounds` times to each of `n` numbers, in place. It runs
// as long as `rounds` says, and its result is known without running it.
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
