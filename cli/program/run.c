// A program that the command starts: its chain of modules, its files, and its end.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for pipe2() and realpath()
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/inspect.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json/json.h"
#include "cli/common/own.h"
#include "cli/common/signals.h"
#include "cli/program/program.h"

// The environment that adds a plugin to the chain of every runtime of a program.

struct wanted {
    const char *key;
    const char *text; // NULL: not found yet
};

static bool take_setting(void *user, const char *section, const struct weir_setting *setting)
{
    struct wanted *wanted = user;
    if (strcmp(section, "weir") == 0 && strcmp(setting->key->name, wanted->key) == 0)
        wanted->text = cli_copy(setting->text);
    return !wanted->text;
}

// The value of a key of [weir], as the environment and WEIR_CONFIG name it. NULL: Weir's error says why.
static const char *find_setting(const char *key)
{
    struct wanted wanted = {.key = key};
    WEIR_IGNORE(weir_inspect_settings(NULL, take_setting, &wanted));
    return wanted.text;
}

const char *cli_program_list_plugins(const char *without)
{
    struct weir_long_text text = {0};
    const char *name = find_setting("plugins"); // which the library has checked
    size_t length;
    if (!name)
        cli_fail_weir();
    weir_long_text_add(&text, "%s", "");
    for (; *(name += strspn(name, ", \t")); name += length) {
        length = strcspn(name, ", \t");
        if (strlen(without) != length || strncmp(name, without, length) != 0)
            weir_long_text_add(&text, "%s%.*s", text.used ? ", " : "", (int)length, name);
    }
    return cli_take_text(&text);
}

const char *cli_program_end_plugins(const char *plugins, const char *last)
{
    return cli_text("%s%s%s", plugins, plugins[0] ? ", " : "", last);
}

void cli_program_add_plugin(const char *name)
{
    const char *others = cli_program_list_plugins(name);
    setenv("WEIR_PLUGINS", cli_text("%s%s%s", name, others[0] ? ", " : "", others), 1);
}

// The name is absolute: the program may have changed its directory when it writes.
const char *cli_program_take_trace(const char *path)
{
    struct stat status;
    char directory[PATH_MAX];
    if (path[0] != '/' && !getcwd(directory, sizeof directory))
        cli_fail(CLI_USAGE,
                 "the working directory is gone; name the trace with --output /DIRECTORY/FILE");
    const char *trace = path[0] == '/' ? cli_copy(path) : cli_text("%s/%s", directory, path);
    if (strlen(trace) >= PATH_MAX)
        cli_fail(CLI_USAGE, "%s: the name is too long for a trace; give another one with --output",
                 path);
    // An old one could be mistaken for one that COMMAND wrote.
    const bool old = stat(trace, &status) == 0;
    if (old && !S_ISREG(status.st_mode))
        cli_fail(CLI_USAGE, "%s is not a regular file; name another one with --output", trace);
    if (old && unlink(trace) != 0)
        cli_fail(CLI_USAGE, "%s cannot be replaced: %s; name another one with --output", trace,
                 strerror(errno));
    cli_need_writable(trace);
    return trace;
}

// Command lines that end with another command and its arguments.

char **cli_program_parse(const struct cli_usage *usage, int argc, char **argv)
{
    int before = 1; // arguments before COMMAND
    while (before < argc && argv[before][0] == '-' && argv[before][1] != '\0' &&
           strcmp(argv[before], "--") != 0) {
        const char *value;
        const struct cli_option *option = cli_option_find(usage, argv[before], &value);
        before += option && option->kind != CLI_FLAG && !value ? 2 : 1;
    }
    if (before > argc)
        before = argc;
    cli_parse(usage, before, argv);
    char **command = argv + before + (before < argc && strcmp(argv[before], "--") == 0);
    if (!*command)
        cli_fail(CLI_USAGE, "%s needs a command: %s %s", usage->command, usage->command,
                 usage->operands);
    return command;
}

void cli_program_show_word(struct weir_long_text *line, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=:,+@%";
    const char *quote = !*word || strspn(word, plain) != strlen(word) ? "'" : "";
    weir_long_text_add(line, "%s%s", line->used ? " " : "", quote);
    for (; *word; word++)
        weir_long_text_add(line, *word == '\'' ? "'\\''" : "%c", *word);
    weir_long_text_add(line, "%s", quote);
}

// A process for a program.

// In the new process.
static _Noreturn void become(const struct cli_program *program, int report)
{
    if (program->prepare)
        program->prepare();
    if (program->output)
        dup2(program->output, STDOUT_FILENO);
    if (program->messages)
        dup2(program->messages, STDERR_FILENO);
    for (size_t i = 0; i < program->variable_count; i++)
        putenv((char *)(uintptr_t)program->variables[i]); // which is not written to
    signal(SIGXFSZ, SIG_DFL);
    if (!program->no_input ||
        (close(STDIN_FILENO) == 0 && open("/dev/null", O_RDONLY) == STDIN_FILENO))
        execvp(program->command[0], program->command);
    const int error = errno;
    const ssize_t written = write(report, &error, sizeof error);
    _exit(written == sizeof error ? CLI_NOT_FOUND : CLI_FAILED);
}

int cli_program_start(const struct cli_program *program, pid_t *out_process)
{
    int report[2]; // closed by the program's beginning; else it gets the number of the error
    int error = 0;
    *out_process = -1;
    if (pipe2(report, O_CLOEXEC) != 0)
        return errno;
    fflush(stdout);
    const pid_t process = fork();
    if (process == 0)
        become(program, report[1]);
    if (process < 0)
        error = errno;
    close(report[1]);
    if (process > 0 && read(report[0], &error, sizeof error) == sizeof error)
        waitpid(process, NULL, 0);
    close(report[0]);
    *out_process = process;
    return error;
}

int cli_program_tell_missing(const char *name, int error)
{
    cli_error("%s cannot be run: %s", name, strerror(error));
    return error == ENOENT ? CLI_NOT_FOUND : 126;
}

// The terminal sends its signals to both processes; this one holds them, takes them while it waits for the program, and
// so outlives them.

static struct {
    sigset_t signals; // that are held
    sigset_t before;  // the process's mask
    bool in_series;
    int received;
} held;

static void hold_signals(void)
{
    static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD};
    if (held.in_series)
        return;
    cli_signals_list(numbers, sizeof numbers / sizeof *numbers, &held.signals);
    sigprocmask(SIG_BLOCK, &held.signals, &held.before);
}

static void release_signals(void)
{
    sigprocmask(SIG_SETMASK, &held.before, NULL);
}

void cli_program_begin_series(void)
{
    hold_signals();
    held.in_series = true;
}

// Takes a signal, for which it waits until then. 0: none came.
static int take_signal(uint64_t wait_ns)
{
    const struct timespec wait = weir_clock_timespec(wait_ns);
    const int number = sigtimedwait(&held.signals, NULL, &wait);
    if (number > 0 && number != SIGCHLD)
        held.received = number;
    return number > 0 ? number : 0;
}

int cli_program_signal(void)
{
    while (take_signal(0))
        continue;
    return held.received;
}

// A SIGCHLD that a thread of another library has taken delays the end, but does not hide it.
#define LOOKS_AFTER_NS UINT64_C(1000000000)

static int wait_for(pid_t process, uint64_t limit_ms, bool *out_late)
{
    uint64_t end_ns = limit_ms ? weir_clock_deadline(limit_ms * 1000000) : UINT64_MAX;
    int status = 0;
    while (waitpid(process, &status, WNOHANG) == 0) {
        const uint64_t left_ns = weir_clock_left(end_ns);
        const int number = take_signal(left_ns < LOOKS_AFTER_NS ? left_ns : LOOKS_AFTER_NS);
        if (number == SIGTERM || number == SIGHUP)
            kill(process, number);
        if (weir_clock_left(end_ns) > 0)
            continue;
        *out_late = true;
        kill(process, SIGKILL);
        end_ns = UINT64_MAX;
    }
    return status;
}

static struct cli_program_end finish(const struct cli_program *program, pid_t process)
{
    struct cli_program_end end = {.late = false};
    const int status = wait_for(process, program->limit_ms, &end.late);
    const int received = cli_program_signal();
    // The reader of captured output tells of a signal itself; one that this process received too is not told.
    if (WIFSIGNALED(status) && !program->messages && !end.late && WTERMSIG(status) != received)
        cli_error("%s was ended by %s", program->command[0],
                  weir_text_signal(WTERMSIG(status)).text);
    end.code = WIFSIGNALED(status) ? CLI_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
    return end;
}

struct cli_program_end cli_program_run(const struct cli_program *program)
{
    struct cli_program own = *program;
    struct cli_program_end end = {.late = false};
    pid_t process;
    hold_signals();
    own.prepare = release_signals;
    const int early = cli_program_signal(); // before there was a program to pass it on to
    const int error = cli_program_start(&own, &process);
    if (error == 0 && early)
        kill(process, early);
    if (error == 0)
        end = finish(program, process);
    else if (process > 0)
        end.code = cli_program_tell_missing(program->command[0], error);
    if (!held.in_series)
        release_signals();
    if (process < 0)
        cli_fail(CLI_SETUP, "a process for %s cannot be created: %s", program->command[0],
                 strerror(error));
    return end;
}

// A program whose output is kept, and what the plugin perturb reports of its runs.

struct cli_content cli_content_read(const char *path)
{
    char message[512];
    void *bytes = NULL;
    struct cli_content content = {NULL, 0};
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return content;
    if (!weir_file_read(path, SIZE_MAX / 2, &bytes, &content.size, message, sizeof message))
        cli_fail(CLI_SETUP, "what the program wrote is lost: %s", message);
    content.bytes = bytes;
    return content;
}

uint64_t cli_content_line(const struct cli_content *a, const struct cli_content *b)
{
    const size_t size = a->size < b->size ? a->size : b->size;
    uint64_t line = 1;
    for (size_t i = 0; i < size; i++) {
        if (a->bytes[i] != b->bytes[i])
            return line;
        line += a->bytes[i] == '\n';
    }
    return a->size == b->size && !a->bytes == !b->bytes ? 0 : line;
}

static int open_file(const char *path)
{
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0)
        cli_fail(CLI_SETUP, "%s cannot be opened: %s; free space, or set TMPDIR to another folder",
                 path, strerror(errno));
    return descriptor;
}

struct cli_program_end cli_program_capture(const struct cli_program *program, const char *folder,
                                           struct cli_content *out_output,
                                           struct cli_content *out_messages)
{
    const char *output = cli_text("%s/output", folder), *messages = cli_text("%s/messages", folder);
    struct cli_program own = *program;
    own.no_input = true;
    own.output = open_file(output);
    own.messages = out_messages ? open_file(messages) : own.output;
    const struct cli_program_end end = cli_program_run(&own);
    close(own.output);
    *out_output = cli_content_read(output);
    if (out_messages) {
        close(own.messages);
        *out_messages = cli_content_read(messages);
    }
    return end;
}

static uint64_t number_of(const json_t *line, const char *name)
{
    const json_int_t number = json_integer_value(json_object_get(line, name));
    return number > 0 ? (uint64_t)number : 0;
}

// Adds up the lines, one for each runtime.
static struct cli_perturb_counts read_counts(const char *path)
{
    char text[1024];
    struct cli_perturb_counts counts = {.runtimes = 0};
    FILE *file = fopen(path, "re");
    while (file && fgets(text, sizeof text, file)) {
        json_t *line = weir_json_load(text, strlen(text), 0, NULL);
        counts.runtimes += line != NULL;
        counts.operations += number_of(line, "operations");
        counts.choices += number_of(line, "choices");
        counts.by_the_clock += number_of(line, "idle") + number_of(line, "stalled");
        counts.reversed += number_of(line, "reversed");
        json_decref(line);
    }
    if (file)
        fclose(file);
    return counts;
}

struct cli_perturb_run cli_perturb_run(const struct cli_program *program, const char *folder,
                                       uint64_t seed)
{
    static const char report[] = "WEIR_PERTURB_REPORT=";
    const char *variables[CLI_PERTURB_VARIABLES + 2];
    const char *file = cli_text("%s%s/report", report, folder);
    struct cli_perturb_run run = {.output = {NULL, 0}};
    struct cli_program own = *program;
    memcpy(variables, program->variables, program->variable_count * sizeof *variables);
    variables[own.variable_count++] = cli_text("WEIR_PERTURB_SEED=%" PRIu64, seed);
    variables[own.variable_count++] = file;
    own.variables = variables;
    unlink(file + strlen(report));
    run.end = cli_program_capture(&own, folder, &run.output, &run.messages);
    run.counts = read_counts(file + strlen(report));
    return run;
}

// Libraries that a program loads though it does not know of Weir. They lie beside the modules, and a
// variable of the program's environment names them by their whole path.

// The absolute path of the library, which is in the folder of a module's file. NULL: it is in none.
static const char *find(const char *file)
{
    const char *directories = find_setting("module_path"), *found = NULL;
    weir_load_report *report = NULL;
    if (!directories || weir_inspect_modules(directories, &report) < 0)
        return NULL;
    for (size_t i = 0; i < weir_load_report_count(report) && !found; i++) {
        const char *module = weir_load_report_entry(report, i)->path;
        const char *slash = strrchr(module, '/');
        const int folder = slash ? (int)(slash - module) + 1 : 0;
        char *path = realpath(cli_text("%.*s%s", folder, module, file), NULL);
        cli_own(free, path);
        found = path && access(path, R_OK) == 0 ? path : NULL;
    }
    weir_load_report_destroy(&report);
    return found;
}

const char *cli_program_prepend(const char *variable, const char *item)
{
    const char *present = getenv(variable);
    return cli_text("%s=%s%s%s", variable, item, present && *present ? ":" : "",
                    present ? present : "");
}

const char *cli_preload_find(const char *file, const char *variable, const char *loss)
{
    const char *path = find(file);
    if (!path) {
        cli_error("there is no %s beside the modules, so %s; install all of Weir", file, loss);
        return NULL;
    }
    // Both lists have these separators, and no way to write them in a name.
    if (strpbrk(path, ": ")) {
        cli_error("%s cannot be named in %s, because of a space or colon in its path, so %s; "
                  "install Weir elsewhere",
                  path, variable, loss);
        return NULL;
    }
    return cli_program_prepend(variable, path);
}

size_t cli_program_add_opencl(const struct cli_opencl *opencl, bool times, const char **variables)
{
    size_t count = 0;
    struct weir_long_text skips = {.text = NULL};
    if (!opencl->off)
        variables[count] = cli_preload_find("libweir_opencl_layer.so", "OPENCL_LAYERS",
                                            "the program's own OpenCL calls are not seen");
    if (opencl->off || !variables[count++])
        return 0;
    for (size_t i = 0; i < opencl->skip.count; i++)
        weir_long_text_add(&skips, "%s%s", i ? ":" : "", opencl->skip.items[i]);
    if (opencl->skip.count)
        variables[count++] = cli_text("WEIR_OPENCL_SKIP=%s", cli_take_text(&skips));
    if (times)
        variables[count++] = "WEIR_OPENCL_TIMES=1";
    return count;
}
