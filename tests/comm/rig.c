#include "tests/comm/rig.h"

#include "base/clock.h"

// Rank i has device i, of as many as there are.
static void open_devices(struct comm_rig *rig)
{
    const char *text = getenv("WEIR_TEST_COMM_DEVICES");
    const unsigned long given = text ? strtoul(text, NULL, 10) : 1;
    const uint32_t device_count = given ? (uint32_t)given : 1;
    for (uint32_t rank = 0; rank < COMM_RIG_MOST; rank++) {
        char index[16];
        snprintf(index, sizeof index, "%u", rank);
        if (rank < device_count)
            ASSERT_OK(weir_device_open(rig->runtime,
                                       WEIR_PARAMS(weir_device, .select = text ? index : NULL),
                                       &rig->devices[rank]));
        else
            rig->devices[rank] = rig->devices[rank % device_count];
    }
    rig->device = rig->devices[0];
}

static void open_ranks(struct comm_rig *rig, const char *more, uint32_t count,
                       weir_placement placement)
{
    *rig = (struct comm_rig){.count = count};
    ASSERT_OK(weir_open(WEIR_PARAMS(weir_open, .config_text = more), &rig->runtime));
    open_devices(rig);
    for (uint32_t rank = 0; rank < count; rank++) {
        weir_device *device = rig->devices[rank];
        ASSERT_OK(weir_queue_create(device, NULL, &rig->queues[rank]));
        rig->src[rank] = test_buffer(device, "src", COMM_RIG_BYTES, placement);
        rig->dst[rank] = test_buffer(device, "dst", COMM_RIG_BYTES, placement);
    }
}

void comm_rig_open_ranks(struct comm_rig *rig, const char *more, uint32_t count)
{
    open_ranks(rig, more, count, WEIR_PLACE_DEVICE);
}

void comm_rig_open(struct comm_rig *rig, const char *more, uint32_t count, weir_placement placement)
{
    open_ranks(rig, more, count, placement);
    if (count)
        ASSERT_OK(weir_comm_create_all(rig->devices, count,
                                       WEIR_PARAMS(weir_comm, .label = "grads",
                                                   .timeout_ns = 20u * 1000000000ull),
                                       rig->comms));
}

void comm_rig_open_fake(struct comm_rig *rig, const char *more, uint32_t count,
                        weir_placement placement)
{
    char text[256];
    snprintf(text, sizeof text, "[comm]\ntransport = fake\n[fake]\n%s\n", more);
    comm_rig_open(rig, text, count, placement);
}

// Whether no earlier rank has the same device.
static bool is_first(const struct comm_rig *rig, uint32_t rank)
{
    for (uint32_t i = 0; i < rank; i++)
        if (rig->devices[i] == rig->devices[rank])
            return false;
    return true;
}

void comm_rig_close(struct comm_rig *rig)
{
    for (uint32_t rank = 0; rank < COMM_RIG_MOST; rank++) {
        weir_graph_destroy(&rig->graphs[rank]);
        weir_queue_destroy(&rig->others[rank]);
        weir_comm_destroy(&rig->copies[rank]);
        weir_comm_destroy(&rig->comms[rank]);
        weir_queue_destroy(&rig->queues[rank]);
        weir_buffer_destroy(&rig->src[rank]);
        weir_buffer_destroy(&rig->dst[rank]);
    }
    for (uint32_t rank = COMM_RIG_MOST; rank-- > 0;)
        if (is_first(rig, rank))
            EXPECT_OK(weir_device_close(&rig->devices[rank]));
    rig->device = NULL;
    EXPECT_OK(weir_close(&rig->runtime));
}

void comm_rig_open_others(struct comm_rig *rig)
{
    for (uint32_t rank = 0; rank < rig->count; rank++)
        ASSERT_OK(weir_queue_create(rig->devices[rank], NULL, &rig->others[rank]));
}

void comm_rig_launch(struct comm_rig *rig)
{
    for (uint32_t rank = 0; rank < rig->count; rank++)
        EXPECT_OK(weir_queue_graph(rig->queues[rank], rig->graphs[rank]));
}

void comm_rig_sync(struct comm_rig *rig, uint64_t timeout_ns)
{
    for (uint32_t rank = 0; rank < rig->count; rank++)
        EXPECT_OK(weir_queue_sync(rig->queues[rank], timeout_ns));
}

void comm_rig_write(struct comm_rig *rig, uint32_t rank, weir_buffer *buffer, size_t first,
                    const int32_t *numbers, size_t count)
{
    EXPECT_OK(weir_upload(rig->queues[rank], buffer, first * sizeof *numbers, numbers,
                          count * sizeof *numbers));
}

void comm_rig_expect(struct comm_rig *rig, uint32_t rank, weir_buffer *buffer, size_t first,
                     const int32_t *numbers, size_t count)
{
    int32_t found[COMM_RIG_BYTES / sizeof(int32_t)] = {0};
    EXPECT_OK(weir_download(rig->queues[rank], found, buffer, first * sizeof *numbers,
                            count * sizeof *numbers));
    for (size_t i = 0; i < count; i++)
        EXPECT_INT_EQ(found[i], numbers[i]);
}

void comm_rig_write_all(struct comm_rig *rig, weir_buffer *const *buffers, size_t first,
                        const int32_t *numbers, size_t count)
{
    for (uint32_t rank = 0; rank < rig->count; rank++)
        comm_rig_write(rig, rank, buffers[rank], first, numbers, count);
}

void comm_rig_expect_all(struct comm_rig *rig, weir_buffer *const *buffers, size_t first,
                         const int32_t *numbers, size_t count)
{
    for (uint32_t rank = 0; rank < rig->count; rank++)
        comm_rig_expect(rig, rank, buffers[rank], first, numbers, count);
}

void comm_rig_expect_words(const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strstr(weir_last_error_text(), words[i]))
            EXPECT_STR_EQ(weir_last_error_text(), words[i]);
}

void comm_rig_await_failure(weir_comm *comm)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    while (weir_comm_error(comm) == WEIR_OK && weir_clock_pause(start_ns, GUARD_NS, &pause_ns))
        continue;
    EXPECT_INT_LT(weir_comm_error(comm), 0);
}
