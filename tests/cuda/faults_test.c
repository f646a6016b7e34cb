// The report of a kernel that faults, and the calls that work afterwards. A
// process cannot recover from a fault, so each test has its own process.

#include "tests/cuda/rig.h"

#define QUEUES 40
#define ATTRIBUTED "attribute_faults = 1"

struct stage {
    struct rig rig;
    weir_queue *a;
    weir_queue *b;
    weir_queue *c;
    weir_program *program;
    weir_kernel *iota;
    weir_kernel *increment;
    weir_kernel *spin;
    weir_buffer *device;
    weir_buffer *host;
};

// The log, one line after the other.
static char logged[65536];
static size_t logged_lines;

static void keep_log(void *user, weir_log_level level, const char *source, const char *message)
{
    const size_t used = strlen(logged);
    if (level != WEIR_LOG_ERROR && level != WEIR_LOG_WARNING)
        return;
    snprintf(logged + used, sizeof logged - used, "%s: %s\n", source, message);
    logged_lines++;
}

static bool start(struct stage *s, const char *section)
{
    memset(s, 0, sizeof *s);
    logged[0] = '\0';
    logged_lines = 0;
    weir_log_set(keep_log, NULL, WEIR_LOG_WARNING);
    if (!rig_start_with(&s->rig, section))
        return false;
    s->a = test_queue(s->rig.device, "a");
    s->b = test_queue(s->rig.device, "b");
    s->c = test_queue(s->rig.device, "c");
    s->program = rig_program(&s->rig);
    s->iota = rig_kernel(s->program, "iota");
    s->increment = rig_kernel(s->program, "increment");
    s->spin = rig_kernel(s->program, "spin");
    s->device = rig_buffer(&s->rig, 4096, WEIR_PLACE_DEVICE);
    s->host = rig_buffer(&s->rig, 4096, WEIR_PLACE_HOST);
    return s->host != NULL;
}

static void finish(struct stage *s)
{
    weir_queue_destroy(&s->a);
    weir_queue_destroy(&s->b);
    weir_queue_destroy(&s->c);
    weir_buffer_destroy(&s->device);
    weir_buffer_destroy(&s->host);
    weir_kernel_destroy(&s->iota);
    weir_kernel_destroy(&s->increment);
    weir_kernel_destroy(&s->spin);
    weir_program_destroy(&s->program);
    rig_finish(&s->rig);
}

// A test on a stage, `s`, in a process of its own.
#define STAGE_TEST(suite, name, section)             \
    static void name##_on(struct stage *s);          \
    WEIR_CHILD_TEST(suite, name)                     \
    {                                                \
        struct stage stage;                          \
        const bool started = start(&stage, section); \
        EXPECT_TRUE(started);                        \
        if (started)                                 \
            name##_on(&stage);                       \
        finish(&stage);                              \
    }                                                \
    static void name##_on(struct stage *s)

// Each queue has 64 bytes of its own.
static size_t place_of(const struct stage *s, const weir_queue *queue)
{
    return queue == s->a ? 0 : queue == s->b ? 64 : queue == s->c ? 128 : 192;
}

#define COPY(s, queue) \
    weir_queue_copy(queue, (s)->device, place_of(s, queue), (s)->host, place_of(s, queue), 64)
#define FILL(s, queue) weir_queue_fill(queue, (s)->device, place_of(s, queue), 64, "x", 1)
#define LAUNCH(s, queue, kernel)                                                 \
    weir_queue_launch(queue, (s)->kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1), \
                      weir_inout((s)->device, place_of(s, queue), 64), 1u, 16u)

// A part of a text with the number of a line of this file in it.
static const char *at(const char *format, int line)
{
    static char text[256];
    snprintf(text, sizeof text, format, line);
    return text;
}

static void expect_lost(weir_status status)
{
    EXPECT_INT_EQ(status, WEIR_ERROR_DEVICE_LOST);
    EXPECT_STR_EQ(weir_last_error()->native_name, "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_CONTAINS(weir_last_error()->remedy, "restart the process");
}

// Kernel `increment` faults when it runs for the n-th time, and the queue's wait tells so. Returns the message.
static const char *lose(weir_queue *queue, long n)
{
    rig_fake()->fault("increment", n);
    rig_fake()->hold(0);
    expect_lost(weir_queue_sync(queue, GUARD_NS));
    return weir_last_error()->message;
}

// With attribution.

STAGE_TEST(CudaFaults, AttributedToOneOperation, ATTRIBUTED)
{
    EXPECT_OK(FILL(s, s->b));
    EXPECT_OK(weir_queue_sync(s->b, GUARD_NS));
    rig_fake()->hold(1);
    EXPECT_OK(COPY(s, s->a));
    EXPECT_OK(LAUNCH(s, s->a, iota));
    EXPECT_OK(LAUNCH(s, s->a, increment));
    EXPECT_OK(LAUNCH(s, s->a, increment));
    const int line = __LINE__ - 1;
    EXPECT_OK(COPY(s, s->a));
    EXPECT_OK(weir_queue_after(s->b, s->a));
    EXPECT_OK(LAUNCH(s, s->b, increment));
    const char *text = lose(s->a, 2);
    EXPECT_CONTAINS(text,
                    "; the fault is in operation 4 of queue 'a', a launch of 'increment' at ");
    EXPECT_CONTAINS(text, at("faults_test.c:%d", line));
    EXPECT_NOT_CONTAINS(text, "queue 'b'");
    EXPECT_UINT_EQ(logged_lines, 2);
    EXPECT_CONTAINS(logged, "cuda: was running: operation 4 of queue 'a', a launch of 'increment'");
    EXPECT_CONTAINS(logged, "cuda: was waiting: queue 'b' for queue 'a'");
}

// A wait after a wait: neither of the two queues had begun its work.
STAGE_TEST(CudaFaults, AttributedThroughAChainOfWaits, ATTRIBUTED)
{
    rig_fake()->hold(1);
    EXPECT_OK(LAUNCH(s, s->a, increment));
    EXPECT_OK(weir_queue_after(s->b, s->a));
    EXPECT_OK(weir_queue_after(s->c, s->b));
    EXPECT_OK(LAUNCH(s, s->c, iota));
    const struct weir_event event = test_record(s->c);
    rig_fake()->fault("increment", 1);
    rig_fake()->hold(0);
    expect_lost(weir_event_sync(event, GUARD_NS));
    EXPECT_CONTAINS(weir_last_error()->message,
                    "; the fault is in operation 1 of queue 'a', a launch of 'increment' at ");
    EXPECT_CONTAINS(logged, "cuda: was waiting: queue 'c' for queue 'b'");
}

STAGE_TEST(CudaFaults, KernelsThatRanAtOnceAreAllNamed, ATTRIBUTED)
{
    EXPECT_OK(weir_queue_launch(s->a, s->spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(s->device, 0, 64), 1u, (uint64_t)200000000));
    rig_fake()->fault("increment", 1);
    EXPECT_OK(LAUNCH(s, s->b, increment));
    expect_lost(weir_queue_sync(s->b, GUARD_NS));
    const char *text = weir_last_error()->message;
    EXPECT_CONTAINS(text, "; the fault is in one of 2 that ran at the same time: ");
    EXPECT_CONTAINS(text, "operation 1 of queue 'a', a launch of 'spin'");
    EXPECT_CONTAINS(text, "operation 1 of queue 'b', a launch of 'increment'");
}

STAGE_TEST(CudaFaults, AGraphIsOneOperation, ATTRIBUTED)
{
    own_graph graph = NULL;
    EXPECT_OK(weir_capture_begin(s->a));
    EXPECT_OK(LAUNCH(s, s->a, iota));
    EXPECT_OK(LAUNCH(s, s->a, increment));
    EXPECT_OK(weir_capture_end(s->a, WEIR_PARAMS(weir_graph, .label = "frame"), &graph));
    rig_fake()->fault("increment", 2);
    EXPECT_OK(weir_queue_graph(s->a, graph));
    EXPECT_OK(weir_queue_graph(s->a, graph));
    const int line = __LINE__ - 1;
    expect_lost(weir_queue_sync(s->a, GUARD_NS));
    EXPECT_CONTAINS(weir_last_error()->message, " of queue 'a', a launch of graph 'frame' at ");
    EXPECT_CONTAINS(weir_last_error()->message, at("faults_test.c:%d", line));
}

// Without.

STAGE_TEST(CudaFaults, SuspectsWithoutAttribution, "")
{
    EXPECT_OK(FILL(s, s->b));
    EXPECT_OK(weir_queue_sync(s->b, GUARD_NS));
    EXPECT_OK(COPY(s, s->a));
    EXPECT_OK(LAUNCH(s, s->a, iota));
    EXPECT_OK(weir_queue_sync(s->a, GUARD_NS));
    rig_fake()->hold(1);
    EXPECT_OK(LAUNCH(s, s->a, increment));
    const int line = __LINE__ - 1;
    EXPECT_OK(LAUNCH(s, s->a, iota));
    EXPECT_OK(COPY(s, s->c));
    (void)lose(s->a, 1);
    const struct weir_error *error = weir_last_error();
    EXPECT_CONTAINS(error->message, "; not known to have finished: operations 4 to 5 of queue 'a', "
                                    "the oldest a launch of 'increment' at ");
    EXPECT_CONTAINS(error->message, at("faults_test.c:%d; operation 1 of queue 'c', a copy", line));
    EXPECT_NOT_CONTAINS(error->message, "queue 'b'");
    EXPECT_CONTAINS(error->remedy, "attribute_faults = 1 in [cuda] names the operation");
    EXPECT_UINT_EQ(logged_lines, 2);
    EXPECT_CONTAINS(logged, "the newest a launch of 'iota' at ");
}

// If only one operation is left, it is named without attribution.
STAGE_TEST(CudaFaults, ALoneSuspect, "")
{
    EXPECT_OK(LAUNCH(s, s->a, iota));
    EXPECT_OK(weir_queue_sync(s->a, GUARD_NS));
    rig_fake()->fault("increment", 1);
    EXPECT_OK(LAUNCH(s, s->a, increment));
    expect_lost(weir_queue_sync(s->a, GUARD_NS));
    EXPECT_CONTAINS(weir_last_error()->message,
                    "; not known to have finished: operation 3 of queue "
                    "'a', a launch of 'increment' at ");
    EXPECT_NOT_CONTAINS(weir_last_error()->remedy, "attribute_faults");
}

// A native call may have launched kernels, and is named before a copy.
STAGE_TEST(CudaFaults, ANativeCallIsASuspect, "")
{
    rig_fake()->hold(1);
    EXPECT_OK(COPY(s, s->c));
    EXPECT_OK(weir_queue_native_array(s->b, own_native_nothing, NULL, NULL, 0));
    EXPECT_OK(COPY(s, s->b)); // which holds the queue's end back
    EXPECT_OK(LAUNCH(s, s->a, increment));
    const char *message = lose(s->a, 1);
    const char *native = strstr(message, "queue 'b', the oldest a native call at ");
    const char *copy = strstr(message, "queue 'c', a copy");
    EXPECT_NOT_NULL(native);
    EXPECT_NOT_NULL(copy);
    EXPECT_TRUE(native < copy);
}

// Labels are "many 0", "many 1" and so on.
static void open_many(struct stage *s, weir_queue **queues)
{
    char label[32];
    for (int i = 0; i < QUEUES; i++) {
        snprintf(label, sizeof label, "many %d", i);
        queues[i] = test_queue(s->rig.device, label);
    }
}

static void close_many(weir_queue **queues)
{
    for (int i = 0; i < QUEUES; i++)
        weir_queue_destroy(&queues[i]);
}

static struct weir_event launch_on(struct stage *s, weir_queue *queue)
{
    struct weir_event event = {0};
    EXPECT_OK(LAUNCH(s, queue, iota));
    EXPECT_OK(weir_queue_record(queue, &event));
    return event;
}

// Of a queue that is synchronised it is known that those have finished for which it has waited.
STAGE_TEST(CudaFaults, AJoinTellsOfAllQueues, "")
{
    weir_queue *queues[QUEUES];
    struct weir_event event;
    open_many(s, queues);
    for (int i = 0; i < QUEUES; i++)
        EXPECT_OK(weir_queue_wait(s->a, launch_on(s, queues[i])));
    EXPECT_OK(weir_queue_record(s->a, &event)); // all that it has is waits
    EXPECT_OK(weir_event_sync(event, GUARD_NS));
    rig_fake()->hold(1);
    EXPECT_OK(LAUNCH(s, queues[39], iota));
    EXPECT_OK(LAUNCH(s, s->b, increment));
    const char *text = lose(s->b, 1);
    EXPECT_CONTAINS(text, "operation 1 of queue 'b', a launch of 'increment'");
    EXPECT_CONTAINS(text, "operation 3 of queue 'many 39', a launch of 'iota'");
    EXPECT_NOT_CONTAINS(text, "queues more");
    EXPECT_UINT_EQ(logged_lines, 2);
    close_many(queues);
}

// Before a record that comes after enough operations.
STAGE_TEST(CudaFaults, AWordAfterManyOperations, "")
{
    struct weir_event event;
    rig_fake()->hold(1);
    for (int i = 0; i < 300; i++)
        EXPECT_OK(LAUNCH(s, s->a, iota));
    EXPECT_OK(weir_queue_record(s->a, &event));
    EXPECT_OK(weir_queue_record(s->a, &event));
    EXPECT_INT_EQ(rig_fake()->calls("cuStreamWriteValue32"), 1);
    EXPECT_OK(LAUNCH(s, s->a, increment));
    EXPECT_OK(LAUNCH(s, s->a, iota));
    EXPECT_CONTAINS(lose(s->a, 1), "operations 303 to 304 of queue 'a'");
}

// Words are returned with their queues: there are 1,024.
STAGE_TEST(CudaFaults, QueuesThatAreGoneAreNoSuspects, ATTRIBUTED)
{
    struct weir_event event;
    for (int i = 0; i < 1500; i++) {
        weir_queue *queue = test_queue(s->rig.device, "short");
        ASSERT_OK(LAUNCH(s, queue, iota));
        ASSERT_OK(weir_queue_record(queue, &event));
        weir_queue_destroy(&queue);
        ASSERT_OK(weir_event_sync(event, GUARD_NS));
    }
    EXPECT_INT_GE(rig_fake()->calls("cuStreamWriteValue32"), 1500);
    rig_fake()->fault("increment", 1);
    EXPECT_OK(LAUNCH(s, s->a, increment));
    expect_lost(weir_queue_sync(s->a, GUARD_NS));
    EXPECT_CONTAINS(weir_last_error()->message, "; the fault is in operation 1 of queue 'a'");
}

STAGE_TEST(CudaFaults, MoreThanAQueueKeeps, "")
{
    rig_fake()->hold(1);
    for (int i = 0; i < 3000; i++)
        EXPECT_OK(LAUNCH(s, s->a, increment));
    EXPECT_CONTAINS(lose(s->a, 1),
                    "operations 953 to 3000 of queue 'a', of those kept the oldest a launch");
}

// More than a message holds.

STAGE_TEST(CudaFaults, ManyQueuesGoToTheLog, "")
{
    weir_queue *queues[QUEUES];
    char label[64];
    rig_fake()->hold(1);
    for (int i = 0; i < QUEUES; i++) {
        snprintf(label, sizeof label, "a queue with a rather long label, number %d", i);
        queues[i] = test_queue(s->rig.device, label);
        const size_t place = 256 + 64 * (size_t)i;
        EXPECT_OK(i == 17 ? LAUNCH(s, queues[i], increment)
                          : weir_queue_copy(queues[i], s->device, place, s->host, place, 64));
    }
    EXPECT_OK(COPY(s, s->rig.queue));
    const char *text = lose(queues[17], 1);
    // A kernel is more likely than a copy, so it comes first.
    EXPECT_CONTAINS(text, "finished: operation 1 of queue 'a queue with a rather long label, "
                          "number 17', a launch of 'increment'");
    EXPECT_STR_EQ(text + strlen(text) - strlen(" queues more, which the log has"),
                  " queues more, which the log has");
    EXPECT_UINT_EQ(logged_lines, QUEUES + 1);
    for (int i = 0; i < QUEUES; i++) {
        snprintf(label, sizeof label, "long label, number %d'", i);
        EXPECT_CONTAINS(logged, label);
        weir_queue_destroy(&queues[i]);
    }
}

// Faults that no operation here caused.

STAGE_TEST(CudaFaults, OfSomethingElseInTheProcess, "")
{
    weir_buffer *none;
    EXPECT_OK(LAUNCH(s, s->a, iota));
    EXPECT_OK(weir_queue_sync(s->a, GUARD_NS));
    rig_fake()->fail("cuMemAlloc", 1, 700);
    expect_lost(weir_buffer_create(s->rig.device, WEIR_PARAMS(weir_buffer, .size = 64), &none));
    EXPECT_CONTAINS(weir_last_error()->message,
                    "everything that Weir's queues were given had finished, so something else in "
                    "the process faulted");
    EXPECT_UINT_EQ(logged_lines, 0);
}

STAGE_TEST(CudaFaults, OnADeviceThatWritesNoWords, ATTRIBUTED)
{
    rig_fake()->fail("cuStreamWriteValue32", 1, 801);
    EXPECT_OK(LAUNCH(s, s->a, iota));
    EXPECT_OK(LAUNCH(s, s->a, increment));
    EXPECT_INT_EQ(rig_fake()->calls("cuStreamWriteValue32"), 1);
    EXPECT_UINT_EQ(logged_lines, 1);
    EXPECT_CONTAINS(logged, "the device's streams write no values to memory");
    EXPECT_OK(weir_queue_sync(s->a, GUARD_NS));
    rig_fake()->fault("increment", 1);
    EXPECT_OK(LAUNCH(s, s->a, iota));
    EXPECT_OK(LAUNCH(s, s->a, increment));
    expect_lost(weir_queue_sync(s->a, GUARD_NS));
    EXPECT_CONTAINS(weir_last_error()->message, "; not known to have finished: operations ");
}

// Afterwards.

static void expect_same_cause(weir_status status, const char *cause)
{
    expect_lost(status);
    EXPECT_CONTAINS(weir_last_error()->message, cause);
}

static void try_everything(struct stage *s, const char *cause)
{
    struct weir_event event;
    weir_queue *queue;
    weir_buffer *buffer;
    weir_program *program;
    weir_kernel *kernel;
    char byte = 0;
    struct weir_buffer_params buffer_params = {.struct_size = sizeof buffer_params, .size = 64};
    const struct weir_bundle bundle = rig_bundle(weir_test_image(), 1);
    expect_same_cause(COPY(s, s->b), cause);
    expect_same_cause(FILL(s, s->c), cause);
    expect_same_cause(LAUNCH(s, s->c, iota), cause);
    expect_same_cause(weir_queue_record(s->c, &event), cause);
    expect_same_cause(weir_download(s->c, &byte, s->device, 0, 1), cause);
    expect_same_cause(weir_queue_recover(s->a), cause);
    expect_same_cause(weir_queue_sync(s->a, GUARD_NS), cause);
    expect_same_cause(weir_device_trim(s->rig.device), cause);
    expect_same_cause(weir_queue_create(s->rig.device, NULL, &queue), cause);
    expect_same_cause(weir_buffer_create(s->rig.device, &buffer_params, &buffer), cause);
    buffer_params.placement = WEIR_PLACE_HOST;
    expect_same_cause(weir_buffer_create(s->rig.device, &buffer_params, &buffer), cause);
    expect_same_cause(weir_program_load(s->rig.device, &bundle, &program), cause);
    expect_same_cause(weir_kernel_create(s->program, "saxpy", &kernel), cause);
}

static void expect_no_second_life(void)
{
    own_runtime runtime = NULL;
    weir_device *device;
    ASSERT_OK(rig_open_runtime("", &runtime));
    expect_lost(weir_device_open(runtime, NULL, &device));
    EXPECT_ERROR("; this process has lost the device before: ", "a launch of 'increment'");
    EXPECT_CONTAINS(weir_last_error()->remedy, "restart the process");
}

static void go_on(const char *section)
{
    struct stage s;
    ASSERT_TRUE(start(&s, section));
    EXPECT_OK(COPY(&s, s.b));
    const struct weir_event seen = test_record(s.b);
    EXPECT_OK(weir_event_sync(seen, GUARD_NS));
    rig_fake()->hold(1);
    EXPECT_OK(COPY(&s, s.b));
    const struct weir_event unseen = test_record(s.b);
    EXPECT_OK(LAUNCH(&s, s.a, increment));
    const struct weir_event failed = test_record(s.a);
    rig_fake()->fault("increment", 1);
    rig_fake()->hold(0);
    static const char cause[] = "a launch of 'increment' at ";
    expect_same_cause(weir_event_sync(failed, GUARD_NS), cause);
    expect_same_cause(weir_event_query(failed), cause);
    // Events that the host had seen complete stay complete; for the others the
    // driver no longer answers.
    EXPECT_OK(weir_event_query(seen));
    expect_same_cause(weir_event_sync(unseen, GUARD_NS), cause);
    try_everything(&s, cause);
    const size_t lines = logged_lines;
    EXPECT_UINT_LE(lines, 2); // once, however many calls fail because of it
    finish(&s);
    EXPECT_UINT_EQ(logged_lines, lines);
    expect_no_second_life();
    EXPECT_INT_EQ(rig_fake()->live(), 0);
}

WEIR_CHILD_TEST(CudaFaults, AfterwardsEverythingReportsTheFirstCause)
{
    go_on("");
}

WEIR_CHILD_TEST(CudaFaults, AfterwardsEverythingReportsTheFirstCauseIfAttributed)
{
    go_on(ATTRIBUTED);
}
