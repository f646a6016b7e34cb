// Not getopt_long(), which accepts abbreviations, prints messages of its own, and cannot
// suggest the nearest name.
#include "cli/common/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum {
    OPTION_LIMIT = 32,
    HELP_COLUMN = 22
};

static const char help_line[] = "print this text";
static const char version_line[] = "print the version";

static const struct cli_visitor *help_visitor; // of cli_help_visit()

void cli_help_visit(const struct cli_visitor *visitor)
{
    help_visitor = visitor;
}

// Of an option with that name.
static const char *dashes(const char *name)
{
    return name[0] != '\0' && name[1] == '\0' ? "-" : "--";
}

char cli_option_letter(const char *name)
{
    static const char *const names[] = {"help", "output", "quiet"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return name[0];
    return '\0';
}

static void print_option(const char *name, const char *value, const char *help)
{
    const char letter[] = {'-', cli_option_letter(name), ',', ' ', '\0'};
    char left[64];
    snprintf(left, sizeof left, "%s%s%s%s%s", letter[1] ? letter : "", dashes(name), name,
             value ? " " : "", value ? value : "");
    printf("  %-*s", HELP_COLUMN - 2, left);
    if (strlen(left) > HELP_COLUMN - 3)
        printf("\n%*s", HELP_COLUMN, "");
    for (const char *line = help;; line++) {
        size_t length = strcspn(line, "\n");
        printf("%.*s\n", (int)length, line);
        line += length;
        if (*line == '\0')
            return;
        printf("%*s", HELP_COLUMN, "");
    }
}

static void print_help(const struct cli_usage *usage)
{
    if (help_visitor) {
        help_visitor->usage(help_visitor->user, usage);
        return;
    }
    printf("usage: %s [OPTION]...%s%s\n\n%s\n\n", usage->command, *usage->operands ? " " : "",
           usage->operands, usage->about);
    for (size_t i = 0; i < usage->option_count; i++)
        print_option(usage->options[i].name, usage->options[i].value, usage->options[i].help);
    print_option("help", NULL, help_line);
    print_option("version", NULL, version_line);
    printf("\nMore is in %s.\n", usage->manual);
}

static bool is_called(const struct cli_option *option, const char *text, size_t length)
{
    return (strlen(option->name) == length && strncmp(option->name, text, length) == 0) ||
           (length == 1 && cli_option_letter(option->name) == *text);
}

const struct cli_option *cli_option_find(const struct cli_usage *usage, const char *argument,
                                         const char **out_value)
{
    const bool is_long = argument[1] == '-';
    const char *text = argument + 1 + is_long;
    const size_t length = is_long ? strcspn(text, "=") : 1;
    *out_value = NULL;
    if (text[length] != '\0')
        *out_value = text + length + is_long;
    if (is_long && length == 1)
        return NULL;
    for (size_t i = 0; i < usage->option_count; i++)
        if (is_called(&usage->options[i], text, length))
            return &usage->options[i];
    return NULL;
}

static int unknown_option(const struct cli_usage *usage, const char *argument)
{
    const char *text = argument + strspn(argument, "-");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);

    const char *nearest = weir_text_nearer(name, NULL, "help");
    nearest = weir_text_nearer(name, nearest, "version");
    for (size_t i = 0; i < usage->option_count; i++)
        nearest = weir_text_nearer(name, nearest, usage->options[i].name);
    if (nearest)
        cli_error("%s has no option '%s'; did you mean %s%s?", usage->command, argument,
                  dashes(nearest), nearest);
    else
        cli_error("%s has no option '%s'; `%s --help` lists them", usage->command, argument,
                  usage->command);
    return CLI_USAGE;
}

static bool set_count(const struct cli_option *option, const char *text)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < option->minimum ||
        number > option->maximum) {
        cli_error("%s%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'",
                  dashes(option->name), option->name, option->minimum, option->maximum, text);
        return false;
    }
    *(uint64_t *)option->out = number;
    return true;
}

static bool add_to_list(const struct cli_option *option, const char *value)
{
    struct cli_list *list = option->out;
    if (list->count == CLI_LIST_LIMIT) {
        cli_error("%s%s is given more than %d times", dashes(option->name), option->name,
                  CLI_LIST_LIMIT);
        return false;
    }
    list->items[list->count++] = value;
    return true;
}

static bool is_list(enum cli_option_kind kind)
{
    return kind == CLI_LIST || kind == CLI_FILES || kind == CLI_FOLDERS;
}

static bool set(const struct cli_option *option, const char *value)
{
    if (option->kind == CLI_FLAG) {
        *(bool *)option->out = true;
        return true;
    }
    if (option->kind == CLI_COUNT)
        return set_count(option, value);
    if (value[0] == '\0') {
        cli_error("%s%s is empty; give it a %s or leave it out", dashes(option->name), option->name,
                  option->value);
        return false;
    }
    if (is_list(option->kind))
        return add_to_list(option, value);
    *(const char **)option->out = value;
    return true;
}

// Takes the option at argv[*index], with its value from the next argument where it has none
// of its own.
static bool take(const struct cli_usage *usage, int argc, char **argv, int *index, bool *given)
{
    const char *value;
    const struct cli_option *option = cli_option_find(usage, argv[*index], &value);
    if (!option) {
        unknown_option(usage, argv[*index]);
        return false;
    }
    const char *lead = dashes(option->name);
    bool *twice = &given[option - usage->options];
    if (*twice && !is_list(option->kind)) {
        cli_error("%s%s is given twice; give it once", lead, option->name);
        return false;
    }
    *twice = true;
    if (option->kind == CLI_FLAG && value) {
        cli_error("%s%s takes no value, but got '%s'", lead, option->name, value);
        return false;
    }
    if (option->kind != CLI_FLAG && !value) {
        if (*index + 1 >= argc) {
            cli_error("%s%s needs a value: %s%s %s", lead, option->name, lead, option->name,
                      option->value);
            return false;
        }
        value = argv[++*index];
    }
    return set(option, value);
}

static bool check_operands(const struct cli_usage *usage, char **operands, size_t count)
{
    if (count < usage->operand_minimum && !(usage->instead && *usage->instead)) {
        cli_error("%s needs %s: %s %s", usage->command, usage->operand, usage->command,
                  usage->operands);
        return false;
    }
    if (count > usage->operand_maximum) {
        cli_error("%s does not know what to do with '%s'; `%s --help` tells what it takes",
                  usage->command, operands[usage->operand_maximum], usage->command);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (operands[i][0] == '\0') {
            cli_error("%s got an empty name; it needs %s", usage->command, usage->operand);
            return false;
        }
    return true;
}

static bool help_or_version(const struct cli_usage *usage, const char *argument)
{
    if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0)
        print_help(usage);
    else if (strcmp(argument, "--version") == 0)
        cli_print_version();
    else
        return false;
    return true;
}

bool cli_parse(const struct cli_usage *usage, int argc, char **argv, size_t *out_operand_count,
               int *out_exit)
{
    bool given[OPTION_LIMIT] = {false};
    size_t count = 0;
    bool options_ended = false;

    *out_exit = CLI_USAGE;
    for (int i = 1; i < argc; i++) {
        if (options_ended || argv[i][0] != '-' || argv[i][1] == '\0') {
            argv[count++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            options_ended = true;
        } else if (help_or_version(usage, argv[i])) {
            *out_exit = CLI_OK;
            return false;
        } else if (!take(usage, argc, argv, &i, given)) {
            return false;
        }
    }
    *out_operand_count = count;
    return check_operands(usage, argv, count);
}

static void visit_members(const struct cli_command *group, const char *path)
{
    help_visitor->members(help_visitor->user, group, path);
    for (size_t i = 0; i < group->member_count; i++) {
        char name[32];
        char help[] = "--help";
        char *arguments[] = {name, help, NULL};
        snprintf(name, sizeof name, "%s", group->members[i].name);
        group->members[i].main(2, arguments);
    }
}

bool cli_pick(const char *option, const char *text, const char *const *words, size_t *out_index)
{
    char all[256] = "";
    size_t used = 0;
    size_t count = 0;
    for (; words[count]; count++) {
        if (strcmp(text, words[count]) == 0) {
            if (out_index)
                *out_index = count;
            return true;
        }
        weir_text_append(all, sizeof all, &used, "%s%s",
                         count == 0         ? ""
                         : words[count + 1] ? ", "
                                            : " or ",
                         words[count]);
    }
    const char *near = weir_text_nearest(text, words, count);
    cli_error("--%s takes %s, not '%s'%s%s%s", option, all, text, near ? "; did you mean " : "",
              near ? near : "", near ? "?" : "");
    return false;
}

static void help_members(const struct cli_command *group, const char *path)
{
    if (help_visitor) {
        visit_members(group, path);
        return;
    }
    printf("\n%s:\n", group->summary);
    for (size_t i = 0; i < group->member_count; i++)
        printf("  %s %-10s %s\n", path, group->members[i].name, group->members[i].summary);
}

int cli_dispatch_beside(const struct cli_command *group, const char *path,
                        int (*own)(int argc, char **argv), int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < group->member_count; i++)
        if (strcmp(first, group->members[i].name) == 0)
            return group->members[i].main(argc - 1, argv + 1);
    const int code = own(argc, argv);
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
        help_members(group, path);
    return code;
}

static void print_group_help(const struct cli_command *group, const char *path, const char *manual)
{
    if (help_visitor) {
        visit_members(group, path);
        return;
    }
    printf("usage: %s %s [OPTION]...\n\n%s\n\n", path, group->what, group->summary);
    for (size_t i = 0; i < group->member_count; i++)
        printf("  %-12s%s\n", group->members[i].name, group->members[i].summary);
    printf("\n`%s %s --help` tells more, and so does %s.\n", path, group->what, manual);
}

static int unknown_member(const struct cli_command *group, const char *path, const char *name)
{
    const char *nearest = NULL;
    for (size_t i = 0; i < group->member_count; i++)
        nearest = weir_text_nearer(name, nearest, group->members[i].name);
    if (nearest)
        cli_error("%s has no '%s'; did you mean '%s'?", path, name, nearest);
    else
        cli_error("%s has no '%s'; `%s --help` lists what it has", path, name, path);
    return CLI_USAGE;
}

int cli_dispatch(const struct cli_command *group, const char *path, const char *manual, int argc,
                 char **argv)
{
    if (argc < 2) {
        cli_error("%s needs a %s; `%s --help` lists them", path, group->what, path);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_group_help(group, path, manual);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        cli_print_version();
        return CLI_OK;
    }
    for (size_t i = 0; i < group->member_count; i++)
        if (strcmp(argv[1], group->members[i].name) == 0)
            return group->members[i].main(argc - 1, argv + 1);
    if (argv[1][0] == '-') {
        const struct cli_usage none = {.command = path};
        return unknown_option(&none, argv[1]);
    }
    return unknown_member(group, path, argv[1]);
}
