// weir conform: runs the conformance suite over the configured chain. The suite is a program of its own; the
// command runs it as a child process and reads its output, so that a test that crashes or hangs is one failure
// and the other tests still run. The chain is opened here first, so that a chain that cannot be used is reported
// once and not as a failure of every test.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for pipe2()
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/folder.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/own.h"
#include "cli/common/progress.h"
#include "cli/common/signals.h"
#include "cli/program/program.h"
#include "cli/runtime/open.h"

enum conform_outcome {
    CONFORM_NOT_RUN,
    CONFORM_PASSED,
    CONFORM_FAILED,
    CONFORM_SKIPPED, // by a limit of the device
};

struct conform_result {
    char *name; // "Suite.Name"
    enum conform_outcome outcome;
    uint64_t ms;
    char *text; // what a failed test printed, why one was skipped; else NULL
};

struct conform {
    const char *program; // the suite's file
    uint64_t test_limit_seconds;
    struct conform_result *results;
    size_t count;
    size_t capacity;
    char *exit_text; // the failure after the last test; else NULL
    uint64_t elapsed_ns;
    // The chain.
    const char *module, *plugins, *device, *platform, *driver;
};

// The child prints GoogleTest's lines, which name a test when it begins and when it ends;
// the output in between is that test's. The end of the child is learned from waitpid()
// and not from the end of the pipe, which a process that a test left running may keep
// open.

enum {
    LINE_SIZE = 4096,
    TEXT_SIZE = 16384,
    POLL_MS = 100
};

struct child {
    pid_t process;
    int output;
    bool ended; // `status` is what waitpid() stored
    int status;
    size_t line_length;
    char line[LINE_SIZE];
};

// In the new process. The command's signals are blocked: one of its threads takes them. An interrupt at the terminal
// reaches the command alone, which then ends the suite.
static void prepare(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
}

// Starts the suite with what has not run, its output and errors in a pipe.
static void start(const struct conform *conform, char *filter, struct child *child)
{
    char *command[] = {cli_copy(conform->program), filter, cli_copy("--gtest_color=no"), NULL};
    int ends[2] = {-1, -1};
    *child = (struct child){.process = -1};
    int error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    const struct cli_program program = {
        .command = command,
        .no_input = true,
        .output = ends[1],
        .messages = ends[1],
        .prepare = prepare,
    };
    if (error == 0)
        error = cli_program_start(&program, &child->process);
    if (error)
        cli_fail(CLI_SETUP, "%s cannot be started: %s", conform->program, strerror(error));
    close(ends[1]);
    child->output = ends[0];
}

static bool has_ended(struct child *child)
{
    child->ended = child->ended || waitpid(child->process, &child->status, WNOHANG) != 0;
    return child->ended;
}

static void stop(struct child *child)
{
    close(child->output);
    if (!has_ended(child)) {
        kill(child->process, SIGKILL);
        waitpid(child->process, &child->status, 0);
        child->ended = true;
    }
}

// Listing.

static void add(struct conform *conform, struct conform_result result)
{
    conform->results =
        cli_grow(conform->results, conform->count, &conform->capacity, sizeof *conform->results);
    conform->results[conform->count++] = result;
}

// Fills `results` with the tests that `filter` matches: GoogleTest's patterns.
static void conform_list(struct conform *conform, const char *filter)
{
    char *command[] = {cli_copy(conform->program), cli_text("--gtest_filter=%s", filter),
                       cli_copy("--gtest_list_tests"), NULL};
    const struct cli_program program = {.command = command};
    const char *folder = cli_folder_create("conform"), *suite = "";
    struct cli_content listed;
    char *rest = NULL;
    const int code = cli_program_capture(&program, folder, &listed, NULL).code;
    cli_own(free, listed.bytes);
    if (code == CLI_NOT_FOUND || code == 126)
        cli_fail(CLI_SETUP, "%s cannot be executed here: unpack the whole archive for this machine",
                 conform->program);
    if (code != 0)
        cli_fail(CLI_SETUP, "%s does not list its tests: it is not the suite of this Weir",
                 conform->program);
    for (char *line = strtok_r(listed.bytes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "  ", 2) == 0 && *suite)
            add(conform, (struct conform_result){.name = cli_text("%s%s", suite, line + 2)});
        else if (line[1] && line[strlen(line) - 1] == '.' && !strchr(line, ' '))
            suite = line;
}

// Running.

struct reading {
    struct conform *conform;
    struct conform_result *current; // the test that runs
    uint64_t began_ns;
    size_t finished;
    size_t used;
    char text[TEXT_SIZE]; // what the current test has printed
    struct cli_progress progress;
};

static struct conform_result *find(const struct conform *conform, const char *name)
{
    for (size_t i = 0; i < conform->count; i++)
        if (strcmp(conform->results[i].name, name) == 0)
            return &conform->results[i];
    return NULL;
}

static void settle(struct reading *reading, enum conform_outcome outcome)
{
    struct conform_result *result = reading->current;
    result->outcome = outcome;
    result->ms = (cli_now_ns() - reading->began_ns) / 1000000;
    if (outcome == CONFORM_FAILED)
        result->text = cli_copy(reading->text);
    if (outcome == CONFORM_SKIPPED) {
        static const char mark[] = ": Skipped\n"; // ends the line with the file and its line number
        const char *reason = strstr(reading->text, mark);
        reason = reason ? reason + strlen(mark) : reading->text;
        result->text = cli_text("%.*s", (int)strcspn(reason, "\n"), reason);
    }
    reading->current = NULL;
    cli_progress_update(&reading->progress, ++reading->finished, result->name);
}

// Whether the line ends the current test. A driver's output may precede the mark.
static bool ends_test(struct reading *reading, const char *line)
{
    static const struct {
        const char *mark;
        enum conform_outcome outcome;
    } marks[] = {
        {"[       OK ] ", CONFORM_PASSED},
        {"[  FAILED  ] ", CONFORM_FAILED},
        {"[  SKIPPED ] ", CONFORM_SKIPPED},
    };
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *at = strstr(line, marks[i].mark);
        const char *name = at ? at + strlen(marks[i].mark) : NULL;
        const size_t length = strlen(reading->current->name);
        if (!name || strncmp(name, reading->current->name, length) != 0 ||
            strncmp(name + length, " (", 2) != 0)
            continue;
        settle(reading, marks[i].outcome);
        return true;
    }
    return false;
}

static void take_line(struct reading *reading, const char *line)
{
    static const char run[] = "[ RUN      ] ";
    if (reading->current) {
        if (!ends_test(reading, line))
            weir_text_append(reading->text, sizeof reading->text, &reading->used, "%s\n", line);
        return;
    }
    const char *name = strncmp(line, run, strlen(run)) == 0 ? line + strlen(run) : NULL;
    struct conform_result *result = name ? find(reading->conform, name) : NULL;
    if (!result || result->outcome != CONFORM_NOT_RUN)
        return;
    reading->current = result;
    reading->began_ns = cli_now_ns();
    reading->used = 0;
    reading->text[0] = '\0';
}

// Takes each complete line; one that is longer than the buffer is taken in parts.
static void cut_lines(struct reading *reading, struct child *child)
{
    char *begin = child->line;
    char *end;
    child->line[child->line_length] = '\0';
    while ((end = strchr(begin, '\n'))) {
        *end = '\0';
        take_line(reading, begin);
        begin = end + 1;
    }
    child->line_length = strlen(begin);
    memmove(child->line, begin, child->line_length + 1);
    if (child->line_length == LINE_SIZE - 1) {
        take_line(reading, child->line);
        child->line_length = 0;
    }
}

// Waits briefly for output and reads what there is. False at the end of the output.
static bool read_some(struct reading *reading, struct child *child)
{
    struct pollfd wait = {.fd = child->output, .events = POLLIN};
    if (poll(&wait, 1, POLL_MS) <= 0)
        return !has_ended(child);
    const ssize_t got =
        read(child->output, child->line + child->line_length, LINE_SIZE - 1 - child->line_length);
    if (got < 0)
        return errno == EINTR;
    // A zero byte, printed by a driver, would end the line early.
    for (ssize_t i = 0; i < got; i++)
        if (child->line[child->line_length + (size_t)i] == '\0')
            child->line[child->line_length + (size_t)i] = '?';
    child->line_length += (size_t)got;
    cut_lines(reading, child);
    return got > 0;
}

// "Suite.A:Suite.B" of all that has not run.
static char *filter_of_rest(const struct conform *conform)
{
    struct weir_long_text text = {0};
    const char *before = "--gtest_filter=";
    for (size_t i = 0; i < conform->count; i++) {
        if (conform->results[i].outcome != CONFORM_NOT_RUN)
            continue;
        weir_long_text_add(&text, "%s%s", before, conform->results[i].name);
        before = ":";
    }
    return cli_take_text(&text);
}

static const char *describe_end(int status)
{
    return WIFSIGNALED(status)
               ? cli_text("ended the program with %s", weir_text_signal(WTERMSIG(status)).text)
               : cli_text("ended the program with status %d", WEXITSTATUS(status));
}

// The test during which the program ended or was stopped has failed.
static void settle_broken(struct reading *reading, const struct child *child, bool hung)
{
    const char *end = hung ? cli_text("did not end within %" PRIu64 " s and was stopped",
                                      reading->conform->test_limit_seconds)
                           : describe_end(child->status);
    weir_text_append(reading->text, sizeof reading->text, &reading->used, "the test %s\n", end);
    settle(reading, CONFORM_FAILED);
}

static size_t conform_count(const struct conform *conform, enum conform_outcome outcome)
{
    size_t count = 0;
    for (size_t i = 0; i < conform->count; i++)
        count += conform->results[i].outcome == outcome;
    return count;
}

// After its last test the program must exit with the status that the outcomes ask for.
static void check_end(struct conform *conform, const struct child *child, bool stuck)
{
    const int expected = conform_count(conform, CONFORM_FAILED) > 0;
    if (!stuck && WIFEXITED(child->status) && WEXITSTATUS(child->status) <= expected)
        return;
    conform->exit_text = cli_text("what ran after the last test %s\n",
                                  stuck ? "did not end the program" : describe_end(child->status));
}

// Runs what has not run yet, until the program ends.
static void run_rest(struct reading *reading)
{
    struct conform *conform = reading->conform;
    struct child child;
    bool hung = false;
    start(conform, filter_of_rest(conform), &child);
    while (!hung && !cli_signal() && read_some(reading, &child))
        hung = reading->current &&
               cli_now_ns() - reading->began_ns > conform->test_limit_seconds * 1000000000u;
    // The program closed its output, or a test hangs. Ending takes the program a moment.
    for (int i = 0; !hung && !cli_signal() && i < 10000 && !has_ended(&child); i++)
        poll(NULL, 0, 1);
    const bool stuck = !has_ended(&child);
    stop(&child);
    if (cli_signal())
        return;
    if (reading->current)
        settle_broken(reading, &child, hung);
    else
        check_end(conform, &child, stuck);
}

// Runs them all. Afterwards each has an outcome; CONFORM_NOT_RUN remains only after an
// interrupt (cli/common/signals.h).
static void conform_run(struct conform *conform)
{
    struct reading *reading = cli_allocate(1, sizeof *reading);
    const uint64_t began = cli_now_ns();
    size_t before = 0;
    reading->conform = conform;
    cli_progress_start(&reading->progress, true, conform->count, "tests/s");
    // Stops after a round in which no test ended: the next one would not differ.
    do {
        before = reading->finished;
        run_rest(reading);
    } while (!cli_signal() && reading->finished < conform->count && reading->finished > before);
    cli_progress_end(&reading->progress);
    conform->elapsed_ns = cli_now_ns() - began;
    for (size_t i = 0; !cli_signal() && i < conform->count; i++)
        if (conform->results[i].outcome == CONFORM_NOT_RUN) {
            conform->results[i].outcome = CONFORM_FAILED;
            conform->results[i].text = cli_copy("the program ended before it ran this test\n");
        }
    if (conform->exit_text)
        add(conform, (struct conform_result){.name = cli_copy("Suite.Ends"),
                                             .outcome = CONFORM_FAILED,
                                             .text = conform->exit_text});
}

// The report of a run, as text, as JSON, and as JUnit's XML.

static const char *const outcome_names[] = {
    [CONFORM_NOT_RUN] = "not run",
    [CONFORM_PASSED] = "passed",
    [CONFORM_FAILED] = "failed",
    [CONFORM_SKIPPED] = "skipped",
};

// Text.

static void print_skipped(const struct conform *conform)
{
    struct weir_table table = {.alignment = "ll"};
    if (conform_count(conform, CONFORM_SKIPPED) == 0)
        return;
    printf("skipped:\n");
    for (size_t i = 0; i < conform->count; i++) {
        const struct conform_result *result = &conform->results[i];
        if (result->outcome != CONFORM_SKIPPED)
            continue;
        weir_table_add(&table, "%s", result->name);
        weir_table_add(&table, "%s", result->text ? result->text : "");
    }
    cli_table_print(&table, stdout, 2);
    printf("\n");
}

static void print_text(const struct conform *conform)
{
    for (size_t i = 0; i < conform->count; i++) {
        const struct conform_result *result = &conform->results[i];
        if (result->outcome == CONFORM_FAILED)
            printf("FAILED %s\n%s\n", result->name, result->text ? result->text : "");
    }
    print_skipped(conform);
    printf("%s%s%s on '%s' (%s; %s)\n", conform->plugins, *conform->plugins ? " > " : "",
           conform->module, conform->device, conform->platform, conform->driver);
    printf("%zu %s in %s: %zu passed, %zu failed, %zu skipped\n", conform->count,
           conform->count == 1 ? "test" : "tests",
           weir_text_duration((double)conform->elapsed_ns).text,
           conform_count(conform, CONFORM_PASSED), conform_count(conform, CONFORM_FAILED),
           conform_count(conform, CONFORM_SKIPPED));
}

// JSON.

static json_t *test_list(const struct conform *conform)
{
    json_t *list = json_array();
    for (size_t i = 0; i < conform->count; i++) {
        const struct conform_result *result = &conform->results[i];
        json_t *test = json_object();
        cli_json_set(test, "name", cli_json_string(result->name));
        cli_json_set(test, "outcome", json_string(outcome_names[result->outcome]));
        cli_json_set(test, "ms", weir_json_count(result->ms));
        if (result->text)
            cli_json_set(test, "text", cli_json_string(result->text));
        cli_json_append(list, test);
    }
    return list;
}

static int print_json(const struct conform *conform, int code)
{
    json_t *root = json_object();
    cli_json_set(root, "weir", json_string(weir_version()));
    cli_json_set(root, "module", cli_json_string(conform->module));
    cli_json_set(root, "plugins", cli_json_string(conform->plugins));
    cli_json_set(root, "device", cli_json_string(conform->device));
    cli_json_set(root, "platform", cli_json_string(conform->platform));
    cli_json_set(root, "driver", cli_json_string(conform->driver));
    cli_json_set(root, "elapsed_ns", weir_json_count(conform->elapsed_ns));
    cli_json_set(root, "total", weir_json_count(conform->count));
    for (int i = CONFORM_PASSED; i <= CONFORM_SKIPPED; i++)
        cli_json_set(root, outcome_names[i],
                     weir_json_count(conform_count(conform, (enum conform_outcome)i)));
    cli_json_set(root, "tests", test_list(conform));
    return cli_json_print(root, code);
}

// XML.

static void add_case(struct weir_long_text *xml, const struct conform_result *result)
{
    const char *dot = strchr(result->name, '.');
    const bool failed = result->outcome == CONFORM_FAILED;
    weir_long_text_add(xml, "  <testcase classname=\"%.*s\" name=\"%s\" time=\"%.3f\"",
                       (int)(dot ? dot - result->name : 0), result->name,
                       dot ? dot + 1 : result->name, (double)result->ms / 1e3);
    if (result->outcome == CONFORM_PASSED) {
        weir_long_text_add(xml, "/>\n");
        return;
    }
    weir_long_text_add(xml, "><%s message=\"", failed ? "failure" : "skipped");
    // XML has no form for other control characters.
    for (const char *text = result->text ? result->text : ""; *text; text++)
        if (strchr("&<\"\n", *text))
            weir_long_text_add(xml, "&#%d;", *text);
        else
            weir_long_text_add(xml, "%c", *text < 32 || *text > 126 ? '?' : *text);
    weir_long_text_add(xml, "\"/></testcase>\n");
}

// In the form of JUnit's. False after a message.
static bool write_xml(const struct conform *conform, const char *path)
{
    struct weir_long_text xml = {0};
    weir_long_text_add(
        &xml,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuite name=\"conformance\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\" "
        "time=\"%.3f\">\n",
        conform->count, conform_count(conform, CONFORM_FAILED),
        conform_count(conform, CONFORM_SKIPPED), (double)conform->elapsed_ns / 1e9);
    for (size_t i = 0; i < conform->count; i++)
        add_case(&xml, &conform->results[i]);
    weir_long_text_add(&xml, "</testsuite>\n");
    return cli_write_file(path, xml.failed ? NULL : xml.text, xml.used, "the report");
}

enum {
    LIMIT_SECONDS = 300,
    MOST_SECONDS = 86400
};

static const char about[] =
    "Proves a machine: runs the conformance suite over the backend and the plugins that the\n"
    "environment, the configuration or these options name. A test is skipped where a limit of\n"
    "the device rules it out, and listed with the reason. One that crashes or hangs has failed,\n"
    "and the rest still runs.";

struct options {
    const char *backend;
    const char *plugins;
    const char *filter;
    const char *xml;
    uint64_t limit_seconds;
    bool list;
    bool json;
};

static void parse(struct options *out, int argc, char **argv)
{
    const struct cli_option options[] = {
        {"backend", "B", "the backend; sets WEIR_BACKEND", CLI_TEXT, &out->backend, 0, 0},
        {"plugins", "P", "the plugins, separated by commas; sets\nWEIR_PLUGINS", CLI_TEXT,
         &out->plugins, 0, 0},
        {"filter", "F",
         "run only the tests that match: *, ?, alternatives\nafter ':', what "
         "follows a '-' left out",
         CLI_TEXT, &out->filter, 0, 0},
        {"limit", "S", "seconds that one test may take; without it, 300", CLI_COUNT,
         &out->limit_seconds, 1, MOST_SECONDS},
        {"list", NULL, "print the names of the tests and run none", CLI_FLAG, &out->list, 0, 0},
        {"json", NULL, "print the report as JSON", CLI_FLAG, &out->json, 0, 0},
        {"xml", "FILE", "write it to FILE as well, in the form of JUnit's", CLI_FILE, &out->xml, 0,
         0},
    };
    const struct cli_usage usage = CLI_FORM_PLAIN("weir conform", about, options);
    cli_parse(&usage, argc, argv);
}

// The suite of an installation, or of a build tree, where it does not find the modules
// without WEIR_MODULE_PATH.
static const char *find_suite(void)
{
    static const char built[] = "tests/conformance/conformance";
    const char *suite =
        cli_find_own("libexec/weir/conformance", built, CLI_SETUP, "the suite is missing",
                     "unpack the whole archive, or build //tests/conformance");
    const char *tree = strstr(suite, built);
    if (tree)
        setenv("WEIR_MODULE_PATH", cli_text("%.*slib/weir", (int)(tree - suite), suite), 0);
    return suite;
}

// Opens the chain and stores its names for the report.
static void look_at_chain(struct conform *conform)
{
    const struct weir_open_params params = cli_open_params(NULL);
    weir_runtime *runtime;
    weir_device *device;
    const char *plugins = getenv("WEIR_PLUGINS");
    // Closed before the suite opens the chain.
    cli_fine(weir_open_at(&params, &runtime, NULL, 0));
    cli_fine(weir_device_open_at(runtime, NULL, &device, NULL, 0));
    const struct weir_device_info *info = weir_device_get_info(device);
    conform->module = cli_copy(weir_runtime_backend(runtime));
    conform->plugins = plugins ? plugins : "";
    conform->device = cli_copy(info->name);
    conform->platform = cli_copy(info->platform);
    conform->driver = cli_copy(info->driver);
    cli_fine(weir_device_close(&device));
    cli_fine(weir_close(&runtime));
}

static int run_tests(struct conform *conform, const struct options *options)
{
    cli_need_writable(options->xml);
    look_at_chain(conform);
    cli_signals_start();
    cli_signals_defer(NULL, NULL);
    conform_run(conform);
    cli_signals_resume();
    if (cli_signal()) {
        const size_t left = conform_count(conform, CONFORM_NOT_RUN);
        cli_error(
            "interrupted: %zu of %zu tests have run, and %zu of them failed; there is no report",
            conform->count - left, conform->count, conform_count(conform, CONFORM_FAILED));
        return CLI_SIGNALLED + cli_signal();
    }
    int code = conform_count(conform, CONFORM_FAILED) > 0 ? CLI_FAILED : CLI_OK;
    if (options->xml && !write_xml(conform, options->xml))
        code = CLI_FAILED;
    if (options->json)
        return print_json(conform, code);
    print_text(conform);
    return code;
}

int cli_conform(int argc, char **argv)
{
    struct options options = {.filter = "*", .limit_seconds = LIMIT_SECONDS};
    struct conform conform = {0};
    parse(&options, argc, argv);
    cli_log_to_stderr();
    if (options.backend)
        setenv("WEIR_BACKEND", options.backend, 1);
    if (options.plugins)
        setenv("WEIR_PLUGINS", options.plugins, 1);
    conform.program = find_suite();
    conform.test_limit_seconds = options.limit_seconds;
    conform_list(&conform, options.filter);
    if (conform.count == 0)
        cli_fail(CLI_USAGE, "no test matches '%s'; `weir conform --list` prints their names",
                 options.filter);
    if (!options.list)
        return run_tests(&conform, &options);
    for (size_t i = 0; i < conform.count; i++)
        printf("%s\n", conform.results[i].name);
    return CLI_OK;
}
