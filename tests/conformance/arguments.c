// Launch arguments besides plain numbers and ranges of buffers: bools, chars, vectors, halves, NULL,
// ranges at any offset, addresses of buffers, and constants.

#include "tests/conformance/suite.h"

#define BYTES ((size_t)4096)

static const struct weir_extent one = {1, 1, 1};

struct values {
    uint32_t a;
    float b;
    uint64_t c;
};

// Plain numbers.

static weir_status launch_bools(const struct bench *x, bool even, bool odd)
{
    const struct values values = {0};
    return weir_queue_launch(x->queue, x->kernel, one, one, weir_out(x->a, 0, 96), even, odd, even,
                             odd, even, odd, even, odd, 0.0f, weir_value(&values, sizeof values));
}

static void expect_bools(const struct bench *x, bool even, bool odd)
{
    uint64_t out[12];
    ASSERT_OK(weir_download(x->queue, out, x->a, 0, sizeof out));
    for (int i = 0; i < 8; i++)
        EXPECT_UINT_EQ(out[i], i % 2 ? odd : even);
}

// One to each integer parameter, at once and from a graph; and chars.
CONFORM_BENCH(Arguments, Bools, "store_values")
{
    const struct values values = {0};
    const char letter = 'x', minus = (char)-3;
    uint64_t out[12];

    for (int i = 0; i < 4; i++) {
        ASSERT_OK(launch_bools(x, i % 2, i / 2));
        if (x->runs)
            expect_bools(x, i % 2, i / 2);
    }
    ASSERT_OK(weir_capture_begin(x->queue));
    ASSERT_OK(launch_bools(x, true, false));
    own_graph graph = conform_end(x->queue);
    ASSERT_OK(weir_queue_graph(x->queue, graph));
    if (x->runs)
        expect_bools(x, true, false);
    LAUNCH(x, one, one, weir_out(x->a, 0, sizeof out), letter, (unsigned short)0, 0u, UINT64_C(0),
           minus, (short)0, 0, INT64_C(0), 0.0f, weir_value(&values, sizeof values));
    ASSERT_OK(weir_download(x->queue, out, x->a, 0, sizeof out));
    if (x->runs) {
        EXPECT_UINT_EQ(out[0], 'x');
        EXPECT_INT_EQ((int64_t)out[4], -3);
    }
}

static void refuse_widen(const struct bench *x, weir_kernel *widen)
{
    const struct weir_argument out = weir_out(x->a, 0, 8);
    const bool flag = true;
    EXPECT_INVALID(weir_queue_launch(x->queue, widen, one, one, out, 1, weir_half(1)), "an int");
    EXPECT_CONTAINS(weir_last_error()->remedy, "cast it to bool");
    EXPECT_INVALID(weir_queue_launch(x->queue, widen, one, one, out, (char)1, weir_half(1)),
                   "char");
    EXPECT_INVALID(weir_queue_launch(x->queue, widen, one, one, out, flag, 1.0f), "a float");
    EXPECT_CONTAINS(weir_last_error()->remedy, "weir_half()");
    EXPECT_INVALID(weir_queue_launch(x->queue, widen, one, one, out, flag, (short)1), "a short");
}

// CUDA C++ has parameters that OpenCL C has not: bool, and on most devices half.
CONFORM_BENCH(Arguments, BoolAndHalfOfCuda, "iota")
{
    static const char source[] =
        "struct __half { unsigned short bits; };\n"
        "extern \"C\" __global__ void widen(unsigned *out, bool flag, __half half)\n"
        "{\n"
        "    out[0] = flag;\n"
        "    out[1] = half.bits;\n"
        "}\n";
    own_program program = NULL;
    own_kernel widen = NULL;
    uint32_t words[2];

    if (!f->limits->cuda_source)
        CONFORM_SKIP("this device compiles no CUDA C++");
    weir_status status =
        weir_program_create(f->device, WEIR_PARAMS(weir_program, .cuda_source = source), &program);
    if (status == WEIR_ERROR_UNSUPPORTED)
        CONFORM_SKIP("there is no NVRTC");
    ASSERT_OK(status);
    ASSERT_OK(weir_kernel_create(program, "widen", &widen));
    const struct weir_argument out = weir_out(x->a, 0, 8);
    const bool flag = true;
    EXPECT_OK(weir_queue_launch(x->queue, widen, one, one, out, flag, weir_half(-1.5f)));
    ASSERT_OK(weir_download(x->queue, words, x->a, 0, sizeof words));
    if (x->runs) {
        EXPECT_UINT_EQ(words[0], 1);
        EXPECT_UINT_EQ(words[1], 0xbe00);
    }
    refuse_widen(x, widen);
}

// Vectors.

static weir_status launch_vectors(const struct bench *x)
{
    return weir_queue_launch(x->queue, x->kernel, one, one, weir_out(x->a, 0, 68),
                             weir_vector(float, 1, 2, 3, -4), weir_vector(int, -5, 6),
                             weir_vector(float, 0.5f, 0.25f, 8),
                             weir_vector(unsigned char, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
                                         13, 14, 255),
                             weir_vector(uint64_t, UINT64_C(0x0123456789abcdef), 7));
}

static void expect_vectors(const struct bench *x)
{
    const float floats[] = {1, 2, 3, -4};
    const int32_t ints[] = {-5, 6};
    const float three[] = {0.5f, 0.25f, 8};
    const unsigned char bytes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255};
    const uint64_t longs[] = {UINT64_C(0x0123456789abcdef), 7};
    uint32_t out[17];

    ASSERT_OK(weir_download(x->queue, out, x->a, 0, sizeof out));
    EXPECT_MEM_EQ(out, floats, sizeof floats);
    EXPECT_MEM_EQ(out + 4, ints, sizeof ints);
    EXPECT_MEM_EQ(out + 6, three, sizeof three);
    EXPECT_MEM_EQ(out + 9, bytes, sizeof bytes);
    EXPECT_MEM_EQ(out + 13, longs, sizeof longs);
}

CONFORM_BENCH(Arguments, Vectors, "store_vectors")
{
    ASSERT_OK(launch_vectors(x));
    if (x->runs)
        expect_vectors(x);
    // A held launch keeps them.
    own_gate gate = gate_on(x->queue);
    ASSERT_OK(weir_queue_fill(x->queue, x->a, 0, 68, "\0", 1));
    ASSERT_OK(launch_vectors(x));
    gate_open(gate);
    if (x->runs)
        expect_vectors(x);
    EXPECT_SYNC(x->queue);
}

// As those of a bundle, and of source at run time.
static void refuse_vectors(const struct bench *x, weir_kernel *kernel)
{
    const struct weir_argument out = weir_out(x->a, 0, BYTES);
    const float array[4] = {0};
    const uint64_t plain = 1;

    const struct weir_argument four = weir_vector(float, 1, 2, 3, 4);
    const struct weir_argument three = weir_vector(float, 1, 2, 3);
    const struct weir_argument ints = weir_vector(int, 1, 2);
    const struct weir_argument words = weir_vector(unsigned, 1, 2);
    const struct weir_argument longs = weir_vector(int, 1, 2, 3, 4);

    EXPECT_OK(weir_queue_launch(x->queue, kernel, one, one, out, four, ints));
    EXPECT_OK(weir_queue_launch(x->queue, kernel, one, one, out, four, weir_value(array, 8)));
    EXPECT_INVALID(weir_queue_launch(x->queue, kernel, one, one, out, longs, ints),
                   "is a float4; it got a vector of 4 of int");
    EXPECT_CONTAINS(weir_last_error()->remedy, "weir_vector()");
    EXPECT_INVALID(weir_queue_launch(x->queue, kernel, one, one, out, three, ints),
                   "a vector of 3 of float");
    EXPECT_INVALID(weir_queue_launch(x->queue, kernel, one, one, out, four, words),
                   "is an int2; it got a vector of 2 of uint");
    EXPECT_INVALID(weir_queue_launch(x->queue, kernel, one, one, out, four, plain),
                   "an unsigned long");
    EXPECT_INVALID(weir_queue_launch(x->queue, kernel, one, one, out, 1.0f, ints),
                   "a float of 4 bytes");
    EXPECT_INVALID(weir_queue_launch(x->queue, kernel, one, one, ints, out, ints), "a value");
}

CONFORM_BENCH(ArgumentsRefused, Vectors, "scale")
{
    static const char source[] = "__kernel void take(__global float *out, float4 a, int2 b)\n"
                                 "{\n"
                                 "    out[0] = a.x + (float)b.y;\n"
                                 "}\n";
    own_program program = NULL;
    own_kernel take = NULL;

    const struct weir_argument in = weir_in(x->a, 0, BYTES);
    const struct weir_argument out = weir_out(x->b, 0, BYTES);
    REFUSES(x, "a vector of 2 of float, 8 bytes", one, one, in, out, weir_vector(float, 1, 2), 1u);
    CONFORM_COMPILED(
        weir_program_create(f->device, WEIR_PARAMS(weir_program, .source = source), &program));
    ASSERT_OK(weir_kernel_create(program, "take", &take));
    refuse_vectors(x, take);
}

// NULL.

CONFORM_BENCH(Arguments, Null, "store_present")
{
    const uint32_t five = 5;
    uint32_t out[2];

    ASSERT_OK(weir_queue_fill(x->queue, x->b, 0, BYTES, &five, 4));
    for (uint32_t i = 0; i < 8; i++) {
        const bool a = i % 2;
        const bool b = i / 2 % 2;
        const struct weir_argument arguments[] = {
            weir_out(x->a, 0, 8),
            a ? weir_in(x->b, 0, 4) : weir_null(),
            b ? weir_in(x->b, 0, 4) : weir_null(),
        };
        ASSERT_OK(weir_queue_launch_array(x->queue, x->kernel, one, one, arguments, 3));
        ASSERT_OK(weir_download(x->queue, out, x->a, 0, sizeof out));
        if (!x->runs)
            continue;
        EXPECT_UINT_EQ(out[0], a ? 5 : 1000);
        EXPECT_UINT_EQ(out[1], b ? 5 : 2000);
    }
    LAUNCH(x, one, one, weir_out(x->a, 0, 8), NULL, NULL);
}

// The kernel: in const float *in, out float *out, float factor, uint n
CONFORM_BENCH(ArgumentsRefused, Null, "scale")
{
    const struct weir_argument in = weir_in(x->a, 0, BYTES);
    const struct weir_argument out = weir_out(x->b, 0, BYTES);
    void *host = x;

    REFUSES(x, "a pointer of the host", one, one, host, out, 1.0f, 1u);
    EXPECT_CONTAINS(weir_last_error()->remedy, "weir_null()");
    REFUSES(x, "a value", one, one, 0, out, 1.0f, 1u);
    EXPECT_CONTAINS(weir_last_error()->remedy, "weir_null()");
    REFUSES(x, "a pointer", one, one, in, out, weir_null(), 1u);
    REFUSES(x, "no buffer (NULL)", one, one, in, weir_in(NULL, 0, 4), 1.0f, 1u);
    weir_kernel_destroy(&x->kernel);
    x->kernel = conform_kernel(f, "follow_addresses");
    REFUSES(x, "a pointer", one, one, weir_null(), out);
    weir_kernel_destroy(&x->kernel);
    x->kernel = conform_kernel(f, "block_sum");
    REFUSES(x, "NULL", one, one, in, out, weir_null(), 1u);
}

// Offsets.

// At multiples of 1, 8, 16 and 8 bytes, with local memory of both kinds.
CONFORM_BENCH(Arguments, OffsetsOfEveryType, "count_kinds")
{
    int64_t wide[64];
    float vectors[4 * 64] = {0};
    const struct values values = {200, 0, 0};
    unsigned char bytes[64];

    if (!f->limits->byte_offsets)
        CONFORM_SKIP("offsets are multiples of limits.argument_alignment_bytes here");
    for (uint32_t i = 0; i < 64; i++) {
        wide[i] = i;
        vectors[4 * i + 3] = (float)i;
    }
    ASSERT_OK(weir_upload(x->queue, x->a, 8, wide, sizeof wide));
    ASSERT_OK(weir_upload(x->queue, x->b, 16, vectors, sizeof vectors));
    ASSERT_OK(weir_upload(x->queue, x->a, 2008, &values, sizeof values));
    LAUNCH(x, one, weir_dim(64, 1, 1), weir_out(x->c, 7, 64), weir_in(x->a, 8, sizeof wide),
           weir_in(x->b, 16, sizeof vectors), weir_in(x->a, 2008, sizeof values),
           weir_local(64 * 4));
    ASSERT_OK(weir_download(x->queue, bytes, x->c, 7, sizeof bytes));
    for (uint32_t i = 0; i < 64 && x->runs; i++)
        EXPECT_UINT_EQ(bytes[i], (2 * (63 - i) + 200) % 256);
}

CONFORM_BENCH(ArgumentsRefused, Offsets, "count_kinds")
{
    const size_t alignment = f->limits->argument_alignment_bytes;
    const struct weir_argument bytes = weir_out(x->c, 0, 64);
    const struct weir_argument wide = weir_in(x->a, 0, 512);
    const struct weir_argument vectors = weir_in(x->b, 0, 1024);
    const struct weir_argument values = weir_in(x->a, 1024, 16);
    const struct weir_argument local = weir_local(256);
    const bool any = f->limits->byte_offsets;

    if (alignment <= 1)
        CONFORM_SKIP("every offset is valid here");
    REFUSES(x,
            any ? "offset 4 is no multiple of 8, the alignment of a const long *"
                : "argument_alignment_bytes",
            one, one, bytes, weir_in(x->a, 4, 512), vectors, values, local);
    REFUSES(x, any ? "16, the alignment of a const float4 *" : "argument_alignment_bytes", one, one,
            bytes, wide, weir_in(x->b, 8, 1024), values, local);
    REFUSES(x, any ? "8, the alignment of" : "argument_alignment_bytes", one, one, bytes, wide,
            vectors, weir_in(x->a, 1028, 16), local);
    EXPECT_CONTAINS(weir_last_error()->remedy, "align it");
    if (!any)
        REFUSES(x, "argument_alignment_bytes", one, one, weir_out(x->c, 1, 64), wide, vectors,
                values, local);
}

// Addresses.

CONFORM_BENCH(Arguments, Addresses, "follow_addresses")
{
    enum {
        NODES = 5
    };
    own_buffers nodes = {NULL};
    uint64_t address = 1;
    uint64_t out[2];

    if (!f->limits->device_addresses) {
        EXPECT_REFUSED(weir_buffer_address(x->a, &address), WEIR_ERROR_UNSUPPORTED,
                       "limits.device_addresses");
        EXPECT_UINT_EQ(address, 0);
        return;
    }
    // A list through several buffers, and inside each at another place.
    address = 0;
    for (size_t i = 0; i < NODES; i++) {
        const uint64_t node[2] = {address, 10 * i};
        nodes[i] = conform_device_buffer(f, 256);
        ASSERT_OK(weir_upload(x->queue, nodes[i], 16 * i, node, sizeof node));
        ASSERT_OK(weir_buffer_address(nodes[i], &address));
        EXPECT_UINT_NE(address, 0);
        address += 16 * i;
    }
    LAUNCH(x, one, one, address, weir_out(x->a, 0, sizeof out));
    ASSERT_OK(weir_download(x->queue, out, x->a, 0, sizeof out));
    if (x->runs) {
        EXPECT_UINT_EQ(out[0], 10 * (1 + 2 + 3 + 4) + NODES);
        EXPECT_UINT_EQ(out[1], NODES);
        ASSERT_OK(weir_download(x->queue, out, nodes[3], 48, sizeof out));
        EXPECT_UINT_EQ(out[1], 31);
    }
}

CONFORM_BENCH(Arguments, AddressesOfHostBuffersAndPools, "follow_addresses")
{
    uint64_t address;
    uint64_t out[2];

    EXPECT_REFUSED(weir_buffer_address(NULL, &address), WEIR_ERROR_INVALID, "buffer");
    if (!f->limits->device_addresses)
        CONFORM_SKIP("buffers have no addresses here");
    EXPECT_REFUSED(weir_buffer_address(x->a, NULL), WEIR_ERROR_INVALID, "out_address");
    own_buffer host = conform_host_buffer(f, 64);
    const uint64_t node[2] = {0, 41};
    memcpy(conform_bytes(host), node, sizeof node);
    if (f->limits->host_in_kernels) {
        ASSERT_OK(weir_buffer_address(host, &address));
        LAUNCH(x, one, one, address, weir_out(x->a, 0, sizeof out));
        ASSERT_OK(weir_download(x->queue, out, x->a, 0, sizeof out));
        if (x->runs)
            EXPECT_UINT_EQ(out[0], 42);
    }
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    weir_buffer *pooled = conform_take(pool, x->queue, 64);
    ASSERT_OK(weir_buffer_address(pooled, &address));
    EXPECT_UINT_NE(address, 0);
    weir_buffer *gone = pooled;
    ASSERT_OK(weir_pool_free(x->queue, &pooled));
    EXPECT_REFUSED(weir_buffer_address(gone, &address), WEIR_ERROR_INVALID, "freed");
    EXPECT_UINT_EQ(address, 0);
}

// Constants.

// The kernel: constant float *weights, in uint *in, out float *out, uint n
CONFORM_BENCH(Arguments, Constants, "weigh")
{
    own_buffer weights = NULL;
    own_buffer more = NULL;
    float table[8];
    uint32_t in[8];
    float out[8];

    for (uint32_t i = 0; i < 8; i++) {
        table[i] = 0.5f * (float)i;
        in[i] = 7 - i;
    }
    ASSERT_OK(weir_program_constant(f->program, "weights", table, sizeof table, &weights));
    EXPECT_UINT_EQ(weir_buffer_size(weights), sizeof table);
    ASSERT_OK(weir_upload(x->queue, x->a, 0, in, sizeof in));
    memset(table, 0, sizeof table);
    LAUNCH(x, one, weir_dim(8, 1, 1), weir_in(weights, 0, sizeof table),
           weir_in(x->a, 0, sizeof in), weir_out(x->b, 0, sizeof out), 8u);
    ASSERT_OK(weir_download(x->queue, out, x->b, 0, sizeof out));
    for (uint32_t i = 0; i < 8 && x->runs; i++)
        EXPECT_DOUBLE_EQ((double)out[i], 0.5 * (7 - i));
    // A const pointer to __global memory takes one too.
    EXPECT_OK(weir_program_constant(f->program, "vectors", table, sizeof table, &more));
}

CONFORM(ArgumentsRefused, Constants)
{
    own_kernel kernel = conform_kernel(f, "weigh");
    weir_program *program = f->program;
    weir_buffer *buffer = (weir_buffer *)(void *)&program;
    const float table[4] = {0};
    const uint64_t limit = f->limits->max_constant_bytes;

    EXPECT_REFUSED(weir_program_constant(program, "weight", table, sizeof table, &buffer),
                   WEIR_ERROR_NOT_FOUND, "did you mean 'weights'");
    EXPECT_NULL(buffer);
    EXPECT_REFUSED(weir_program_constant(program, "factor", table, sizeof table, &buffer),
                   WEIR_ERROR_NOT_FOUND, "no kernel of the program has a pointer parameter");
    EXPECT_INVALID(weir_program_constant(program, "sums", table, sizeof table, &buffer),
                   "may write");
    EXPECT_INVALID(weir_program_constant(program, "weights", table, 0, &buffer), "0 bytes");
    EXPECT_INVALID(weir_program_constant(program, "weights", table, 6, &buffer), "6 bytes");
    EXPECT_INVALID(weir_program_constant(NULL, "weights", table, sizeof table, &buffer), "program");
    EXPECT_INVALID(weir_program_constant(program, NULL, table, sizeof table, &buffer), "name");
    EXPECT_INVALID(weir_program_constant(program, "weights", NULL, 4, &buffer), "data");
    EXPECT_INVALID(weir_program_constant(program, "weights", table, 4, NULL), "out_buffer");
    EXPECT_NULL(buffer);
    if (limit > 0)
        EXPECT_INVALID(weir_program_constant(program, "weights", table, (size_t)(limit / 4 * 4 + 4),
                                             &buffer),
                       "max_constant_bytes");
}

// Wrapped memory may begin at any address. A kernel that uses words there could fault.
CONFORM(HostMemory, MisalignedIsRefused)
{
    static _Alignas(128) unsigned char memory[1024 + 2];
    own_kernel words = conform_kernel(f, "iota");
    own_kernel bytes = conform_kernel(f, "fill_pattern");
    weir_buffer *buffer = NULL;

    ASSERT_OK(weir_buffer_wrap(f->device,
                               WEIR_PARAMS(weir_wrap, .pointer = memory + 2, .size = 1024),
                               &buffer));
    EXPECT_INVALID(weir_queue_launch(f->queue, words, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                     weir_out(buffer, 0, 64), 1u, 16u),
                   "begins at no multiple of 4, the alignment of a uint *");
    if (f->limits->host_in_kernels)
        EXPECT_OK(weir_queue_launch(f->queue, bytes, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                    weir_out(buffer, 0, 64), 1u, 16u));
    EXPECT_SYNC(f->queue);
    weir_buffer_destroy(&buffer);
    EXPECT_OK(weir_device_trim(f->device));
}
