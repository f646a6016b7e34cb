// Sub-groups: a warp of 32 work-items, neighbours in the block's linear order; the last of a block may
// have fewer. The functions that all work-items of a sub-group call wait for all of them; those named
// non_uniform take the ones that are there.

enum {
    WARP = 32
};

static uint block_size(void)
{
    return (uint)(get_local_size(0) * get_local_size(1) * get_local_size(2));
}

FUNCTION uint get_max_sub_group_size(void)
{
    return WARP;
}

FUNCTION uint get_num_sub_groups(void)
{
    return (block_size() + WARP - 1) / WARP;
}

FUNCTION uint get_enqueued_num_sub_groups(void)
{
    return get_num_sub_groups();
}

FUNCTION uint get_sub_group_id(void)
{
    return linear_id() / WARP;
}

FUNCTION uint get_sub_group_local_id(void)
{
    return linear_id() % WARP;
}

FUNCTION uint get_sub_group_size(void)
{
    return min((uint)WARP, block_size() - get_sub_group_id() * WARP);
}

// A bit for each work-item of the sub-group.
static uint everyone(void)
{
    return ~0u >> (WARP - get_sub_group_size());
}

// A bit for each of them that runs this instruction.
static uint present(void)
{
    return __nvvm_activemask();
}

FUNCTION void sub_group_barrier(cl_mem_fence_flags flags, memory_scope scope)
{
    if (scope == memory_scope_device)
        __nvvm_membar_gl();
    else if (scope == memory_scope_all_svm_devices)
        __nvvm_membar_sys();
    else
        __nvvm_membar_cta();
    __nvvm_bar_warp_sync(everyone());
}

FUNCTION void sub_group_barrier(cl_mem_fence_flags flags)
{
    __nvvm_membar_cta();
    __nvvm_bar_warp_sync(everyone());
}

FUNCTION int sub_group_all(int condition)
{
    return __nvvm_vote_all_sync(everyone(), condition != 0);
}

FUNCTION int sub_group_any(int condition)
{
    return __nvvm_vote_any_sync(everyone(), condition != 0);
}

FUNCTION int sub_group_non_uniform_all(int condition)
{
    return __nvvm_vote_all_sync(present(), condition != 0);
}

FUNCTION int sub_group_non_uniform_any(int condition)
{
    return __nvvm_vote_any_sync(present(), condition != 0);
}

FUNCTION int sub_group_elect(void)
{
    return get_sub_group_local_id() == ctz(present());
}

// Ballots.

FUNCTION uint4 sub_group_ballot(int condition)
{
    return (uint4)(__nvvm_vote_ballot_sync(present(), condition != 0), 0, 0, 0);
}

FUNCTION int sub_group_ballot_bit_extract(uint4 ballot, uint lane)
{
    return ballot.x >> (lane % WARP) & 1;
}

FUNCTION int sub_group_inverse_ballot(uint4 ballot)
{
    return ballot.x >> get_sub_group_local_id() & 1;
}

FUNCTION uint4 get_sub_group_eq_mask(void)
{
    return (uint4)(1u << get_sub_group_local_id(), 0, 0, 0);
}

FUNCTION uint4 get_sub_group_ge_mask(void)
{
    return (uint4)(everyone() & ~0u << get_sub_group_local_id(), 0, 0, 0);
}

FUNCTION uint4 get_sub_group_gt_mask(void)
{
    return get_sub_group_ge_mask() & ~get_sub_group_eq_mask();
}

FUNCTION uint4 get_sub_group_lt_mask(void)
{
    return (uint4)((1u << get_sub_group_local_id()) - 1, 0, 0, 0);
}

FUNCTION uint4 get_sub_group_le_mask(void)
{
    return get_sub_group_lt_mask() | get_sub_group_eq_mask();
}

FUNCTION uint sub_group_ballot_bit_count(uint4 ballot)
{
    return popcount(ballot.x & everyone());
}

FUNCTION uint sub_group_ballot_inclusive_scan(uint4 ballot)
{
    return popcount(ballot.x & get_sub_group_le_mask().x);
}

FUNCTION uint sub_group_ballot_exclusive_scan(uint4 ballot)
{
    return popcount(ballot.x & get_sub_group_lt_mask().x);
}

FUNCTION uint sub_group_ballot_find_lsb(uint4 ballot)
{
    return ctz(ballot.x & everyone());
}

FUNCTION uint sub_group_ballot_find_msb(uint4 ballot)
{
    return 31 - clz(ballot.x & everyone());
}

// A value of another lane, as 32 or 64 bits. The last argument of an instruction is the last lane, or
// for `up` the first, that it reads.

#define EXCHANGE(name, instruction, limit)                                            \
    GIVES(static uint, name, (uint lanes, uint bits, uint at),                        \
          instruction(lanes, bits, at, limit))                                        \
    FUNCTION static ulong name(uint lanes, ulong bits, uint at)                       \
    {                                                                                 \
        const uint2 parts = as_uint2(bits);                                           \
        return as_ulong((uint2)(name(lanes, parts.x, at), name(lanes, parts.y, at))); \
    }

EXCHANGE(from_lane, __nvvm_shfl_sync_idx_i32, WARP - 1)
EXCHANGE(from_below, __nvvm_shfl_sync_up_i32, 0)

// Of each type: the unsigned one of its size, and the one that is exchanged.
#define EACH_TYPE(define)                                                                     \
    define(char, uchar, uint) define(uchar, uchar, uint) define(short, ushort, uint)          \
        define(ushort, ushort, uint) define(int, uint, uint) define(uint, uint, uint)         \
            define(long, ulong, ulong) define(ulong, ulong, ulong) define(half, ushort, uint) \
                define(float, uint, uint) define(double, ulong, ulong)

#define EXCHANGES(type, bits, exchanged)                                        \
    GIVES(static type, value_of_lane, (uint lanes, type value, uint lane),      \
          as_##type((bits)from_lane(lanes, (exchanged)as_##bits(value), lane))) \
    GIVES(static type, value_below, (uint lanes, type value, uint distance),    \
          as_##type((bits)from_below(lanes, (exchanged)as_##bits(value), distance)))

EACH_TYPE(EXCHANGES)

// Lanes that are not there give a work-item its own value.
#define SHUFFLES(type, ...)                                                                        \
    GIVES(type, sub_group_broadcast, (type value, uint lane),                                      \
          value_of_lane(everyone(), value, lane))                                                  \
    GIVES(type, sub_group_non_uniform_broadcast, (type value, uint lane),                          \
          value_of_lane(present(), value, lane))                                                   \
    GIVES(type, sub_group_broadcast_first, (type value),                                           \
          value_of_lane(present(), value, ctz(present())))                                         \
    GIVES(int, sub_group_non_uniform_all_equal, (type value),                                      \
          sub_group_non_uniform_all(value == sub_group_broadcast_first(value)))                    \
    GIVES(type, sub_group_shuffle, (type value, uint lane), value_of_lane(present(), value, lane)) \
    GIVES(type, sub_group_shuffle_xor, (type value, uint mask),                                    \
          value_of_lane(present(), value, get_sub_group_local_id() ^ mask))                        \
    GIVES(type, sub_group_shuffle_up, (type value, uint distance),                                 \
          value_of_lane(present(), value, get_sub_group_local_id() - distance))                    \
    GIVES(type, sub_group_shuffle_down, (type value, uint distance),                               \
          value_of_lane(present(), value, get_sub_group_local_id() + distance))                    \
    FUNCTION type sub_group_rotate(type value, int distance)                                       \
    {                                                                                              \
        const int size = (int)get_sub_group_size();                                                \
        const int lane = ((int)get_sub_group_local_id() + distance) % size;                        \
        return value_of_lane(everyone(), value, (uint)(lane < 0 ? lane + size : lane));            \
    }                                                                                              \
    FUNCTION type sub_group_clustered_rotate(type value, int distance, uint size)                  \
    {                                                                                              \
        const uint lane = get_sub_group_local_id();                                                \
        const uint other = (lane + (uint)distance) % size + lane / size * size;                    \
        return value_of_lane(everyone(), value, other);                                            \
    }

EACH_TYPE(SHUFFLES)

#define BROADCAST_OF(name, type, n)                  \
    GIVES(type##n, name, (type##n value, uint lane), \
          (type##n)(name(value.lo, lane), name(value.REST_##n, lane)))

#define BROADCASTS(type, ...)                        \
    VECTORS(BROADCAST_OF, sub_group_broadcast, type) \
    VECTORS(BROADCAST_OF, sub_group_non_uniform_broadcast, type)

EACH_TYPE(BROADCASTS)

// Scans take log2(32) steps, from neighbours at growing distances; a reduction is the last lane's.
// A sub-group that is full is reduced in pairs, so that every lane has the sum without another step.

#define ADD(type, a, b) ((type)((a) + (b)))
#define MIN(type, a, b) min(a, b)
#define MAX(type, a, b) max(a, b)
#define FMIN(type, a, b) ((b) < (a) ? (b) : (a))
#define FMAX(type, a, b) ((a) < (b) ? (b) : (a))

#define SCANS(name, operation, type, neutral)                                                  \
    FUNCTION type sub_group_scan_inclusive_##name(type value)                                  \
    {                                                                                          \
        for (uint distance = 1; distance < WARP; distance *= 2) {                              \
            const type below = value_below(everyone(), value, distance);                       \
            if (get_sub_group_local_id() >= distance)                                          \
                value = operation(type, below, value);                                         \
        }                                                                                      \
        return value;                                                                          \
    }                                                                                          \
    FUNCTION type sub_group_scan_exclusive_##name(type value)                                  \
    {                                                                                          \
        const type scanned = sub_group_scan_inclusive_##name(value);                           \
        const type below = value_below(everyone(), scanned, 1);                                \
        return get_sub_group_local_id() > 0 ? below : (type)(neutral);                         \
    }                                                                                          \
    FUNCTION type sub_group_reduce_##name(type value)                                          \
    {                                                                                          \
        if (get_sub_group_size() < WARP)                                                       \
            return sub_group_broadcast(sub_group_scan_inclusive_##name(value),                 \
                                       get_sub_group_size() - 1);                              \
        for (uint distance = WARP / 2; distance > 0; distance /= 2) {                          \
            const type other = value_of_lane(~0u, value, get_sub_group_local_id() ^ distance); \
            value = operation(type, value, other);                                             \
        }                                                                                      \
        return value;                                                                          \
    }

#define INTEGER_SCANS(type, least, most) \
    SCANS(add, ADD, type, 0)             \
    SCANS(min, MIN, type, most)          \
    SCANS(max, MAX, type, least)

#define FLOAT_SCANS(type)            \
    SCANS(add, ADD, type, 0)         \
    SCANS(min, FMIN, type, INFINITY) \
    SCANS(max, FMAX, type, -INFINITY)

INTEGER_SCANS(char, CHAR_MIN, CHAR_MAX)
INTEGER_SCANS(uchar, 0, UCHAR_MAX)
INTEGER_SCANS(short, SHRT_MIN, SHRT_MAX)
INTEGER_SCANS(ushort, 0, USHRT_MAX)
INTEGER_SCANS(int, INT_MIN, INT_MAX)
INTEGER_SCANS(uint, 0, UINT_MAX)
INTEGER_SCANS(long, LONG_MIN, LONG_MAX)
INTEGER_SCANS(ulong, 0, ULONG_MAX)
FLOAT_SCANS(half)
FLOAT_SCANS(float)
FLOAT_SCANS(double)
