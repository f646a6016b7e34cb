// The threads of a driver take no signal of the program's: its handlers run on its own threads.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tests/support/own.h"
#include "tests/support/test.h"

static bool blocks(const char *task, int number)
{
    char path[300];
    char line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "SigBlk:", 7) == 0)
            mask = strtoull(line + 7, NULL, 16);
    if (file)
        fclose(file);
    return mask >> (number - 1) & 1;
}

// How many threads this process has, and how many of them take the signal.
static size_t count_threads(int number, size_t *out_takers)
{
    size_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    *out_takers = 0;
    for (const struct dirent *entry; tasks && (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        *out_takers += !blocks(entry->d_name, number);
    }
    if (tasks)
        closedir(tasks);
    return count;
}

static weir_status do_nothing(void *user)
{
    return WEIR_OK;
}

WEIR_TEST(Signals, AreForThreadsOfTheProgram)
{
    own_runtime runtime = NULL;
    own_device device = NULL;
    own_queue queue = NULL;
    own_buffer buffer = NULL;
    const unsigned char value = 3;
    size_t takers;
    sigset_t before;
    sigset_t after;

    sigprocmask(SIG_BLOCK, NULL, &before);
    ASSERT_OK(weir_open(NULL, &runtime));
    ASSERT_OK(weir_device_open(runtime, NULL, &device));
    ASSERT_OK(weir_queue_create(device, NULL, &queue));
    ASSERT_OK(weir_buffer_create(
        device, WEIR_PARAMS(weir_buffer, .size = 64, .placement = WEIR_PLACE_DEVICE), &buffer));
    EXPECT_OK(weir_queue_fill(queue, buffer, 0, 64, &value, 1));
    EXPECT_OK(weir_queue_host_call(queue, do_nothing, NULL));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_UINT_GT(count_threads(SIGTERM, &takers), 1);
    EXPECT_UINT_EQ(takers, 1);
    count_threads(SIGALRM, &takers);
    EXPECT_UINT_EQ(takers, 1);
    sigprocmask(SIG_BLOCK, NULL, &after);
    for (int number = 1; number < 32; number++)
        EXPECT_INT_EQ(sigismember(&after, number), sigismember(&before, number));
}
