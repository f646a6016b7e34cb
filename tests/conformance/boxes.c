// Copies of boxes (weir_queue_copy_3d) and fills of rows (weir_queue_fill_2d).
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/suite.h"

#define SIZE ((size_t)20000)

static weir_buffer *make(struct fixture *f, int on_host)
{
    return on_host ? conform_host_buffer(f, SIZE) : conform_device_buffer(f, SIZE);
}

struct size {
    size_t width;
    size_t height;
    size_t depth;
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

// Buffers of `to` and `from`, 1 for HOST, with a copy between them.
static void copy_box(struct fixture *f, weir_queue *queue, int to, int from, struct weir_volume dst,
                     struct weir_volume src, struct size size)
{
    dst.buffer = make(f, to);
    src.buffer = make(f, from);
    conform_write(queue, src.buffer, 5);
    conform_write(queue, dst.buffer, 6);
    EXPECT_OK(weir_queue_copy_3d(queue, dst, src, size.width, size.height, size.depth));
    EXPECT_TRUE(holds_box(queue, &dst, &src, &size));
    weir_buffer_destroy(&dst.buffer);
    weir_buffer_destroy(&src.buffer);
}

// Slice pitches that are multiples of the pitch, and such that are not; packed rows and slices;
// slices of one row, a single slice, and offsets of every kind.
CONFORM(Copy3D, AllPlacements)
{
    static const struct {
        struct weir_volume dst;
        struct weir_volume src;
        struct size size;
    } cases[] = {
        {{NULL, 7, 50, 500}, {NULL, 3, 40, 320}, {37, 8, 9}},
        {{NULL, 7, 50, 501}, {NULL, 3, 40, 321}, {37, 8, 9}},
        {{NULL, 0, 40, 320}, {NULL, 1000, 40, 320}, {40, 8, 9}},
        {{NULL, 0, 40, 320}, {NULL, 1000, 64, 512}, {40, 8, 9}},
        {{NULL, 131, 64, 640}, {NULL, 1000, 64, 512}, {33, 8, 20}},
        {{NULL, 5, 100, 100}, {NULL, 6, 90, 300}, {90, 1, 60}},
        {{NULL, 5, 100, 0}, {NULL, 6, 90, 1}, {90, 20, 1}},
        {{NULL, SIZE - (2 * 700 + 3 * 100 + 10), 100, 700}, {NULL, 0, 10, 40}, {10, 4, 3}},
    };
    own_queue queue = conform_queue(f, "q");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int kind = 0; kind < 4; kind++) {
            weir_test_note("case %zu, from %s to %s", i, kind & 1 ? "HOST" : "DEVICE",
                           kind & 2 ? "HOST" : "DEVICE");
            copy_box(f, queue, kind >> 1, kind & 1, cases[i].dst, cases[i].src, cases[i].size);
        }
}

// Boxes that lie side by side in one volume: rows, slices or bytes apart.
CONFORM(Copy3D, WithinOneBuffer)
{
    static const struct {
        size_t from;
        size_t to;
        struct size size;
    } cases[] = {
        {0, 50, {50, 10, 10}},           // beside each other in each row
        {0, 5 * 100, {100, 5, 10}},      // rows of each slice
        {0, 5 * 1000, {100, 10, 5}},     // slices
        {95, 5 + 300 + 2000, {5, 3, 4}}, // where rows end and begin again
    };
    own_queue queue = conform_queue(f, "q");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int on_host = 0; on_host < 2; on_host++) {
            struct weir_volume src = {make(f, on_host), cases[i].from, 100, 1000};
            const struct weir_volume dst = {src.buffer, cases[i].to, 100, 1000};
            const struct size *size = &cases[i].size;
            unsigned char before[SIZE];
            unsigned char after[SIZE];
            weir_test_note("case %zu, %s", i, on_host ? "HOST" : "DEVICE");
            conform_write(queue, src.buffer, 5);
            ASSERT_OK(weir_download(queue, before, src.buffer, 0, SIZE));
            ASSERT_OK(weir_queue_copy_3d(queue, dst, src, size->width, size->height, size->depth));
            ASSERT_OK(weir_download(queue, after, src.buffer, 0, SIZE));
            for (size_t z = 0; z < size->depth; z++)
                for (size_t y = 0; y < size->height; y++)
                    memcpy(before + dst.offset + z * 1000 + y * 100,
                           before + src.offset + z * 1000 + y * 100, size->width);
            EXPECT_INT_EQ(memcmp(before, after, SIZE), 0);
            weir_buffer_destroy(&src.buffer);
        }
}

CONFORM(Copy3D, Refusals)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer a = make(f, 0);
    own_buffer b = make(f, 1);
    const struct weir_volume dst = {a, 0, 100, 1000};
    const struct weir_volume src = {b, 0, 100, 1000};
    const struct weir_volume none = {NULL, 0, 100, 1000};
    const struct weir_volume narrow = {b, 0, 9, 1000};
    const struct weir_volume shallow = {b, 0, 100, 909};
    const struct weir_volume wide = {b, 0, SIZE_MAX / 2, SIZE_MAX};
    const struct weir_volume deep = {b, 0, 100, SIZE_MAX / 2};
    const struct weir_volume beyond = {b, SIZE_MAX, 100, 1000};
    const struct weir_volume last = {b, SIZE - 19909, 100, 1000};

    EXPECT_INVALID(weir_queue_copy_3d(NULL, dst, src, 10, 10, 10), "queue");
    EXPECT_INVALID(weir_queue_copy_3d(queue, none, src, 10, 10, 10), "dst is no buffer");
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, none, 10, 10, 10), "src is no buffer");
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, narrow, 10, 10, 10), "pitch of src, 9");
    EXPECT_INVALID(weir_queue_copy_3d(queue, narrow, src, 10, 10, 10), "pitch of dst, 9");
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, shallow, 10, 10, 10),
                   "slice pitch of src, 909, is below the 910 bytes");
    EXPECT_INVALID(weir_queue_copy_3d(queue, shallow, src, 10, 10, 10), "slice pitch of dst, 909");
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, wide, 10, 10, 10), "src:");
    EXPECT_INVALID(weir_queue_copy_3d(queue, deep, src, 10, 10, 10), "dst:");
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, beyond, 10, 10, 10), "src:");
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, src, 10, 10, SIZE_MAX), "do not lie in");
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, src, 10, SIZE_MAX, 1), "do not lie in");
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, last, 10, 10, 20), "src: 19910 bytes");
    EXPECT_SYNC(queue);
}

// A volume of the buffer, `bytes` from the first.
static struct weir_volume shifted(weir_buffer *buffer, size_t bytes)
{
    return (struct weir_volume){buffer, bytes, 100, 1000};
}

CONFORM(Copy3D, Overlaps)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer a = make(f, 0);
    const struct weir_volume dst = shifted(a, 0);
    const struct weir_volume uneven = {a, 500, 100, 1010};
    const struct weir_volume other_pitch = {a, 500, 90, 1000};
    const struct weir_volume odd = {a, 0, 100, 1010};
    const struct weir_volume odd_too = {a, 550, 100, 1010};

    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, dst, 10, 4, 5), "overlap");
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, shifted(a, 9), 10, 4, 5), "overlap");
    EXPECT_OK(weir_queue_copy_3d(queue, dst, shifted(a, 10), 10, 4, 5));
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, shifted(a, 300), 10, 4, 5), "overlap");
    EXPECT_OK(weir_queue_copy_3d(queue, dst, shifted(a, 400), 10, 4, 5));
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, shifted(a, 4000), 10, 4, 5), "overlap");
    EXPECT_OK(weir_queue_copy_3d(queue, dst, shifted(a, 5000), 10, 4, 5));
    // The next row begins with the last bytes of this one, the next slice with its last rows.
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, shifted(a, 91), 10, 4, 5), "overlap");
    EXPECT_OK(weir_queue_copy_3d(queue, dst, shifted(a, 90), 10, 1, 5));
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, shifted(a, 700), 10, 4, 5), "overlap");
    EXPECT_OK(weir_queue_copy_3d(queue, dst, shifted(a, 600), 10, 4, 5));
    // The same the other way round.
    EXPECT_INVALID(weir_queue_copy_3d(queue, shifted(a, 700), dst, 10, 4, 5), "overlap");
    // Pitches that differ, and slices that do not begin with a row.
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, uneven, 10, 4, 5), "overlap");
    EXPECT_INVALID(weir_queue_copy_3d(queue, dst, other_pitch, 10, 4, 5), "overlap");
    EXPECT_INVALID(weir_queue_copy_3d(queue, odd, odd_too, 10, 4, 5), "overlap");
    // One slice is a plane.
    EXPECT_OK(weir_queue_copy_3d(queue, (struct weir_volume){a, 0, 100, 0},
                                 (struct weir_volume){a, 50, 100, 0}, 50, 100, 1));
    EXPECT_INVALID(weir_queue_copy_3d(queue, (struct weir_volume){a, 0, 100, 0},
                                      (struct weir_volume){a, 49, 100, 0}, 50, 100, 1),
                   "overlap");
    EXPECT_SYNC(queue);
}

CONFORM(Copy3D, ZeroSize)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer a = make(f, 0);
    own_buffer b = make(f, 1);
    const struct weir_volume dst = {a, SIZE, 0, 0};
    const struct weir_volume src = {b, 0, 100, 0};

    conform_write(queue, a, 4);
    EXPECT_OK(weir_queue_copy_3d(queue, dst, src, 0, 5, 5));
    EXPECT_OK(weir_queue_copy_3d(queue, src, src, 10, 0, 5));
    EXPECT_OK(weir_queue_copy_3d(queue, src, src, 10, 5, 0));
    EXPECT_OK(weir_queue_fill_2d(queue, (struct weir_plane){a, SIZE, 0}, 0, 5, "a", 1));
    EXPECT_OK(weir_queue_fill_2d(queue, (struct weir_plane){a, 0, 10}, 10, 0, "a", 1));
    EXPECT_TRUE(conform_holds(queue, a, 0, SIZE, 4, 0));
}

// Fills.

static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const unsigned char repeated[16] = {9, 8, 7, 6, 9, 8, 7, 6, 9, 8, 7, 6, 9, 8, 7, 6};

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
    EXPECT_OK(weir_queue_fill_2d(queue, dst, width, height, with, size));
    EXPECT_OK(weir_download(queue, bytes, dst.buffer, 0, SIZE));
    EXPECT_INT_EQ(memcmp(bytes, wanted, SIZE), 0);
}

// Rows with gaps, which stay as they were, and without; one row, two, and a number that is no power
// of two.
CONFORM(Fill2D, EveryPatternSize)
{
    own_queue queue = conform_queue(f, "q");
    weir_buffer *buffers[] = {make(f, 0), make(f, 1)};
    for (size_t size = 1; size <= 16; size *= 2)
        for (int kind = 0; kind < 4; kind++) {
            weir_buffer *buffer = buffers[kind & 1];
            const unsigned char *with = kind & 2 ? repeated : pattern;
            weir_test_note("a pattern of %zu bytes, %s", size, kind & 1 ? "HOST" : "DEVICE");
            fill_rows(queue, (struct weir_plane){buffer, 5 * size, 13 * size}, 9 * size, 77, with,
                      size);
            fill_rows(queue, (struct weir_plane){buffer, 0, 16 * size}, 16 * size, 64, with, size);
            fill_rows(queue, (struct weir_plane){buffer, 48, SIZE_MAX}, 8 * size, 1, with, size);
            fill_rows(queue, (struct weir_plane){buffer, 16, 640}, 320, 2, with, size);
        }
    weir_test_note(NULL);
    weir_buffer_destroy(&buffers[0]);
    weir_buffer_destroy(&buffers[1]);
}

// Wrapped memory at an address that is no multiple of the pattern's size.
CONFORM(Fill2D, MisalignedMemory)
{
    static _Alignas(64) unsigned char memory[SIZE + 1];
    own_queue queue = conform_queue(f, "q");
    weir_buffer *buffer = NULL;

    ASSERT_OK(weir_buffer_wrap(f->device,
                               WEIR_PARAMS(weir_wrap, .pointer = memory + 1, .size = SIZE),
                               &buffer));
    for (size_t size = 1; size <= 16; size *= 2)
        fill_rows(queue, (struct weir_plane){buffer, 5 * size, 13 * size}, 9 * size, 77, pattern,
                  size);
    weir_buffer_destroy(&buffer);
    EXPECT_OK(weir_device_trim(f->device));
}

CONFORM(Fill2D, Refusals)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer a = make(f, 0);
    const struct weir_plane dst = {a, 0, 100};
    const struct weir_plane none = {NULL, 0, 100};
    const struct weir_plane narrow = {a, 0, 8};
    const struct weir_plane odd = {a, 0, 102};
    const struct weir_plane askew = {a, 2, 100};
    const struct weir_plane wide = {a, 0, SIZE_MAX / 4 * 4};

    EXPECT_INVALID(weir_queue_fill_2d(NULL, dst, 12, 10, pattern, 4), "queue");
    EXPECT_INVALID(weir_queue_fill_2d(queue, none, 12, 10, pattern, 4), "dst is no buffer");
    EXPECT_INVALID(weir_queue_fill_2d(queue, dst, 12, 10, NULL, 4), "pattern");
    EXPECT_INVALID(weir_queue_fill_2d(queue, dst, 12, 10, pattern, 3),
                   "fill_2d: a pattern has 1, 2, 4, 8 or 16 bytes, not 3");
    EXPECT_INVALID(weir_queue_fill_2d(queue, narrow, 12, 10, pattern, 4), "pitch of dst, 8");
    EXPECT_INVALID(weir_queue_fill_2d(queue, odd, 12, 10, pattern, 4),
                   "pitch 102 and width 12 must be multiples of the pattern's 4 bytes");
    EXPECT_INVALID(weir_queue_fill_2d(queue, askew, 12, 10, pattern, 4), "offset 2");
    EXPECT_INVALID(weir_queue_fill_2d(queue, dst, 14, 10, pattern, 4), "width 14");
    EXPECT_INVALID(weir_queue_fill_2d(queue, dst, 12, SIZE, pattern, 4), "do not lie in");
    EXPECT_INVALID(weir_queue_fill_2d(queue, wide, 12, 10, pattern, 4), "do not lie in");
    EXPECT_OK(weir_queue_fill_2d(queue, odd, 12, 1, pattern, 4)); // a row has no pitch
    EXPECT_SYNC(queue);
}

// The pattern is read before the call returns, also if the queue is held.
CONFORM(Fill2D, HeldFillKeepsItsPattern)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer a = make(f, 0);
    own_buffer b = make(f, 1);
    own_gate gate = gate_create();
    unsigned char mine[4] = {1, 2, 3, 4};

    conform_write(queue, a, 6);
    ASSERT_OK(weir_queue_host_call(queue, gate_function, gate));
    ASSERT_OK(weir_queue_fill_2d(queue, (struct weir_plane){a, 0, 8}, 4, 100, mine, 4));
    ASSERT_OK(weir_queue_copy_3d(queue, (struct weir_volume){b, 0, 4, 40},
                                 (struct weir_volume){a, 0, 8, 80}, 4, 10, 10));
    memset(mine, 0, sizeof mine);
    gate_open(gate);
    ASSERT_SYNC(queue);
    for (size_t i = 0; i < 400; i++)
        ASSERT_UINT_EQ(conform_bytes(b)[i], i % 4 + 1);
}

// In a graph, with every way that a backend has to make them.
CONFORM(Graph, BoxesAndRows)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer device = make(f, 0);
    own_buffer host = make(f, 1);
    own_buffer back = make(f, 1);
    own_graph graph = NULL;
    uint32_t node = 0;

    ASSERT_OK(weir_capture_begin(queue));
    EXPECT_OK(weir_queue_fill_2d(queue, (struct weir_plane){device, 0, 64}, 32, 90, pattern, 2));
    EXPECT_OK(weir_queue_fill_2d(queue, (struct weir_plane){device, 32, 64}, 32, 90, pattern, 16));
    EXPECT_OK(weir_queue_fill_2d(queue, (struct weir_plane){host, 0, 64}, 32, 90, pattern, 16));
    EXPECT_OK(weir_queue_copy_3d(queue, (struct weir_volume){host, 32, 64, 640},
                                 (struct weir_volume){device, 0, 64, 640}, 32, 8, 9));
    EXPECT_OK(weir_queue_copy_3d(queue, (struct weir_volume){back, 0, 64, 512},
                                 (struct weir_volume){host, 0, 64, 640}, 64, 8, 9));
    EXPECT_OK(weir_capture_node(queue, &node));
    EXPECT_OK(weir_queue_copy_3d(queue, (struct weir_volume){back, 0, 64, 512}, // nothing
                                 (struct weir_volume){host, 0, 64, 640}, 64, 8, 0));
    ASSERT_OK(weir_capture_end(queue, NULL, &graph));
    EXPECT_UINT_EQ(node, weir_graph_node_count(graph) - 1);
    for (int i = 0; i < 3; i++) {
        conform_write(queue, device, 1);
        conform_write(queue, host, 2);
        conform_write(queue, back, 3);
        launch_and_sync(queue, graph);
        for (size_t byte = 0; byte < 9 * 512; byte++)
            ASSERT_UINT_EQ(conform_bytes(back)[byte],
                           byte % 64 < 32 ? byte % 16 + 1 : byte % 2 + 1);
        EXPECT_TRUE(conform_holds(queue, back, 9 * 512, SIZE - 9 * 512, 3, 9 * 512));
        for (size_t row = 0; row < 90; row++)
            for (size_t byte = 0; byte < 32; byte++)
                ASSERT_UINT_EQ(conform_bytes(host)[row * 64 + byte], byte % 16 + 1);
    }
    EXPECT_INVALID(weir_graph_set_copy(graph, node, back, 0, host, 0, 64), "is a copy_");
}

CONFORM(FailedOperation, RefusesBoxesAndRows)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer a = make(f, 0);
    const struct weir_volume to = {a, 0, 16, 64};
    const struct weir_volume from = {a, 1000, 16, 64};

    conform_fail(queue);
    for (int round = 0; round < 2; round++) {
        const weir_status want = round == 0 ? WEIR_ERROR_HOST_CALL : WEIR_OK;
        EXPECT_INT_EQ(weir_queue_copy_3d(queue, to, from, 8, 3, 3), want);
        EXPECT_INT_EQ(weir_queue_fill_2d(queue, (struct weir_plane){a, 0, 16}, 8, 3, pattern, 8),
                      want);
        EXPECT_OK(weir_queue_recover(queue));
    }
}

CONFORM(Forked, BoxesAndRowsAreErrors)
{
    own_queue queue = conform_queue(f, "q");
    own_buffer a = make(f, 0);
    const struct weir_volume to = {a, 0, 16, 64};
    const struct weir_volume from = {a, 1000, 16, 64};
    int status = -1;

    const pid_t child = fork();
    if (child == 0)
        _exit((weir_queue_copy_3d(queue, to, from, 8, 3, 3) != WEIR_ERROR_FORKED) +
              (weir_queue_fill_2d(queue, (struct weir_plane){a, 0, 16}, 8, 3, pattern, 8) !=
               WEIR_ERROR_FORKED));
    ASSERT_INT_GT(child, 0);
    ASSERT_INT_EQ(waitpid(child, &status, 0), child);
    EXPECT_INT_EQ(status, 0);
}
