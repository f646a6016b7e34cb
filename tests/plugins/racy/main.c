// racy PROGRAM broken|mended [FILE]: runs one of the programs, prints its result, writes it to
// FILE as well, and ends with 1 if it is wrong. Of further words for the tests of the command,
// "hang" waits for a time, "kill" ends by a signal, "wait" waits for input, and "clock" prints
// something else at each run.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/plugins/racy/racy.h"

static const struct racy_program *find(const char *name)
{
    for (size_t i = 0; i < racy_program_count; i++)
        if (strcmp(racy_programs[i].name, name) == 0)
            return &racy_programs[i];
    fprintf(stderr, "racy: there is no program %s\n", name);
    exit(2);
}

static void print(FILE *file, const uint32_t words[RACY_WORDS])
{
    for (size_t i = 0; i < RACY_WORDS; i++)
        fprintf(file, "%u\n", (unsigned)words[i]);
}

static int run(const struct racy_program *program, bool broken, uint32_t words[RACY_WORDS])
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_status status = weir_open(NULL, &runtime);
    if (status == WEIR_OK)
        status = weir_device_open(runtime, NULL, &device);
    if (status == WEIR_OK)
        status = program->run(device, broken, words);
    if (status < 0)
        fprintf(stderr, "racy: %s\n", weir_last_error_text());
    WEIR_IGNORE(weir_device_close(&device));
    WEIR_IGNORE(weir_close(&runtime));
    return status < 0 ? 3 : !racy_is_right(words);
}

static void misbehave(const char *how, int code)
{
    if (strcmp(how, "hang") == 0 && code)
        sleep(60);
    if (strcmp(how, "kill") == 0 && code)
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
    uint32_t words[RACY_WORDS] = {0};
    if (argc < 3) {
        fputs("usage: racy PROGRAM broken|mended [FILE | hang | kill | wait | clock | quiet]\n",
              stderr);
        return 2;
    }
    const int code = run(find(argv[1]), strcmp(argv[2], "broken") == 0, words);
    const char *last = argc > 3 ? argv[3] : "";
    print(stdout, words);
    misbehave(last, code);
    if (strchr(last, '.')) {
        FILE *file = fopen(last, "w");
        if (!file)
            return 4;
        print(file, words);
        fclose(file);
    }
    return strcmp(last, "quiet") == 0 ? 0 : code;
}
