// Launches: results of every kind of argument, and every refusal.

#include "tests/conformance/suite.h"

#define N 1000u
#define BYTES ((size_t)4 * N)

static const struct weir_extent one = {1, 1, 1};
static const struct weir_extent blocks = {(N + 31) / 32, 1, 1};
static const struct weir_extent block = {32, 1, 1};

CONFORM_BENCH(Launch, VectorAdd, "vector_add")
{
    CONFORM_NEEDS_KERNELS(f);
    float values[N];
    float sums[N];

    for (unsigned i = 0; i < N; i++)
        values[i] = (float)i;
    ASSERT_OK(weir_upload(x->queue, x->a, 0, values, BYTES));
    ASSERT_OK(weir_upload(x->queue, x->b, 0, values, BYTES));
    LAUNCH(x, blocks, block, weir_in(x->a, 0, BYTES), weir_in(x->b, 0, BYTES),
           weir_out(x->c, 0, BYTES), N);
    ASSERT_OK(weir_download(x->queue, sums, x->c, 0, BYTES));
    for (unsigned i = 0; i < N; i++)
        ASSERT_DOUBLE_EQ(sums[i], 2.0 * i);
}

struct values {
    uint32_t a;
    float b;
    uint64_t c;
};

CONFORM_BENCH(Launch, ValuesOfEverySize, "store_values")
{
    CONFORM_NEEDS_KERNELS(f);
    const struct values values = {0xdeadbeef, 1.5f, UINT64_C(0x0123456789abcdef)};
    const float quarter = 0.25f;
    uint64_t out[12] = {0};
    uint32_t bits;

    weir_status status =
        weir_queue_launch(x->queue, x->kernel, one, one, weir_out(x->a, 0, sizeof out),
                          (unsigned char)200, (unsigned short)60000, 4000000000u,
                          UINT64_C(18000000000000000000), (signed char)-100, (short)-30000,
                          -2000000000, INT64_C(-9000000000000000000), quarter,
                          weir_value(&values, sizeof values));
    ASSERT_OK(status);
    ASSERT_OK(weir_download(x->queue, out, x->a, 0, sizeof out));
    EXPECT_UINT_EQ(out[0], 200);
    EXPECT_UINT_EQ(out[1], 60000);
    EXPECT_UINT_EQ(out[2], 4000000000u);
    EXPECT_UINT_EQ(out[3], UINT64_C(18000000000000000000));
    EXPECT_INT_EQ((int64_t)out[4], -100);
    EXPECT_INT_EQ((int64_t)out[5], -30000);
    EXPECT_INT_EQ((int64_t)out[6], -2000000000);
    EXPECT_INT_EQ((int64_t)out[7], INT64_C(-9000000000000000000));
    memcpy(&bits, &quarter, 4);
    EXPECT_UINT_EQ(out[8], bits);
    EXPECT_UINT_EQ(out[9], 0xdeadbeef);
    memcpy(&bits, &values.b, 4);
    EXPECT_UINT_EQ(out[10], bits);
    EXPECT_UINT_EQ(out[11], UINT64_C(0x0123456789abcdef));
}

CONFORM_BENCH(Launch, LocalMemory, "block_sum")
{
    CONFORM_NEEDS_KERNELS(f);
    uint32_t values[N];
    uint32_t sums[32];

    for (uint32_t i = 0; i < N; i++)
        values[i] = i;
    ASSERT_OK(weir_upload(x->queue, x->a, 0, values, BYTES));
    LAUNCH(x, blocks, block, weir_in(x->a, 0, BYTES), weir_out(x->b, 0, sizeof sums),
           weir_local(32 * 4), N);
    ASSERT_OK(weir_download(x->queue, sums, x->b, 0, sizeof sums));
    uint32_t sum = 0;
    for (int i = 0; i < 32; i++)
        sum += sums[i];
    EXPECT_UINT_EQ(sums[0], 31 * 32 / 2);
    EXPECT_UINT_EQ(sum, N * (N - 1) / 2);
    weir_kernel_destroy(&x->kernel);

    x->kernel = conform_kernel(f, "two_locals");
    LAUNCH(x, weir_dim(30, 1, 1), block, weir_in(x->a, 0, BYTES), weir_out(x->b, 0, BYTES),
           weir_local(32 * 4), weir_local(32 * 2));
    ASSERT_OK(weir_download(x->queue, values, x->b, 0, 30 * 32 * 4));
    for (uint32_t i = 0; i < 30 * 32; i++)
        ASSERT_UINT_EQ(values[i], i / 32 * 32 + 31 - i % 32);
}

CONFORM_BENCH(Launch, Geometry, "geometry")
{
    CONFORM_NEEDS_KERNELS(f);
    uint32_t out[2 * 3 * 2 * 4 * 2 * 1 * 12];

    own_buffer items = conform_device_buffer(f, sizeof out);
    LAUNCH(x, weir_dim(2, 3, 2), weir_dim(4, 2, 1), weir_out(items, 0, sizeof out));
    ASSERT_OK(weir_download(x->queue, out, items, 0, sizeof out));
    for (uint32_t at = 0; at < 8 * 6 * 2; at++) {
        const uint32_t *item = out + 12 * at;
        const uint32_t want[12] = {at % 8,  at / 8 % 6, at / 48, at % 8 / 4, at / 8 % 6 / 2,
                                   at / 48, 4,          2,       1,          2,
                                   3,       2};
        ASSERT_MEM_EQ(item, want, sizeof want);
    }
    // A zero in y or z reads as one.
    LAUNCH(x, weir_dim(2, 0, 0), weir_dim(4, 0, 0), weir_out(items, 0, sizeof out));
    ASSERT_OK(weir_download(x->queue, out, items, 0, 12 * 4));
    EXPECT_UINT_EQ(out[7], 1);
    EXPECT_UINT_EQ(out[11], 1);
}

CONFORM_BENCH(Launch, RequiredBlock, "required_block")
{
    uint32_t out[128];

    ASSERT_NOT_NULL(x->kernel);
    const struct weir_kernel_signature *signature = weir_kernel_get_signature(x->kernel);
    EXPECT_UINT_EQ(signature->required_block.x, 8);
    EXPECT_UINT_EQ(signature->required_block.y, 4);
    EXPECT_UINT_EQ(signature->required_block.z, 2);
    LAUNCH(x, weir_dim(2, 1, 1), weir_dim(8, 4, 2), weir_out(x->a, 0, sizeof out));
    ASSERT_OK(weir_download(x->queue, out, x->a, 0, sizeof out));
    for (uint32_t i = 0; x->runs && i < 128; i++)
        ASSERT_UINT_EQ(out[i], 1000 * (i / 64) + i % 64);
    REFUSES(x, "requires 8×4×2", one, weir_dim(4, 8, 2), weir_out(x->a, 0, sizeof out));
    REFUSES(x, "requires", one, one, weir_out(x->a, 0, sizeof out));
}

// A range that starts inside a buffer, at an offset that the device allows.
CONFORM_BENCH(Launch, Offsets, "iota")
{
    const size_t alignment = f->limits->argument_alignment_bytes;
    const size_t step = alignment > 64 ? alignment : 64; // so that the ranges do not overlap
    uint32_t out[N];

    ASSERT_UINT_LE(3 * step + 64, BYTES);
    conform_fill(x->queue, x->a, 0);
    LAUNCH(x, one, weir_dim(16, 1, 1), weir_out(x->a, 3 * step, 64), 100u, 16u);
    LAUNCH(x, one, weir_dim(16, 1, 1), weir_out(x->a, step, 64), 200u, 8u);
    ASSERT_OK(weir_download(x->queue, out, x->a, 0, BYTES));
    for (uint32_t i = 0; x->runs && i < 16; i++) {
        ASSERT_UINT_EQ(out[3 * step / 4 + i], 100 + i);
        ASSERT_UINT_EQ(out[step / 4 + i], i < 8 ? 200 + i : 0);
    }
    if (alignment > 1)
        REFUSES(x, "is no multiple of", one, one, weir_out(x->a, step + 2, 64), 0u, 1u);
}

// Several ranges of one buffer, the first at its beginning, some written; and at offsets that are multiples of four bytes
// and of nothing more.
CONFORM_BENCH(Launch, RangesOfOneBuffer, "vector_add")
{
    CONFORM_NEEDS_KERNELS(f);
    enum {
        ITEMS = 16,
        ROUNDS = 10
    };
    const size_t bytes = ITEMS * sizeof(float);
    const size_t step =
        f->limits->argument_alignment_bytes > bytes ? f->limits->argument_alignment_bytes : bytes;
    const size_t offsets[2][3] = {{0, step, 2 * step}, {4, 204, 332}};
    const float one_f = 1.0f, two_f = 2.0f;
    float out[ITEMS];

    ASSERT_UINT_LE(3 * step, BYTES);
    for (int odd = 0; odd <= (f->limits->byte_offsets ? 1 : 0); odd++) {
        const size_t *at = offsets[odd];
        ASSERT_OK(weir_queue_fill(x->queue, x->a, at[0], bytes, &one_f, 4));
        ASSERT_OK(weir_queue_fill(x->queue, x->a, at[1], bytes, &two_f, 4));
        for (int i = 0; i < 2 * ROUNDS; i++)
            LAUNCH(x, one, weir_dim(ITEMS, 1, 1), weir_in(x->a, at[i % 2 ? 2 : 0], bytes),
                   weir_in(x->a, at[1], bytes), weir_out(x->a, at[i % 2 ? 0 : 2], bytes),
                   (uint32_t)ITEMS);
        ASSERT_OK(weir_download(x->queue, out, x->a, at[0], bytes));
        for (int i = 0; i < ITEMS; i++)
            ASSERT_DOUBLE_EQ((double)out[i], 1.0 + 4.0 * ROUNDS);
    }
}

CONFORM_BENCH(Launch, HostBuffers, "iota")
{
    own_buffer host = conform_host_buffer(f, BYTES);
    if (f->limits->host_in_kernels) {
        memset(conform_bytes(host), 0, BYTES);
        LAUNCH(x, blocks, block, weir_out(host, 0, BYTES), 7u, N);
        ASSERT_SYNC(x->queue);
        const uint32_t *words = (const uint32_t *)(const void *)conform_bytes(host);
        for (uint32_t i = 0; x->runs && i < N; i++)
            ASSERT_UINT_EQ(words[i], 7 + i);
    } else {
        REFUSES(x, "HOST buffer", blocks, block, weir_out(host, 0, BYTES), 7u, N);
    }
}

// Arguments are read before the call returns, also in a gated queue.
CONFORM_BENCH(Launch, HeldLaunchKeepsItsArguments, "store_values")
{
    CONFORM_NEEDS_KERNELS(f);
    const float nine = 9.0f;
    const float ten = 10.0f;
    struct values values = {1, ten, 3};
    uint64_t out[12];
    uint32_t bits;

    struct weir_argument arguments[] = {
        weir_out(x->a, 0, sizeof out),
        weir__argument_u8(1),
        weir__argument_u16(2),
        weir__argument_u32(3),
        weir__argument_u64(4),
        weir__argument_i8(5),
        weir__argument_i16(6),
        weir__argument_i32(7),
        weir__argument_i64(8),
        weir__argument_f32(nine),
        weir_value(&values, sizeof values),
    };
    own_gate gate = gate_on(x->queue);
    ASSERT_OK(weir_queue_launch_array(x->queue, x->kernel, one, one, arguments, 11));
    memset(&values, 0xff, sizeof values);
    memset(arguments, 0xff, sizeof arguments);
    gate_open(gate);
    ASSERT_OK(weir_download(x->queue, out, x->a, 0, sizeof out));
    for (uint64_t i = 0; i < 8; i++)
        EXPECT_UINT_EQ(out[i], i + 1);
    memcpy(&bits, &nine, 4);
    EXPECT_UINT_EQ(out[8], bits);
    EXPECT_UINT_EQ(out[9], 1);
    memcpy(&bits, &ten, 4);
    EXPECT_UINT_EQ(out[10], bits);
    EXPECT_UINT_EQ(out[11], 3);
}

CONFORM_BENCH(Launch, AcrossQueues, "increment")
{
    CONFORM_NEEDS_KERNELS(f);
    enum {
        ROUNDS = 50
    };
    own_queues queues = {NULL};
    uint32_t values[N];

    for (int i = 0; i < 3; i++)
        queues[i] = conform_queue(f, "q");
    conform_fill(x->queue, x->a, 0);
    struct weir_event event = test_record(x->queue);
    for (int i = 0; i < ROUNDS; i++) {
        ASSERT_OK(weir_queue_wait(queues[i % 3], event));
        ASSERT_OK(weir_queue_launch(queues[i % 3], x->kernel, blocks, block,
                                    weir_inout(x->a, 0, BYTES), 1u, N));
        ASSERT_OK(weir_queue_record(queues[i % 3], &event));
    }
    ASSERT_OK(weir_queue_wait(x->queue, event));
    ASSERT_OK(weir_download(x->queue, values, x->a, 0, BYTES));
    for (unsigned i = 0; i < N; i++)
        ASSERT_UINT_EQ(values[i], ROUNDS);
}

// The kernel: out uint *out, uint first, uint n
CONFORM_BENCH(LaunchRefused, CountAndKinds, "iota")
{
    const struct weir_argument out = weir_out(x->a, 0, BYTES);

    REFUSES(x, "3 parameters", one, one, out, 0u);
    REFUSES(x, "3 parameters", one, one, out, 0u, 1u, 2u);
    EXPECT_INVALID(weir_queue_launch_array(x->queue, x->kernel, one, one, NULL, 0), "3 parameters");
    EXPECT_INVALID(weir_queue_launch_array(x->queue, x->kernel, one, one, NULL, 3),
                   "weir_queue_launch: arguments");
    REFUSES(x, "a value", one, one, 1u, 0u, 1u);
    REFUSES(x, "a buffer", one, one, out, out, 1u);
    REFUSES(x, "local memory", one, one, out, weir_local(4), 1u);
    EXPECT_CONTAINS(weir_last_error()->message, "first");
    EXPECT_STR_EQ(weir_last_error()->object, "iota");
}

// The kernel: in const float *in, out float *out, float factor, uint n
CONFORM_BENCH(LaunchRefused, AccessAndTypes, "scale")
{
    const struct weir_argument in = weir_in(x->a, 0, BYTES);
    const struct weir_argument out = weir_out(x->b, 0, BYTES);
    const float factor = 1.0f;
    const char letter = 'x';
    const bool flag = true;
    struct weir_argument none = out;
    struct weir_argument forged = weir_value(&factor, sizeof factor);
    struct weir_argument wide = weir__argument_bool(true);
    none.access = (weir_access)0;
    forged.scalar = (weir_scalar)99;
    wide.size = 8;

    EXPECT_OK(weir_queue_launch(x->queue, x->kernel, one, one, in, out, 1.0f, 0u));
    // The pointer is not const, and the launch writes nothing.
    EXPECT_OK(
        weir_queue_launch(x->queue, x->kernel, one, one, in, weir_in(x->b, 0, BYTES), 1.0f, 0u));
    REFUSES(x, "weir_out()", one, one, out, out, 1.0f, N);
    REFUSES(x, "weir_inout()", one, one, weir_inout(x->a, 0, BYTES), out, 1.0f, N);
    REFUSES(x, "access", one, one, in, none, 1.0f, N);
    REFUSES(x, "no buffer", one, one, in, weir_out(NULL, 0, 4), 1.0f, N);
    REFUSES(x, "empty range", one, one, in, weir_out(x->b, 0, 0), 1.0f, N);
    REFUSES(x, "launch: parameter 1, 'out': ", one, one, in, weir_out(x->b, 0, BYTES + 1), 1.0f, N);
    REFUSES(x, "do not lie in", one, one, in, weir_out(x->b, SIZE_MAX - 63, 64), 1.0f, N);
    // Numbers.
    EXPECT_OK(weir_queue_launch(x->queue, x->kernel, one, one, in, out,
                                weir_value(&factor, sizeof factor), 0));
    EXPECT_OK(weir_queue_launch(x->queue, x->kernel, one, one, in, out, 1.0f, !flag));
    REFUSES(x, "a double", one, one, in, out, 1.0, N);
    EXPECT_CONTAINS(weir_last_error()->remedy, "2.0f");
    REFUSES(x, "an int", one, one, in, out, 1, N);
    REFUSES(x, "a float", one, one, in, out, 1.0f, 1.0f);
    REFUSES(x, "8 bytes", one, one, in, out, 1.0f, (unsigned long)1);
    REFUSES(x, "2 bytes", one, one, in, out, 1.0f, (short)1);
    REFUSES(x, "2 bytes", one, one, in, out, weir_value(&factor, 2), N);
    REFUSES(x, "NULL", one, one, in, out, weir_value(NULL, 4), N);
    REFUSES(x, "scalar", one, one, in, out, forged, N);
    REFUSES(x, "a bool", one, one, in, out, flag, 1u);
    REFUSES(x, "a bool", one, one, in, out, 1.0f, wide);
    REFUSES(x, "a half", one, one, in, out, weir_half(1), 1u);
    REFUSES(x, "char", one, one, in, out, 1.0f, letter);
    EXPECT_CONTAINS(weir_last_error()->message, "1 bytes");
}

// A structure at NULL must not be read from anywhere.
CONFORM_BENCH(LaunchRefused, NullStructure, "store_values")
{
    weir_status status =
        weir_queue_launch(x->queue, x->kernel, one, one, weir_out(x->a, 0, BYTES), (unsigned char)0,
                          (unsigned short)0, 0u, UINT64_C(0), (signed char)0, (short)0, 0,
                          INT64_C(0), 0.0f, weir_value(NULL, sizeof(struct values)));
    EXPECT_FAILURE(status, WEIR_ERROR_INVALID, "NULL");
}

CONFORM_BENCH(LaunchRefused, Local, "two_locals")
{
    const struct weir_argument in = weir_in(x->a, 0, BYTES);
    const struct weir_argument out = weir_out(x->b, 0, BYTES);
    const size_t most = (size_t)f->limits->max_local_bytes;

    REFUSES(x, "local memory", one, block, in, out, weir_local(0), weir_local(128));
    REFUSES(x, "local memory", one, block, in, out, weir_local(most + 1), weir_local(128));
    REFUSES(x, "local memory", one, block, in, out, weir_local(SIZE_MAX - 3), weir_local(128));
    // Each fits, both together do not.
    REFUSES(x, "local memory", one, block, in, out, weir_local(most - 64), weir_local(128));
}

CONFORM_BENCH(LaunchRefused, Extents, "iota")
{
    const struct weir_argument out = weir_out(x->a, 0, BYTES);
    const struct weir_limits *limits = f->limits;
    ASSERT_NOT_NULL(x->kernel);
    const uint32_t items = weir_kernel_get_info(x->kernel)->max_block_items;

    REFUSES(x, "block.x is 0", one, weir_dim(0, 1, 1), out, 0u, N);
    if (limits->max_block.x < UINT32_MAX)
        REFUSES(x, "block.x", one, weir_dim(limits->max_block.x + 1, 1, 1), out, 0u, N);
    if (limits->max_block.y < UINT32_MAX)
        REFUSES(x, "block.y", one, weir_dim(1, limits->max_block.y + 1, 1), out, 0u, N);
    if (limits->max_block.z < UINT32_MAX)
        REFUSES(x, "block.z", one, weir_dim(1, 1, limits->max_block.z + 1), out, 0u, N);
    if (limits->max_grid.x < UINT32_MAX)
        REFUSES(x, "grid.x", weir_dim(limits->max_grid.x + 1, 1, 1), one, out, 0u, N);
    if (limits->max_grid.y < UINT32_MAX) {
        REFUSES(x, "grid.y", weir_dim(1, limits->max_grid.y + 1, 1), one, out, 0u, N);
        EXPECT_CONTAINS(weir_last_error()->remedy, "a grid counts blocks, not work-items");
    }
    if (limits->max_grid.z < UINT32_MAX)
        REFUSES(x, "grid.z", weir_dim(1, 1, limits->max_grid.z + 1), one, out, 0u, N);
    if (limits->max_grid.x >= INT32_MAX && limits->max_block.x >= 4 && items >= 4)
        REFUSES(x, "the limit of each dimension", weir_dim(INT32_MAX, 1, 1), weir_dim(4, 1, 1), out,
                0u, N);
    // Each dimension fits, the product does not.
    if (limits->max_block.x >= items && limits->max_block.y >= 2)
        REFUSES(x, "work-items", one, weir_dim(items, 2, 1), out, 0u, N);
}

CONFORM_BENCH(LaunchRefused, Handles, "iota")
{
    const struct weir_argument out = weir_out(x->a, 0, BYTES);
    EXPECT_INVALID(weir_queue_launch(NULL, x->kernel, one, one, out, 0u, N),
                   "weir_queue_launch: queue");
    EXPECT_INVALID(weir_queue_launch(x->queue, NULL, one, one, out, 0u, N),
                   "weir_queue_launch: kernel");
}
