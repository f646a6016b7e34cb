// A process that is killed while it works: the next one can use the device, and
// the cache on disk has no incomplete entry.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/disk_cache.h"
#include "tests/opencl/rig.h"

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

static int busy_pipe[2];

// Until it is killed.
static void be_busy(void)
{
    struct opencl_rig rig;
    struct weir_event events[2];
    opencl_rig_open(&rig, "");
    weir_buffer *const buffers[] = {rig.buffer, rig.other};
    for (uint32_t turn = 0; !weir_test_has_failed(); turn++) {
        const size_t i = turn % 2;
        opencl_rig_launch(&rig, rig.queues[i], buffers[i], turn);
        EXPECT_OK(weir_queue_copy(rig.queues[i], buffers[i], OPENCL_RIG_BYTES / 2, buffers[i], 0,
                                  OPENCL_RIG_BYTES / 2));
        events[i] = opencl_rig_record(rig.queues[i]);
        if (turn == 20)
            EXPECT_INT_EQ(write(busy_pipe[1], "b", 1), 1);
        if (turn > 8)
            EXPECT_OK(weir_event_sync(events[(turn + 1) % 2], WEIR_FOREVER));
    }
}

static void expect_right_results(void)
{
    struct opencl_rig rig;
    opencl_rig_open(&rig, "");
    opencl_rig_expect_works(&rig, rig.queues[0], 7);
    opencl_rig_close(&rig);
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
