// Work of each sort in a trace: graphs, what patterns submit, several threads and queues,
// queues that fail.
#define _DEFAULT_SOURCE // usleep
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/module/module.h>

#include "base/clock.h"
#include "patterns/chunks.h"
#include "tests/plugins/rig.h"
#include "tests/support/memory.h"

// A graph is one operation of its queue, with the name of the graph.
TRACE_TEST(Trace, OfGraphs, "graphs.json", "")
{
    weir_graph *graph;
    EXPECT_OK(weir_capture_begin(rig->up));
    EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, RIG_BYTES));
    EXPECT_OK(RIG_SPIN(rig->up, rig));
    EXPECT_OK(weir_queue_copy(rig->up, rig->frame, 0, rig->memory, 0, RIG_BYTES));
    ASSERT_OK(weir_capture_end(rig->up, WEIR_PARAMS(weir_graph, .label = "round"), &graph));
    for (size_t i = 0; i < 5; i++)
        EXPECT_OK(weir_queue_graph(rig->up, graph));
    EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, 64));
    EXPECT_OK(weir_queue_sync(rig->up, WEIR_FOREVER));
    weir_graph_destroy(&graph);
    const struct weir_trace *trace = rig_end(rig);
    ASSERT_UINT_EQ(trace->operation_count, 6);
    EXPECT_UINT_EQ(trace->meta.unfinished, 0);
    for (size_t i = 0; i < 5; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        EXPECT_INT_EQ(operation->kind, WEIR_TRACE_GRAPH);
        EXPECT_STR_EQ(operation->name, "round");
        EXPECT_TRUE(operation->timed);
        EXPECT_UINT_LE(operation->start_ns, operation->end_ns);
        EXPECT_UINT_LE(operation->end_ns, trace->operations[i + 1].start_ns);
    }
}

// Times of notes come in any order, and some never do.
TRACE_TEST(Trace, OfNotes, "notes.json", "")
{
    uint64_t numbers[3];
    const struct weir_note_range range = {
        .buffer = rig->memory, .size = 64, .access = WEIR_ACCESS_WRITE, .rows = 2, .pitch = 128};
    for (size_t i = 0; i < 3; i++)
        EXPECT_OK(weir_queue_note(rig->up,
                                  WEIR_PARAMS(weir_note, .name = "upload", .ranges = &range,
                                              .range_count = 1, .work = WEIR_NOTE_TO_DEVICE,
                                              .timed = i != 1),
                                  &numbers[i]));
    const uint64_t start = weir_clock_now_ns();
    EXPECT_OK(weir_queue_note_times(rig->up, numbers[2], start + 5000, start + 6000));
    EXPECT_OK(weir_queue_note_times(rig->up, numbers[0], start, start + 1000));
    EXPECT_OK(
        weir_queue_note(rig->down, WEIR_PARAMS(weir_note, .name = "late", .timed = true), NULL));
    EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, 64));
    EXPECT_OK(weir_queue_sync(rig->up, WEIR_FOREVER));
    const struct weir_trace *trace = rig_end(rig);
    ASSERT_UINT_EQ(trace->operation_count, 5);
    EXPECT_UINT_EQ(trace->meta.unfinished, 1); // "late"
    size_t seen = 0;
    for (size_t i = 0; i < 5; i++) {
        const struct weir_trace_operation *it = &trace->operations[i];
        if (it->kind != WEIR_TRACE_NOTE || strcmp(it->name, "upload") != 0)
            continue;
        EXPECT_UINT_EQ(it->bytes, 128);
        EXPECT_INT_EQ(it->timed, seen != 1);
        if (it->timed) {
            EXPECT_INT_EQ(it->engine, WEIR_ENGINE_TO_DEVICE);
            EXPECT_UINT_EQ(it->end_ns - it->start_ns, 1000);
        }
        seen++;
    }
    EXPECT_UINT_EQ(seen, 3);
}

static void expect_scalars(const struct weir_trace_operation *operation,
                           const struct weir_trace_scalar *wanted, size_t count)
{
    ASSERT_UINT_EQ(operation->scalar_count, count);
    for (size_t i = 0; i < count; i++) {
        EXPECT_UINT_EQ(operation->scalars[i].argument, wanted[i].argument);
        EXPECT_DOUBLE_EQ(operation->scalars[i].value, wanted[i].value);
    }
}

static void launch_values(struct rig *rig, weir_kernel *store, weir_kernel *scale)
{
    const uint32_t values[4] = {0};
    const weir_status stored =
        weir_queue_launch(rig->up, store, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                          weir_out(rig->memory, 0, 96), (unsigned char)200, (unsigned short)60000,
                          4000000000u, UINT64_C(1) << 40, (signed char)-5, (short)-300, -70000,
                          INT64_C(-5000000000), 0.25f, weir_value(values, sizeof values));
    const weir_status scaled =
        weir_queue_launch(rig->up, scale, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                          weir_in(rig->memory, 0, 128), weir_out(rig->memory, 128, 64), 0.25f, -3);
    const weir_status spun =
        weir_queue_launch(rig->up, rig->kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                          weir_out(rig->memory, 0, 64), 7u, INT64_C(1000));
    EXPECT_OK(stored);
    EXPECT_OK(scaled);
    EXPECT_OK(spun);
}

// Scalars as numbers, the first six of them; the bytes of all ranges.
TRACE_TEST(Trace, OfArguments, "arguments.json", "")
{
    static const struct weir_trace_scalar wanted[] = {{1, 200},           {2, 60000}, {3, 4e9},
                                                      {4, 1099511627776}, {5, -5},    {6, -300}};
    static const struct weir_trace_scalar scaled[] = {{2, 0.25}, {3, -3}};
    static const struct weir_trace_scalar spun[] = {{1, 7}, {2, 1000}};
    weir_kernel *store = NULL, *scale = NULL;
    ASSERT_OK(weir_kernel_create(rig->program, "store_values", &store));
    ASSERT_OK(weir_kernel_create(rig->program, "scale", &scale));
    launch_values(rig, store, scale);
    EXPECT_OK(weir_queue_sync(rig->up, WEIR_FOREVER));
    weir_kernel_destroy(&store);
    weir_kernel_destroy(&scale);
    const struct weir_trace *trace = rig_end(rig);
    ASSERT_UINT_EQ(trace->operation_count, 3);
    EXPECT_UINT_EQ(trace->operations[0].argument_bytes, 96);
    expect_scalars(&trace->operations[0], wanted, 6);
    EXPECT_UINT_EQ(trace->operations[1].argument_bytes, 192);
    expect_scalars(&trace->operations[1], scaled, 2);
    EXPECT_UINT_EQ(trace->operations[2].argument_bytes, 64);
    expect_scalars(&trace->operations[2], spun, 2);
}

// Patterns set the names of their regions themselves.

static weir_status compute_chunk(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct rig *rig = user;
    return weir_queue_launch(queue, rig->kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                             weir_out(rig->memory, chunk->in_offset, 64), 7u, UINT64_C(1000));
}

static weir_status run_chunks(struct rig *rig)
{
    OWN(weir_chunks_destroy) weir_chunks *chunks = NULL;
    struct weir_event done;
    weir_status status =
        weir_chunks_create(WEIR_PARAMS(weir_chunks, .device = rig->device, .src = {rig->frame, 0},
                                       .in = {rig->memory, 0}, .out = {rig->memory, 0},
                                       .dst = {rig->frame, 0}, .element_count = RIG_BYTES,
                                       .in_bytes = 1, .out_bytes = 1, .chunk_count = 4,
                                       .kernel = compute_chunk, .user = rig),
                           &chunks);
    if (status == WEIR_OK)
        status = weir_chunks_run(chunks, NULL, 0, &done);
    if (status == WEIR_OK)
        status = weir_event_sync(done, WEIR_FOREVER);
    return status;
}

static size_t count_in(const struct weir_trace *trace, const char *region)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->operation_count; i++)
        count += strcmp(trace->operations[i].region, region) == 0;
    return count;
}

TRACE_TEST(Trace, NamesWhatPatternsDo, "patterns.json", "")
{
    EXPECT_OK(run_chunks(rig));
    const struct weir_trace *trace = rig_end(rig);
    EXPECT_UINT_EQ(trace->operation_count, 4 * 3);
    for (size_t i = 0; i < 4; i++) {
        char region[32];
        snprintf(region, sizeof region, "chunk %zu", i);
        EXPECT_UINT_EQ(count_in(trace, region), 3);
    }
}

// Several threads share queues; each operation keeps the thread that submitted it.
static void *submit_some(void *user)
{
    struct rig *rig = user;
    for (size_t i = 0; i < 500; i++) {
        weir_region_push(rig->runtime, "step", i);
        EXPECT_OK(weir_queue_copy(i % 2 ? rig->up : rig->down, rig->memory, i % 2 * 64, rig->frame,
                                  0, 64));
        weir_region_pop(rig->runtime);
    }
    return NULL;
}

TRACE_TEST(Trace, OfSeveralThreads, "threads.json", "")
{
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, submit_some, rig), 0);
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    EXPECT_OK(weir_queue_sync(rig->up, WEIR_FOREVER));
    EXPECT_OK(weir_queue_sync(rig->down, WEIR_FOREVER));
    const struct weir_trace *trace = rig_end(rig);
    EXPECT_UINT_EQ(trace->operation_count + (size_t)trace->meta.dropped, 1500);
    uint64_t last = 0;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        EXPECT_TRUE(strncmp(operation->region, "step ", 5) == 0);
        if (i > 0 && operation->queue == trace->operations[i - 1].queue)
            EXPECT_UINT_LT(last, operation->sequence);
        last = operation->sequence;
    }
}

// A queue that is destroyed at once loses nothing, however many come and go.
TRACE_TEST(Trace, OfQueuesThatComeAndGo, "come.json", "")
{
    for (size_t i = 0; i < 100; i++) {
        own_queue queue = NULL;
        ASSERT_OK(weir_queue_create(rig->device, NULL, &queue));
        EXPECT_OK(weir_queue_copy(queue, rig->memory, i * 2048, rig->frame, 0, 2048));
        if (i % 2)
            EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    }
    const struct weir_trace *trace = rig_end(rig);
    EXPECT_UINT_EQ(trace->operation_count, 100);
    EXPECT_UINT_EQ(trace->queue_count, 100);
    for (size_t i = 0; i < trace->operation_count; i++)
        EXPECT_TRUE(trace->operations[i].timed);
}

// Operations after a failure never run, and are in the trace without times; operations
// after a recovery have times again.
TRACE_TEST(Trace, OfAQueueThatFails, "fails.json", "")
{
    static const bool timed[] = {true, true, true, false, true, true};
    EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, 64));
    EXPECT_OK(weir_queue_host_call(rig->up, gate_pass, &rig->gate));
    EXPECT_OK(weir_queue_host_call(rig->up, rig_fail_call, NULL));
    EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, 64));
    gate_open(&rig->gate);
    EXPECT_INT_EQ(weir_queue_sync(rig->up, WEIR_FOREVER), WEIR_ERROR_HOST_CALL);
    EXPECT_OK(weir_queue_recover(rig->up));
    EXPECT_OK(weir_queue_host_call(rig->up, rig_count_call, &rig->calls));
    EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, 64));
    EXPECT_OK(weir_queue_sync(rig->up, WEIR_FOREVER));
    const struct weir_trace *trace = rig_end(rig);
    EXPECT_INT_EQ(rig->calls, 1);
    ASSERT_UINT_EQ(trace->operation_count, sizeof timed / sizeof *timed);
    for (size_t i = 0; i < trace->operation_count; i++) {
        weir_test_note("operation %zu", i);
        EXPECT_INT_EQ(trace->operations[i].timed, timed[i]);
    }
    weir_test_note(NULL);
}

static int by_start(const void *a, const void *b)
{
    const struct weir_trace_operation *one = a;
    const struct weir_trace_operation *other = b;
    if (one->start_ns != other->start_ns)
        return one->start_ns < other->start_ns ? -1 : 1;
    return one->end_ns < other->end_ns ? -1 : one->end_ns > other->end_ns;
}

// Sorts the operations. A busy machine may have the last times of a queue too late for the trace.
static void expect_apart(const struct weir_trace *trace)
{
    uint64_t end_ns = 0;
    size_t timed = 0;
    qsort(trace->operations, trace->operation_count, sizeof *trace->operations, by_start);
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *one = &trace->operations[i];
        if (!one->timed)
            continue;
        timed++;
        EXPECT_FALSE(one->start_is_earliest);
        EXPECT_UINT_GE(one->start_ns, end_ns);
        end_ns = one->end_ns;
    }
    EXPECT_UINT_GT(2 * timed, trace->operation_count);
}

// Copies on four queues with one engine: `bursts` times 64.
static void expect_one_engine(struct rig *rig, int bursts)
{
    const char *starts = getenv("WEIR_TEST_STARTS");
    weir_queue *queues[4];
    if (weir_device_limits(rig->device)->copy_engines_to_device != 1)
        WEIR_SKIP("this device has no engine for copies");
    for (size_t i = 0; i < 4; i++)
        queues[i] = test_queue(rig->device, "");
    for (int burst = 0; burst < bursts; burst++) {
        for (size_t i = 0; i < 64; i++)
            EXPECT_OK(weir_queue_copy(queues[i % 4], rig->memory, i % 4 * (RIG_BYTES / 4),
                                      rig->frame, 0, RIG_BYTES / 4));
        for (size_t i = 0; i < 4; i++)
            EXPECT_OK(weir_queue_sync(queues[i], WEIR_FOREVER));
    }
    for (size_t i = 0; i < 4; i++)
        weir_queue_destroy(&queues[i]);
    const struct weir_trace *trace = rig_end(rig);
    EXPECT_UINT_EQ(trace->operation_count, 64 * (size_t)bursts);
    for (size_t i = 1; i < trace->operation_count; i++)
        if (trace->operations[i].timed &&
            trace->operations[i].queue_index == trace->operations[i - 1].queue_index)
            EXPECT_UINT_LE(trace->operations[i - 1].end_ns, trace->operations[i].start_ns);
    // CUPTI reports when they really ran: the tests' libcuda has an engine for each
    // stream.
    if (starts && strcmp(starts, "earliest") == 0)
        expect_apart(trace);
}

// Copies in one direction never overlap if the device has one engine for them, however
// many queues they come from.
TRACE_TEST(Trace, CopiesOfOneDirectionShareAnEngine, "engine.json", "")
{
    expect_one_engine(rig, 1);
}

// Nor do they when a reading of the clocks moves what has ended since before what is written already.
WEIR_TEST_WITH(Trace, CopiesShareAnEngineThoughTheClocksAreReadBadly, struct rig, rig,
               rig_start(rig, "jitter.json", "", "trace, jitter"), rig_finish(rig))
{
    expect_one_engine(rig, 1000);
}

// The memory of the plugin `trace`: as much as configured, without growth over time.

// Until that many operations are in the file: they have left the ring by then.
static bool wait_for_operations(const char *path, size_t count)
{
    size_t there = 0;
    for (int i = 0; i < 6000 && there < count; i++) {
        own_trace trace = NULL;
        char message[512];
        usleep(10000);
        there = weir_trace_read(path, NULL, &trace, message, sizeof message)
                    ? trace->operation_count
                    : 0;
    }
    return there >= count;
}

// More operations at once than the ring holds: those that are dropped are counted, and
// the submitter is not delayed. On a queue that is held by a host call nothing completes
// meanwhile.
TRACE_TEST(Trace, CountsWhatItDoesNotKeep, "drops.json", "buffer = 1024\nflush = 1")
{
    EXPECT_OK(weir_queue_host_call(rig->up, gate_pass, &rig->gate));
    for (size_t i = 0; i < 3000; i++)
        EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, 64));
    gate_open(&rig->gate);
    EXPECT_OK(weir_queue_sync(rig->up, WEIR_FOREVER));
    // Afterwards there is room again.
    EXPECT_TRUE(wait_for_operations(rig->path, 1024));
    for (size_t i = 0; i < 5; i++)
        EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, 32));
    EXPECT_OK(weir_queue_sync(rig->up, WEIR_FOREVER));
    const struct weir_trace *trace = rig_end(rig);
    EXPECT_UINT_EQ(trace->meta.dropped, 3000 - 1023);
    ASSERT_UINT_EQ(trace->operation_count, 1024 + 5);
    for (size_t i = 0; i < trace->operation_count; i++)
        EXPECT_TRUE(trace->operations[i].timed);
    EXPECT_UINT_EQ(trace->operations[1028].bytes, 32);
}

// A file ends at its limit, whole; what comes later is counted, and its regions are not kept.
TRACE_TEST(Trace, EndsAtItsLimit, "limit.json", "limit = 1")
{
    for (size_t i = 0; i < 10; i++) {
        weir_region_push(rig->runtime, "round", i);
        for (size_t k = 0; k < 1000; k++)
            EXPECT_OK(weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, 64));
        EXPECT_OK(weir_queue_sync(rig->up, WEIR_FOREVER));
        weir_region_pop(rig->runtime);
    }
    const struct weir_trace *trace = rig_end(rig);
    struct stat file;
    ASSERT_INT_EQ(stat(rig->path, &file), 0);
    EXPECT_TRUE(file.st_size > 1 << 20 && file.st_size < (1 << 20) + 8192);
    EXPECT_FALSE(trace->meta.truncated);
    EXPECT_TRUE(trace->operation_count > 500 && trace->operation_count < 2000);
    EXPECT_UINT_EQ(trace->operation_count + trace->meta.beyond, 10 * 1000);
    EXPECT_UINT_EQ(trace->note_count, 1);
}

// Four hundred thousand operations take no more memory than the first hundred thousand.
TRACE_TEST(Trace, TakesNoMoreAndMoreMemory, "long.json", "buffer = 2048")
{
    struct weir_counters before;
    struct weir_counters after;
    uint64_t warm = 0;
    for (size_t i = 0; i < 400; i++) {
        if (i == 100) {
            warm = weir_test_resident_bytes();
            weir_counters_read(&before);
        }
        weir_region_push(rig->runtime, "round", i);
        for (size_t k = 0; k < 1000; k++)
            if (weir_queue_copy(rig->up, rig->memory, 0, rig->frame, 0, 64) < 0)
                WEIR_FAIL("%s", weir_last_error_text());
        EXPECT_OK(weir_queue_sync(rig->up, WEIR_FOREVER));
        weir_region_pop(rig->runtime);
    }
    weir_counters_read(&after);
    EXPECT_UINT_EQ(after.allocations, before.allocations);
    if (!WEIR_MODULE_SANITIZER[0]) // sanitizers keep what was freed
        EXPECT_UINT_LE(weir_test_resident_bytes(), warm + (24u << 20));
    rig_finish(rig);
    unlink(rig->path);
}

static void *push_and_pop(void *argument)
{
    const struct rig *rig = argument;
    weir_region_push(rig->runtime, "short", WEIR_NO_NUMBER);
    weir_region_pop(rig->runtime);
    return NULL;
}

static void run_threads(struct rig *rig, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        ASSERT_INT_EQ(pthread_create(&thread, NULL, push_and_pop, rig), 0);
        ASSERT_INT_EQ(pthread_join(thread, NULL), 0);
    }
    usleep(20000); // the file is written meanwhile
}

// Nor do threads that have ended.
TRACE_TEST(Trace, ForgetsThreadsThatHaveEnded, "ended_threads.json", "")
{
    uint64_t warm = 0;
    for (size_t i = 0; i < 40; i++) {
        if (i == 4)
            warm = weir_test_resident_bytes();
        run_threads(rig, 50);
    }
    if (!WEIR_MODULE_SANITIZER[0])
        EXPECT_UINT_LE(weir_test_resident_bytes(), warm + (5u << 20));
    const struct weir_trace *trace = rig_end(rig);
    EXPECT_UINT_EQ(rig_count_spans(trace, "short"), 40 * 50);
}
