// Waits that no use of memory needs, and waits because of different bytes of one buffer, are told;
// beside each the like of it that must not be. With hints = 1, on null.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/interop.h>
#include <weir/weir.h>

#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)
#define ASSERT_OK(call) ASSERT_INT_EQ(call, WEIR_OK)

enum {
    SIZE = 256
};

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *one;
    weir_queue *two;
    weir_queue *three;
    weir_buffer *a;
    weir_buffer *b;
    weir_buffer *host;
};

static char told[4096];

static void keep(void *user, weir_log_level level, const char *source, const char *message)
{
    const size_t used = strlen(told);
    (void)user;
    if (level <= WEIR_LOG_INFO && strcmp(source, "check") == 0)
        snprintf(told + used, sizeof told - used, "%s\n", message);
}

static weir_queue *make_queue(struct rig *rig, const char *label)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = label};
    weir_queue *queue = NULL;
    EXPECT_OK(weir_queue_create(rig->device, &params, &queue));
    return queue;
}

static weir_buffer *make_buffer(struct rig *rig, const char *label, weir_placement placement)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = label,
                                              .size = SIZE,
                                              .placement = placement};
    weir_buffer *buffer = NULL;
    EXPECT_OK(weir_buffer_create(rig->device, &params, &buffer));
    return buffer;
}

static void fill(weir_queue *queue, weir_buffer *buffer, size_t offset, size_t size)
{
    EXPECT_OK(weir_queue_fill(queue, buffer, offset, size, "", 1));
}

static void copy(weir_queue *queue, weir_buffer *to, weir_buffer *from)
{
    EXPECT_OK(weir_queue_copy(queue, to, 0, from, 0, SIZE));
}

static void sync(weir_queue *queue)
{
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
}

// The wait is at line `line` of a file "waits".
static void wait_for(weir_queue *queue, weir_queue *other, int line)
{
    struct weir_event event;
    EXPECT_OK(weir_queue_record(other, &event));
    EXPECT_OK(weir_queue_wait_at(queue, event, "waits", line));
}

static void rig_open(struct rig *rig)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "test.ini",
                                            .config_text = "[weir]\nbackend = null\n"
                                                           "plugins = check\n"
                                                           "[check]\nhints = 1\n"};
    told[0] = '\0';
    weir_log_set(keep, NULL, WEIR_LOG_INFO);
    ASSERT_OK(weir_open(&params, &rig->runtime));
    ASSERT_OK(weir_device_open(rig->runtime, NULL, &rig->device));
    rig->one = make_queue(rig, "one");
    rig->two = make_queue(rig, "two");
    rig->three = make_queue(rig, "three");
    rig->a = make_buffer(rig, "a", WEIR_PLACE_DEVICE);
    rig->b = make_buffer(rig, "b", WEIR_PLACE_DEVICE);
    rig->host = make_buffer(rig, "host", WEIR_PLACE_HOST);
    fill(rig->one, rig->a, 0, SIZE);
    fill(rig->one, rig->b, 0, SIZE);
    fill(rig->one, rig->host, 0, SIZE);
    sync(rig->one);
}

// The host learns what each queue did from itself.
static void rig_close(struct rig *rig)
{
    sync(rig->one);
    sync(rig->two);
    sync(rig->three);
    weir_buffer_destroy(&rig->a);
    weir_buffer_destroy(&rig->b);
    weir_buffer_destroy(&rig->host);
    weir_queue_destroy(&rig->one);
    weir_queue_destroy(&rig->two);
    weir_queue_destroy(&rig->three);
    ASSERT_OK(weir_device_close(&rig->device));
    ASSERT_OK(weir_close(&rig->runtime));
    weir_log_set(NULL, NULL, WEIR_LOG_INFO);
}

static void expect_silence(struct rig *rig)
{
    rig_close(rig);
    EXPECT_STR_EQ(told, "");
}

WEIR_TEST(CheckHints, WaitThatNothingNeeds)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    copy(rig.two, rig.b, rig.host);
    rig_close(&rig);
    EXPECT_CONTAINS(told,
                    "needless-wait: the wait on 'two' at waits:10 names the record on 'one' at ");
    EXPECT_CONTAINS(told, ", and no use of memory needs that; remove the wait of waits:10");
}

WEIR_TEST(CheckHints, WaitThatAUseNeeds)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    copy(rig.two, rig.b, rig.a);
    expect_silence(&rig);
}

// One of two rounds is enough.
WEIR_TEST(CheckHints, LineThatIsNeededOnce)
{
    struct rig rig;
    rig_open(&rig);
    for (int i = 0; i < 2; i++) {
        fill(rig.one, rig.a, 0, SIZE);
        wait_for(rig.two, rig.one, 10);
        copy(rig.two, rig.b, i == 0 ? rig.a : rig.host);
        wait_for(rig.one, rig.two, 11);
    }
    expect_silence(&rig);
}

WEIR_TEST(CheckHints, LineThatIsNeverNeeded)
{
    struct rig rig;
    rig_open(&rig);
    for (int i = 0; i < 2; i++) {
        fill(rig.one, rig.a, 0, SIZE);
        wait_for(rig.two, rig.one, 10);
        copy(rig.two, rig.b, rig.host);
    }
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-wait: the wait on 'two' at waits:10");
}

// A wait that a later one contains.
WEIR_TEST(CheckHints, WaitBeforeALaterOne)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    fill(rig.one, rig.host, 0, SIZE);
    wait_for(rig.two, rig.one, 11);
    copy(rig.two, rig.b, rig.a);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "waits:10");
    EXPECT_NOT_CONTAINS(told, "waits:11");
}

// The queue in between uses nothing that it waits for.
WEIR_TEST(CheckHints, WaitsThroughAThirdQueue)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    wait_for(rig.three, rig.two, 11);
    copy(rig.three, rig.b, rig.a);
    expect_silence(&rig);
}

WEIR_TEST(CheckHints, WaitsThroughAThirdQueueForNothing)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    fill(rig.two, rig.host, 0, SIZE);
    wait_for(rig.three, rig.two, 11);
    copy(rig.three, rig.b, rig.host);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-wait: the wait on 'two' at waits:10");
    EXPECT_NOT_CONTAINS(told, "waits:11");
}

// The same, and the queue in between has ended when the use comes: then the host knew.
WEIR_TEST(CheckHints, WaitsThroughAQueueThatIsDestroyed)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    wait_for(rig.three, rig.two, 11);
    weir_queue_destroy(&rig.two);
    copy(rig.three, rig.b, rig.a);
    rig.two = make_queue(&rig, "two");
    wait_for(rig.three, rig.one, 12);
    wait_for(rig.two, rig.three, 13);
    fill(rig.two, rig.b, 0, SIZE);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-wait: the wait on 'three' at waits:11");
    EXPECT_NOT_CONTAINS(told, "waits:10");
    EXPECT_NOT_CONTAINS(told, "waits:13");
}

// A queue reads what another has read, and a third one writes it: the one wait orders the reads only,
// and the write is after both.
WEIR_TEST(CheckHints, WaitThatOrdersReads)
{
    struct rig rig;
    rig_open(&rig);
    copy(rig.one, rig.b, rig.a);
    wait_for(rig.two, rig.one, 10);
    copy(rig.two, rig.host, rig.a);
    wait_for(rig.three, rig.two, 11);
    fill(rig.three, rig.a, 0, SIZE);
    expect_silence(&rig);
}

// The host.

WEIR_TEST(CheckHints, WaitThroughWhichTheHostKnows)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    sync(rig.two);
    expect_silence(&rig);
}

WEIR_TEST(CheckHints, WaitForWhatTheHostKnew)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    sync(rig.one);
    sync(rig.two);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-wait: the wait on 'two' at waits:10");
}

// The host may not know it another time.
WEIR_TEST(CheckHints, WaitForWhatTheHostHappensToKnow)
{
    struct rig rig;
    struct weir_event event;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    EXPECT_OK(weir_queue_record(rig.one, &event));
    wait_for(rig.two, rig.one, 10);
    EXPECT_OK(weir_event_sync(event, WEIR_FOREVER));
    EXPECT_OK(weir_event_query(event));
    copy(rig.three, rig.host, rig.a);
    copy(rig.two, rig.b, rig.a);
    expect_silence(&rig);
}

static weir_status nothing(void *user)
{
    (void)user;
    return WEIR_OK;
}

WEIR_TEST(CheckHints, WaitBeforeAHostCall)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    EXPECT_OK(weir_queue_host_call(rig.two, nothing, NULL));
    expect_silence(&rig);
}

static weir_status look(void *user)
{
    void *pointer;
    const weir_status status = weir_host_begin(user, 0, SIZE, WEIR_ACCESS_WRITE, &pointer);
    return status < 0 ? status : weir_host_end(user, 0, SIZE, WEIR_ACCESS_WRITE);
}

WEIR_TEST(CheckHints, WaitForAHostCall)
{
    struct rig rig;
    rig_open(&rig);
    EXPECT_OK(weir_queue_host_call(rig.one, look, rig.host));
    wait_for(rig.two, rig.one, 10);
    copy(rig.two, rig.b, rig.host);
    expect_silence(&rig);
}

// What is not known.

WEIR_TEST(CheckHints, WaitAndAFinding)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    fill(rig.one, rig.a, 0, SIZE);
    copy(rig.two, rig.b, rig.a);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "read-after-write");
    EXPECT_NOT_CONTAINS(told, "needless-wait");
}

WEIR_TEST(CheckHints, WaitAndANativeQueue)
{
    struct rig rig;
    struct weir_native_queue native = {.struct_size = sizeof native};
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    (void)weir_queue_get_native(rig.two, &native);
    expect_silence(&rig);
}

// False sharing.

WEIR_TEST(CheckHints, WaitForOtherBytes)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE / 2);
    wait_for(rig.two, rig.one, 10);
    fill(rig.two, rig.a, SIZE / 2, SIZE / 2);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "false-sharing: the fill on 'two' at ");
    EXPECT_CONTAINS(told, " waits for the fill on 'one' at ");
    EXPECT_CONTAINS(told, ", and they use different bytes of buffer 'a'; remove the wait between ");
    EXPECT_NOT_CONTAINS(told, "needless-wait");
}

WEIR_TEST(CheckHints, WaitForOneByte)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE / 2 + 1);
    wait_for(rig.two, rig.one, 10);
    fill(rig.two, rig.a, SIZE / 2, SIZE / 2);
    expect_silence(&rig);
}

// Other bytes of one buffer, and the same of another.
WEIR_TEST(CheckHints, WaitForOtherBytesAndMore)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE / 2);
    fill(rig.one, rig.b, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    fill(rig.two, rig.a, SIZE / 2, SIZE / 2);
    fill(rig.two, rig.b, 0, SIZE);
    expect_silence(&rig);
}

// Both read.
WEIR_TEST(CheckHints, WaitForReadsOfOtherBytes)
{
    struct rig rig;
    rig_open(&rig);
    EXPECT_OK(weir_queue_copy(rig.one, rig.b, 0, rig.a, 0, SIZE / 2));
    wait_for(rig.two, rig.one, 10);
    EXPECT_OK(weir_queue_copy(rig.two, rig.host, 0, rig.a, SIZE / 2, SIZE / 2));
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-wait: the wait on 'two' at waits:10");
    EXPECT_NOT_CONTAINS(told, "false-sharing");
}

// Random programs: one that is right must be right without any wait that is told.

enum {
    STEPS = 14,
    PROGRAMS = 4000
};

struct step {
    int kind; // 0 to 2: a fill; 3, 4: a copy; 5: the queue is synced; 6: an event is; else: a wait
    int queue;
    int other;
    size_t offset;
    size_t size;
};

static unsigned next_number(unsigned *state, unsigned limit)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 16) % limit;
}

static void make_program(struct step *steps, unsigned seed)
{
    for (int i = 0; i < STEPS; i++) {
        steps[i].kind = (int)next_number(&seed, 16);
        steps[i].queue = (int)next_number(&seed, 3);
        steps[i].other = (steps[i].queue + 1 + (int)next_number(&seed, 2)) % 3;
        steps[i].offset = (size_t)next_number(&seed, 3) * (SIZE / 4);
        steps[i].size = (1 + (size_t)next_number(&seed, 2)) * (SIZE / 4);
    }
}

static void run_step(struct rig *rig, const struct step *step, int line)
{
    weir_queue *const queues[] = {rig->one, rig->two, rig->three};
    weir_queue *queue = queues[step->queue];
    weir_buffer *buffer = step->other == 0 ? rig->a : rig->b;
    struct weir_event event;

    if (step->kind <= 2) {
        fill(queue, buffer, step->offset, step->size);
    } else if (step->kind <= 4) {
        EXPECT_OK(
            weir_queue_copy(queue, rig->host, step->offset, buffer, step->offset, step->size));
    } else if (step->kind == 5) {
        sync(queue);
    } else if (step->kind == 6) {
        EXPECT_OK(weir_queue_record(queue, &event));
        EXPECT_OK(weir_event_sync(event, WEIR_FOREVER));
    } else {
        wait_for(queue, queues[step->other], line);
    }
}

// Without step `left_out`.
static void run_program(const struct step *steps, int left_out)
{
    struct rig rig;
    rig_open(&rig);
    for (int i = 0; i < STEPS; i++)
        if (i != left_out)
            run_step(&rig, &steps[i], i + 1);
    rig_close(&rig);
}

static bool is_right(void)
{
    return !strstr(told, "nothing orders the two") && !strstr(told, "may still");
}

WEIR_TEST(CheckHints, RandomProgramsWithoutAWaitThatIsTold)
{
    struct step steps[STEPS];
    int right = 0;
    int left_out = 0;
    for (unsigned seed = 1; seed <= PROGRAMS; seed++) {
        static char first[sizeof told];
        make_program(steps, seed);
        run_program(steps, -1);
        if (!is_right())
            continue;
        right++;
        memcpy(first, told, sizeof first);
        for (const char *at = first; (at = strstr(at, "at waits:")); at = strchr(at, '\n')) {
            const int line = (int)strtol(at + strlen("at waits:"), NULL, 10);
            run_program(steps, line - 1);
            ASSERT_TRUE(is_right());
            left_out++;
        }
    }
    EXPECT_INT_GT(right, PROGRAMS / 4);
    EXPECT_INT_GT(left_out, PROGRAMS / 10);
}
