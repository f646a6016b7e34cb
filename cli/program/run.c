// The terminal sends its signals to both processes; this one waits for the program.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/program/program.h"

enum {
    SIGNAL_COUNT = 4
};

static const int numbers[SIGNAL_COUNT] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

static volatile sig_atomic_t child;
static volatile sig_atomic_t received;

static void note(int number)
{
    received = number;
}

static void pass_on(int number)
{
    received = number;
    if (child > 0)
        kill((pid_t)child, number);
}

int cli_program_signal(void)
{
    return received;
}

static void take_signals(struct sigaction old[SIGNAL_COUNT])
{
    const struct sigaction noted = {.sa_handler = note};
    const struct sigaction passed = {.sa_handler = pass_on};
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaction(numbers[i], i < 2 ? &noted : &passed, &old[i]);
}

static void give_back_signals(const struct sigaction old[SIGNAL_COUNT])
{
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaction(numbers[i], &old[i], NULL);
}

int cli_program_become(const struct cli_program *program)
{
    if (program->input)
        dup2(program->input, STDIN_FILENO);
    if (program->output)
        dup2(program->output, STDOUT_FILENO);
    if (program->messages)
        dup2(program->messages, STDERR_FILENO);
    for (size_t i = 0; i < program->variable_count; i++)
        setenv(program->variables[i].name, program->variables[i].value, 1);
    signal(SIGXFSZ, SIG_DFL);
    execvp(program->command[0], program->command);
    return errno;
}

int cli_program_tell_missing(const struct cli_program *program, int error)
{
    cli_error("%s cannot be run: %s", program->command[0], strerror(error));
    return error == ENOENT ? CLI_NOT_FOUND : 126;
}

// In the new process. The sentence goes where this process's messages go.
static void become(const struct cli_program *program)
{
    const int messages = dup(STDERR_FILENO);
    fcntl(messages, F_SETFD, FD_CLOEXEC);
    const int error = cli_program_become(program);
    dup2(messages, STDERR_FILENO);
    _exit(cli_program_tell_missing(program, error));
}

static int wait_until_ended(pid_t process)
{
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static int wait_within(pid_t process, uint64_t limit_ms, bool *out_late)
{
    const uint64_t start = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    int status = 0;
    for (;;) {
        const pid_t ended = waitpid(process, &status, WNOHANG);
        if (ended == process || (ended < 0 && errno != EINTR))
            return status;
        if (!weir_clock_pause(start, limit_ms * 1000000, &pause_ns))
            break;
    }
    *out_late = true;
    kill(process, SIGKILL);
    return wait_until_ended(process);
}

static void finish(const struct cli_program *program, struct cli_program_end *end)
{
    const int status = program->limit_ms ? wait_within(end->process, program->limit_ms, &end->late)
                                         : wait_until_ended(end->process);
    end->code = WIFSIGNALED(status) ? CLI_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

bool cli_program_run(const struct cli_program *program, struct cli_program_end *out_end)
{
    struct sigaction old[SIGNAL_COUNT];
    *out_end = (struct cli_program_end){.code = CLI_SETUP};
    take_signals(old);
    fflush(stdout);
    const pid_t process = fork();
    const int error = errno;
    if (process == 0) {
        give_back_signals(old);
        become(program);
    }
    out_end->process = child = process;
    if (process > 0)
        finish(program, out_end);
    child = 0;
    give_back_signals(old);
    if (process < 0)
        cli_error("a process for %s cannot be created: %s", program->command[0], strerror(error));
    return process > 0;
}
