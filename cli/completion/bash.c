// bash: two functions print the table, and one completes. It needs no bash-completion, and uses it
// for the arguments of another program where it is loaded. COMP_WORDBREAKS has `=` in it, so
// --output=FILE is three words.
#include <stdio.h>

#include "cli/completion/completion.h"

static const char letters[] = {
    [COMPLETION_NONE] = '-',   [COMPLETION_TEXT] = 't',    [COMPLETION_FILE] = 'f',
    [COMPLETION_FOLDER] = 'd', [COMPLETION_PROGRAM] = 'p',
};

static const char head[] =
    "# bash completion of weir. Made by `weir completion bash`; source it, or install it as\n"
    "# share/bash-completion/completions/weir.\n"
    "\n";

// The word `=` between an option and its value says nothing by itself.
static const char driver[] =
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

static void print_members(void *user, const struct cli_command *group, const char *path)
{
    (void)user;
    printf("    '%s') printf '%%s\\n'", path);
    for (size_t i = 0; i < group->member_count; i++)
        printf(" %s", group->members[i].name);
    printf(" ;;\n");
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
    printf(" '%s%s %c'", completion_dashes(option->name), option->name,
           letters[completion_of_option(option)]);
}

static void print_usage(void *user, const struct cli_usage *usage)
{
    (void)user;
    printf("    '%s') printf '%%s\\n'", usage->command);
    for (size_t i = 0; i < usage->option_count; i++)
        print_option(&usage->options[i]);
    print_option(&completion_common[0]);
    print_option(&completion_common[1]);
    printf(" 'operands %c' ;;\n", letters[completion_of_operands(usage->operands)]);
}

void completion_bash(void)
{
    fputs(head, stdout);
    printf("# The members of a group, one a line.\n_weir_members()\n{\n    case \"$1\" in\n");
    completion_visit(no_usage, print_members);
    printf("    esac\n}\n\n# The options of a command with what each takes, and what its operands "
           "are: - nothing, t text,\n# f a file, d a folder, p a program and its arguments.\n"
           "_weir_options()\n{\n    case \"$1\" in\n");
    completion_visit(print_usage, no_members);
    printf("    *) printf '%%s\\n'");
    print_option(&completion_common[0]);
    print_option(&completion_common[1]);
    printf(" 'operands -' ;;\n    esac\n}\n\n");
    fputs(driver, stdout);
}
