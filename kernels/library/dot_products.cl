// cl_khr_integer_dot_product: the instruction dp4a, which adds the four products to a third number.

#define DOT(name, ptx, type, a, b)                                                    \
    static type name(uint x, uint y)                                                  \
    {                                                                                 \
        type sum;                                                                     \
        __asm__("dp4a." ptx " %0, %1, %2, %3;" : "=r"(sum) : "r"(x), "r"(y), "r"(0)); \
        return sum;                                                                   \
    }                                                                                 \
    GIVES(type, dot, (a##4 x, b##4 y), name(as_uint(x), as_uint(y)))                  \
    GIVES(type, dot_acc_sat, (a##4 x, b##4 y, type sum), add_sat(name(as_uint(x), as_uint(y)), sum))

#define PACKED(name, signs, type)                                                   \
    GIVES(type, dot_4x8packed_##signs##_##type, (uint x, uint y), name(x, y))       \
    GIVES(type, dot_acc_sat_4x8packed_##signs##_##type, (uint x, uint y, type sum), \
          add_sat(name(x, y), sum))

DOT(unsigned_unsigned, "u32.u32", uint, uchar, uchar)
DOT(signed_signed, "s32.s32", int, char, char)
DOT(unsigned_signed, "u32.s32", int, uchar, char)
DOT(signed_unsigned, "s32.u32", int, char, uchar)

PACKED(unsigned_unsigned, uu, uint)
PACKED(signed_signed, ss, int)
PACKED(unsigned_signed, us, int)
PACKED(signed_unsigned, su, int)
