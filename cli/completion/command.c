// weir completion SHELL: the commands' own --help is visited, so nothing here names a command or an
// option.
#include <stdio.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/options.h"

// A script is a table of all commands, of the form that the shell reads best, and fixed text that
// completes from it. The table has the whole name of a command as key, such as `weir run arr-coc`.

// What an operand or the value of an option is.
enum completion_value {
    COMPLETION_NONE, // a flag, or a command that takes no operand
    COMPLETION_TEXT, // nothing that a shell could complete
    COMPLETION_FILE,
    COMPLETION_FOLDER,
    COMPLETION_PROGRAM, // a program and its arguments
};

static int (*whole)(int argc, char **argv); // of cli_completion()

// What --help and --version are, which are in no table.
static const struct cli_option common_options[2] = {
    {.name = "help", .help = "print this text"},
    {.name = "version", .help = "print the version"},
};

static enum completion_value of_option(const struct cli_option *option)
{
    switch (option->kind) {
    case CLI_FLAG:
        return COMPLETION_NONE;
    case CLI_FILE:
    case CLI_FILES:
        return COMPLETION_FILE;
    case CLI_FOLDER:
    case CLI_FOLDERS:
        return COMPLETION_FOLDER;
    default:
        return COMPLETION_TEXT;
    }
}

static enum completion_value of_operands(const char *operands)
{
    if (operands[0] == '\0')
        return COMPLETION_NONE;
    return strncmp(operands, "COMMAND", 7) == 0 ? COMPLETION_PROGRAM : COMPLETION_FILE;
}

static bool repeats(const struct cli_option *option)
{
    return option->kind == CLI_LIST || option->kind == CLI_FILES || option->kind == CLI_FOLDERS;
}

static const char *dashes(const char *name)
{
    return name[1] == '\0' ? "-" : "--";
}

// Prints the first clause of a help text, on one line, with `\\` before each character of
// `special`. A quotation mark ' becomes `quote`.
static void print_text(const char *text, const char *special, const char *quote)
{
    for (; *text != '\0' && *text != ';'; text++) {
        if (strchr(special, *text))
            putchar('\\');
        if (*text == '\'')
            fputs(quote, stdout);
        else
            putchar(*text == '\n' ? ' ' : *text);
    }
}

// Calls the functions for every command and every group; each group comes before its members.
static void visit(void (*usage)(void *user, const struct cli_usage *usage),
                  void (*members)(void *user, const struct cli_command *group, const char *path))
{
    const struct cli_visitor visitor = {.usage = usage, .members = members};
    char name[] = "weir";
    char help[] = "--help";
    char *arguments[] = {name, help, NULL};
    cli_help_visit(&visitor);
    whole(2, arguments);
    cli_help_visit(NULL);
}

static void no_members(void *user, const struct cli_command *group, const char *path)
{
    (void)user, (void)group, (void)path;
}

static void no_usage(void *user, const struct cli_usage *usage)
{
    (void)user, (void)usage;
}

// bash: two functions print the table, and one completes. It needs no bash-completion, and uses it
// for the arguments of another program where it is loaded. COMP_WORDBREAKS has `=` in it, so
// --output=FILE is three words.

static const char bash_letters[] = {
    [COMPLETION_NONE] = '-',   [COMPLETION_TEXT] = 't',    [COMPLETION_FILE] = 'f',
    [COMPLETION_FOLDER] = 'd', [COMPLETION_PROGRAM] = 'p',
};

static const char bash_head[] =
    "# bash completion of weir. Made by `weir completion bash`; source it, or install it as\n"
    "# share/bash-completion/completions/weir.\n"
    "\n";

// The word `=` between an option and its value says nothing by itself.
static const char bash_driver[] =
    "# Finds the command that the words before the cursor name: sets path, value (what the word "
    "at\n"
    "# the cursor is, as the value of the option before it), operands and program.\n"
    "_weir_walk()\n"
    "{\n"
    "    local i word ended=\n"
    "    path=weir value= operands=0 program=\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        word=\"${COMP_WORDS[i]}\"\n"
    "        if [[ $word == \"=\" ]]; then\n"
    "            continue\n"
    "        elif [[ $value ]]; then\n"
    "            value=\n"
    "        elif [[ ! $ended && $word == -- ]]; then\n"
    "            ended=1\n"
    "        elif [[ ! $ended && $word == -?* ]]; then\n"
    "            value=\"$(_weir_options \"$path\" | sed -n \"s/^$word "
    "\\\\([tfd]\\\\)\\$/\\\\1/p\")\"\n"
    "        elif ((operands == 0)) && _weir_members \"$path\" | grep -qxF -e \"$word\"; then\n"
    "            path+=\" $word\"\n"
    "        elif [[ $(_weir_options \"$path\") == *\"operands p\"* ]]; then\n"
    "            program=$i\n"
    "            return\n"
    "        else\n"
    "            operands=$((operands + 1))\n"
    "        fi\n"
    "    done\n"
    "    [[ ! $ended ]] || value=\"${value:-$(_weir_operands)}\"\n"
    "}\n"
    "\n"
    "_weir_operands()\n"
    "{\n"
    "    _weir_options \"$path\" | sed -n 's/^operands //p'\n"
    "}\n"
    "\n"
    "# What completes a word of that kind.\n"
    "_weir_values()\n"
    "{\n"
    "    case \"$1\" in\n"
    "    f) compgen -f -- \"$cur\" ;;\n"
    "    d) compgen -d -- \"$cur\" ;;\n"
    "    p) compgen -c -- \"$cur\" ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "_weir()\n"
    "{\n"
    "    local path value operands program cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
    "    COMPREPLY=()\n"
    "    _weir_walk\n"
    "    [[ $cur != \"=\" ]] || cur=\n"
    "    if [[ $program ]]; then\n"
    "        if declare -F _command_offset >/dev/null; then\n"
    "            _command_offset \"$program\"\n"
    "        else\n"
    "            compopt -o filenames 2>/dev/null # an error outside of a completion\n"
    "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "        fi\n"
    "    elif [[ $value ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(_weir_values \"$value\")\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$(_weir_options \"$path\" |\n"
    "            sed -n 's/^\\(-[^ ]*\\) .*/\\1/p')\" -- \"$cur\")\n"
    "    else\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(\n"
    "            ((operands > 0)) || compgen -W \"$(_weir_members \"$path\")\" -- \"$cur\"\n"
    "            _weir_values \"$(_weir_operands)\"\n"
    "        )\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -F _weir weir\n";

static void bash_print_members(void *user, const struct cli_command *group, const char *path)
{
    (void)user;
    printf("    '%s') printf '%%s\\n'", path);
    for (size_t i = 0; i < group->member_count; i++)
        printf(" %s", group->members[i].name);
    printf(" ;;\n");
}

static void bash_print_option(const struct cli_option *option)
{
    const char letter = cli_option_letter(option->name);
    if (letter)
        printf(" '-%c %c'", letter, bash_letters[of_option(option)]);
    printf(" '%s%s %c'", dashes(option->name), option->name, bash_letters[of_option(option)]);
}

static void bash_print_usage(void *user, const struct cli_usage *usage)
{
    (void)user;
    printf("    '%s') printf '%%s\\n'", usage->command);
    for (size_t i = 0; i < usage->option_count; i++)
        bash_print_option(&usage->options[i]);
    bash_print_option(&common_options[0]);
    bash_print_option(&common_options[1]);
    printf(" 'operands %c' ;;\n", bash_letters[of_operands(usage->operands)]);
}

static void completion_bash(void)
{
    fputs(bash_head, stdout);
    printf("# The members of a group, one a line.\n_weir_members()\n{\n    case \"$1\" in\n");
    visit(no_usage, bash_print_members);
    printf("    esac\n}\n\n# The options of a command with what each takes, and what its operands "
           "are: - nothing, t text,\n# f a file, d a folder, p a program and its arguments.\n"
           "_weir_options()\n{\n    case \"$1\" in\n");
    visit(bash_print_usage, no_members);
    printf("    *) printf '%%s\\n'");
    bash_print_option(&common_options[0]);
    bash_print_option(&common_options[1]);
    printf(" 'operands -' ;;\n    esac\n}\n\n");
    fputs(bash_driver, stdout);
}

// zsh: a function fills the arrays that _arguments and _describe take, for one command.

static const char *const zsh_actions[] = {
    [COMPLETION_NONE] = "",
    [COMPLETION_TEXT] = "",
    [COMPLETION_FILE] = "_files",
    [COMPLETION_FOLDER] = "_files -/",
    [COMPLETION_PROGRAM] = "_weir_program",
};

static const char zsh_head[] =
    "#compdef weir\n"
    "# zsh completion of weir. Made by `weir completion zsh`; install it as "
    "`_weir` in a folder of\n"
    "# $fpath, or source it after compinit.\n"
    "\n";

static const char zsh_driver[] =
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

static void zsh_text(const char *text)
{
    print_text(text, "[]\\", "'\\''");
}

static void zsh_print_members(void *user, const struct cli_command *group, const char *path)
{
    (void)user;
    printf("    '%s')\n        members=(\n", path);
    for (size_t i = 0; i < group->member_count; i++) {
        printf("            '%s:", group->members[i].name);
        print_text(group->members[i].summary, "\\", "'\\''");
        printf("'\n");
    }
    printf("        )\n        ;;\n");
}

static void zsh_print_spelling(const struct cli_option *option, const char *name)
{
    const enum completion_value value = of_option(option);
    const char *lead = dashes(name);
    const char *joint = lead[1] == '\0' ? "+" : "=";
    const char letter = cli_option_letter(option->name);
    printf("            '");
    if (letter)
        printf("(-%c --%s)", letter, option->name);
    printf("%s%s%s%s[", repeats(option) ? "*" : "", lead, name,
           value == COMPLETION_NONE ? "" : joint);
    zsh_text(option->help);
    printf("]");
    if (value != COMPLETION_NONE) {
        printf(":");
        zsh_text(option->value);
        printf(":%s", zsh_actions[value]);
    }
    printf("'\n");
}

static void zsh_print_option(const struct cli_option *option)
{
    const char letter[] = {cli_option_letter(option->name), '\0'};
    if (letter[0])
        zsh_print_spelling(option, letter);
    zsh_print_spelling(option, option->name);
}

static void zsh_print_common(void)
{
    zsh_print_option(&common_options[0]);
    zsh_print_option(&common_options[1]);
}

static void zsh_print_operands(const char *operands)
{
    const enum completion_value value = of_operands(operands);
    if (value == COMPLETION_PROGRAM)
        printf("        operands=('(-): :%s' '*:: : _normal')\n", zsh_actions[value]);
    else if (value != COMPLETION_NONE)
        printf("        operands=('*: :%s')\n", zsh_actions[value]);
}

static void zsh_print_usage(void *user, const struct cli_usage *usage)
{
    (void)user;
    printf("    '%s')\n        options=(\n", usage->command);
    for (size_t i = 0; i < usage->option_count; i++)
        zsh_print_option(&usage->options[i]);
    zsh_print_common();
    printf("        )\n");
    zsh_print_operands(usage->operands);
    printf("        ;;\n");
}

static void completion_zsh(void)
{
    fputs(zsh_head, stdout);
    printf("_weir_members() {\n    case $1 in\n");
    visit(no_usage, zsh_print_members);
    printf("    esac\n}\n\n_weir_options() {\n    case $1 in\n");
    visit(zsh_print_usage, no_members);
    printf("    *)\n        options=(\n");
    zsh_print_common();
    printf("        )\n        ;;\n    esac\n}\n\n");
    fputs(zsh_driver, stdout);
}

// fish: a line for each option and member, which holds where a function finds that command in the
// words before the cursor.

static const char fish_head[] =
    "# fish completion of weir. Made by `weir completion fish`; source it, or install it as\n"
    "# vendor_completions.d/weir.fish.\n"
    "\n";

static const char fish_driver[] =
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

static void fish_quoted(const char *text)
{
    putchar('\'');
    print_text(text, "\\", "\\'");
    putchar('\'');
}

static void fish_print_option(const char *path, const struct cli_option *option)
{
    static const char *const takes[] = {
        [COMPLETION_NONE] = "",
        [COMPLETION_TEXT] = " -x",
        [COMPLETION_FILE] = " -r -F",
        [COMPLETION_FOLDER] = " -x -a '(__fish_complete_directories)'",
    };
    const char letter = cli_option_letter(option->name);
    printf("complete -c weir -n \"__weir_at '%s'\"", path);
    if (letter)
        printf(" -s %c", letter);
    printf(" -%c %s%s -d ", option->name[1] == '\0' ? 's' : 'l', option->name,
           takes[of_option(option)]);
    fish_quoted(option->help);
    printf("\n");
}

static void fish_print_common(const char *path)
{
    fish_print_option(path, &common_options[0]);
    fish_print_option(path, &common_options[1]);
}

static void fish_print_members(void *user, const struct cli_command *group, const char *path)
{
    (void)user;
    for (size_t i = 0; i < group->member_count; i++) {
        const struct cli_command *member = &group->members[i];
        printf("set -a __weir_paths '%s %s'\n", path, member->name);
        printf("complete -c weir -n \"__weir_at '%s' first\" -a %s -d ", path, member->name);
        fish_quoted(member->summary);
        printf("\n");
    }
    if (group->what)
        fish_print_common(path);
}

static void fish_print_operands(const struct cli_usage *usage)
{
    const enum completion_value value = of_operands(usage->operands);
    if (value == COMPLETION_FILE)
        printf("complete -c weir -n \"__weir_at '%s'\" -F\n", usage->command);
    if (value != COMPLETION_PROGRAM)
        return;
    printf("set -a __weir_programs '%s'\n", usage->command);
    printf("complete -c weir -n \"__weir_at '%s' program\" -a \"(__weir_program '%s')\"\n",
           usage->command, usage->command);
}

static void fish_print_usage(void *user, const struct cli_usage *usage)
{
    (void)user;
    for (size_t i = 0; i < usage->option_count; i++) {
        const struct cli_option *option = &usage->options[i];
        fish_print_option(usage->command, option);
        const char letter = cli_option_letter(option->name);
        if (of_option(option) != COMPLETION_NONE)
            printf("set -a __weir_values '%s %s%s'\n", usage->command, dashes(option->name),
                   option->name);
        if (of_option(option) != COMPLETION_NONE && letter)
            printf("set -a __weir_values '%s -%c'\n", usage->command, letter);
    }
    fish_print_common(usage->command);
    fish_print_operands(usage);
}

static void completion_fish(void)
{
    fputs(fish_head, stdout);
    printf("set -g __weir_paths\nset -g __weir_values\nset -g __weir_programs\n\n");
    fputs(fish_driver, stdout);
    visit(fish_print_usage, fish_print_members);
}

// The command.

static int write_script(const char *command, const char *about, void (*script)(void), int argc,
                        char **argv)
{
    const struct cli_usage usage = {
        .command = command,
        .operands = "",
        .operand = "",
        .about = about,
        .manual = "weir-completion(1)",
    };
    cli_parse(&usage, argc, argv);
    script();
    return CLI_OK;
}

static int bash_main(int argc, char **argv)
{
    return write_script("weir completion bash",
                        "Prints what completes weir's command lines in bash, to be read by it:\n"
                        "\n"
                        "  source <(weir completion bash)",
                        completion_bash, argc, argv);
}

static int zsh_main(int argc, char **argv)
{
    return write_script(
        "weir completion zsh",
        "Prints what completes weir's command lines in zsh: a file `_weir` of a folder in\n"
        "$fpath, or, after compinit:\n"
        "\n"
        "  source <(weir completion zsh)",
        completion_zsh, argc, argv);
}

static int fish_main(int argc, char **argv)
{
    return write_script("weir completion fish",
                        "Prints what completes weir's command lines in fish, to be read by it:\n"
                        "\n"
                        "  weir completion fish | source",
                        completion_fish, argc, argv);
}

int cli_completion(int (*weir)(int argc, char **argv), int argc, char **argv)
{
    const struct cli_command members[] = {
        {.name = "bash", .summary = "for bash", .main = bash_main},
        {.name = "fish", .summary = "for fish", .main = fish_main},
        {.name = "zsh", .summary = "for zsh", .main = zsh_main},
    };
    const struct cli_command group = {
        .what = "SHELL",
        .summary = "Prints what completes weir's command lines in a shell.",
        .members = members,
        .member_count = sizeof members / sizeof *members,
    };
    whole = weir;
    return cli_dispatch(&group, "weir completion", "weir-completion(1)", argc, argv);
}
