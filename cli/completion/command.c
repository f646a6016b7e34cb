// weir completion SHELL: a script that completes weir's command lines by asking this command, `weir completion SHELL --
// WORDS...`, what may stand in place of the last word. The commands' own --help is visited for that, so nothing here
// names a command or an option.
//
// The answer is the same for all shells. Its first line says what else may stand there:
//
//     none | file | folder | program      nothing, or what the shell completes itself
//     arguments N                         what it completes of another program, which is word N
//
// and each line after it is a word, a tab, and what it does.
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"

enum {
    OPTIONS_MOST = 40
};

enum value {
    VALUE_NONE, // a flag, or a command that takes no operand
    VALUE_TEXT, // nothing that a shell could complete
    VALUE_FILE,
    VALUE_FOLDER,
    VALUE_PROGRAM, // a program and its arguments
};

// A command that the words name, as its --help tells it.
struct place {
    char path[64]; // "weir run arr-coc"
    const struct cli_command *const *members;
    struct cli_option options[OPTIONS_MOST];
    bool given[OPTIONS_MOST];
    size_t option_count;
    enum value operands;
};

// Where the words before the last one lead.
struct walk {
    struct place place;
    const struct cli_option *option; // whose value is the last word
    bool ended;                      // by "--"
    size_t operand_count;
    int program; // the word that another program is; 0: none
};

static enum value value_of(const struct cli_option *option)
{
    static const enum value values[] = {
        [CLI_FLAG] = VALUE_NONE,     [CLI_TEXT] = VALUE_TEXT,   [CLI_FILE] = VALUE_FILE,
        [CLI_FOLDER] = VALUE_FOLDER, [CLI_VALUES] = VALUE_TEXT, [CLI_COUNT] = VALUE_TEXT,
        [CLI_LIST] = VALUE_TEXT,     [CLI_FILES] = VALUE_FILE,  [CLI_FOLDERS] = VALUE_FOLDER,
    };
    return values[option->kind];
}

static bool repeats(const struct cli_option *option)
{
    return option->kind == CLI_LIST || option->kind == CLI_FILES || option->kind == CLI_FOLDERS;
}

// Looking.

static void take_usage(void *user, const struct cli_usage *usage)
{
    struct place *place = user;
    if (strcmp(usage->command, place->path) != 0)
        return;
    for (size_t i = 0; i < usage->option_count && place->option_count < OPTIONS_MOST; i++)
        place->options[place->option_count++] = usage->options[i];
    place->operands = strncmp(usage->operands, "COMMAND", 7) == 0 ? VALUE_PROGRAM
                      : usage->operands[0]                        ? VALUE_FILE
                                                                  : VALUE_NONE;
}

static void take_members(void *user, const struct cli_command *group, const char *path)
{
    struct place *place = user;
    if (strcmp(path, place->path) == 0)
        place->members = group->members;
}

// Goes to the command `name` of the one where the walk is; first to weir itself.
static void enter(struct place *place, const char *name)
{
    // What --help and --version are, which are in no table.
    struct place next = {
        .options = {{.name = "help", .help = "print this text"},
                    {.name = "version", .help = "print the version"}},
        .option_count = 2,
    };
    const struct cli_visitor visitor = {take_usage, take_members, &next};
    size_t used = 0;
    if (*place->path)
        weir_text_append(next.path, sizeof next.path, &used, "%s ", place->path);
    weir_text_append(next.path, sizeof next.path, &used, "%s", name);
    cli_help_visit(&visitor);
    *place = next;
}

static bool has_member(const struct place *place, const char *name)
{
    for (size_t i = 0; place->members && place->members[i]; i++)
        if (strcmp(place->members[i]->name, name) == 0)
            return true;
    return false;
}

// Walking.

static const struct cli_option *take_option(struct place *place, const char *word,
                                            const char **out_value)
{
    const struct cli_usage usage = {.options = place->options, .option_count = place->option_count};
    const struct cli_option *option = cli_option_find(&usage, word, out_value);
    if (option)
        place->given[option - place->options] = true;
    return option;
}

static void take_word(struct walk *walk, const char *word, int index)
{
    const char *own_value = NULL;
    struct place *place = &walk->place;
    const bool is_value = walk->option != NULL;
    // To bash `=` is a word.
    if (strcmp(word, "=") == 0)
        return;
    walk->option = NULL;
    if (is_value)
        return;
    if (!walk->ended && strcmp(word, "--") == 0) {
        walk->ended = true;
    } else if (!walk->ended && word[0] == '-' && word[1]) {
        walk->option = take_option(place, word, &own_value);
        if (walk->option && (own_value || value_of(walk->option) == VALUE_NONE))
            walk->option = NULL;
    } else if (!walk->ended && walk->operand_count == 0 && has_member(place, word)) {
        enter(place, word);
    } else if (place->operands == VALUE_PROGRAM) {
        walk->program = index;
    } else {
        walk->operand_count++;
    }
}

// Answering.

// The text's first clause, on one line.
static void print_word(const char *lead, const char *word, const char *text)
{
    printf("%s%s\t", lead, word);
    for (; *text && *text != ';'; text++)
        putchar(*text == '\n' ? ' ' : *text);
    putchar('\n');
}

static void print_options(const struct place *place, const char *begin)
{
    for (size_t i = 0; i < place->option_count; i++) {
        const struct cli_option *option = &place->options[i];
        const char letter[] = {cli_option_letter(option->name), '\0'};
        char name[64];
        snprintf(name, sizeof name, "%s%s", cli_option_dashes(option->name), option->name);
        if (place->given[i] && !repeats(option))
            continue;
        if (letter[0] && begin[1] == '\0')
            print_word("-", letter, option->help);
        if (strncmp(name, begin, strlen(begin)) == 0)
            print_word("", name, option->help);
    }
}

static void print_members(const struct place *place, const char *begin)
{
    for (size_t i = 0; place->members && place->members[i]; i++)
        if (strncmp(place->members[i]->name, begin, strlen(begin)) == 0)
            print_word("", place->members[i]->name, place->members[i]->summary);
}

static void answer(struct walk *walk, const char *last)
{
    static const char *const kinds[] = {
        [VALUE_NONE] = "none",     [VALUE_TEXT] = "none",       [VALUE_FILE] = "file",
        [VALUE_FOLDER] = "folder", [VALUE_PROGRAM] = "program",
    };
    const char *value = NULL;
    const bool names_option = !walk->option && !walk->ended && last[0] == '-';
    const struct cli_option *option =
        names_option && strchr(last, '=') ? take_option(&walk->place, last, &value) : walk->option;
    if (walk->program) {
        printf("arguments %d\n", walk->program);
    } else if (option || names_option) {
        printf("%s\n", option ? kinds[value_of(option)] : kinds[VALUE_NONE]);
        if (!option)
            print_options(&walk->place, last);
    } else {
        printf("%s\n", kinds[walk->place.operands]);
        if (!walk->ended && walk->operand_count == 0)
            print_members(&walk->place, last);
    }
}

// The last of the words is at the cursor.
static void complete(char **words, size_t count)
{
    static struct walk walk;
    enter(&walk.place, "weir");
    for (size_t i = 0; i + 1 < count && !walk.program; i++)
        take_word(&walk, words[i], (int)i + 1);
    answer(&walk, words[count - 1]);
}

// The scripts. To bash, whose COMP_WORDBREAKS has `=` in it, --output=FILE is three words. It needs no
// bash-completion, and uses that for the arguments of another program where it is loaded.

static const char bash[] =
    "# bash completion of weir. Made by `weir completion bash`; source it, or install it as\n"
    "# share/bash-completion/completions/weir.\n"
    "_weir()\n"
    "{\n"
    "    local kind at cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
    "    [[ $cur != \"=\" ]] || cur=\n"
    "    {\n"
    "        read -r kind at\n"
    "        mapfile -t COMPREPLY\n"
    "    } < <(\"${COMP_WORDS[0]}\" completion bash -- \"${COMP_WORDS[@]:1:COMP_CWORD-1}\" "
    "\"$cur\" 2>/dev/null)\n"
    "    COMPREPLY=(\"${COMPREPLY[@]%%$'\\t'*}\")\n"
    "    [[ $kind == none ]] || compopt -o filenames 2>/dev/null # an error outside of a "
    "completion\n"
    "    case $kind in\n"
    "    arguments)\n"
    "        if declare -F _command_offset >/dev/null; then\n"
    "            _command_offset \"$at\"\n"
    "        else\n"
    "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "        fi ;;\n"
    "    file) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
    "    folder) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") ;;\n"
    "    program) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- \"$cur\") ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _weir weir\n";

static const char fish[] =
    "# fish completion of weir. Made by `weir completion fish`; source it, or install it as\n"
    "# vendor_completions.d/weir.fish.\n"
    "function __weir\n"
    "    set -l words (commandline -opc)\n"
    "    set -l last (commandline -ct)\n"
    "    set -l lines ($words[1] completion fish -- $words[2..-1] \"$last\" 2>/dev/null)\n"
    "    set -l kind (string split ' ' -- $lines[1])\n"
    "    set -l lead (string match -r -- '^--[^=]*=' $last)\n"
    "    set -l rest (string replace -r -- '^--[^=]*=' '' $last)\n"
    "    switch \"$kind[1]\"\n"
    "        case arguments\n"
    "            complete -C (string join ' ' -- (string escape -- $words[(math $kind[2] + "
    "1)..-1]) $last)\n"
    "        case file\n"
    "            printf \"$lead%s\\n\" (__fish_complete_path $rest)\n"
    "        case folder\n"
    "            printf \"$lead%s\\n\" (__fish_complete_directories $rest)\n"
    "        case program\n"
    "            complete -C $last\n"
    "    end\n"
    "    string join \\n -- $lines[2..-1]\n"
    "end\n"
    "complete -c weir -f -a '(__weir)'\n";

// Read as a file of $fpath, the script of zsh is the body of the function.
static const char zsh[] =
    "#compdef weir\n"
    "# zsh completion of weir. Made by `weir completion zsh`; install it as `_weir` in a folder "
    "of\n"
    "# $fpath, or source it after compinit.\n"
    "_weir() {\n"
    "    local -a lines kind found\n"
    "    lines=(\"${(@f)$(${(Q)words[1]} completion zsh -- \"${(@Q)words[2,CURRENT-1]}\" "
    "\"$PREFIX\" "
    "2>/dev/null)}\")\n"
    "    kind=(${=lines[1]})\n"
    "    found=(\"${(@)lines[2,-1]//$'\\t'/:}\")\n"
    "    (( ! $#found )) || _describe 'weir' found\n"
    "    compset -P '--*='\n"
    "    case $kind[1] in\n"
    "    arguments) shift $kind[2] words; (( CURRENT -= kind[2] )); _normal ;;\n"
    "    file) _files ;;\n"
    "    folder) _files -/ ;;\n"
    "    program) [[ $PREFIX == -* ]] || _command_names -e ;;\n"
    "    esac\n"
    "}\n"
    "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
    "    _weir \"$@\"\n"
    "else\n"
    "    compdef _weir weir\n"
    "fi\n";

// The command.

static const struct shell {
    const char *name, *command, *about, *script;
} shells[] = {
    {"bash", "weir completion bash",
     "Prints what completes weir's command lines in bash, to be read by it:\n"
     "\n"
     "  source <(weir completion bash)",
     bash},
    {"fish", "weir completion fish",
     "Prints what completes weir's command lines in fish, to be read by it:\n"
     "\n"
     "  weir completion fish | source",
     fish},
    {"zsh", "weir completion zsh",
     "Prints what completes weir's command lines in zsh: a file `_weir` of a folder in\n"
     "$fpath, or, after compinit:\n"
     "\n"
     "  source <(weir completion zsh)",
     zsh},
};

// argv[0] is the shell's name.
static int completion_main(int argc, char **argv)
{
    const struct shell *shell = shells;
    while (strcmp(shell->name, argv[0]) != 0)
        shell++;
    const bool asks = argc > 2 && strcmp(argv[1], "--") == 0;
    const struct cli_usage usage = {
        .command = shell->command,
        .operands = "",
        .operand = "",
        .about = shell->about,
        .manual = "weir-completion(1)",
    };
    if (asks) {
        complete(argv + 2, (size_t)argc - 2);
        return CLI_OK;
    }
    cli_parse(&usage, argc, argv);
    fputs(shell->script, stdout);
    return CLI_OK;
}

static const struct cli_command commands[] = {
    {.name = "bash", .summary = "for bash", .main = completion_main},
    {.name = "fish", .summary = "for fish", .main = completion_main},
    {.name = "zsh", .summary = "for zsh", .main = completion_main},
};

static const struct cli_command *const members[] = {&commands[0], &commands[1], &commands[2], NULL};

const struct cli_command cli_completion = {
    .name = "completion",
    .summary = "print what completes weir's command lines in a shell",
    .what = "SHELL",
    .about = "Prints what completes weir's command lines in a shell.",
    .manual = "weir-completion(1)",
    .members = members,
};
