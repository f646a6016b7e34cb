// Functions that all work-items of a work-group call together. A sub-group's result is in one of 32 slots of
// local memory until all have read it.

FUNCTION int work_group_all(int condition)
{
    int all;
    __asm__ volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; barrier.red.and.pred q, 0, p; "
                     "selp.s32 %0, 1, 0, q; }"
                     : "=r"(all)
                     : "r"(condition)
                     : "memory");
    return all;
}

FUNCTION int work_group_any(int condition)
{
    int any;
    __asm__ volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; barrier.red.or.pred q, 0, p; "
                     "selp.s32 %0, 1, 0, q; }"
                     : "=r"(any)
                     : "r"(condition)
                     : "memory");
    return any;
}

// The same for all calls in a program, so it is no part of them.
static __attribute__((noinline)) __local void *slots(void)
{
    size_t address;
    __asm__ volatile("{ .shared .align 8 .b8 weir_group_slots[256]; mov.u64 %0, weir_group_slots; }"
                     : "=l"(address));
    return (__local void *)address;
}

#define BROADCASTS(type)                                                         \
    static FUNCTION type from(type value, size_t id)                             \
    {                                                                            \
        __local type *slot = slots();                                            \
        if (linear_id() == id)                                                   \
            *slot = value;                                                       \
        barrier(CLK_LOCAL_MEM_FENCE);                                            \
        const type result = *slot;                                               \
        barrier(CLK_LOCAL_MEM_FENCE);                                            \
        return result;                                                           \
    }                                                                            \
    FUNCTION type work_group_broadcast(type value, size_t x)                     \
    {                                                                            \
        return from(value, x);                                                   \
    }                                                                            \
    FUNCTION type work_group_broadcast(type value, size_t x, size_t y)           \
    {                                                                            \
        return from(value, y * get_local_size(0) + x);                           \
    }                                                                            \
    FUNCTION type work_group_broadcast(type value, size_t x, size_t y, size_t z) \
    {                                                                            \
        return from(value, (z * get_local_size(1) + y) * get_local_size(0) + x); \
    }

#define ADD(a, b) ((a) + (b))
#define LESSER(a, b) ((b) < (a) ? (b) : (a))
#define GREATER(a, b) ((b) > (a) ? (b) : (a))

// `count` slots, in order. `any` is not used without one.
#define FOLD(type, name, combine)                                                    \
    static FUNCTION type fold_##name(const __local type *slot, uint count, type any) \
    {                                                                                \
        type result = count > 0 ? slot[0] : any;                                     \
        for (uint i = 1; i < count; i++)                                             \
            result = combine(result, slot[i]);                                       \
        return result;                                                               \
    }

#define COLLECTIVES(type, name, combine)                                   \
    FOLD(type, name, combine)                                              \
    FUNCTION type work_group_reduce_##name(type value)                     \
    {                                                                      \
        __local type *slot = slots();                                      \
        const type mine = sub_group_reduce_##name(value);                  \
        if (get_sub_group_local_id() == 0)                                 \
            slot[get_sub_group_id()] = mine;                               \
        barrier(CLK_LOCAL_MEM_FENCE);                                      \
        const type result = fold_##name(slot, get_num_sub_groups(), mine); \
        barrier(CLK_LOCAL_MEM_FENCE);                                      \
        return result;                                                     \
    }                                                                      \
    static FUNCTION type preceding_##name(type total)                      \
    {                                                                      \
        __local type *slot = slots();                                      \
        if (get_sub_group_local_id() == get_sub_group_size() - 1)          \
            slot[get_sub_group_id()] = total;                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                      \
        const type result = fold_##name(slot, get_sub_group_id(), total);  \
        barrier(CLK_LOCAL_MEM_FENCE);                                      \
        return result;                                                     \
    }                                                                      \
    FUNCTION type work_group_scan_inclusive_##name(type value)             \
    {                                                                      \
        const type mine = sub_group_scan_inclusive_##name(value);          \
        const type earlier = preceding_##name(mine);                       \
        return get_sub_group_id() > 0 ? combine(earlier, mine) : mine;     \
    }                                                                      \
    FUNCTION type work_group_scan_exclusive_##name(type value)             \
    {                                                                      \
        const type mine = sub_group_scan_exclusive_##name(value);          \
        const type earlier = preceding_##name(combine(mine, value));       \
        return get_sub_group_id() > 0 ? combine(earlier, mine) : mine;     \
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
