// The child prints GoogleTest's lines, which name a test when it begins and when it ends;
// the output in between is that test's. The end of the child is learned from waitpid()
// and not from the end of the pipe, which a process that a test left running may keep
// open.
#include "cli/common/progress.h"
#include "cli/conform/conform.h"

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
#include "cli/common/signals.h"

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

// Starts the suite with one argument or two, its output and errors in a pipe.
static bool start(const struct conform *conform, const char *first, const char *second,
                  struct child *child)
{
    const char *arguments[] = {"conformance", first, second, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];

    *child = (struct child){.output = -1};
    int error = pipe(ends) == 0 ? 0 : errno;
    if (error == 0) {
        fcntl(ends[0], F_SETFD, FD_CLOEXEC);
        fcntl(ends[1], F_SETFD, FD_CLOEXEC);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
        // An interrupt at the terminal reaches this process alone, which then ends the suite.
        error = cli_spawn(conform->program, arguments, &actions, true, &child->process);
        posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        child->output = ends[0];
    }
    if (error != 0) {
        cli_error("%s cannot be started: %s", conform->program, strerror(error));
        if (child->output >= 0)
            close(child->output);
    }
    return error == 0;
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

// Calls `take` with each complete line; a line that is longer than the buffer is passed in
// parts.
static void cut_lines(struct child *child, void (*take)(void *user, const char *line), void *user)
{
    char *begin = child->line;
    char *end;
    child->line[child->line_length] = '\0';
    while ((end = strchr(begin, '\n'))) {
        *end = '\0';
        take(user, begin);
        begin = end + 1;
    }
    child->line_length = strlen(begin);
    memmove(child->line, begin, child->line_length + 1);
    if (child->line_length == LINE_SIZE - 1) {
        take(user, child->line);
        child->line_length = 0;
    }
}

// Waits briefly for output and reads what there is. False at the end of the output.
static bool read_some(struct child *child, void (*take)(void *user, const char *line), void *user)
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
    cut_lines(child, take, user);
    return got > 0;
}

// Listing.

struct listing {
    struct conform *conform;
    char suite[128];
    bool ok;
};

static void add_test(struct listing *listing, const char *name)
{
    struct conform *conform = listing->conform;
    struct conform_result *larger =
        realloc(conform->results, (conform->count + 1) * sizeof *conform->results);
    const size_t size = strlen(listing->suite) + strlen(name) + 1;
    char *whole = malloc(size);
    if (larger)
        conform->results = larger;
    listing->ok = listing->ok && larger && whole;
    if (!listing->ok) {
        free(whole);
        return;
    }
    snprintf(whole, size, "%s%s", listing->suite, name);
    conform->results[conform->count++] = (struct conform_result){.name = whole};
}

static void take_listed(void *user, const char *line)
{
    struct listing *listing = user;
    const size_t length = strlen(line);
    if (strncmp(line, "  ", 2) == 0 && listing->suite[0])
        add_test(listing, line + 2);
    else if (length > 1 && line[length - 1] == '.' && !strchr(line, ' '))
        snprintf(listing->suite, sizeof listing->suite, "%s", line);
}

static char *join_filter(const char *filter)
{
    static const char option[] = "--gtest_filter=";
    const size_t size = sizeof option + strlen(filter);
    char *text = malloc(size);
    if (text)
        snprintf(text, size, "%s%s", option, filter);
    return text;
}

bool conform_list(struct conform *conform, const char *filter)
{
    struct listing listing = {.conform = conform, .ok = true};
    struct child child;
    char list[] = "--gtest_list_tests";
    char *argument = join_filter(filter);
    if (!argument)
        cli_error("no memory for the filter of tests");
    if (!argument || !start(conform, list, argument, &child)) {
        free(argument);
        return false;
    }
    free(argument);
    while (read_some(&child, take_listed, &listing))
        continue;
    while (!has_ended(&child))
        poll(NULL, 0, 1);
    stop(&child);
    if (!listing.ok)
        cli_error("no memory for the list of tests");
    else if (child.status != 0)
        cli_error("%s does not list its tests: it is not the suite of this Weir", conform->program);
    return listing.ok && child.status == 0;
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

static struct conform_result *find(const struct conform *conform, const char *name, size_t length)
{
    for (size_t i = 0; i < conform->count; i++)
        if (strncmp(conform->results[i].name, name, length) == 0 &&
            conform->results[i].name[length] == '\0')
            return &conform->results[i];
    return NULL;
}

// The reason of a skip follows the line with its file and line number.
static char *skip_reason(const char *text)
{
    static const char mark[] = ": Skipped\n";
    const char *reason = strstr(text, mark);
    reason = reason ? reason + strlen(mark) : text;
    char *copy = strdup(reason);
    if (copy)
        copy[strcspn(copy, "\n")] = '\0';
    return copy;
}

static void settle(struct reading *reading, enum conform_outcome outcome)
{
    static const char unsupported[] = "unsupported: ";
    struct conform_result *result = reading->current;
    result->outcome = outcome;
    result->ms = (cli_now_ns() - reading->began_ns) / 1000000;
    if (outcome == CONFORM_FAILED)
        result->text = strdup(reading->text);
    if (outcome == CONFORM_SKIPPED)
        result->text = skip_reason(reading->text);
    if (result->text && strncmp(result->text, unsupported, strlen(unsupported)) == 0) {
        result->outcome = CONFORM_UNSUPPORTED;
        memmove(result->text, result->text + strlen(unsupported),
                strlen(result->text) - strlen(unsupported) + 1);
    }
    reading->current = NULL;
    cli_progress_update(&reading->progress, ++reading->finished, result->name);
}

static void begin(struct reading *reading, struct conform_result *result)
{
    reading->current = result;
    reading->began_ns = cli_now_ns();
    reading->used = 0;
    reading->text[0] = '\0';
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

static void take_line(void *user, const char *line)
{
    static const char run[] = "[ RUN      ] ";
    struct reading *reading = user;
    if (reading->current) {
        if (!ends_test(reading, line))
            weir_text_append(reading->text, sizeof reading->text, &reading->used, "%s\n", line);
        return;
    }
    const char *name = strncmp(line, run, strlen(run)) == 0 ? line + strlen(run) : NULL;
    struct conform_result *result = name ? find(reading->conform, name, strlen(name)) : NULL;
    if (result && result->outcome == CONFORM_NOT_RUN)
        begin(reading, result);
    // The suite's own last line.
    const char *expected = strstr(line, " unsupported, ");
    if (expected && strncmp(line, "[ CONFORM  ]", 12) == 0)
        reading->conform->expected_failures +=
            strtoull(expected + strlen(" unsupported, "), NULL, 10);
}

// "Suite.A:Suite.B" of all that has not run.
static char *filter_of_rest(const struct conform *conform)
{
    static const char option[] = "--gtest_filter=";
    size_t size = sizeof option;
    size_t used = 0;
    for (size_t i = 0; i < conform->count; i++)
        size += strlen(conform->results[i].name) + 1;
    char *text = malloc(size);
    if (!text)
        return NULL;
    weir_text_append(text, size, &used, "%s", option);
    for (size_t i = 0; i < conform->count; i++)
        if (conform->results[i].outcome == CONFORM_NOT_RUN)
            weir_text_append(text, size, &used, "%s%s", used >= sizeof option ? ":" : "",
                             conform->results[i].name);
    return text;
}

static void describe_end(char *text, size_t size, int status)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "ended the program with %s",
                 weir_text_signal((char[WEIR_TEXT_QUANTITY_SIZE]){0}, WTERMSIG(status)));
    else
        snprintf(text, size, "ended the program with status %d", WEXITSTATUS(status));
}

// The test during which the program ended or was stopped has failed.
static void settle_broken(struct reading *reading, const struct child *child, bool hung)
{
    char end[160];
    describe_end(end, sizeof end, child->status);
    if (hung)
        snprintf(end, sizeof end, "did not end within %" PRIu64 " s and was stopped",
                 reading->conform->test_limit_seconds);
    weir_text_append(reading->text, sizeof reading->text, &reading->used, "the test %s\n", end);
    settle(reading, CONFORM_FAILED);
}

// After its last test the program must exit with the status that the outcomes ask for.
static void check_end(struct conform *conform, const struct child *child, bool stuck)
{
    const int expected = conform_count(conform, CONFORM_FAILED) > 0;
    char end[160] = "did not end the program";
    if (!stuck && WIFEXITED(child->status) && WEXITSTATUS(child->status) <= expected)
        return;
    if (!stuck)
        describe_end(end, sizeof end, child->status);
    free(conform->exit_text);
    conform->exit_text = malloc(sizeof end + 32);
    if (conform->exit_text)
        snprintf(conform->exit_text, sizeof end + 32, "what ran after the last test %s", end);
}

// Runs what has not run yet, until the program ends.
static bool run_rest(struct reading *reading)
{
    struct conform *conform = reading->conform;
    struct child child;
    char plain[] = "--gtest_color=no";
    bool hung = false;
    char *filter = filter_of_rest(conform);
    if (!filter)
        cli_error("no memory for the filter of tests");
    const bool started = filter && start(conform, filter, plain, &child);
    free(filter);
    if (!started)
        return false;
    while (!hung && !cli_signal() && read_some(&child, take_line, reading))
        hung = reading->current &&
               cli_now_ns() - reading->began_ns > conform->test_limit_seconds * 1000000000u;
    // The program closed its output, or a test hangs. Ending takes the program a moment.
    for (int i = 0; !hung && !cli_signal() && i < 10000 && !has_ended(&child); i++)
        poll(NULL, 0, 1);
    const bool stuck = !has_ended(&child);
    stop(&child);
    if (cli_signal())
        return true;
    if (reading->current)
        settle_broken(reading, &child, hung);
    else
        check_end(conform, &child, stuck);
    return true;
}

bool conform_run(struct conform *conform)
{
    struct reading *reading = calloc(1, sizeof *reading);
    const uint64_t began = cli_now_ns();
    bool fine = reading != NULL;
    size_t before = 0;
    if (!reading)
        cli_error("no memory to run the suite");
    else
        reading->conform = conform;
    if (fine)
        cli_progress_start(&reading->progress, true, conform->count, "tests/s");
    // Stops after a round in which no test ended: the next one would not differ.
    do {
        before = fine ? reading->finished : 0;
        fine = fine && run_rest(reading);
    } while (fine && !cli_signal() && reading->finished < conform->count &&
             reading->finished > before);
    if (reading)
        cli_progress_end(&reading->progress);
    free(reading);
    conform->elapsed_ns = cli_now_ns() - began;
    for (size_t i = 0; fine && !cli_signal() && i < conform->count; i++)
        if (conform->results[i].outcome == CONFORM_NOT_RUN) {
            conform->results[i].outcome = CONFORM_FAILED;
            conform->results[i].text = strdup("the program ended before it ran this test\n");
        }
    return fine;
}

size_t conform_count(const struct conform *conform, enum conform_outcome outcome)
{
    size_t count = 0;
    for (size_t i = 0; i < conform->count; i++)
        count += conform->results[i].outcome == outcome;
    return count;
}

void conform_finish(struct conform *conform)
{
    for (size_t i = 0; i < conform->count; i++) {
        free(conform->results[i].name);
        free(conform->results[i].text);
    }
    free(conform->results);
    free(conform->exit_text);
    conform->results = NULL;
    conform->exit_text = NULL;
    conform->count = 0;
}
