// The process writes a line with the time, which is the system's, after each step.
#include "tests/bench/peers/start_job.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char child_option[] = "--first";

struct stamps {
    // After main() began, after each step, and after everything was freed.
    double at[START_STEPS_MAX + 2];
    size_t count;
    double ended;
};

// The process that starts.

static bool check(const struct start_job *job)
{
    for (size_t i = 0; i < START_NUMBERS; i++)
        if (job->results[i] != 2 * job->numbers[i])
            return peer_fail("number %zu is %g, not %g", i, (double)job->results[i],
                             2 * (double)job->numbers[i]);
    return true;
}

static int run_child(struct start_job *job)
{
    printf("%.6f\n", peer_now_ms());
    bool fine = true;
    for (size_t i = 0; i < START_NUMBERS; i++)
        job->numbers[i] = (float)i;
    for (size_t i = 0; fine && i < job->step_count; i++) {
        fine = job->steps[i].run(job->user) && (i + 1 < job->step_count || check(job));
        if (fine)
            printf("%.6f\n", peer_now_ms());
    }
    job->end(job->user);
    printf("%.6f\n", peer_now_ms());
    return fine ? 0 : 1;
}

// The one that measures.

static pid_t spawn(int *out_read)
{
    char self[] = "/proc/self/exe";
    char option[sizeof child_option];
    char *arguments[] = {self, option, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t child = -1;
    memcpy(option, child_option, sizeof option);
    if (pipe(ends) != 0)
        return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    if (posix_spawn(&child, self, &actions, NULL, arguments, environ) != 0)
        child = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *out_read = ends[0];
    if (child < 0)
        close(ends[0]);
    return child;
}

// Reads until the process closes its output. Lines that are no times are messages of peer_fail().
static bool read_stamps(const struct start_job *job, int fd, struct stamps *stamps)
{
    char line[2048];
    char said[sizeof line] = "it said nothing";
    FILE *file = fdopen(fd, "r");
    while (file && fgets(line, sizeof line, file)) {
        char *end;
        const double at = strtod(line, &end);
        if (stamps->count < job->step_count + 2 && end != line)
            stamps->at[stamps->count++] = at;
        else
            memcpy(said, line, sizeof said);
    }
    if (file)
        fclose(file);
    else
        close(fd);
    return stamps->count == job->step_count + 2 || peer_fail("a process failed: %s", said);
}

static bool measure_child(const struct start_job *job, struct stamps *stamps)
{
    int fd;
    int status = 0;
    const pid_t child = spawn(&fd);
    if (child < 0)
        return peer_fail("a process cannot be made: %s", strerror(errno));
    const bool fine = read_stamps(job, fd, stamps);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    stamps->ended = peer_now_ms();
    if (fine && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        return peer_fail("a process ended with status %d", status);
    return fine;
}

// Opens and closes everything once here, so that a machine that cannot run it is told.
static bool open_start(void *user)
{
    struct start_job *job = user;
    bool fine = true;
    for (size_t i = 0; i < START_NUMBERS; i++)
        job->numbers[i] = (float)i;
    for (size_t i = 0; fine && i < job->step_count; i++)
        fine = job->steps[i].run(job->user);
    job->end(job->user);
    if (!fine || !check(job))
        return false;
    peer_checked(START_NUMBERS);
    return true;
}

static bool round_start(void *user)
{
    const struct start_job *job = user;
    struct stamps stamps = {.count = 0};
    const double began = peer_now_ms();
    if (!measure_child(job, &stamps))
        return false;
    peer_value("first_result", stamps.at[job->step_count] - began);
    peer_value("main", stamps.at[0] - began);
    for (size_t i = 0; i < job->step_count; i++)
        peer_value(job->steps[i].name, stamps.at[i + 1] - stamps.at[i]);
    peer_value("close", stamps.at[job->step_count + 1] - stamps.at[job->step_count]);
    peer_value("exit", stamps.ended - stamps.at[job->step_count + 1]);
    peer_value("ended", stamps.ended - began);
    return true;
}

static void close_start(void *user)
{
    (void)user;
}

int start_main(struct start_job *job, int argc, char **argv)
{
    const struct peer peer = {
        .name = job->name,
        .about = job->about,
        .open = open_start,
        .round = round_start,
        .close = close_start,
    };
    if (argc == 2 && strcmp(argv[1], child_option) == 0)
        return run_child(job);
    return peer_main(&peer, job, argc, argv);
}
