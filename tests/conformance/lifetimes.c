// Destroying objects in use, callers that are unloaded, calls that must not wait, closing, and forks.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)

// With another queue that waits for its event, before and after the end.
CONFORM(DestroyInUse, Queue)
{
    weir_queue *queue = conform_queue(f, "doomed");
    own_queue consumer = conform_queue(f, "consumer");
    own_buffer a = conform_device_buffer(f, SIZE);
    own_buffer b = conform_host_buffer(f, SIZE);

    own_gate gate = gate_on(queue);
    conform_fill(queue, a, 9);
    const struct weir_event event = test_record(queue);
    ASSERT_OK(weir_queue_wait(consumer, event));
    weir_queue_destroy(&queue);
    EXPECT_NULL(queue);
    EXPECT_INT_EQ(weir_event_query(event), WEIR_NOT_READY);
    EXPECT_INT_EQ(weir_event_sync(event, 1000), WEIR_TIMEOUT);
    ASSERT_OK(weir_queue_wait(consumer, event));
    ASSERT_OK(weir_queue_copy(consumer, b, 0, a, 0, SIZE));
    gate_open(gate);
    EXPECT_OK(weir_event_sync(event, HANG_GUARD_NS));
    ASSERT_SYNC(consumer);
    EXPECT_TRUE(conform_is_filled(b, 9));
    // The queue is gone, so its event is complete.
    ASSERT_OK(weir_device_trim(f->device));
    EXPECT_OK(weir_event_query(event));
    EXPECT_OK(weir_queue_wait(consumer, event));
    EXPECT_SYNC(consumer);
}

// The memory stays for the work that uses it, and for nothing that comes later.
CONFORM(DestroyInUse, BufferThroughAnotherPointer)
{
    weir_buffer *buffer = conform_host_buffer(f, SIZE);
    weir_buffer *other = buffer;
    const unsigned char value = 9;

    own_gate gate = gate_on(f->queue);
    ASSERT_OK(weir_queue_fill(f->queue, buffer, 0, SIZE, &value, 1));
    weir_buffer_destroy(&buffer);
    EXPECT_INVALID(weir_queue_fill(f->queue, other, 0, SIZE, &value, 1), "destroyed");
    EXPECT_CONTAINS(weir_last_error_text(), "after the last call that uses it");
    EXPECT_INVALID(weir_queue_copy(f->queue, other, 0, other, 1, 1), "destroyed");
    gate_open(gate);
    EXPECT_SYNC(f->queue);
}

// Everything of one pipeline is destroyed at once, in use, the queues first. New buffers do not get the old memory.
CONFORM(DestroyInUse, EverythingAtOnce)
{
    weir_queue *queues[2] = {conform_queue(f, "a"), conform_queue(f, "b")};
    weir_buffer *buffers[3];
    unsigned char memory[64];

    memset(memory, 0, sizeof memory);
    for (int i = 0; i < 2; i++)
        buffers[i] = conform_device_buffer(f, SIZE);
    ASSERT_OK(weir_buffer_wrap(f->device,
                               WEIR_PARAMS(weir_wrap, .label = "mine", .pointer = memory,
                                           .size = sizeof memory),
                               &buffers[2]));
    own_gate gate = gate_on(queues[0]);
    conform_fill(queues[0], buffers[0], 8);
    follow(queues[1], queues[0]);
    ASSERT_OK(weir_queue_copy(queues[1], buffers[1], 0, buffers[0], 0, SIZE));
    ASSERT_OK(weir_queue_copy(queues[1], buffers[2], 0, buffers[1], 0, sizeof memory));
    const struct weir_event end = test_record(queues[1]);
    for (int i = 0; i < 2; i++)
        weir_queue_destroy(&queues[i]);
    for (int i = 0; i < 3; i++)
        weir_buffer_destroy(&buffers[i]);
    EXPECT_NULL(buffers[0]);
    own_queue quick = conform_queue(f, "quick");
    for (int i = 0; i < 2; i++) {
        own_buffer other = conform_device_buffer(f, SIZE);
        conform_write(quick, other, 1);
    }
    gate_open(gate);
    EXPECT_OK(weir_event_sync(end, HANG_GUARD_NS));
    for (size_t i = 0; i < sizeof memory; i++)
        EXPECT_INT_EQ(memory[i], 8);
    EXPECT_OK(weir_device_trim(f->device));
}

CONFORM(DestroyInUse, KernelAndProgram)
{
    own_buffer buffer = conform_device_buffer(f, SIZE);
    weir_kernel *kernel = conform_kernel(f, "iota");
    const bool runs = conform_kernels_run(f);
    uint32_t back[16] = {0};

    conform_fill(f->queue, buffer, 0);
    own_gate gate = gate_on(f->queue);
    ASSERT_OK(weir_queue_launch(f->queue, kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                weir_out(buffer, 0, SIZE), 100u, 16u));
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&f->program);
    EXPECT_NULL(kernel);
    EXPECT_NULL(f->program);
    gate_open(gate);
    ASSERT_OK(weir_download(f->queue, back, buffer, 0, sizeof back));
    for (uint32_t i = 0; runs && i < 16; i++)
        EXPECT_UINT_EQ(back[i], 100 + i);
}

static weir_status destroy_buffer(void *user)
{
    weir_buffer_destroy(user);
    return WEIR_OK;
}

static weir_status destroy_queue(void *user)
{
    weir_queue_destroy(user);
    return WEIR_OK;
}

// A host call may destroy a buffer of its queue, and the queue itself.
CONFORM(DestroyInUse, FromAHostCall)
{
    weir_queue *queue = conform_queue(f, "own");
    weir_queue *doomed = queue;
    weir_buffer *buffer = conform_device_buffer(f, SIZE);
    weir_buffer *doomed_buffer = buffer;

    own_gate gate = gate_on(queue);
    ASSERT_OK(weir_queue_host_call(queue, destroy_buffer, &doomed_buffer));
    ASSERT_OK(weir_queue_host_call(queue, destroy_queue, &doomed));
    conform_fill(queue, buffer, 1);
    const struct weir_event end = test_record(queue);
    gate_open(gate);
    EXPECT_OK(weir_event_sync(end, HANG_GUARD_NS));
    EXPECT_NULL(doomed);
    EXPECT_NULL(doomed_buffer);
}

CONFORM(DestroyInUse, NullIsAccepted)
{
    weir_graph_destroy(&(weir_graph *){NULL});
    weir_graph_destroy(NULL);
    weir_queue_destroy(&(weir_queue *){NULL});
    weir_queue_destroy(NULL);
    weir_buffer_destroy(&(weir_buffer *){NULL});
    weir_buffer_destroy(NULL);
    weir_kernel_destroy(&(weir_kernel *){NULL});
    weir_kernel_destroy(NULL);
    weir_program_destroy(&(weir_program *){NULL});
    weir_program_destroy(NULL);
    EXPECT_OK(weir_device_close(&(weir_device *){NULL}));
    EXPECT_OK(weir_device_close(NULL));
    EXPECT_OK(weir_close(&(weir_runtime *){NULL}));
    EXPECT_OK(weir_close(NULL));
    weir_load_report_destroy(NULL);
}

// Every create, destroy and submit that is not documented as possibly waiting.
// The new queue is synced only if nothing keeps the device busy.
static void create_and_destroy_everything(struct fixture *f, bool sync)
{
    // The queue may still write to it when this returns.
    static unsigned char memory[256];
    own_buffer wrapped = NULL;
    int fd;

    own_buffer device = conform_device_buffer(f, SIZE);
    own_buffer host = conform_host_buffer(f, SIZE);
    ASSERT_OK(weir_buffer_wrap(f->device,
                               WEIR_PARAMS(weir_wrap, .pointer = memory, .size = sizeof memory),
                               &wrapped));
    own_kernel kernel = NULL;
    ASSERT_OK(weir_kernel_create(f->program, "iota", &kernel));
    ASSERT_OK(weir_queue_copy(f->queue, device, 0, host, 0, SIZE));
    ASSERT_OK(weir_queue_copy(f->queue, wrapped, 0, device, 0, sizeof memory));
    const struct weir_event event = test_record(f->queue);
    ASSERT_OK(weir_queue_flush(f->queue));
    WEIR_IGNORE(weir_event_query(event));
    ASSERT_OK(weir_event_fd(event, &fd));
    close(fd);
    if (sync)
        ASSERT_SYNC(f->queue);
}

// Asserted by order, not by a clock: all these calls return while the gate is
// closed.
CONFORM(NoImplicitDeviceWait, DuringAHostCall)
{
    weir_queue *queue = conform_queue(f, "gated");
    weir_buffer *buffer = conform_device_buffer(f, SIZE);
    weir_buffer *used = conform_device_buffer(f, SIZE);

    weir_kernel *kernel = conform_kernel(f, "iota"); // creating the program may wait
    conform_fill(queue, used, 1);
    own_gate gate = gate_on(queue);
    conform_fill(queue, used, 1);
    const struct weir_event end = test_record(queue);
    ASSERT_TRUE(gate_await(gate, 1));
    weir_buffer_destroy(&used);
    for (int i = 0; i < 3; i++)
        create_and_destroy_everything(f, true);
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&f->program);
    weir_buffer_destroy(&buffer);
    weir_queue_destroy(&queue);
    EXPECT_INT_EQ(weir_event_query(end), WEIR_NOT_READY);
    gate_open(gate);
    EXPECT_OK(weir_event_sync(end, HANG_GUARD_NS));
}

// The same while a kernel runs. Its run time is not known, so if it ended too
// early, the test is repeated with four times the work.
CONFORM(NoImplicitDeviceWait, BesideARunningKernel)
{
    CONFORM_NEEDS_KERNELS(f);
    own_kernel kernel = conform_kernel(f, "spin");
    own_buffer buffer = conform_device_buffer(f, SIZE);
    weir_status status = WEIR_OK;

    for (uint64_t steps = 100000000; status == WEIR_OK && steps < 8000000000; steps *= 4) {
        weir_queue *queue = conform_queue(f, "spinning");
        ASSERT_OK(weir_queue_launch(queue, kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                    weir_out(buffer, 0, 4), 1u, steps));
        const struct weir_event event = test_record(queue);
        ASSERT_OK(weir_queue_flush(queue));
        status = weir_event_query(event);
        if (status == WEIR_OK) { // the submit itself ran the kernel
            weir_queue_destroy(&queue);
            break;
        }
        create_and_destroy_everything(f, false);
        status = weir_event_query(event);
        EXPECT_OK(weir_event_sync(event, HANG_GUARD_NS));
        if (status == WEIR_OK)
            weir_test_note("all calls returned, but only after %llu steps",
                           (unsigned long long)steps);
        weir_queue_destroy(&queue);
        if (status == WEIR_OK && steps > 4000000000)
            weir_test_fail(__FILE__, __LINE__, "creates and destroys wait for a running kernel");
    }
    if (status == WEIR_OK && !weir_test_has_failed())
        CONFORM_SKIP("this device runs kernels inside the submit");
}

// Closing waits for objects that were destroyed in use; the memory belongs to
// the test.
CONFORM(Closing, WaitsForWhatWasDestroyedInUse)
{
    enum {
        PIECES = 64
    };
    static unsigned char memory[PIECES][256];
    weir_device *device;
    weir_buffer *buffer;

    memset(memory, 0, sizeof memory);
    ASSERT_OK(weir_device_open(f->runtime, WEIR_PARAMS(weir_device, .label = "second"), &device));
    struct fixture second = {.runtime = f->runtime, .device = device};
    weir_queue *queue = conform_queue(&second, "q");
    atomic_int count = 0;
    for (int i = 0; i < PIECES; i++) {
        const unsigned char value = (unsigned char)(i + 1);
        ASSERT_OK(
            weir_buffer_wrap(device,
                             WEIR_PARAMS(weir_wrap, .pointer = memory[i], .size = sizeof memory[i]),
                             &buffer));
        ASSERT_OK(weir_queue_host_call(queue, count_up, &count));
        ASSERT_OK(weir_queue_fill(queue, buffer, 0, sizeof memory[i], &value, 1));
        weir_buffer_destroy(&buffer);
    }
    weir_queue_destroy(&queue);
    ASSERT_OK(weir_device_close(&device));
    EXPECT_INT_EQ(atomic_load(&count), PIECES);
    for (int i = 0; i < PIECES; i++)
        EXPECT_INT_EQ(memory[i][255], i + 1);
}

// What a caller's __FILE__ is in: a page that is gone when its library is unloaded. The next one has the
// same address.
static char *map_file(char *at, const char *name)
{
    const int fixed = at ? MAP_FIXED : 0;
    char *file = mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    return file == MAP_FAILED ? NULL : strcpy(file, name);
}

static void submit_from(struct fixture *f, weir_queue *queue, const char *file)
{
    const unsigned char value = 9;
    weir_buffer *a = NULL;
    weir_buffer *b = NULL;
    struct weir_event event;
    void *bytes;
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "bytes",
                                              .size = SIZE,
                                              .placement = WEIR_PLACE_HOST};
    ASSERT_OK(weir_buffer_create_at(f->device, &params, &a, file, 1));
    ASSERT_OK(weir_buffer_create_at(f->device, &params, &b, file, 2));
    ASSERT_OK(weir_queue_fill_at(queue, a, 0, SIZE, &value, 1, file, 3));
    ASSERT_OK(weir_queue_copy_at(queue, b, 0, a, 0, SIZE, file, 4));
    ASSERT_OK(weir_queue_record_at(queue, &event, file, 5));
    ASSERT_OK(weir_queue_wait_at(queue, event, file, 6));
    ASSERT_OK(weir_event_sync_at(event, HANG_GUARD_NS, file, 7));
    ASSERT_OK(weir_host_begin_at(b, 0, SIZE, WEIR_ACCESS_READ, &bytes, file, 8));
    ASSERT_OK(weir_host_end_at(b, 0, SIZE, WEIR_ACCESS_READ, file, 9));
    weir_buffer_destroy_at(&a, file, 10);
    weir_buffer_destroy_at(&b, file, 11);
    EXPECT_INT_EQ(weir_queue_host_call_at(queue, NULL, NULL, file, 12), WEIR_ERROR_INVALID);
}

// Plugins write of an operation, and a program prints an error, after that.
CONFORM(Unloaded, CallersFileIsStillKnown)
{
    char *file = map_file(NULL, "first_stage.c");
    ASSERT_NOT_NULL(file);
    submit_from(f, f->queue, file);
    ASSERT_NOT_NULL(map_file(file, "other_stage.c"));
    EXPECT_CONTAINS(weir_last_error_text(), "first_stage.c:12");
    submit_from(f, f->queue, file);
    EXPECT_OK(weir_queue_host_call_at(f->queue, fail_plainly, NULL, file, 13));
    munmap(file, 4096);
    EXPECT_CONTAINS(weir_last_error_text(), "other_stage.c:12");
    EXPECT_INT_LT(weir_queue_sync(f->queue, HANG_GUARD_NS), 0);
    EXPECT_CONTAINS(weir_last_error_text(), "other_stage.c:13");
}

#define COUNT_FORKED(call) is_forked(call, #call, true) ? 0 : 1
#define COUNT_FORKED_ANYWHERE(call) is_forked(call, #call, false) ? 0 : 1

// Most calls know their line.
static bool is_forked(weir_status status, const char *call, bool placed)
{
    const char *file = weir_last_error()->file;
    const bool is = status == WEIR_ERROR_FORKED && (!placed || (file && !strcmp(file, __FILE__)));
    if (!is)
        fprintf(stderr, "%s: %s, %s\n", call, weir_status_name(status), file ? file : "no file");
    return is;
}

// In the child: the number of calls that do not return WEIR_ERROR_FORKED, which they do before they look at an
// argument.
static int try_everything(struct fixture *f)
{
    const struct weir_event event = {1, 1};
    const struct weir_extent one = {1, 1, 1};
    const struct weir_plane plane = {NULL, 0, 16};
    const struct weir_volume volume = {NULL, 0, 16, 16};
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_queue *queue = NULL;
    weir_buffer *buffer = NULL;
    weir_program *program = NULL;
    weir_comm *comm = NULL;
    weir_kernel *kernel = NULL;
    struct weir_event recorded;
    uint64_t time;
    size_t index;
    void *pointer;
    int fd;
    int wrong = 0;

    wrong += COUNT_FORKED(weir_open(NULL, &runtime));
    wrong += COUNT_FORKED_ANYWHERE(weir_device_describe(NULL, 0, &(struct weir_device_info){0}));
    wrong += COUNT_FORKED(weir_device_open(NULL, NULL, &device));
    wrong += COUNT_FORKED_ANYWHERE(weir_device_trim(NULL));
    wrong += COUNT_FORKED(weir_queue_create(NULL, NULL, &queue));
    wrong += COUNT_FORKED(weir_buffer_create(NULL, NULL, &buffer));
    wrong += COUNT_FORKED(weir_buffer_wrap(NULL, NULL, &buffer));
    wrong += COUNT_FORKED(weir_host_begin(NULL, 0, 16, WEIR_ACCESS_READ, &pointer));
    wrong += COUNT_FORKED(weir_host_end(NULL, 0, 16, WEIR_ACCESS_READ));
    wrong += COUNT_FORKED(weir_upload(NULL, NULL, 0, NULL, 16));
    wrong += COUNT_FORKED(weir_download(NULL, NULL, NULL, 0, 16));
    wrong += COUNT_FORKED(weir_program_create(NULL, NULL, &program));
    wrong += COUNT_FORKED(weir_kernel_create(NULL, NULL, &kernel));
    wrong += COUNT_FORKED(weir_queue_copy(NULL, NULL, 0, NULL, 16, 16));
    wrong += COUNT_FORKED(weir_queue_copy_2d(NULL, plane, plane, 16, 1));
    wrong += COUNT_FORKED(weir_queue_copy_3d(NULL, volume, volume, 16, 1, 1));
    wrong += COUNT_FORKED(weir_queue_fill(NULL, NULL, 0, 16, NULL, 1));
    wrong += COUNT_FORKED(weir_queue_fill_2d(NULL, plane, 16, 1, NULL, 1));
    wrong += COUNT_FORKED(weir_queue_launch(NULL, NULL, one, one, 0u));
    wrong += COUNT_FORKED(weir_queue_host_call(NULL, NULL, NULL));
    wrong += COUNT_FORKED(weir_queue_record(NULL, &recorded));
    wrong += COUNT_FORKED(weir_queue_wait(NULL, event));
    wrong += COUNT_FORKED(weir_queue_flush(NULL));
    wrong += COUNT_FORKED(weir_queue_sync(NULL, 0));
    wrong += COUNT_FORKED(weir_queue_recover(NULL));
    wrong += COUNT_FORKED(weir_event_query(event));
    wrong += COUNT_FORKED(weir_event_error(event));
    wrong += COUNT_FORKED(weir_event_sync(event, 0));
    wrong += COUNT_FORKED(weir_event_sync_any(&event, 1, 0, &index));
    wrong += COUNT_FORKED(weir_event_sync_all(&event, 1, 0));
    wrong += COUNT_FORKED(weir_event_sync_all(&event, 0, 0));
    wrong += COUNT_FORKED(weir_event_time_ns(event, &time));
    wrong += COUNT_FORKED(weir_event_fd(event, &fd));
    wrong += COUNT_FORKED(weir_comm_create(NULL, NULL, &comm));
    wrong += COUNT_FORKED(weir_comm_create_all(NULL, 1, NULL, &comm));
    wrong += COUNT_FORKED(weir_comm_split(NULL, 0, 0, NULL, &comm));
    wrong += COUNT_FORKED(weir_comm_shrink(NULL, NULL, &comm));
    wrong += COUNT_FORKED(weir_comm_abort(NULL, NULL));
    wrong += COUNT_FORKED_ANYWHERE(weir_comm_error(NULL));
    wrong += COUNT_FORKED(weir_queue_collective(NULL, NULL, NULL));
    weir_program_destroy(&f->program); // this returns nothing, and must not hang
    wrong += COUNT_FORKED(weir_device_close(&f->device));
    wrong += COUNT_FORKED(weir_close(&f->runtime));
    return wrong;
}

CONFORM(Forked, EveryCallInTheChildIsAnError)
{
    own_buffer buffer = conform_host_buffer(f, SIZE);
    own_kernel kernel = conform_kernel(f, "iota");
    int status = -1;

    pid_t child = fork();
    if (child == 0) {
        weir_queue_destroy(&f->queue); // as above
        weir_buffer_destroy(&buffer);
        weir_kernel_destroy(&kernel);
        _exit(try_everything(f));
    }
    ASSERT_INT_GT(child, 0);
    ASSERT_INT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_INT_EQ(WEXITSTATUS(status), 0);
    // The parent continues to work.
    EXPECT_SYNC(f->queue);
}
