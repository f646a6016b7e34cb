// Command lines: one table of options for each command, from which its arguments are
// parsed and its help is printed.
#ifndef WEIR_CLI_COMMON_OPTIONS_H
#define WEIR_CLI_COMMON_OPTIONS_H

#include "base/grow.h"
#include "cli/common/cli.h"

enum cli_option_kind {
    CLI_FLAG,    // bool *
    CLI_TEXT,    // const char **
    CLI_FILE,    // the same, the name of a file
    CLI_FOLDER,  // the same, the name of a folder
    CLI_VALUES,  // CLI_TEXT as the first member of a structure, which the command reads further
    CLI_COUNT,   // uint64_t *, between `minimum` and `maximum`
    CLI_LIST,    // struct weir_words *; may be given several times
    CLI_FILES,   // the same, names of files
    CLI_FOLDERS, // the same, names of folders
};

enum {
    CLI_LIST_LIMIT = 256
};

// Given as --NAME VALUE or --NAME=VALUE, and with a name of one letter, or by cli_option_letter(), as -N VALUE or
// -NVALUE; at most once unless it is a list. What several commands have is called the same in all: `output` is the
// file or folder that is written, `quiet` leaves out notes and progress, `json` prints JSON, `list` names what there
// is and runs nothing, `plot` is a picture of the figures, `config` is CLI_CONFIG.
struct cli_option {
    const char *name;
    const char *value; // its name in the help; NULL for a flag
    const char *help;
    enum cli_option_kind kind;
    void *out; // left alone when the option is not given
    uint64_t minimum;
    uint64_t maximum;
};

struct cli_usage {
    const char *command;  // "weir run arr-coc"
    const char *operands; // as in the first line of the help; "" for none
    const char *operand;  // one of them, for messages: "an image"
    const char *about;    // paragraphs below the first line; NULL: the command's summary
    const struct cli_option *options;
    size_t option_count;
    size_t operand_minimum;
    size_t operand_maximum;
};

// --help and --version, which every command has besides.
extern const struct cli_option cli_options_of_all[2];

// What stands before an option of that name: "-" or "--".
const char *cli_option_dashes(const char *name);

// The letter that an option of this name has besides, in every command that has it; '\0' for none.
char cli_option_letter(const char *name);

// The option that the argument names, and its value in the same argument, or NULL.
const struct cli_option *cli_option_find(const struct cli_usage *usage, const char *argument,
                                         const char **out_value);

// The option --config, for cli_open().
#define CLI_CONFIG(out)                                                                      \
    {                                                                                        \
        "config", "F", "the INI file; without it, the one that WEIR_CONFIG\nnames, or none", \
            CLI_FILE, (out), 0, 0                                                            \
    }

// The option --quiet.
#define CLI_QUIET(help)                                   \
    {                                                     \
        "quiet", NULL, (help), CLI_FLAG, &cli_quiet, 0, 0 \
    }

// Of a command with a table of options: with `least` to `most` operands; with none; and with a program and its
// arguments after the options, for cli_program_parse().
#define CLI_FORM(command, operands, operand, least, most, about, options)                          \
    {                                                                                              \
        (command), (operands), (operand), (about), (options), sizeof(options) / sizeof *(options), \
            (least), (most)                                                                        \
    }
#define CLI_FORM_PLAIN(command, about, options) CLI_FORM(command, "", "", 0, 0, about, options)
#define CLI_FORM_PROGRAM(command, operands, about, options) \
    CLI_FORM(command, operands, "", 0, 0, about, options)

// Reads the arguments after argv[0]. Operands are moved to the start of argv, from index
// 0; `--` ends the options. Every command takes
// --help and --version, which print to stdout.
//
// Returns how many operands there are. After --help, --version or an error, with the nearest name if there is
// one, the command ends.
size_t cli_parse(const struct cli_usage *usage, int argc, char **argv);

// The index of the option's value among `words`, which end with NULL.
//
// Errors: another value ends the command, after a sentence with all words and the nearest one.
size_t cli_choose(const char *option, const char *text, const char *const *words);

// The command that words name, the index of the first word that is its own, and what its --help prints.
typedef void cli_use_help(const struct cli_command *command, size_t first,
                          const struct cli_usage *usage);

// Finds the command among those below the one that cli_dispatch() was called with first, which words[0] is; the last word
// names none. Calls `use` once, in place of --help, or for a group that is no command, with no options: how
// `weir completion` sees them. Then ends the command, or, after a group, returns.
void cli_help_usage(char **words, size_t count, cli_use_help *use);

// Runs the member that argv[1] names, or the command itself: a group alone prints help, version or an
// error. `path` is how the command is called on the command line: "weir".
int cli_dispatch(const struct cli_command *command, const char *path, int argc, char **argv);

#endif
