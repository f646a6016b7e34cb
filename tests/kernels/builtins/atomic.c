// Atomic functions: section 6.12.11 of OpenCL C 1.2, and those of its extensions for 64 bits. Each
// work-item has a number of its own: what is judged is the old value, and what is stored.
#include "tests/kernels/builtins/rows.h"

#define STORED(name, expression)                       \
    static integer new_##name(const struct call *call) \
    {                                                  \
        return expression;                             \
    }

STORED(add, A + B)
STORED(sub, A - B)
STORED(xchg, B)
STORED(inc, A + 1)
STORED(dec, A - 1)
STORED(cmpxchg, A == B ? C : A)
STORED(min, A < B ? A : B)
STORED(max, A > B ? A : B)
STORED(and, A &B)
STORED(or, A | B)
STORED(xor, A ^ B)

static integer old(const struct call *call)
{
    return A;
}

// Half of the exchanges find what they compare with.
static void fit_compared(struct call *call)
{
    if (C & 1)
        B = A;
}

static long double old_real(const struct call *call)
{
    return call->argument[0].x;
}

static long double new_real(const struct call *call)
{
    return call->argument[1].x;
}

enum {
    OF_32 = 1 << INT | 1 << UINT,
    OF_64 = 1 << LONG | 1 << ULONG
};

#define CALL(id, of, where, call_, takes, like, fitted)                             \
    NAMED(id, "(*s = a, " call_ ")", of, takes, 'T', .second = 'T', .space = where, \
          .widths = SCALARS, .whole = old, .second_whole = new_##like, .fit = fitted)
#define IN_BOTH(id, of, call_, takes, like, fitted)   \
    CALL(id, of, GLOBAL, call_, takes, like, fitted), \
        CALL(id "_local", of, LOCAL, call_, takes, like, fitted)
#define FITTED(name, inside, takes, fitted)                                       \
    IN_BOTH("atomic_" #name, OF_32, "atomic_" #name inside, takes, name, fitted), \
        IN_BOTH("atom_" #name, OF_64, "atom_" #name inside, takes, name, fitted)
#define OF_BOTH(name, inside, takes) FITTED(name, inside, takes, NULL)
#define FLOAT_IN(id, where)                                                                        \
    NAMED(id, "(*s = a, atomic_xchg(s, b))", 1 << FLOAT, "TT", 'T', .second = 'T', .space = where, \
          .widths = SCALARS, .real = old_real, .second_real = new_real)

static const struct row rows[] = {
    OF_BOTH(add, "(s, b)", "TT"),
    OF_BOTH(sub, "(s, b)", "TT"),
    OF_BOTH(xchg, "(s, b)", "TT"),
    OF_BOTH(inc, "(s)", "T"),
    OF_BOTH(dec, "(s)", "T"),
    FITTED(cmpxchg, "(s, b, c)", "TTT", fit_compared),
    OF_BOTH(min, "(s, b)", "TT"),
    OF_BOTH(max, "(s, b)", "TT"),
    OF_BOTH(and, "(s, b)", "TT"),
    OF_BOTH(or, "(s, b)", "TT"),
    OF_BOTH(xor, "(s, b)", "TT"),
    FLOAT_IN("atomic_xchg_float", GLOBAL),
    FLOAT_IN("atomic_xchg_float_local", LOCAL),
};

const struct group atomic_group = {"atomic", rows, sizeof rows / sizeof *rows};
