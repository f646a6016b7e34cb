// What is printed: a line for each of the first seeds that change the result, then how many do, and
// the command that runs the program with one of them again.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/output.h"
#include "cli/perturb/perturb.h"

enum {
    TEXT_SIZE = 4096
};

static const char *show_end(const struct cli_program_end *end, char *text, size_t size)
{
    if (end->late)
        snprintf(text, size, "did not end in time");
    else if (end->code > CLI_SIGNALLED)
        snprintf(text, size, "ended by %s",
                 weir_text_signal((char[WEIR_TEXT_QUANTITY_SIZE]){0}, end->code - CLI_SIGNALLED));
    else
        snprintf(text, size, "ended with %d", end->code);
    return text;
}

static bool is_seeded(const struct settings *settings)
{
    return strcmp(settings->mode, "random") == 0;
}

// Quoted where the shell would take a character for something else.
static void add_word(char *text, size_t size, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=:,+@%";
    const bool quoted = !*word || strspn(word, plain) != strlen(word);
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, size - used, "%s", quoted ? " '" : " ");
    for (; *word && used + 8 < size; word++)
        used += (size_t)snprintf(text + used, size - used, *word == '\'' ? "'\\''" : "%c", *word);
    if (quoted)
        snprintf(text + used, size - used, "'");
}

// The environment and the command that run the program in that order.
static const char *show_command(const struct settings *settings, uint64_t seed, char *text,
                                size_t size)
{
    char setting[sizeof settings->plugins + 64];
    snprintf(setting, sizeof setting, "WEIR_PLUGINS=%s%sperturb", settings->plugins,
             settings->plugins[0] ? ", " : "");
    text[0] = '\0';
    add_word(text, size, "env");
    add_word(text, size, setting);
    snprintf(setting, sizeof setting, "WEIR_PERTURB_MODE=%s", settings->mode);
    add_word(text, size, setting);
    if (is_seeded(settings)) {
        snprintf(setting, sizeof setting, "WEIR_PERTURB_SEED=%" PRIu64, seed);
        add_word(text, size, setting);
    }
    if (settings->pair[0]) {
        snprintf(setting, sizeof setting, "WEIR_PERTURB_PAIR=%s", settings->pair);
        add_word(text, size, setting);
    }
    for (char **word = settings->command; *word; word++)
        add_word(text, size, *word);
    return text + 1;
}

static void add(char *text, size_t size, const char *what, uint64_t line)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s differs from line %" PRIu64 " on", used ? "; " : "",
             what, line);
}

void tell_change(const struct summary *summary, const struct change *change)
{
    const struct settings *settings = summary->settings;
    char text[TEXT_SIZE] = "";
    char end[64];
    char plain[64];
    show_end(&change->end, end, sizeof end);
    show_end(&summary->plain->end, plain, sizeof plain);
    if (strcmp(end, plain) != 0)
        snprintf(text, sizeof text, "%s, and without perturb %s", end, plain);
    if (change->output_line)
        add(text, sizeof text, "standard output", change->output_line);
    for (size_t i = 0; i < settings->files.count; i++)
        if (change->file_lines[i])
            add(text, sizeof text, settings->files.items[i], change->file_lines[i]);
    if (is_seeded(settings))
        printf("seed %" PRIu64 ": %s\n", change->seed, text);
    else
        printf("mode %s: %s\n", settings->mode, text);
    fflush(stdout);
}

static void tell_command(const struct summary *summary)
{
    char text[TEXT_SIZE];
    const struct change *change = &summary->changes[0];
    if (!change->again)
        printf("A second run with the same seed did not give the same: ");
    if (!change->again && summary->counts.idle + summary->counts.stalled)
        printf("%" PRIu64 " operations ran by the clock, so a longer `idle` in [perturb] helps. ",
               summary->counts.idle + summary->counts.stalled);
    else if (!change->again)
        printf("the program uses Weir from several threads, or depends on more than its input. ");
    printf("To run it again:\n    %s\n",
           show_command(summary->settings, change->seed, text, sizeof text));
}

static void tell_reversals(const struct summary *summary)
{
    if (strcmp(summary->settings->mode, "pair") != 0)
        return;
    if (summary->counts.reversed)
        printf("The pair was reversed %" PRIu64 " times.\n", summary->counts.reversed);
    else
        printf("The pair was never reversed: the second line waits for the first, or one of them "
               "submits nothing.\n");
}

void tell_summary(const struct summary *summary)
{
    const struct settings *settings = summary->settings;
    if (summary->changed > CHANGES_SHOWN)
        printf("… and %" PRIu64 " more\n", summary->changed - CHANGES_SHOWN);
    tell_reversals(summary);
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

static json_t *json_of_end(const struct cli_program_end *end, bool *ok)
{
    json_t *object = json_object();
    const bool signalled = !end->late && end->code > CLI_SIGNALLED;
    weir_json_set(object, "exit", end->late || signalled ? json_null() : json_integer(end->code),
                  ok);
    weir_json_set(object, "signal",
                  signalled ? json_integer(end->code - CLI_SIGNALLED) : json_null(), ok);
    weir_json_set(object, "late", json_boolean(end->late), ok);
    return object;
}

static json_t *json_of_change(const struct summary *summary, const struct change *change, bool *ok)
{
    const struct settings *settings = summary->settings;
    char text[TEXT_SIZE];
    json_t *object = json_of_end(&change->end, ok);
    json_t *files = json_object();
    weir_json_set(object, "seed", weir_json_count(change->seed), ok);
    weir_json_set(object, "output_line",
                  change->output_line ? weir_json_count(change->output_line) : json_null(), ok);
    for (size_t i = 0; i < settings->files.count; i++)
        if (change->file_lines[i])
            weir_json_set(files, settings->files.items[i], weir_json_count(change->file_lines[i]),
                          ok);
    weir_json_set(object, "files", files, ok);
    weir_json_set(object, "command",
                  cli_json_string(show_command(settings, change->seed, text, sizeof text)), ok);
    return object;
}

int tell_json(const struct summary *summary, int code)
{
    bool ok = true;
    json_t *root = json_object();
    json_t *changes = json_array();
    const struct cli_perturb_counts *counts = &summary->counts;
    weir_json_set(root, "mode", cli_json_string(summary->settings->mode), &ok);
    weir_json_set(root, "unperturbed", json_of_end(&summary->plain->end, &ok), &ok);
    weir_json_set(root, "first_seed", weir_json_count(summary->settings->first), &ok);
    weir_json_set(root, "seeds", weir_json_count(summary->runs), &ok);
    weir_json_set(root, "changed", weir_json_count(summary->changed), &ok);
    for (size_t i = 0; i < summary->change_count; i++)
        weir_json_append(changes, json_of_change(summary, &summary->changes[i], &ok), &ok);
    weir_json_set(root, "changes", changes, &ok);
    weir_json_set(root, "reproduced",
                  summary->changed ? json_boolean(summary->changes[0].again) : json_null(), &ok);
    weir_json_set(root, "operations", weir_json_count(counts->operations), &ok);
    weir_json_set(root, "choices", weir_json_count(counts->choices), &ok);
    weir_json_set(root, "by_the_clock", weir_json_count(counts->idle + counts->stalled), &ok);
    weir_json_set(root, "reversed", weir_json_count(counts->reversed), &ok);
    weir_json_set(root, "interrupted", json_boolean(summary->signal != 0), &ok);
    return cli_json_print(root, ok, code);
}
