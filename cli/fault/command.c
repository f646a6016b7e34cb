// weir fault: options, a single run, and a run for each operation; the operations that the plugin chose, and what
// became of the runs.
#define _GNU_SOURCE     // memmem
#define _DEFAULT_SOURCE // strsep
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "cli/common/folder.h"
#include "cli/common/output.h"
#include "cli/common/own.h"
#include "cli/common/progress.h"
#include "cli/program/program.h"

struct options {
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
struct item {
    uint64_t number;
    const char *kind;
    const char *queue;
    const char *label;
    const char *file; // "" if unknown
    int line;
};

enum outcome {
    TOLD,        // an exit status that is not 0, and the cause on its output
    RECOVERED,   // exit status 0, where the options or the kind of fault allow it
    NOT_REACHED, // this run took another course
    CRASH,       // ended by a signal
    HANG,        // killed after the limit
    UNNOTICED,   // exit status 0
    NO_CAUSE,    // another exit status, and no message of the fault
    OUTCOMES,
};

static bool is_finding(enum outcome outcome)
{
    return outcome >= CRASH;
}

struct run {
    const char *fault; // the kind
    struct item item;  // that got it, or was to get it
    enum outcome outcome;
    int code;           // the program's, as in cli_program_end
    char last_line[96]; // of what it printed
    uint64_t digest;    // of all that it printed
};

// The command's own: a program, its faults, and what became of its runs.
struct walk {
    char **command;
    struct options options;
    const char *folder;
    const char *list;        // the file of the plugin's list
    const char *fault;       // of the runs now
    uint64_t limit_ms;       // 0: none
    uint64_t digest;         // of a run without a fault
    struct weir_table table; // of the runs that are listed
    json_t *runs;            // of all, with --json
    struct run finding;      // the first one, if there are some
    size_t findings;
    size_t count;      // of runs
    size_t operations; // that were chosen, of all faults
    size_t counts[OUTCOMES];
};

// The plugin's list: a line for each operation, with tabs between its fields. The plugin has
// escaped the texts.

static struct item read_row(char *row)
{
    const char *fields[6];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *field = strsep(&row, "\t");
        fields[i] = field ? field : "";
    }
    return (struct item){
        .number = strtoull(fields[0], NULL, 10),
        .kind = fields[1],
        .queue = fields[2],
        .label = fields[3],
        .file = fields[4],
        .line = (int)strtol(fields[5], NULL, 10),
    };
}

// Reads the list that the plugin wrote. None is an empty list.
//
// Ownership: the command's.
static struct item *read_list(const struct walk *walk, size_t *out_count)
{
    const struct cli_content content = cli_content_read(walk->list);
    struct item *items = NULL;
    size_t capacity = 0;
    char *rest = content.bytes ? cli_copy(content.bytes) : NULL;
    free(content.bytes);
    char *end = rest ? strrchr(rest, '\n') : NULL;
    if (rest) // a last line without its end is not whole
        *(end ? end + 1 : rest) = '\0';
    for (*out_count = 0; rest && *rest; ++*out_count) {
        items = cli_grow(items, *out_count, &capacity, sizeof *items);
        items[*out_count] = read_row(strsep(&rest, "\n"));
    }
    return items;
}

// "copy 'frame' on 'up'".
static const char *text_of(const struct item *item)
{
    struct weir_long_text text = {0};
    weir_long_text_add(&text, "%s", item->kind);
    if (item->label[0])
        weir_long_text_add(&text, " '%s'", item->label);
    if (item->queue[0] && strcmp(item->kind, "new-queue") != 0)
        weir_long_text_add(&text, " on '%s'", item->queue);
    return cli_take_text(&text);
}

// "app.c:80" or "".
static const char *place_of(const struct item *item)
{
    const char *slash = strrchr(item->file, '/');
    return item->file[0] ? cli_text("%s:%d", slash ? slash + 1 : item->file, item->line) : "";
}

// What the walk found, as text and as JSON.

static const struct {
    const char *name;
    const char *sum; // what so many runs did
} outcomes[OUTCOMES] = {
    [TOLD] = {"told", "told the cause"},
    [RECOVERED] = {"recovered", "ended well"},
    [NOT_REACHED] = {"not reached", "did not come to the operation"},
    [CRASH] = {"crash", "crashed"},
    [HANG] = {"hang", "hung"},
    [UNNOTICED] = {"unnoticed", "ended with 0 as if nothing had happened"},
    [NO_CAUSE] = {"no cause", "failed without telling the cause"},
};

static const char *outcome_text(const struct run *run)
{
    const char *name = outcomes[run->outcome].name;
    switch (run->outcome) {
    case CRASH:
        return cli_text("crash: %s", weir_text_signal(run->code - CLI_SIGNALLED).text);
    case HANG:
        return "hang: killed";
    case TOLD:
    case UNNOTICED:
    case NO_CAUSE:
        return cli_text("exit %d: %s%s", run->code, name, run->outcome == NO_CAUSE ? " told" : "");
    default:
        return name;
    }
}

static void print_repeat(const struct walk *walk)
{
    const struct run *run = &walk->finding;
    const struct options *options = &walk->options;
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

static void print_text(struct walk *walk)
{
    const char *separator = ": ";
    if (walk->findings || (walk->options.all && walk->count))
        cli_table_print(&walk->table, stdout, 0);
    printf("%s%zu operation%s, %zu run%s with a fault", walk->findings ? "\n" : "",
           walk->operations, walk->operations == 1 ? "" : "s", walk->count,
           walk->count == 1 ? "" : "s");
    for (enum outcome i = 0; i < OUTCOMES; i++) {
        if (walk->counts[i] == 0)
            continue;
        printf("%s%zu %s", separator, walk->counts[i], outcomes[i].sum);
        separator = ", ";
    }
    printf("\n");
    if (walk->findings)
        print_repeat(walk);
}

static json_t *run_json(const struct run *run)
{
    json_t *object = json_object();
    cli_json_set(object, "fault", cli_json_string(run->fault));
    cli_json_set(object, "number", weir_json_count(run->item.number));
    cli_json_set(object, "kind", cli_json_string(run->item.kind));
    cli_json_set(object, "queue", cli_json_string(run->item.queue));
    cli_json_set(object, "label", cli_json_string(run->item.label));
    cli_json_set(object, "file", cli_json_string(run->item.file));
    cli_json_set(object, "line", json_integer(run->item.line));
    cli_json_set(object, "outcome", cli_json_string(outcomes[run->outcome].name));
    cli_json_set(object, "finding", json_boolean(is_finding(run->outcome)));
    cli_json_set(object, "exit", json_integer(run->code));
    cli_json_set(object, "last_line", cli_json_string(run->last_line));
    return object;
}

static int print_json(const struct walk *walk, int code)
{
    json_t *object = json_object();
    cli_json_set(object, "operations", weir_json_count(walk->operations));
    cli_json_set(object, "findings", weir_json_count(walk->findings));
    cli_json_set(object, "runs", walk->runs);
    return cli_json_print(object, code);
}

// Lists the run, and counts it.
static void keep_run(struct walk *walk, const struct run *run)
{
    const bool finding = is_finding(run->outcome);
    if (walk->options.json)
        cli_json_append(walk->runs, run_json(run));
    else if (finding || walk->options.all)
        weir_table_add(&walk->table, "%s\t%" PRIu64 "\t%s\t%s\t%s\t%.60s", run->fault,
                       run->item.number, text_of(&run->item), place_of(&run->item),
                       outcome_text(run), run->last_line);
    if (finding && walk->findings++ == 0)
        walk->finding = *run;
    walk->count++;
    walk->counts[run->outcome]++;
}

// One run of the program, of which only the outcome is shown.

static bool is_told(const struct cli_content *output, uint64_t number)
{
    static const char mark[] = "the plugin fault injected ";
    char part[32];
    const int length = snprintf(part, sizeof part, "(number %" PRIu64 ", ", number);
    return memmem(output->bytes, output->size, mark, sizeof mark - 1) &&
           memmem(output->bytes, output->size, part, (size_t)length);
}

static void find_last_line(const struct cli_content *output, char *out, size_t out_size)
{
    char line[96];
    size_t size = output->size;
    while (size > 0 && strchr("\n\r ", output->bytes[size - 1]))
        size--;
    const char *newline = size > 0 ? memrchr(output->bytes, '\n', size) : NULL;
    const char *begin = newline ? newline + 1 : output->bytes;
    const size_t length = (size_t)(output->bytes + size - begin);
    snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1),
             begin);
    weir_text_escape(out, out_size, line, "");
}

static enum outcome judge(const struct walk *walk, const struct run *run, bool late, bool reached,
                          bool told)
{
    if (late)
        return HANG;
    if (run->code > CLI_SIGNALLED)
        return CRASH;
    if (!reached)
        return NOT_REACHED;
    if (run->code != 0)
        return told ? TOLD : NO_CAUSE;
    const bool same = run->digest == walk->digest;
    const bool may_end_well =
        strcmp(walk->fault, "slow") == 0 || (walk->options.recovers && (told || same));
    return may_end_well ? RECOVERED : UNNOTICED;
}

// Without `out_output` the program prints as it does.
static struct cli_program_end run_with(const struct walk *walk, uint64_t at, uint64_t one_in,
                                       struct cli_content *out_output)
{
    const struct options *options = &walk->options;
    const char *const variables[] = {
        cli_text("WEIR_FAULT_FAULT=%s", walk->fault),
        cli_text("WEIR_FAULT_AT=%" PRIu64, at),
        cli_text("WEIR_FAULT_ONE_IN=%" PRIu64, one_in),
        cli_text("WEIR_FAULT_SEED=%" PRIu64, options->seed),
        cli_text("WEIR_FAULT_DELAY_MS=%" PRIu64, options->delay_ms),
        cli_text("WEIR_FAULT_KINDS=%s", options->kinds),
        cli_text("WEIR_FAULT_QUEUE=%s", options->queue),
        cli_text("WEIR_FAULT_LABEL=%s", options->label),
        cli_text("WEIR_FAULT_LIST=%s", walk->list),
    };
    const struct cli_program program = {
        .command = walk->command,
        .variables = variables,
        .variable_count = sizeof variables / sizeof *variables,
        .limit_ms = walk->limit_ms,
    };
    unlink(walk->list);
    return out_output ? cli_program_capture(&program, walk->folder, out_output, NULL)
                      : cli_program_run(&program);
}

// Runs the program with the fault at `item`, or with none if it is NULL: the list then has all
// chosen operations. With threads the number may be another operation's in this run; the returned run has
// the one that got the fault.
static struct run run_hidden(const struct walk *walk, const struct item *item)
{
    const uint64_t number = item ? item->number : 0;
    struct cli_content output;
    size_t reached;
    const struct cli_program_end end = run_with(walk, number, 0, &output);
    struct run run = {.fault = walk->fault, .code = end.code};
    const bool told = output.size && is_told(&output, number);
    if (output.size) {
        run.digest = weir_hash(0, output.bytes, output.size);
        find_last_line(&output, run.last_line, sizeof run.last_line);
    }
    free(output.bytes);
    if (!item)
        return run;
    const struct item *got = read_list(walk, &reached);
    run.item = reached > 0 ? got[0] : *item;
    run.outcome = judge(walk, &run, end.late, reached > 0, told);
    return run;
}

// A run for each chosen operation. The first run of each kind of fault has none: it lists the
// operations, and shows how long the program takes.

static void run_items(struct walk *walk, const struct item *items, size_t count)
{
    const uint64_t every = walk->options.every;
    struct cli_progress progress;
    cli_progress_start(&progress, true, count / every, NULL);
    for (size_t i = every - 1; i < count && !cli_program_signal(); i += every) {
        cli_progress_update(&progress, (i + 1) / every - 1, text_of(&items[i]));
        const struct run run = run_hidden(walk, &items[i]);
        if (cli_program_signal()) // which may have ended the program too
            break;
        keep_run(walk, &run);
    }
    cli_progress_end(&progress);
}

static void walk_fault(struct walk *walk)
{
    const struct options *options = &walk->options;
    const uint64_t start = cli_now_ns();
    size_t count;
    walk->limit_ms = options->limit_s * 1000;
    const struct run first = run_hidden(walk, NULL);
    if (!options->limit_s)
        walk->limit_ms = 10000 + 10 * ((cli_now_ns() - start) / 1000000) + options->delay_ms;
    walk->digest = first.digest;
    if (cli_program_signal())
        return;
    if (first.code != 0) // what the faults do would be hidden
        cli_fail(CLI_FAILED,
                 "%s ends with %d without any fault, and so says nothing about faults; mend that "
                 "first%s%s",
                 walk->command[0], first.code, first.last_line[0] ? "; its last line: " : "",
                 first.last_line);
    const struct item *items = read_list(walk, &count);
    walk->operations += count;
    run_items(walk, items, count);
}

static int run_all(struct walk *walk)
{
    char *rest = NULL;
    walk->table.alignment = "lrllll";
    if (walk->options.json)
        walk->runs = json_array();
    else
        weir_table_add(&walk->table,
                       "fault\tnumber\toperation\tat\toutcome\tthe last line that it printed");
    cli_program_begin_series();
    for (char *name = strtok_r(cli_copy(walk->options.fault), ",", &rest);
         name && !cli_program_signal(); name = strtok_r(NULL, ",", &rest)) {
        walk->fault = name;
        walk_fault(walk);
    }
    if (walk->operations == 0 && !cli_program_signal())
        cli_fail(CLI_FAILED,
                 "%s has no operation for a fault: it opened no runtime of Weir's, or one whose "
                 "plugins the program names itself; list fault there. Or --kinds, --queue and "
                 "--label choose none",
                 walk->command[0]);
    int code = walk->findings ? CLI_FAILED : CLI_OK;
    if (walk->options.json)
        code = print_json(walk, code);
    else
        print_text(walk);
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

static char **parse(struct options *out, int argc, char **argv)
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
        CLI_FORM_PROGRAM("weir fault", "COMMAND [ARGUMENT]...", about, options);
    return cli_program_parse(&usage, argc, argv);
}

// Checks.

static void check(struct options *options)
{
    static const char *const kinds[] = {"refuse", "fail",    "slow", "lose",
                                        "memory", "garbage", NULL};
    const bool walks = options->every > 0;
    char *rest = NULL;
    if ((options->at > 0) + (options->one_in > 0) + walks != 1)
        cli_fail(CLI_USAGE, "weir fault needs one of --at, --one-in and --every");
    if (!walks && (options->recovers || options->all || options->json))
        cli_fail(CLI_USAGE, "--recovers, --all and --json need --every");
    if (!options->fault)
        options->fault = walks ? "refuse,fail,memory" : "refuse";
    if (!*options->fault)
        cli_fail(CLI_USAGE,
                 "--fault takes a kind, such as refuse, or several with commas between them");
    for (char *name = strtok_r(cli_copy(options->fault), ",", &rest); name;
         name = strtok_r(NULL, ",", &rest))
        cli_choose("fault", name, kinds);
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

// A single run in the open, with the options' `at` or `one_in`.
static int run_once(struct walk *walk)
{
    const struct options *options = &walk->options;
    const char *command = walk->command[0];
    size_t count;
    walk->fault = options->fault;
    walk->limit_ms = options->limit_s * 1000;
    const struct cli_program_end end = run_with(walk, options->at, options->one_in, NULL);
    const struct item *items = read_list(walk, &count);
    if (end.late)
        cli_error("%s was killed after %" PRIu64 " s", command, options->limit_s);
    if (count == 0 && end.code == 0)
        cli_fail(CLI_FAILED,
                 "no operation of %s got a fault: it has fewer than the number, --kinds, --queue "
                 "and --label choose none, or it names its plugins itself and leaves out fault",
                 command);
    for (size_t i = 0; i < count; i++)
        cli_note("operation %" PRIu64 " got the fault '%s': %s%s%s", items[i].number,
                 options->fault, text_of(&items[i]), items[i].file[0] ? " at " : "",
                 place_of(&items[i]));
    return end.code;
}

int cli_fault(int argc, char **argv)
{
    static struct walk walk = {
        .options = {.kinds = "", .queue = "", .label = "", .delay_ms = 1000}};
    walk.command = parse(&walk.options, argc, argv);
    check(&walk.options);
    cli_program_add_plugin("fault");
    walk.folder = cli_folder_create("fault");
    walk.list = cli_text("%s/list", walk.folder);
    return walk.options.every ? run_all(&walk) : run_once(&walk);
}
