// weir launch -n N PROGRAM...: the program as N ranks on this machine, with torchrun's variables.
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/common/output.h"
#include "cli/common/own.h"
#include "cli/launch/launch.h"

// One sentence says why the ranks ended, after all that they printed.

static size_t count_stopped(const struct launch *launch, bool killed)
{
    size_t count = 0;
    for (size_t i = 0; i < launch->started; i++)
        count += killed ? launch->ranks[i].killed : launch->ranks[i].stopped;
    return count;
}

// "3 other ranks got SIGTERM, of which 1 was killed after 5 s", or "".
static const char *show_others(const struct launch *launch, const char *what, const char *signal)
{
    const size_t stopped = count_stopped(launch, false);
    const size_t killed = count_stopped(launch, true);
    const char *grace =
        launch->hurried ? "" : cli_text(" after %" PRIu64 " s", launch->options->grace_s);
    const char *end =
        killed ? cli_text(", of which %zu %s killed%s", killed, killed == 1 ? "was" : "were", grace)
               : "";
    return stopped
               ? cli_text("%zu %s%s got %s%s", stopped, what, stopped == 1 ? "" : "s", signal, end)
               : "";
}

static void tell_end(const struct launch *launch)
{
    if (launch->first_failed < 0) {
        cli_error("interrupted by %s: %s", weir_text_signal(launch->signal).text,
                  show_others(launch, "rank", "it"));
        return;
    }
    const struct rank *rank = &launch->ranks[launch->first_failed];
    const char *others = show_others(launch, "other rank", "SIGTERM");
    cli_error("rank %d of %" PRIu64 " (process %d) %s%s%s", launch->first_failed,
              launch->options->count, (int)rank->process,
              rank->signal ? cli_text("was ended by %s", weir_text_signal(rank->signal).text)
                           : cli_text("ended with %d", rank->code),
              *others ? "; " : "", others);
}

// JSON.

static int print_json(const struct launch *launch, uint64_t took_ns, int code)
{
    json_t *root = json_object();
    json_t *ranks = json_array();
    for (size_t i = 0; i < launch->started; i++) {
        const struct rank *rank = &launch->ranks[i];
        json_t *object = json_object();
        cli_json_set(object, "rank", weir_json_count(i));
        cli_json_set(object, "process", json_integer(rank->process));
        cli_json_set(object, "exit", rank->signal ? json_null() : json_integer(rank->code));
        cli_json_set(object, "signal", rank->signal ? json_integer(rank->signal) : json_null());
        cli_json_set(object, "stopped", json_boolean(rank->stopped));
        cli_json_set(object, "killed", json_boolean(rank->killed));
        cli_json_append(ranks, object);
    }
    cli_json_set(root, "ranks", ranks);
    cli_json_set(root, "first_failed",
                 launch->first_failed < 0 ? json_null() : json_integer(launch->first_failed));
    cli_json_set(root, "interrupted", launch->signal ? json_integer(launch->signal) : json_null());
    cli_json_set(root, "seconds", json_real((double)took_ns / 1e9));
    return cli_json_print(root, code);
}

// Prints why the ranks ended, and the summary; returns the exit code.
static int tell(const struct launch *launch, uint64_t took_ns)
{
    if (launch->failure)
        return launch->failure;
    const int code = launch->first_failed >= 0 ? launch->ranks[launch->first_failed].code
                     : launch->signal          ? CLI_SIGNALLED + launch->signal
                                               : CLI_OK;
    if (launch->first_failed >= 0 || launch->signal)
        tell_end(launch);
    return launch->options->json ? print_json(launch, took_ns, code) : code;
}

static const char about[] =
    "Runs PROGRAM as N ranks on this machine, with the variables that torchrun sets: RANK,\n"
    "WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Each line that they\n"
    "print has its rank before it. When one fails the others are ended, and the exit status is\n"
    "that of the first one that failed. Options come before PROGRAM; what follows it are its\n"
    "arguments. It gets no input.\n"
    "\n"
    "  weir launch -n 4 ./train --steps 100";

static void parse(struct launch_options *out, int argc, char **argv)
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
        CLI_FORM_PROGRAM("weir launch", "PROGRAM [ARGUMENT]...", about, options);
    out->command = cli_program_parse(&usage, argc, argv);
}

// Where the ranks meet, unless the user has named a place: a file in the folder that the transport `local`
// keeps for its user. It looks at the folder's owner itself.
static const char *name_place(void)
{
    const char *folder = cli_text("/tmp/weir-%lu", (unsigned long)geteuid());
    (void)mkdir(folder, 0700);
    return cli_text("unix:%s/launch-%ld-%" PRIx64, folder, (long)getpid(), weir_clock_now_ns());
}

// For programs that meet by torch's means. Rank 0 listens at it, so it is free again when this returns.
static uint64_t find_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        cli_fail(CLI_SETUP, "no free port at 127.0.0.1 was found: %s; name one with --port",
                 strerror(errno));
    close(listener);
    return ntohs(address.sin_port);
}

int cli_launch(int argc, char **argv)
{
    struct launch_options options = {.grace_s = 5};
    parse(&options, argc, argv);
    if (options.count == 0)
        cli_fail(CLI_USAGE, "weir launch needs a number of ranks: weir launch -n 4 %s",
                 options.command[0]);
    struct launch launch = {.options = &options, .first_failed = -1};
    const uint64_t began_ns = weir_clock_now_ns();
    launch.ranks = cli_allocate(options.count, sizeof *launch.ranks);
    launch.port = cli_text("%" PRIu64, options.port ? options.port : find_port());
    launch.place = name_place();
    watch(&launch);
    const int code = tell(&launch, weir_clock_now_ns() - began_ns);
    (void)unlink(launch.place + strlen("unix:")); // left if rank 0 was killed there
    return code;
}
