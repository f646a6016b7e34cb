// Starting and joining, without thread-local storage, which modules have little of.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for syscall()
#define _GNU_SOURCE
#include "base/thread.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/wait.h"

enum {
    NAME_SIZE = 16 // of a thread, for the kernel
};

// With its number: threads that it creates, in code of the program, have the name of their creator.
static void name_thread(char name[NAME_SIZE], long number)
{
    snprintf(name, NAME_SIZE, "weir/%ld", number);
}

static void name_own(void)
{
    char name[NAME_SIZE];
    name_thread(name, syscall(SYS_gettid));
    prctl(PR_SET_NAME, name);
}

void weir_thread_hold_signals(sigset_t *out_before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&held, faults[i]);
    pthread_sigmask(SIG_BLOCK, &held, out_before);
}

void weir_thread_release_signals(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static bool read_line(const char *task, const char *file, char *line, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/%s", task, file);
    FILE *stream = fopen(path, "re");
    const bool read = stream && fgets(line, (int)size, stream);
    if (stream)
        fclose(stream);
    return read;
}

static bool has_main_ended(void)
{
    char number[24];
    char line[256];
    snprintf(number, sizeof number, "%ld", (long)getpid());
    const char *end = read_line(number, "stat", line, sizeof line) ? strrchr(line, ')') : NULL;
    return end && strncmp(end, ") Z", 3) == 0;
}

static bool is_ours(const char *task)
{
    char line[NAME_SIZE + 1];
    char name[NAME_SIZE];
    name_thread(name, strtol(task, NULL, 10));
    if (!read_line(task, "comm", line, sizeof line))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return strcmp(line, name) == 0;
}

bool weir_thread_is_all_that_is_left(void)
{
    bool all = true;
    DIR *tasks = has_main_ended() ? opendir("/proc/self/task") : NULL;
    if (!tasks)
        return false;
    for (const struct dirent *entry; all && (entry = readdir(tasks));)
        all = entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == (long)getpid() ||
              is_ours(entry->d_name);
    closedir(tasks);
    return all;
}

static void *begin(void *argument)
{
    struct weir_thread *thread = argument;
    atomic_store(&thread->self, pthread_self());
    name_own();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    thread->run(thread->argument);
    return NULL;
}

int weir_thread_start(struct weir_thread *thread, void (*run)(void *argument), void *argument)
{
    sigset_t all;
    sigset_t before;

    thread->run = run;
    thread->argument = argument;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread->id, NULL, begin, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void weir_thread_join(struct weir_thread *thread)
{
    const int before = weir_cancel_disable();
    pthread_join(thread->id, NULL);
    atomic_store(&thread->self, 0);
    weir_cancel_restore(before);
}

bool weir_thread_is_current(const struct weir_thread *thread)
{
    return atomic_load(&thread->self) == pthread_self();
}
