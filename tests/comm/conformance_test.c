// Collectives through the front end on real backends: the matrix with 2 and 4 ranks of this process. The
// environment names the backend.
#include <string.h>

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
    (void)user;
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

static void open_ranks(uint32_t count, weir_placement placement)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .size = BUFFER,
                                              .placement = placement};
    comm_rig_open(&all.rig, "", count, placement);
    for (uint32_t rank = 0; rank < count; rank++) {
        ASSERT_OK(weir_buffer_create(all.rig.devices[rank], &params, &all.src[rank]));
        ASSERT_OK(weir_buffer_create(all.rig.devices[rank], &params, &all.dst[rank]));
    }
}

static void close_ranks(void)
{
    for (uint32_t rank = 0; rank < COMM_RIG_MOST; rank++) {
        weir_buffer_destroy(&all.src[rank]);
        weir_buffer_destroy(&all.dst[rank]);
    }
    comm_rig_close(&all.rig);
}

WEIR_TEST(CommConformance, MatrixOfOne)
{
    open_ranks(1, WEIR_PLACE_DEVICE);
    matrix_each(1, run, NULL);
    close_ranks();
}

WEIR_TEST(CommConformance, MatrixOfTwo)
{
    open_ranks(2, WEIR_PLACE_DEVICE);
    matrix_each(2, run, NULL);
    close_ranks();
}

WEIR_TEST(CommConformance, MatrixOfTwoInHostMemory)
{
    open_ranks(2, WEIR_PLACE_HOST);
    matrix_each(2, run, NULL);
    close_ranks();
}

WEIR_TEST(CommConformance, MatrixOfFour)
{
    open_ranks(4, WEIR_PLACE_DEVICE);
    matrix_each(4, run, NULL);
    close_ranks();
}

// The transport's sentence about two ranks that differ comes through to both queues.
WEIR_TEST(CommConformance, RanksThatDiffer)
{
    open_ranks(2, WEIR_PLACE_DEVICE);
    const struct comm_rig *rig = &all.rig;
    EXPECT_OK(weir_queue_barrier(rig->queues[0], rig->comms[0]));
    EXPECT_OK(weir_queue_broadcast(rig->queues[1], rig->comms[1], all.dst[1], 0, all.src[1], 0, 5,
                                   WEIR_F32, 1));
    for (uint32_t rank = 0; rank < 2; rank++) {
        COMM_RIG_EXPECT_CAUSE(rig->queues[rank], "'grads'", "barrier", "broadcast",
                              "conformance_test.c:");
        EXPECT_INT_EQ(weir_comm_error(rig->comms[rank]), WEIR_ERROR_COMM);
    }
    close_ranks();
}

// The same inputs give the same bits again.
WEIR_TEST(CommConformance, SameBitsAgain)
{
    static char first[1000 * 2];
    const struct matrix_case it = {WEIR_ALL_REDUCE, WEIR_F16, WEIR_PRODUCT, 1000, false, 4};
    for (int again = 0; again < 3; again++) {
        open_ranks(4, WEIR_PLACE_DEVICE);
        run(NULL, &it);
        if (again)
            EXPECT_INT_EQ(memcmp(first, all.got[0], sizeof first), 0);
        memcpy(first, all.got[0], sizeof first);
        close_ranks();
    }
}
