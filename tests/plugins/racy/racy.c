// racy broken|mended [FILE | WORD]: a program whose second queue does not wait for the first, as it was or mended.
// It prints its result, writes it to FILE as well, and ends with 1 if it is wrong. Of the words, "hang" waits for a
// time, "kill" ends by a signal, "wait" waits for input, "clock" prints something else at each run, and "quiet"
// ends with 0.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

enum {
    WORDS = 8, // of the result: 1, 2, 3 … when it is right
    BYTES = WORDS * sizeof(uint32_t)
};

static weir_buffer *make_buffer(weir_device *device, weir_queue *queue)
{
    static const uint32_t zeros[WORDS];
    weir_buffer *buffer;
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = BYTES), &buffer));
    WEIR_CHECK(weir_upload(queue, buffer, 0, zeros, BYTES));
    return buffer;
}

static void run(bool broken, uint32_t words[WORDS])
{
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *one, *two;
    struct weir_event filled;
    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "copy"), &one));
    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "compute"), &two));
    weir_buffer *a = make_buffer(device, one), *b = make_buffer(device, one);
    for (uint32_t i = 0; i < WORDS; i++) {
        const uint32_t value = i + 1;
        WEIR_CHECK(weir_queue_fill(one, a, i * sizeof value, sizeof value, &value, sizeof value));
    }
    if (!broken) {
        WEIR_CHECK(weir_queue_record(one, &filled));
        WEIR_CHECK(weir_queue_wait(two, filled));
    }
    WEIR_CHECK(weir_queue_copy(two, b, 0, a, 0, BYTES));
    WEIR_CHECK(weir_download(two, words, b, 0, BYTES));
    weir_buffer_destroy(&a), weir_buffer_destroy(&b);
    weir_queue_destroy(&one), weir_queue_destroy(&two);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
}

static bool print(FILE *file, const uint32_t words[WORDS])
{
    bool right = true;
    for (uint32_t i = 0; i < WORDS; i++) {
        fprintf(file, "%u\n", (unsigned)words[i]);
        right = right && words[i] == i + 1;
    }
    return right;
}

static void misbehave(const char *how, bool right)
{
    if (strcmp(how, "hang") == 0 && !right)
        sleep(60);
    if (strcmp(how, "kill") == 0 && !right)
        raise(SIGKILL);
    if (strcmp(how, "wait") == 0)
        (void)getchar();
    if (strcmp(how, "clock") == 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        printf("%ld.%09ld\n", (long)now.tv_sec, now.tv_nsec);
    }
}

int main(int argc, char **argv)
{
    const char *last = argc > 2 ? argv[2] : "";
    uint32_t words[WORDS] = {0};
    if (argc < 2)
        return 2;
    run(strcmp(argv[1], "broken") == 0, words);
    const bool right = print(stdout, words);
    misbehave(last, right);
    if (strchr(last, '.')) {
        FILE *file = fopen(last, "w");
        if (!file)
            return 4;
        print(file, words);
        fclose(file);
    }
    return strcmp(last, "quiet") != 0 && !right;
}
