// Not getopt_long(), which accepts abbreviations, prints messages of its own, and cannot
// suggest the nearest name.
#include "cli/common/options.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/common/own.h"

enum {
    OPTION_LIMIT = 32,
    HELP_COLUMN = 22
};

const struct cli_option cli_options_of_all[2] = {
    {.name = "help", .help = "print this text"},
    {.name = "version", .help = "print the version"},
};

static const struct cli_command *root; // of the first cli_dispatch()
static const struct cli_command *running;

// Of cli_help_usage().
static cli_use_help *use_help;
static size_t help_first;

const char *cli_option_dashes(const char *name)
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

static void print_option(const struct cli_option *option)
{
    const char *name = option->name, *value = option->value;
    const char letter[] = {'-', cli_option_letter(name), ',', ' ', '\0'};
    const char *left = cli_text("%s%s%s%s%s", letter[1] ? letter : "", cli_option_dashes(name),
                                name, value ? " " : "", value ? value : "");
    printf("  %-*s", HELP_COLUMN - 2, left);
    if (strlen(left) > HELP_COLUMN - 3)
        printf("\n%*s", HELP_COLUMN, "");
    for (const char *line = option->help;; line++) {
        size_t length = strcspn(line, "\n");
        printf("%.*s\n", (int)length, line);
        line += length;
        if (*line == '\0')
            return;
        printf("%*s", HELP_COLUMN, "");
    }
}

static void print_members(const struct cli_command *group, const char *format, const char *path)
{
    for (const struct cli_command *it = group->members; it && it->name; it++)
        printf(format, path, it->name, it->summary);
}

// "weir-run(1)" of "weir run arr-coc".
static const char *page_of(const char *path)
{
    const bool is_first = strncmp(path, "weir ", 5) != 0; // or another program's
    return is_first ? "weir(1)" : cli_text("weir-%.*s(1)", (int)strcspn(path + 5, " "), path + 5);
}

static void print_help(const struct cli_usage *usage)
{
    if (use_help) {
        use_help(running, help_first, usage);
        cli_end(CLI_OK);
    }
    printf("usage: %s [OPTION]...%s%s\n\n%s\n\n", usage->command, *usage->operands ? " " : "",
           usage->operands, usage->about ? usage->about : running->summary);
    for (size_t i = 0; i < usage->option_count; i++)
        print_option(&usage->options[i]);
    for (size_t i = 0; i < 2; i++)
        print_option(&cli_options_of_all[i]);
    printf("\nMore is in %s.\n", page_of(usage->command));
    if (running->members)
        printf("\n%s:\n", running->about);
    print_members(running, "  %s %-10s %s\n", usage->command);
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

static _Noreturn void refuse_option(const struct cli_usage *usage, const char *argument)
{
    const char *text = argument + strspn(argument, "-");
    const char *name = cli_text("%.*s", (int)strcspn(text, "="), text);
    const char *nearest = weir_text_nearer(name, NULL, cli_options_of_all[0].name);
    nearest = weir_text_nearer(name, nearest, cli_options_of_all[1].name);
    for (size_t i = 0; i < usage->option_count; i++)
        nearest = weir_text_nearer(name, nearest, usage->options[i].name);
    if (nearest)
        cli_fail(CLI_USAGE, "%s has no option '%s'; did you mean %s%s?", usage->command, argument,
                 cli_option_dashes(nearest), nearest);
    cli_fail(CLI_USAGE, "%s has no option '%s'; `%s --help` lists them", usage->command, argument,
             usage->command);
}

static void set_count(const struct cli_option *option, const char *text)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < option->minimum ||
        number > option->maximum)
        cli_fail(CLI_USAGE, "%s%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'",
                 cli_option_dashes(option->name), option->name, option->minimum, option->maximum,
                 text);
    *(uint64_t *)option->out = number;
}

static void add_to_list(const struct cli_option *option, const char *value)
{
    struct weir_words *list = option->out;
    if (list->count == CLI_LIST_LIMIT)
        cli_fail(CLI_USAGE, "%s%s is given more than %d times", cli_option_dashes(option->name),
                 option->name, CLI_LIST_LIMIT);
    list->items = cli_grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = value;
}

static bool is_list(enum cli_option_kind kind)
{
    return kind == CLI_LIST || kind == CLI_FILES || kind == CLI_FOLDERS;
}

static void set(const struct cli_option *option, const char *value)
{
    if (option->kind == CLI_FLAG)
        *(bool *)option->out = true;
    else if (option->kind == CLI_COUNT)
        set_count(option, value);
    else if (value[0] == '\0')
        cli_fail(CLI_USAGE, "%s%s is empty; give it a %s or leave it out",
                 cli_option_dashes(option->name), option->name, option->value);
    else if (is_list(option->kind))
        add_to_list(option, value);
    else
        *(const char **)option->out = value;
}

// Takes the option at argv[*index], with its value from the next argument where it has none
// of its own.
static void take(const struct cli_usage *usage, int argc, char **argv, int *index, bool *given)
{
    const char *value;
    const struct cli_option *option = cli_option_find(usage, argv[*index], &value);
    if (!option)
        refuse_option(usage, argv[*index]);
    const char *lead = cli_option_dashes(option->name);
    bool *twice = &given[option - usage->options];
    if (*twice && !is_list(option->kind))
        cli_fail(CLI_USAGE, "%s%s is given twice; give it once", lead, option->name);
    *twice = true;
    if (option->kind == CLI_FLAG && value)
        cli_fail(CLI_USAGE, "%s%s takes no value, but got '%s'", lead, option->name, value);
    if (option->kind != CLI_FLAG && !value) {
        if (*index + 1 >= argc)
            cli_fail(CLI_USAGE, "%s%s needs a value: %s%s %s", lead, option->name, lead,
                     option->name, option->value);
        value = argv[++*index];
    }
    set(option, value);
}

static void check_operands(const struct cli_usage *usage, char **operands, size_t count)
{
    if (count < usage->operand_minimum)
        cli_fail(CLI_USAGE, "%s needs %s: %s %s", usage->command, usage->operand, usage->command,
                 usage->operands);
    if (count > usage->operand_maximum)
        cli_fail(CLI_USAGE,
                 "%s does not know what to do with '%s'; `%s --help` tells what it takes",
                 usage->command, operands[usage->operand_maximum], usage->command);
    for (size_t i = 0; i < count; i++)
        if (operands[i][0] == '\0')
            cli_fail(CLI_USAGE, "%s got an empty name; it needs %s", usage->command,
                     usage->operand);
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

size_t cli_parse(const struct cli_usage *usage, int argc, char **argv)
{
    bool given[OPTION_LIMIT] = {false};
    size_t count = 0;
    bool options_ended = false;
    for (int i = 1; i < argc; i++) {
        if (options_ended || argv[i][0] != '-' || argv[i][1] == '\0')
            argv[count++] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            options_ended = true;
        else if (help_or_version(usage, argv[i]))
            cli_end(CLI_OK);
        else
            take(usage, argc, argv, &i, given);
    }
    check_operands(usage, argv, count);
    return count;
}

size_t cli_choose(const char *option, const char *text, const char *const *words)
{
    char all[256] = "";
    size_t used = 0;
    size_t count = 0;
    for (; words[count]; count++) {
        if (strcmp(text, words[count]) == 0)
            return count;
        weir_text_append(all, sizeof all, &used, "%s%s",
                         count == 0         ? ""
                         : words[count + 1] ? ", "
                                            : " or ",
                         words[count]);
    }
    const char *near = weir_text_nearest(text, words, count);
    cli_fail(CLI_USAGE, "--%s takes %s, not '%s'%s%s%s", option, all, text,
             near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static void print_group_help(const struct cli_command *group, const char *path)
{
    printf("usage: %s %s [OPTION]...\n\n%s\n\n", path, group->what, group->about);
    print_members(group, "%.0s  %-12s%s\n", path);
    printf("\n`%s %s --help` tells more, and so does %s.\n", path, group->what, page_of(path));
}

static _Noreturn void refuse_member(const struct cli_command *group, const char *path,
                                    const char *name)
{
    const char *nearest = NULL;
    for (const struct cli_command *it = group->members; it->name; it++)
        nearest = weir_text_nearer(name, nearest, it->name);
    if (nearest)
        cli_fail(CLI_USAGE, "%s has no '%s'; did you mean '%s'?", path, name, nearest);
    cli_fail(CLI_USAGE, "%s has no '%s'; `%s --help` lists what it has", path, name, path);
}

// A group alone, of which no member was named.
static void end_group(const struct cli_command *group, const char *path, const char *word)
{
    const struct cli_usage none = {.command = path};
    if (!word)
        cli_fail(CLI_USAGE, "%s needs a %s; `%s --help` lists them", path, group->what, path);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        print_group_help(group, path);
    else if (strcmp(word, "--version") == 0)
        cli_print_version();
    else if (word[0] == '-')
        refuse_option(&none, word);
    else
        refuse_member(group, path, word);
}

static const struct cli_command *member_of(const struct cli_command *group, const char *name)
{
    const struct cli_command *it = group->members;
    while (it && it->name && strcmp(it->name, name) != 0)
        it++;
    return it && it->name ? it : NULL;
}

int cli_dispatch(const struct cli_command *command, const char *path, int argc, char **argv)
{
    root = root ? root : command;
    running = command;
    const struct cli_command *member = argc > 1 ? member_of(command, argv[1]) : NULL;
    if (member)
        return cli_dispatch(member, cli_text("%s %s", path, member->name), argc - 1, argv + 1);
    if (command->main)
        return command->main(argc, argv);
    end_group(command, path, argv[1]);
    return CLI_OK;
}

void cli_help_usage(char **words, size_t count, cli_use_help *use)
{
    static const struct cli_usage none = {.operands = ""};
    const struct cli_command *member;
    running = root;
    for (help_first = 1; help_first + 1 < count && (member = member_of(running, words[help_first]));
         help_first++)
        running = member;
    char *arguments[] = {cli_copy(running->name ? running->name : ""), cli_copy("--help"), NULL};
    use_help = use;
    if (running->main)
        running->main(2, arguments);
    else
        use(running, help_first, &none);
}
