// Files made to cost the reader memory or time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "report/trace.h"
#include "tests/support/test.h"

static const char *path;

static void write_repeated(const char *head, const char *piece, size_t count, const char *tail)
{
    gzFile file = gzopen(path, "wb9");
    ASSERT_NOT_NULL(file);
    gzputs(file, head);
    for (size_t i = 0; i < count; i++)
        gzputs(file, piece);
    gzputs(file, tail);
    ASSERT_INT_EQ(gzclose(file), Z_OK);
}

// Runs the function in a process of its own, which must be right, and have used no more memory than that.
static void expect_less(long most_kib, bool (*is_right)(const void *user), const void *user)
{
    struct rusage usage;
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const bool right = is_right(user);
        getrusage(RUSAGE_SELF, &usage);
        _exit(!right ? 1 : usage.ru_maxrss > most_kib ? 2 : 0);
    }
    ASSERT_INT_EQ(waitpid(child, &status, 0), child);
    EXPECT_INT_EQ(WEXITSTATUS(status), 0);
}

// What reading the file is to tell, and whether it is read.
struct reading {
    bool readable;
    const char *words;
};

static bool reads_as(const void *user)
{
    const struct reading *wanted = user;
    char message[512] = "";
    struct weir_trace *trace = NULL;
    const bool read = weir_trace_read(path, NULL, &trace, message, sizeof message);
    weir_trace_destroy(&trace);
    return read == wanted->readable && strstr(message, wanted->words);
}

static void expect_small(bool readable, const char *words)
{
    expect_less(96 << 10, reads_as, &(struct reading){readable, words});
}

// Six MiB of text from six KiB; as values they were 240 MiB.
WEIR_TEST(Hostile, ManySmallValuesAreNotKept)
{
    path = weir_test_path("list.json.gz");
    write_repeated("{\"traceEvents\": [", "[],", (size_t)2 << 20, "1]}");
    expect_small(true, "");
    write_repeated("[", "{},", (size_t)2 << 20, "1]");
    expect_small(true, "");
}

// As one event, and as one line of a trace of Weir's.
WEIR_TEST(Hostile, AnEventOfManyValuesIsNotParsed)
{
    path = weir_test_path("event.json.gz");
    write_repeated("{\"traceEvents\": [{\"a\":[", "[],", (size_t)2 << 20, "1]}]}");
    expect_small(false, "line 1: a value of it has more than 131072 parts");
    write_repeated("{\n\"weir\": {\"format\":1},\n\"traceEvents\": [\n{\"a\":[", "[],",
                   (size_t)2 << 20, "1]},\n]\n}\n");
    expect_small(true, "");
    write_repeated("{\n\"deviceProperties\": [", "[],", (size_t)2 << 20, "1],\n}");
    expect_small(false, "parts");
}

static const char own_head[] =
    "{\n\"weir\": {\"format\":1,\"process\":5000},\n\"traceEvents\": [\n";

// Everything that is kept has a limit, not operations alone.
WEIR_TEST(Hostile, WhatIsKeptHasALimit)
{
    static const struct {
        const char *head;
        const char *row;
    } rows[] = {
        {own_head,
         "{\"ph\":\"X\",\"name\":\"r\",\"tid\":1,\"args\":{\"weir.span\":\"region\"}},\n"},
        {own_head, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":5000,\"tid\":1,\"args\":{}},\n"},
        {"[\n", "{\"ph\":\"X\",\"cat\":\"cuda_driver\",\"args\":{}},\n"},
    };
    const struct weir_trace_read_options options = {.operation_limit = 3};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t count = 12; count <= 13; count++) {
            struct weir_trace *trace = NULL;
            char message[512] = "";
            const char *end = rows[i].head == own_head ? "]\n}\n" : "1]\n";
            weir_test_note("row %zu, %zu times", i, count);
            path = weir_test_path("rows.json");
            write_repeated(rows[i].head, rows[i].row, count, end);
            EXPECT_INT_EQ(weir_trace_read(path, &options, &trace, message, sizeof message),
                          count == 12);
            EXPECT_TRUE(count == 12 ||
                        strstr(message, "it holds more than 12 waits, regions and calls"));
            weir_trace_destroy(&trace);
        }
}

// Waits of one operation count too.
WEIR_TEST(Hostile, WaitsHaveALimit)
{
    const struct weir_trace_read_options options = {.operation_limit = 3};
    struct weir_trace *trace = NULL;
    char message[512] = "";
    path = weir_test_path("waits.json");
    write_repeated("{\n\"weir\": {\"format\":1},\n\"traceEvents\": [\n{\"ph\":\"i\",\"pid\":0,"
                   "\"tid\":1,\"args\":{\"weir.sequence\":1,\"weir.waits\":[",
                   "[1,2],", 12, "[1,2]]}},\n]\n}\n");
    EXPECT_FALSE(weir_trace_read(path, &options, &trace, message, sizeof message));
    EXPECT_CONTAINS(message, "it holds more than 12 waits");
    EXPECT_TRUE(weir_trace_read(path, NULL, &trace, message, sizeof message));
    ASSERT_UINT_EQ(trace->operation_count, 1);
    EXPECT_UINT_EQ(trace->operations[0].wait_count, 13);
    weir_trace_destroy(&trace);
}

static bool write_queues(const void *user)
{
    const size_t count = *(const size_t *)user;
    const struct weir_trace_meta meta = {.program = "made",
                                         .weir = "",
                                         .backend = "null",
                                         .plugins = "",
                                         .source = "host",
                                         .process = 5000};
    char message[512] = "";
    weir_trace_writer *writer = weir_trace_writer_create(path, &meta, message, sizeof message);
    for (size_t i = 1; writer && i <= count; i++) {
        const struct weir_trace_wait wait = {.queue = i - 1, .sequence = 1, .file = ""};
        weir_trace_writer_queue(writer, &(struct weir_trace_queue){.id = i, .label = ""});
        weir_trace_writer_operation(writer, &(struct weir_trace_operation){
                                                .queue = i,
                                                .sequence = 1,
                                                .kind = WEIR_TRACE_COPY,
                                                .engine = WEIR_ENGINE_TO_DEVICE,
                                                .timed = true,
                                                .start_ns = i * 10,
                                                .end_ns = i * 10 + 5,
                                                .waits = &wait,
                                                .wait_count = i > 1,
                                            });
    }
    return writer && weir_trace_writer_close(&writer, &meta, message, sizeof message);
}

// A program that makes a queue for each of its requests is traced with little memory.
WEIR_TEST(Hostile, ManyQueuesCostTheWriterLittle)
{
    const size_t count = 10000;
    path = weir_test_path("queues.json.gz");
    expect_less(64 << 10, write_queues, &count);
}
