// Asynchronous copies, and vectors in memory of every address space: sections 6.12.10, 6.12.7 and 6.11.12
// of OpenCL C 1.2.
#include "tests/kernels/builtins/rows.h"

static integer same(const struct call *call)
{
    return bits_at(call, 0, call->lane);
}

// The even parts, and then the odd ones.
static integer halves(const struct call *call)
{
    const unsigned half = call->width / 2;
    return bits_at(call, 0, call->lane < half ? 2 * call->lane : 2 * (call->lane - half) + 1);
}

static integer spread(const struct call *call)
{
    const unsigned half = call->width / 2;
    return bits_at(call, 0, call->lane / 2 + (call->lane & 1 ? half : 0));
}

static integer steps(const struct call *call)
{
    return call->width == 3 ? 4 : call->width;
}

unsigned constant_byte(unsigned place)
{
    return (place * 37 + 11) & 255;
}

static integer of_constant(const struct call *call)
{
    const unsigned place = ((unsigned)call->argument[0].i & 1) * call->width + call->lane;
    const unsigned size = (unsigned)type_size(call->type);
    integer bits = 0;
    for (unsigned i = size; i-- > 0;)
        bits = bits << 8 | constant_byte(place * size + i);
    return bits;
}

#define SHARED "((__local $t *)&shared)"
#define FROM "((__global const $t *)(A + i))"
#define TO "((__global $t *)$R)"
#define WAIT "; wait_group_events(1, &e)"
#define COPY "async_work_group_copy("
#define STRIDED "async_work_group_strided_copy("

#define STATEMENT(id, form_, takes, reads, lanes, reference)                              \
    ROW_OF(id, form_, INTEGERS | REALS, takes, 'U', .statement = true, .in_place = reads, \
           .space = LOCAL, .widths = lanes, .whole = reference)

static const struct row rows[] = {
    STATEMENT(copy,
              "event_t e = " COPY "(__local $T *)&shared, (__global const $T *)(A + i), 1, 0)" WAIT
              "; e = " COPY "(__global $T *)$R, (__local const $T *)&shared, 1, 0)" WAIT,
              "T", true, POWERS_OF_TWO, same),
    STATEMENT(copy_of_parts,
              "event_t e = " COPY SHARED ", " FROM ", $N, 0)" WAIT "; e = " COPY TO ", " SHARED
              ", $N, 0)" WAIT,
              "T", true, VECTORS, same),
    STATEMENT(strided_copy_to_local,
              "event_t e = " STRIDED SHARED ", " FROM ", $N / 2, 2, 0); e = " STRIDED SHARED
              " + $N / 2, " FROM " + 1, $N / 2, 2, e)" WAIT "; vstore$N(vload$N(0, " SHARED
              "), 0, " TO ")",
              "T", true, POWERS_OF_TWO, halves),
    STATEMENT(strided_copy_to_global,
              "vstore$N(vload$N(0, " FROM "), 0, " SHARED "); event_t e = " STRIDED TO ", " SHARED
              ", $N / 2, 2, 0); e = " STRIDED TO " + 1, " SHARED " + $N / 2, $N / 2, 2, e)" WAIT,
              "T", true, POWERS_OF_TWO, spread),
    STATEMENT(vload_private,
              "$t own[32]; vstore$N(a, 1, own); vstore$N(vload$N(1, own), 0, " TO ")", "T", false,
              VECTORS, same),
    STATEMENT(vload_local,
              "vstore$N(a, 0, " SHARED "); vstore$N(vload$N(0, " SHARED "), 0, " TO ")", "T", false,
              VECTORS, same),
    STATEMENT(vload_constant,
              "vstore$N(vload$N(a & 1, (__constant $t *)constant_bytes), 0, " TO ")", "i", false,
              VECTORS, of_constant),
    ROW_OF(prefetch, "as_$U((prefetch(A + i, 1), a))", INTEGERS | REALS, "T", 'U', .whole = same),
    ROW_OF(vec_step, "($I)(vec_step(a))", INTEGERS | REALS, "T", 'I', .whole = steps),
};

const struct group copies_group = {"copies", rows, sizeof rows / sizeof *rows};
