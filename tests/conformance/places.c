// A call that creates, opens or closes something names its line when it is refused, and what keeps a
// device or a runtime from being closed is told with the lines that made it.

#include "kernels/conformance/conformance.h"
#include "tests/conformance/suite.h"

// The call, which stands on one line, fails, and its error names that line.
#define EXPECT_PLACED(call)                               \
    do {                                                  \
        weir_error_set(NULL);                             \
        EXPECT_INT_LT(call, 0);                           \
        EXPECT_INT_LT(weir_last_error()->status, 0);      \
        EXPECT_STR_EQ(weir_last_error()->file, __FILE__); \
        EXPECT_INT_EQ(weir_last_error()->line, __LINE__); \
    } while (0)

// What is refused for another reason than an argument; for these EXPECT_INVALID() asks the same everywhere.
CONFORM(Places, OfWhatIsNotThere)
{
    const struct weir_device_params *none = WEIR_PARAMS(weir_device, .select = "no such device");
    const uint32_t word = 0;
    own_kernel iota = conform_kernel(f, "iota");
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_kernel *kernel = NULL;
    weir_buffer *buffer = NULL;
    weir_queue *queue = NULL;
    EXPECT_PLACED(weir_open(WEIR_PARAMS(weir_open, .config_path = "/no/such/file"), &runtime));
    EXPECT_PLACED(weir_open(WEIR_PARAMS(weir_open, .backend = "no-such"), &runtime));
    EXPECT_PLACED(weir_device_open(f->runtime, none, &device));
    EXPECT_PLACED(weir_buffer_adopt(f->device, WEIR_PARAMS(weir_adopt, .size = 64), &buffer));
    EXPECT_PLACED(weir_queue_wrap(f->device, WEIR_PARAMS(weir_queue_wrap, .label = "q"), &queue));
    EXPECT_PLACED(weir_kernel_create(f->program, "no_such_kernel", &kernel));
    EXPECT_PLACED(weir_program_constant(f->program, "no_such_name", &word, sizeof word, &buffer));
}

static void expect_told(const char *what, int line)
{
    char wanted[256];
    snprintf(wanted, sizeof wanted, "%s:%d", __FILE__, line);
    EXPECT_CONTAINS(weir_last_error_text(), what);
    EXPECT_CONTAINS(weir_last_error_text(), wanted);
}

CONFORM(Places, OfWhatIsLeftAtClose)
{
    const struct weir_program_params params = {.struct_size = sizeof params,
                                               .bundle = &conformance_kernels};
    own_queue queue = NULL;
    own_pool pool = NULL;
    own_program program = NULL;
    own_kernel kernel = NULL;
    own_graph graph = NULL;
    own_buffer buffer = NULL;
    own_device second = NULL;
    const int first = __LINE__ + 1;
    ASSERT_OK(weir_queue_create(f->device, WEIR_PARAMS(weir_queue, .label = "q"), &queue));
    ASSERT_OK(weir_pool_create(f->device, WEIR_PARAMS(weir_pool, .label = "of this test"), &pool));
    ASSERT_OK(weir_program_create(f->device, &params, &program));
    ASSERT_OK(weir_kernel_create(program, "iota", &kernel));
    ASSERT_OK(weir_capture_begin(queue));
    ASSERT_OK(weir_capture_end(queue, WEIR_PARAMS(weir_graph, .label = "empty"), &graph));
    ASSERT_OK(weir_buffer_create(f->device, WEIR_PARAMS(weir_buffer, .size = 4), &buffer));
    ASSERT_OK(weir_device_open(f->runtime, WEIR_PARAMS(weir_device, .label = "2nd"), &second));

    EXPECT_PLACED(weir_device_close(&f->device));
    expect_told("the queue 'q'", first);
    expect_told("the pool 'of this test'", first + 1);
    expect_told("the program '//kernels/conformance'", first + 2);
    expect_told("the kernel 'iota'", first + 3);
    expect_told("the graph 'empty'", first + 5);
    expect_told("the buffer without a label", first + 6);
    EXPECT_NOT_NULL(f->device);
    EXPECT_PLACED(weir_close(&f->runtime));
    EXPECT_NOT_NULL(f->runtime);
    EXPECT_CONTAINS(weir_last_error_text(), "2 devices of the runtime are still open: '");
    expect_told("'2nd' (opened at ", first + 7);
}

enum {
    LEFT = 50,
    FIRST_LINE = 1001
};

// Counts how often a close logs the buffer "left N" with its line, which is FIRST_LINE + N.
static void count_left(void *counts, weir_log_level level, const char *source, const char *message)
{
    int index;
    int line;
    if (level == WEIR_LOG_ERROR && strcmp(source, "core") == 0 &&
        strstr(message, ") still exists") &&
        sscanf(message, "weir_device_close: the buffer 'left %d' (created at left.c:%d)", &index,
               &line) == 2 &&
        index >= 0 && index < LEFT && line == FIRST_LINE + index)
        ((int *)counts)[index]++;
}

// Expects each buffer to be logged so often.
static void expect_logged(struct fixture *f, int times)
{
    int counts[LEFT] = {0};
    weir_log_set(count_left, counts, WEIR_LOG_ERROR);
    EXPECT_PLACED(weir_device_close(&f->device));
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    for (int i = 0; i < LEFT; i++) {
        weir_test_note("left %d", i);
        EXPECT_INT_EQ(counts[i], times);
    }
    weir_test_note(NULL);
}

// More than a message has room for: the log has them all. One fits, and the log gets nothing.
CONFORM(Places, OfFiftyObjectsLeftAtClose)
{
    weir_buffer *buffers[LEFT];
    weir_queue_destroy(&f->queue);
    for (int i = 0; i < LEFT; i++) {
        char label[32];
        snprintf(label, sizeof label, "left %d", i);
        ASSERT_OK(weir_buffer_create_at(f->device,
                                        WEIR_PARAMS(weir_buffer, .label = label, .size = 4),
                                        &buffers[i], "left.c", FIRST_LINE + i));
    }
    expect_logged(f, 1);
    EXPECT_CONTAINS(weir_last_error()->message,
                    " objects of the device still exist: the buffer 'left ");
    EXPECT_CONTAINS(weir_last_error()->message, " more; the log (weir_log_set) has all");
    EXPECT_CONTAINS(weir_last_error()->remedy, "destroy them first");
    for (int i = 1; i < LEFT; i++)
        weir_buffer_destroy(&buffers[i]);

    expect_logged(f, 0);
    EXPECT_CONTAINS(weir_last_error()->message,
                    "1 object of the device still exists: the buffer 'left 0' (created at ");
    EXPECT_CONTAINS(weir_last_error()->remedy, "destroy it first");
    weir_buffer_destroy(&buffers[0]);
}
