#include "tests/plugins/racy/racy.h"

#include <string.h>

enum {
    BYTES = RACY_WORDS * sizeof(uint32_t)
};

#define GUARD_NS (UINT64_C(60) * 1000000000u)

bool racy_is_right(const uint32_t words[RACY_WORDS])
{
    for (uint32_t i = 0; i < RACY_WORDS; i++)
        if (words[i] != i + 1)
            return false;
    return true;
}

// Everything that a program uses. The first error is kept, and later calls do nothing.
struct rig {
    weir_device *device;
    weir_queue *queues[3];
    weir_buffer *staging; // the host's
    weir_buffer *a;
    weir_buffer *b;
    weir_status status;
};

static void check(struct rig *rig, weir_status status)
{
    if (rig->status == WEIR_OK && status != WEIR_OK)
        rig->status = status < 0 ? status : WEIR_ERROR_DEVICE;
}

static weir_buffer *make_buffer(struct rig *rig, weir_placement placement, const char *label)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = label,
                                              .size = BYTES,
                                              .placement = placement};
    weir_buffer *buffer = NULL;
    check(rig, weir_buffer_create(rig->device, &params, &buffer));
    return buffer;
}

// The host writes a word of the staging memory.
static void put(struct rig *rig, uint32_t index, uint32_t value)
{
    void *memory = NULL;
    if (rig->status < 0)
        return;
    check(rig, weir_host_begin(rig->staging, index * sizeof value, sizeof value, WEIR_ACCESS_WRITE,
                               &memory));
    if (memory)
        memcpy(memory, &value, sizeof value);
    check(rig, weir_host_end(rig->staging, index * sizeof value, sizeof value, WEIR_ACCESS_WRITE));
}

// The host reads all of it.
static void get(struct rig *rig, uint32_t words[RACY_WORDS])
{
    void *memory = NULL;
    if (rig->status < 0)
        return;
    check(rig, weir_host_begin(rig->staging, 0, BYTES, WEIR_ACCESS_READ, &memory));
    if (memory)
        memcpy(words, memory, BYTES);
    check(rig, weir_host_end(rig->staging, 0, BYTES, WEIR_ACCESS_READ));
}

static void begin(struct rig *rig, weir_device *device)
{
    static const char *const labels[] = {"copy", "compute", "back"};
    static const uint32_t zeros[RACY_WORDS];
    *rig = (struct rig){.device = device};
    for (size_t i = 0; i < 3; i++)
        check(rig, weir_queue_create(device,
                                     &(struct weir_queue_params){.struct_size = sizeof(
                                                                     struct weir_queue_params),
                                                                 .label = labels[i]},
                                     &rig->queues[i]));
    rig->staging = make_buffer(rig, WEIR_PLACE_HOST, "staging");
    rig->a = make_buffer(rig, WEIR_PLACE_DEVICE, "a");
    rig->b = make_buffer(rig, WEIR_PLACE_DEVICE, "b");
    for (uint32_t i = 0; i < RACY_WORDS; i++)
        put(rig, i, 0);
    if (rig->status < 0)
        return;
    check(rig, weir_upload(rig->queues[0], rig->a, 0, zeros, BYTES));
    check(rig, weir_upload(rig->queues[0], rig->b, 0, zeros, BYTES));
}

static weir_status end(struct rig *rig)
{
    weir_buffer_destroy(&rig->staging);
    weir_buffer_destroy(&rig->a);
    weir_buffer_destroy(&rig->b);
    for (size_t i = 0; i < 3; i++)
        weir_queue_destroy(&rig->queues[i]);
    return rig->status;
}

static void order(struct rig *rig, weir_queue *first, weir_queue *second)
{
    struct weir_event event;
    check(rig, weir_queue_record(first, &event));
    check(rig, weir_queue_wait(second, event));
}

static void fill(struct rig *rig, weir_queue *queue, weir_buffer *buffer, uint32_t index,
                 uint32_t value)
{
    check(rig,
          weir_queue_fill(queue, buffer, index * sizeof value, sizeof value, &value, sizeof value));
}

static void download(struct rig *rig, weir_queue *queue, weir_buffer *buffer, uint32_t *words)
{
    check(rig, weir_download(queue, words, buffer, 0, BYTES));
}

// The second queue does not wait for the first.
static weir_status run_no_wait(weir_device *device, bool broken, uint32_t *words)
{
    struct rig rig;
    begin(&rig, device);
    for (uint32_t i = 0; i < RACY_WORDS && rig.status == WEIR_OK; i++)
        fill(&rig, rig.queues[0], rig.a, i, i + 1);
    if (!broken)
        order(&rig, rig.queues[0], rig.queues[1]);
    if (rig.status == WEIR_OK)
        check(&rig, weir_queue_copy(rig.queues[1], rig.b, 0, rig.a, 0, BYTES));
    download(&rig, rig.queues[1], rig.b, words);
    return end(&rig);
}

// The host reads what a copy has not written yet.
static weir_status run_early_read(weir_device *device, bool broken, uint32_t *words)
{
    struct rig rig;
    begin(&rig, device);
    for (uint32_t i = 0; i < RACY_WORDS && rig.status == WEIR_OK; i++)
        fill(&rig, rig.queues[0], rig.a, i, i + 1);
    if (rig.status == WEIR_OK)
        check(&rig, weir_queue_copy(rig.queues[0], rig.staging, 0, rig.a, 0, BYTES));
    if (!broken)
        check(&rig, weir_queue_sync(rig.queues[0], GUARD_NS));
    get(&rig, words);
    check(&rig, weir_queue_sync(rig.queues[0], GUARD_NS));
    return end(&rig);
}

// Two slots of staging memory; the host fills one again before its copy has read it.
static weir_status run_early_slot(weir_device *device, bool broken, uint32_t *words)
{
    struct weir_event used[2] = {{0}, {0}};
    struct rig rig;
    begin(&rig, device);
    for (uint32_t i = 0; i < RACY_WORDS && rig.status == WEIR_OK; i++) {
        const uint32_t slot = i % 2;
        if (!broken && i >= 2)
            check(&rig, weir_event_sync(used[slot], GUARD_NS));
        put(&rig, slot, i + 1);
        check(&rig, weir_queue_copy(rig.queues[0], rig.a, i * sizeof *words, rig.staging,
                                    slot * sizeof *words, sizeof *words));
        check(&rig, weir_queue_record(rig.queues[0], &used[slot]));
    }
    download(&rig, rig.queues[0], rig.a, words);
    return end(&rig);
}

// The host writes what a copy was to read after it has submitted the copy.
static weir_status run_late_write(weir_device *device, bool broken, uint32_t *words)
{
    struct rig rig;
    begin(&rig, device);
    for (uint32_t i = 0; i < RACY_WORDS && rig.status == WEIR_OK; i++) {
        if (!broken)
            put(&rig, i, i + 1);
        check(&rig, weir_queue_copy(rig.queues[0], rig.a, i * sizeof *words, rig.staging,
                                    i * sizeof *words, sizeof *words));
        if (broken)
            put(&rig, i, i + 1);
    }
    download(&rig, rig.queues[0], rig.a, words);
    return end(&rig);
}

// The next frame is written into the buffer that the other queue still reads.
static weir_status run_overwrite(weir_device *device, bool broken, uint32_t *words)
{
    struct rig rig;
    begin(&rig, device);
    for (uint32_t i = 0; i < RACY_WORDS && rig.status == WEIR_OK; i++) {
        fill(&rig, rig.queues[0], rig.a, 0, i + 1);
        order(&rig, rig.queues[0], rig.queues[1]);
        check(&rig,
              weir_queue_copy(rig.queues[1], rig.b, i * sizeof *words, rig.a, 0, sizeof *words));
        if (!broken)
            order(&rig, rig.queues[1], rig.queues[0]);
    }
    download(&rig, rig.queues[1], rig.b, words);
    return end(&rig);
}

// The event is recorded before the operation that the other queue needs.
static weir_status run_early_record(weir_device *device, bool broken, uint32_t *words)
{
    struct rig rig;
    struct weir_event event = {0};
    begin(&rig, device);
    for (uint32_t i = 0; i < RACY_WORDS && rig.status == WEIR_OK; i++) {
        if (broken && i == RACY_WORDS - 1)
            check(&rig, weir_queue_record(rig.queues[0], &event));
        fill(&rig, rig.queues[0], rig.a, i, i + 1);
    }
    if (!broken)
        check(&rig, weir_queue_record(rig.queues[0], &event));
    if (rig.status == WEIR_OK)
        check(&rig, weir_queue_wait(rig.queues[1], event));
    if (rig.status == WEIR_OK)
        check(&rig, weir_queue_copy(rig.queues[1], rig.b, 0, rig.a, 0, BYTES));
    download(&rig, rig.queues[1], rig.b, words);
    return end(&rig);
}

// One frame of eight does not wait for the queue two stages before it.
static weir_status run_one_frame(weir_device *device, bool broken, uint32_t *words)
{
    struct rig rig;
    begin(&rig, device);
    for (uint32_t i = 0; i < RACY_WORDS && rig.status == WEIR_OK; i++) {
        fill(&rig, rig.queues[0], rig.a, i, i + 1);
        order(&rig, rig.queues[0], rig.queues[1]);
        check(&rig, weir_queue_copy(rig.queues[1], rig.b, i * sizeof *words, rig.a,
                                    i * sizeof *words, sizeof *words));
        if (!broken || i != 5)
            order(&rig, rig.queues[1], rig.queues[2]);
        check(&rig, weir_queue_copy(rig.queues[2], rig.staging, i * sizeof *words, rig.b,
                                    i * sizeof *words, sizeof *words));
        if (i == 5) // nothing after it orders it either
            check(&rig, weir_queue_sync(rig.queues[2], GUARD_NS));
    }
    check(&rig, weir_queue_sync(rig.queues[2], GUARD_NS));
    get(&rig, words);
    check(&rig, weir_queue_sync(rig.queues[1], GUARD_NS));
    return end(&rig);
}

// Two branches of a graph write the same words, and the one that is to come second does not wait.
static weir_status run_branches(weir_device *device, bool broken, uint32_t *words)
{
    struct rig rig;
    weir_graph *graph = NULL;
    begin(&rig, device);
    check(&rig, weir_capture_begin(rig.queues[0]));
    order(&rig, rig.queues[0], rig.queues[1]);
    for (uint32_t i = 0; i < RACY_WORDS && rig.status == WEIR_OK; i++)
        fill(&rig, rig.queues[0], rig.a, i, i);
    if (!broken)
        order(&rig, rig.queues[0], rig.queues[1]);
    for (uint32_t i = 0; i < RACY_WORDS && rig.status == WEIR_OK; i++)
        fill(&rig, rig.queues[1], rig.a, i, i + 1);
    order(&rig, rig.queues[1], rig.queues[0]);
    check(&rig, weir_capture_end(rig.queues[0], NULL, &graph));
    if (rig.status == WEIR_OK)
        check(&rig, weir_queue_graph(rig.queues[0], graph));
    download(&rig, rig.queues[0], rig.a, words);
    weir_graph_destroy(&graph);
    return end(&rig);
}

const struct racy_program racy_programs[] = {
    {"no-wait", run_no_wait},       {"early-read", run_early_read},
    {"early-slot", run_early_slot}, {"late-write", run_late_write},
    {"overwrite", run_overwrite},   {"early-record", run_early_record},
    {"one-frame", run_one_frame},   {"branches", run_branches},
};

const size_t racy_program_count = sizeof racy_programs / sizeof *racy_programs;
