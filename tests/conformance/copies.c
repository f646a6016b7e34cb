// Copies, fills, blocking transfers, wrapped memory and host access to buffers:
// results, and every refusal.
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/suite.h"

#define SIZE ((size_t)10000)

static weir_buffer *make(struct fixture *f, int host)
{
    return host ? conform_host_buffer(f, SIZE) : conform_device_buffer(f, SIZE);
}

// Unaligned offsets, to and from both placements.
CONFORM(Copy, AllPlacements)
{
    own_queue queue = conform_queue(f, "q");
    for (int from = 0; from < 2; from++) {
        for (int to = 0; to < 2; to++) {
            weir_test_note("from %s to %s", from ? "HOST" : "DEVICE", to ? "HOST" : "DEVICE");
            weir_buffer *src = make(f, from);
            weir_buffer *dst = make(f, to);
            conform_write(queue, src, 1);
            conform_write(queue, dst, 2);
            ASSERT_OK(weir_queue_copy(queue, dst, 37, src, 1003, 4001));
            EXPECT_TRUE(conform_holds(queue, dst, 0, 37, 2, 0));
            EXPECT_TRUE(conform_holds(queue, dst, 37, 4001, 1, 1003));
            EXPECT_TRUE(conform_holds(queue, dst, 4038, SIZE - 4038, 2, 4038));
            EXPECT_TRUE(conform_holds(queue, src, 0, SIZE, 1, 0));
            ASSERT_OK(weir_queue_copy(queue, dst, 0, src, 0, SIZE));
            EXPECT_TRUE(conform_holds(queue, dst, 0, SIZE, 1, 0));
            weir_buffer_destroy(&src);
            weir_buffer_destroy(&dst);
        }
    }
}

CONFORM(Copy, WithinOneBuffer)
{
    own_queue queue = conform_queue(f, "q");
    for (int host = 0; host < 2; host++) {
        weir_buffer *buffer = make(f, host);
        conform_write(queue, buffer, 3);
        ASSERT_OK(weir_queue_copy(queue, buffer, 5000, buffer, 0, 5000));
        EXPECT_TRUE(conform_holds(queue, buffer, 5000, 5000, 3, 0));
        EXPECT_TRUE(conform_holds(queue, buffer, 0, 5000, 3, 0));
        EXPECT_INVALID(weir_queue_copy(queue, buffer, 10, buffer, 0, 11), "overlap");
        EXPECT_INVALID(weir_queue_copy(queue, buffer, 0, buffer, 10, 11), "overlap");
        EXPECT_INVALID(weir_queue_copy(queue, buffer, 7, buffer, 7, 1), "overlap");
        EXPECT_OK(weir_queue_copy(queue, buffer, 10, buffer, 0, 10));
        EXPECT_OK(weir_queue_copy(queue, buffer, 7, buffer, 7, 0));
        EXPECT_SYNC(queue);
        weir_buffer_destroy(&buffer);
    }
}

// Nothing is copied, but later work is still in order.
CONFORM(Copy, ZeroSize)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer buffer = make(f, 0);
    own_buffer other = make(f, 1);
    const struct weir_plane dst = {buffer, SIZE, 0};
    const struct weir_plane src = {other, 0, 0};
    struct weir_event event;

    conform_write(queue, buffer, 4);
    EXPECT_OK(weir_queue_copy(queue, buffer, 0, other, SIZE, 0));
    EXPECT_OK(weir_queue_fill(queue, buffer, SIZE, 0, "", 1));
    EXPECT_OK(weir_queue_copy_2d(queue, dst, src, 0, 5));
    EXPECT_OK(weir_queue_copy_2d(queue, dst, src, 0, 0));
    EXPECT_OK(weir_upload(queue, buffer, 0, NULL, 0));
    EXPECT_OK(weir_download(queue, NULL, buffer, 0, 0));
    ASSERT_OK(weir_queue_record(queue, &event));
    EXPECT_OK(weir_event_sync(event, HANG_GUARD_NS));
    EXPECT_TRUE(conform_holds(queue, buffer, 0, SIZE, 4, 0));
}

CONFORM(Copy, Refusals)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer a = make(f, 0);
    own_buffer b = make(f, 1);

    EXPECT_INVALID(weir_queue_copy(NULL, a, 0, b, 0, 1), "queue");
    EXPECT_INVALID(weir_queue_copy(queue, NULL, 0, b, 0, 1), "dst is no buffer");
    EXPECT_INVALID(weir_queue_copy(queue, a, 0, NULL, 0, 1), "src is no buffer");
    EXPECT_INVALID(weir_queue_copy(queue, a, SIZE, b, 0, 1), "dst: 1 bytes at offset 10000");
    EXPECT_INVALID(weir_queue_copy(queue, a, 0, b, SIZE, 1), "src: 1 bytes at offset 10000");
    EXPECT_SYNC(queue);
}

CONFORM(Copy2D, AllPlacements)
{
    enum {
        WIDTH = 61,
        HEIGHT = 40
    };
    own_queue queue = conform_queue(f, "q");
    for (int from = 0; from < 2; from++) {
        for (int to = 0; to < 2; to++) {
            weir_test_note("from %s to %s", from ? "HOST" : "DEVICE", to ? "HOST" : "DEVICE");
            const struct weir_plane src = {make(f, from), 101, 100};
            const struct weir_plane dst = {make(f, to), 3, WIDTH};
            conform_write(queue, src.buffer, 5);
            conform_write(queue, dst.buffer, 6);
            ASSERT_OK(weir_queue_copy_2d(queue, dst, src, WIDTH, HEIGHT));
            EXPECT_TRUE(conform_holds(queue, dst.buffer, 0, 3, 6, 0));
            for (size_t row = 0; row < HEIGHT; row++)
                ASSERT_TRUE(
                    conform_holds(queue, dst.buffer, 3 + row * WIDTH, WIDTH, 5, 101 + row * 100));
            const size_t end = 3 + (size_t)WIDTH * HEIGHT;
            EXPECT_TRUE(conform_holds(queue, dst.buffer, end, SIZE - end, 6, end));
            // And back, into rows with gaps, which stay as they were.
            ASSERT_OK(weir_queue_copy_2d(queue, src, dst, WIDTH - 1, 2));
            EXPECT_TRUE(conform_holds(queue, src.buffer, 161, 40, 5, 161));
            weir_buffer *buffers[] = {src.buffer, dst.buffer};
            weir_buffer_destroy(&buffers[0]);
            weir_buffer_destroy(&buffers[1]);
        }
    }
}

// The last row does not need a whole pitch, and a single row needs no pitch at
// all.
CONFORM(Copy2D, LastRow)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer a = make(f, 0);
    own_buffer b = make(f, 1);
    const struct weir_plane src = {a, SIZE - (100 + 100 + 10), 100};
    const struct weir_plane dst = {b, 0, 10};
    const struct weir_plane one = {b, SIZE - 10, SIZE_MAX};

    conform_write(queue, a, 7);
    ASSERT_OK(weir_queue_copy_2d(queue, dst, src, 10, 3));
    EXPECT_TRUE(conform_holds(queue, b, 20, 10, 7, SIZE - 10));
    ASSERT_OK(weir_queue_copy_2d(queue, one, src, 10, 1));
    EXPECT_TRUE(conform_holds(queue, b, SIZE - 10, 10, 7, SIZE - 210));
    EXPECT_INVALID(weir_queue_copy_2d(queue, dst, src, 10, 4), "do not lie in");
    EXPECT_INVALID(weir_queue_copy_2d(queue, one, src, 10, 2), "do not lie in");
    EXPECT_SYNC(queue);
}

CONFORM(Copy2D, Refusals)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer a = make(f, 0);
    own_buffer b = make(f, 1);
    const struct weir_plane dst = {a, 0, 100};
    const struct weir_plane src = {b, 0, 100};
    const struct weir_plane none = {NULL, 0, 100};
    const struct weir_plane narrow = {b, 0, 9};
    const struct weir_plane wide = {b, 0, SIZE_MAX / 2};
    const struct weir_plane beyond = {b, SIZE_MAX, 100};
    const struct weir_plane beside = {a, 50, 100};
    const struct weir_plane across = {a, 45, 100};
    const struct weir_plane slanted = {a, 50, 101};

    EXPECT_INVALID(weir_queue_copy_2d(NULL, dst, src, 10, 10), "queue");
    EXPECT_INVALID(weir_queue_copy_2d(queue, none, src, 10, 10), "dst is no buffer");
    EXPECT_INVALID(weir_queue_copy_2d(queue, dst, none, 10, 10), "src is no buffer");
    EXPECT_INVALID(weir_queue_copy_2d(queue, dst, narrow, 10, 10), "pitch of src, 9");
    EXPECT_INVALID(weir_queue_copy_2d(queue, narrow, src, 10, 10), "pitch of dst, 9");
    EXPECT_INVALID(weir_queue_copy_2d(queue, dst, wide, 10, 10), "src:");
    EXPECT_INVALID(weir_queue_copy_2d(queue, wide, src, 10, 3), "dst:");
    EXPECT_INVALID(weir_queue_copy_2d(queue, dst, beyond, 10, 10), "src:");
    EXPECT_INVALID(weir_queue_copy_2d(queue, dst, src, 10, SIZE_MAX), "do not lie in");
    // Within one buffer: side by side is fine, on top of each other is not.
    EXPECT_OK(weir_queue_copy_2d(queue, dst, beside, 50, 100));
    EXPECT_INVALID(weir_queue_copy_2d(queue, dst, across, 46, 100), "overlap");
    EXPECT_INVALID(weir_queue_copy_2d(queue, dst, beside, 51, 90), "overlap");
    EXPECT_INVALID(weir_queue_copy_2d(queue, dst, slanted, 10, 10), "overlap");
    EXPECT_SYNC(queue);
}

CONFORM(Fill, EveryPatternSize)
{
    static const unsigned char pattern[16] = {1, 2,  3,  4,  5,  6,  7,  8,
                                              9, 10, 11, 12, 13, 14, 15, 16};
    own_queue queue = conform_queue(f, "q");
    unsigned char *bytes = malloc(SIZE);

    ASSERT_NOT_NULL(bytes);
    for (int host = 0; host < 2; host++) {
        for (size_t n = 1; n <= 16; n *= 2) {
            weir_test_note("%s, pattern of %zu", host ? "HOST" : "DEVICE", n);
            const size_t offset = 5 * n;
            const size_t size = 133 * n;
            weir_buffer *buffer = make(f, host);
            conform_write(queue, buffer, 8);
            ASSERT_OK(weir_queue_fill(queue, buffer, offset, size, pattern, n));
            ASSERT_OK(weir_download(queue, bytes, buffer, 0, SIZE));
            for (size_t i = 0; i < SIZE; i++)
                ASSERT_INT_EQ(bytes[i], i < offset || i >= offset + size ? conform_pattern(i, 8)
                                                                         : pattern[i % n]);
            weir_buffer_destroy(&buffer);
        }
    }
    free(bytes);
}

CONFORM(Fill, Refusals)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer buffer = make(f, 0);
    const uint64_t pattern[4] = {0};
    static const size_t bad[] = {0, 3, 5, 6, 7, 12, 17, 24, 32, SIZE_MAX};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        EXPECT_INVALID(weir_queue_fill(queue, buffer, 0, 96, pattern, bad[i]), "pattern has");
    EXPECT_INVALID(weir_queue_fill(queue, buffer, 4, 8, pattern, 8), "multiples");
    EXPECT_INVALID(weir_queue_fill(queue, buffer, 8, 12, pattern, 8), "multiples");
    EXPECT_INVALID(weir_queue_fill(queue, buffer, 0, 8, NULL, 8), "pattern");
    EXPECT_INVALID(weir_queue_fill(queue, NULL, 0, 8, pattern, 8), "no buffer");
    EXPECT_INVALID(weir_queue_fill(NULL, buffer, 0, 8, pattern, 8), "queue");
    EXPECT_SYNC(queue);
}

// More than the library stages at once, and not a multiple of anything.
CONFORM(Transfer, LargerThanStaging)
{
    const size_t size = ((size_t)9 << 20) + 3;
    own_queue queue = conform_queue(f, "q");
    own_buffer buffer = conform_device_buffer(f, size + 1000);
    unsigned char *bytes = malloc(size);
    unsigned char *back = calloc(1, size);

    ASSERT_NOT_NULL(bytes);
    ASSERT_NOT_NULL(back);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < size; i++)
            bytes[i] = conform_pattern(i, (unsigned)round);
        ASSERT_OK(weir_upload(queue, buffer, 997, bytes, size));
        ASSERT_OK(weir_download(queue, back, buffer, 997, size));
        EXPECT_MEM_EQ(back, bytes, size);
    }
    EXPECT_OK(weir_device_trim(f->device));
    ASSERT_OK(weir_download(queue, back, buffer, 1000, 100));
    EXPECT_MEM_EQ(back, bytes + 3, 100);
    free(bytes);
    free(back);
}

CONFORM(Transfer, Refusals)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer buffer = make(f, 0);
    unsigned char bytes[16] = {0};

    EXPECT_INVALID(weir_upload(NULL, buffer, 0, bytes, 16), "queue");
    EXPECT_INVALID(weir_upload(queue, NULL, 0, bytes, 16), "buffer");
    EXPECT_INVALID(weir_upload(queue, buffer, 0, NULL, 16), "memory is NULL");
    EXPECT_INVALID(weir_upload(queue, buffer, SIZE - 15, bytes, 16), "do not lie in");
    EXPECT_INVALID(weir_download(NULL, bytes, buffer, 0, 16), "queue");
    EXPECT_INVALID(weir_download(queue, bytes, NULL, 0, 16), "buffer");
    EXPECT_INVALID(weir_download(queue, NULL, buffer, 0, 16), "memory is NULL");
    EXPECT_INVALID(weir_download(queue, bytes, buffer, SIZE - 15, 16), "do not lie in");
    EXPECT_SYNC(queue);
}

// The caller's memory, at an odd address, on both sides of a copy.
CONFORM(Buffer, Wrap)
{
    own_queue queue = conform_queue(f, "q");
    unsigned char *memory = malloc(2 * SIZE);
    own_buffer device = make(f, 0);
    weir_buffer *in;
    weir_buffer *out;
    void *pointer;

    ASSERT_NOT_NULL(memory);
    struct weir_wrap_params params = {.struct_size = sizeof params,
                                      .label = "mine",
                                      .pointer = memory + 1,
                                      .size = SIZE - 1};
    ASSERT_OK(weir_buffer_wrap(f->device, &params, &in));
    params.pointer = memory + SIZE;
    params.size = SIZE;
    ASSERT_OK(weir_buffer_wrap(f->device, &params, &out));
    EXPECT_UINT_EQ(weir_buffer_size(in), SIZE - 1);
    EXPECT_INT_EQ(weir_buffer_placement(in), WEIR_PLACE_HOST);
    ASSERT_OK(weir_host_begin(in, 0, 1, WEIR_ACCESS_WRITE, &pointer));
    EXPECT_PTR_EQ(pointer, memory + 1);
    ASSERT_OK(weir_host_end(in, 0, 1, WEIR_ACCESS_WRITE));
    for (size_t i = 0; i < SIZE; i++)
        memory[i] = conform_pattern(i, 9);
    memset(memory + SIZE, 0, SIZE);
    ASSERT_OK(weir_queue_copy(queue, device, 0, in, 1, SIZE - 2));
    ASSERT_OK(weir_queue_copy(queue, out, 2, device, 0, SIZE - 2));
    ASSERT_SYNC(queue);
    EXPECT_MEM_EQ(memory + SIZE + 2, memory + 2, SIZE - 2);
    EXPECT_INT_EQ(memory[SIZE], 0);
    weir_buffer_destroy(&in);
    weir_buffer_destroy(&out);
    params.pointer = (void *)(UINTPTR_MAX - SIZE / 2);
    EXPECT_INVALID(weir_buffer_wrap(f->device, &params, &out), "weir_buffer_wrap");
    EXPECT_NULL(out);
    free(memory);
}

CONFORM(Buffer, CreateRefusals)
{
    struct weir_buffer_params params = {.struct_size = sizeof params, .label = "b", .size = 16};
    struct weir_wrap_params wrap = {.struct_size = sizeof wrap,
                                    .label = "w",
                                    .pointer = &params,
                                    .size = 16};
    weir_buffer *buffer = (weir_buffer *)(void *)&params;

    EXPECT_INVALID(weir_buffer_create(NULL, &params, &buffer), "device");
    EXPECT_NULL(buffer);
    EXPECT_INVALID(weir_buffer_create(f->device, NULL, &buffer), "params");
    EXPECT_INVALID(weir_buffer_create(f->device, &params, NULL), "out_buffer");
    params.size = 0;
    EXPECT_INVALID(weir_buffer_create(f->device, &params, &buffer), "0 bytes");
    EXPECT_STR_EQ(weir_last_error()->object, "b");
    params.size = SIZE_MAX;
    EXPECT_INVALID(weir_buffer_create(f->device, &params, &buffer), "limit");
    EXPECT_NOT_NULL(strchr(weir_last_error()->remedy, ' '));
    params.size = 16;
    params.placement = (weir_placement)3;
    EXPECT_INVALID(weir_buffer_create(f->device, &params, &buffer), "placement");
    params.placement = WEIR_PLACE_DEVICE;
    params.struct_size = 0;
    EXPECT_INVALID(weir_buffer_create(f->device, &params, &buffer), "struct_size");
    EXPECT_INVALID(weir_buffer_wrap(NULL, &wrap, &buffer), "device");
    EXPECT_INVALID(weir_buffer_wrap(f->device, NULL, &buffer), "params");
    EXPECT_INVALID(weir_buffer_wrap(f->device, &wrap, NULL), "out_buffer");
    wrap.pointer = NULL;
    EXPECT_INVALID(weir_buffer_wrap(f->device, &wrap, &buffer), "pointer");
    wrap.pointer = &params;
    wrap.size = 0;
    EXPECT_INVALID(weir_buffer_wrap(f->device, &wrap, &buffer), "0 bytes");
    wrap.size = 16;
    wrap.struct_size = 0;
    EXPECT_INVALID(weir_buffer_wrap(f->device, &wrap, &buffer), "struct_size");
    EXPECT_NULL(buffer);
}

CONFORM(Buffer, HostUse)
{
    own_buffer host = make(f, 1);
    own_buffer device = make(f, 0);
    void *whole;
    void *part;

    EXPECT_UINT_EQ(weir_buffer_size(host), SIZE);
    EXPECT_INT_EQ(weir_buffer_placement(host), WEIR_PLACE_HOST);
    EXPECT_INT_EQ(weir_buffer_placement(device), WEIR_PLACE_DEVICE);
    ASSERT_OK(weir_host_begin(host, 0, SIZE, WEIR_ACCESS_READ_WRITE, &whole));
    ASSERT_OK(weir_host_begin(host, 100, 1, WEIR_ACCESS_READ, &part));
    EXPECT_PTR_EQ(part, (char *)whole + 100);
    ASSERT_OK(weir_host_end(host, 100, 1, WEIR_ACCESS_READ));
    ASSERT_OK(weir_host_end(host, 0, SIZE, WEIR_ACCESS_READ_WRITE));

    EXPECT_INVALID(weir_host_begin(device, 0, 1, WEIR_ACCESS_READ, &part), "DEVICE buffer");
    EXPECT_NULL(part);
    EXPECT_INVALID(weir_host_end(device, 0, 1, WEIR_ACCESS_READ), "DEVICE buffer");
    EXPECT_INVALID(weir_host_begin(NULL, 0, 1, WEIR_ACCESS_READ, &part), "buffer");
    EXPECT_INVALID(weir_host_begin(host, 0, 1, WEIR_ACCESS_READ, NULL), "out_pointer");
    EXPECT_INVALID(weir_host_begin(host, 0, 1, (weir_access)0, &part), "access");
    EXPECT_INVALID(weir_host_begin(host, 0, 1, (weir_access)4, &part), "access");
    EXPECT_INVALID(weir_host_begin(host, SIZE, 1, WEIR_ACCESS_READ, &part), "do not lie in");
}
