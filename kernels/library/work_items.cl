// Work-items, and what a block waits for. Launches have no offset and all blocks are of one size.

// Ids and sizes have 32 bits, which launches keep to: an address then takes one multiplication.
#define OF(dimension, of)                                       \
    ((dimension) == 0   ? (uint)__nvvm_read_ptx_sreg_##of##_x() \
     : (dimension) == 1 ? (uint)__nvvm_read_ptx_sreg_##of##_y() \
     : (dimension) == 2 ? (uint)__nvvm_read_ptx_sreg_##of##_z() \
                        : 0u)

FUNCTION size_t get_global_id(uint dimension)
{
    // Read in this order, the block's size is an operand of ptxas's multiplication, and no load.
    const uint size = OF(dimension, ntid), group = OF(dimension, ctaid);
    return group * size + OF(dimension, tid);
}

FUNCTION size_t get_global_size(uint dimension)
{
    return dimension > 2 ? 1 : OF(dimension, nctaid) * OF(dimension, ntid);
}

FUNCTION size_t get_global_offset(uint dimension)
{
    return 0;
}

// A launch always has three, as for OpenCL drivers.
FUNCTION uint get_work_dim(void)
{
    return 3;
}

FUNCTION size_t get_enqueued_local_size(uint dimension)
{
    return get_local_size(dimension);
}

FUNCTION size_t get_global_linear_id(void)
{
    return (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) +
           get_global_id(0);
}

FUNCTION size_t get_local_linear_id(void)
{
    return (get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) +
           get_local_id(0);
}

FUNCTION void work_group_barrier(cl_mem_fence_flags flags, memory_scope scope)
{
    if (scope == memory_scope_device)
        __nvvm_membar_gl();
    if (scope == memory_scope_all_svm_devices)
        __nvvm_membar_sys();
    barrier(flags);
}

FUNCTION void work_group_barrier(cl_mem_fence_flags flags)
{
    barrier(flags);
}
