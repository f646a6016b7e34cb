// weir fault: options, a single run, and a run for each operation; the operations that the plugin chose, and what
// became of the runs.
#define _GNU_SOURCE     // memmem
#define _DEFAULT_SOURCE // strsep
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/siphash.h"
#include "base/text.h"
#include "cli/common/folder.h"
#include "cli/common/output.h"
#include "cli/common/own.h"
#include "cli/common/progress.h"
#include "cli/program/program.h"

struct fault_options {
    const char *fault; // one kind, or several with commas between them
    const char *kinds;
    const char *queue;
    const char *label;
    uint64_t at;
    uint64_t one_in;
    uint64_t seed;
    uint64_t every;
    uint64_t delay_ms;
    uint64_t limit_s; // 0: from the first run
    bool recovers;
    bool all;
    bool json;
};

// An operation that the plugin chose.
struct fault_item {
    uint64_t number;
    char kind[32];
    char queue[128];
    char label[128];
    char file[256]; // "" if unknown
    int line;
};

enum fault_outcome {
    FAULT_TOLD,        // an exit status that is not 0, and the cause on its output
    FAULT_RECOVERED,   // exit status 0, where the options or the kind of fault allow it
    FAULT_NOT_REACHED, // this run took another course
    FAULT_CRASH,       // ended by a signal
    FAULT_HANG,        // killed after the limit
    FAULT_UNNOTICED,   // exit status 0
    FAULT_NO_CAUSE,    // another exit status, and no message of the fault
    FAULT_OUTCOMES,
};

static inline bool fault_is_finding(enum fault_outcome outcome)
{
    return outcome >= FAULT_CRASH;
}

struct fault_run {
    const char *fault;      // the kind
    struct fault_item item; // that got it, or was to get it
    enum fault_outcome outcome;
    int code;           // the program's, as in cli_program_end
    char last_line[96]; // of what it printed
    uint64_t digest;    // of all that it printed
};

struct fault_walk {
    char **command;
    const struct fault_options *options;
    struct fault_run *runs;
    size_t count;
    size_t capacity;
    size_t operations; // that were chosen, of all faults
    size_t counts[FAULT_OUTCOMES];
};

// What weir fault prints: the list of the operations, and what became of the runs.

// The plugin's list: a line for each operation, with tabs between its fields. The plugin has
// escaped the texts.

enum {
    LIST_LIMIT = 1 << 30
};

static void take(char **line, char *text, size_t size)
{
    const char *field = strsep(line, "\t");
    snprintf(text, size, "%s", field ? field : "");
}

static void read_row(char *line, struct fault_item *item)
{
    char number[32];
    take(&line, number, sizeof number);
    item->number = strtoull(number, NULL, 10);
    take(&line, item->kind, sizeof item->kind);
    take(&line, item->queue, sizeof item->queue);
    take(&line, item->label, sizeof item->label);
    take(&line, item->file, sizeof item->file);
    take(&line, number, sizeof number);
    item->line = (int)strtol(number, NULL, 10);
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        count++;
    return count;
}

// Reads the list that the plugin wrote. None is an empty list.
//
// Ownership: that of cli/common/own.h.
static struct fault_item *list_read(const char *path, size_t *out_count)
{
    char message[512];
    void *data = NULL;
    size_t size = 0;
    *out_count = 0;
    if (access(path, F_OK) != 0)
        return NULL;
    if (!weir_file_read(path, LIST_LIMIT, &data, &size, message, sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
    char *text = strndup(data, size);
    free(data);
    if (!text)
        cli_fail(CLI_FAILED, "no memory is left for the operations of the program; use --every "
                             "with a larger number, or --kinds");
    *out_count = count_lines(text);
    struct fault_item *items = cli_allocate(*out_count + 1, sizeof *items);
    char *rest = text;
    for (size_t i = 0; i < *out_count; i++)
        read_row(strsep(&rest, "\n"), &items[i]);
    free(text);
    return items;
}

static const char *fault_item_text(const struct fault_item *item, char *text, size_t size)
{
    size_t used = 0;
    weir_text_append(text, size, &used, "%s", item->kind);
    if (item->label[0])
        weir_text_append(text, size, &used, " '%s'", item->label);
    if (item->queue[0] && strcmp(item->kind, "new-queue") != 0)
        weir_text_append(text, size, &used, " on '%s'", item->queue);
    return text;
}

// "copy of 'frame' on queue 'up'", and "app.c:80" or "", in `text`; both return it.
static const char *fault_item_place(const struct fault_item *item, char *text, size_t size)
{
    const char *slash = strrchr(item->file, '/');
    text[0] = '\0';
    if (item->file[0])
        snprintf(text, size, "%s:%d", slash ? slash + 1 : item->file, item->line);
    return text;
}

// What the walk found, as text and as JSON.

static const char *const fault_outcome_names[FAULT_OUTCOMES] = {
    [FAULT_TOLD] = "told",
    [FAULT_RECOVERED] = "recovered",
    [FAULT_NOT_REACHED] = "not reached",
    [FAULT_CRASH] = "crash",
    [FAULT_HANG] = "hang",
    [FAULT_UNNOTICED] = "unnoticed",
    [FAULT_NO_CAUSE] = "no cause",
};

static size_t count_findings(const struct fault_walk *walk)
{
    size_t count = 0;
    for (enum fault_outcome i = 0; i < FAULT_OUTCOMES; i++)
        count += fault_is_finding(i) ? walk->counts[i] : 0;
    return count;
}

static const char *outcome_text(const struct fault_run *run, char *text, size_t size)
{
    switch (run->outcome) {
    case FAULT_CRASH:
        snprintf(text, size, "crash: %s",
                 weir_text_signal((char[WEIR_TEXT_QUANTITY_SIZE]){0}, run->code - CLI_SIGNALLED));
        break;
    case FAULT_HANG:
        snprintf(text, size, "hang: killed");
        break;
    case FAULT_UNNOTICED:
        snprintf(text, size, "exit 0: unnoticed");
        break;
    case FAULT_NO_CAUSE:
        snprintf(text, size, "exit %d: no cause told", run->code);
        break;
    case FAULT_TOLD:
        snprintf(text, size, "exit %d: told", run->code);
        break;
    default:
        snprintf(text, size, "%s", fault_outcome_names[run->outcome]);
        break;
    }
    return text;
}

static void add_row(struct weir_table *table, const struct fault_run *run)
{
    char text[512];
    weir_table_add(table, "%s\t%" PRIu64, run->fault, run->item.number);
    weir_table_add(table, "%s", fault_item_text(&run->item, text, sizeof text));
    weir_table_add(table, "%s", fault_item_place(&run->item, text, sizeof text));
    weir_table_add(table, "%s", outcome_text(run, text, sizeof text));
    weir_table_add(table, "%.60s", run->last_line);
}

static void print_table(const struct fault_walk *walk)
{
    struct weir_table table = {.alignment = "lrllll"};
    bool any = false;
    weir_table_add(&table, "fault\tnumber\toperation\tat\toutcome\tthe last line that it printed");
    for (size_t i = 0; i < walk->count; i++) {
        if (!walk->options->all && !fault_is_finding(walk->runs[i].outcome))
            continue;
        add_row(&table, &walk->runs[i]);
        any = true;
    }
    if (any)
        cli_table_print(&table, stdout, 0);
    weir_table_finish(&table);
}

static const struct fault_run *first_finding(const struct fault_walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        if (fault_is_finding(walk->runs[i].outcome))
            return &walk->runs[i];
    return NULL;
}

static void print_repeat(const struct fault_walk *walk)
{
    const struct fault_run *run = first_finding(walk);
    const struct fault_options *options = walk->options;
    if (!run)
        return;
    const char *const given[][2] = {{"--fault", run->fault},
                                    {"--at", cli_text("%" PRIu64, run->item.number)},
                                    {"--kinds", options->kinds},
                                    {"--queue", options->queue},
                                    {"--label", options->label}};
    struct weir_long_text line = {0};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        for (size_t k = 0; k < 2 && given[i][1][0]; k++)
            cli_program_show_word(&line, given[i][k]);
    for (char **word = walk->command; *word; word++)
        cli_program_show_word(&line, *word);
    printf("\nThe first of them again: weir fault %s\n", cli_take_text(&line));
}

static void print_text(const struct fault_walk *walk)
{
    static const char *const texts[FAULT_OUTCOMES] = {
        [FAULT_TOLD] = "told the cause",
        [FAULT_RECOVERED] = "ended well",
        [FAULT_NOT_REACHED] = "did not come to the operation",
        [FAULT_CRASH] = "crashed",
        [FAULT_HANG] = "hung",
        [FAULT_UNNOTICED] = "ended with 0 as if nothing had happened",
        [FAULT_NO_CAUSE] = "failed without telling the cause",
    };
    const char *separator = ": ";
    print_table(walk);
    printf("%s%zu operation%s, %zu run%s with a fault", first_finding(walk) ? "\n" : "",
           walk->operations, walk->operations == 1 ? "" : "s", walk->count,
           walk->count == 1 ? "" : "s");
    for (enum fault_outcome i = 0; i < FAULT_OUTCOMES; i++) {
        if (walk->counts[i] == 0)
            continue;
        printf("%s%zu %s", separator, walk->counts[i], texts[i]);
        separator = ", ";
    }
    printf("\n");
    print_repeat(walk);
}

static json_t *run_json(const struct fault_run *run)
{
    json_t *object = json_object();
    cli_json_set(object, "fault", cli_json_string(run->fault));
    cli_json_set(object, "number", weir_json_count(run->item.number));
    cli_json_set(object, "kind", cli_json_string(run->item.kind));
    cli_json_set(object, "queue", cli_json_string(run->item.queue));
    cli_json_set(object, "label", cli_json_string(run->item.label));
    cli_json_set(object, "file", cli_json_string(run->item.file));
    cli_json_set(object, "line", json_integer(run->item.line));
    cli_json_set(object, "outcome", cli_json_string(fault_outcome_names[run->outcome]));
    cli_json_set(object, "finding", json_boolean(fault_is_finding(run->outcome)));
    cli_json_set(object, "exit", json_integer(run->code));
    cli_json_set(object, "last_line", cli_json_string(run->last_line));
    return object;
}

static int print_json(const struct fault_walk *walk, int code)
{
    json_t *object = json_object();
    json_t *runs = json_array();
    for (size_t i = 0; i < walk->count; i++)
        cli_json_append(runs, run_json(&walk->runs[i]));
    cli_json_set(object, "operations", weir_json_count(walk->operations));
    cli_json_set(object, "findings", weir_json_count(count_findings(walk)));
    cli_json_set(object, "runs", runs);
    return cli_json_print(object, code);
}

// Prints it; returns the exit code.
static int fault_report_print(const struct fault_walk *walk)
{
    const int code = first_finding(walk) ? CLI_FAILED : CLI_OK;
    if (walk->options->json)
        return print_json(walk, code);
    print_text(walk);
    return code;
}

// Runs of the program with a fault, one at a time and all in turn.

// One run of the program.

// Where the files of the runs are.
struct fault_folder {
    struct cli_folder files;
    char list[CLI_FOLDER_PATH_SIZE];
};

// A run of which only the outcome is shown.
struct fault_plan {
    const struct fault_options *options;
    const struct fault_folder *folder;
    char **command;
    const char *fault;
    uint64_t limit_ms; // 0: none
    uint64_t digest;   // of a run without a fault
};

static void folder_create(struct fault_folder *folder)
{
    cli_folder_create(&folder->files, "fault");
    cli_folder_place(&folder->files, "list", folder->list);
}

// What the program printed.

static bool is_told(const char *text, size_t size, uint64_t number)
{
    static const char mark[] = "the plugin fault injected ";
    char part[32];
    const int length = snprintf(part, sizeof part, "(number %" PRIu64 ", ", number);
    return memmem(text, size, mark, sizeof mark - 1) && memmem(text, size, part, (size_t)length);
}

static void find_last_line(const char *text, size_t size, char *out, size_t out_size)
{
    char line[96];
    while (size > 0 && strchr("\n\r ", text[size - 1]))
        size--;
    const char *newline = size > 0 ? memrchr(text, '\n', size) : NULL;
    const char *begin = newline ? newline + 1 : text;
    const size_t length = (size_t)(text + size - begin);
    snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1),
             begin);
    weir_text_escape(out, out_size, line, "");
}

// Returns whether the cause is in it.
static bool read_output(const struct cli_content *output, uint64_t number, struct fault_run *run)
{
    static const struct weir_siphash_key key = {{1, 2}};
    if (output->size == 0)
        return false;
    find_last_line(output->bytes, output->size, run->last_line, sizeof run->last_line);
    run->digest = weir_siphash(&key, output->bytes, output->size);
    return is_told(output->bytes, output->size, number);
}

// The outcome.

static bool is_recovered(const struct fault_plan *plan, const struct fault_run *run, bool told)
{
    return strcmp(plan->fault, "slow") == 0 ||
           (plan->options->recovers && (told || run->digest == plan->digest));
}

static enum fault_outcome judge(const struct fault_plan *plan, const struct fault_run *run,
                                bool late, bool reached, bool told)
{
    if (late)
        return FAULT_HANG;
    if (run->code > CLI_SIGNALLED)
        return FAULT_CRASH;
    if (!reached)
        return FAULT_NOT_REACHED;
    if (run->code == 0)
        return is_recovered(plan, run, told) ? FAULT_RECOVERED : FAULT_UNNOTICED;
    return told ? FAULT_TOLD : FAULT_NO_CAUSE;
}

static struct cli_program_end run_with(const struct fault_options *options,
                                       const struct fault_folder *folder,
                                       const struct cli_program *base, const char *fault,
                                       uint64_t at, uint64_t one_in, struct cli_content *out_output)
{
    char numbers[4][32];
    const uint64_t values[] = {at, one_in, options->seed, options->delay_ms};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        snprintf(numbers[i], sizeof numbers[i], "%" PRIu64, values[i]);
    const struct cli_program_variable variables[] = {
        {"WEIR_FAULT_FAULT", fault},          {"WEIR_FAULT_AT", numbers[0]},
        {"WEIR_FAULT_ONE_IN", numbers[1]},    {"WEIR_FAULT_SEED", numbers[2]},
        {"WEIR_FAULT_DELAY_MS", numbers[3]},  {"WEIR_FAULT_KINDS", options->kinds},
        {"WEIR_FAULT_QUEUE", options->queue}, {"WEIR_FAULT_LABEL", options->label},
        {"WEIR_FAULT_LIST", folder->list},
    };
    struct cli_program program = *base;
    program.variables = variables;
    program.variable_count = sizeof variables / sizeof *variables;
    unlink(folder->list);
    return out_output ? cli_program_capture(&program, &folder->files, out_output, NULL)
                      : cli_program_run(&program);
}

// Runs the program with the fault at `item`, or with none if it is NULL: the list then has all
// chosen operations. With threads the number may be another operation's in this run; `out_run` has
// the one that got the fault.
static void run_hidden(const struct fault_plan *plan, const struct fault_item *item,
                       struct fault_run *out_run)
{
    struct cli_content output;
    size_t reached;
    const struct cli_program program = {.command = plan->command, .limit_ms = plan->limit_ms};
    const struct cli_program_end end = run_with(plan->options, plan->folder, &program, plan->fault,
                                                item ? item->number : 0, 0, &output);
    *out_run = (struct fault_run){.fault = plan->fault, .code = end.code};
    const bool told = read_output(&output, item ? item->number : 0, out_run);
    free(output.bytes);
    if (!item)
        return;
    const struct fault_item *got = list_read(plan->folder->list, &reached);
    out_run->item = reached > 0 ? got[0] : *item;
    out_run->outcome = judge(plan, out_run, end.late, reached > 0, told);
}

// A run for each chosen operation. The first run of each kind of fault has none: it lists the
// operations, and shows how long the program takes.

static void keep(struct fault_walk *walk, const struct fault_run *run)
{
    walk->runs = cli_grow(walk->runs, walk->count, &walk->capacity, sizeof *walk->runs);
    walk->runs[walk->count++] = *run;
    walk->counts[run->outcome]++;
}

// A program that fails anyway would hide what the faults do.
static void check_first(const struct fault_plan *plan, const struct fault_run *run)
{
    if (run->code != 0)
        cli_fail(CLI_FAILED,
                 "%s ends with %d without any fault, and so says nothing about faults; mend that "
                 "first%s%s",
                 plan->command[0], run->code, run->last_line[0] ? "; its last line: " : "",
                 run->last_line);
}

static uint64_t limit_of(const struct fault_options *options, uint64_t first_ns)
{
    return options->limit_s ? options->limit_s * 1000
                            : 10000 + 10 * (first_ns / 1000000) + options->delay_ms;
}

static void run_items(const struct fault_plan *plan, const struct fault_item *items, size_t count,
                      struct fault_walk *walk)
{
    const uint64_t every = plan->options->every;
    struct cli_progress progress;
    struct fault_run run;
    char text[256];
    cli_progress_start(&progress, true, count / every, NULL);
    for (size_t i = every - 1; i < count && !cli_program_signal(); i += every) {
        cli_progress_update(&progress, (i + 1) / every - 1,
                            fault_item_text(&items[i], text, sizeof text));
        run_hidden(plan, &items[i], &run);
        if (!cli_program_signal()) // which may have ended the program too
            keep(walk, &run);
    }
    cli_progress_end(&progress);
}

static void walk_fault(struct fault_plan *plan, struct fault_walk *walk)
{
    size_t count;
    struct fault_run first;
    const uint64_t start = cli_now_ns();
    plan->limit_ms = plan->options->limit_s * 1000;
    run_hidden(plan, NULL, &first);
    plan->limit_ms = limit_of(plan->options, cli_now_ns() - start);
    plan->digest = first.digest;
    if (cli_program_signal())
        return;
    check_first(plan, &first);
    const struct fault_item *items = list_read(plan->folder->list, &count);
    walk->operations += count;
    run_items(plan, items, count, walk);
}

static int fault_walk(const struct fault_options *options, const struct fault_folder *folder,
                      char **command)
{
    struct fault_plan plan = {.options = options, .folder = folder, .command = command};
    struct fault_walk walk = {.command = command, .options = options};
    char *rest = NULL;
    cli_program_begin_series();
    for (char *name = strtok_r(cli_copy(options->fault), ",", &rest); name && !cli_program_signal();
         name = strtok_r(NULL, ",", &rest)) {
        plan.fault = name;
        walk_fault(&plan, &walk);
    }
    if (walk.operations == 0 && !cli_program_signal())
        cli_fail(CLI_FAILED,
                 "%s has no operation for a fault: it opened no runtime of Weir's, or one whose "
                 "plugins the program names itself; list fault there. Or --kinds, --queue and "
                 "--label choose none",
                 command[0]);
    const int code = fault_report_print(&walk);
    return cli_program_signal() ? CLI_SIGNALLED + cli_program_signal() : code;
}

#define NUMBER_MAX UINT64_C(1000000000000)
#define DAY_S 86400

static const char about[] =
    "Runs COMMAND, any program that uses Weir, with the plugin `fault` in its chain. With --at or\n"
    "--one-in, once: operations get a fault, and the exit status is COMMAND's. With --every, once\n"
    "for each operation: the list shows those whose fault COMMAND does not survive with an exit\n"
    "status other than 0 and a message that has the cause. Options come before COMMAND; what\n"
    "follows it are its arguments.\n"
    "\n"
    "  weir fault --every 1 ./program\n"
    "  weir fault --fault fail --at 17 ./program";

static char **parse(struct fault_options *out, int argc, char **argv)
{
    const struct cli_option options[] = {
        {"at", "N", "run once; operation N gets the fault", CLI_COUNT, &out->at, 1, NUMBER_MAX},
        {"one-in", "N", "run once; one in N operations, drawn by --seed, gets the\nfault",
         CLI_COUNT, &out->one_in, 1, NUMBER_MAX},
        {"seed", "N", "for --one-in; without it, 0", CLI_COUNT, &out->seed, 0, UINT32_MAX},
        {"every", "N", "run once for each N-th operation, which gets the fault", CLI_COUNT,
         &out->every, 1, NUMBER_MAX},
        {"fault", "LIST",
         "refuse, fail, slow, lose, memory or garbage; without it,\nrefuse, and with --every "
         "refuse,fail,memory",
         CLI_TEXT, &out->fault, 0, 0},
        {"kinds", "LIST", "choose only such operations, as `copy,launch`", CLI_TEXT, &out->kinds, 0,
         0},
        {"queue", "LABEL", "choose only operations on queues of this label", CLI_TEXT, &out->queue,
         0, 0},
        {"label", "LABEL", "choose only launches of this kernel, and uses of this\nbuffer",
         CLI_TEXT, &out->label, 0, 0},
        {"delay-ms", "N", "for slow: how long the operation waits; without it, 1000", CLI_COUNT,
         &out->delay_ms, 1, 3600000},
        {"limit", "SECONDS",
         "kill COMMAND after this time; without it, with --every, ten\ntimes that of the first run "
         "and 10 seconds",
         CLI_COUNT, &out->limit_s, 1, DAY_S},
        {"recovers", NULL,
         "with --every: 0 is right where COMMAND has told the cause, or\nprinted the same as "
         "without a fault",
         CLI_FLAG, &out->recovers, 0, 0},
        {"all", NULL, "with --every: list all runs", CLI_FLAG, &out->all, 0, 0},
        {"json", NULL, "with --every: print JSON, with all runs", CLI_FLAG, &out->json, 0, 0},
        CLI_QUIET("print nothing but errors and the list"),
    };
    const struct cli_usage usage =
        CLI_FORM_PROGRAM("weir fault", "COMMAND [ARGUMENT]...", about, "weir-fault(1)", options);
    return cli_program_parse(&usage, argc, argv);
}

// Checks.

static void check_kinds(const char *list)
{
    static const char *const kinds[] = {"refuse", "fail",    "slow", "lose",
                                        "memory", "garbage", NULL};
    char *rest = NULL;
    if (!*list || strlen(list) >= 256)
        cli_fail(CLI_USAGE,
                 "--fault takes a kind, such as refuse, or several with commas between them");
    for (char *name = strtok_r(cli_copy(list), ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        cli_choose("fault", name, kinds);
}

static void check(struct fault_options *options)
{
    const bool walks = options->every > 0;
    if ((options->at > 0) + (options->one_in > 0) + walks != 1)
        cli_fail(CLI_USAGE, "weir fault needs one of --at, --one-in and --every");
    if (!walks && (options->recovers || options->all || options->json))
        cli_fail(CLI_USAGE, "--recovers, --all and --json need --every");
    if (!options->fault)
        options->fault = walks ? "refuse,fail,memory" : "refuse";
    check_kinds(options->fault);
    // The environment has a line for each setting.
    if (strchr(options->kinds, '\n') || strchr(options->queue, '\n') ||
        strchr(options->label, '\n'))
        cli_fail(CLI_USAGE, "--kinds, --queue and --label take one line");
    if (!walks && strchr(options->fault, ','))
        cli_fail(CLI_USAGE, "--fault takes one kind without --every");
    if (options->kinds[0] && strchr(options->fault, ','))
        cli_fail(CLI_USAGE,
                 "--kinds needs one kind of --fault, as other faults happen to other operations");
}

// A single run.

static int tell(const struct fault_options *options, const struct fault_folder *folder,
                const char *command, const struct cli_program_end *end)
{
    size_t count;
    char text[256];
    char place[300];
    const struct fault_item *items = list_read(folder->list, &count);
    if (end->late)
        cli_error("%s was killed after %" PRIu64 " s", command, options->limit_s);
    if (count == 0 && end->code == 0)
        cli_fail(CLI_FAILED,
                 "no operation of %s got a fault: it has fewer than the number, --kinds, --queue "
                 "and --label choose none, or it names its plugins itself and leaves out fault",
                 command);
    for (size_t i = 0; i < count; i++) {
        fault_item_place(&items[i], place, sizeof place);
        cli_note("operation %" PRIu64 " got the fault '%s': %s%s%s", items[i].number,
                 options->fault, fault_item_text(&items[i], text, sizeof text),
                 place[0] ? " at " : "", place);
    }
    return end->code;
}

// In the open, with the options' `at` or `one_in`.
static int run_once(const struct fault_options *options, const struct fault_folder *folder,
                    char **command)
{
    const struct cli_program program = {.command = command, .limit_ms = options->limit_s * 1000};
    const struct cli_program_end end =
        run_with(options, folder, &program, options->fault, options->at, options->one_in, NULL);
    return tell(options, folder, command[0], &end);
}

int cli_fault(int argc, char **argv)
{
    static struct fault_folder folder;
    struct fault_options options = {.kinds = "", .queue = "", .label = "", .delay_ms = 1000};
    char **command = parse(&options, argc, argv);
    check(&options);
    cli_program_add_plugin("fault");
    folder_create(&folder);
    return options.every ? fault_walk(&options, &folder, command)
                         : run_once(&options, &folder, command);
}
