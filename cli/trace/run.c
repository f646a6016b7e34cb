// weir trace COMMAND...: runs COMMAND with an environment that adds the plugin and names its
// file. The rest of the configuration is unchanged.
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/trace/trace.h"
#include "core/config/config.h"
#include "report/trace.h"

static const char about[] =
    "Runs COMMAND, any program that uses Weir, with the plugin `trace` in its chain, and says\n"
    "where the trace is. Ends as COMMAND did. Options come before COMMAND; what follows it\n"
    "are its arguments. `weir trace report`, `timeline`, `check` and `diff` read traces; to run a\n"
    "COMMAND of such a name, put -- before it.";

struct options {
    const char *output;
    bool report;
    bool quiet;
};

// How many arguments come before COMMAND, argv[0] included.
static int leading(int argc, char **argv)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
        if (strcmp(argv[i], "--") == 0)
            return i;
        i += strcmp(argv[i], "--output") == 0 ? 2 : 1;
    }
    return i < argc ? i : argc;
}

static bool parse(struct options *out, int argc, char **argv, int *out_exit)
{
    const struct cli_option options[] = {
        {"output", "FILE",
         "write the trace to FILE; compressed if it ends in\n.gz; without it, trace.json", CLI_TEXT,
         &out->output, 0, 0},
        {"report", NULL, "print the report when COMMAND has ended", CLI_FLAG, &out->report, 0, 0},
        {"quiet", NULL, "print nothing but errors and the report", CLI_FLAG, &out->quiet, 0, 0},
    };
    const struct cli_usage usage = {
        .command = "weir trace",
        .operands = "COMMAND [ARGUMENT]...",
        .operand = "a command",
        .about = about,
        .manual = "weir-trace(1)",
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    size_t operands;
    return cli_parse(&usage, argc, argv, &operands, out_exit);
}

static bool make_absolute(const char *path, char *text, size_t size)
{
    char directory[PATH_MAX];
    int length;
    if (path[0] == '/') {
        length = snprintf(text, size, "%s", path);
    } else if (getcwd(directory, sizeof directory)) {
        length = snprintf(text, size, "%s/%s", directory, path);
    } else {
        cli_error("the working directory is gone; name the trace with --output /DIRECTORY/FILE");
        return false;
    }
    if (length < (int)size)
        return true;
    cli_error("%s: the name is too long for a trace; give another one with --output", path);
    return false;
}

// Removes an old trace, which could be mistaken for one that COMMAND wrote.
static bool clear(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return true;
    if (!S_ISREG(status.st_mode)) {
        cli_error("%s is not a regular file; name another one with --output", path);
        return false;
    }
    if (unlink(path) == 0)
        return true;
    cli_error("%s cannot be replaced: %s; name another one with --output", path, strerror(errno));
    return false;
}

// The chain's plugins as the environment and WEIR_CONFIG name them, with trace as the
// outermost: there it sees every call of the program, and the times as the other plugins
// report them.
static bool add_plugin(char *text, size_t size)
{
    char names[16][WEIR__NAME_SIZE];
    struct weir__config *config = NULL;
    size_t count = 0;
    if (weir__config_load(NULL, &config) < 0 ||
        weir__config_list(weir__config_weir(config, "plugins"), true, names,
                          sizeof names / sizeof *names, &count) < 0) {
        weir__config_destroy(&config);
        return false;
    }
    size_t used = (size_t)snprintf(text, size, "trace");
    for (size_t i = 0; i < count && used < size; i++)
        if (strcmp(names[i], "trace") != 0)
            used += (size_t)snprintf(text + used, size - used, ", %s", names[i]);
    weir__config_destroy(&config);
    return true;
}

static bool set_environment(const char *path)
{
    char plugins[16 * (WEIR__NAME_SIZE + 2) + 8];
    if (!add_plugin(plugins, sizeof plugins))
        return false;
    setenv("WEIR_PLUGINS", plugins, 1);
    setenv(WEIR_TRACE_FILE_VARIABLE, path, 1);
    return true;
}

// Running. The terminal sends its signals to both processes; this one waits for COMMAND.

static volatile sig_atomic_t child;

static void pass_on(int number)
{
    if (child > 0)
        kill((pid_t)child, number);
}

static int run(char **command)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction pass = {.sa_handler = pass_on};
    struct sigaction old[4];
    static const int numbers[4] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    int status = 0;
    for (size_t i = 0; i < 4; i++)
        sigaction(numbers[i], i < 2 ? &ignore : &pass, &old[i]);
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        for (size_t i = 0; i < 4; i++)
            sigaction(numbers[i], &old[i], NULL);
        signal(SIGXFSZ, SIG_DFL);
        execvp(command[0], command);
        const int error = errno;
        cli_error("%s cannot be run: %s", command[0], strerror(error));
        _exit(error == ENOENT ? CLI_NOT_FOUND : 126);
    }
    child = pid;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    for (size_t i = 0; i < 4; i++)
        sigaction(numbers[i], &old[i], NULL);
    if (pid < 0) {
        cli_error("a process for %s cannot be created: %s", command[0], strerror(errno));
        return CLI_SETUP;
    }
    return WIFSIGNALED(status) ? CLI_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

static int no_trace(const char *command, const char *path, int code)
{
    // COMMAND has printed why it failed.
    if (code != 0)
        return code;
    cli_error("%s wrote no trace to %s: it opened no runtime of Weir's, or one whose plugins the "
              "program names itself; list trace there",
              command, path);
    return CLI_FAILED;
}

// A trace without its end is no success, though the command may have taken no notice.
static int check_end(const char *command, const char *path,
                     const struct weir_report_summary *summary, int code)
{
    if (!summary->truncated || code != CLI_OK)
        return code;
    cli_error("%s is incomplete: %s did not close its runtime, or could not write the rest of the "
              "trace, as weir_close() told it then; free space, or name another file with --output",
              path, command);
    return CLI_FAILED;
}

static int tell(const char *command, const char *path, const struct options *options, int code)
{
    weir_report *report = NULL;
    char span[WEIR_TEXT_QUANTITY_SIZE];
    const int opened = cli_trace_open(path, NULL, 0, options->quiet, &report);
    if (opened != CLI_OK)
        return code ? code : opened;
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    if (!options->quiet)
        cli_note("%llu %s in %s: %s; `weir trace report %s` tells more",
                 (unsigned long long)summary->operations,
                 summary->operations == 1 ? "operation" : "operations",
                 weir_text_duration(span, (double)summary->span_ns), path, path);
    if (options->report) {
        char *text = weir_report_text(report);
        if (text)
            fputs(text, stdout);
        weir_report_free_text(&text);
    }
    code = check_end(command, path, summary, code);
    weir_report_destroy(&report);
    return code;
}

// What became of the trace. With %p in it, the name that the plugin made has the process's number:
// that of COMMAND, unless it left the work to another one.
static int look_at(const char *command, const char *path, const struct options *options, int code)
{
    char name[PATH_MAX];
    struct stat status;
    const bool numbered = strstr(path, "%p");
    const bool there =
        weir_trace_path(path, (uint64_t)child, name, sizeof name) && stat(name, &status) == 0;
    if (there)
        return tell(command, name, options, code);
    if (!numbered)
        return no_trace(command, path, code);
    if (options->report)
        cli_warning("there is no %s, so no report: %s left the work to another process, or did "
                    "none; `weir trace report` takes its file",
                    name, command);
    return code;
}

int cli_trace_run(int argc, char **argv)
{
    struct options options = {.output = "trace.json"};
    char path[PATH_MAX];
    const int before = leading(argc, argv);
    char **command = argv + before;
    int code;
    if (!parse(&options, before, argv, &code))
        return code;
    if (*command && strcmp(*command, "--") == 0)
        command++;
    if (!*command) {
        cli_error("weir trace needs a command: weir trace COMMAND [ARGUMENT]...");
        return CLI_USAGE;
    }
    if (!make_absolute(options.output, path, sizeof path) || !clear(path))
        return CLI_USAGE;
    if (!cli_can_write(path))
        return CLI_FAILED;
    if (!set_environment(path))
        return cli_weir_error();
    code = run(command);
    return look_at(command[0], path, &options, code);
}
