// What the files of the `weir` command share: exit codes, messages, dispatch.
//
// Data goes to stdout, messages to stderr; a message is a sentence that names
// the thing and the remedy.
#ifndef WEIR_CLI_COMMON_CLI_H
#define WEIR_CLI_COMMON_CLI_H

#include <stdbool.h>
#include <stddef.h>

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

// One command, or a group of them, or both: a group that has a `main` runs it unless the first word is a member.
struct cli_command {
    const char *name;
    const char *summary; // one line, for the list
    // argv[0] is the command's own name. Returns an exit code.
    int (*main)(int argc, char **argv);
    const struct cli_command *members; // the last one has no name; NULL: no group
    const char *about;                 // above the list of members
    const char *what; // of a group without a `main`: what its members are called, "COMMAND"
};

// What the commands do; the table of them is in main.c. Each is in the folder of its name; `devices` and `config`
// are in doctor/.
int cli_bench_arr_coc(int argc, char **argv);
int cli_bench_comm(int argc, char **argv);
int cli_bench_overlap(int argc, char **argv);
int cli_bench_pipeline(int argc, char **argv);
int cli_bench_submit(int argc, char **argv);
int cli_bench_swim(int argc, char **argv);
int cli_calibrate(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_completion(int argc, char **argv);
int cli_config_check(int argc, char **argv);
int cli_conform(int argc, char **argv);
int cli_devices(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_doctor_comm(int argc, char **argv);
int cli_fault(int argc, char **argv);
int cli_kernels_build(int argc, char **argv);
int cli_kernels_check(int argc, char **argv);
int cli_kernels_compare(int argc, char **argv);
int cli_kernels_list(int argc, char **argv);
int cli_kernels_ptx(int argc, char **argv);
int cli_kernels_resources(int argc, char **argv);
int cli_kernels_sass(int argc, char **argv);
int cli_launch(int argc, char **argv);
int cli_perturb(int argc, char **argv);
int cli_run_arr_coc(int argc, char **argv);
int cli_sim(int argc, char **argv);
int cli_trace(int argc, char **argv);
int cli_train(int argc, char **argv);
// Those of `sim` and `trace`, which look at the names themselves.
extern const struct cli_command cli_sim_members[];
extern const struct cli_command cli_trace_members[];

// What --quiet sets: notes, warnings and progress are left out; errors are still printed.
extern bool cli_quiet;

// Prints "weir: SENTENCE" to stderr, in one piece; a progress line is erased first.
//
// Threads: safe.
void cli_error(const char *format, ...) WEIR_PRINTF(1, 2);
// The same unless --quiet; the sentence of a warning is after "warning: ".
#define cli_note(...) (cli_quiet ? (void)0 : cli_error(__VA_ARGS__))
#define cli_warning(...) cli_note("warning: " __VA_ARGS__)

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

// Prints the version, for --version of every command.
void cli_print_version(void);

#endif
