// Every submitted operation is in the file once, with its data; and in the report and the
// page that are made from it.
#define _DEFAULT_SOURCE // usleep
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/plugins/rig.h"

// The accuracy of the pair of clocks, which with the tests' libcuda is a thread's wake-up
// time.
enum {
    SLACK_NS = 300000
};

struct expected {
    enum weir_trace_kind kind;
    enum weir_trace_engine engine;
    uint64_t bytes;
    int line;
    const char *region;
    const char *name;
    const char *dst;
    const char *src;
};

#define NOTE(kind_, engine_, bytes_, region_, name_, dst_, src_) \
    (expected[count++] =                                         \
         (struct expected){kind_, engine_, bytes_, __LINE__ - 1, region_, name_, dst_, src_})

// Submits to `down` after an event of `up`, and notes it. Each NOTE is on the line after
// its call.
static size_t submit_all(struct rig *rig, struct expected *expected)
{
    const uint32_t pattern = 7;
    const struct weir_plane to = {rig->memory, 0, 64};
    const struct weir_plane from = {rig->frame, 0, 128};
    const struct weir_volume boxes[] = {{rig->frame, 0, 64, 640}, {rig->memory, 0, 32, 960}};
    size_t count = 0;
    weir_region_push(rig->runtime, "frame", 12);
    EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, RIG_BYTES));
    NOTE(WEIR_TRACE_COPY, WEIR_ENGINE_TO_DEVICE, RIG_BYTES, "frame 12", "", "memory", "frame");
    const struct weir_event event = test_record(rig->up);
    weir_region_push(rig->runtime, "texture", WEIR_NO_NUMBER);
    EXPECT_OK(weir_queue_wait(rig->down, event));
    EXPECT_OK(weir_queue_fill(rig->down, rig->memory, 0, 4096, &pattern, sizeof pattern));
    NOTE(WEIR_TRACE_FILL, WEIR_ENGINE_ON_DEVICE, 4096, "frame 12/texture", "", "memory", "");
    EXPECT_OK(RIG_SPIN(rig->down, rig));
    NOTE(WEIR_TRACE_LAUNCH, WEIR_ENGINE_KERNELS, 0, "frame 12/texture", "spin", "", "");
    weir_region_pop(rig->runtime);
    EXPECT_OK(weir_queue_copy_2d(rig->down, to, from, 32, 100));
    NOTE(WEIR_TRACE_COPY, WEIR_ENGINE_TO_DEVICE, 3200, "frame 12", "", "memory", "frame");
    EXPECT_OK(weir_queue_fill_2d(rig->down, to, 32, 50, &pattern, sizeof pattern));
    NOTE(WEIR_TRACE_FILL, WEIR_ENGINE_ON_DEVICE, 1600, "frame 12", "", "memory", "");
    EXPECT_OK(weir_queue_copy_3d(rig->down, boxes[0], boxes[1], 32, 10, 4));
    NOTE(WEIR_TRACE_COPY, WEIR_ENGINE_TO_HOST, 1280, "frame 12", "", "frame", "memory");
    EXPECT_OK(weir_queue_host_call(rig->down, rig_count_call, &rig->calls));
    NOTE(WEIR_TRACE_HOST_CALL, WEIR_ENGINE_HOST, 0, "frame 12", "", "", "");
    weir_region_pop(rig->runtime);
    EXPECT_OK(weir_queue_copy(rig->down, rig->frame, 0, rig->memory, 0, 0));
    NOTE(WEIR_TRACE_COPY, WEIR_ENGINE_NONE, 0, "", "", "frame", "memory");
    EXPECT_OK(weir_queue_copy(rig->down, rig->frame, 0, rig->memory, 0, 1000));
    NOTE(WEIR_TRACE_COPY, WEIR_ENGINE_TO_HOST, 1000, "", "", "frame", "memory");
    return count;
}

static void expect_operation(const struct weir_trace_operation *operation,
                             const struct expected *expected)
{
    EXPECT_INT_EQ(operation->kind, expected->kind);
    EXPECT_INT_EQ(operation->engine, expected->engine);
    EXPECT_UINT_EQ(operation->bytes, expected->bytes);
    EXPECT_INT_EQ(operation->line, expected->line);
    EXPECT_CONTAINS(operation->file, "trace_test.c");
    EXPECT_STR_EQ(operation->region, expected->region);
    EXPECT_STR_EQ(operation->name, expected->name);
    EXPECT_STR_EQ(operation->dst_label, expected->dst);
    EXPECT_STR_EQ(operation->src_label, expected->src);
    EXPECT_UINT_EQ(operation->thread, (uint64_t)getpid());
    EXPECT_UINT_LT(0, operation->submit_ns);
    EXPECT_UINT_LE(operation->submit_ns, operation->submit_end_ns);
    EXPECT_FALSE(operation->failed);
    EXPECT_TRUE(operation->timed == (expected->engine != WEIR_ENGINE_NONE));
    if (operation->timed) {
        EXPECT_UINT_LE(operation->start_ns, operation->end_ns);
        EXPECT_UINT_LE(operation->submit_ns, operation->start_ns + SLACK_NS);
    }
}

static const struct weir_trace_queue *queue_named(const struct weir_trace *trace, const char *label)
{
    for (size_t i = 0; i < trace->queue_count; i++)
        if (strcmp(trace->queues[i].label, label) == 0)
            return &trace->queues[i];
    weir_test_fail(__FILE__, __LINE__, "no queue '%s'", label);
    return NULL;
}

// All operations of both queues, and the one wait.
static void expect_all(const struct weir_trace *trace, const struct expected *expected,
                       size_t count)
{
    const struct weir_trace_queue *up = queue_named(trace, "up");
    const struct weir_trace_queue *down = queue_named(trace, "down");
    ASSERT_NOT_NULL(up);
    ASSERT_NOT_NULL(down);
    ASSERT_UINT_EQ(up->operation_count, 1);
    ASSERT_UINT_EQ(down->operation_count, count - 1);
    const struct weir_trace_operation *first = &trace->operations[up->first_operation];
    const struct weir_trace_operation *rest = &trace->operations[down->first_operation];
    expect_operation(first, &expected[0]);
    for (size_t i = 1; i < count; i++) {
        weir_test_note("operation %zu", i);
        expect_operation(&rest[i - 1], &expected[i]);
        if (i > 1 && rest[i - 1].timed && rest[i - 2].timed)
            EXPECT_UINT_LE(rest[i - 2].end_ns, rest[i - 1].start_ns);
        EXPECT_UINT_EQ(rest[i - 1].wait_count, i == 1 ? 1 : 0);
    }
    weir_test_note(NULL);
    ASSERT_UINT_EQ(rest[0].wait_count, 1);
    EXPECT_UINT_EQ(rest[0].waits[0].queue, up->id);
    EXPECT_UINT_EQ(rest[0].waits[0].sequence, 2);
    EXPECT_UINT_EQ(rest[0].waits[0].operation, up->first_operation);
    EXPECT_UINT_LE(first->end_ns, rest[0].start_ns + SLACK_NS);
}

TRACE_TEST(Trace, HasEveryOperationOnce, "once.json", "")
{
    struct expected expected[16];
    const size_t count = submit_all(rig, expected);
    EXPECT_OK(weir_queue_sync(rig->down, WEIR_FOREVER));
    const struct weir_trace *trace = rig_end(rig);
    EXPECT_INT_EQ(rig->calls, 1);
    EXPECT_FALSE(trace->meta.truncated);
    EXPECT_UINT_EQ(trace->meta.dropped, 0);
    EXPECT_UINT_EQ(trace->meta.unfinished, 0);
    EXPECT_STR_EQ(trace->meta.plugins, "trace");
    EXPECT_UINT_EQ(trace->device_count, 1);
    EXPECT_UINT_EQ(trace->note_count, 0);
    expect_all(trace, expected, count);
}

// It counts as memory of the device.
TRACE_TEST(Trace, NamesManagedMemory, "managed.json", "")
{
    if (!weir_device_limits(rig->device)->managed_memory)
        WEIR_SKIP("this device has no managed memory");
    weir_buffer *managed = test_buffer(rig->device, "shared", RIG_BYTES, WEIR_PLACE_MANAGED);
    EXPECT_OK(weir_queue_copy(rig->up, managed, 0, rig->frame, 0, 64));
    EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, managed, 0, 64));
    EXPECT_OK(weir_queue_fill(rig->up, managed, 0, 64, "a", 1));
    weir_buffer_destroy(&managed);
    EXPECT_OK(weir_queue_sync(rig->up, WEIR_FOREVER));
    const struct weir_trace *trace = rig_end(rig);
    ASSERT_UINT_EQ(trace->operation_count, 3);
    const struct weir_trace_operation *operations = trace->operations;
    EXPECT_INT_EQ(operations[0].engine, WEIR_ENGINE_TO_DEVICE);
    EXPECT_INT_EQ(operations[0].dst_memory, WEIR_TRACE_MANAGED_MEMORY);
    EXPECT_STR_EQ(operations[0].dst_label, "shared");
    EXPECT_STR_EQ(weir_trace_operation_title(&operations[0]).text,
                  "Memcpy HtoD (Pinned -> Managed)");
    EXPECT_INT_EQ(operations[1].engine, WEIR_ENGINE_ON_DEVICE);
    EXPECT_STR_EQ(weir_trace_operation_title(&operations[1]).text,
                  "Memcpy DtoD (Managed -> Device)");
    EXPECT_INT_EQ(operations[2].engine, WEIR_ENGINE_ON_DEVICE);
    EXPECT_STR_EQ(weir_trace_operation_title(&operations[2]).text, "Memset (Managed)");
}

TRACE_TEST(Trace, HasRegionsAndWaitsOfTheHost, "spans.json.gz", "")
{
    struct expected expected[16];
    size_t regions = 0;
    size_t syncs = 0;
    weir_region_pop(rig->runtime); // outside of any
    submit_all(rig, expected);
    EXPECT_OK(weir_queue_sync(rig->down, WEIR_FOREVER));
    for (int i = 0; i < 40; i++) // deeper than is kept
        weir_region_push(rig->runtime, "a region with a rather long name, longer than is kept", 1);
    for (int i = 0; i < 40; i++)
        weir_region_pop(rig->runtime);
    const struct weir_trace *trace = rig_end(rig);
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct weir_trace_span *span = &trace->spans[i];
        EXPECT_UINT_LE(span->begin_ns, span->end_ns);
        EXPECT_UINT_EQ(span->thread, (uint64_t)getpid());
        regions += span->kind == WEIR_TRACE_REGION;
        syncs += span->kind == WEIR_TRACE_SYNC;
        if (span->kind == WEIR_TRACE_REGION && strcmp(span->name, "frame") == 0)
            EXPECT_UINT_EQ(span->number, 12);
    }
    EXPECT_UINT_EQ(regions, 2 + 32);
    EXPECT_TRUE(syncs >= 1 || strcmp(trace->meta.backend, "null") == 0);
}

WEIR_TEST_WITH(Trace, StandsTwiceInAChain, struct rig, rig,
               rig_start(rig, "twice.json", "", "trace, trace"), rig_finish(rig))
{
    struct expected expected[16];
    const size_t count = submit_all(rig, expected);
    EXPECT_OK(weir_queue_sync(rig->down, WEIR_FOREVER));
    // The first of the two to open was the inner link, since chains open from the backend
    // outwards.
    expect_all(rig_end(rig), expected, count);
    EXPECT_INT_EQ(rig->calls, 1);
    own_trace outer = rig_read(weir_test_path("twice.2.json"));
    ASSERT_NOT_NULL(outer);
    expect_all(outer, expected, count);
    EXPECT_STR_EQ(outer->meta.plugins, "trace, trace");
}

static void *close_runtime(void *runtime)
{
    EXPECT_OK(weir_close((weir_runtime **)runtime));
    return NULL;
}

// What a thread keeps of those leaves the entry of the one that it still uses.
TRACE_TEST(Trace, OfARuntimeBesideManyThatOthersClose, "beside.json", "")
{
    weir_region_push(rig->runtime, "outer", WEIR_NO_NUMBER);
    for (uint64_t i = 0; i < 20; i++) {
        weir_runtime *runtime;
        pthread_t thread;
        ASSERT_OK(rig_open("trace", rig_trace(weir_test_path("closed.json"), ""), &runtime));
        weir_region_push(runtime, "short", i);
        weir_region_push(rig->runtime, "inner", i);
        weir_region_pop(rig->runtime);
        ASSERT_INT_EQ(pthread_create(&thread, NULL, close_runtime, &runtime), 0);
        ASSERT_INT_EQ(pthread_join(thread, NULL), 0);
    }
    weir_region_pop(rig->runtime);
    const struct weir_trace *trace = rig_end(rig);
    EXPECT_UINT_EQ(rig_count_spans(trace, "outer"), 1);
}

// The file of a trace: invalid paths are refused, a full disk is reported, and the file of
// a killed process can be read.

static void expect_refused(const char *lines, weir_status status, const char *words)
{
    rig_expect_refused("trace", lines, status, words, "");
}

WEIR_TEST(TraceRefuses, WrongValues)
{
    char text[600] = "[trace]\nfile = /";
    expect_refused("[trace]\nbuffer = 1023", WEIR_ERROR_CONFIG, "1024");
    expect_refused("[trace]\nbuffer = many", WEIR_ERROR_CONFIG, "many");
    expect_refused("[trace]\nflush = 0", WEIR_ERROR_CONFIG, "flush");
    expect_refused("[trace]\nflush = 60001", WEIR_ERROR_CONFIG, "60000");
    expect_refused("[trace]\nfiel = x.json", WEIR_ERROR_CONFIG, "did you mean 'file'?");
    expect_refused("[trace]\nfile = /nowhere/at/all/trace.json", WEIR_ERROR_IO, "No such file");
    expect_refused("[trace]\nfile = /", WEIR_ERROR_IO, "Is a directory");
    memset(text + 16, 'a', 170);
    snprintf(text + 186, sizeof text - 186, "/b.json");
    expect_refused(text, WEIR_ERROR_IO, "No such file");
}

// A disk that is full is found while writing, and told; the program goes on.
TRACE_TEST(TraceRefuses, AFullDisk, "/dev/full", "flush = 1")
{
    for (size_t i = 0; i < 200; i++) {
        EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, 64));
        EXPECT_OK(weir_queue_sync(rig->up, WEIR_FOREVER));
        usleep(1000);
    }
    EXPECT_INT_EQ(rig_close(rig), WEIR_ERROR_IO);
    EXPECT_CONTAINS(rig_logged(), "/dev/full");
    EXPECT_CONTAINS(rig_logged(), "No space left");
    EXPECT_NULL(rig->runtime);
    EXPECT_ERROR("/dev/full: the trace is incomplete", "No space left");
}

// So does one that is full only when the last of it is written.
TRACE_TEST(TraceRefuses, ADiskThatIsFullAtTheEnd, "/dev/full", "flush = 60000")
{
    weir_error_set(NULL);
    EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, 64));
    EXPECT_FAILURE(rig_close(rig), WEIR_ERROR_IO, "/dev/full: the trace is incomplete");
}

// A trace that is whole, and a report that cannot be written.
TRACE_TEST(TraceRefuses, AReportThatCannotBeWritten, "fine.json", "report = /dev/full")
{
    EXPECT_FAILURE(rig_close(rig), WEIR_ERROR_IO, "/dev/full: cannot be written");
}

WEIR_TEST(TraceRefuses, APipeWithoutAReader)
{
    const char *path = weir_test_path("unread");
    ASSERT_INT_EQ(mkfifo(path, 0600), 0);
    alarm(60); // in place of waiting for ever
    expect_refused(rig_trace(path, ""), WEIR_ERROR_IO, "it is a pipe without a reader");
    alarm(0);
}

static void *drain_pipe(void *argument)
{
    char bytes[4096];
    size_t *total = argument;
    ssize_t count;
    const int pipe = open(weir_test_path("pipe"), O_RDONLY | O_CLOEXEC);
    for (*total = 0; (count = read(pipe, bytes, sizeof bytes)) > 0; *total += (size_t)count)
        ;
    close(pipe);
    return NULL;
}

WEIR_TEST(Trace, IntoAPipe)
{
    struct rig rig;
    pthread_t reader;
    size_t total = 0;
    const char *path = weir_test_path("pipe");
    (void)mkfifo(path, 0600); // may be there
    ASSERT_INT_EQ(pthread_create(&reader, NULL, drain_pipe, &total), 0);
    usleep(200000); // it opens the pipe
    ASSERT_TRUE(rig_start(&rig, path, "", "trace"));
    EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
    rig_finish(&rig);
    ASSERT_INT_EQ(pthread_join(reader, NULL), 0);
    EXPECT_UINT_GT(total, 500);
}

// The signal for that is not the program's.
WEIR_TEST(TraceRefuses, APipeWhoseReaderLeaves)
{
    struct rig rig;
    const char *path = weir_test_path("pipe");
    (void)mkfifo(path, 0600);
    const int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_INT_GE(reader, 0);
    ASSERT_TRUE(rig_start(&rig, path, "flush = 60000", "trace"));
    EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
    close(reader);
    EXPECT_FAILURE(rig_close(&rig), WEIR_ERROR_IO, "Broken pipe");
}

// A path that is not a regular file is neither numbered nor removed.
WEIR_TEST(Trace, IntoWhatIsNoFile)
{
    struct stat status;
    weir_runtime *runtimes[2];
    for (size_t i = 0; i < 2; i++)
        ASSERT_OK(rig_open("trace", "[trace]\nfile = /dev/null", &runtimes[i]));
    for (size_t i = 0; i < 2; i++)
        EXPECT_OK(weir_close(&runtimes[i]));
    EXPECT_INT_EQ(stat("/dev/null", &status), 0);
    EXPECT_INT_NE(stat("/dev/null.2", &status), 0);
}

// A runtime that opens no device leaves no file.
WEIR_TEST(Trace, OfNothingLeavesNothing)
{
    const char *path = weir_test_path("nothing.json");
    weir_runtime *runtime;
    struct stat status;
    ASSERT_OK(rig_open("trace", rig_trace(path, ""), &runtime));
    EXPECT_OK(weir_close(&runtime));
    EXPECT_INT_NE(stat(path, &status), 0);
}

// Runs in a separate process, which the tests below start and kill.
WEIR_TEST(TraceChild, WorksForEver)
{
    const char *path = getenv("WEIR_TEST_CHILD");
    struct rig rig;
    if (!path)
        WEIR_SKIP("this is not the child");
    ASSERT_TRUE(rig_start(&rig, path, "flush = 20", "trace"));
    for (;;) {
        ASSERT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 4096));
        ASSERT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
        usleep(20); // the null backend is faster than any writer
    }
}

static pid_t start_child(const char *path)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child != 0)
        return child;
    setenv("WEIR_TEST_CHILD", path, 1);
    execl("/proc/self/exe", "trace_test", "--gtest_filter=TraceChild.*", (char *)NULL);
    _exit(3);
}

static void kill_and_read(const char *name)
{
    const char *path = weir_test_path(name);
    struct stat status = {.st_size = 0};
    const pid_t child = start_child(path);
    for (int i = 0; i < 2000 && status.st_size < 200000; i++) {
        usleep(10000);
        if (stat(path, &status) != 0)
            status.st_size = 0;
    }
    usleep(50000);
    EXPECT_INT_EQ(kill(child, SIGKILL), 0);
    int ended;
    EXPECT_INT_EQ(waitpid(child, &ended, 0), child);
    EXPECT_TRUE(WIFSIGNALED(ended));
    own_trace trace = rig_read(path);
    ASSERT_NOT_NULL(trace);
    EXPECT_TRUE(trace->meta.truncated);
    EXPECT_TRUE(trace->operation_count > 100);
    for (size_t i = 0; i < trace->operation_count; i++) {
        EXPECT_UINT_EQ(trace->operations[i].bytes, 4096);
        EXPECT_TRUE(trace->operations[i].timed);
    }
}

WEIR_TEST(TraceKilled, LeavesAReadableFile)
{
    kill_and_read("killed.json");
}

WEIR_TEST(TraceKilled, CompressedToo)
{
    kill_and_read("killed.json.gz");
}
