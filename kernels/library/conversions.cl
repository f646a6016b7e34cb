// Saturating conversions of floats and doubles to whole numbers. libclc's leave it to the GPU what
// becomes of NaN, which OpenCL C makes 0, and LLVM drops one whose argument it knows to be NaN.
// libdevice's conversions are one instruction each, and saturate to 32 and 64 bits.

#define VECTOR(to, from, n, half_of, mode)                 \
    GIVES(to##n, convert_##to##n##_sat##mode, (from##n x), \
          (to##n)(convert_##to##half_of##_sat##mode(x.lo), \
                  convert_##to##half_of##_sat##mode(x.hi)))

#define PARTS(to, from, mode)                                                      \
    VECTOR(to, from, 2, , mode)                                                    \
    GIVES(to##3, convert_##to##3_sat##mode, (from##3 x),                           \
          (to##3)(convert_##to##2_sat##mode(x.xy), convert_##to##_sat##mode(x.z))) \
    VECTOR(to, from, 4, 2, mode)                                                   \
    VECTOR(to, from, 8, 4, mode)                                                   \
    VECTOR(to, from, 16, 8, mode)

#define CONVERSION(to, from, mode, wide, of_libdevice, least, most)               \
    GIVES(to, convert_##to##_sat##mode, (from x),                                 \
          isnan(x) ? 0 : (to)clamp(of_libdevice(x), (wide)(least), (wide)(most))) \
    PARTS(to, from, mode)

// To a type, which is `wide` or narrower, in each direction. Without one it is towards 0.
#define DIRECTIONS(to, from, wide, of_libdevice, least, most)        \
    CONVERSION(to, from, , wide, of_libdevice##_rz, least, most)     \
    CONVERSION(to, from, _rte, wide, of_libdevice##_rn, least, most) \
    CONVERSION(to, from, _rtz, wide, of_libdevice##_rz, least, most) \
    CONVERSION(to, from, _rtp, wide, of_libdevice##_ru, least, most) \
    CONVERSION(to, from, _rtn, wide, of_libdevice##_rd, least, most)

#define OF_LIBDEVICE(from, wide, name) \
    wide name##_rn(from x);            \
    wide name##_rz(from x);            \
    wide name##_ru(from x);            \
    wide name##_rd(from x);

#define FROM(from)                                                      \
    OF_LIBDEVICE(from, int, __nv_##from##2int)                          \
    OF_LIBDEVICE(from, uint, __nv_##from##2uint)                        \
    OF_LIBDEVICE(from, long, __nv_##from##2ll)                          \
    OF_LIBDEVICE(from, ulong, __nv_##from##2ull)                        \
    DIRECTIONS(char, from, int, __nv_##from##2int, CHAR_MIN, CHAR_MAX)  \
    DIRECTIONS(uchar, from, uint, __nv_##from##2uint, 0, UCHAR_MAX)     \
    DIRECTIONS(short, from, int, __nv_##from##2int, SHRT_MIN, SHRT_MAX) \
    DIRECTIONS(ushort, from, uint, __nv_##from##2uint, 0, USHRT_MAX)    \
    DIRECTIONS(int, from, int, __nv_##from##2int, INT_MIN, INT_MAX)     \
    DIRECTIONS(uint, from, uint, __nv_##from##2uint, 0, UINT_MAX)       \
    DIRECTIONS(long, from, long, __nv_##from##2ll, LONG_MIN, LONG_MAX)  \
    DIRECTIONS(ulong, from, ulong, __nv_##from##2ull, 0, ULONG_MAX)

FROM(float)
FROM(double)
