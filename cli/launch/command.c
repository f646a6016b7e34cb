// weir launch -n N PROGRAM...: the program as N ranks on this machine, with torchrun's variables.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/launch/launch.h"

static const char about[] =
    "Runs PROGRAM as N ranks on this machine, with the variables that torchrun sets: RANK,\n"
    "WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Each line that they\n"
    "print has its rank before it. When one fails the others are ended, and the exit status is\n"
    "that of the first one that failed. Options come before PROGRAM; what follows it are its\n"
    "arguments. It gets no input.\n"
    "\n"
    "  weir launch -n 4 ./train --steps 100";

static bool parse(struct launch_options *out, int argc, char **argv, int *out_exit)
{
    const struct cli_option options[] = {
        {"n", "N", "how many ranks, 1 to 1024", CLI_COUNT, &out->count, 1, RANK_LIMIT},
        {"grace", "SECONDS", "how long ranks have to end, from SIGTERM to SIGKILL;\nwithout it, 5",
         CLI_COUNT, &out->grace_s, 0, 86400},
        {"json", NULL, "print a summary as JSON; what the ranks print goes to\nstandard error",
         CLI_FLAG, &out->json, 0, 0},
        {"no-prefix", NULL, "print what the ranks print as it is", CLI_FLAG, &out->no_prefix, 0, 0},
        {"port", "PORT", "MASTER_PORT; without it, one that is free", CLI_COUNT, &out->port, 1,
         65535},
    };
    const struct cli_usage usage =
        CLI_FORM_PROGRAM("weir launch", "PROGRAM [ARGUMENT]...", about, "weir-launch(1)", options);
    return cli_program_parse(&usage, argc, argv, &out->command, out_exit);
}

// Where the ranks meet, unless the user has named a place: a socket in the folder that the transport `local`
// keeps for its user. It looks at the folder's owner itself.
static void name_place(char *text, size_t size)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/tmp/weir-%lu", (unsigned long)geteuid());
    (void)mkdir(folder, 0700);
    snprintf(text, size, "unix:%s/launch-%ld-%" PRIx64, folder, (long)getpid(),
             weir_clock_now_ns());
}

// For programs that meet by torch's means. Rank 0 listens at it, so it is free again when this returns.
static bool find_port(uint64_t wanted, char *text, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    uint64_t port = wanted;
    if (!wanted) {
        const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const bool ok = listener >= 0 && bind(listener, (struct sockaddr *)&address, length) == 0 &&
                        getsockname(listener, (struct sockaddr *)&address, &length) == 0;
        const int error = errno;
        if (listener >= 0)
            close(listener);
        if (!ok) {
            cli_error("no free port at 127.0.0.1 was found: %s; name one with --port",
                      strerror(error));
            return false;
        }
        port = ntohs(address.sin_port);
    }
    snprintf(text, size, "%" PRIu64, port);
    return true;
}

// What the ranks need in this process.

static void release(struct launch *launch)
{
    free(launch->ranks);
    free(launch->streams);
    free(launch->polled);
    free(launch->output);
    free(launch->messages);
    if (launch->input >= 0)
        close(launch->input);
}

static bool allocate(struct launch *launch)
{
    const size_t count = launch->options->count;
    const bool prefix = !launch->options->no_prefix;
    launch->ranks = calloc(count, sizeof *launch->ranks);
    launch->streams = prefix ? calloc(2 * count, sizeof *launch->streams) : NULL;
    launch->polled = calloc(2 + 2 * count, sizeof *launch->polled);
    launch->output = calloc(1, sizeof *launch->output);
    launch->messages = calloc(1, sizeof *launch->messages);
    if (!launch->ranks || (prefix && !launch->streams) || !launch->polled || !launch->output ||
        !launch->messages) {
        cli_error("no memory for %zu ranks; start fewer", count);
        return false;
    }
    launch->output->descriptor = STDOUT_FILENO;
    launch->messages->descriptor = STDERR_FILENO;
    return true;
}

static bool open_input(struct launch *launch)
{
    // Not one of the standard ones, if this process has been given fewer.
    do
        launch->input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (launch->input >= 0 && launch->input <= STDERR_FILENO);
    if (launch->input < 0)
        cli_error("/dev/null, the ranks' input, cannot be opened: %s", strerror(errno));
    return launch->input >= 0;
}

static int run(const struct launch_options *options)
{
    struct launch launch = {.options = options, .input = -1, .guard = -1, .first_failed = -1};
    const uint64_t began_ns = weir_clock_now_ns();
    int code = CLI_SETUP;
    if (allocate(&launch) && open_input(&launch) &&
        find_port(options->port, launch.port, sizeof launch.port)) {
        name_place(launch.place, sizeof launch.place);
        watch(&launch);
        code = tell(&launch, weir_clock_now_ns() - began_ns);
        (void)unlink(launch.place + strlen("unix:")); // left if rank 0 was killed there
    }
    release(&launch);
    return code;
}

static int launch_main(int argc, char **argv)
{
    struct launch_options options = {.grace_s = 5};
    int code;
    if (!parse(&options, argc, argv, &code))
        return code;
    if (options.count)
        return run(&options);
    cli_error("weir launch needs a number of ranks: weir launch -n 4 %s", options.command[0]);
    return CLI_USAGE;
}

const struct cli_command cli_launch = {
    .name = "launch",
    .summary = "run a program as several ranks on this machine",
    .main = launch_main,
};
