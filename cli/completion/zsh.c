// zsh: a function fills the arrays that _arguments and _describe take, for one command.
#include <stdio.h>

#include "cli/completion/completion.h"

static const char *const actions[] = {
    [COMPLETION_NONE] = "",
    [COMPLETION_TEXT] = "",
    [COMPLETION_FILE] = "_files",
    [COMPLETION_FOLDER] = "_files -/",
    [COMPLETION_PROGRAM] = "_weir_program",
};

static const char head[] = "#compdef weir\n"
                           "# zsh completion of weir. Made by `weir completion zsh`; install it as "
                           "`_weir` in a folder of\n"
                           "# $fpath, or source it after compinit.\n"
                           "\n";

static const char driver[] =
    "# A program, of whose names `-` is one to zsh.\n"
    "_weir_program() {\n"
    "    [[ $PREFIX != -* ]] && _command_names -e\n"
    "}\n"
    "\n"
    "# Completes the arguments of the command $1, whose last name is words[1].\n"
    "_weir_command() {\n"
    "    local -a members options operands\n"
    "    local state state_descr line ret=1\n"
    "    local -A opt_args\n"
    "    _weir_members $1\n"
    "    _weir_options $1\n"
    "    if (( ! $#members )); then\n"
    "        _arguments -s -S $options $operands\n"
    "        return\n"
    "    fi\n"
    "    _arguments -C -A '-*' $options '1: :->member' '*:: :->rest' && ret=0\n"
    "    case $state in\n"
    "    member)\n"
    "        _describe -t commands command members && ret=0\n"
    "        (( ! $#operands )) || _weir_program && ret=0\n"
    "        ;;\n"
    "    rest)\n"
    "        if (( $members[(I)$words[1]:*] )); then\n"
    "            _weir_command \"$1 $words[1]\" && ret=0\n"
    "        elif (( $#operands )); then\n"
    "            _normal && ret=0\n"
    "        fi\n"
    "        ;;\n"
    "    esac\n"
    "    return ret\n"
    "}\n"
    "\n"
    "_weir() {\n"
    "    _weir_command weir\n"
    "}\n"
    "\n"
    "# Read as a file of $fpath, this is the body of the function; else it is a script.\n"
    "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
    "    _weir \"$@\"\n"
    "else\n"
    "    compdef _weir weir\n"
    "fi\n";

static void print_text(const char *text)
{
    completion_print(text, "[]\\", "'\\''");
}

static void print_members(void *user, const struct cli_command *group, const char *path)
{
    (void)user;
    printf("    '%s')\n        members=(\n", path);
    for (size_t i = 0; i < group->member_count; i++) {
        printf("            '%s:", group->members[i].name);
        completion_print(group->members[i].summary, "\\", "'\\''");
        printf("'\n");
    }
    printf("        )\n        ;;\n");
}

static void no_members(void *user, const struct cli_command *group, const char *path)
{
    (void)user, (void)group, (void)path;
}

static void no_usage(void *user, const struct cli_usage *usage)
{
    (void)user, (void)usage;
}

static void print_option(const struct cli_option *option)
{
    const enum completion_value value = completion_of_option(option);
    const char *dashes = completion_dashes(option->name);
    const char *joint = dashes[1] == '\0' ? "+" : "=";
    printf("            '%s%s%s%s[", completion_repeats(option) ? "*" : "", dashes, option->name,
           value == COMPLETION_NONE ? "" : joint);
    print_text(option->help);
    printf("]");
    if (value != COMPLETION_NONE) {
        printf(":");
        print_text(option->value);
        printf(":%s", actions[value]);
    }
    printf("'\n");
}

static void print_common(void)
{
    print_option(&completion_common[0]);
    print_option(&completion_common[1]);
}

static void print_operands(const char *operands)
{
    const enum completion_value value = completion_of_operands(operands);
    if (value == COMPLETION_PROGRAM)
        printf("        operands=('(-): :%s' '*:: : _normal')\n", actions[value]);
    else if (value != COMPLETION_NONE)
        printf("        operands=('*: :%s')\n", actions[value]);
}

static void print_usage(void *user, const struct cli_usage *usage)
{
    (void)user;
    printf("    '%s')\n        options=(\n", usage->command);
    for (size_t i = 0; i < usage->option_count; i++)
        print_option(&usage->options[i]);
    print_common();
    printf("        )\n");
    print_operands(usage->operands);
    printf("        ;;\n");
}

void completion_zsh(void)
{
    fputs(head, stdout);
    printf("_weir_members() {\n    case $1 in\n");
    completion_visit(no_usage, print_members);
    printf("    esac\n}\n\n_weir_options() {\n    case $1 in\n");
    completion_visit(print_usage, no_members);
    printf("    *)\n        options=(\n");
    print_common();
    printf("        )\n        ;;\n    esac\n}\n\n");
    fputs(driver, stdout);
}
