// What a process has once: its end while it uses Weir, and then a debug mode that begins late.
#include <semaphore.h>
#include <unistd.h>

#include "tests/support/memory.h"
#include "tests/unit/core_backend.h"

// A process ends while a thread uploads. A process of its own does so: Weir is not used in this one.

static struct control control;
static sem_t under_way;

static void *upload(void *user)
{
    static unsigned char bytes[16 << 20];
    const size_t size = sizeof bytes;
    weir_queue *queue = control_queue(&control, "q");
    weir_buffer *buffer = control_buffer(&control, size);
    for (;; sem_post(&under_way))
        if (weir_upload(queue, buffer, 0, bytes, size) < 0)
            _exit(2);
    return NULL;
}

WEIR_CHILD_TEST(Transfer, TheProcessEnds)
{
    pthread_t thread;
    ASSERT_TRUE(control_open(&control));
    control.devices[0]->staging.thread_limit = 3;
    ASSERT_INT_EQ(sem_init(&under_way, 0, 0), 0);
    ASSERT_INT_EQ(pthread_create(&thread, NULL, upload, NULL), 0);
    ASSERT_INT_EQ(sem_wait(&under_way), 0);
}

// A process ends while host calls wait for their turn: the log says where they come from. The counts go
// through a pipe, since the log's function runs at exit.

static int told[2];

static void pass_on(void *user, weir_log_level level, const char *source, const char *message)
{
    if (level == WEIR_LOG_WARNING && write(told[1], message, strlen(message)) < 0)
        _exit(5);
}

static weir_status never_return(void *unused)
{
    sem_post(&under_way);
    pause();
    return WEIR_OK;
}

static void end_before_host_calls(void)
{
    weir_log_set(pass_on, NULL, WEIR_LOG_WARNING);
    ASSERT_TRUE(control_open(&control));
    ASSERT_INT_EQ(sem_init(&under_way, 0, 0), 0);
    weir_queue *queue = control_queue(&control, "q");
    ASSERT_OK(weir_queue_host_call(queue, never_return, NULL));
    ASSERT_INT_EQ(sem_wait(&under_way), 0);
    ASSERT_OK(weir_queue_host_call_at(queue, never_return, NULL, "late.c", 12));
    ASSERT_OK(weir_queue_host_call_at(queue, never_return, NULL, "late.c", 13));
}

WEIR_TEST(HostCalls, TheProcessEnds)
{
    char message[600] = "";
    ASSERT_INT_EQ(pipe(told), 0);
    weir_test_in_child(__FILE__, __LINE__, end_before_host_calls);
    close(told[1]);
    EXPECT_INT_GT((int)read(told[0], message, sizeof message - 1), 0);
    EXPECT_CONTAINS(message, "2 host calls");
    EXPECT_CONTAINS(message, "late.c:12");
    close(told[0]);
}

// Debug mode that begins when the process has objects already, or if out of memory for a record. The last
// test, since the mode stays for the process.

static weir_status open_all(const char *text, weir_runtime **out_runtime, weir_device **out_device,
                            weir_queue **out_queue)
{
    weir_status status = weir_open(WEIR_PARAMS(weir_open, .config_text = text), out_runtime);
    if (status == WEIR_OK)
        status = weir_device_open(*out_runtime, NULL, out_device);
    return status == WEIR_OK ? weir_queue_create(*out_device, NULL, out_queue) : status;
}

WEIR_TEST(DebugLate, BeginsWithTheRuntimeThatAsksForIt)
{
    own_runtime before = NULL;
    own_runtime after = NULL;
    own_device device_before = NULL;
    own_device device_after = NULL;
    own_queue queue_after = NULL;
    weir_queue *queue_before = NULL, *fresh = NULL;
    unsetenv("WEIR_DEBUG");
    ASSERT_OK(open_all("[weir]\nbackend = null\n", &before, &device_before, &queue_before));
    // The variable takes precedence over the file.
    setenv("WEIR_DEBUG", "1", 1);
    ASSERT_OK(open_all("[weir]\nbackend = null\ndebug = 0\n", &after, &device_after, &queue_after));
    setenv("WEIR_DEBUG", "2", 1);
    weir_runtime *none;
    EXPECT_FAILURE(weir_open(NULL, &none), WEIR_ERROR_CONFIG,
                   "WEIR_DEBUG: 'debug' of [weir] must be 0 or 1, not '2'");

    // What has no record is used as ever, and ended as ever.
    EXPECT_OK(weir_queue_flush(queue_before));
    EXPECT_NOT_NULL(weir_device_limits(device_before));
    weir_queue_destroy(&queue_before);
    EXPECT_NULL(queue_before);

    // From then on it is noted, of any runtime.
    ASSERT_OK(weir_queue_create(device_before, NULL, &fresh));
    weir_queue *gone = fresh;
    weir_queue_destroy(&fresh);
    EXPECT_FAILURE(weir_queue_flush(gone), WEIR_ERROR_INVALID, "which was destroyed at");

    // Memory runs out somewhere in a create call, or for its record: an object without one works.
    for (long n = 1, passed = 0; passed < 3; n++) {
        ASSERT_TRUE(n < 64);
        weir_test_fail_allocation(n - 1);
        const weir_status status = weir_queue_create(device_after, NULL, &fresh);
        weir_test_fail_allocation(-1);
        if (status < 0) {
            EXPECT_INT_EQ(status, WEIR_ERROR_OUT_OF_MEMORY);
            continue;
        }
        passed++;
        EXPECT_OK(weir_queue_flush(fresh));
        weir_queue_destroy(&fresh);
        EXPECT_NULL(fresh);
    }
}
