// cl_khr_int64_base_atomics and cl_khr_int64_extended_atomics: without an order between threads, as
// those of 32 bits.

#define CHANGE(name, operation, space, type)                  \
    GIVES(type, name, (volatile space type * at, type value), \
          operation(at, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE))

#define STEP(name, operation, space, type)        \
    GIVES(type, name, (volatile space type * at), \
          operation(at, (type)1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE))

#define COMPARE(space, type)                                                              \
    FUNCTION type atom_cmpxchg(volatile space type *at, type expected, type value)        \
    {                                                                                     \
        __scoped_atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, \
                                           __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);      \
        return expected;                                                                  \
    }

#define ALL(space, type)                                       \
    CHANGE(atom_add, __scoped_atomic_fetch_add, space, type)   \
    CHANGE(atom_sub, __scoped_atomic_fetch_sub, space, type)   \
    CHANGE(atom_xchg, __scoped_atomic_exchange_n, space, type) \
    CHANGE(atom_min, __scoped_atomic_fetch_min, space, type)   \
    CHANGE(atom_max, __scoped_atomic_fetch_max, space, type)   \
    CHANGE(atom_and, __scoped_atomic_fetch_and, space, type)   \
    CHANGE(atom_or, __scoped_atomic_fetch_or, space, type)     \
    CHANGE(atom_xor, __scoped_atomic_fetch_xor, space, type)   \
    STEP(atom_inc, __scoped_atomic_fetch_add, space, type)     \
    STEP(atom_dec, __scoped_atomic_fetch_sub, space, type)     \
    COMPARE(space, type)

ALL(__global, long)
ALL(__global, ulong)
ALL(__local, long)
ALL(__local, ulong)
