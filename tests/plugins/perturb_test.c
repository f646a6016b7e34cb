// The plugin `perturb`: broken programs give a wrong result within 100 seeds, the same one for
// the same seed, and mended ones the right one for all. Run once for each backend; the
// environment names it.
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#include "tests/plugins/racy/racy.h"
#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)
#define ASSERT_OK(call) ASSERT_INT_EQ(call, WEIR_OK)
#define GUARD_NS (UINT64_C(60) * 1000000000u)

enum {
    SEEDS = 100,
};

// What the plugin logged last.
static char logged[1024];
static char logged_second[1024];

static void keep(void *user, weir_log_level level, const char *source, const char *message)
{
    (void)user;
    (void)level;
    if (strcmp(source, "perturb") != 0)
        return;
    if (strncmp(message, "seed ", 5) == 0)
        snprintf(logged, sizeof logged, "%s", message);
    else
        snprintf(logged_second, sizeof logged_second, "%s", message);
}

static weir_status open_with(const char *plugins, const char *section, weir_runtime **out_runtime)
{
    logged[0] = logged_second[0] = '\0';
    weir_log_set(keep, NULL, WEIR_LOG_INFO);
    return weir_open(
        &(struct weir_open_params){
            .struct_size = sizeof(struct weir_open_params),
            .config_path = "test.ini",
            .config_text = section,
            .plugins = plugins,
        },
        out_runtime);
}

static void open_device(const char *plugins, const char *section, weir_runtime **out_runtime,
                        weir_device **out_device)
{
    *out_device = NULL;
    EXPECT_OK(open_with(plugins, section, out_runtime));
    if (*out_runtime)
        EXPECT_OK(weir_device_open(*out_runtime, NULL, out_device));
}

static void close_device(weir_runtime **runtime, weir_device **device)
{
    EXPECT_OK(weir_device_close(device));
    EXPECT_OK(weir_close(runtime));
}

// Whether the result is right.
static bool run(const struct racy_program *program, bool broken, const char *section,
                uint32_t words[RACY_WORDS])
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    memset(words, 0, RACY_WORDS * sizeof *words);
    open_device("perturb", section, &runtime, &device);
    if (device)
        EXPECT_OK(program->run(device, broken, words));
    close_device(&runtime, &device);
    return racy_is_right(words);
}

static const char *seeded(unsigned seed)
{
    static char text[64];
    snprintf(text, sizeof text, "[perturb]\nseed = %u\n", seed);
    return text;
}

// The first seed with a wrong result, and how many have one.
static unsigned find_seed(const struct racy_program *program, unsigned *out_count)
{
    uint32_t words[RACY_WORDS];
    unsigned first = 0;
    *out_count = 0;
    for (unsigned seed = 1; seed <= SEEDS; seed++)
        if (!run(program, true, seeded(seed), words)) {
            first = first ? first : seed;
            ++*out_count;
        }
    return first;
}

static void expect_same_again(const struct racy_program *program, unsigned seed)
{
    uint32_t words[RACY_WORDS];
    uint32_t again[RACY_WORDS];
    char order[sizeof logged];
    EXPECT_FALSE(run(program, true, seeded(seed), words));
    memcpy(order, logged, sizeof order);
    EXPECT_CONTAINS(order, ", order ");
    for (int i = 0; i < 3; i++) {
        EXPECT_FALSE(run(program, true, seeded(seed), again));
        EXPECT_TRUE(memcmp(words, again, sizeof words) == 0);
        EXPECT_STR_EQ(logged, order);
        EXPECT_STR_EQ(logged_second, "");
    }
}

WEIR_TEST(Perturb, BrokenProgramsGiveWrongResults)
{
    for (size_t i = 0; i < racy_program_count; i++) {
        unsigned count = 0;
        const unsigned seed = find_seed(&racy_programs[i], &count);
        weir_test_note("%s", racy_programs[i].name);
        printf("%s: wrong with %u of %d seeds, first with %u\n", racy_programs[i].name, count,
               SEEDS, seed);
        EXPECT_TRUE(seed > 0);
        if (seed)
            expect_same_again(&racy_programs[i], seed);
    }
    weir_test_note(NULL);
}

WEIR_TEST(Perturb, MendedProgramsAreRight)
{
    uint32_t words[RACY_WORDS];
    for (size_t i = 0; i < racy_program_count; i++) {
        weir_test_note("%s", racy_programs[i].name);
        for (unsigned seed = 1; seed <= SEEDS; seed++)
            EXPECT_TRUE(run(&racy_programs[i], false, seeded(seed), words));
        EXPECT_TRUE(run(&racy_programs[i], false, "[perturb]\nmode = late\n", words));
    }
    weir_test_note(NULL);
}

// What the host uses too early is not there in mode late.
WEIR_TEST(Perturb, Late)
{
    uint32_t words[RACY_WORDS];
    for (size_t i = 0; i < racy_program_count; i++) {
        const char *name = racy_programs[i].name;
        weir_test_note("%s", name);
        const bool right = run(&racy_programs[i], true, "[perturb]\nmode = late\n", words);
        EXPECT_CONTAINS(logged, "mode late");
        // Late is right for a host that is late itself, and for a reader that goes first. In a
        // graph it is the last node that may run that does.
        if (strcmp(name, "late-write") != 0 && strcmp(name, "overwrite") != 0)
            EXPECT_FALSE(right);
    }
    weir_test_note(NULL);
}

// Two fills without an order between them, or with one.
static uint32_t run_pair(const char *section, bool ordered, char *text, size_t size)
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_queue *queues[2] = {NULL, NULL};
    weir_buffer *buffer = NULL;
    struct weir_event event;
    uint32_t word = 0;
    const uint32_t one = 1;
    const uint32_t two = 2;
    open_device("perturb", section, &runtime, &device);
    EXPECT_OK(weir_queue_create(device, NULL, &queues[0]));
    EXPECT_OK(weir_queue_create(device, NULL, &queues[1]));
    EXPECT_OK(weir_buffer_create(
        device,
        &(struct weir_buffer_params){.struct_size = sizeof(struct weir_buffer_params), .size = 4},
        &buffer));
    EXPECT_OK(weir_queue_fill_at(queues[0], buffer, 0, 4, &one, 4, "src/app.c", 80));
    if (ordered) {
        EXPECT_OK(weir_queue_record(queues[0], &event));
        EXPECT_OK(weir_queue_wait(queues[1], event));
    }
    EXPECT_OK(weir_queue_fill_at(queues[1], buffer, 0, 4, &two, 4, "src/app.c", 91));
    EXPECT_OK(weir_queue_sync(queues[0], GUARD_NS));
    EXPECT_OK(weir_queue_sync(queues[1], GUARD_NS));
    EXPECT_OK(weir_download(queues[1], &word, buffer, 0, 4));
    weir_buffer_destroy(&buffer);
    weir_queue_destroy(&queues[0]);
    weir_queue_destroy(&queues[1]);
    close_device(&runtime, &device);
    snprintf(text, size, "%s", logged);
    return word;
}

WEIR_TEST(Perturb, PairIsReversed)
{
    static const char both[] = "[perturb]\nmode = pair\npair = app.c:80, /build/src/app.c:91\n";
    static const char turned[] = "[perturb]\nmode = pair\npair = src/app.c:91, app.c:80\n";
    char text[sizeof logged];
    EXPECT_INT_EQ(run_pair(both, false, text, sizeof text), 1);
    EXPECT_CONTAINS(text, "the pair was reversed 1 time");
    EXPECT_INT_EQ(run_pair(both, true, text, sizeof text), 2);
    EXPECT_CONTAINS(text, "the pair was reversed 0 times");
    // The second was submitted before the first, so nothing holds the first back.
    EXPECT_INT_EQ(run_pair(turned, false, text, sizeof text), 2);
    EXPECT_CONTAINS(text, "the pair was reversed 0 times");
}

// A ring of two slots that is filled again too early: what races with a copy is not the next fill
// but the one after it.
static void run_ring(const char *section, uint32_t results[4])
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_queue *fills = NULL, *copies = NULL;
    weir_buffer *slots = NULL, *out = NULL;
    struct weir_event event;
    open_device("perturb", section, &runtime, &device);
    EXPECT_OK(weir_queue_create(device, NULL, &fills));
    EXPECT_OK(weir_queue_create(device, NULL, &copies));
    const struct weir_buffer_params memory = {.struct_size = sizeof memory, .size = 16};
    EXPECT_OK(weir_buffer_create(device, &memory, &slots));
    EXPECT_OK(weir_buffer_create(device, &memory, &out));
    for (uint32_t i = 0; i < 4; i++) {
        const size_t slot = 4 * (i % 2);
        EXPECT_OK(weir_queue_fill_at(fills, slots, slot, 4, &i, 4, "src/app.c", 91));
        EXPECT_OK(weir_queue_record(fills, &event));
        EXPECT_OK(weir_queue_wait(copies, event));
        EXPECT_OK(weir_queue_copy_at(copies, out, 4 * i, slots, slot, 4, "src/app.c", 80));
    }
    EXPECT_OK(weir_download(copies, results, out, 0, 16));
    weir_buffer_destroy(&slots);
    weir_buffer_destroy(&out);
    weir_queue_destroy(&fills);
    weir_queue_destroy(&copies);
    close_device(&runtime, &device);
}

WEIR_TEST(Perturb, PairOfALoop)
{
    uint32_t results[4];
    static const uint32_t right[4] = {0, 1, 2, 3}, wrong[4] = {2, 3, 2, 3};
    run_ring("[perturb]\nmode = pair\npair = none.c:1, none.c:2\n", results);
    EXPECT_MEM_EQ(results, right, sizeof results);
    run_ring("[perturb]\nmode = pair\npair = app.c:80, app.c:91\n", results);
    EXPECT_MEM_EQ(results, wrong, sizeof results);
}

// Nothing may hang, though nothing asks for the work.

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

struct work {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_queue *other;
    weir_buffer *buffer;
};

static void begin(struct work *work, const char *section)
{
    *work = (struct work){NULL};
    open_device("perturb", section, &work->runtime, &work->device);
    EXPECT_OK(weir_queue_create(work->device, NULL, &work->queue));
    EXPECT_OK(weir_queue_create(work->device, NULL, &work->other));
    EXPECT_OK(weir_buffer_create(work->device,
                                 &(struct weir_buffer_params){.struct_size =
                                                                  sizeof(struct weir_buffer_params),
                                                              .size = 64,
                                                              .placement = WEIR_PLACE_HOST},
                                 &work->buffer));
}

static void fill(struct work *work, weir_queue *queue)
{
    const uint32_t pattern = 7;
    EXPECT_OK(weir_queue_fill(queue, work->buffer, 0, 64, &pattern, sizeof pattern));
}

static void end(struct work *work)
{
    weir_buffer_destroy(&work->buffer);
    weir_queue_destroy(&work->queue);
    weir_queue_destroy(&work->other);
    close_device(&work->runtime, &work->device);
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

WEIR_TEST(PerturbIdle, DescriptorBecomesReadable)
{
    struct weir_event event;
    struct work work;
    int fd = -1;
    begin(&work, "[perturb]\nidle = 5\n");
    fill(&work, work.queue);
    EXPECT_OK(weir_queue_record(work.queue, &event));
    EXPECT_OK(weir_event_fd(event, &fd));
    EXPECT_INT_EQ(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 60000), 1);
    close(fd);
    end(&work);
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

WEIR_TEST(PerturbIdle, TimeoutBeforeTheEnd)
{
    struct flag flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct work work;
    begin(&work, "");
    EXPECT_OK(weir_queue_host_call(work.queue, await_flag, &flag));
    EXPECT_INT_EQ(weir_queue_sync(work.queue, 1000000), WEIR_TIMEOUT);
    EXPECT_OK(set_flag(&flag));
    EXPECT_OK(weir_queue_sync(work.queue, GUARD_NS));
    end(&work);
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

static void fill_often(const char *section, bool expect_filled)
{
    struct flag flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct work work;
    begin(&work, section);
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
WEIR_TEST(PerturbIdle, Query)
{
    struct weir_event event;
    struct work work;
    unsigned count = 0;
    begin(&work, "[perturb]\nmode = late\nidle = 60000\n");
    for (int i = 0; i < 10; i++)
        fill(&work, work.queue);
    EXPECT_OK(weir_queue_record(work.queue, &event));
    while (weir_event_query(event) == WEIR_NOT_READY && count < 1000)
        count++;
    EXPECT_INT_EQ(count, 10);
    end(&work);
}

// Settings.

static void expect_refused(const char *section, const char *message, const char *remedy)
{
    weir_runtime *runtime = NULL;
    weir_test_note("%s", section);
    EXPECT_INT_EQ(open_with("perturb", section, &runtime), WEIR_ERROR_CONFIG);
    EXPECT_CONTAINS(weir_last_error_text(), message);
    EXPECT_CONTAINS(weir_last_error()->remedy, remedy);
    weir_close(&runtime);
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
    expect_variable_refused("WEIR_PERTURB_MODE", "later", "", "there is no mode 'later'",
                            "use random, late or pair");
    expect_variable_refused("WEIR_PERTURB_SEED", "seven", "", "'seven' is no seed",
                            "a whole number");
    expect_variable_refused("WEIR_PERTURB_SEED", "-1", "", "'-1' is no seed", "a whole number");
    expect_variable_refused("WEIR_PERTURB_PAIR", "a.c", pair, "'a.c'", "two lines");
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
    EXPECT_CONTAINS(logged_second, "WEIR_PERTURB_REPORT names cannot be written");
}
