// out[0] is 1 where the device has the functions; library_test.c has the words after it. Each work-item
// changes each of them.
#if defined(__opencl_c_atomic_order_seq_cst) && defined(__opencl_c_atomic_order_acq_rel) && \
    defined(__opencl_c_atomic_scope_device) && defined(__opencl_c_generic_address_space)
#define HAVE_ATOMICS
#endif

#ifdef HAVE_ATOMICS
uint sum_of_blocks(__global const uint *sums)
{
    uint sum = 0;
    for (size_t i = 0; i < get_num_groups(0); i++)
        sum += sums[i];
    return sum;
}

// The block that arrives last sees what the others have written, and adds it.
void add_blocks(__global uint *sums, __global atomic_uint *arrived, __global uint *result,
                uint value, bool by_fences)
{
    uint before;
    if (get_local_id(0) == 0) {
        sums[get_group_id(0)] = value;
        if (by_fences) {
            atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_release, memory_scope_device);
            before =
                atomic_fetch_add_explicit(arrived, 1u, memory_order_relaxed, memory_scope_device);
            atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acquire, memory_scope_device);
        } else {
            before =
                atomic_fetch_add_explicit(arrived, 1u, memory_order_acq_rel, memory_scope_device);
        }
        if (before == get_num_groups(0) - 1)
            *result = sum_of_blocks(sums);
    }
}
#endif

__kernel void run(__global const uint *in, __global uint *out)
{
    const uint v = in[get_global_id(0)];
#ifdef HAVE_ATOMICS
    __local atomic_uint in_block;
    __global uint *words = out + 2;
    __global atomic_uint *u = (__global atomic_uint *)words;
    __global atomic_int *i = (__global atomic_int *)words;
    __global atomic_ulong *ul = (__global atomic_ulong *)(words + 16);
    __global atomic_long *l = (__global atomic_long *)(words + 16);
    __global atomic_float *f = (__global atomic_float *)(words + 32);
    out[0] = 1;

    atomic_fetch_add(u, v);
    atomic_fetch_sub_explicit(u + 1, v, memory_order_relaxed);
    atomic_fetch_or_explicit(u + 2, 1u << v % 32, memory_order_acq_rel, memory_scope_device);
    atomic_fetch_and_explicit(u + 3, ~(1u << v % 32), memory_order_release, memory_scope_device);
    atomic_fetch_xor(u + 4, v);
    atomic_fetch_min(i + 5, -(int)v);
    atomic_fetch_max_explicit(i + 6, (int)v - 1000, memory_order_acquire, memory_scope_device);
    atomic_fetch_min(u + 7, ~v);
    atomic_fetch_add(u + 8, atomic_exchange(u + 9, v));

    uint seen = atomic_load(u + 10);
    while (!atomic_compare_exchange_weak(u + 10, &seen, seen + v))
        ;
    float real = atomic_load_explicit(f, memory_order_relaxed);
    while (!atomic_compare_exchange_strong_explicit(f, &real, real + (float)v, memory_order_relaxed,
                                                    memory_order_relaxed, memory_scope_device))
        ;
    uint wrong = v + 1;
    atomic_store_explicit((__global atomic_uint *)(words + 40 + 2 * get_global_id(0)), v,
                          memory_order_release, memory_scope_device);
    if (atomic_compare_exchange_strong((__global atomic_uint *)(words + 40 + 2 * get_global_id(0)),
                                       &wrong, 0u))
        wrong = 0;
    words[41 + 2 * get_global_id(0)] = wrong;

    atomic_fetch_add(ul, (ulong)v << 20);
    atomic_fetch_max(l + 1, ((long)v - 1000) << 32);
    atomic_fetch_xor(ul + 2, (ulong)v << 40);
    if (!atomic_flag_test_and_set((__global atomic_flag *)(words + 11)))
        atomic_fetch_add(u + 12, 1u);

    if (get_local_id(0) == 0)
        atomic_init(&in_block, 5u);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_fetch_add_explicit(&in_block, v, memory_order_relaxed, memory_scope_work_group);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint sum = atomic_load_explicit(&in_block, memory_order_relaxed, memory_scope_work_group);
    __global uint *sums = words + 40 + 2 * get_global_size(0);
    add_blocks(sums, u + 13, words + 34, sum, false);
    add_blocks(sums + get_num_groups(0), u + 14, words + 35, sum, true);
#else
    out[0] = 2 + v;
#endif
}
