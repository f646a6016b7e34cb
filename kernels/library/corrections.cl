// Functions that libclc has, with other results than OpenCL C's.
#define FUNCTION __attribute__((overloadable))

// isinf of a vector: libclc's elements are 1 where they should be -1.
#define ISINF(type, bits, n)                       \
    FUNCTION bits##n isinf(type##n x)              \
    {                                              \
        return fabs(x) == (type##n)(type)INFINITY; \
    }

#define WIDTHS(define, type, bits)                                                          \
    define(type, bits, 2) define(type, bits, 3) define(type, bits, 4) define(type, bits, 8) \
        define(type, bits, 16)

WIDTHS(ISINF, float, int)
WIDTHS(ISINF, double, long)

// mad_sat of long: libclc saturates the product before the sum, which can then come back into range.
FUNCTION long mad_sat(long a, long b, long c)
{
    ulong low = (ulong)a * (ulong)b;
    ulong sum = low + (ulong)c;
    long high = mul_hi(a, b) + (c >> 63) + (sum < low ? 1 : 0);
    if (high == (long)sum >> 63)
        return (long)sum;
    return high < 0 ? LONG_MIN : LONG_MAX;
}

#define HALVES(n)                                                               \
    FUNCTION long##n mad_sat(long##n a, long##n b, long##n c)                   \
    {                                                                           \
        return (long##n)(mad_sat(a.lo, b.lo, c.lo), mad_sat(a.hi, b.hi, c.hi)); \
    }
HALVES(2)
FUNCTION long3 mad_sat(long3 a, long3 b, long3 c)
{
    return (long3)(mad_sat(a.lo, b.lo, c.lo), mad_sat(a.z, b.z, c.z));
}
HALVES(4)
HALVES(8)
HALVES(16)
