// One sentence says why the ranks ended, after all that they printed.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/json.h"
#include "cli/launch/launch.h"

enum {
    TEXT_SIZE = 512
};

static size_t count_stopped(const struct launch *launch, bool killed)
{
    size_t count = 0;
    for (size_t i = 0; i < launch->started; i++)
        count += killed ? launch->ranks[i].killed : launch->ranks[i].stopped;
    return count;
}

// "; 3 other ranks got SIGTERM, of which 1 was killed after 5 s".
static void add_others(const struct launch *launch, const char *what, const char *signal,
                       char *text, size_t *used)
{
    const size_t stopped = count_stopped(launch, false);
    const size_t killed = count_stopped(launch, true);
    if (stopped)
        weir_text_append(text, TEXT_SIZE, used, "%zu %s%s got %s", stopped, what,
                         stopped == 1 ? "" : "s", signal);
    if (killed)
        weir_text_append(text, TEXT_SIZE, used, ", of which %zu %s killed", killed,
                         killed == 1 ? "was" : "were");
    if (killed && !launch->hurried)
        weir_text_append(text, TEXT_SIZE, used, " after %" PRIu64 " s", launch->options->grace_s);
}

static void tell_failed(const struct launch *launch)
{
    char text[TEXT_SIZE] = "";
    size_t used = 0;
    const struct rank *rank = &launch->ranks[launch->first_failed];
    weir_text_append(text, sizeof text, &used, "rank %d of %" PRIu64 " (process %d) ",
                     launch->first_failed, launch->options->count, (int)rank->process);
    if (rank->signal)
        weir_text_append(text, sizeof text, &used, "was ended by signal %d (%s)", rank->signal,
                         strsignal(rank->signal));
    else
        weir_text_append(text, sizeof text, &used, "ended with %d", rank->code);
    if (count_stopped(launch, false))
        weir_text_append(text, sizeof text, &used, "; ");
    add_others(launch, "other rank", "SIGTERM", text, &used);
    cli_error("%s", text);
}

static void tell_signal(const struct launch *launch)
{
    char text[TEXT_SIZE] = "";
    size_t used = 0;
    weir_text_append(text, sizeof text, &used, "interrupted by signal %d (%s): ", launch->signal,
                     strsignal(launch->signal));
    add_others(launch, "rank", "it", text, &used);
    cli_error("%s", text);
}

// JSON.

static json_t *json_of_rank(const struct rank *rank, size_t number, bool *ok)
{
    json_t *object = json_object();
    cli_json_set(object, "rank", cli_json_count(number), ok);
    cli_json_set(object, "process", json_integer(rank->process), ok);
    cli_json_set(object, "exit", rank->signal ? json_null() : json_integer(rank->code), ok);
    cli_json_set(object, "signal", rank->signal ? json_integer(rank->signal) : json_null(), ok);
    cli_json_set(object, "stopped", json_boolean(rank->stopped), ok);
    cli_json_set(object, "killed", json_boolean(rank->killed), ok);
    return object;
}

static int print_json(const struct launch *launch, uint64_t took_ns, int code)
{
    bool ok = true;
    json_t *root = json_object();
    json_t *ranks = json_array();
    for (size_t i = 0; i < launch->started; i++)
        cli_json_append(ranks, json_of_rank(&launch->ranks[i], i, &ok), &ok);
    cli_json_set(root, "ranks", ranks, &ok);
    cli_json_set(root, "first_failed",
                 launch->first_failed < 0 ? json_null() : json_integer(launch->first_failed), &ok);
    cli_json_set(root, "interrupted", launch->signal ? json_integer(launch->signal) : json_null(),
                 &ok);
    cli_json_set(root, "seconds", json_real((double)took_ns / 1e9), &ok);
    return cli_json_print(root, ok, code);
}

static int exit_code(const struct launch *launch)
{
    if (launch->failure)
        return launch->failure;
    if (launch->first_failed >= 0)
        return launch->ranks[launch->first_failed].code;
    return launch->signal ? CLI_SIGNALLED + launch->signal : CLI_OK;
}

int tell(const struct launch *launch, uint64_t took_ns)
{
    const int code = exit_code(launch);
    if (launch->failure)
        return code;
    if (launch->first_failed >= 0)
        tell_failed(launch);
    else if (launch->signal)
        tell_signal(launch);
    return launch->options->json ? print_json(launch, took_ns, code) : code;
}
