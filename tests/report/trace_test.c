// Traces are read back as they were written, and damaged traces are read up to the
// damage.

#include "base/file.h"
#include "tests/report/made.h"

static struct made made;
static char message[512];

// On error the test fails and NULL is returned.
static struct weir_trace *read_trace(const char *path)
{
    struct weir_trace *trace = NULL;
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message))
        weir_test_fail(__FILE__, __LINE__, "%s", message);
    return trace;
}

// Whole files.

struct bytes {
    char *data;
    size_t size;
};

static void free_bytes(struct bytes *bytes)
{
    free(bytes->data);
}

// Freed at the end of its scope.
#define own_bytes OWN(free_bytes) struct bytes

static struct bytes read_bytes(const char *path)
{
    struct bytes it = {0};
    void *data = NULL;
    if (!weir_file_read(path, (size_t)1 << 24, &data, &it.size, message, sizeof message))
        weir_test_fail(__FILE__, __LINE__, "%s", message);
    it.data = data;
    return it;
}

// Reads what a file of these bytes has.
static bool read_data(const void *data, size_t size, struct weir_trace **trace)
{
    const char *path = weir_test_path("file");
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        weir_test_fail(__FILE__, __LINE__, "%s cannot be written", path);
    return weir_trace_read(path, NULL, trace, message, sizeof message);
}

static const struct weir_trace_operation *find(const struct weir_trace *trace,
                                               const struct weir_trace_operation *wanted)
{
    for (size_t i = 0; i < trace->operation_count; i++)
        if (trace->operations[i].queue == wanted->queue &&
            trace->operations[i].sequence == wanted->sequence)
            return &trace->operations[i];
    return NULL;
}

// Writes what was read, operations in the order of `made`.
static void write_again(const struct weir_trace *trace, const char *path)
{
    weir_trace_writer *writer =
        weir_trace_writer_create(path, &trace->meta, message, sizeof message);
    ASSERT_NOT_NULL(writer);
    for (size_t i = 0; i < trace->device_count; i++)
        weir_trace_writer_device(writer, &trace->devices[i]);
    for (size_t i = 0; i < made.queue_count; i++)
        for (size_t k = 0; k < trace->queue_count; k++)
            if (trace->queues[k].id == made.queues[i].id)
                weir_trace_writer_queue(writer, &trace->queues[k]);
    for (size_t i = 0; i < trace->thread_count; i++)
        weir_trace_writer_thread(writer, &trace->threads[i]);
    for (size_t i = 0; i < made.operation_count; i++) {
        const struct weir_trace_operation *operation = find(trace, &made.operations[i]);
        EXPECT_NOT_NULL(operation);
        if (operation)
            weir_trace_writer_operation(writer, operation);
    }
    for (size_t i = 0; i < trace->span_count; i++)
        weir_trace_writer_span(writer, &trace->spans[i]);
    EXPECT_TRUE(weir_trace_writer_close(&writer, &trace->meta, message, sizeof message));
}

// What was read, written again, is the plain file `path`.
static void expect_same(const struct weir_trace *trace, const char *path)
{
    char again[600];
    snprintf(again, sizeof again, "%s.again", path);
    ASSERT_UINT_EQ(trace->operation_count, made.operation_count);
    write_again(trace, again);
    own_bytes first = read_bytes(path), second = read_bytes(again);
    size_t same = 0;
    while (same < first.size && first.data[same] == second.data[same])
        same++;
    char wanted[200], found[200];
    snprintf(wanted, sizeof wanted, "%s", first.data + same);
    snprintf(found, sizeof found, "%s", second.data + same);
    EXPECT_STR_EQ(found, wanted);
}

// How many keys of Weir's the file has.
static size_t count_keys(const char *text)
{
    static const char begin[] = "\"weir.";
    const char *keys[128];
    size_t count = 0;
    while ((text = strstr(text, begin)) && count < 128) {
        const size_t length = strcspn(text + 1, "\"") + 2;
        size_t at = 0;
        while (at < count && strncmp(keys[at], text, length) != 0)
            at++;
        keys[at] = text;
        count += at == count;
        text += length;
    }
    return count;
}

// Every field of everything, with values that no other field has.
static void make_full(void)
{
    made_begin(&made, 0);
    made.meta.program = "full \"quoted\" \\ \t\x01 ünï";
    made.meta.plugins = "check, trace";
    made.devices[0].label = "the first";
    made_queue(&made, "up");
    made_queue(&made, NULL);
    made.queues[1].priority = -3;
    made.meta.end_ns = 999999;
    made.meta.dropped = 5;
    made.meta.unfinished = 2;

    struct weir_trace_operation *copy = made_operation(&made, 0, WEIR_ENGINE_TO_DEVICE, 1001, 2002);
    copy->label = "frame";
    copy->region = "frame 12/up";
    copy->finding_kind = "write-after-read";
    copy->finding = "the copy writes \"bytes\"";
    copy->remedy = "wait";
    copy->failed = true;
    struct weir_trace_operation *launch = made_operation(&made, 1, WEIR_ENGINE_KERNELS, 3003, 4004);
    made_wait(&made, 0);
    launch->start_is_earliest = true;
    memcpy(launch->grid, (const uint32_t[3]){16, 2, 1}, sizeof launch->grid);
    memcpy(launch->block, (const uint32_t[3]){64, 1, 1}, sizeof launch->block);
    static const struct weir_trace_scalar scalars[] = {{0, -3}, {7, 0.1}, {2, 1e300}};
    launch->argument_bytes = 4096;
    launch->scalars = scalars;
    launch->scalar_count = 3;
    struct weir_trace_operation *graph = made_operation(&made, 1, WEIR_ENGINE_KERNELS, 5000, 7000);
    graph->kind = WEIR_TRACE_GRAPH;
    graph->name = "captured";
    struct weir_trace_operation *lost = made_operation(&made, 0, WEIR_ENGINE_TO_HOST, 0, 0);
    lost->timed = false;
    lost->submit_ns = 8000;
    lost->submit_end_ns = 8100;
    struct weir_trace_operation *call = made_operation(&made, 0, WEIR_ENGINE_HOST, 9000, 9100);
    call->thread = 0;
    static const struct weir_trace_collective scatter = {
        "reduce-scatter", "bf16", "average", 7, 12, 3, 4, 1};
    struct weir_trace_operation *collective =
        made_operation(&made, 0, WEIR_ENGINE_COMMUNICATION, 9200, 9300);
    collective->kind = WEIR_TRACE_COLLECTIVE;
    collective->bytes = 50;
    collective->label = "grads";
    collective->collective = &scatter;
    made.spans[made.span_count++] =
        (struct weir_trace_span){WEIR_TRACE_REGION, 99, "frame", 12, 10, 20};
    made.spans[made.span_count++] =
        (struct weir_trace_span){WEIR_TRACE_SYNC, 99, "weir_event_sync", WEIR_NO_NUMBER, 15, 18};
}

// Of the full trace, which becomes the file of that name.
static struct bytes full_bytes(const char *name)
{
    const char *path = weir_test_path(name);
    make_full();
    made_write(&made, path);
    return read_bytes(path);
}

// What the writer and the reader might both take for another field.
static const char *const parts[] = {
    "\"ts\":1.001,\"dur\":1.001",
    "\"weir.dst\":\"b\",\"weir.src\":\"a\",\"weir.dst_memory\":\"Device\",\"weir.src_memory\":"
    "\"Pinned\"",
    "\"weir.submit\":1,\"weir.submit_end\":101",
    "\"weir.finding_kind\":\"write-after-read\",\"weir.finding\":\"the copy writes "
    "\\\"bytes\\\"\",\"weir.remedy\":\"wait\"",
    "\"weir.waits\":[[10,3,\"wait.c\",1]]",
    "\"weir.collective\":[\"reduce-scatter\",\"bf16\",\"average\",7,12,3,4,1]",
    "\"weir.priority\":-3",
    // For other tools, with bandwidths as nccl-tests compute them.
    "\"Collective name\":\"reduce-scatter\",\"dtype\":\"bf16\",\"Group size\":4,\"Process Group "
    "Name\":\"grads\",\"algorithm GB/s\":0.5,\"bus GB/s\":0.375",
    "\"weir.end\":999999,\"weir.dropped\":5,\"weir.unfinished\":2",
};

// The file has a key for each field, but for those that tools know by another name.
WEIR_TEST(Trace, EverythingIsReadBackTheSame)
{
    char compressed[600];
    const char *plain = weir_test_path("full.json");
    snprintf(compressed, sizeof compressed, "%s.gz", plain);
    make_full();
    made_write(&made, plain);
    made_write(&made, compressed);
    for (size_t i = 0; i < 2; i++) {
        own_trace trace = read_trace(i ? compressed : plain);
        ASSERT_NOT_NULL(trace);
        EXPECT_FALSE(trace->meta.truncated);
        expect_same(trace, plain);
        weir_trace_destroy(&trace);
        EXPECT_NULL(trace);
    }
    own_bytes it = read_bytes(plain);
    EXPECT_UINT_EQ(count_keys(it.data), 38);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        EXPECT_CONTAINS(it.data, parts[i]);
}

WEIR_TEST(Trace, AWaitIsResolvedToTheLastOperationBeforeIt)
{
    const char *path = weir_test_path("waits.json");
    made_begin(&made, 2, "up", "run");
    made_operation(&made, 1, WEIR_ENGINE_KERNELS, 0, 1);
    made_wait(&made, 0); // it was still empty
    made_operation(&made, 0, WEIR_ENGINE_TO_DEVICE, 10, 20);
    made_operation(&made, 0, WEIR_ENGINE_TO_DEVICE, 20, 30);
    made_operation(&made, 1, WEIR_ENGINE_KERNELS, 30, 40);
    made_wait(&made, 0);
    made_operation(&made, 0, WEIR_ENGINE_TO_DEVICE, 30, 50);
    made_write(&made, path);
    own_trace trace = read_trace(path);
    ASSERT_NOT_NULL(trace);
    // Of queue "up" 0, 1, 2; of "run" 3, 4.
    EXPECT_UINT_EQ(trace->operations[3].waits[0].operation, WEIR_TRACE_NO_INDEX);
    EXPECT_UINT_EQ(trace->operations[4].waits[0].operation, 1);
}

WEIR_TEST(Trace, CutAnywhereItIsReadAsFarAsItGoes)
{
    own_bytes it = full_bytes("cut.json");
    const char *end = strstr(it.data, "\n],\n"); // of the last row
    size_t last = 0;
    size_t refused = 0;
    for (size_t size = 0; size < it.size && !weir_test_has_failed(); size++) {
        own_trace trace = NULL;
        weir_test_note("cut after %zu of %zu bytes", size, it.size);
        if (!read_data(it.data, size, &trace)) {
            // Only if even the head is missing.
            EXPECT_NULL(trace);
            EXPECT_CONTAINS(message, "/file: ");
            EXPECT_UINT_EQ(last, 0);
            refused++;
            continue;
        }
        EXPECT_UINT_GE(trace->operation_count, last);
        last = trace->operation_count;
        EXPECT_TRUE(trace->meta.truncated || it.data + size >= end);
    }
    EXPECT_UINT_EQ(last, made.operation_count);
    EXPECT_UINT_LT(refused, 500);
}

WEIR_TEST(Trace, ACompressedOneIsReadAsFarAsItGoes)
{
    own_bytes it = full_bytes("cut.json.gz");
    size_t most = 0;
    for (size_t size = 0; size < it.size && !weir_test_has_failed(); size += 7) {
        own_trace trace = NULL;
        weir_test_note("cut after %zu of %zu bytes", size, it.size);
        if (read_data(it.data, size, &trace)) {
            if (trace->operation_count > most)
                most = trace->operation_count;
            EXPECT_UINT_GT(trace->note_count, 0);
        } else {
            EXPECT_CONTAINS(message, "/file: ");
        }
    }
    EXPECT_UINT_GT(most, 0);
}

WEIR_TEST(Trace, ABadLineCostsItselfOnly)
{
    own_trace trace = NULL;
    own_bytes it = full_bytes("bad.json");
    char *row = strstr(it.data, "\"name\":\"scale\"");
    ASSERT_NOT_NULL(row);
    row[8] = '\0'; // inside the string
    ASSERT_TRUE(read_data(it.data, it.size, &trace));
    EXPECT_UINT_EQ(trace->operation_count, made.operation_count - 1);
    EXPECT_TRUE(trace->meta.truncated);
    bool told = false;
    for (size_t i = 0; i < trace->note_count; i++)
        told = told || strstr(trace->notes[i], "1 line cannot be read") != NULL;
    EXPECT_TRUE(told);
}

// Replaces the first `comma` by `with`, of the same length.
static void expect_commas_are_optional(const char *comma, const char *with)
{
    own_trace trace = NULL;
    own_bytes it = full_bytes("commas.json");
    char *at = strstr(it.data, comma);
    ASSERT_NOT_NULL(at);
    memcpy(at, with, strlen(with));
    ASSERT_TRUE(read_data(it.data, it.size, &trace));
    EXPECT_UINT_EQ(trace->operation_count, made.operation_count);
    EXPECT_FALSE(trace->meta.truncated);
}

WEIR_TEST(Trace, ALineMayHaveLostItsComma)
{
    expect_commas_are_optional(",\n{\"ph\":\"X\"", " \n{\"ph\":\"X\"");
    expect_commas_are_optional("\n]", ",]");
}

static void expect_refused(const char *data, size_t size, const char *part)
{
    own_trace trace = NULL;
    EXPECT_FALSE(read_data(data, size, &trace));
    EXPECT_NULL(trace);
    EXPECT_CONTAINS(message, part);
}

WEIR_TEST(Trace, WhatIsNoTraceGetsASentence)
{
    expect_refused("", 0, "file: the file is empty");
    expect_refused(" \n\n", 3, "file: the file is empty");
    expect_refused("hello", 5, "file: this is no trace");
    expect_refused("{\"a\": 1}", 8, "without \"traceEvents\"");
    expect_refused("{\"traceEvents\": 1}", 18, "without \"traceEvents\"");
    expect_refused("17", 2, "file: this is no trace");
    expect_refused("\x1f\x8b\x08", 3, "file: its compressed data is damaged");
}

WEIR_TEST(Trace, FilesThatCannotBeReadGetASentence)
{
    own_trace trace = NULL;
    EXPECT_FALSE(weir_trace_read("/nothing/here", NULL, &trace, message, sizeof message));
    EXPECT_CONTAINS(message, "/nothing/here: ");
    EXPECT_FALSE(weir_trace_read("/", NULL, &trace, message, sizeof message));
    EXPECT_CONTAINS(message, "is a directory");
    EXPECT_FALSE(weir_trace_read("/dev/zero", NULL, &trace, message, sizeof message));
    EXPECT_NULL(trace);
}

WEIR_TEST(Trace, TooManyOperationsAreRefused)
{
    own_trace trace = NULL;
    const struct weir_trace_read_options options = {.operation_limit = 3};
    const char *path = weir_test_path("many.json");
    made_begin(&made, 1, "q");
    for (uint64_t i = 0; i < 4; i++)
        made_operation(&made, 0, WEIR_ENGINE_KERNELS, i, i + 1);
    made_write(&made, path);
    EXPECT_FALSE(weir_trace_read(path, &options, &trace, message, sizeof message));
    EXPECT_NULL(trace);
    EXPECT_CONTAINS(message, "more than 3 operations");
}

// Another program has spread it over more lines than Weir does, but for a short value of the head.
WEIR_TEST(Trace, EventsOfSeveralLinesAreRead)
{
    static const char data[] = "{\n \"weir\": {\n  \"version\": \"1\",\n  \"process\": 7\n },\n"
                               " \"baseTimeNanoseconds\": 5,\n \"traceEvents\": [\n  {\n   \"ph\": "
                               "\"X\",\n   \"tid\": 3,\n"
                               "   \"ts\": 1,\n   \"dur\": 2,\n   \"args\": {\n    "
                               "\"weir.sequence\": 1\n   }\n  }\n ]\n}\n";
    own_trace trace = NULL;
    ASSERT_TRUE(read_data(data, sizeof data - 1, &trace));
    ASSERT_UINT_EQ(trace->operation_count, 1);
    EXPECT_UINT_EQ(trace->operations[0].end_ns, 3000);
}

// Another program has sorted the keys, so that the head comes last, and wrote a row twice.
WEIR_TEST(Trace, TheHeadMayComeAfterTheEvents)
{
    static const char data[] =
        "{\"baseTimeNanoseconds\": 5, \"traceEvents\": [\n"
        "{\"args\": {\"name\": \"python\"}, \"name\": \"process_name\", \"ph\": \"M\", \"pid\": "
        "7},\n"
        "{\"args\": {\"weir.label\": \"q\"}, \"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, "
        "\"tid\": 3},\n"
        "{\"args\": {\"weir.label\": \"q\"}, \"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, "
        "\"tid\": 3},\n"
        "{\"args\": {\"name\": \"main\"}, \"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 7, "
        "\"tid\": "
        "9},\n"
        "{\"args\": {\"weir.sequence\": 2, \"weir.waits\": [[4, 1, \"w.c\", 8]]}, \"ph\": "
        "\"X\", "
        "\"pid\": 1, \"tid\": 3, \"ts\": 3, \"dur\": 1},\n"
        "{\"args\": {\"weir.sequence\": 1}, \"ph\": \"X\", \"pid\": 0, \"tid\": 4, \"ts\": 1, "
        "\"dur\": 1},\n"
        "{\"args\": {\"correlation\": 1}, \"cat\": \"cuda_runtime\", \"ph\": \"X\", \"ts\": 1}],\n"
        "\"weir\": {\"process\": 7, \"version\": \"1\"}}";
    own_trace trace = NULL;
    ASSERT_TRUE(read_data(data, sizeof data - 1, &trace));
    EXPECT_STR_EQ(trace->meta.weir, "1");
    EXPECT_UINT_EQ(trace->meta.base_unix_ns, 5);
    ASSERT_UINT_EQ(trace->queue_count, 2);
    EXPECT_UINT_EQ(trace->device_count, 2);
    ASSERT_UINT_EQ(trace->thread_count, 1);
    EXPECT_STR_EQ(trace->threads[0].name, "main");
    EXPECT_STR_EQ(trace->queues[1].label, "q");
    ASSERT_UINT_EQ(trace->operation_count, 2);
    EXPECT_UINT_EQ(trace->operations[1].sequence, 2);
    EXPECT_UINT_EQ(trace->operations[1].start_ns, 3000);
    ASSERT_UINT_EQ(trace->operations[1].wait_count, 1);
    EXPECT_UINT_EQ(trace->operations[1].waits[0].operation, 0);
}

WEIR_TEST(Trace, TracesOfPyTorchAreRead)
{
    static const char data[] =
        "{\n \"schemaVersion\": 1,\n \"deviceProperties\": [{\"id\": 0, \"name\": \"GPU\","
        "\"totalGlobalMem\": 10, \"numSms\": 3}],\n \"traceEvents\": [\n"
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7,"
        "\"ts\": 1000.500, \"dur\": 20.250, \"args\": {\"device\": 0, \"stream\": 7,"
        "\"correlation\": 5, \"grid\": [2, 3, 4], \"block\": [32, 1, 1]}},\n"
        "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 9,"
        "\"tid\": 11, \"ts\": 990, \"dur\": 4, \"args\": {\"correlation\": 5}},\n"
        "{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pageable -> Device)\","
        "\"pid\": 0, \"tid\": 8, \"ts\": 1010, \"dur\": 5, \"args\": {\"device\": 0,"
        "\"stream\": 8, \"correlation\": 6, \"bytes\": 4096}},\n"
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
        "\"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)\","
        "\"pid\": 0, \"tid\": 8, \"ts\": 1020, \"dur\": 20, \"args\": {\"device\": 0, \"stream\": "
        "8,"
        "\"correlation\": 7}},\n"
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"ts\": 1, \"dur\": 1}]}";
    own_trace trace = NULL;
    ASSERT_TRUE(read_data(data, sizeof data - 1, &trace));
    ASSERT_UINT_EQ(trace->operation_count, 3);
    EXPECT_INT_EQ(trace->operations[2].engine, WEIR_ENGINE_COMMUNICATION);
    const struct weir_trace_operation *kernel = &trace->operations[0];
    const struct weir_trace_operation *copy = &trace->operations[1];
    EXPECT_STR_EQ(kernel->name, "gemm");
    EXPECT_INT_EQ(kernel->engine, WEIR_ENGINE_KERNELS);
    EXPECT_UINT_EQ(kernel->grid[2], 4);
    // The first event is at time 0.
    EXPECT_UINT_EQ(kernel->submit_ns, 0);
    EXPECT_UINT_EQ(kernel->submit_end_ns, 4000);
    EXPECT_UINT_EQ(kernel->thread, 11);
    EXPECT_UINT_EQ(kernel->start_ns, 10500);
    EXPECT_UINT_EQ(kernel->end_ns, 30750);
    EXPECT_INT_EQ(copy->engine, WEIR_ENGINE_TO_DEVICE);
    EXPECT_INT_EQ(copy->src_memory, WEIR_TRACE_PAGEABLE_MEMORY);
    EXPECT_INT_EQ(copy->dst_memory, WEIR_TRACE_DEVICE_MEMORY);
    EXPECT_UINT_EQ(copy->bytes, 4096);
    EXPECT_UINT_EQ(trace->queue_count, 2);
    EXPECT_STR_EQ(trace->devices[0].name, "GPU");
}

WEIR_TEST(Trace, WhatCannotBeWrittenIsTold)
{
    made_begin(&made, 0);
    EXPECT_NULL(
        weir_trace_writer_create("/nothing/here.json", &made.meta, message, sizeof message));
    EXPECT_CONTAINS(message, "/nothing/here.json: ");
    EXPECT_NULL(weir_trace_writer_create("/", &made.meta, message, sizeof message));

    // Only the end of the trace detects and reports it.
    weir_trace_writer *writer =
        weir_trace_writer_create("/dev/full", &made.meta, message, sizeof message);
    ASSERT_NOT_NULL(writer);
    weir_trace_writer_device(writer, &made.devices[0]);
    EXPECT_FALSE(weir_trace_writer_close(&writer, &made.meta, message, sizeof message));
    EXPECT_NULL(writer);
    EXPECT_CONTAINS(message, "/dev/full: the trace is incomplete");
}

WEIR_TEST(Trace, WhatWasFlushedIsThereWithoutAnEnd)
{
    static const char *const names[] = {"flushed.json", "flushed.json.gz"};
    for (size_t i = 0; i < 2; i++) {
        const char *path = weir_test_path(names[i]);
        make_full();
        weir_trace_writer *writer =
            weir_trace_writer_create(path, &made.meta, message, sizeof message);
        ASSERT_NOT_NULL(writer);
        weir_trace_writer_device(writer, &made.devices[0]);
        weir_trace_writer_queue(writer, &made.queues[0]);
        weir_trace_writer_operation(writer, &made.operations[0]);
        EXPECT_TRUE(weir_trace_writer_flush(writer));
        // Not flushed.
        weir_trace_writer_operation(writer, &made.operations[0]);
        own_trace trace = read_trace(path);
        ASSERT_NOT_NULL(trace);
        EXPECT_UINT_EQ(trace->operation_count, 1);
        EXPECT_TRUE(trace->meta.truncated);
        weir_trace_writer_close(&writer, &made.meta, message, sizeof message);
    }
}

static void count_progress(void *user, uint64_t done, uint64_t total)
{
    uint64_t *seen = user;
    EXPECT_UINT_LE(done, total);
    *seen = done;
}

WEIR_TEST(Trace, ProgressReachesTheWholeFile)
{
    own_trace trace = NULL;
    uint64_t seen = 0;
    const struct weir_trace_read_options options = {.progress = count_progress, .user = &seen};
    const char *path = weir_test_path("progress.json.gz");
    make_full();
    made_write(&made, path);
    own_bytes it = read_bytes(path);
    ASSERT_TRUE(weir_trace_read(path, &options, &trace, message, sizeof message));
    EXPECT_UINT_EQ(seen, it.size);
}
