// Uploads and downloads whose pieces are copied by several threads.

#include "core/buffer/buffer.h"
#include "core/runtime/runtime.h"
#include "tests/unit/core_backend.h"

enum {
    THREADS = 2,
    ROUNDS = 3,
    UPLOADERS = 4
};

// More pieces of 1 MiB than there are slots for, and a rest.
static const size_t large = ((size_t)11 << 20) + 4099;
// Pieces of one part, of two and of four, by staging.large_bytes.
static const struct {
    size_t large_bytes;
    int pieces;        // of `large` bytes
    size_t small, big; // blocks
} modes[] = {
    {SIZE_MAX, 12, 10, 0}, // two for each thread, and six
    {(size_t)4 << 20, 6, 0, 3},
    {(size_t)2 << 20, 3, 0, 3},
};
enum {
    MODES = sizeof modes / sizeof *modes
};
static const size_t offset = 997;

struct job {
    struct control control;
    weir_queue *queue;
    weir_buffer *buffer;
    unsigned char *bytes;
    unsigned char *back;
    size_t size;
};

static bool job_open(struct job *job, size_t size)
{
    *job = (struct job){.size = size};
    if (!control_open(&job->control))
        return false;
    job->control.devices[0]->staging.thread_limit = THREADS;
    job->queue = control_queue(&job->control, "q");
    job->buffer = control_buffer(&job->control, size + offset + 5);
    job->bytes = calloc(1, size);
    job->back = calloc(1, size + 1);
    for (size_t i = 0; job->bytes && i + sizeof i <= size; i += sizeof i)
        memcpy(job->bytes + i, &(size_t){i * 40503}, sizeof i);
    return job->queue && job->buffer && job->bytes && job->back;
}

static void job_close(struct job *job)
{
    free(job->bytes);
    free(job->back);
    weir_buffer_destroy(&job->buffer);
    weir_queue_destroy(&job->queue);
    control_close(&job->control);
}

#define JOB_TEST(suite, name, size) \
    WEIR_TEST_WITH(suite, name, struct job, job, job_open(job, size), job_close(job))

static struct weir__staging *staging_of(const struct job *job)
{
    return &job->control.devices[0]->staging;
}

static void set_mode(struct job *job, int mode)
{
    weir_test_note("mode %d", mode);
    staging_of(job)->large_bytes = modes[mode].large_bytes;
}

static void expect_blocks(const struct job *job, size_t small, size_t big)
{
    EXPECT_UINT_EQ(staging_of(job)->blocks[WEIR__STAGING_SMALL].count, small);
    EXPECT_UINT_EQ(staging_of(job)->blocks[WEIR__STAGING_LARGE].count, big);
}

JOB_TEST(Transfer, SameBytes, large)
{
    static const size_t sizes[] = {1,
                                   (size_t)1 << 20,
                                   ((size_t)1 << 20) + 1,
                                   (size_t)4 << 20,
                                   ((size_t)4 << 20) + 1,
                                   ((size_t)6 << 20) - 1,
                                   ((size_t)8 << 20) + 65536,
                                   ((size_t)11 << 20) + 4099};
    for (size_t i = 0; i < MODES * sizeof sizes / sizeof *sizes; i++) {
        const size_t size = sizes[i / MODES];
        staging_of(job)->large_bytes = modes[i % MODES].large_bytes;
        weir_test_note("%zu bytes, mode %zu", size, i % MODES);
        memset(job->back, 0, size + 1);
        EXPECT_OK(weir_upload(job->queue, job->buffer, offset, job->bytes, size));
        EXPECT_OK(weir_download(job->queue, job->back, job->buffer, offset, size));
        EXPECT_MEM_EQ(job->back, job->bytes, size);
        EXPECT_INT_EQ(job->back[size], 0);
    }
    weir_test_note(NULL);
    EXPECT_INT_EQ(staging_of(job)->copiers.count, THREADS);
}

JOB_TEST(Transfer, SmallOnesStartNoThreads, large)
{
    EXPECT_OK(weir_upload(job->queue, job->buffer, 0, job->bytes, 4096));
    expect_blocks(job, 1, 0);
    EXPECT_OK(weir_upload(job->queue, job->buffer, 0, job->bytes, ((size_t)4 << 20) - 1));
    EXPECT_OK(weir_download(job->queue, job->back, job->buffer, 0, ((size_t)4 << 20) - 1));
    EXPECT_INT_EQ(staging_of(job)->copiers.count, 0);
    staging_of(job)->thread_limit = 0;
    staging_of(job)->large_bytes = 1;
    EXPECT_OK(weir_upload(job->queue, job->buffer, 0, job->bytes, large));
    EXPECT_OK(weir_download(job->queue, job->back, job->buffer, 0, large));
    EXPECT_MEM_EQ(job->back, job->bytes, large);
    EXPECT_INT_EQ(staging_of(job)->copiers.count, 0);
    expect_blocks(job, 4, 0);
}

// Threads and memory are returned by a trim, and made again.
JOB_TEST(Transfer, Trim, large)
{
    for (int round = 0; round < 2 * MODES; round++) {
        set_mode(job, round % MODES);
        EXPECT_OK(weir_upload(job->queue, job->buffer, 0, job->bytes, large));
        expect_blocks(job, modes[round % MODES].small, modes[round % MODES].big);
        EXPECT_OK(weir_device_trim(job->control.devices[0]));
        expect_blocks(job, 0, 0);
        EXPECT_INT_EQ(staging_of(job)->copiers.count, 0);
    }
}

static weir_status run(struct job *job, bool up)
{
    return up ? weir_upload(job->queue, job->buffer, offset, job->bytes, large)
              : weir_download(job->queue, job->back, job->buffer, offset, large);
}

// Nothing reads or writes the program's memory any more, which the thread sanitizer checks.
static void touch(struct job *job)
{
    for (size_t i = 0; i < large; i += 65536) {
        job->bytes[i] = (unsigned char)~job->bytes[i];
        job->back[i] = 0;
    }
}

// Refuses the `after`-th operation of the kind. False: there were fewer.
static bool fail_one(struct job *job, bool up, enum weir_operation_kind kind, int after)
{
    control_refuse(kind, after);
    const weir_status status = run(job, up);
    control_refuse((enum weir_operation_kind)0, 0);
    if (status == WEIR_OK)
        return false;
    EXPECT_FAILURE(status, WEIR_ERROR_DEVICE, "the driver has had enough");
    EXPECT_STR_EQ(weir_last_error()->file, __FILE__);
    EXPECT_INT_EQ(run(job, !up), WEIR_ERROR_DEVICE); // the queue has failed
    touch(job);
    EXPECT_OK(weir_queue_recover(job->queue));
    return true;
}

static void fail_each(struct job *job, bool up, enum weir_operation_kind kind, int pieces)
{
    int failed = 0;
    while (failed < 50 && fail_one(job, up, kind, failed))
        failed++;
    EXPECT_INT_EQ(failed, pieces);
    EXPECT_OK(run(job, true));
    EXPECT_OK(run(job, false));
    EXPECT_MEM_EQ(job->back, job->bytes, large);
}

JOB_TEST(Transfer, EachPieceFails, large)
{
    for (int i = 0; i < 2 * MODES; i++) {
        const bool up = i % 2;
        set_mode(job, i / 2);
        fail_each(job, up, WEIR_OPERATION_COPY, modes[i / 2].pieces);
        fail_each(job, up, WEIR_OPERATION_RECORD, modes[i / 2].pieces);
    }
}

JOB_TEST(Transfer, TheDeviceFails, large)
{
    for (int i = 0; i < 2 * MODES; i++) {
        set_mode(job, i / 2);
        control_fault(WEIR_ERROR_DEVICE);
        EXPECT_INT_EQ(run(job, i % 2), WEIR_ERROR_DEVICE);
        control_fault(WEIR_OK);
        WEIR_IGNORE(weir_queue_recover(job->queue));
    }
    EXPECT_OK(run(job, true));
    EXPECT_OK(run(job, false));
    EXPECT_MEM_EQ(job->back, job->bytes, large);
}

// A module may fail without a detail.

static weir_status fail_flush(const struct weir_link *link, weir_queue *queue)
{
    return WEIR_ERROR_DEVICE;
}

static weir_status fail_note(const struct weir_link *link, const struct weir_host_note *note)
{
    return WEIR_ERROR_DEVICE;
}

JOB_TEST(Transfer, FailuresWithoutADetail, large)
{
    struct weir__chain *chain = &job->control.runtime->chain;
    struct weir_link *backend = &chain->links[chain->count - 1];
    const struct weir_module_ops *before = backend->ops;
    struct weir_module_ops of_flush = *before;
    struct weir_module_ops of_note = *before;
    of_flush.queue_flush = fail_flush;
    of_note.host_note = fail_note;
    for (int i = 0; i < 4 * MODES; i++) {
        set_mode(job, i / 4);
        chain->host_notes = i & 2;
        backend->ops = chain->host_notes ? &of_note : &of_flush;
        weir_error_set(NULL);
        EXPECT_INT_EQ(run(job, i & 1), WEIR_ERROR_DEVICE);
        EXPECT_INT_EQ(weir_last_error()->status, WEIR_ERROR_DEVICE);
        EXPECT_STR_EQ(weir_last_error()->file, __FILE__);
    }
    chain->host_notes = false;
    backend->ops = before;
}

struct uploader {
    struct job *job;
    size_t at;
    size_t size;
    weir_status status;
    bool same;
};

static void *upload_part(void *user)
{
    struct uploader *uploader = user;
    struct job *job = uploader->job;
    own_queue queue = control_queue(&job->control, "part");
    const size_t at = uploader->at;
    for (int i = 0; i < ROUNDS && uploader->status == WEIR_OK; i++) {
        memset(job->back + at, 0, uploader->size);
        uploader->status = weir_upload(queue, job->buffer, at, job->bytes + at, uploader->size);
        if (uploader->status == WEIR_OK)
            uploader->status =
                weir_download(queue, job->back + at, job->buffer, at, uploader->size);
    }
    uploader->same = memcmp(job->back + at, job->bytes + at, uploader->size) == 0;
    return NULL;
}

static const size_t part = ((size_t)5 << 20) + 77;

// They share the threads; each has its own memory, some in large blocks. Meanwhile the device is trimmed.
JOB_TEST(Transfer, SeveralAtOnce, UPLOADERS *part)
{
    struct uploader uploaders[UPLOADERS];
    pthread_t threads[UPLOADERS];
    staging_of(job)->large_bytes = part; // with the rest: of two parts
    for (size_t i = 0; i < UPLOADERS; i++) {
        uploaders[i] =
            (struct uploader){.job = job, .at = part * i, .size = part - (i % 2 ? 0 : 5)};
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, upload_part, &uploaders[i]), 0);
    }
    for (int i = 0; i < 20; i++)
        EXPECT_OK(weir_device_trim(job->control.devices[0]));
    for (size_t i = 0; i < UPLOADERS; i++) {
        pthread_join(threads[i], NULL);
        EXPECT_OK(uploaders[i].status);
        EXPECT_TRUE(uploaders[i].same);
    }
    for (int size = 0; size < WEIR__STAGING_SIZES; size++)
        EXPECT_TRUE(staging_of(job)->blocks[size].count <= WEIR__STAGING_BLOCKS_MAX(size));
}

// Only what a transfer cannot do without is made beyond the limit, and it is not kept.
static void expect_bounded(struct job *job, enum weir__staging_size size, int mode)
{
    weir_buffer *blocks[WEIR__STAGING_BLOCKS_MAX(WEIR__STAGING_SMALL) + 2];
    weir_buffer *more[4];
    set_mode(job, mode);
    weir_device *device = job->control.devices[0];
    const size_t limit = WEIR__STAGING_BLOCKS_MAX(size);
    const size_t *count = &staging_of(job)->blocks[size].count;
    EXPECT_UINT_EQ(weir__staging_take(device, size, 2, limit + 2, blocks), limit);
    EXPECT_UINT_EQ(weir__staging_take(device, size, 2, 4, more), 2);
    EXPECT_OK(run(job, true)); // with two blocks
    EXPECT_OK(run(job, false));
    EXPECT_MEM_EQ(job->back, job->bytes, large);
    EXPECT_UINT_EQ(*count, limit + 2);
    weir__staging_return(device, limit, blocks);
    weir__staging_return(device, 2, more);
    EXPECT_UINT_EQ(*count, limit);
}

JOB_TEST(Transfer, MemoryIsBounded, large)
{
    expect_bounded(job, WEIR__STAGING_SMALL, 0);
}

JOB_TEST(Transfer, MemoryOfLargeBlocksIsBounded, large)
{
    expect_bounded(job, WEIR__STAGING_LARGE, 2);
}
