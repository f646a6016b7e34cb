// Launch arguments. Each has a kind: a range of a buffer with its access, a value,
// or local memory. A launch looks the same in C and in C++:
//
//     weir_queue_launch(queue, kernel, grid, block,
//                       weir_in(a, 0, bytes), weir_out(b, 0, bytes), 3, 0.5f);
//
// A plain scalar is passed as its own C type: `2.0` is a double, `2.0f` a float.
// Up to 32 arguments; weir_queue_launch_array() takes any number, including none.
//
// The launch compares each argument with the kernel's parameter:
//   - An integer goes to a parameter of its size, signed or not.
//   - A bool goes to an integer parameter of any size, as 0 or 1, and to a bool of CUDA C++; no
//     other value goes to such a bool. (OpenCL C has no bool parameters. The constants `true` and
//     `false` of C are ints.)
//   - A half is a _Float16, weir_half() or weir_half_bits(), and goes to a half.
//   - A vector is weir_vector(float, x, y, z): elements of the parameter's type, and as many.
//   - Anything else, such as a structure, is weir_value(), of which only the size is compared.
//   - weir_null() or NULL goes to a pointer to __global or __constant memory.
#ifndef WEIR_LAUNCH_H
#define WEIR_LAUNCH_H

#include <limits.h>
#include <string.h>

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/program.h>

// _Float16 where the compiler has it: g++ from 13 on, clang from 15 on.
#if defined(__FLT16_MAX__) && (!defined(__clang__) || __clang_major__ >= 15) && \
    (!defined(__cplusplus) || defined(__clang__) || __GNUC__ >= 13)
#define WEIR__FLOAT16
__extension__ typedef _Float16 weir__float16;
#endif

// Closed. A kind of argument to come that needs more has it at `pointer`.
struct weir_argument {
    weir_parameter_kind kind;
    weir_access access;  // BUFFER
    weir_scalar scalar;  // VALUE: OTHER when made by weir_value(); the element of a vector
    weir_buffer *buffer; // BUFFER
    size_t offset;       // BUFFER: a multiple of limits.argument_alignment_bytes; where
                         // limits.byte_offsets is not 0, of the parameter's `alignment`
    size_t size;         // bytes of the range, the value or the local memory
    const void *pointer; // VALUE made by weir_value() or weir_vector(); else NULL and `bits`
                         // holds it, zero-extended
    uint64_t bits;       // of a vector: how many elements
};

// Arguments are written as whole structures, not member by member: the difference
// is measurable in a launch.
static inline struct weir_argument weir__argument_range(weir_buffer *buffer, size_t offset,
                                                        size_t size, weir_access access)
{
    struct weir_argument argument = {
        WEIR_PARAMETER_BUFFER, access, WEIR_SCALAR_OTHER, buffer, offset, size, NULL, 0};
    return argument;
}

// A range that the kernel only reads. Its parameter need not be a const pointer: `weir check --verify`
// finds a launch that writes it all the same.
static inline struct weir_argument weir_in(weir_buffer *buffer, size_t offset, size_t size)
{
    return weir__argument_range(buffer, offset, size, WEIR_ACCESS_READ);
}

// A range that the kernel overwrites without reading its old contents.
static inline struct weir_argument weir_out(weir_buffer *buffer, size_t offset, size_t size)
{
    return weir__argument_range(buffer, offset, size, WEIR_ACCESS_WRITE);
}

// A range that the kernel reads and writes.
static inline struct weir_argument weir_inout(weir_buffer *buffer, size_t offset, size_t size)
{
    return weir__argument_range(buffer, offset, size, WEIR_ACCESS_READ_WRITE);
}

// The same of whole buffers.
static inline struct weir_argument weir_whole_in(weir_buffer *buffer)
{
    return weir_in(buffer, 0, weir_buffer_size(buffer));
}
static inline struct weir_argument weir_whole_out(weir_buffer *buffer)
{
    return weir_out(buffer, 0, weir_buffer_size(buffer));
}
static inline struct weir_argument weir_whole_inout(weir_buffer *buffer)
{
    return weir_inout(buffer, 0, weir_buffer_size(buffer));
}

static inline struct weir_argument weir__argument_value(weir_scalar scalar, size_t size,
                                                        const void *pointer, uint64_t bits)
{
    struct weir_argument argument = {
        WEIR_PARAMETER_VALUE, WEIR_ACCESS_READ, scalar, NULL, 0, size, pointer, bits};
    return argument;
}

// A value of `size` bytes; `pointer` must be valid until the launch call returns.
static inline struct weir_argument weir_value(const void *pointer, size_t size)
{
    return weir__argument_value(WEIR_SCALAR_OTHER, size, pointer, 0);
}

// NULL for a pointer to __global or __constant memory. A plain NULL means the same. Its kind is
// VALUE, of the scalar type POINTER.
static inline struct weir_argument weir__argument_pointer(const void *pointer)
{
    return weir__argument_value(WEIR_SCALAR_POINTER, sizeof pointer, NULL,
                                (uint64_t)(uintptr_t)pointer);
}

// NULL in place of a buffer.
static inline struct weir_argument weir_null(void)
{
    return weir__argument_pointer(NULL);
}

// Local memory for a __local pointer parameter.
static inline struct weir_argument weir_local(size_t size)
{
    struct weir_argument argument = {
        WEIR_PARAMETER_LOCAL, WEIR_ACCESS_READ_WRITE, WEIR_SCALAR_OTHER, NULL, 0, size, NULL, 0};
    return argument;
}

static inline struct weir_argument weir__argument_scalar(weir_scalar scalar, const void *value,
                                                         size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, value, size);
    return weir__argument_value(scalar, size, NULL, bits);
}

// One function per scalar type. The C form below selects among them, the C++ form has an overload for each.
#define WEIR__SCALAR_FUNCTION(name, type, scalar)                   \
    static inline struct weir_argument name(type value)             \
    {                                                               \
        return weir__argument_scalar(scalar, &value, sizeof value); \
    }
#ifdef __cplusplus
#define WEIR__SCALAR(name, type, scalar)            \
    WEIR__SCALAR_FUNCTION(name, type, scalar)       \
    inline weir_argument weir__argument(type value) \
    {                                               \
        return name(value);                         \
    }
#else
#define WEIR__SCALAR WEIR__SCALAR_FUNCTION
#endif
WEIR__SCALAR(weir__argument_bool, bool, WEIR_SCALAR_BOOL)
WEIR__SCALAR(weir__argument_char, char, CHAR_MIN < 0 ? WEIR_SCALAR_I8 : WEIR_SCALAR_U8)
WEIR__SCALAR(weir__argument_i8, signed char, WEIR_SCALAR_I8)
WEIR__SCALAR(weir__argument_u8, unsigned char, WEIR_SCALAR_U8)
WEIR__SCALAR(weir__argument_i16, short, WEIR_SCALAR_I16)
WEIR__SCALAR(weir__argument_u16, unsigned short, WEIR_SCALAR_U16)
WEIR__SCALAR(weir__argument_i32, int, WEIR_SCALAR_I32)
WEIR__SCALAR(weir__argument_u32, unsigned, WEIR_SCALAR_U32)
WEIR__SCALAR(weir__argument_il, long, sizeof(long) == 8 ? WEIR_SCALAR_I64 : WEIR_SCALAR_I32)
WEIR__SCALAR(weir__argument_ul, unsigned long,
             sizeof(long) == 8 ? WEIR_SCALAR_U64 : WEIR_SCALAR_U32)
WEIR__SCALAR(weir__argument_i64, long long, WEIR_SCALAR_I64)
WEIR__SCALAR(weir__argument_u64, unsigned long long, WEIR_SCALAR_U64)
WEIR__SCALAR(weir__argument_f32, float, WEIR_SCALAR_F32)
WEIR__SCALAR(weir__argument_f64, double, WEIR_SCALAR_F64)
#ifdef WEIR__FLOAT16
WEIR__SCALAR(weir__argument_f16, weir__float16, WEIR_SCALAR_F16)
#endif
WEIR__SCALAR_FUNCTION(weir_half_bits, uint16_t, WEIR_SCALAR_F16) // the 16 bits of a half
#undef WEIR__SCALAR
#undef WEIR__SCALAR_FUNCTION

// The nearest half, the even one of two; an infinity from 65520 on.
static inline struct weir_argument weir_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) // not a number
        return weir_half_bits((uint16_t)(sign | 0x7e00u | (bits >> 13 & 0x1ffu)));
    if (bits >= 0x47800000u) // 65536
        return weir_half_bits((uint16_t)(sign | 0x7c00u));
    if (bits < 0x33000000u) // half of the least half, 2^-25
        return weir_half_bits((uint16_t)sign);
    // Below 2^-14 the exponent stays and the mantissa loses more of its bits.
    const uint32_t normal = bits >= 0x38800000u;
    const uint32_t mantissa = normal ? bits - 0x38000000u : (bits & 0x7fffffu) | 0x800000u;
    const uint32_t lost = normal ? 13 : 126 - (bits >> 23);
    const uint32_t kept = mantissa >> lost;
    const uint32_t rest = mantissa - (kept << lost);
    const uint32_t middle = (uint32_t)1 << (lost - 1);
    return weir_half_bits(
        (uint16_t)(sign + kept + (rest > middle || (rest == middle && kept & 1))));
}

// `values` has as many elements as there is room for: a vector of three has room for four.
static inline struct weir_argument weir__argument_vector(weir_scalar element, const void *values,
                                                         size_t element_size, size_t width)
{
    return weir__argument_value(element, element_size * (width == 3 ? 4 : width), values, width);
}

static inline struct weir_argument weir__argument_self(struct weir_argument argument)
{
    return argument;
}

// What the macros below call: <weir/queue.h>.
WEIR_CALL weir_status weir_queue_launch_at(weir_queue *queue, weir_kernel *kernel,
                                           struct weir_extent grid, struct weir_extent block,
                                           const struct weir_argument *arguments,
                                           size_t argument_count, const char *file, int line);
WEIR_CALL weir_status weir_queue_launch_cooperative_at(
    weir_queue *queue, weir_kernel *kernel, struct weir_extent grid, struct weir_extent block,
    const struct weir_argument *arguments, size_t argument_count, const char *file, int line);
WEIR_CALL weir_status weir_queue_launch_count_at(weir_queue *queue, weir_kernel *kernel,
                                                 size_t count,
                                                 const struct weir_argument *arguments,
                                                 size_t argument_count, const char *file, int line);
WEIR_CALL weir_status weir_queue_launch_global_at(weir_queue *queue, weir_kernel *kernel,
                                                  struct weir_extent items,
                                                  const struct weir_argument *arguments,
                                                  size_t argument_count, const char *file,
                                                  int line);

#ifdef __cplusplus
// The C++ form: overloads in place of _Generic.
inline weir_argument weir__argument(weir_argument value)
{
    return value;
}
// NULL, and no other pointer.
inline weir_argument weir__argument(decltype(nullptr))
{
    return weir_null();
}
inline weir_argument weir__argument(const void *pointer)
{
    return weir__argument_pointer(pointer);
}
template <typename T> struct weir__is_buffer {
    enum {
        value = 0
    };
};
template <> struct weir__is_buffer<weir_buffer> {
    enum {
        value = 1
    };
};
template <> struct weir__is_buffer<const weir_buffer> {
    enum {
        value = 1
    };
};
// Any other pointer, which does not compile.
template <typename T> weir_argument weir__argument(T *)
{
    static_assert(!weir__is_buffer<T>::value,
                  "pass a buffer by weir_in(), weir_out() or weir_inout(), or by weir_whole_in() "
                  "and its like, which tell what the kernel does with it");
    static_assert(weir__is_buffer<T>::value,
                  "kernels take no pointers to the host's memory: pass weir_in(), weir_out() or "
                  "weir_inout() of a buffer, or weir_value() for what the pointer points to");
    return weir_argument();
}
// The elements of a vector, which live as long as the launch call.
template <typename T, size_t Width> struct weir__vector_values {
    T values[Width == 3 ? 4 : Width];
};
template <typename T, size_t Width>
inline weir_argument weir__argument(const weir__vector_values<T, Width> &vector)
{
    return weir__argument_vector(weir__argument(T()).scalar, vector.values, sizeof(T), Width);
}
template <typename T, typename... Values>
inline weir__vector_values<T, sizeof...(Values)> weir__vector(Values... values)
{
    return {{static_cast<T>(values)...}};
}

// A vector of 2, 3, 4, 8 or 16 elements. In C++ an argument of weir_queue_launch() only; for an
// array of arguments use weir_value().
#define weir_vector(type, ...) weir__vector<type>(__VA_ARGS__)

// Of a grid of blocks, or of items that are counted (size_t) or in a grid (weir_extent). The list is made of copies: a
// constant of a class need not be defined.
template <typename... Arguments>
inline WEIR_CHECKED weir_status weir__launch(decltype(&weir_queue_launch_at) launch,
                                             weir_queue *queue, weir_kernel *kernel,
                                             weir_extent grid, weir_extent block, const char *file,
                                             int line, Arguments... arguments)
{
    const weir_argument list[] = {weir__argument(arguments)...};
    return launch(queue, kernel, grid, block, list, sizeof...(arguments), file, line);
}
template <typename Items, typename... Arguments>
inline WEIR_CHECKED weir_status
weir__launch_items(weir_status (*launch)(weir_queue *, weir_kernel *, Items, const weir_argument *,
                                         size_t, const char *, int),
                   weir_queue *queue, weir_kernel *kernel, Items items, const char *file, int line,
                   Arguments... arguments)
{
    const weir_argument list[] = {weir__argument(arguments)...};
    return launch(queue, kernel, items, list, sizeof...(arguments), file, line);
}

#define weir_queue_launch(queue, kernel, grid, block, ...) \
    weir__launch(weir_queue_launch_at, queue, kernel, grid, block, __FILE__, __LINE__, __VA_ARGS__)
#define weir_queue_launch_cooperative(queue, kernel, grid, block, ...)                             \
    weir__launch(weir_queue_launch_cooperative_at, queue, kernel, grid, block, __FILE__, __LINE__, \
                 __VA_ARGS__)
#define weir_queue_launch_count(queue, kernel, count, ...)                                 \
    weir__launch_items<size_t>(weir_queue_launch_count_at, queue, kernel, count, __FILE__, \
                               __LINE__, __VA_ARGS__)
#define weir_queue_launch_global(queue, kernel, items, ...)                                      \
    weir__launch_items<weir_extent>(weir_queue_launch_global_at, queue, kernel, items, __FILE__, \
                                    __LINE__, __VA_ARGS__)

#else

// The C form.

// What a bare buffer selects, so that the compiler's message has one of these names. The function
// is not defined.
struct weir__pass_weir_in_or_weir_out {
    char unused;
};
struct weir_argument weir__pass_weir_in_or_weir_out(struct weir__pass_weir_in_or_weir_out argument);

// clang-format off
#define WEIR__ARGUMENT(x) _Generic((x),        \
    struct weir_argument: weir__argument_self, \
    void *: weir__argument_pointer,            \
    weir_buffer *: weir__pass_weir_in_or_weir_out, \
    bool: weir__argument_bool,                 \
    char: weir__argument_char,                 \
    signed char: weir__argument_i8,            \
    unsigned char: weir__argument_u8,          \
    short: weir__argument_i16,                 \
    unsigned short: weir__argument_u16,        \
    int: weir__argument_i32,                   \
    unsigned: weir__argument_u32,              \
    long: weir__argument_il,                   \
    unsigned long: weir__argument_ul,          \
    long long: weir__argument_i64,             \
    unsigned long long: weir__argument_u64,    \
    float: weir__argument_f32,                 \
    WEIR__ARGUMENT_FLOAT16                     \
    double: weir__argument_f64)(x)
#ifdef WEIR__FLOAT16
#define WEIR__ARGUMENT_FLOAT16 weir__float16: weir__argument_f16,
#else
#define WEIR__ARGUMENT_FLOAT16
#endif

#define WEIR__COUNT(...) WEIR__COUNT_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define WEIR__COUNT_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, count, ...) count
#define WEIR__JOIN(a, b) WEIR__JOIN_(a, b)
#define WEIR__JOIN_(a, b) a##b
#define WEIR__ARGUMENTS(...) WEIR__JOIN(WEIR__ARGUMENTS_, WEIR__COUNT(__VA_ARGS__))(__VA_ARGS__)
#define WEIR__ARGUMENTS_1(x) WEIR__ARGUMENT(x)
#define WEIR__ARGUMENTS_2(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_1(__VA_ARGS__)
#define WEIR__ARGUMENTS_3(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_2(__VA_ARGS__)
#define WEIR__ARGUMENTS_4(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_3(__VA_ARGS__)
#define WEIR__ARGUMENTS_5(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_4(__VA_ARGS__)
#define WEIR__ARGUMENTS_6(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_5(__VA_ARGS__)
#define WEIR__ARGUMENTS_7(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_6(__VA_ARGS__)
#define WEIR__ARGUMENTS_8(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_7(__VA_ARGS__)
#define WEIR__ARGUMENTS_9(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_8(__VA_ARGS__)
#define WEIR__ARGUMENTS_10(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_9(__VA_ARGS__)
#define WEIR__ARGUMENTS_11(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_10(__VA_ARGS__)
#define WEIR__ARGUMENTS_12(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_11(__VA_ARGS__)
#define WEIR__ARGUMENTS_13(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_12(__VA_ARGS__)
#define WEIR__ARGUMENTS_14(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_13(__VA_ARGS__)
#define WEIR__ARGUMENTS_15(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_14(__VA_ARGS__)
#define WEIR__ARGUMENTS_16(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_15(__VA_ARGS__)
#define WEIR__ARGUMENTS_17(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_16(__VA_ARGS__)
#define WEIR__ARGUMENTS_18(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_17(__VA_ARGS__)
#define WEIR__ARGUMENTS_19(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_18(__VA_ARGS__)
#define WEIR__ARGUMENTS_20(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_19(__VA_ARGS__)
#define WEIR__ARGUMENTS_21(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_20(__VA_ARGS__)
#define WEIR__ARGUMENTS_22(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_21(__VA_ARGS__)
#define WEIR__ARGUMENTS_23(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_22(__VA_ARGS__)
#define WEIR__ARGUMENTS_24(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_23(__VA_ARGS__)
#define WEIR__ARGUMENTS_25(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_24(__VA_ARGS__)
#define WEIR__ARGUMENTS_26(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_25(__VA_ARGS__)
#define WEIR__ARGUMENTS_27(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_26(__VA_ARGS__)
#define WEIR__ARGUMENTS_28(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_27(__VA_ARGS__)
#define WEIR__ARGUMENTS_29(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_28(__VA_ARGS__)
#define WEIR__ARGUMENTS_30(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_29(__VA_ARGS__)
#define WEIR__ARGUMENTS_31(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_30(__VA_ARGS__)
#define WEIR__ARGUMENTS_32(x, ...) WEIR__ARGUMENT(x), WEIR__ARGUMENTS_31(__VA_ARGS__)
// clang-format on

// A vector of 2, 3, 4, 8 or 16 elements: weir_vector(float, x, y, z). It lives as long as the block
// in which it is written.
#define weir_vector(type, ...)                                                           \
    weir__argument_vector(WEIR__ARGUMENT((type)0).scalar, (const type[16]){__VA_ARGS__}, \
                          sizeof(type), sizeof((const type[]){__VA_ARGS__}) / sizeof(type))

#define WEIR__LIST(...)              \
    (const struct weir_argument[])   \
    {                                \
        WEIR__ARGUMENTS(__VA_ARGS__) \
    }
#define weir_queue_launch(queue, kernel, grid, block, ...)                    \
    weir_queue_launch_at(queue, kernel, grid, block, WEIR__LIST(__VA_ARGS__), \
                         WEIR__COUNT(__VA_ARGS__), __FILE__, __LINE__)
#define weir_queue_launch_cooperative(queue, kernel, grid, block, ...)                    \
    weir_queue_launch_cooperative_at(queue, kernel, grid, block, WEIR__LIST(__VA_ARGS__), \
                                     WEIR__COUNT(__VA_ARGS__), __FILE__, __LINE__)
#define weir_queue_launch_count(queue, kernel, count, ...)                    \
    weir_queue_launch_count_at(queue, kernel, count, WEIR__LIST(__VA_ARGS__), \
                               WEIR__COUNT(__VA_ARGS__), __FILE__, __LINE__)
#define weir_queue_launch_global(queue, kernel, items, ...)                    \
    weir_queue_launch_global_at(queue, kernel, items, WEIR__LIST(__VA_ARGS__), \
                                WEIR__COUNT(__VA_ARGS__), __FILE__, __LINE__)

#endif

#endif
