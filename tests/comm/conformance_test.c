// Collectives through the front end on real backends: the matrix with 1 to 4 ranks of this process. The
// environment names the backend.

#include "tests/comm/matrix.h"
#include "tests/comm/rig.h"

#define BUFFER (COMM_RIG_MOST * MATRIX_BYTES)

static struct {
    struct comm_rig rig;
    weir_buffer *src[COMM_RIG_MOST];
    weir_buffer *dst[COMM_RIG_MOST];
    char sent[COMM_RIG_MOST][BUFFER];
    char got[COMM_RIG_MOST][BUFFER];
} all;

static size_t offset_of(size_t (*range)(const struct matrix_case *, uint32_t, size_t *),
                        const struct matrix_case *it, uint32_t rank, size_t *out_size)
{
    size_t offset;
    *out_size = range(it, rank, &offset);
    return offset;
}

static void submit(const struct matrix_case *it, uint32_t rank)
{
    size_t read;
    size_t written;
    const struct weir_collective_params params = {
        .struct_size = sizeof params,
        .kind = it->kind,
        .element = it->element,
        .reduction = it->reduction,
        .root = matrix_root(it),
        .src = all.src[rank],
        .src_offset = offset_of(matrix_read, it, rank, &read),
        .dst = it->in_place ? all.src[rank] : all.dst[rank],
        .dst_offset = offset_of(matrix_written, it, rank, &written),
        .count = it->count,
    };
    weir_queue *queue = all.rig.queues[rank];
    matrix_fill(it, rank, all.sent[rank]);
    EXPECT_OK(weir_upload(queue, all.src[rank], params.src_offset, all.sent[rank], read));
    EXPECT_OK(weir_queue_collective(queue, all.rig.comms[rank], &params));
}

static void fetch(const struct matrix_case *it, uint32_t rank)
{
    size_t size;
    const size_t offset = offset_of(matrix_written, it, rank, &size);
    EXPECT_OK(weir_download(all.rig.queues[rank], all.got[rank],
                            it->in_place ? all.src[rank] : all.dst[rank], offset, size));
}

static bool run(void *user, const struct matrix_case *it)
{
    char text[256] = "";
    size_t offset;
    for (uint32_t rank = 0; rank < it->ranks; rank++)
        submit(it, rank);
    for (uint32_t rank = 0; rank < it->ranks; rank++) {
        fetch(it, rank);
        if (weir_comm_error(all.rig.comms[rank]) < 0)
            EXPECT_STR_EQ(weir_last_error_text(), "");
        if (!matrix_check(it, rank, all.got[rank], text, sizeof text)) {
            EXPECT_STR_EQ(text, "");
            return false;
        }
        if (matrix_is_equal(it))
            EXPECT_INT_EQ(memcmp(all.got[0], all.got[rank], matrix_written(it, rank, &offset)), 0);
    }
    return true;
}

// The matrix of so many ranks.
static void run_matrix(uint32_t count, weir_placement placement)
{
    comm_rig_open(&all.rig, "", count, placement);
    for (uint32_t rank = 0; rank < count; rank++) {
        all.src[rank] = test_buffer(all.rig.devices[rank], "src", BUFFER, placement);
        all.dst[rank] = test_buffer(all.rig.devices[rank], "dst", BUFFER, placement);
    }
    if (!weir_test_has_failed())
        matrix_each(count, run, NULL);
    for (uint32_t rank = 0; rank < COMM_RIG_MOST; rank++) {
        weir_buffer_destroy(&all.src[rank]);
        weir_buffer_destroy(&all.dst[rank]);
    }
    comm_rig_close(&all.rig);
}

#define MATRIX_TEST(name, count, placement) \
    WEIR_TEST(CommConformance, name)        \
    {                                       \
        run_matrix(count, placement);       \
    }
MATRIX_TEST(MatrixOfOne, 1, WEIR_PLACE_DEVICE)
MATRIX_TEST(MatrixOfTwo, 2, WEIR_PLACE_DEVICE)
MATRIX_TEST(MatrixOfTwoInHostMemory, 2, WEIR_PLACE_HOST)
MATRIX_TEST(MatrixOfThreeInHostMemory, 3, WEIR_PLACE_HOST)
MATRIX_TEST(MatrixOfFour, 4, WEIR_PLACE_DEVICE)

// A rank that reads or writes nothing has no buffer for that, and ranges need not begin where their buffers do.
COMM_RIG_TEST(CommConformance, WithoutABuffer, 2)
{
    for (uint32_t r = 0; r < 2; r++) {
        const int32_t first = 10 * (int32_t)r;
        weir_queue *queue = rig->queues[r];
        weir_comm *comm = rig->comms[r];
        weir_buffer *src = r ? rig->src[r] : NULL; // of the root
        weir_buffer *dst = r ? rig->dst[r] : NULL;
        comm_rig_write(rig, r, rig->src[r], 0, (const int32_t[]){first, first + 1, first + 2}, 3);
        comm_rig_write(rig, r, rig->dst[r], 0, (const int32_t[]){-1, -2}, 2);
        EXPECT_OK(weir_queue_reduce(queue, comm, dst, 4, rig->src[r], 4, 2, WEIR_I32, WEIR_SUM, 1));
        EXPECT_OK(weir_queue_broadcast(queue, comm, rig->dst[r], 32, src, 4, 2, WEIR_I32, 1));
        EXPECT_OK(weir_queue_gather(queue, comm, dst, 64, rig->src[r], 0, 2, WEIR_I32, 1));
        EXPECT_OK(weir_queue_scatter(queue, comm, rig->dst[r], 96, src, 4, 1, WEIR_I32, 1));
    }
    comm_rig_expect(rig, 0, rig->dst[0], 0, (const int32_t[]){-1, -2}, 2);
    comm_rig_expect(rig, 1, rig->dst[1], 0, (const int32_t[]){-1, 12, 14}, 3);
    comm_rig_expect(rig, 1, rig->dst[1], 16, (const int32_t[]){0, 1, 10, 11}, 4);
    for (uint32_t r = 0; r < 2; r++) {
        comm_rig_expect(rig, r, rig->dst[r], 8, (const int32_t[]){11, 12}, 2);
        comm_rig_expect(rig, r, rig->dst[r], 24, (const int32_t[]){11 + (int32_t)r}, 1);
    }
}

// Messages: a pair, and a ring in which each rank sends to the next. All parts are in one call, so that no rank waits
// for another.
COMM_RIG_TEST(CommConformance, Messages, 4)
{
    for (uint32_t r = 0; r < 4; r++) {
        const int32_t first = 10 * (int32_t)r;
        const struct weir_exchange parts[] = {
            {rig->dst[r], 4, 2, WEIR_I32, (r + 3) % 4, true},
            {rig->src[r], 0, 2, WEIR_I32, (r + 1) % 4, false},
        };
        comm_rig_write(rig, r, rig->src[r], 0, (const int32_t[]){first, first + 1, first + 2}, 3);
        EXPECT_OK(weir_queue_exchange(rig->queues[r], rig->comms[r], parts, 2));
    }
    EXPECT_OK(weir_queue_send(rig->queues[1], rig->comms[1], rig->src[1], 4, 2, WEIR_I32, 0));
    EXPECT_OK(weir_queue_recv(rig->queues[0], rig->comms[0], rig->dst[0], 32, 2, WEIR_I32, 1));
    comm_rig_expect(rig, 0, rig->dst[0], 8, (const int32_t[]){11, 12}, 2);
    for (uint32_t r = 0; r < 4; r++) {
        const int32_t from = (int32_t)((r + 3) % 4) * 10;
        comm_rig_expect(rig, r, rig->dst[r], 1, (const int32_t[]){from, from + 1}, 2);
    }
}
