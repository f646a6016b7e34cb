// weir fault: options, and a single run.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fault/fault.h"

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

static bool parse(struct fault_options *out, int argc, char **argv, char ***out_command,
                  int *out_exit)
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
        {"quiet", NULL, "print nothing but errors and the list", CLI_FLAG, &out->quiet, 0, 0},
    };
    const struct cli_usage usage =
        CLI_FORM_PROGRAM("weir fault", "COMMAND [ARGUMENT]...", about, "weir-fault(1)", options);
    return cli_program_parse(&usage, argc, argv, out_command, out_exit);
}

// Checks.

static bool is_kind(const char *name)
{
    static const char *const kinds[] = {"refuse", "fail", "slow", "lose", "memory", "garbage"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i], name) == 0)
            return true;
    const char *nearest = weir_text_nearest(name, kinds, sizeof kinds / sizeof *kinds);
    if (nearest)
        cli_error("--fault has no '%s'; did you mean '%s'?", name, nearest);
    else
        cli_error("--fault has no '%s'; it has refuse, fail, slow, lose, memory and garbage", name);
    return false;
}

static bool check_kinds(const char *list)
{
    char names[256];
    char *rest = NULL;
    if (!*list || strlen(list) >= sizeof names) {
        cli_error("--fault takes a kind, such as refuse, or several with commas between them");
        return false;
    }
    snprintf(names, sizeof names, "%s", list);
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (!is_kind(name))
            return false;
    return true;
}

// The environment has a line for each setting.
static bool check_lines(const struct fault_options *options)
{
    if (!strchr(options->kinds, '\n') && !strchr(options->queue, '\n') &&
        !strchr(options->label, '\n'))
        return true;
    cli_error("--kinds, --queue and --label take one line");
    return false;
}

static bool check(struct fault_options *options)
{
    const bool walks = options->every > 0;
    if ((options->at > 0) + (options->one_in > 0) + walks != 1) {
        cli_error("weir fault needs one of --at, --one-in and --every");
        return false;
    }
    if (!walks && (options->recovers || options->all || options->json)) {
        cli_error("--recovers, --all and --json need --every");
        return false;
    }
    if (!options->fault)
        options->fault = walks ? "refuse,fail,memory" : "refuse";
    if (!check_kinds(options->fault) || !check_lines(options))
        return false;
    if (!strchr(options->fault, ','))
        return true;
    if (!walks) {
        cli_error("--fault takes one kind without --every");
        return false;
    }
    if (options->kinds[0]) {
        cli_error("--kinds needs one kind of --fault, as other faults happen to other operations");
        return false;
    }
    return true;
}

// A single run.

static int tell(const struct fault_options *options, const struct fault_folder *folder,
                const char *command, const struct cli_program_end *end)
{
    struct fault_item *items;
    size_t count;
    char text[256];
    char place[300];
    if (!fault_list_read(folder->list, &items, &count))
        return CLI_FAILED;
    if (end->late)
        cli_error("%s was killed after %" PRIu64 " s", command, options->limit_s);
    if (count == 0 && end->code == 0) {
        cli_error("no operation of %s got a fault: it has fewer than the number, --kinds, --queue "
                  "and --label choose none, or it names its plugins itself and leaves out fault",
                  command);
        return CLI_FAILED;
    }
    for (size_t i = 0; i < count && !options->quiet; i++) {
        fault_item_place(&items[i], place, sizeof place);
        cli_note("operation %" PRIu64 " got the fault '%s': %s%s%s", items[i].number,
                 options->fault, fault_item_text(&items[i], text, sizeof text),
                 place[0] ? " at " : "", place);
    }
    free(items);
    return end->code;
}

static int run_once(const struct fault_options *options, const struct fault_folder *folder,
                    char **command)
{
    struct cli_program_end end;
    if (!fault_run_open(options, folder, command, &end))
        return CLI_SETUP;
    return tell(options, folder, command[0], &end);
}

static int fault_main(int argc, char **argv)
{
    struct fault_options options = {.kinds = "", .queue = "", .label = "", .delay_ms = 1000};
    struct fault_folder folder;
    char **command;
    int code;
    if (!parse(&options, argc, argv, &command, &code))
        return code;
    if (!check(&options))
        return CLI_USAGE;
    if (!cli_program_add_plugin("fault"))
        return cli_weir_error();
    if (!fault_folder_create(&folder))
        return CLI_FAILED;
    code = options.every ? fault_walk(&options, &folder, command)
                         : run_once(&options, &folder, command);
    cli_folder_remove(&folder.files);
    return code;
}

const struct cli_command cli_fault = {
    .name = "fault",
    .summary = "run a program with faults in its operations",
    .main = fault_main,
};
