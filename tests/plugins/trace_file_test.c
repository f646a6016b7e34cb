// The file of a trace: invalid paths are refused, a full disk is reported, and the file of
// a killed process can be read.
#define _DEFAULT_SOURCE // usleep

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/plugins/trace_rig.h"

static void expect_refused(const char *section, const char *words)
{
    weir_runtime *runtime = NULL;
    weir_test_note("%s", section);
    EXPECT_INT_LT(rig_open(section, "trace", &runtime), 0);
    EXPECT_NULL(runtime);
    EXPECT_CONTAINS(weir_last_error_text(), words);
    WEIR_IGNORE(weir_close(&runtime));
    weir_test_note(NULL);
}

WEIR_TEST(TraceRefuses, WrongValues)
{
    char text[600] = "file = /";
    expect_refused("buffer = 1023", "1024");
    expect_refused("buffer = many", "many");
    expect_refused("flush = 0", "flush");
    expect_refused("flush = 60001", "60000");
    expect_refused("fiel = x.json", "did you mean 'file'?");
    expect_refused("file = /nowhere/at/all/trace.json", "No such file");
    expect_refused("file = /", "Is a directory");
    memset(text + 8, 'a', 170);
    snprintf(text + 178, sizeof text - 178, "/b.json");
    expect_refused(text, "No such file");
}

WEIR_TEST(TraceRefuses, AFileWithoutPermission)
{
    const char *path = rig_path("mine.json");
    if (geteuid() == 0)
        WEIR_SKIP("root may write anything");
    FILE *file = fopen(path, "w");
    ASSERT_NOT_NULL(file);
    fclose(file);
    ASSERT_INT_EQ(chmod(path, 0400), 0);
    expect_refused(rig_section(path, ""), path);
}

static char logged[4096];

static void keep_log(void *user, weir_log_level level, const char *source, const char *message)
{
    (void)user;
    (void)level;
    if (strcmp(source, "trace") == 0)
        snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", message);
}

// A disk that is full is found while writing, and told; the program goes on.
WEIR_TEST(TraceRefuses, AFullDisk)
{
    struct rig rig;
    logged[0] = '\0';
    weir_log_set(keep_log, NULL, WEIR_LOG_WARNING);
    ASSERT_TRUE(rig_start_with(&rig, "/dev/full", "flush = 1", "trace"));
    for (size_t i = 0; i < 200; i++) {
        EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
        EXPECT_OK(weir_queue_sync(rig.up, WEIR_FOREVER));
        usleep(1000);
    }
    EXPECT_INT_EQ(rig_close(&rig), WEIR_ERROR_IO);
    weir_log_set(NULL, NULL, WEIR_LOG_WARNING);
    EXPECT_CONTAINS(logged, "/dev/full");
    EXPECT_CONTAINS(logged, "No space left");
    EXPECT_NULL(rig.runtime);
    EXPECT_CONTAINS(weir_last_error()->message, "/dev/full: the trace is incomplete");
    EXPECT_CONTAINS(weir_last_error()->message, "No space left");
}

// So does one that is full only when the last of it is written.
WEIR_TEST(TraceRefuses, ADiskThatIsFullAtTheEnd)
{
    struct rig rig;
    weir_error_set(NULL);
    ASSERT_TRUE(rig_start_with(&rig, "/dev/full", "flush = 60000", "trace"));
    EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
    EXPECT_INT_EQ(rig_close(&rig), WEIR_ERROR_IO);
    EXPECT_CONTAINS(weir_last_error_text(), "/dev/full: the trace is incomplete");
}

// The file may not grow; the signal for that is not the program's.
WEIR_TEST(TraceRefuses, AFileThatMayNotGrow)
{
    struct rig rig;
    struct rlimit old;
    ASSERT_INT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    const struct rlimit small = {.rlim_cur = 1000, .rlim_max = old.rlim_max};
    ASSERT_TRUE(rig_start_with(&rig, rig_path("small.json"), "flush = 60000", "trace"));
    for (size_t i = 0; i < 20; i++)
        EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
    ASSERT_INT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    EXPECT_INT_EQ(rig_close(&rig), WEIR_ERROR_IO);
    ASSERT_INT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    EXPECT_CONTAINS(weir_last_error_text(), "small.json: the trace is incomplete: File too large");
}

// A trace that is whole, and a report that cannot be written.
WEIR_TEST(TraceRefuses, AReportThatCannotBeWritten)
{
    struct rig rig;
    ASSERT_TRUE(rig_start_with(&rig, rig_path("fine.json"), "report = /dev/full", "trace"));
    EXPECT_INT_EQ(rig_close(&rig), WEIR_ERROR_IO);
    EXPECT_CONTAINS(weir_last_error_text(), "/dev/full: cannot be written");
}

WEIR_TEST(TraceRefuses, APipeWithoutAReader)
{
    const char *path = rig_path("pipe");
    ASSERT_INT_EQ(mkfifo(path, 0600), 0);
    alarm(60); // in place of waiting for ever
    expect_refused(rig_section(path, ""), "it is a pipe without a reader");
    alarm(0);
}

static void *drain_pipe(void *argument)
{
    char bytes[4096];
    size_t *total = argument;
    ssize_t count;
    const int pipe = open(rig_path("pipe"), O_RDONLY | O_CLOEXEC);
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
    const char *path = rig_path("pipe");
    (void)mkfifo(path, 0600); // may be there
    ASSERT_INT_EQ(pthread_create(&reader, NULL, drain_pipe, &total), 0);
    usleep(200000); // it opens the pipe
    ASSERT_TRUE(rig_start(&rig, path));
    EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
    rig_finish(&rig);
    ASSERT_INT_EQ(pthread_join(reader, NULL), 0);
    EXPECT_SIZE_GT(total, 500);
}

// The signal for that is not the program's either.
WEIR_TEST(TraceRefuses, APipeWhoseReaderLeaves)
{
    struct rig rig;
    const char *path = rig_path("pipe");
    (void)mkfifo(path, 0600);
    const int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_INT_GE(reader, 0);
    ASSERT_TRUE(rig_start_with(&rig, path, "flush = 60000", "trace"));
    EXPECT_OK(weir_queue_copy(rig.up, rig.memory, 0, rig.frame, 0, 64));
    close(reader);
    EXPECT_INT_EQ(rig_close(&rig), WEIR_ERROR_IO);
    EXPECT_CONTAINS(weir_last_error_text(), "Broken pipe");
}

// A path that is not a regular file is neither numbered nor removed.
WEIR_TEST(Trace, IntoWhatIsNoFile)
{
    struct stat status;
    weir_runtime *runtimes[2];
    for (size_t i = 0; i < 2; i++)
        ASSERT_OK(rig_open("file = /dev/null", "trace", &runtimes[i]));
    for (size_t i = 0; i < 2; i++)
        EXPECT_OK(weir_close(&runtimes[i]));
    EXPECT_INT_EQ(stat("/dev/null", &status), 0);
    EXPECT_INT_NE(stat("/dev/null.2", &status), 0);
}

// A runtime that opens no device leaves no file.
WEIR_TEST(Trace, OfNothingLeavesNothing)
{
    const char *path = rig_path("nothing.json");
    weir_runtime *runtime;
    struct stat status;
    ASSERT_OK(rig_open(rig_section(path, ""), "trace", &runtime));
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
    ASSERT_TRUE(rig_start_with(&rig, path, "flush = 20", "trace"));
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
    const char *path = rig_path(name);
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
    struct weir_trace *trace = rig_read(path);
    ASSERT_NOT_NULL(trace);
    EXPECT_TRUE(trace->meta.truncated);
    EXPECT_TRUE(trace->operation_count > 100);
    for (size_t i = 0; i < trace->operation_count; i++) {
        EXPECT_UINT_EQ(trace->operations[i].bytes, 4096);
        EXPECT_TRUE(trace->operations[i].timed);
    }
    weir_trace_destroy(&trace);
}

WEIR_TEST(TraceKilled, LeavesAReadableFile)
{
    kill_and_read("killed.json");
}

WEIR_TEST(TraceKilled, CompressedToo)
{
    kill_and_read("killed.json.gz");
}
