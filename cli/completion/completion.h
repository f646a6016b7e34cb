// What the writers of the three scripts share.
//
// A script is a table of all commands, of the form that the shell reads best, and fixed text that
// completes from it. The table has the whole name of a command as key, such as `weir run arr-coc`.
#ifndef WEIR_CLI_COMPLETION_COMPLETION_H
#define WEIR_CLI_COMPLETION_COMPLETION_H

#include "cli/common/options.h"

// What an operand or the value of an option is.
enum completion_value {
    COMPLETION_NONE, // a flag, or a command that takes no operand
    COMPLETION_TEXT, // nothing that a shell could complete
    COMPLETION_FILE,
    COMPLETION_FOLDER,
    COMPLETION_PROGRAM, // a program and its arguments
};

enum completion_value completion_of_option(const struct cli_option *option);
enum completion_value completion_of_operands(const char *operands);

// Whether the option may be given several times.
bool completion_repeats(const struct cli_option *option);

// "-" or "--", for a name.
const char *completion_dashes(const char *name);

// What --help and --version are, which are in no table.
extern const struct cli_option completion_common[2];

// Prints the first clause of a help text, on one line, with `escape` before each character of
// `special`. A quotation mark ' becomes `quote`.
void completion_print(const char *text, const char *special, const char *quote);

// Calls the functions for every command and every group; each group comes before its members.
void completion_visit(void (*usage)(void *user, const struct cli_usage *usage),
                      void (*members)(void *user, const struct cli_command *group,
                                      const char *path));

// Each prints its script to standard output.
void completion_bash(void);
void completion_zsh(void);
void completion_fish(void);

#endif
