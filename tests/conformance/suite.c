// The frame around each test: opening, the list, closing, and the summary.
#include "tests/conformance/suite.h"

#include <pthread.h>
#include <time.h>

#include "kernels/conformance/conformance.h"

static struct {
    char chain[512]; // backend, device and plugins, for the summary
    int run;
    int skipped;
} summary;

static void print_summary(void)
{
    if (summary.run)
        printf("[ CONFORM  ] %s: %d tests; %d skipped by limits\n", summary.chain, summary.run,
               summary.skipped);
}

void conform_skipped(void)
{
    summary.skipped++;
}

static void note_chain(const struct fixture *f)
{
    const char *plugins = getenv("WEIR_PLUGINS");
    snprintf(summary.chain, sizeof summary.chain, "%s%s%s on '%s'", plugins ? plugins : "",
             plugins && *plugins ? " > " : "", weir_runtime_backend(f->runtime),
             weir_device_get_info(f->device)->name);
    atexit(print_summary);
}

static bool open_fixture(struct fixture *f)
{
    if (weir_open(NULL, &f->runtime) != WEIR_OK ||
        weir_device_open(f->runtime, NULL, &f->device) != WEIR_OK) {
        weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
        return false;
    }
    f->limits = weir_device_limits(f->device);
    f->queue = conform_queue(f, "q");
    return f->queue != NULL;
}

static void close_fixture(struct fixture *f)
{
    weir_program_destroy(&f->program);
    weir_queue_destroy(&f->queue);
    if (weir_test_has_failed())
        return; // objects that the test left would only add to its failure
    EXPECT_OK(weir_device_close(&f->device));
    EXPECT_OK(weir_close(&f->runtime));
    EXPECT_NULL(f->device);
    EXPECT_NULL(f->runtime);
}

static void run(void)
{
    const struct conform_test *test = weir_test_data();
    struct fixture f = {0};

    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    if (!open_fixture(&f))
        return;
    if (summary.run++ == 0)
        note_chain(&f);
    test->body(&f);
    close_fixture(&f);
}

void conform_add(struct conform_test *test)
{
    test->test.run = run;
    test->test.data = test;
    weir_test_add(&test->test);
}

// Makers.

weir_queue *conform_queue(struct fixture *f, const char *label)
{
    return test_queue(f->device, label);
}

weir_queue *conform_timed_queue(struct fixture *f, const char *label)
{
    weir_queue *queue;
    EXPECT_OK(weir_queue_create(f->device, WEIR_PARAMS(weir_queue, .label = label, .timing = true),
                                &queue));
    return queue;
}

weir_buffer *conform_buffer(struct fixture *f, size_t size, weir_placement placement)
{
    return test_buffer(f->device, "buffer", size, placement);
}

weir_buffer *conform_device_buffer(struct fixture *f, size_t size)
{
    return conform_buffer(f, size, WEIR_PLACE_DEVICE);
}

weir_buffer *conform_host_buffer(struct fixture *f, size_t size)
{
    return conform_buffer(f, size, WEIR_PLACE_HOST);
}

weir_kernel *conform_kernel(struct fixture *f, const char *name)
{
    weir_kernel *kernel;
    if (!f->program && weir_program_create(f->device,
                                           WEIR_PARAMS(weir_program, .label = "conformance",
                                                       .bundle = &conformance_kernels),
                                           &f->program) != WEIR_OK) {
        weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
        return NULL;
    }
    EXPECT_OK(weir_kernel_create(f->program, name, &kernel));
    return kernel;
}

weir_pool *conform_pool(struct fixture *f, weir_placement placement, size_t limit_bytes)
{
    weir_pool *pool;
    EXPECT_OK(weir_pool_create(f->device,
                               WEIR_PARAMS(weir_pool, .label = "pool", .placement = placement,
                                           .limit_bytes = limit_bytes),
                               &pool));
    return pool;
}

weir_buffer *conform_take(weir_pool *pool, weir_queue *queue, size_t size)
{
    weir_buffer *buffer;
    EXPECT_OK(weir_pool_allocate(pool, queue, size, &buffer));
    return buffer;
}

weir_graph *conform_end(weir_queue *queue)
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_end(queue, WEIR_PARAMS(weir_graph, .label = "graph"), &graph));
    EXPECT_NOT_NULL(graph);
    return graph;
}

// Asked of the device once: does `iota` write anything?
bool conform_kernels_run(struct fixture *f)
{
    static int answer = -1;
    uint32_t first = 0;
    if (answer >= 0)
        return answer;

    own_queue queue = conform_queue(f, "probe");
    own_buffer buffer = conform_device_buffer(f, 64);
    own_kernel kernel = conform_kernel(f, "iota");
    if (!queue || !buffer || !kernel)
        return false;
    EXPECT_OK(weir_upload(queue, buffer, 0, &first, sizeof first));
    EXPECT_OK(weir_queue_launch(queue, kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(buffer, 0, 64), 4711u, 1u));
    EXPECT_OK(weir_download(queue, &first, buffer, 0, sizeof first));
    answer = first == 4711;
    return answer;
}

// Whether WEIR_DEBUG=1.
static bool debugs(void)
{
    const char *debug = getenv("WEIR_DEBUG");
    return debug && strcmp(debug, "1") == 0;
}

unsigned char *conform_bytes(weir_buffer *buffer)
{
    void *pointer = NULL;
    size_t size = weir_buffer_size(buffer);
    EXPECT_OK(weir_host_begin(buffer, 0, size, WEIR_ACCESS_READ_WRITE, &pointer));
    if (!debugs())
        EXPECT_OK(weir_host_end(buffer, 0, size, WEIR_ACCESS_READ_WRITE));
    return pointer;
}

unsigned char conform_pattern(size_t index, unsigned seed)
{
    return (unsigned char)(index * 31 + (index >> 8) * 7 + seed * 101 + 11);
}

void conform_write(weir_queue *queue, weir_buffer *buffer, unsigned seed)
{
    size_t size = weir_buffer_size(buffer);
    OWN_MEMORY unsigned char *bytes = malloc(size);
    for (size_t i = 0; bytes && i < size; i++)
        bytes[i] = conform_pattern(i, seed);
    EXPECT_OK(weir_upload(queue, buffer, 0, bytes, size));
}

bool conform_holds(weir_queue *queue, weir_buffer *buffer, size_t offset, size_t size,
                   unsigned seed, size_t first)
{
    OWN_MEMORY unsigned char *bytes = malloc(size);
    bool same = bytes && weir_download(queue, bytes, buffer, offset, size) == WEIR_OK;
    for (size_t i = 0; same && i < size; i++)
        same = bytes[i] == conform_pattern(first + i, seed);
    return same;
}

void conform_fill(weir_queue *queue, weir_buffer *buffer, unsigned char value)
{
    EXPECT_OK(weir_queue_fill(queue, buffer, 0, weir_buffer_size(buffer), &value, 1));
}

bool conform_is_filled(weir_buffer *buffer, unsigned char value)
{
    const unsigned char *bytes = conform_bytes(buffer);
    const size_t size = weir_buffer_size(buffer);
    size_t same = 0;
    while (same < size && bytes[same] == value)
        same++;
    return same == size;
}

void conform_run_threads(void *(*function)(void *worker), void *workers, size_t worker_size,
                         int count)
{
    enum {
        MOST = 16
    };
    pthread_t threads[MOST];
    int started = 0;

    ASSERT_INT_LE(count, MOST);
    while (started < count && pthread_create(&threads[started], NULL, function,
                                             (char *)workers + (size_t)started * worker_size) == 0)
        started++;
    EXPECT_INT_EQ(started, count);
    for (int i = 0; i < started; i++)
        EXPECT_INT_EQ(pthread_join(threads[i], NULL), 0);
}

// Gates.

struct gate *gate_create(void)
{
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate)
        abort();
    return gate;
}

struct gate *gate_on(weir_queue *queue)
{
    struct gate *gate = gate_create();
    EXPECT_OK(weir_queue_host_call(queue, gate_pass, gate));
    return gate;
}

void gate_destroy(struct gate **gate)
{
    if (*gate && weir_test_has_failed()) // a host call may still wait at it
        gate_open(*gate);
    else
        free(*gate);
    *gate = NULL;
}

weir_status count_up(void *counter)
{
    atomic_fetch_add((atomic_int *)counter, 1);
    return WEIR_OK;
}

weir_status fail_plainly(void *unused)
{
    return WEIR_ERROR_HOST_CALL;
}

weir_status sleep_a_little(void *unused)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
    return WEIR_OK;
}
