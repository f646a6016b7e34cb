// Calls that are refused: each with a sentence, and with nothing submitted.

#include "tests/comm/rig.h"

// One wrong call of rank 0 of two, and words of its message.
struct wrong {
    struct weir_collective_params params;
    const char *words[2];
};

static void expect_refused(struct comm_rig *rig, const struct wrong *wrong)
{
    EXPECT_INT_EQ(weir_queue_collective(rig->queues[0], rig->comms[0], &wrong->params),
                  WEIR_ERROR_INVALID);
    comm_rig_expect_words(wrong->words, wrong->words[1] ? 2 : 1);
    EXPECT_ERROR("invalid_test.c:");
}

#define PARAMS(kind_, ...)                                                                 \
    {                                                                                      \
        .struct_size = sizeof(struct weir_collective_params), .kind = (kind_), __VA_ARGS__ \
    }

COMM_FAKE_TEST(CommInvalid, Operands, "", 2)
{
    weir_buffer *dst = rig->dst[0];
    weir_buffer *src = rig->src[0];
    const struct wrong all[] = {
        {PARAMS(0, .count = 1), {"there is no collective 0", "pass one of weir_collective"}},
        {PARAMS(13, .count = 1), {"there is no collective 13"}},
        {PARAMS(WEIR_ALL_REDUCE, .element = WEIR_F32, .dst = dst, .src = src),
         {"all-reduce: there is no reduction 0"}},
        {PARAMS(WEIR_ALL_REDUCE, .reduction = WEIR_SUM, .dst = dst, .src = src),
         {"all-reduce: there is no datatype 0"}},
        {PARAMS(WEIR_BROADCAST, .element = WEIR_F32, .root = 2, .dst = dst, .src = src),
         {"broadcast: there is no rank 2, the communicator has 2"}},
        {PARAMS(WEIR_SEND, .element = WEIR_F32, .root = 0, .src = src),
         {"send: rank 0 cannot send to itself", "weir_queue_copy()"}},
        {PARAMS(WEIR_ALL_GATHER, .element = WEIR_F32, .dst = dst),
         {"all-gather: src is no buffer (NULL)"}},
        {PARAMS(WEIR_ALL_GATHER, .element = WEIR_F32, .src = src),
         {"all-gather: dst is no buffer (NULL)"}},
        {PARAMS(WEIR_ALL_GATHER, .element = WEIR_F32, .src = src, .dst = dst, .count = 513),
         {"dst", "4096"}},
        {PARAMS(WEIR_ALL_GATHER, .element = WEIR_F32, .src = src, .dst = dst, .src_offset = 4096,
                .count = 1),
         {"src", "4096"}},
        {PARAMS(WEIR_ALL_GATHER, .element = WEIR_F64, .src = src, .dst = dst, .src_offset = 4,
                .count = 1),
         {"all-gather: the offset of src, 4, is no multiple of the 8 bytes of an f64"}},
        {PARAMS(WEIR_ALL_GATHER, .element = WEIR_F64, .src = src, .dst = dst,
                .count = SIZE_MAX / 16 + 1),
         {"all-gather: 1152921504606846976 f64 of each of 2 ranks are more than",
          "split the collective"}},
        {PARAMS(WEIR_ALL_REDUCE, .element = WEIR_F32, .reduction = WEIR_SUM, .src = src, .dst = src,
                .count = SIZE_MAX / 2),
         {"all-reduce: 9223372036854775807 f32 of each of 2 ranks are more than",
          "split the collective"}},
        {PARAMS(WEIR_ALL_REDUCE, .element = WEIR_F32, .reduction = WEIR_SUM, .src = src, .dst = src,
                .dst_offset = 4, .count = 2),
         {"all-reduce: src, 8 bytes at 0, and dst, 8 bytes at 4, of one buffer overlap",
          "separate ranges"}},
        {PARAMS(WEIR_ALL_GATHER, .element = WEIR_F32, .src = src, .dst = src, .src_offset = 8,
                .count = 2), // part 1, and this is rank 0
         {"all-gather: src, 8 bytes at 8, and dst, 16 bytes at 0, of one buffer overlap"}},
        {PARAMS(WEIR_EXCHANGE, .exchange_count = 2),
         {"exchange: 2 parts, and no array of them (NULL)"}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        expect_refused(rig, &all[i]);
    EXPECT_OK(weir_queue_sync(rig->queues[0], WEIR_FOREVER));
    EXPECT_OK(weir_comm_error(rig->comms[0]));
}

static void expect_refused_parts(struct comm_rig *rig, const struct weir_exchange *parts,
                                 uint32_t count, const char *words)
{
    EXPECT_FAILURE(weir_queue_exchange(rig->queues[0], rig->comms[0], parts, count),
                   WEIR_ERROR_INVALID, words);
}

COMM_FAKE_TEST(CommInvalid, Exchanges, "", 2)
{
    weir_buffer *src = rig->src[0];
    struct weir_exchange parts[] = {
        {src, 0, 4, WEIR_F32, 1, false},
        {src, 8, 4, WEIR_F32, 1, true},
    };
    expect_refused_parts(rig, parts, 2,
                         "exchange: parts 0 and 1 overlap, and one of them is received");
    parts[1].peer = 0;
    expect_refused_parts(rig, parts, 2, "exchange: rank 0 cannot send to itself");
    parts[1].peer = 7;
    expect_refused_parts(rig, parts, 2, "exchange: there is no rank 7");
    parts[1] = (struct weir_exchange){NULL, 8, 4, WEIR_F32, 1, true};
    expect_refused_parts(rig, parts, 2, "exchange: part 1 is no buffer (NULL)");
    parts[1] = (struct weir_exchange){src, 8, 4, 77, 1, true};
    expect_refused_parts(rig, parts, 2, "exchange: there is no datatype 77");
    parts[1] = (struct weir_exchange){src, 8, SIZE_MAX / 2, WEIR_F32, 1, true};
    expect_refused_parts(rig, parts, 2, "exchange: 9223372036854775807 f32 are more than");
    parts[1] = (struct weir_exchange){src, 8, 4096, WEIR_F32, 1, true};
    expect_refused_parts(rig, parts, 2, "part 1");
}

// A second device of the same backend, with a queue and a buffer.
COMM_FAKE_TEST(CommInvalid, AnotherDevice, "", 1)
{
    own_device other = NULL;
    own_queue queue = NULL;
    own_buffer buffer = NULL;
    ASSERT_OK(weir_device_open(rig->runtime, NULL, &other));
    ASSERT_OK(weir_queue_create(other, NULL, &queue));
    ASSERT_OK(weir_buffer_create(other, WEIR_PARAMS(weir_buffer, .size = 64), &buffer));
    EXPECT_FAILURE(weir_queue_barrier(queue, rig->comms[0]), WEIR_ERROR_INVALID, "barrier: queue",
                   "belongs to another device than the communicator");
    EXPECT_FAILURE(weir_queue_all_gather(rig->queues[0], rig->comms[0], buffer, 0, rig->src[0], 0,
                                         1, WEIR_F32),
                   WEIR_ERROR_INVALID, "all-gather: dst belongs to device",
                   "the communicator's device");
}

COMM_FAKE_TEST(CommInvalid, Null, "", 1)
{
    own_comm comm = NULL;
    weir_device *const none[] = {NULL};
    EXPECT_INT_EQ(weir_comm_create(NULL, NULL, &comm), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_comm_create(rig->device, NULL, NULL), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_comm_create_all(NULL, 1, NULL, &comm), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_comm_create_all(&rig->device, 0, NULL, &comm), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_comm_create_all(&rig->device, 1, NULL, NULL), WEIR_ERROR_INVALID);
    EXPECT_FAILURE(weir_comm_create_all(none, 1, NULL, &comm), WEIR_ERROR_INVALID,
                   "weir_comm_create_all: device 0 is NULL");
    EXPECT_INT_EQ(weir_comm_split(NULL, 0, 0, NULL, &comm), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_comm_split(rig->comms[0], -2, 0, NULL, &comm), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_comm_split(rig->comms[0], 0, 0, NULL, NULL), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_comm_abort(NULL, "why"), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_comm_abort(rig->comms[0], NULL), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_comm_error(NULL), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_queue_barrier(NULL, rig->comms[0]), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_queue_barrier(rig->queues[0], NULL), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_queue_collective(rig->queues[0], rig->comms[0], NULL), WEIR_ERROR_INVALID);
    EXPECT_UINT_EQ(weir_comm_rank(NULL) + weir_comm_count(NULL), 0);
    EXPECT_STR_EQ(weir_comm_label(NULL), "");
    EXPECT_TRUE(weir_comm_device(NULL) == NULL);
    weir_comm_destroy(NULL);
}

// The transport fake lacks the function, as `mpi` does.
COMM_FAKE_TEST(CommInvalid, ATransportThatCannotShrink, "", 1)
{
    weir_comm *left;
    EXPECT_FAILURE(weir_comm_shrink(rig->comms[0], NULL, &left), WEIR_ERROR_UNSUPPORTED,
                   "weir_comm_shrink: the transport", "create another communicator");
    EXPECT_OK(weir_comm_error(rig->comms[0]));
}
