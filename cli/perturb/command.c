// weir perturb COMMAND...: one run without the plugin, then one for each seed. What changes is the
// result: the exit status, and what --compare and --output name.
#define _GNU_SOURCE // memrchr
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/common/folder.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/own.h"
#include "cli/common/progress.h"
#include "cli/program/program.h"

struct settings {
    char **command;
    uint64_t first; // seed
    uint64_t seeds;
    const char *mode;
    const char *pair;
    bool compare; // standard output
    struct weir_words files;
    uint64_t limit_s;  // 0: from the run without the plugin
    uint64_t limit_ms; // of the next run; 0: none
    bool stop;         // at the first seed that changes the result
    bool json;
    const char *plain;                        // the variable of the chain without perturb
    const char *order[CLI_PERTURB_VARIABLES]; // those of the chain with it, and of the mode
    size_t order_count;
    const char *folder; // of the files of a run
};

struct result {
    struct cli_perturb_run run;
    struct cli_content files[CLI_LIST_LIMIT];
};

struct summary {
    const struct settings *settings;
    const struct result *plain; // without the plugin
    uint64_t runs;
    uint64_t changed;
    uint64_t changed_first;           // the first seed that changed the result
    bool again;                       // a second run with that seed changed it to the same
    json_t *changes;                  // the first ones; NULL without --json
    struct cli_perturb_counts counts; // of all runs
    int signal;                       // that ended it before the last seed; 0: none
};

enum {
    CHANGES_KEPT = 1000,
    CHANGES_SHOWN = 10,
};

// What is printed: a line for each of the first seeds that change the result, then how many do, and
// the command that runs the program with one of them again.

static const char *show_end(const struct cli_program_end *end)
{
    if (end->late)
        return "did not end in time";
    if (end->code > CLI_SIGNALLED)
        return cli_text("ended by %s", weir_text_signal(end->code - CLI_SIGNALLED).text);
    return cli_text("ended with %d", end->code);
}

static bool is_seeded(const struct settings *settings)
{
    return strcmp(settings->mode, "random") == 0;
}

// The environment and the command that run the program in that order.
static const char *show_command(const struct settings *settings, uint64_t seed)
{
    struct weir_long_text line = {0};
    cli_program_show_word(&line, "env");
    for (size_t i = 0; i < settings->order_count; i++)
        cli_program_show_word(&line, settings->order[i]);
    if (is_seeded(settings))
        cli_program_show_word(&line, cli_text("WEIR_PERTURB_SEED=%" PRIu64, seed));
    for (char **word = settings->command; *word; word++)
        cli_program_show_word(&line, *word);
    return cli_take_text(&line);
}

static void add(struct weir_long_text *text, const char *what, uint64_t line)
{
    if (line)
        weir_long_text_add(text, "%s%s differs from line %" PRIu64 " on", text->used ? "; " : "",
                           what, line);
}

// The line from which on standard output differs, if it is compared; 0: nowhere.
static uint64_t output_line(const struct summary *summary, const struct result *result)
{
    return summary->settings->compare
               ? cli_content_line(&result->run.output, &summary->plain->run.output)
               : 0;
}

static void tell_change(const struct summary *summary, uint64_t seed, const struct result *result)
{
    const struct settings *settings = summary->settings;
    struct weir_long_text text = {0};
    const char *end = show_end(&result->run.end);
    const char *plain = show_end(&summary->plain->run.end);
    if (strcmp(end, plain) != 0)
        weir_long_text_add(&text, "%s, and without perturb %s", end, plain);
    add(&text, "standard output", output_line(summary, result));
    for (size_t i = 0; i < settings->files.count; i++)
        add(&text, settings->files.items[i],
            cli_content_line(&result->files[i], &summary->plain->files[i]));
    if (is_seeded(settings))
        printf("seed %" PRIu64 ": %s\n", seed, cli_take_text(&text));
    else
        printf("mode %s: %s\n", settings->mode, cli_take_text(&text));
    fflush(stdout);
}

static void tell_command(const struct summary *summary)
{
    if (!summary->again)
        printf("A second run with the same seed did not give the same: ");
    if (!summary->again && summary->counts.by_the_clock)
        printf("%" PRIu64 " operations ran by the clock, so a longer `idle` in [perturb] helps. ",
               summary->counts.by_the_clock);
    else if (!summary->again)
        printf("the program uses Weir from several threads, or depends on more than its input. ");
    printf("To run it again:\n    %s\n", show_command(summary->settings, summary->changed_first));
}

static void tell_summary(const struct summary *summary)
{
    const struct settings *settings = summary->settings;
    if (summary->changed > CHANGES_SHOWN)
        printf("… and %" PRIu64 " more\n", summary->changed - CHANGES_SHOWN);
    if (summary->counts.reversed)
        printf("The pair was reversed %" PRIu64 " times.\n", summary->counts.reversed);
    else if (settings->pair[0])
        printf("The pair was never reversed: the second line waits for the first, or one of them "
               "submits nothing.\n");
    if (is_seeded(settings))
        printf("%" PRIu64 " of %" PRIu64 " %s changed the result (%" PRIu64 " operations, %" PRIu64
               " choices).\n",
               summary->changed, summary->runs, summary->runs == 1 ? "seed" : "seeds",
               summary->counts.operations, summary->counts.choices);
    else
        printf("The result %s.\n", summary->changed ? "changed" : "is the same");
    if (summary->changed)
        tell_command(summary);
    else if (summary->runs && summary->counts.choices == 0)
        printf("There was nothing to choose: no two operations were without an order.\n");
    else if (!settings->compare && settings->files.count == 0)
        printf("Only exit statuses were compared; --compare adds what the program prints, and "
               "--output a file.\n");
}

// JSON.

static json_t *json_of_end(const struct cli_program_end *end)
{
    json_t *object = json_object();
    const bool signalled = !end->late && end->code > CLI_SIGNALLED;
    cli_json_set(object, "exit", end->late || signalled ? json_null() : json_integer(end->code));
    cli_json_set(object, "signal",
                 signalled ? json_integer(end->code - CLI_SIGNALLED) : json_null());
    cli_json_set(object, "late", json_boolean(end->late));
    return object;
}

static json_t *json_of_change(const struct summary *summary, uint64_t seed,
                              const struct result *result)
{
    const struct settings *settings = summary->settings;
    const uint64_t output = output_line(summary, result);
    json_t *object = json_of_end(&result->run.end);
    json_t *files = json_object();
    cli_json_set(object, "seed", weir_json_count(seed));
    cli_json_set(object, "output_line", output ? weir_json_count(output) : json_null());
    for (size_t i = 0; i < settings->files.count; i++) {
        const uint64_t line = cli_content_line(&result->files[i], &summary->plain->files[i]);
        if (line)
            cli_json_set(files, settings->files.items[i], weir_json_count(line));
    }
    cli_json_set(object, "files", files);
    cli_json_set(object, "command", cli_json_string(show_command(settings, seed)));
    return object;
}

static int tell_json(const struct summary *summary, int code)
{
    json_t *root = json_object();
    const struct cli_perturb_counts *counts = &summary->counts;
    cli_json_set(root, "mode", cli_json_string(summary->settings->mode));
    cli_json_set(root, "unperturbed", json_of_end(&summary->plain->run.end));
    cli_json_set(root, "first_seed", weir_json_count(summary->settings->first));
    cli_json_set(root, "seeds", weir_json_count(summary->runs));
    cli_json_set(root, "changed", weir_json_count(summary->changed));
    cli_json_set(root, "changes", summary->changes);
    cli_json_set(root, "reproduced", summary->changed ? json_boolean(summary->again) : json_null());
    cli_json_set(root, "operations", weir_json_count(counts->operations));
    cli_json_set(root, "choices", weir_json_count(counts->choices));
    cli_json_set(root, "by_the_clock", weir_json_count(counts->by_the_clock));
    cli_json_set(root, "reversed", weir_json_count(counts->reversed));
    cli_json_set(root, "interrupted", json_boolean(summary->signal != 0));
    return cli_json_print(root, code);
}

// Runs of the program in other orders, and whether what they print is the same.

// What a run leaves: its exit status, what it printed, and the files that it is asked to compare.

static void result_finish(struct result *result)
{
    free(result->run.output.bytes);
    free(result->run.messages.bytes);
    for (size_t i = 0; i < CLI_LIST_LIMIT; i++)
        free(result->files[i].bytes);
    *result = (struct result){.run = {.output = {NULL, 0}}};
}

// Whether the run gave something else than the other one did, in what the settings compare.
static bool result_differs(const struct settings *settings, const struct result *a,
                           const struct result *b)
{
    bool differs = a->run.end.code != b->run.end.code || a->run.end.late != b->run.end.late;
    if (settings->compare)
        differs = differs || cli_content_line(&a->run.output, &b->run.output);
    for (size_t i = 0; i < settings->files.count; i++)
        differs = differs || cli_content_line(&a->files[i], &b->files[i]);
    return differs;
}

// One run. The program reads nothing, since no two runs could read the same.

// Runs the program, with a seed if `seed` is not NULL. Ends the command after an error of its own.
static void run_once(const struct settings *settings, const uint64_t *seed,
                     struct result *out_result)
{
    const struct cli_program program = {
        .command = settings->command,
        .variables = seed ? settings->order : &settings->plain,
        .variable_count = seed ? settings->order_count : 1,
        .limit_ms = settings->limit_ms,
    };
    *out_result = (struct result){.run = {.output = {NULL, 0}}};
    for (size_t i = 0; i < settings->files.count; i++) // an earlier run's
        if (unlink(settings->files.items[i]) != 0 && errno != ENOENT)
            cli_fail(CLI_SETUP, "%s cannot be removed before a run: %s", settings->files.items[i],
                     strerror(errno));
    out_result->run = cli_perturb_run(&program, settings->folder, seed ? *seed : 0);
    for (size_t i = 0; i < settings->files.count; i++)
        out_result->files[i] = cli_content_read(settings->files.items[i]);
}

static const char about[] =
    "Runs COMMAND, any program that uses Weir, once as it is and then once for each seed with the\n"
    "plugin `perturb` in its chain, which lets operations run in any order that no declared\n"
    "dependency forbids. Tells which seeds change the result: the exit status, and what --compare\n"
    "and --output name. Ends with 1 if one does. Options come before COMMAND; what follows it are\n"
    "its arguments. It gets no input.\n"
    "\n"
    "  weir perturb --compare --output result.npy ./program result.npy";

static const char *const modes[] = {"random", "late", "pair", NULL};

static void parse(struct settings *out, int argc, char **argv)
{
    const struct cli_option options[] = {
        {"seeds", "N", "how many seeds; without it, 100", CLI_COUNT, &out->seeds, 1, 1000000000},
        {"seed", "S", "the first of them; without it, 1", CLI_COUNT, &out->first, 0, INT64_MAX / 2},
        {"mode", "MODE",
         "random, the default; late, one run in which nothing\nruns before it is needed; pair, one "
         "run in which\nthe lines of --pair run in the other order",
         CLI_TEXT, &out->mode, 0, 0},
        {"pair", "LINES", "two lines, as app.c:80,app.c:91; implies the mode", CLI_TEXT, &out->pair,
         0, 0},
        {"compare", NULL, "compare standard output too", CLI_FLAG, &out->compare, 0, 0},
        {"output", "FILE",
         "compare FILE, which COMMAND writes, too; removed\nbefore each run; may be given several "
         "times",
         CLI_FILES, &out->files, 0, 0},
        {"stop", NULL, "stop at the first seed that changes the result", CLI_FLAG, &out->stop, 0,
         0},
        {"limit", "SECONDS",
         "kill a run after SECONDS, which changes the result;\nwithout it, 20 times the first run "
         "and 30 at least",
         CLI_COUNT, &out->limit_s, 1, 1000000},
        {"json", NULL, "print the result as JSON", CLI_FLAG, &out->json, 0, 0},
        CLI_QUIET("show no progress, and print nothing but errors\nand the result"),
    };
    const struct cli_usage usage =
        CLI_FORM_PROGRAM("weir perturb", "COMMAND [ARGUMENT]...", about, options);
    out->command = cli_program_parse(&usage, argc, argv);
}

// "FILE:LINE" of that length.
static bool is_line(const char *text, size_t length)
{
    const char *colon = memrchr(text, ':', length);
    int end = 0;
    return colon && colon != text && sscanf(colon + 1, "%*[0-9] %n", &end) == 0 && end &&
           colon + 1 + end == text + length;
}

// "FILE:LINE, FILE:LINE".
static bool is_pair_of_lines(const char *text)
{
    const size_t first = strcspn(text, ",");
    return text[first] && is_line(text, first) &&
           is_line(text + first + 1, strlen(text + first + 1));
}

static void check(struct settings *settings)
{
    const char *pair = settings->pair;
    if (!settings->mode)
        settings->mode = pair[0] ? "pair" : "random";
    cli_choose("mode", settings->mode, modes);
    const bool is_pair = strcmp(settings->mode, "pair") == 0;
    if (is_pair && !pair[0])
        cli_fail(CLI_USAGE, "mode pair needs two lines: --pair app.c:80,app.c:91");
    if (!is_pair && pair[0])
        cli_fail(CLI_USAGE, "--pair belongs to mode pair, and the mode is %s", settings->mode);
    if (is_pair && !is_pair_of_lines(pair))
        cli_fail(CLI_USAGE, "--pair takes two lines, as app.c:80,app.c:91, not '%s'", pair);
    if (!is_seeded(settings))
        settings->seeds = 1;
}

// The run without the plugin.

// What it said.
static void relay(const struct result *result)
{
    fwrite(result->run.messages.bytes, 1, result->run.messages.size, stderr);
}

static void check_usable(const struct settings *settings, const struct result *plain)
{
    const int code = plain->run.end.code;
    if (plain->run.end.late)
        cli_fail(CLI_FAILED,
                 "%s did not end within %" PRIu64 " seconds without the plugin; give it more "
                 "with --limit",
                 settings->command[0], settings->limit_s);
    if (code != 126 && code < CLI_NOT_FOUND)
        return;
    if (code > CLI_SIGNALLED && cli_program_signal() == 0) {
        relay(plain);
        cli_error("%s ended by %s without the plugin, so there is no result to compare with",
                  settings->command[0], weir_text_signal(code - CLI_SIGNALLED).text);
    }
    cli_end(code);
}

// Whether another run, with that seed or NULL, gives something else.
static bool differs_again(const struct settings *settings, const uint64_t *seed,
                          const struct result *result)
{
    struct result again;
    run_once(settings, seed, &again);
    const bool differs = result_differs(settings, result, &again);
    result_finish(&again);
    return differs && !cli_program_signal();
}

CLI_DESTROYER(destroy_result, result_finish)

static void run_plain(struct settings *settings, struct result *plain)
{
    const uint64_t began_ns = cli_now_ns();
    settings->limit_ms = settings->limit_s * 1000;
    run_once(settings, NULL, plain);
    const uint64_t factor_ms = (cli_now_ns() - began_ns) / 1000000 * 20;
    cli_own(destroy_result, plain);
    check_usable(settings, plain);
    if (plain->run.end.code != 0 && !cli_quiet) {
        relay(plain);
        cli_warning("%s ends with %d without the plugin", settings->command[0],
                    plain->run.end.code);
    }
    // What differs between two runs as they are says nothing about orders.
    if ((settings->compare || settings->files.count > 0) && !cli_program_signal() &&
        differs_again(settings, NULL, plain))
        cli_fail(CLI_FAILED,
                 "two runs of %s without the plugin gave different results: it writes what does "
                 "not depend on its work alone, or the lack of a wait shows without the plugin "
                 "too; leave out --compare and --output, or use `weir check`",
                 settings->command[0]);
    if (!settings->limit_s)
        settings->limit_ms = factor_ms > 30000 ? factor_ms : 30000;
}

// The runs with the plugin.

static void note_change(struct summary *summary, uint64_t seed, const struct result *result)
{
    const struct settings *settings = summary->settings;
    summary->changed++;
    if (settings->json && summary->changed <= CHANGES_KEPT)
        cli_json_append(summary->changes, json_of_change(summary, seed, result));
    if (!settings->json && summary->changed <= CHANGES_SHOWN)
        tell_change(summary, seed, result);
    if (summary->changed == 1) {
        summary->changed_first = seed;
        summary->again = !differs_again(settings, &seed, result);
    }
}

// Returns false when there is no sense in another seed.
static bool run_seed(struct summary *summary, uint64_t seed)
{
    struct cli_perturb_counts *sum = &summary->counts;
    struct result result;
    run_once(summary->settings, &seed, &result);
    const struct cli_perturb_counts *counts = &result.run.counts;
    summary->signal = cli_program_signal();
    if (summary->signal) {
        result_finish(&result);
        return false;
    }
    summary->runs++;
    sum->runtimes += counts->runtimes;
    sum->operations += counts->operations;
    sum->choices += counts->choices;
    sum->by_the_clock += counts->by_the_clock;
    sum->reversed += counts->reversed;
    const bool differs = result_differs(summary->settings, &result, summary->plain);
    if (differs)
        note_change(summary, seed, &result);
    const bool without = !differs && !counts->runtimes;
    result_finish(&result);
    return !without && !(differs && summary->settings->stop);
}

static void run_seeds(struct summary *summary)
{
    const struct settings *settings = summary->settings;
    struct cli_progress progress;
    cli_progress_start(&progress, true, settings->seeds, "runs/s");
    for (uint64_t i = 0; i < settings->seeds && !cli_program_signal(); i++) {
        if (!run_seed(summary, settings->first + i))
            break;
        cli_progress_update(&progress, i + 1, cli_text("%" PRIu64 " changed", summary->changed));
    }
    summary->signal = cli_program_signal();
    cli_progress_end(&progress);
}

int cli_perturb(int argc, char **argv)
{
    static struct result plain;
    static struct settings settings = {.first = 1, .seeds = 100, .pair = ""};
    struct summary summary = {.settings = &settings, .plain = &plain};
    parse(&settings, argc, argv);
    check(&settings);
    const char *plain_plugins = cli_program_list_plugins("perturb");
    settings.plain = cli_text("WEIR_PLUGINS=%s", plain_plugins);
    settings.order[settings.order_count++] =
        cli_text("WEIR_PLUGINS=%s", cli_program_end_plugins(plain_plugins, "perturb"));
    settings.order[settings.order_count++] = cli_text("WEIR_PERTURB_MODE=%s", settings.mode);
    if (settings.pair[0])
        settings.order[settings.order_count++] = cli_text("WEIR_PERTURB_PAIR=%s", settings.pair);
    settings.folder = cli_folder_create("perturb");
    run_plain(&settings, &plain);
    summary.changes = settings.json ? json_array() : NULL;
    cli_program_begin_series();
    run_seeds(&summary);
    if (summary.runs && !summary.counts.runtimes && !summary.changed)
        cli_fail(CLI_FAILED,
                 "%s opened no runtime of Weir's, or one whose plugins the program names itself; "
                 "list perturb there",
                 settings.command[0]);
    const int code = summary.signal    ? CLI_SIGNALLED + summary.signal
                     : summary.changed ? CLI_FAILED
                                       : CLI_OK;
    if (settings.json)
        return tell_json(&summary, code);
    tell_summary(&summary);
    return code;
}
