// What kernels print: it is on the standard output when a wait without a time limit returns.
#include <unistd.h>

#include "kernels/conformance/print.h"
#include "tests/conformance/suite.h"

enum {
    ITEMS = 64,
    QUEUES = 4,
    RESULT_BYTES = 1024 // from one queue's results to the next one's, a multiple of any alignment
};

static const struct weir_extent one = {1, 1, 1};
static const struct weir_extent block = {ITEMS, 1, 1};

struct printer {
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *results;
    // While it is taken the standard output is a file, and failures of the test would be there too.
    FILE *taken;
    int output;
    weir_status status; // the first failure meanwhile
    char text[32768];
};

static weir_status make_printer(struct fixture *f, const struct weir_program_params *params,
                                struct printer *p)
{
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
}

#define own_printer OWN(destroy_printer) struct printer

static bool take_output(struct printer *p)
{
    fflush(stdout);
    p->taken = tmpfile();
    p->output = dup(STDOUT_FILENO);
    return p->taken && p->output >= 0 && dup2(fileno(p->taken), STDOUT_FILENO) >= 0;
}

static void keep(struct printer *p, weir_status status)
{
    if (p->status == WEIR_OK)
        p->status = status;
}

// Waits for the queue, gives the output back, and keeps what was printed.
static void end_output(struct printer *p, weir_queue *queue)
{
    keep(p, weir_queue_sync(queue, WEIR_FOREVER));
    fflush(stdout);
    dup2(p->output, STDOUT_FILENO);
    close(p->output);
    rewind(p->taken);
    p->text[fread(p->text, 1, sizeof p->text - 1, p->taken)] = '\0';
    fclose(p->taken);
    EXPECT_OK(p->status);
}

// Each queue has results of its own.
static void print_from(struct printer *p, unsigned index, weir_queue *queue, unsigned first,
                       unsigned count)
{
    keep(p, weir_queue_launch(queue, p->kernel, one, block,
                              weir_out(p->results, (size_t)index * RESULT_BYTES,
                                       ITEMS * sizeof(int32_t)),
                              first, count));
}

static void print(struct printer *p, weir_queue *queue, unsigned first, unsigned count)
{
    print_from(p, 0, queue, first, count);
}

// Takes `times` lines of each item out of the text.
static void expect_items(struct printer *p, unsigned first, unsigned count, unsigned times)
{
    char line[96];
    for (unsigned i = 0; i < times * count; i++) {
        const unsigned item = i / times;
        snprintf(line, sizeof line, "item %u of print: %d%%, %.1f\n", first + item, -(int)item,
                 0.5 * item);
        char *found = strstr(p->text, line);
        if (found)
            memmove(found, found + strlen(line), strlen(found + strlen(line)) + 1);
        else
            weir_test_fail(__FILE__, __LINE__, "'%s' was not printed", line);
    }
}

CONFORM(Print, AnEventThatIsAskedFor)
{
    own_printer p = {.program = NULL};
    struct weir_event event;
    weir_status status;
    CONFORM_NEEDS_KERNELS(f);
    make_bundled_printer(f, &p);
    ASSERT_TRUE(take_output(&p));
    print(&p, f->queue, 7, 3);
    keep(&p, weir_queue_record(f->queue, &event));
    while ((status = weir_event_query(event)) == WEIR_NOT_READY) {
    }
    keep(&p, status);
    end_output(&p, f->queue);
    expect_items(&p, 7, 3, 1);
    EXPECT_STR_EQ(p.text, "");
}

CONFORM(Print, SeveralQueues)
{
    own_printer p = {.program = NULL};
    own_queues queues = {NULL};
    int32_t results[ITEMS];
    CONFORM_NEEDS_KERNELS(f);
    make_bundled_printer(f, &p);
    for (unsigned i = 0; i < QUEUES; i++)
        queues[i] = conform_queue(f, "q");
    ASSERT_TRUE(take_output(&p));
    for (unsigned i = 0; i < QUEUES; i++)
        print_from(&p, i, queues[i], 100 * i, ITEMS);
    for (unsigned i = 1; i < QUEUES; i++)
        keep(&p, weir_queue_sync(queues[i], WEIR_FOREVER));
    end_output(&p, queues[0]);
    for (unsigned i = 0; i < QUEUES; i++) {
        expect_items(&p, 100 * i, ITEMS, 1);
        ASSERT_OK(
            weir_download(queues[i], results, p.results, (size_t)i * RESULT_BYTES, sizeof results));
        for (int item = 0; item < ITEMS; item++)
            EXPECT_TRUE(results[item] >= 0);
    }
    EXPECT_STR_EQ(p.text, "");
}

CONFORM(Print, AGraph)
{
    own_printer p = {.program = NULL};
    CONFORM_NEEDS_KERNELS(f);
    make_bundled_printer(f, &p);
    ASSERT_OK(weir_capture_begin(f->queue));
    print(&p, f->queue, 5, 2);
    own_graph graph = conform_end(f->queue);
    ASSERT_TRUE(take_output(&p));
    for (int i = 0; i < 3; i++)
        keep(&p, weir_queue_graph(f->queue, graph));
    end_output(&p, f->queue);
    expect_items(&p, 5, 2, 3);
    EXPECT_STR_EQ(p.text, "");
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
    CONFORM_NEEDS_KERNELS(f);
    CONFORM_COMPILED(
        make_printer(f, WEIR_PARAMS(weir_program, .label = "print", .source = source), &p));
    ASSERT_TRUE(take_output(&p));
    print(&p, f->queue, 30, ITEMS);
    end_output(&p, f->queue);
    expect_items(&p, 30, ITEMS, 1);
    EXPECT_STR_EQ(p.text, "");
}
