// Copies, fills, blocking transfers, wrapped memory and host access to buffers:
// results, and every refusal.

#include "tests/conformance/suite.h"

#define SIZE ((size_t)20000)

static weir_buffer *make(struct fixture *f, int placement)
{
    return conform_buffer(f, SIZE, (weir_placement)placement);
}

// DEVICE, HOST and, where there is such memory, MANAGED.
static int count_placements(struct fixture *f)
{
    return f->limits->managed_memory ? 3 : 2;
}

struct size {
    size_t width;
    size_t height;
    size_t depth;
};

struct copy_case {
    int dimensions;
    struct weir_volume dst;
    struct weir_volume src;
    struct size size;
    const char *part; // of the message where it is refused
};

// Whether the box at `dst` holds data set 5 as it lies at `src`, and each other byte of the buffer
// data set 6.
static bool holds_box(weir_queue *queue, const struct weir_volume *dst,
                      const struct weir_volume *src, const struct size *size)
{
    unsigned char bytes[SIZE];
    unsigned char wanted[SIZE];
    for (size_t i = 0; i < SIZE; i++)
        wanted[i] = conform_pattern(i, 6);
    for (size_t z = 0; z < size->depth; z++)
        for (size_t y = 0; y < size->height; y++)
            for (size_t x = 0; x < size->width; x++)
                wanted[dst->offset + z * dst->slice_pitch + y * dst->pitch + x] =
                    conform_pattern(src->offset + z * src->slice_pitch + y * src->pitch + x, 5);
    EXPECT_OK(weir_download(queue, bytes, dst->buffer, 0, SIZE));
    for (size_t i = 0; i < SIZE; i++)
        if (bytes[i] != wanted[i]) {
            weir_test_fail(__FILE__, __LINE__, "byte %zu is %u and should be %u", i, bytes[i],
                           wanted[i]);
            return false;
        }
    return true;
}

// A copy of one, two or three dimensions.
static weir_status copy_of(weir_queue *queue, int dimensions, struct weir_volume dst,
                           struct weir_volume src, struct size size)
{
    if (dimensions == 1)
        return weir_queue_copy(queue, dst.buffer, dst.offset, src.buffer, src.offset, size.width);
    if (dimensions == 2)
        return weir_queue_copy_2d(queue, (struct weir_plane){dst.buffer, dst.offset, dst.pitch},
                                  (struct weir_plane){src.buffer, src.offset, src.pitch},
                                  size.width, size.height);
    return weir_queue_copy_3d(queue, dst, src, size.width, size.height, size.depth);
}

// Buffers of the placements `to` and `from`, with a copy between them.
static void copy_box(struct fixture *f, weir_queue *queue, int to, int from, int dimensions,
                     struct weir_volume dst, struct weir_volume src, struct size size)
{
    dst.buffer = make(f, to);
    src.buffer = make(f, from);
    conform_write(queue, src.buffer, 5);
    conform_write(queue, dst.buffer, 6);
    EXPECT_OK(copy_of(queue, dimensions, dst, src, size));
    EXPECT_TRUE(holds_box(queue, &dst, &src, &size));
    EXPECT_TRUE(conform_holds(queue, src.buffer, 0, SIZE, 5, 0));
    weir_buffer_destroy(&dst.buffer);
    weir_buffer_destroy(&src.buffer);
}

// Unaligned offsets, to and from both placements. Rows with gaps, which stay as they were, and without; the last
// row needs no whole pitch, and a single one no pitch at all. Slice pitches that are multiples of the pitch, and such
// that are not; packed rows and slices; slices of one row, and a single slice.
CONFORM(Copy, AllPlacements)
{
    static const struct copy_case cases[] = {
        {1, {NULL, 37, 0, 0}, {NULL, 1003, 0, 0}, {4001, 1, 1}, NULL},
        {1, {NULL, 0, 0, 0}, {NULL, 0, 0, 0}, {SIZE, 1, 1}, NULL},
        {2, {NULL, 3, 61, 0}, {NULL, 101, 100, 0}, {61, 40, 1}, NULL},
        {2, {NULL, 101, 100, 0}, {NULL, 3, 61, 0}, {60, 2, 1}, NULL},
        {2, {NULL, 0, 10, 0}, {NULL, SIZE - 210, 100, 0}, {10, 3, 1}, NULL},
        {2, {NULL, SIZE - 10, SIZE_MAX, 0}, {NULL, SIZE - 210, 100, 0}, {10, 1, 1}, NULL},
        {3, {NULL, 7, 50, 500}, {NULL, 3, 40, 320}, {37, 8, 9}, NULL},
        {3, {NULL, 7, 50, 501}, {NULL, 3, 40, 321}, {37, 8, 9}, NULL},
        {3, {NULL, 0, 40, 320}, {NULL, 1000, 40, 320}, {40, 8, 9}, NULL},
        {3, {NULL, 0, 40, 320}, {NULL, 1000, 64, 512}, {40, 8, 9}, NULL},
        {3, {NULL, 131, 64, 640}, {NULL, 1000, 64, 512}, {33, 8, 20}, NULL},
        {3, {NULL, 5, 100, 100}, {NULL, 6, 90, 300}, {90, 1, 60}, NULL},
        {3, {NULL, 5, 100, 0}, {NULL, 6, 90, 1}, {90, 20, 1}, NULL},
        {3, {NULL, SIZE - (2 * 700 + 3 * 100 + 10), 100, 700}, {NULL, 0, 10, 40}, {10, 4, 3}, NULL},
    };
    const int count = count_placements(f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int kind = 0; kind < count * count; kind++) {
            weir_test_note("case %zu, from placement %d to %d", i, kind % count, kind / count);
            copy_box(f, f->queue, kind / count, kind % count, cases[i].dimensions, cases[i].dst,
                     cases[i].src, cases[i].size);
        }
}

// Boxes that lie side by side in one volume: rows, slices or bytes apart.
CONFORM(Copy, WithinOneBuffer)
{
    static const struct {
        int dimensions;
        size_t from;
        size_t to;
        struct size size;
    } cases[] = {
        {1, 0, 5000, {5000, 1, 1}},         {2, 0, 50, {50, 100, 1}},
        {3, 0, 50, {50, 10, 10}},           // beside each other in each row
        {3, 0, 5 * 100, {100, 5, 10}},      // rows of each slice
        {3, 0, 5 * 1000, {100, 10, 5}},     // slices
        {3, 95, 5 + 300 + 2000, {5, 3, 4}}, // where rows end and begin again
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int on_host = 0; on_host < 2; on_host++) {
            own_buffer buffer = make(f, on_host);
            const struct weir_volume src = {buffer, cases[i].from, 100, 1000};
            const struct weir_volume dst = {buffer, cases[i].to, 100, 1000};
            const struct size *size = &cases[i].size;
            unsigned char before[SIZE];
            unsigned char after[SIZE];
            weir_test_note("case %zu, %s", i, on_host ? "HOST" : "DEVICE");
            conform_write(f->queue, src.buffer, 5);
            ASSERT_OK(weir_download(f->queue, before, src.buffer, 0, SIZE));
            ASSERT_OK(copy_of(f->queue, cases[i].dimensions, dst, src, *size));
            ASSERT_OK(weir_download(f->queue, after, src.buffer, 0, SIZE));
            for (size_t z = 0; z < size->depth; z++)
                for (size_t y = 0; y < size->height; y++)
                    memcpy(before + dst.offset + z * 1000 + y * 100,
                           before + src.offset + z * 1000 + y * 100, size->width);
            EXPECT_INT_EQ(memcmp(before, after, SIZE), 0);
        }
}

// Nothing is copied, but later work is still in order.
CONFORM(Copy, ZeroSize)
{
    own_buffer buffer = make(f, 0);
    own_buffer other = make(f, 1);
    const struct weir_plane dst = {buffer, SIZE, 0};
    const struct weir_plane src = {other, 0, 0};
    const struct weir_volume box = {buffer, SIZE, 0, 0};
    const struct weir_volume other_box = {other, 0, 100, 0};

    conform_write(f->queue, buffer, 4);
    EXPECT_OK(weir_queue_copy(f->queue, buffer, 0, other, SIZE, 0));
    EXPECT_OK(weir_queue_fill(f->queue, buffer, SIZE, 0, "", 1));
    EXPECT_OK(weir_queue_copy_2d(f->queue, dst, src, 0, 5));
    EXPECT_OK(weir_queue_copy_2d(f->queue, dst, src, 0, 0));
    EXPECT_OK(weir_queue_copy_3d(f->queue, box, other_box, 0, 5, 5));
    EXPECT_OK(weir_queue_copy_3d(f->queue, other_box, other_box, 10, 0, 5));
    EXPECT_OK(weir_queue_copy_3d(f->queue, other_box, other_box, 10, 5, 0));
    EXPECT_OK(weir_queue_fill_2d(f->queue, dst, 0, 5, "a", 1));
    EXPECT_OK(weir_queue_fill_2d(f->queue, (struct weir_plane){buffer, 0, 10}, 10, 0, "a", 1));
    EXPECT_OK(weir_upload(f->queue, buffer, 0, NULL, 0));
    EXPECT_OK(weir_download(f->queue, NULL, buffer, 0, 0));
    EXPECT_OK(weir_event_sync(test_record(f->queue), HANG_GUARD_NS));
    EXPECT_TRUE(conform_holds(f->queue, buffer, 0, SIZE, 4, 0));
}

static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const unsigned char repeated[16] = {9, 8, 7, 6, 9, 8, 7, 6, 9, 8, 7, 6, 9, 8, 7, 6};

// With a pitch of 0, by the fill of one dimension.
static void fill_rows(weir_queue *queue, struct weir_plane dst, size_t width, size_t height,
                      const unsigned char *with, size_t size)
{
    unsigned char bytes[SIZE];
    unsigned char wanted[SIZE];
    for (size_t i = 0; i < SIZE; i++)
        wanted[i] = conform_pattern(i, 6);
    for (size_t row = 0; row < height; row++)
        for (size_t x = 0; x < width; x++)
            wanted[dst.offset + row * dst.pitch + x] = with[x % size];
    conform_write(queue, dst.buffer, 6);
    EXPECT_OK(dst.pitch > 0 ? weir_queue_fill_2d(queue, dst, width, height, with, size)
                            : weir_queue_fill(queue, dst.buffer, dst.offset, width, with, size));
    EXPECT_OK(weir_download(queue, bytes, dst.buffer, 0, SIZE));
    EXPECT_INT_EQ(memcmp(bytes, wanted, SIZE), 0);
}

// Rows with gaps, which stay as they were, and without; one row, two, and a number that is no power
// of two.
CONFORM(Fill2D, EveryPatternSize)
{
    for (size_t size = 1; size <= 16; size *= 2)
        for (int kind = 0; kind < 2 * count_placements(f); kind++) {
            own_buffer buffer = make(f, kind / 2);
            const unsigned char *with = kind % 2 ? repeated : pattern;
            weir_test_note("a pattern of %zu bytes, placement %d", size, kind / 2);
            fill_rows(f->queue, (struct weir_plane){buffer, 5 * size, 0}, 133 * size, 1, with,
                      size);
            fill_rows(f->queue, (struct weir_plane){buffer, 5 * size, 13 * size}, 9 * size, 77,
                      with, size);
            fill_rows(f->queue, (struct weir_plane){buffer, 0, 16 * size}, 16 * size, 64, with,
                      size);
            fill_rows(f->queue, (struct weir_plane){buffer, 48, SIZE_MAX}, 8 * size, 1, with, size);
            fill_rows(f->queue, (struct weir_plane){buffer, 16, 640}, 320, 2, with, size);
        }
    weir_test_note(NULL);
}

CONFORM(Fill, Refusals)
{
    own_buffer buffer = make(f, 0);
    static const size_t bad[] = {0, 3, 5, 6, 7, 12, 17, 24, 32, SIZE_MAX};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        EXPECT_INVALID(weir_queue_fill(f->queue, buffer, 0, 96, pattern, bad[i]), "pattern has");
    EXPECT_INVALID(weir_queue_fill(f->queue, buffer, 4, 8, pattern, 8), "multiples");
    EXPECT_INVALID(weir_queue_fill(f->queue, buffer, 8, 12, pattern, 8),
                   "fill: offset 8 and size 12 must be multiples of the pattern's 8 bytes");
    EXPECT_INVALID(weir_queue_fill(f->queue, buffer, 0, 8, NULL, 8), "pattern");
    EXPECT_INVALID(weir_queue_fill(f->queue, NULL, 0, 8, pattern, 8), "no buffer");
    EXPECT_INVALID(weir_queue_fill(NULL, buffer, 0, 8, pattern, 8), "queue");
    EXPECT_SYNC(f->queue);
}

// More than the library stages at once, and not a multiple of anything.
CONFORM(Transfer, LargerThanStaging)
{
    const size_t size = ((size_t)9 << 20) + 3;
    own_buffer buffer = conform_device_buffer(f, size + 1000);
    OWN_MEMORY unsigned char *bytes = malloc(size);
    OWN_MEMORY unsigned char *back = calloc(1, size);

    ASSERT_NOT_NULL(bytes);
    ASSERT_NOT_NULL(back);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < size; i++)
            bytes[i] = conform_pattern(i, (unsigned)round);
        ASSERT_OK(weir_upload(f->queue, buffer, 997, bytes, size));
        memset(bytes, 0xee, size); // it has been read
        ASSERT_OK(weir_download(f->queue, back, buffer, 997, size));
        for (size_t i = 0; i < size; i++)
            ASSERT_UINT_EQ(back[i], conform_pattern(i, (unsigned)round));
    }
    EXPECT_OK(weir_device_trim(f->device));
    ASSERT_OK(weir_download(f->queue, back, buffer, 1000, 100));
    for (size_t i = 0; i < 100; i++)
        EXPECT_UINT_EQ(back[i], conform_pattern(i + 3, 1));
}

CONFORM(Transfer, Refusals)
{
    own_buffer buffer = make(f, 0);
    unsigned char bytes[16] = {0};

    EXPECT_INVALID(weir_upload(NULL, buffer, 0, bytes, 16), "queue");
    EXPECT_INVALID(weir_upload(f->queue, NULL, 0, bytes, 16), "buffer");
    EXPECT_INVALID(weir_upload(f->queue, buffer, 0, NULL, 16), "memory is NULL");
    EXPECT_INVALID(weir_upload(f->queue, buffer, SIZE - 15, bytes, 16),
                   "weir_upload: dst: 16 bytes at offset 19985 do not lie in");
    EXPECT_INVALID(weir_download(NULL, bytes, buffer, 0, 16), "queue");
    EXPECT_INVALID(weir_download(f->queue, bytes, NULL, 0, 16), "buffer");
    EXPECT_INVALID(weir_download(f->queue, NULL, buffer, 0, 16), "memory is NULL");
    EXPECT_INVALID(weir_download(f->queue, bytes, buffer, SIZE - 15, 16),
                   "weir_download: src: 16 bytes at offset 19985 do not lie in");
    EXPECT_CONTAINS(weir_last_error()->message, "in a buffer of 20000 bytes (created at ");
    EXPECT_CONTAINS(weir_last_error()->message, "tests/support/own.h:");
    EXPECT_CONTAINS(weir_last_error()->remedy, "offset and size count bytes");
    EXPECT_SYNC(f->queue);
}

// The caller's memory, at an odd address, on both sides of a copy.
CONFORM(Buffer, Wrap)
{
    OWN_MEMORY unsigned char *memory = malloc(2 * SIZE);
    own_buffer device = make(f, 0);
    own_buffer in = NULL;
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
    ASSERT_OK(weir_queue_copy(f->queue, device, 0, in, 1, SIZE - 2));
    ASSERT_OK(weir_queue_copy(f->queue, out, 2, device, 0, SIZE - 2));
    ASSERT_SYNC(f->queue);
    EXPECT_MEM_EQ(memory + SIZE + 2, memory + 2, SIZE - 2);
    EXPECT_INT_EQ(memory[SIZE], 0);
    weir_buffer_destroy(&out);
    params.pointer = (void *)(UINTPTR_MAX - SIZE / 2);
    EXPECT_INVALID(weir_buffer_wrap(f->device, &params, &out), "weir_buffer_wrap");
    EXPECT_NULL(out);
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
#define NO_BUFFER(change, part) \
    EXPECT_INVALID_WITH(params, change, weir_buffer_create(f->device, &params, &buffer), part)
    NO_BUFFER(size = 0, "0 bytes");
    EXPECT_STR_EQ(weir_last_error()->object, "b");
    NO_BUFFER(size = SIZE_MAX, "limit");
    EXPECT_NOT_NULL(strchr(weir_last_error()->remedy, ' '));
    NO_BUFFER(placement = (weir_placement)3, "placement");
    NO_BUFFER(struct_size = 0, "struct_size");
#undef NO_BUFFER
    EXPECT_INVALID(weir_buffer_wrap(NULL, &wrap, &buffer), "device");
    EXPECT_INVALID(weir_buffer_wrap(f->device, NULL, &buffer), "params");
    EXPECT_INVALID(weir_buffer_wrap(f->device, &wrap, NULL), "out_buffer");
#define NO_WRAP(change, part) \
    EXPECT_INVALID_WITH(wrap, change, weir_buffer_wrap(f->device, &wrap, &buffer), part)
    NO_WRAP(pointer = NULL, "pointer");
    NO_WRAP(size = 0, "0 bytes");
    NO_WRAP(struct_size = 0, "struct_size");
#undef NO_WRAP
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

// The call returns that, with the part in its message; it is WEIR_OK without one.
static void expect_copies(weir_queue *queue, const struct copy_case *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct copy_case *row = &rows[i];
        const weir_status status = copy_of(queue, row->dimensions, row->dst, row->src, row->size);
        weir_test_note("case %zu", i);
        EXPECT_INT_EQ(status, row->part ? WEIR_ERROR_INVALID : WEIR_OK);
        if (row->part)
            EXPECT_CONTAINS(weir_last_error()->message, row->part);
    }
    EXPECT_SYNC(queue);
}

CONFORM(Copy, Refusals)
{
    own_buffer a = make(f, 0);
    own_buffer b = make(f, 1);
    const struct weir_plane plane = {a, 0, 100};
    const struct weir_volume volume = {a, 0, 100, 1000};
    const size_t most = SIZE_MAX;
    const struct copy_case rows[] = {
        {1, {NULL, 0, 0, 0}, {b, 0, 0, 0}, {1, 1, 1}, "dst is no buffer"},
        {1, {a, 0, 0, 0}, {NULL, 0, 0, 0}, {1, 1, 1}, "src is no buffer"},
        {1, {a, SIZE, 0, 0}, {b, 0, 0, 0}, {1, 1, 1}, "dst: 1 bytes at offset 20000"},
        {1, {a, 0, 0, 0}, {b, SIZE, 0, 0}, {1, 1, 1}, "src: 1 bytes at offset 20000"},
        {2, {NULL, 0, 100, 0}, {b, 0, 100, 0}, {10, 10, 1}, "dst is no buffer"},
        {2, {a, 0, 100, 0}, {NULL, 0, 100, 0}, {10, 10, 1}, "src is no buffer"},
        {2, {a, 0, 100, 0}, {b, 0, 9, 0}, {10, 10, 1}, "pitch of src, 9"},
        {2, {b, 0, 9, 0}, {a, 0, 100, 0}, {10, 10, 1}, "pitch of dst, 9"},
        {2, {a, 0, 100, 0}, {b, 0, most / 2, 0}, {10, 10, 1}, "src:"},
        {2, {b, 0, most / 2, 0}, {a, 0, 100, 0}, {10, 3, 1}, "dst:"},
        {2, {a, 0, 100, 0}, {b, most, 100, 0}, {10, 10, 1}, "src:"},
        {2, {a, 0, 100, 0}, {b, 0, 100, 0}, {10, most, 1}, "do not lie in"},
        {2, {a, 0, 100, 0}, {b, SIZE - 210, 100, 0}, {10, 4, 1}, "do not lie in"},
        {3, {NULL, 0, 100, 1000}, {b, 0, 100, 1000}, {10, 10, 10}, "dst is no buffer"},
        {3, {a, 0, 100, 1000}, {NULL, 0, 100, 1000}, {10, 10, 10}, "src is no buffer"},
        {3, {a, 0, 100, 1000}, {b, 0, 9, 1000}, {10, 10, 10}, "pitch of src, 9"},
        {3, {b, 0, 9, 1000}, {a, 0, 100, 1000}, {10, 10, 10}, "pitch of dst, 9"},
        {3, {a, 0, 100, 1000}, {b, 0, 100, 909}, {10, 10, 10}, "src, 909, is below the 910 bytes"},
        {3, {b, 0, 100, 909}, {a, 0, 100, 1000}, {10, 10, 10}, "slice pitch of dst, 909"},
        {3, {a, 0, 100, 1000}, {b, 0, most / 2, most}, {10, 10, 10}, "src:"},
        {3, {b, 0, 100, most / 2}, {a, 0, 100, 1000}, {10, 10, 10}, "dst:"},
        {3, {a, 0, 100, 1000}, {b, most, 100, 1000}, {10, 10, 10}, "src:"},
        {3, {a, 0, 100, 1000}, {b, 0, 100, 1000}, {10, 10, most}, "do not lie in"},
        {3, {a, 0, 100, 1000}, {b, 0, 100, 1000}, {10, most, 1}, "do not lie in"},
        {3, {a, 0, 100, 1000}, {b, SIZE - 19909, 100, 1000}, {10, 10, 20}, "src: 19910 bytes"},
    };

    expect_copies(f->queue, rows, sizeof rows / sizeof *rows);
    EXPECT_INVALID(weir_queue_copy(NULL, a, 0, b, 0, 1), "queue");
    EXPECT_INVALID(weir_queue_copy_2d(NULL, plane, plane, 10, 10), "queue");
    EXPECT_INVALID(weir_queue_copy_3d(NULL, volume, volume, 10, 10, 10), "queue");
}

// Within one buffer: side by side is fine, on top of each other is not.
CONFORM(Copy, Overlaps)
{
    own_buffer a = make(f, 0);
    const struct weir_volume dst = {a, 0, 100, 1000};
    const struct copy_case rows[] = {
        {1, {a, 10, 0, 0}, {a, 0, 0, 0}, {11, 1, 1}, "overlap"},
        {1, {a, 0, 0, 0}, {a, 10, 0, 0}, {11, 1, 1}, "overlap"},
        {1, {a, 7, 0, 0}, {a, 7, 0, 0}, {1, 1, 1}, "overlap"},
        {1, {a, 10, 0, 0}, {a, 0, 0, 0}, {10, 1, 1}, NULL},
        {1, {a, 7, 0, 0}, {a, 7, 0, 0}, {0, 1, 1}, NULL},
        {2, dst, {a, 50, 100, 0}, {50, 100, 1}, NULL},
        {2, dst, {a, 45, 100, 0}, {46, 100, 1}, "overlap"},
        {2, dst, {a, 50, 100, 0}, {51, 90, 1}, "overlap"},
        {2, dst, {a, 50, 101, 0}, {10, 10, 1}, "overlap"},
        {3, dst, dst, {10, 4, 5}, "overlap"},
        {3, dst, {a, 9, 100, 1000}, {10, 4, 5}, "overlap"},
        {3, dst, {a, 10, 100, 1000}, {10, 4, 5}, NULL},
        {3, dst, {a, 300, 100, 1000}, {10, 4, 5}, "overlap"},
        {3, dst, {a, 400, 100, 1000}, {10, 4, 5}, NULL},
        {3, dst, {a, 4000, 100, 1000}, {10, 4, 5}, "overlap"},
        {3, dst, {a, 5000, 100, 1000}, {10, 4, 5}, NULL},
        // The next row begins with the last bytes of this one, the next slice with its last rows.
        {3, dst, {a, 91, 100, 1000}, {10, 4, 5}, "overlap"},
        {3, dst, {a, 90, 100, 1000}, {10, 1, 5}, NULL},
        {3, dst, {a, 700, 100, 1000}, {10, 4, 5}, "overlap"},
        {3, dst, {a, 600, 100, 1000}, {10, 4, 5}, NULL},
        {3, {a, 700, 100, 1000}, dst, {10, 4, 5}, "overlap"}, // the other way round
        // Pitches that differ, and slices that do not begin with a row.
        {3, dst, {a, 500, 100, 1010}, {10, 4, 5}, "overlap"},
        {3, dst, {a, 500, 90, 1000}, {10, 4, 5}, "overlap"},
        {3, {a, 0, 100, 1010}, {a, 550, 100, 1010}, {10, 4, 5}, "overlap"},
        // One slice is a plane.
        {3, {a, 0, 100, 0}, {a, 50, 100, 0}, {50, 100, 1}, NULL},
        {3, {a, 0, 100, 0}, {a, 49, 100, 0}, {50, 100, 1}, "overlap"},
    };
    expect_copies(f->queue, rows, sizeof rows / sizeof *rows);
}

// Wrapped memory at an address that is no multiple of the pattern's size.
CONFORM(Fill2D, MisalignedMemory)
{
    static _Alignas(64) unsigned char memory[SIZE + 1];
    weir_buffer *buffer = NULL;

    ASSERT_OK(weir_buffer_wrap(f->device,
                               WEIR_PARAMS(weir_wrap, .pointer = memory + 1, .size = SIZE),
                               &buffer));
    for (size_t size = 1; size <= 16; size *= 2)
        fill_rows(f->queue, (struct weir_plane){buffer, 5 * size, 13 * size}, 9 * size, 77, pattern,
                  size);
    weir_buffer_destroy(&buffer);
    EXPECT_OK(weir_device_trim(f->device));
}

CONFORM(Fill2D, Refusals)
{
    own_buffer a = make(f, 0);
    const struct weir_plane dst = {a, 0, 100};
    const struct weir_plane none = {NULL, 0, 100};
    const struct weir_plane narrow = {a, 0, 8};
    const struct weir_plane odd = {a, 0, 102};
    const struct weir_plane askew = {a, 2, 100};
    const struct weir_plane wide = {a, 0, SIZE_MAX / 4 * 4};

    EXPECT_INVALID(weir_queue_fill_2d(NULL, dst, 12, 10, pattern, 4), "queue");
    EXPECT_INVALID(weir_queue_fill_2d(f->queue, none, 12, 10, pattern, 4), "dst is no buffer");
    EXPECT_INVALID(weir_queue_fill_2d(f->queue, dst, 12, 10, NULL, 4), "pattern");
    EXPECT_INVALID(weir_queue_fill_2d(f->queue, dst, 12, 10, pattern, 3),
                   "fill_2d: a pattern has 1, 2, 4, 8 or 16 bytes, not 3");
    EXPECT_INVALID(weir_queue_fill_2d(f->queue, narrow, 12, 10, pattern, 4), "pitch of dst, 8");
    EXPECT_INVALID(weir_queue_fill_2d(f->queue, odd, 12, 10, pattern, 4),
                   "pitch 102 and width 12 must be multiples of the pattern's 4 bytes");
    EXPECT_INVALID(weir_queue_fill_2d(f->queue, askew, 12, 10, pattern, 4), "offset 2");
    EXPECT_INVALID(weir_queue_fill_2d(f->queue, dst, 14, 10, pattern, 4), "width 14");
    EXPECT_INVALID(weir_queue_fill_2d(f->queue, dst, 12, SIZE, pattern, 4), "do not lie in");
    EXPECT_INVALID(weir_queue_fill_2d(f->queue, wide, 12, 10, pattern, 4), "do not lie in");
    EXPECT_OK(weir_queue_fill_2d(f->queue, odd, 12, 1, pattern, 4)); // a row has no pitch
    EXPECT_SYNC(f->queue);
}

// The pattern is read before the call returns, also if the queue is held.
CONFORM(Fill2D, HeldFillKeepsItsPattern)
{
    own_buffer a = make(f, 0);
    own_buffer b = make(f, 1);
    unsigned char mine[4] = {1, 2, 3, 4};

    conform_write(f->queue, a, 6);
    own_gate gate = gate_on(f->queue);
    ASSERT_OK(weir_queue_fill_2d(f->queue, (struct weir_plane){a, 0, 8}, 4, 100, mine, 4));
    ASSERT_OK(weir_queue_fill(f->queue, b, SIZE - 400, 400, mine, 4));
    ASSERT_OK(weir_queue_copy_3d(f->queue, (struct weir_volume){b, 0, 4, 40},
                                 (struct weir_volume){a, 0, 8, 80}, 4, 10, 10));
    memset(mine, 0, sizeof mine);
    gate_open(gate);
    ASSERT_SYNC(f->queue);
    for (size_t i = 0; i < 400; i++)
        ASSERT_TRUE(conform_bytes(b)[i] == i % 4 + 1 &&
                    conform_bytes(b)[SIZE - 400 + i] == i % 4 + 1);
}

// In a graph, with every way that a backend has to make them.
CONFORM(Graph, BoxesAndRows)
{
    own_buffer device = make(f, 0);
    own_buffer host = make(f, 1);
    own_buffer back = make(f, 1);
    uint32_t node = 0;

    ASSERT_OK(weir_capture_begin(f->queue));
    EXPECT_OK(weir_queue_fill_2d(f->queue, (struct weir_plane){device, 0, 64}, 32, 90, pattern, 2));
    EXPECT_OK(
        weir_queue_fill_2d(f->queue, (struct weir_plane){device, 32, 64}, 32, 90, pattern, 16));
    EXPECT_OK(weir_queue_fill_2d(f->queue, (struct weir_plane){host, 0, 64}, 32, 90, pattern, 16));
    EXPECT_OK(weir_queue_copy_3d(f->queue, (struct weir_volume){host, 32, 64, 640},
                                 (struct weir_volume){device, 0, 64, 640}, 32, 8, 9));
    EXPECT_OK(weir_queue_copy_3d(f->queue, (struct weir_volume){back, 0, 64, 512},
                                 (struct weir_volume){host, 0, 64, 640}, 64, 8, 9));
    EXPECT_OK(weir_capture_node(f->queue, &node));
    EXPECT_OK(weir_queue_copy_3d(f->queue, (struct weir_volume){back, 0, 64, 512}, // nothing
                                 (struct weir_volume){host, 0, 64, 640}, 64, 8, 0));
    own_graph graph = conform_end(f->queue);
    EXPECT_UINT_EQ(node, weir_graph_node_count(graph) - 1);
    for (int i = 0; i < 3; i++) {
        conform_write(f->queue, device, 1);
        conform_write(f->queue, host, 2);
        conform_write(f->queue, back, 3);
        launch_and_sync(f->queue, graph);
        for (size_t byte = 0; byte < 9 * 512; byte++)
            ASSERT_UINT_EQ(conform_bytes(back)[byte],
                           byte % 64 < 32 ? byte % 16 + 1 : byte % 2 + 1);
        EXPECT_TRUE(conform_holds(f->queue, back, 9 * 512, SIZE - 9 * 512, 3, 9 * 512));
        for (size_t row = 0; row < 90; row++)
            for (size_t byte = 0; byte < 32; byte++)
                ASSERT_UINT_EQ(conform_bytes(host)[row * 64 + byte], byte % 16 + 1);
    }
    ASSERT_OK(weir_graph_set_copy(graph, node, back, 0, host, 0, 64)); // a row now
    conform_write(f->queue, back, 3);
    launch_and_sync(f->queue, graph);
    EXPECT_TRUE(conform_holds(f->queue, back, 64, SIZE - 64, 3, 64));
}
