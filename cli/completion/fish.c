// fish: a line for each option and member, which holds where a function finds that command in the
// words before the cursor.
#include <stdio.h>

#include "cli/completion/completion.h"

static const char head[] =
    "# fish completion of weir. Made by `weir completion fish`; source it, or install it as\n"
    "# vendor_completions.d/weir.fish.\n"
    "\n";

static const char driver[] =
    "# Whether the words before the cursor name the command $argv[1], and the next one is: an "
    "option\n"
    "# of it; with `first`, its first operand; with `program`, of a program and its arguments.\n"
    "function __weir_at\n"
    "    set -l words (commandline -opc)\n"
    "    set -l path weir\n"
    "    set -l operands 0\n"
    "    set -l value 0\n"
    "    for word in $words[2..-1]\n"
    "        if test $value = 1\n"
    "            set value 0\n"
    "        else if string match -q -- '-*' $word\n"
    "            contains -- \"$path $word\" $__weir_values; and set value 1\n"
    "        else if test $operands = 0; and contains -- \"$path $word\" $__weir_paths\n"
    "            set path \"$path $word\"\n"
    "        else\n"
    "            set operands 1\n"
    "            contains -- $path $__weir_programs; and break\n"
    "        end\n"
    "    end\n"
    "    test $path = $argv[1]; or return 1\n"
    "    switch \"$argv[2]\"\n"
    "        case first\n"
    "            test $operands = 0\n"
    "        case program\n"
    "            return 0\n"
    "        case '*'\n"
    "            test $operands = 0; or not contains -- $path $__weir_programs\n"
    "    end\n"
    "end\n"
    "\n"
    "# Completes a program and its arguments, after the command $argv[1].\n"
    "function __weir_program\n"
    "    set -l values\n"
    "    for value in $__weir_values\n"
    "        string match -q -- \"$argv[1] -*\" $value; and set -a values (string split ' ' -- "
    "$value)[-1]\n"
    "    end\n"
    "    __fish_complete_subcommand --fcs-skip=(count (string split ' ' -- $argv[1])) $values\n"
    "end\n"
    "\n"
    "complete -c weir -f\n";

static void print_quoted(const char *text)
{
    putchar('\'');
    completion_print(text, "\\", "\\'");
    putchar('\'');
}

static void print_option(const char *path, const struct cli_option *option)
{
    static const char *const takes[] = {
        [COMPLETION_NONE] = "",
        [COMPLETION_TEXT] = " -x",
        [COMPLETION_FILE] = " -r -F",
        [COMPLETION_FOLDER] = " -x -a '(__fish_complete_directories)'",
    };
    printf("complete -c weir -n \"__weir_at '%s'\" -%c %s%s -d ", path,
           option->name[1] == '\0' ? 's' : 'l', option->name, takes[completion_of_option(option)]);
    print_quoted(option->help);
    printf("\n");
}

static void print_common(const char *path)
{
    print_option(path, &completion_common[0]);
    print_option(path, &completion_common[1]);
}

static void print_members(void *user, const struct cli_command *group, const char *path)
{
    (void)user;
    for (size_t i = 0; i < group->member_count; i++) {
        const struct cli_command *member = &group->members[i];
        printf("set -a __weir_paths '%s %s'\n", path, member->name);
        printf("complete -c weir -n \"__weir_at '%s' first\" -a %s -d ", path, member->name);
        print_quoted(member->summary);
        printf("\n");
    }
    if (group->what)
        print_common(path);
}

static void print_operands(const struct cli_usage *usage)
{
    const enum completion_value value = completion_of_operands(usage->operands);
    if (value == COMPLETION_FILE)
        printf("complete -c weir -n \"__weir_at '%s'\" -F\n", usage->command);
    if (value != COMPLETION_PROGRAM)
        return;
    printf("set -a __weir_programs '%s'\n", usage->command);
    printf("complete -c weir -n \"__weir_at '%s' program\" -a \"(__weir_program '%s')\"\n",
           usage->command, usage->command);
}

static void print_usage(void *user, const struct cli_usage *usage)
{
    (void)user;
    for (size_t i = 0; i < usage->option_count; i++) {
        const struct cli_option *option = &usage->options[i];
        print_option(usage->command, option);
        if (completion_of_option(option) != COMPLETION_NONE)
            printf("set -a __weir_values '%s %s%s'\n", usage->command,
                   completion_dashes(option->name), option->name);
    }
    print_common(usage->command);
    print_operands(usage);
}

void completion_fish(void)
{
    fputs(head, stdout);
    printf("set -g __weir_paths\nset -g __weir_values\nset -g __weir_programs\n\n");
    fputs(driver, stdout);
    completion_visit(print_usage, print_members);
}
