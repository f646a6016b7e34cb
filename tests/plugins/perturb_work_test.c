// The plugin `perturb`: nothing hangs, though nothing asks for the work; and what its settings and
// variables say. Run once for each backend; the environment names it.
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/plugins/perturb_rig.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

struct flag {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool set;
};

static weir_status set_flag(void *user)
{
    struct flag *flag = user;
    pthread_mutex_lock(&flag->lock);
    flag->set = true;
    pthread_cond_signal(&flag->changed);
    pthread_mutex_unlock(&flag->lock);
    return WEIR_OK;
}

static weir_status await_flag(void *user)
{
    struct flag *flag = user;
    pthread_mutex_lock(&flag->lock);
    while (!flag->set)
        pthread_cond_wait(&flag->changed, &flag->lock);
    pthread_mutex_unlock(&flag->lock);
    return WEIR_OK;
}

static void fill(struct work *work, weir_queue *queue)
{
    const uint32_t pattern = 7;
    EXPECT_OK(weir_queue_fill(queue, work->buffer, 0, 64, &pattern, sizeof pattern));
}

// The program waits for what a host call sets, and asks Weir for nothing.
WEIR_TEST(PerturbIdle, HostCallRunsUnasked)
{
    struct flag flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct work work;
    begin(&work, "[perturb]\nidle = 5\n");
    fill(&work, work.queue);
    EXPECT_OK(weir_queue_host_call(work.queue, set_flag, &flag));
    await_flag(&flag);
    end(&work);
    EXPECT_CONTAINS(logged_second, "operations ran because the program asked for nothing");
}

WORK_TEST(PerturbIdle, DescriptorBecomesReadable, "[perturb]\nidle = 5\n")
{
    struct weir_event event;
    int fd = -1;
    fill(work, work->queue);
    EXPECT_OK(weir_queue_record(work->queue, &event));
    EXPECT_OK(weir_event_fd(event, &fd));
    EXPECT_INT_EQ(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 60000), 1);
    close(fd);
}

// A host call waits for what another queue's host call sets: each may be picked first.
WEIR_TEST(PerturbIdle, HostCallsThatWaitForEachOther)
{
    for (unsigned seed = 1; seed <= 4; seed++) {
        struct flag flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
        struct work work;
        char text[64];
        snprintf(text, sizeof text, "[perturb]\nidle = 5\nseed = %u\n", seed);
        begin(&work, text);
        EXPECT_OK(weir_queue_host_call(work.queue, await_flag, &flag));
        EXPECT_OK(weir_queue_host_call(work.other, set_flag, &flag));
        EXPECT_OK(weir_queue_sync(work.queue, GUARD_NS));
        EXPECT_OK(weir_queue_sync(work.other, GUARD_NS));
        end(&work);
    }
}

// The host call of a graph waits for what the program does after it has submitted: no submit waits for it.
WEIR_TEST(PerturbIdle, SubmitWaitsForNoHostCallOfAGraph)
{
    for (unsigned seed = 1; seed <= 16; seed++) {
        struct flag flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
        struct work work;
        weir_graph *graph = NULL;
        char text[64];
        snprintf(text, sizeof text, "[perturb]\nidle = 60000\nseed = %u\n", seed);
        begin(&work, text);
        EXPECT_OK(weir_capture_begin(work.queue));
        fill(&work, work.queue);
        EXPECT_OK(weir_queue_host_call(work.queue, await_flag, &flag));
        EXPECT_OK(weir_capture_end(work.queue, NULL, &graph));
        EXPECT_OK(weir_queue_graph(work.queue, graph));
        fill(&work, work.queue);
        fill(&work, work.other);
        EXPECT_OK(set_flag(&flag));
        EXPECT_OK(weir_queue_sync(work.queue, GUARD_NS));
        weir_graph_destroy(&graph);
        end(&work);
    }
}

// A launch after a host call that has not ended is handed on by an update of its graph, and keeps no other
// operation waiting.
WORK_TEST(PerturbIdle, LaunchBehindAHostCallDelaysNoOtherQueue,
          "[perturb]\nidle = 1000\nmode = late\n")
{
    struct flag flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    const uint32_t pattern = 8;
    own_graph graph = NULL;
    EXPECT_OK(weir_capture_begin(work->queue));
    fill(work, work->queue);
    EXPECT_OK(weir_capture_end(work->queue, NULL, &graph));
    EXPECT_OK(weir_queue_host_call(work->queue, await_flag, &flag));
    EXPECT_OK(weir_queue_graph(work->queue, graph));
    EXPECT_OK(weir_graph_set_fill(graph, 0, work->buffer, 0, 64, &pattern, sizeof pattern));
    fill(work, work->other);
    EXPECT_OK(weir_queue_sync(work->other, GUARD_NS / 4));
    EXPECT_OK(set_flag(&flag));
    EXPECT_OK(weir_queue_sync(work->queue, GUARD_NS));
}

WORK_TEST(PerturbIdle, TimeoutBeforeTheEnd, "")
{
    struct flag flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    EXPECT_OK(weir_queue_host_call(work->queue, await_flag, &flag));
    EXPECT_INT_EQ(weir_queue_sync(work->queue, WEIR_MS(1)), WEIR_TIMEOUT);
    EXPECT_OK(set_flag(&flag));
    EXPECT_OK(weir_queue_sync(work->queue, GUARD_NS));
}

// Work that is not asked for is done when its queue is destroyed and the device is closed.
WEIR_TEST(PerturbIdle, CloseWithPendingWork)
{
    struct flag flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct work work;
    begin(&work, "[perturb]\nidle = 60000\n");
    fill(&work, work.queue);
    EXPECT_OK(weir_queue_host_call(work.queue, set_flag, &flag));
    fill(&work, work.other);
    end(&work);
    EXPECT_TRUE(flag.set);
    EXPECT_STR_EQ(logged_second, "");
}

// Whether the first fill of the buffer has run.
static bool is_filled(struct work *work)
{
    void *memory = NULL;
    uint32_t word = 0;
    EXPECT_OK(weir_host_begin(work->buffer, 0, sizeof word, WEIR_ACCESS_READ, &memory));
    if (memory)
        memcpy(&word, memory, sizeof word);
    EXPECT_OK(weir_host_end(work->buffer, 0, sizeof word, WEIR_ACCESS_READ));
    return word == 7;
}

static void clear(struct work *work)
{
    void *memory = NULL;
    EXPECT_OK(weir_host_begin(work->buffer, 0, 64, WEIR_ACCESS_WRITE, &memory));
    if (memory)
        memset(memory, 0, 64);
    EXPECT_OK(weir_host_end(work->buffer, 0, 64, WEIR_ACCESS_WRITE));
}

static void fill_often(const char *section, bool expect_filled)
{
    struct flag flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct work work;
    begin(&work, section);
    clear(&work);
    for (int i = 0; i < 4; i++)
        fill(&work, work.queue);
    EXPECT_FALSE(is_filled(&work));
    fill(&work, work.queue);
    EXPECT_TRUE(is_filled(&work) == expect_filled);
    // Of several host calls only the first could run, and a submit runs none.
    for (int i = 0; i < 16; i++)
        EXPECT_OK(weir_queue_host_call(work.other, set_flag, &flag));
    EXPECT_FALSE(flag.set);
    end(&work);
    EXPECT_TRUE(flag.set);
}

// With a small limit operations run though nothing asks for them.
WEIR_TEST(PerturbIdle, LimitOfPendingOperations)
{
    fill_often("[perturb]\nmode = late\npending = 4\nidle = 60000\n", true);
    fill_often("[perturb]\nmode = late\nidle = 60000\n", false);
}

// A query runs what the event needs, step by step.
WORK_TEST(PerturbIdle, Query, "[perturb]\nmode = late\nidle = 60000\n")
{
    struct weir_event event;
    unsigned count = 0;
    for (int i = 0; i < 10; i++)
        fill(work, work->queue);
    EXPECT_OK(weir_queue_record(work->queue, &event));
    while (weir_event_query(event) == WEIR_NOT_READY && count < 1000)
        count++;
    EXPECT_INT_EQ(count, 10);
}

struct asked {
    struct weir_event event;
    weir_status statuses[2];
};

static weir_status ask(void *user)
{
    struct asked *asked = user;
    for (int i = 0; i < 2; i++)
        asked->statuses[i] = weir_event_query(asked->event);
    return WEIR_OK;
}

// A query in a host call runs nothing: that would wait for the host call's own end.
WORK_TEST(PerturbIdle, QueryInAHostCall, "[perturb]\nmode = late\nidle = 60000\n")
{
    struct asked asked = {.statuses = {WEIR_OK, WEIR_OK}};
    EXPECT_OK(weir_queue_host_call(work->queue, ask, &asked));
    EXPECT_OK(weir_queue_record(work->queue, &asked.event));
    fill(work, work->other);
    EXPECT_OK(weir_queue_sync(work->queue, GUARD_NS / 4));
    for (int i = 0; i < 2; i++)
        EXPECT_INT_EQ(asked.statuses[i], WEIR_NOT_READY);
}

// Settings.

static void expect_refused(const char *section, const char *message, const char *remedy)
{
    weir_runtime *runtime = NULL;
    weir_test_note("%s", section);
    EXPECT_FAILURE(open_with("perturb", section, &runtime), WEIR_ERROR_CONFIG, message);
    EXPECT_CONTAINS(weir_last_error()->remedy, remedy);
    WEIR_IGNORE(weir_close(&runtime));
    weir_test_note(NULL);
}

static void expect_variable_refused(const char *name, const char *value, const char *section,
                                    const char *message, const char *remedy)
{
    setenv(name, value, 1);
    expect_refused(section, message, remedy);
    unsetenv(name);
}

WEIR_TEST(PerturbSettings, AreRefused)
{
    static const char pair[] = "[perturb]\nmode = pair\n";
    expect_refused("[perturb]\nmode = radnom\n", "radnom", "random");
    expect_refused("[perturb]\nseed = x\n", "'x'", "");
    expect_refused(pair, "mode pair has no pair of lines: ''", "name two lines");
    expect_refused("[perturb]\nmode = pair\npair = a.c:1\n", "'a.c:1'", "name two lines");
    expect_refused("[perturb]\nmode = pair\npair = a.c:1, b.c\n", "'a.c:1, b.c'", "two lines");
    expect_refused("[perturb]\nmode = pair\npair = a.c:0, b.c:2\n", "'a.c:0", "two lines");
    expect_refused("[perturb]\nmode = pair\npair = a.c:1, b.c:2x\n", "b.c:2x", "two lines");
    expect_variable_refused("WEIR_PERTURB_MODE", "later", "", "cannot be 'later'",
                            "choose one of random, late, pair");
    expect_variable_refused("WEIR_PERTURB_SEED", "seven", "", "needs a decimal number",
                            "write digits alone");
    expect_variable_refused("WEIR_PERTURB_SEED", "-1", "", "must be from 0", "");
    expect_variable_refused("WEIR_PERTURB_PAIR", "a.c", pair, "'a.c'", "two lines");
}

WEIR_TEST(PerturbSettings, TwiceIsRefused)
{
    weir_runtime *runtime = NULL;
    EXPECT_FAILURE(open_with("perturb, perturb", "", &runtime), WEIR_ERROR_CONFIG,
                   "the plugin perturb is twice in the chain");
    EXPECT_CONTAINS(weir_last_error()->remedy, "list it once");
    WEIR_IGNORE(weir_close(&runtime));
}

WEIR_TEST(PerturbSettings, PluginsAfterItAreTold)
{
    weir_runtime *runtime = NULL;
    EXPECT_OK(open_with("perturb, trace", "", &runtime));
    EXPECT_CONTAINS(logged_second, "trace comes after perturb in the chain and sees no waits");
    EXPECT_OK(weir_close(&runtime));
    EXPECT_OK(open_with("trace, perturb", "", &runtime));
    EXPECT_STR_EQ(logged_second, "");
    EXPECT_OK(weir_close(&runtime));
}

WEIR_TEST(PerturbSettings, VariablesComeFirst)
{
    struct work work;
    setenv("WEIR_PERTURB_MODE", "late", 1);
    setenv("WEIR_PERTURB_SEED", "12", 1);
    begin(&work, "[perturb]\nseed = 3\n");
    end(&work);
    unsetenv("WEIR_PERTURB_MODE");
    unsetenv("WEIR_PERTURB_SEED");
    EXPECT_CONTAINS(logged, "seed 12, mode late: ");
}

WEIR_TEST(PerturbSettings, Report)
{
    char path[512];
    char text[512] = "";
    struct work work;
    snprintf(path, sizeof path, "%s/report", getenv("TEST_TMPDIR"));
    setenv("WEIR_PERTURB_REPORT", path, 1);
    begin(&work, "[perturb]\nseed = 3\n");
    fill(&work, work.queue);
    end(&work);
    FILE *file = fopen(path, "r");
    ASSERT_TRUE(file != NULL);
    EXPECT_TRUE(fgets(text, sizeof text, file) != NULL);
    fclose(file);
    EXPECT_CONTAINS(text, "{\"mode\":\"random\",\"seed\":3,\"operations\":1,\"choices\":0,");

    setenv("WEIR_PERTURB_REPORT", "/no/such/folder/report", 1);
    begin(&work, "");
    end(&work);
    unsetenv("WEIR_PERTURB_REPORT");
    EXPECT_CONTAINS(logged_second, "`report` of [perturb] names cannot be written");
}
