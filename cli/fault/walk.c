// A run for each chosen operation. The first run of each kind of fault has none: it lists the
// operations, and shows how long the program takes.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/clock.h"
#include "cli/common/progress.h"
#include "cli/fault/fault.h"

// The program is run again and again, so it gets no input.
static bool close_input(void)
{
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
        return false;
    if (nothing != STDIN_FILENO)
        close(nothing);
    return true;
}

static bool keep(struct fault_walk *walk, const struct fault_run *run)
{
    if (walk->count == walk->capacity) {
        const size_t capacity = walk->capacity ? 2 * walk->capacity : 256;
        struct fault_run *runs = realloc(walk->runs, capacity * sizeof *runs);
        if (!runs) {
            cli_error("no memory is left for the outcomes; use --every with a larger number");
            return false;
        }
        walk->runs = runs;
        walk->capacity = capacity;
    }
    walk->runs[walk->count++] = *run;
    walk->counts[run->outcome]++;
    return true;
}

// A program that fails anyway would hide what the faults do.
static bool check_first(const struct fault_plan *plan, const struct fault_run *run)
{
    if (run->code == 0)
        return true;
    cli_error("%s ends with %d without any fault, and so says nothing about faults; mend that "
              "first%s%s",
              plan->command[0], run->code, run->last_line[0] ? "; its last line: " : "",
              run->last_line);
    return false;
}

static uint64_t limit_of(const struct fault_options *options, uint64_t first_ns)
{
    return options->limit_s ? options->limit_s * 1000
                            : 10000 + 10 * (first_ns / 1000000) + options->delay_ms;
}

static bool run_items(const struct fault_plan *plan, const struct fault_item *items, size_t count,
                      struct fault_walk *walk)
{
    const uint64_t every = plan->options->every;
    struct cli_progress progress;
    struct fault_run run;
    char text[256];
    bool ok = true;
    cli_progress_start(&progress, !plan->options->quiet, count / every, NULL);
    for (size_t i = every - 1; i < count && ok && !cli_program_signal(); i += every) {
        cli_progress_update(&progress, (i + 1) / every - 1,
                            fault_item_text(&items[i], text, sizeof text));
        ok = fault_run_hidden(plan, &items[i], &run);
        // A signal to this process may have ended the program too.
        ok = ok && (cli_program_signal() || keep(walk, &run));
    }
    cli_progress_end(&progress);
    return ok;
}

static bool walk_fault(struct fault_plan *plan, struct fault_walk *walk)
{
    struct fault_item *items;
    size_t count;
    struct fault_run first;
    const uint64_t start = cli_now_ns();
    plan->limit_ms = plan->options->limit_s * 1000;
    if (!fault_run_hidden(plan, NULL, &first))
        return false;
    plan->limit_ms = limit_of(plan->options, cli_now_ns() - start);
    plan->digest = first.digest;
    if (cli_program_signal())
        return true;
    if (!check_first(plan, &first) || !fault_list_read(plan->folder->list, &items, &count))
        return false;
    walk->operations += count;
    const bool ok = run_items(plan, items, count, walk);
    free(items);
    return ok;
}

static bool has_runs(const struct fault_walk *walk)
{
    if (walk->operations > 0 || cli_program_signal())
        return true;
    cli_error("%s has no operation for a fault: it opened no runtime of Weir's, or one whose "
              "plugins the program names itself; list fault there. Or --kinds, --queue and --label "
              "choose none",
              walk->command[0]);
    return false;
}

// `names` is cut into its parts.
static bool walk_all(struct fault_plan *plan, char *names, struct fault_walk *walk)
{
    char *rest = NULL;
    bool ok = true;
    for (char *name = strtok_r(names, ",", &rest); name && ok && !cli_program_signal();
         name = strtok_r(NULL, ",", &rest)) {
        plan->fault = name;
        ok = walk_fault(plan, walk);
    }
    return ok && has_runs(walk);
}

int fault_walk(const struct fault_options *options, const struct fault_folder *folder,
               char **command)
{
    struct fault_plan plan = {.options = options, .folder = folder, .command = command};
    struct fault_walk walk = {.command = command, .options = options};
    char *names = strdup(options->fault);
    cli_program_begin_series();
    const bool ok = names && close_input() && walk_all(&plan, names, &walk);
    cli_program_end_series();
    int code = ok ? fault_report_print(&walk) : CLI_FAILED;
    if (cli_program_signal())
        code = CLI_SIGNALLED + cli_program_signal();
    free(walk.runs);
    free(names);
    return code;
}
