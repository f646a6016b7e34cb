// Atomics of OpenCL C 2.0, on pointers to any address space. LLVM makes atomic operations without an order
// of them, so the order is that of fences: a release before the operation, an acquire after it, and before
// all that is sequentially consistent fence.sc (Lustig, Sahasrabuddhe, Giroux: A Formal Analysis of the
// NVIDIA PTX Memory Consistency Model, 2019). cta is a block, gpu the device, sys the host as well.

#define BY_SCOPE(start, end, ...)                                  \
    if (scope == memory_scope_all_svm_devices)                     \
        __asm__ volatile(start ".sys" end:__VA_ARGS__ : "memory"); \
    else if (scope == memory_scope_device)                         \
        __asm__ volatile(start ".gpu" end:__VA_ARGS__ : "memory"); \
    else                                                           \
        __asm__ volatile(start ".cta" end:__VA_ARGS__ : "memory");

static void fence(bool all, memory_scope scope)
{
    if (all) {
        BY_SCOPE("fence.sc", ";", :)
    } else {
        BY_SCOPE("fence.acq_rel", ";", :)
    }
}

static void before(memory_order order, memory_scope scope)
{
    if (order == memory_order_release || order == memory_order_acq_rel ||
        order == memory_order_seq_cst)
        fence(order == memory_order_seq_cst, scope);
}

static void after(memory_order order, memory_scope scope)
{
    if (order == memory_order_acquire || order == memory_order_acq_rel ||
        order == memory_order_seq_cst)
        fence(false, scope);
}

FUNCTION void atomic_work_item_fence(cl_mem_fence_flags flags, memory_order order,
                                     memory_scope scope)
{
    if (order != memory_order_relaxed && scope != memory_scope_work_item)
        fence(order == memory_order_seq_cst, scope);
}

// Operations without an order.

#define OPERATION(name, operation, type, register)                                 \
    static type name(volatile void *at, type value, memory_scope scope)            \
    {                                                                              \
        type old;                                                                  \
        BY_SCOPE("atom.relaxed", "." operation " %0, [%1], %2;", "=" register(old) \
                 : "l"(at), register(value))                                       \
        return old;                                                                \
    }

#define ACCESSES(bits, type, register)                                                       \
    static type load##bits(volatile void *at, memory_scope scope)                            \
    {                                                                                        \
        type value;                                                                          \
        BY_SCOPE("ld.relaxed", ".b" #bits " %0, [%1];", "=" register(value) : "l"(at))       \
        return value;                                                                        \
    }                                                                                        \
    static void store##bits(volatile void *at, type value, memory_scope scope)               \
    {                                                                                        \
        BY_SCOPE("st.relaxed", ".b" #bits " [%0], %1;", : "l"(at), register(value))          \
    }                                                                                        \
    static type swap##bits(volatile void *at, type expected, type value, memory_scope scope) \
    {                                                                                        \
        type old;                                                                            \
        BY_SCOPE("atom.relaxed", ".cas.b" #bits " %0, [%1], %2, %3;", "=" register(old)      \
                 : "l"(at), register(expected), register(value))                             \
        return old;                                                                          \
    }                                                                                        \
    OPERATION(exchange##bits, "exch.b" #bits, type, register)                                \
    OPERATION(and##bits, "and.b" #bits, type, register)                                      \
    OPERATION(or ##bits, "or.b" #bits, type, register)                                       \
    OPERATION(xor##bits, "xor.b" #bits, type, register)                                      \
    OPERATION(add##bits, "add.u" #bits, type, register)                                      \
    OPERATION(min_unsigned##bits, "min.u" #bits, type, register)                             \
    OPERATION(max_unsigned##bits, "max.u" #bits, type, register)

ACCESSES(32, uint, "r")
ACCESSES(64, ulong, "l")
OPERATION(min_signed32, "min.s32", int, "r")
OPERATION(max_signed32, "max.s32", int, "r")
OPERATION(min_signed64, "min.s64", long, "l")
OPERATION(max_signed64, "max.s64", long, "l")

// Each function: with order and scope, with order alone, and with neither.

#define LIST(...) __VA_ARGS__

#define DEFAULTS(type, name, parameters, ...)                           \
    GIVES(type, name##_explicit, (LIST parameters, memory_order order), \
          name##_explicit(__VA_ARGS__, order, memory_scope_device))     \
    GIVES(type, name, (LIST parameters), name##_explicit(__VA_ARGS__, memory_order_seq_cst))

#define LOADS(type, bits)                                                              \
    FUNCTION type atomic_load_explicit(volatile atomic_##type *at, memory_order order, \
                                       memory_scope scope)                             \
    {                                                                                  \
        if (order == memory_order_seq_cst)                                             \
            fence(true, scope);                                                        \
        const type value = as_##type(load##bits(at, scope));                           \
        after(order, scope);                                                           \
        return value;                                                                  \
    }                                                                                  \
    DEFAULTS(type, atomic_load, (volatile atomic_##type * at), at)

#define STORES(type, bits)                                                      \
    FUNCTION void atomic_store_explicit(volatile atomic_##type *at, type value, \
                                        memory_order order, memory_scope scope) \
    {                                                                           \
        before(order, scope);                                                   \
        store##bits(at, AS_BITS##bits(value), scope);                           \
    }                                                                           \
    DEFAULTS(void, atomic_store, (volatile atomic_##type * at, type value), at, value)

#define AS_BITS32(value) as_uint(value)
#define AS_BITS64(value) as_ulong(value)

#define CHANGES(function, type, call)                                                             \
    FUNCTION type function##_explicit(volatile atomic_##type *at, type value, memory_order order, \
                                      memory_scope scope)                                         \
    {                                                                                             \
        before(order, scope);                                                                     \
        const type old = as_##type(call);                                                         \
        after(order, scope);                                                                      \
        return old;                                                                               \
    }                                                                                             \
    DEFAULTS(type, function, (volatile atomic_##type * at, type value), at, value)

#define COMPARES(name, type, bits)                                                                \
    FUNCTION bool name##_explicit(volatile atomic_##type *at, type *expected, type value,         \
                                  memory_order order, memory_order otherwise, memory_scope scope) \
    {                                                                                             \
        const BITS##bits wanted = AS_BITS##bits(*expected);                                       \
        before(order, scope);                                                                     \
        const BITS##bits old = swap##bits(at, wanted, AS_BITS##bits(value), scope);               \
        after(old == wanted ? order : otherwise, scope);                                          \
        if (old != wanted)                                                                        \
            *expected = as_##type(old);                                                           \
        return old == wanted;                                                                     \
    }                                                                                             \
    GIVES(bool, name##_explicit,                                                                  \
          (volatile atomic_##type * at, type * expected, type value, memory_order order,          \
           memory_order otherwise),                                                               \
          name##_explicit(at, expected, value, order, otherwise, memory_scope_device))            \
    GIVES(bool, name, (volatile atomic_##type * at, type * expected, type value),                 \
          name##_explicit(at, expected, value, memory_order_seq_cst, memory_order_seq_cst,        \
                          memory_scope_device))

#define BITS32 uint
#define BITS64 ulong

#define ANY_TYPE(type, bits)                                                        \
    LOADS(type, bits)                                                               \
    STORES(type, bits)                                                              \
    CHANGES(atomic_exchange, type, exchange##bits(at, AS_BITS##bits(value), scope)) \
    COMPARES(atomic_compare_exchange_strong, type, bits)                            \
    COMPARES(atomic_compare_exchange_weak, type, bits)

#define WHOLE_TYPE(type, bits, sign)                                                \
    ANY_TYPE(type, bits)                                                            \
    CHANGES(atomic_fetch_add, type, add##bits(at, AS_BITS##bits(value), scope))     \
    CHANGES(atomic_fetch_sub, type, add##bits(at, 0 - AS_BITS##bits(value), scope)) \
    CHANGES(atomic_fetch_and, type, and##bits(at, AS_BITS##bits(value), scope))     \
    CHANGES(atomic_fetch_or, type, or ##bits(at, AS_BITS##bits(value), scope))      \
    CHANGES(atomic_fetch_xor, type, xor##bits(at, AS_BITS##bits(value), scope))     \
    CHANGES(atomic_fetch_min, type, min_##sign##bits(at, value, scope))             \
    CHANGES(atomic_fetch_max, type, max_##sign##bits(at, value, scope))

WHOLE_TYPE(int, 32, signed)
WHOLE_TYPE(uint, 32, unsigned)
WHOLE_TYPE(long, 64, signed)
WHOLE_TYPE(ulong, 64, unsigned)
ANY_TYPE(float, 32)
ANY_TYPE(double, 64)

FUNCTION bool atomic_flag_test_and_set_explicit(volatile atomic_flag *at, memory_order order,
                                                memory_scope scope)
{
    return atomic_exchange_explicit(at, 1, order, scope) != 0;
}

DEFAULTS(bool, atomic_flag_test_and_set, (volatile atomic_flag * at), at)

FUNCTION void atomic_flag_clear_explicit(volatile atomic_flag *at, memory_order order,
                                         memory_scope scope)
{
    atomic_store_explicit(at, 0, order, scope);
}

DEFAULTS(void, atomic_flag_clear, (volatile atomic_flag * at), at)
