// Running a program with a plugin in its chain: what `weir trace COMMAND...` and its like
// share. A command reads its line with cli_program_parse(), puts its plugin into the
// environment with cli_program_add_plugin(), and runs the program once or many times.
#ifndef WEIR_CLI_PROGRAM_H
#define WEIR_CLI_PROGRAM_H

#include <sys/types.h>

#include "base/table.h"
#include "cli/common/options.h"

// Reads the options before COMMAND; what follows it are its arguments, whatever they begin
// with. `--` may end the options. `usage` has COMMAND in its `operands`, and needs neither
// `operand` nor a count of operands.
//
// Returns COMMAND and its arguments, in argv, which ends with NULL. Ends the command as cli_parse() does.
char **cli_program_parse(const struct cli_usage *usage, int argc, char **argv);

// Adds a word to a command line that a message shows: after a space, and quoted where the shell would take a
// character for something else.
void cli_program_show_word(struct weir_long_text *line, const char *word);

// Sets WEIR_PLUGINS to `name`, then what the environment and WEIR_CONFIG name without it:
// the outermost plugin sees every call of the program. The rest of the configuration is
// unchanged.
//
// Errors: those of the configuration end the command.
void cli_program_add_plugin(const char *name);

// What the environment and WEIR_CONFIG name as plugins, without `without`, as WEIR_PLUGINS takes it.
//
// Ownership: the command's. Errors: as cli_program_add_plugin().
const char *cli_program_list_plugins(const char *without);
// Such a list with one more at its end. Ownership: the command's.
const char *cli_program_end_plugins(const char *plugins, const char *last);

// The absolute name of the trace that the program is to write, which --output named. Removes an old one.
//
// Ownership: the command's. Errors: they end it.
const char *cli_program_take_trace(const char *path);

// "VARIABLE=ITEM", with what the environment names there already after a colon.
//
// Ownership: the command's.
const char *cli_program_prepend(const char *variable, const char *item);

// Finds a library of Weir's beside the modules, for programs that do not know of it, and returns the variable that
// lets a program load it.
//
// Ownership: the command's. Errors: NULL after a warning with `loss`, a clause that says what is missing then.
const char *cli_preload_find(const char *file, const char *variable, const char *loss);

// What commands that see a program's OpenCL calls set for it.
enum {
    CLI_OPENCL_VARIABLES = 3
};

struct cli_opencl {
    bool off;               // --no-opencl-layer
    struct weir_words skip; // --skip
};

// Their options; rows of a table that is sorted by name are not next to each other.
#define CLI_OPTION_NO_OPENCL_LAYER(opencl)                                                \
    {                                                                                     \
        "no-opencl-layer", NULL, "do not look at OpenCL calls that COMMAND makes itself", \
            CLI_FLAG, &(opencl)->off, 0, 0                                                \
    }
#define CLI_OPTION_SKIP(opencl)                                                                  \
    {                                                                                            \
        "skip", "LIB",                                                                           \
            "a library that wraps OpenCL, such as libfoo: lines are those\nof its callers; may " \
            "be "                                                                                \
            "given several times",                                                               \
            CLI_LIST, &(opencl)->skip, 0, 0                                                      \
    }

// Adds the variables of the OpenCL layer, at most CLI_OPENCL_VARIABLES. With `times` the driver's times are asked for.
size_t cli_program_add_opencl(const struct cli_opencl *opencl, bool times, const char **variables);

struct cli_program {
    char **command; // ends with NULL; looked up in PATH
    // "NAME=VALUE", set in the program's environment alone; "NAME": it is not set there.
    const char *const *variables;
    size_t variable_count;
    bool no_input;     // its standard input is empty; else it is this process's
    int output;        // the descriptor that is its standard output; 0: this process's
    int messages;      // the same of standard error
    uint64_t limit_ms; // after which it is killed; 0: none. Of those that cli_program_run() runs
    // Called in the new process first, such as to give back signals that this one holds. NULL: nothing is; that of
    // cli_program_run() is its own.
    void (*prepare)(void);
};

// Starts the program. Returns 0, or the error's number: that of the program, which cannot be run, or, if `*out_process` is
// -1, of creating a process.
int cli_program_start(const struct cli_program *program, pid_t *out_process);

// Tells that the program cannot be run because of that error, and returns the exit code for it.
int cli_program_tell_missing(const char *name, int error);

struct cli_program_end {
    int code;  // the program's, CLI_SIGNALLED + a signal's number, CLI_NOT_FOUND, or 126
    bool late; // it was killed because of `limit_ms`
};

// Runs the program and waits for it. While it runs, this process outlives the signals that
// a terminal sends to both; SIGTERM and SIGHUP are passed on to the program. What could
// not be run is told in a sentence, on this process's standard error.
//
// Threads: one at a time.
// Errors: those of this process's own end the command.
struct cli_program_end cli_program_run(const struct cli_program *program);

// What a program wrote, followed by a zero byte; NULL without a file.
//
// Ownership: `bytes` are the user's, to be freed with free().
// Errors: they end the command with CLI_SETUP, which no result of the program gives.
struct cli_content {
    char *bytes;
    size_t size;
};

// Reads a file. That there is none is no error.
struct cli_content cli_content_read(const char *path);

// The line from which on two contents differ, counted from 1; 0: nowhere.
uint64_t cli_content_line(const struct cli_content *a, const struct cli_content *b);

// As cli_program_run(), without input, and with what the program prints kept in files of the folder, and
// then read. Without `out_messages` both streams are `out_output`, as they came.
struct cli_program_end cli_program_capture(const struct cli_program *program, const char *folder,
                                           struct cli_content *out_output,
                                           struct cli_content *out_messages);

enum {
    CLI_PERTURB_VARIABLES = 3
};

// What the plugin perturb reported, of all runtimes that the program closed.
struct cli_perturb_counts {
    uint64_t runtimes;
    uint64_t operations;
    uint64_t choices;
    uint64_t by_the_clock;
    uint64_t reversed;
};

// What a run with the plugin left.
struct cli_perturb_run {
    struct cli_program_end end;
    struct cli_content output;
    struct cli_content messages;
    struct cli_perturb_counts counts;
};

// Runs the program as cli_program_capture() does. Its variables, at most CLI_PERTURB_VARIABLES, name the chain, of which
// the plugin is the innermost, so that the others see what the program submits, and the mode.
//
// Ownership: the contents are the caller's.
struct cli_perturb_run cli_perturb_run(const struct cli_program *program, const char *folder,
                                       uint64_t seed);

// Before several runs: until the command ends this process outlives those signals between them too. The caller asks
// cli_program_signal() before each run. What a program would do with a signal that came before it, it does.
void cli_program_begin_series(void);

// The last of those signals that came since the process began, or 0: a command that runs a
// program many times ends then.
int cli_program_signal(void);

#endif
