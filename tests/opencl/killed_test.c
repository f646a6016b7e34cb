// A process that is killed while it works: the next one can use the device, and
// the cache on disk has no incomplete entry.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "base/clock.h"
#include "base/disk_cache.h"
#include "kernels/conformance/conformance.h"
#include "tests/support/test.h"

#define ITEMS 65536u
#define ENTRIES 8
#define ENTRY_BYTES ((size_t)2 << 20)

static pid_t start_child(void (*body)(void))
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        body();
        exit(weir_test_has_failed());
    }
    return child;
}

// Killed in the middle of a run.

struct world {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queues[2];
    weir_buffer *device_buffers[2]; // of each queue
    weir_buffer *host_buffers[2];
    weir_program *program;
    weir_kernel *iota;
};

static int busy_pipe[2];

static void open_world(struct world *w)
{
    struct weir_buffer_params buffer_params = {.struct_size = sizeof buffer_params,
                                               .size = ITEMS * sizeof(uint32_t)};
    memset(w, 0, sizeof *w);
    ASSERT_OK(weir_open(WEIR_PARAMS(weir_open, .config_path = "", .backend = "opencl",
                                    .module_path = weir_test_runfile("backends/opencl")),
                        &w->runtime));
    ASSERT_OK(weir_device_open(w->runtime, NULL, &w->device));
    for (size_t i = 0; i < 2; i++) {
        ASSERT_OK(weir_queue_create(w->device, NULL, &w->queues[i]));
        buffer_params.placement = WEIR_PLACE_DEVICE;
        ASSERT_OK(weir_buffer_create(w->device, &buffer_params, &w->device_buffers[i]));
        buffer_params.placement = WEIR_PLACE_HOST;
        ASSERT_OK(weir_buffer_create(w->device, &buffer_params, &w->host_buffers[i]));
    }
    ASSERT_OK(weir_program_create(w->device,
                                  WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                  &w->program));
    ASSERT_OK(weir_kernel_create(w->program, "iota", &w->iota));
}

static void close_world(struct world *w)
{
    weir_kernel_destroy(&w->iota);
    weir_program_destroy(&w->program);
    for (size_t i = 0; i < 2; i++) {
        weir_buffer_destroy(&w->device_buffers[i]);
        weir_buffer_destroy(&w->host_buffers[i]);
        weir_queue_destroy(&w->queues[i]);
    }
    EXPECT_OK(weir_device_close(&w->device));
    EXPECT_OK(weir_close(&w->runtime));
}

static weir_status launch(struct world *w, size_t queue, uint32_t first)
{
    return weir_queue_launch(w->queues[queue], w->iota, weir_dim(ITEMS / 64, 1, 1),
                             weir_dim(64, 1, 1),
                             weir_out(w->device_buffers[queue], 0, ITEMS * sizeof(uint32_t)), first,
                             ITEMS);
}

// Until it is killed.
static void be_busy(void)
{
    struct world w;
    struct weir_event events[2];
    const size_t size = ITEMS * sizeof(uint32_t);
    open_world(&w);
    for (uint64_t turn = 0; !weir_test_has_failed(); turn++) {
        const size_t i = turn % 2;
        EXPECT_INT_EQ(launch(&w, i, 1), WEIR_OK);
        EXPECT_OK(weir_queue_copy(w.queues[i], w.host_buffers[i], 0, w.device_buffers[i], 0, size));
        EXPECT_OK(weir_queue_record(w.queues[i], &events[i]));
        if (turn == 20)
            EXPECT_INT_EQ(write(busy_pipe[1], "b", 1), 1);
        if (turn > 8)
            EXPECT_OK(weir_event_sync(events[(turn + 1) % 2], WEIR_FOREVER));
    }
}

static void expect_right_results(void)
{
    static uint32_t result[ITEMS];
    struct world w;
    uint32_t wrong = 0;
    open_world(&w);
    EXPECT_INT_EQ(launch(&w, 0, 7), WEIR_OK);
    EXPECT_OK(weir_download(w.queues[0], result, w.device_buffers[0], 0, sizeof result));
    for (uint32_t i = 0; i < ITEMS; i++)
        wrong += result[i] != 7 + i;
    EXPECT_UINT_EQ(wrong, 0);
    close_world(&w);
}

WEIR_TEST(Killed, InMidRun)
{
    char byte = 0;
    int status = 0;
    ASSERT_INT_EQ(pipe(busy_pipe), 0);
    const pid_t busy = start_child(be_busy);
    ASSERT_INT_GT(busy, 0);
    close(busy_pipe[1]);
    EXPECT_INT_EQ(read(busy_pipe[0], &byte, 1), 1);
    weir_clock_sleep_ns(20000000);
    EXPECT_INT_EQ(kill(busy, SIGKILL), 0);
    ASSERT_INT_EQ(waitpid(busy, &status, 0), busy);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(busy_pipe[0]);

    const pid_t next = start_child(expect_right_results);
    ASSERT_INT_EQ(waitpid(next, &status, 0), next);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Killed in the middle of a write.

static const char *cache_folder;

static weir_disk_cache *open_cache(void)
{
    char message[512];
    weir_disk_cache *cache =
        weir_disk_cache_create(cache_folder, "killed", (uint64_t)1 << 30, message, sizeof message);
    if (!cache)
        weir_test_fail(__FILE__, __LINE__, "%s", message);
    return cache;
}

// An entry consists of copies of one byte, which is its version.
static void write_for_ever(void)
{
    char message[512];
    weir_disk_cache *cache = open_cache();
    unsigned char *data = malloc(ENTRY_BYTES);
    ASSERT_NOT_NULL(cache);
    ASSERT_NOT_NULL(data);
    for (uint32_t turn = 0;; turn++) {
        const uint32_t key = turn % ENTRIES;
        memset(data, (int)(turn & 0xff), ENTRY_BYTES);
        if (!weir_disk_cache_write(cache, &key, sizeof key, data, ENTRY_BYTES, message,
                                   sizeof message))
            WEIR_FAIL("%s", message);
    }
}

// Returns the number of entries, and checks that each is complete.
static size_t expect_whole_entries(const weir_disk_cache *cache)
{
    size_t found = 0;
    for (uint32_t key = 0; key < ENTRIES; key++) {
        void *data;
        size_t size;
        if (!weir_disk_cache_read(cache, &key, sizeof key, &data, &size))
            continue;
        const unsigned char *bytes = data;
        found++;
        EXPECT_UINT_EQ(size, ENTRY_BYTES);
        EXPECT_TRUE(memcmp(bytes, bytes + 1, size - 1) == 0);
        free(data);
    }
    return found;
}

// Also removes them, so that each is counted once.
static size_t count_half_written(const weir_disk_cache *cache)
{
    size_t count = 0;
    char path[1024];
    DIR *folder = opendir(weir_disk_cache_folder(cache));
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry;
         entry = readdir(folder)) {
        if (!strstr(entry->d_name, ".tmp"))
            continue;
        snprintf(path, sizeof path, "%s/%s", weir_disk_cache_folder(cache), entry->d_name);
        count += unlink(path) == 0;
    }
    if (folder)
        closedir(folder);
    return count;
}

WEIR_TEST(Killed, InMidWrite)
{
    size_t half_written = 0;
    size_t found = 0;
    int status = 0;
    cache_folder = weir_test_temp_dir();
    weir_disk_cache *cache = open_cache();
    ASSERT_NOT_NULL(cache);
    // Repeated until it succeeds, for busy machines.
    for (unsigned i = 0;
         (i < 60 || found == 0 || half_written == 0) && i < 2000 && !weir_test_has_failed(); i++) {
        const pid_t writer = start_child(write_for_ever);
        ASSERT_INT_GT(writer, 0);
        weir_clock_sleep_ns(5000000 + 777777 * (uint64_t)(i % 120));
        kill(writer, SIGKILL);
        ASSERT_INT_EQ(waitpid(writer, &status, 0), writer);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        found = expect_whole_entries(cache);
        half_written += count_half_written(cache);
    }
    EXPECT_UINT_GT(found, 0);
    EXPECT_UINT_GT(half_written, 0); // so some were killed while they wrote
    weir_disk_cache_destroy(&cache);
}
