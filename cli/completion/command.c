// weir completion SHELL: a script that asks this command for what completes a line, with the words up to the cursor
// as operands. The answer comes from what --help prints, so nothing here names a command or an option.
//
// Its first line is what the word may be besides: `file`, `folder`, `program N`, which are words of another program
// from word N on, counted from 0, or `-`. Each further line is a word, a tab, and its description.
#include <stdio.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/common/own.h"

static char **words; // the last one is at the cursor
static size_t word_count;

// The first clause of a text, on one line.
static void print_word(const char *dashes, const char *word, const char *text)
{
    printf("%s%s\t", dashes, word);
    for (; *text != '\0' && *text != ';'; text++)
        putchar(*text == '\n' ? ' ' : *text);
    putchar('\n');
}

static void print_option(const struct cli_option *option)
{
    const char letter[] = {cli_option_letter(option->name), '\0'};
    if (letter[0])
        print_word("-", letter, option->help);
    print_word(cli_option_dashes(option->name), option->name, option->help);
}

// What the value of the option is; NULL for a flag and for an unknown option.
static const char *kind_of(const struct cli_option *option)
{
    switch (option ? option->kind : CLI_FLAG) {
    case CLI_FLAG:
        return NULL;
    case CLI_FILE:
    case CLI_FILES:
        return "file";
    case CLI_FOLDER:
    case CLI_FOLDERS:
        return "folder";
    default:
        return "-";
    }
}

static bool takes_program(const struct cli_usage *usage)
{
    return *usage->operands && usage->operand_maximum == 0;
}

// With the command's members, or without: NULL.
static void print_operand(const struct cli_command *members, const struct cli_usage *usage)
{
    if (takes_program(usage))
        printf("program %zu\n", word_count - 1);
    else
        puts(*usage->operands ? "file" : "-");
    for (; members && members->name; members++)
        print_word("", members->name, members->summary);
}

static void print_options(const struct cli_usage *usage)
{
    const char *word = words[word_count - 1], *value;
    const struct cli_option *option = cli_option_find(usage, word, &value);
    const char *kind = strchr(word, '=') ? kind_of(option) : NULL;
    puts(kind ? kind : "-");
    if (!kind) {
        for (size_t i = 0; i < usage->option_count; i++)
            print_option(&usage->options[i]);
        for (size_t i = 0; i < 2; i++)
            print_option(&cli_options_of_all[i]);
    }
}

static void answer(const struct cli_command *command, size_t first, const struct cli_usage *usage)
{
    const char *kind = NULL; // of the option's value that comes next
    const char *value;
    bool options_ended = false;
    for (size_t i = first; i + 1 < word_count; i++) {
        const char *word = words[i];
        if (kind) {
            kind = NULL;
        } else if (options_ended || word[0] != '-' || word[1] == '\0') {
            if (!takes_program(usage))
                continue;
            printf("program %zu\n", i);
            return;
        } else if (strcmp(word, "--") == 0) {
            options_ended = true;
        } else {
            const struct cli_option *option = cli_option_find(usage, word, &value);
            kind = option && !value ? kind_of(option) : NULL;
        }
    }
    if (kind)
        puts(kind);
    else if (options_ended || words[word_count - 1][0] != '-')
        print_operand(first == word_count - 1 ? command->members : NULL, usage);
    else
        print_options(usage);
}

// COMP_WORDBREAKS has `=` in it, so --output=FILE is three words. The arguments of another program are completed by
// bash-completion where it is loaded.
static const char bash_script[] =
    "# bash completion of weir. Made by `weir completion bash`; source it, or install it as\n"
    "# share/bash-completion/completions/weir.\n"
    "_weir()\n"
    "{\n"
    "    local cur=\"${COMP_WORDS[COMP_CWORD]}\" i\n"
    "    local -a words=() places=() lines\n"
    "    for ((i = 0; i < COMP_CWORD; i++)); do\n"
    "        [[ ${COMP_WORDS[i]} == \"=\" ]] || words+=(\"${COMP_WORDS[i]}\") places+=(\"$i\")\n"
    "    done\n"
    "    places+=(\"$COMP_CWORD\")\n"
    "    [[ $cur != \"=\" ]] || cur=\n"
    "    mapfile -t lines < <(\"${words[0]/#\\~/$HOME}\" completion bash -- \"${words[@]}\" "
    "\"$cur\" "
    "2>/dev/null)\n"
    "    COMPREPLY=()\n"
    "    [[ ${lines[0]} == - ]] || compopt -o filenames 2>/dev/null # an error outside of a "
    "completion\n"
    "    case \"${lines[0]}\" in\n"
    "    file) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
    "    folder) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") ;;\n"
    "    \"program \"*)\n"
    "        i=\"${places[${lines[0]#program }]}\"\n"
    "        if declare -F _command_offset >/dev/null; then\n"
    "            _command_offset \"$i\"\n"
    "        elif ((i == COMP_CWORD)); then\n"
    "            mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
    "        else\n"
    "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "        fi\n"
    "        ;;\n"
    "    esac\n"
    "    lines=(\"${lines[@]%%$'\\t'*}\")\n"
    "    mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -W \"${lines[*]:1}\" -- "
    "\"$cur\")\n"
    "}\n"
    "\n"
    "complete -F _weir weir\n";

static const char fish_script[] =
    "# fish completion of weir. Made by `weir completion fish`; source it, or install it as\n"
    "# vendor_completions.d/weir.fish.\n"
    "function __weir_lines\n"
    "    set -l word (commandline -ct)\n"
    "    set -l words (commandline -opc) \"$word\"\n"
    "    $words[1] completion fish -- $words 2>/dev/null\n"
    "end\n"
    "\n"
    "function __weir_is\n"
    "    __weir_lines | head -n 1 | string match -q -- \"$argv*\"\n"
    "end\n"
    "\n"
    "# Completes a program and its arguments.\n"
    "function __weir_program\n"
    "    set -l first (__weir_lines | string replace -f 'program ' '')\n"
    "    set -l words (commandline -opc) ''\n"
    "    set -l words (string escape -- $words[(math $first + 1)..-1])\n"
    "    set -l word (commandline -ct)\n"
    "    complete -C (string join ' ' -- $words[1..-2] \"$word\")\n"
    "end\n"
    "\n"
    "complete -c weir -f -a '(__weir_lines | tail -n +2)'\n"
    "complete -c weir -n '__weir_is file' -F\n"
    "complete -c weir -n '__weir_is folder' -x -a '(__fish_complete_directories)'\n"
    "complete -c weir -n '__weir_is program' -x -a '(__weir_program)'\n";

// `-` is a name of a program to zsh.
static const char zsh_script[] =
    "#compdef weir\n"
    "# zsh completion of weir. Made by `weir completion zsh`; install it as `_weir` in a folder "
    "of\n"
    "# $fpath, or source it after compinit.\n"
    "_weir() {\n"
    "    local kind ret=1\n"
    "    local -a lines\n"
    "    lines=(\"${(@f)$(${~words[1]} completion zsh -- \"${(@Q)words[1,CURRENT-1]}\" \"$PREFIX\" "
    "2>/dev/null)}\")\n"
    "    kind=$lines[1]\n"
    "    lines=(\"${(@)${(@)lines[2,-1]//:/\\\\:}/$'\\t'/:}\")\n"
    "    case $kind in\n"
    "    file | folder)\n"
    "        [[ $PREFIX != --*=* ]] || compset -P '*='\n"
    "        _files ${${kind:#file}:+-/} && ret=0\n"
    "        ;;\n"
    "    program*)\n"
    "        if (( ${kind#program } + 1 < CURRENT )); then\n"
    "            shift ${kind#program } words\n"
    "            (( CURRENT -= ${kind#program } ))\n"
    "            _normal\n"
    "            return\n"
    "        fi\n"
    "        [[ $PREFIX != -* ]] && _command_names -e && ret=0\n"
    "        ;;\n"
    "    esac\n"
    "    (( ! $#lines )) || _describe -t weir 'word' lines && ret=0\n"
    "    return ret\n"
    "}\n"
    "\n"
    "# Read as a file of $fpath, this is the body of the function; else it is a script.\n"
    "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
    "    _weir \"$@\"\n"
    "else\n"
    "    compdef _weir weir\n"
    "fi\n";

// The command.

static const struct shell {
    const char *name, *where, *line, *script;
} shells[] = {
    {"bash", ", to be read by it", "source <(weir completion bash)", bash_script},
    {"fish", ", to be read by it", "weir completion fish | source", fish_script},
    {"zsh", ": a file `_weir` of a folder in\n$fpath, or, after compinit",
     "source <(weir completion zsh)", zsh_script},
};

// argv[0] is the shell's name. Words may be empty, so they are not read as operands.
int cli_completion(int argc, char **argv)
{
    const struct shell *shell = shells;
    while (strcmp(shell->name, argv[0]) != 0)
        shell++;
    const struct cli_usage usage = {
        .command = cli_text("weir completion %s", shell->name),
        .operands = "",
        .operand = "",
        .about = cli_text("Prints what completes weir's command lines in %s%s:\n\n  %s\n\n"
                          "With words of such a line, tells what completes the last one.",
                          shell->name, shell->where, shell->line),
    };
    if (argc > 3 && strcmp(argv[1], "--") == 0) {
        words = argv + 2;
        word_count = (size_t)argc - 2;
        cli_help_usage(words, word_count, answer);
        return CLI_OK;
    }
    cli_parse(&usage, argc, argv);
    fputs(shell->script, stdout);
    return CLI_OK;
}
