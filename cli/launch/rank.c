// One rank. It leads a process group, so that what it starts is ended with it.
#define _GNU_SOURCE // pipe2

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launch/launch.h"

enum {
    READ,
    WRITE,
    OUTPUT = 0,
    MESSAGES,
    REPORT, // in which a process that cannot become the program tells why
    PIPE_COUNT
};

static void close_pipes(int pipes[PIPE_COUNT][2])
{
    for (size_t i = 0; i < PIPE_COUNT; i++)
        for (size_t end = READ; end <= WRITE; end++)
            if (pipes[i][end] >= 0)
                close(pipes[i][end]);
}

static bool open_pipes(const struct launch *launch, int pipes[PIPE_COUNT][2])
{
    for (size_t i = 0; i < PIPE_COUNT; i++)
        pipes[i][READ] = pipes[i][WRITE] = -1;
    for (size_t i = launch->streams ? OUTPUT : REPORT; i < PIPE_COUNT; i++)
        if (pipe2(pipes[i], O_CLOEXEC) != 0)
            return false;
    return true;
}

// In the new process.
static void become(const struct launch *launch, const struct cli_program *program, pid_t parent,
                   int report)
{
    setpgid(0, 0);
    signals_restore(launch);
    prctl(PR_SET_PDEATHSIG, SIGKILL); // what it starts is the guard's
    if (getppid() != parent)
        _exit(CLI_FAILED);
    const int error = cli_program_become(program);
    const ssize_t written = write(report, &error, sizeof error);
    _exit(written == sizeof error ? CLI_NOT_FOUND : CLI_FAILED);
}

static pid_t create(const struct launch *launch, int pipes[PIPE_COUNT][2],
                    const struct cli_program *program)
{
    const pid_t parent = getpid();
    fflush(stdout);
    const pid_t process = fork();
    if (process == 0)
        become(launch, program, parent, pipes[REPORT][WRITE]);
    return process;
}

// Returns 0, or the number of the error; `*out_missing` if it is the program that cannot be run.
static int start(struct launch *launch, int pipes[PIPE_COUNT][2], pid_t *out_process,
                 bool *out_missing)
{
    char rank[24];
    char count[24];
    snprintf(rank, sizeof rank, "%zu", launch->started);
    snprintf(count, sizeof count, "%" PRIu64, launch->options->count);
    const struct cli_program_variable variables[] = {
        {"RANK", rank},
        {"LOCAL_RANK", rank},
        {"WORLD_SIZE", count},
        {"LOCAL_WORLD_SIZE", count},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", launch->port},
        // What this process has been given is of another job, and would come before RANK.
        {"WEIR_COMM_RANK", NULL},
        {"WEIR_COMM_COUNT", NULL},
        {"WEIR_COMM_RENDEZVOUS", launch->place}, // the last, which a user's own goes before
    };
    const size_t variable_count = sizeof variables / sizeof *variables;
    const bool open = launch->streams;
    const struct cli_program program = {
        .command = launch->options->command,
        .variables = variables,
        .variable_count = variable_count - (getenv("WEIR_COMM_RENDEZVOUS") != NULL),
        .input = launch->input,
        .output = open                    ? pipes[OUTPUT][WRITE]
                  : launch->options->json ? STDERR_FILENO
                                          : 0,
        .messages = open ? pipes[MESSAGES][WRITE] : 0,
    };
    int error = 0;
    *out_process = create(launch, pipes, &program);
    if (*out_process < 0)
        return errno;
    close(pipes[REPORT][WRITE]);
    pipes[REPORT][WRITE] = -1;
    *out_missing = read(pipes[REPORT][READ], &error, sizeof error) == sizeof error;
    if (*out_missing)
        waitpid(*out_process, NULL, 0);
    return error;
}

static void open_streams(struct launch *launch, int pipes[PIPE_COUNT][2])
{
    const uint64_t last = launch->options->count - 1;
    const int width = last > 999 ? 4 : last > 99 ? 3 : last > 9 ? 2 : 1;
    for (size_t i = OUTPUT; launch->streams && i <= MESSAGES; i++) {
        struct stream *stream = &launch->streams[2 * launch->started + i];
        stream->from = pipes[i][READ];
        stream->to = i == OUTPUT && !launch->options->json ? launch->output : launch->messages;
        snprintf(stream->prefix, sizeof stream->prefix, "[%*zu] ", width, launch->started);
        pipes[i][READ] = -1;
    }
}

static void tell_failure(struct launch *launch, int error, bool missing)
{
    const struct cli_program program = {.command = launch->options->command};
    launch->failure = CLI_SETUP;
    if (missing)
        launch->failure = cli_program_tell_missing(&program, error);
    else
        cli_error("rank %zu of %" PRIu64
                  " cannot be started: %s; start fewer, or raise the limit%s",
                  launch->started, launch->options->count, strerror(error),
                  error == EMFILE ? " on open files (ulimit -n)" : " on processes (ulimit -u)");
}

bool rank_start(struct launch *launch)
{
    int pipes[PIPE_COUNT][2];
    pid_t process = -1;
    bool missing = false;
    const int error = open_pipes(launch, pipes) ? start(launch, pipes, &process, &missing) : errno;
    if (error == 0) {
        open_streams(launch, pipes);
        launch->ranks[launch->started++] = (struct rank){.process = process};
        guard_add(launch, process);
        launch->running++;
    } else {
        tell_failure(launch, error, missing);
    }
    close_pipes(pipes);
    return error == 0;
}

void rank_signal_all(const struct launch *launch, int number)
{
    for (size_t i = 0; i < launch->started; i++)
        if (!launch->ranks[i].ended)
            kill(-launch->ranks[i].process, number);
}

bool rank_note_end(struct launch *launch, size_t index)
{
    struct rank *rank = &launch->ranks[index];
    siginfo_t end = {.si_pid = 0};
    if (rank->ended || waitid(P_PID, (id_t)rank->process, &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        end.si_pid == 0)
        return false;
    rank->ended = true;
    rank->signal = end.si_code == CLD_EXITED ? 0 : end.si_status;
    rank->code = rank->signal ? CLI_SIGNALLED + rank->signal : end.si_status;
    launch->running--;
    return true;
}

void rank_kill_left(const struct launch *launch)
{
    for (size_t i = 0; i < launch->started; i++)
        kill(-launch->ranks[i].process, SIGKILL);
}

void rank_release_all(const struct launch *launch)
{
    for (size_t i = 0; i < launch->started; i++)
        waitpid(launch->ranks[i].process, NULL, 0);
}
