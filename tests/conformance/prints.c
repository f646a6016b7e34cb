// What kernels print, on devices with limits.printf_to_log: it is in the log when a wait returns.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kernels/conformance/print.h"
#include "tests/conformance/suite.h"

enum {
    ITEMS = 64,
    QUEUES = 4,
    RESULT_BYTES = 1024, // from one queue's results to the next one's, a multiple of any alignment
    LINES_MOST = 1024
};

static const struct weir_extent one = {1, 1, 1};
static const struct weir_extent block = {ITEMS, 1, 1};

// Messages of kernels; queues are waited for on several threads.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES_MOST][96];
static size_t line_count;

static void keep_line(void *user, weir_log_level level, const char *source, const char *message)
{
    if (strcmp(source, "printf") != 0)
        return;
    pthread_mutex_lock(&lock);
    if (line_count < LINES_MOST)
        snprintf(lines[line_count], sizeof *lines, "%s", message);
    line_count++;
    pthread_mutex_unlock(&lock);
}

// Forgets one line; false: there is none like it.
static bool take_line(const char *line)
{
    for (size_t i = 0; i < line_count && i < LINES_MOST; i++) {
        if (strcmp(lines[i], line) != 0)
            continue;
        memmove(lines + i, lines + i + 1, (LINES_MOST - i - 1) * sizeof *lines);
        line_count--;
        return true;
    }
    return false;
}

struct printer {
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *results;
};

static weir_status make_printer(struct fixture *f, const struct weir_program_params *params,
                                struct printer *p)
{
    line_count = 0;
    weir_log_set(keep_line, NULL, WEIR_LOG_INFO);
    const weir_status status = weir_program_create(f->device, params, &p->program);
    if (status < 0)
        return status;
    EXPECT_OK(weir_kernel_create(p->program, "print_items", &p->kernel));
    p->results = conform_device_buffer(f, (size_t)QUEUES * RESULT_BYTES);
    return WEIR_OK;
}

static void make_bundled_printer(struct fixture *f, struct printer *p)
{
    EXPECT_OK(
        make_printer(f, WEIR_PARAMS(weir_program, .label = "print", .bundle = &print_kernels), p));
}

static void destroy_printer(struct printer *p)
{
    weir_buffer_destroy(&p->results);
    weir_kernel_destroy(&p->kernel);
    weir_program_destroy(&p->program);
    weir_log_set(NULL, NULL, WEIR_LOG_INFO);
}

#define own_printer OWN(destroy_printer) struct printer

// Each queue has results of its own.
static void print_from(struct printer *p, unsigned index, weir_queue *queue, unsigned first,
                       unsigned count)
{
    EXPECT_OK(weir_queue_launch(queue, p->kernel, one, block,
                                weir_out(p->results, (size_t)index * RESULT_BYTES,
                                         ITEMS * sizeof(int32_t)),
                                first, count));
}

static void print(struct printer *p, weir_queue *queue, unsigned first, unsigned count)
{
    print_from(p, 0, queue, first, count);
}

static void expect_items(unsigned first, unsigned count)
{
    char line[96];
    for (unsigned i = 0; i < count; i++) {
        snprintf(line, sizeof line, "item %u of print: %d%%, %.1f", first + i, -(int)i, 0.5 * i);
        if (!take_line(line))
            weir_test_fail(__FILE__, __LINE__, "the log has no line '%s'", line);
    }
}

#define NEEDS_LOG(f)                                              \
    do {                                                          \
        if (!(f)->limits->printf_to_log)                          \
            CONFORM_SKIP("what kernels print is not in the log"); \
    } while (0)

CONFORM(Print, AWait)
{
    own_printer p = {.program = NULL};
    int32_t results[ITEMS];
    NEEDS_LOG(f);
    make_bundled_printer(f, &p);
    own_queue queue = conform_queue(f, "q");
    print(&p, queue, 1000, ITEMS);
    EXPECT_SYNC(queue);
    EXPECT_UINT_EQ(line_count, ITEMS);
    expect_items(1000, ITEMS);
    ASSERT_OK(weir_download(queue, results, p.results, 0, sizeof results));
    for (int i = 0; i < ITEMS; i++)
        EXPECT_INT_EQ(results[i], 0);
    EXPECT_UINT_EQ(line_count, 0);
}

CONFORM(Print, AnEventThatIsAskedFor)
{
    own_printer p = {.program = NULL};
    struct weir_event event;
    weir_status status;
    NEEDS_LOG(f);
    make_bundled_printer(f, &p);
    own_queue queue = conform_queue(f, "q");
    print(&p, queue, 7, 3);
    EXPECT_OK(weir_queue_record(queue, &event));
    while ((status = weir_event_query(event)) == WEIR_NOT_READY) {
    }
    EXPECT_OK(status);
    EXPECT_UINT_EQ(line_count, 3);
    expect_items(7, 3);
}

CONFORM(Print, SeveralQueues)
{
    own_printer p = {.program = NULL};
    weir_queue *queues[QUEUES];
    NEEDS_LOG(f);
    make_bundled_printer(f, &p);
    for (unsigned i = 0; i < QUEUES; i++) {
        queues[i] = conform_queue(f, "q");
        print_from(&p, i, queues[i], 100 * i, ITEMS);
        print_from(&p, i, queues[i], 100 * i, 1);
    }
    for (unsigned i = 0; i < QUEUES; i++)
        EXPECT_SYNC(queues[i]);
    EXPECT_UINT_EQ(line_count, QUEUES * (ITEMS + 1));
    for (unsigned i = 0; i < QUEUES; i++) {
        expect_items(100 * i, ITEMS);
        expect_items(100 * i, 1);
        weir_queue_destroy(&queues[i]);
    }
}

CONFORM(Print, AGraph)
{
    own_printer p = {.program = NULL};
    own_graph graph = NULL;
    NEEDS_LOG(f);
    make_bundled_printer(f, &p);
    own_queue queue = conform_queue(f, "q");
    ASSERT_OK(weir_capture_begin(queue));
    print(&p, queue, 5, 2);
    ASSERT_OK(weir_capture_end(queue, NULL, &graph));
    EXPECT_SYNC(queue);
    EXPECT_UINT_EQ(line_count, 0);
    for (int i = 0; i < 3; i++)
        EXPECT_OK(weir_queue_graph(queue, graph));
    EXPECT_SYNC(queue);
    EXPECT_UINT_EQ(line_count, 6);
    for (int i = 0; i < 3; i++)
        expect_items(5, 2);
}

CONFORM(Print, SourceAtRunTime)
{
    static const char source[] =
        "__kernel void print_items(__global int *results, uint first, uint n)\n"
        "{\n"
        "    uint i = (uint)get_global_id(0);\n"
        "    if (i < n)\n"
        "        results[i] = printf(\"item %u of %s: %d%%, %.1f\\n\", first + i, \"print\",\n"
        "                            -(int)i, 0.5f * i);\n"
        "}\n";
    own_printer p = {.program = NULL};
    NEEDS_LOG(f);
    const weir_status status =
        make_printer(f, WEIR_PARAMS(weir_program, .label = "print", .source = source), &p);
    CONFORM_COMPILED(status);
    own_queue queue = conform_queue(f, "q");
    print(&p, queue, 30, ITEMS);
    EXPECT_SYNC(queue);
    EXPECT_UINT_EQ(line_count, ITEMS);
    expect_items(30, ITEMS);
}
