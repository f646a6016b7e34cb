// What the files of the `weir` command share: exit codes, messages, dispatch.
//
// Data goes to stdout, messages to stderr; a message is a sentence that names
// the thing and the remedy.
#ifndef WEIR_CLI_COMMON_CLI_H
#define WEIR_CLI_COMMON_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/common.h>

// Exit codes of the process. After a signal: CLI_SIGNALLED + its number.
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,      // an image failed, or a file cannot be read or written
    CLI_USAGE = 2,       // the command line is wrong
    CLI_SETUP = 3,       // the configuration, a module or a device cannot be used
    CLI_NOT_FOUND = 127, // `weir trace`: the command to run was not found
    CLI_SIGNALLED = 128,
};

// One command, or a group of them.
struct cli_command {
    const char *name;
    const char *summary; // one line, for the list
    // argv[0] is the command's own name. Returns an exit code.
    int (*main)(int argc, char **argv);
    // A group: NULL `main`, and what its members are called ("command").
    const char *what;
    const struct cli_command *members;
    size_t member_count;
};

// The commands. Each is in the folder of its name; `devices` and `config` are in doctor/.
extern const struct cli_command cli_bench;
extern const struct cli_command cli_calibrate;
extern const struct cli_command cli_check;
extern const struct cli_command cli_config;
extern const struct cli_command cli_conform;
extern const struct cli_command cli_devices;
extern const struct cli_command cli_doctor;
extern const struct cli_command cli_fault;
extern const struct cli_command cli_kernels;
extern const struct cli_command cli_launch;
extern const struct cli_command cli_perturb;
extern const struct cli_command cli_run;
extern const struct cli_command cli_sim;
extern const struct cli_command cli_trace;
extern const struct cli_command cli_train;

// Prints "weir: SENTENCE" to stderr, in one piece; a progress line is erased first.
//
// Threads: safe.
void cli_error(const char *format, ...) WEIR_PRINTF(1, 2);
void cli_warning(const char *format, ...) WEIR_PRINTF(1, 2);
void cli_note(const char *format, ...) WEIR_PRINTF(1, 2);

// Prints the thread's Weir error the same way, and returns the exit code that
// belongs to its status.
int cli_weir_error(void);

// Ends the command unless a file of that name can be written: asked before a long command runs, rather
// than found out when it ends. NULL can.
void cli_need_writable(const char *path);

// Writes a text to a file, and frees it; NULL is a text that there was no memory for, and whose name is `what`.
//
// Errors: false after a message.
bool cli_write_file(const char *path, char *text, size_t size, const char *what);

// Sends the library's warnings and errors to stderr. A message that is a
// compiler's log is printed whole.
void cli_log_to_stderr(void);

// Turns notes and warnings off; errors are still printed.
void cli_set_quiet(bool quiet);

// Prints the version, for --version of every command.
void cli_print_version(void);

// `weir completion`: prints a script with which a shell completes weir's command lines.

// `weir` is the whole command, as main() runs it: the scripts are made from what its --help and
// that of each of its commands tell, so that an option in a table is an option in the scripts.
//
// Returns an exit code.
int cli_completion(int (*weir)(int argc, char **argv), int argc, char **argv);

#endif
