// Functions that all work-items of a work-group call together. A sub-group's result is in one of 32 slots of
// local memory until all have read it.

#define VOTE(name, operation)                                                              \
    FUNCTION int work_group_##name(int condition)                                          \
    {                                                                                      \
        int result;                                                                        \
        __asm__ volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; barrier.red." operation \
                         ".pred q, 0, p; selp.s32 %0, 1, 0, q; }"                          \
                         : "=r"(result)                                                    \
                         : "r"(condition)                                                  \
                         : "memory");                                                      \
        return result;                                                                     \
    }

VOTE(all, "and")
VOTE(any, "or")

// The same for all calls in a program, so it is no part of them.
static __attribute__((noinline)) __local void *slots(void)
{
    size_t address;
    __asm__ volatile("{ .shared .align 8 .b8 weir_group_slots[256]; mov.u64 %0, weir_group_slots; }"
                     : "=l"(address));
    return (__local void *)address;
}

#define BROADCASTS(type)                                                          \
    static FUNCTION type from(type value, size_t id)                              \
    {                                                                             \
        __local type *slot = slots();                                             \
        if (linear_id() == id)                                                    \
            *slot = value;                                                        \
        barrier(CLK_LOCAL_MEM_FENCE);                                             \
        const type result = *slot;                                                \
        barrier(CLK_LOCAL_MEM_FENCE);                                             \
        return result;                                                            \
    }                                                                             \
    GIVES(type, work_group_broadcast, (type value, size_t x), from(value, x))     \
    GIVES(type, work_group_broadcast, (type value, size_t x, size_t y),           \
          from(value, get_local_size(0) * y + x))                                 \
    GIVES(type, work_group_broadcast, (type value, size_t x, size_t y, size_t z), \
          from(value, (z * get_local_size(1) + y) * get_local_size(0) + x))

#define ADD(a, b) ((a) + (b))
#define LESSER(a, b) ((b) < (a) ? (b) : (a))
#define GREATER(a, b) ((b) > (a) ? (b) : (a))

// fold: of the first `count` sub-groups together, in order, what each one's work-item `lane` has. Without any the
// result is not used.
#define COLLECTIVES(type, name, combine)                                                   \
    static FUNCTION type fold_##name(__local type *slot, type mine, uint lane, uint count) \
    {                                                                                      \
        if (get_sub_group_local_id() == lane)                                              \
            slot[get_sub_group_id()] = mine;                                               \
        barrier(CLK_LOCAL_MEM_FENCE);                                                      \
        type result = count > 0 ? slot[0] : mine;                                          \
        for (uint i = 1; i < count; i++)                                                   \
            result = combine(result, slot[i]);                                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                      \
        return result;                                                                     \
    }                                                                                      \
    FUNCTION type work_group_reduce_##name(type value)                                     \
    {                                                                                      \
        __local type *slot = slots();                                                      \
        return fold_##name(slot, sub_group_reduce_##name(value), 0, get_num_sub_groups()); \
    }                                                                                      \
    static FUNCTION type preceding_##name(type total)                                      \
    {                                                                                      \
        return fold_##name(slots(), total, get_sub_group_size() - 1, get_sub_group_id());  \
    }                                                                                      \
    FUNCTION type work_group_scan_inclusive_##name(type value)                             \
    {                                                                                      \
        const type mine = sub_group_scan_inclusive_##name(value);                          \
        const type earlier = preceding_##name(mine);                                       \
        return get_sub_group_id() > 0 ? combine(earlier, mine) : mine;                     \
    }                                                                                      \
    FUNCTION type work_group_scan_exclusive_##name(type value)                             \
    {                                                                                      \
        const type mine = sub_group_scan_exclusive_##name(value);                          \
        const type earlier = preceding_##name(combine(mine, value));                       \
        return get_sub_group_id() > 0 ? combine(earlier, mine) : mine;                     \
    }

#define ALL(type)                  \
    BROADCASTS(type)               \
    COLLECTIVES(type, add, ADD)    \
    COLLECTIVES(type, min, LESSER) \
    COLLECTIVES(type, max, GREATER)

ALL(int)
ALL(uint)
ALL(long)
ALL(ulong)
ALL(float)
ALL(double)
ALL(half)
