// Runs of the program in other orders, and whether what they print is the same.
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/common/folder.h"
#include "cli/common/progress.h"
#include "cli/perturb/perturb.h"

// What a run leaves: its exit status, what it printed, and the files that it is asked to compare.

void result_finish(struct result *result)
{
    free(result->output.bytes);
    free(result->messages.bytes);
    for (size_t i = 0; i < CLI_LIST_LIMIT; i++)
        free(result->files[i].bytes);
    *result = (struct result){.took_ns = 0};
}

static bool grow(struct content *content, size_t *capacity)
{
    if (content->size < *capacity)
        return true;
    const size_t more = *capacity ? 2 * *capacity : 4096;
    char *bytes = realloc(content->bytes, more);
    if (!bytes)
        return false;
    content->bytes = bytes;
    *capacity = more;
    return true;
}

// Reads all of a file; false after a message.
static bool content_read(FILE *file, struct content *out_content)
{
    size_t capacity = 0;
    size_t count = 1;
    *out_content = (struct content){NULL, 0};
    while (count > 0 && grow(out_content, &capacity)) {
        count =
            fread(out_content->bytes + out_content->size, 1, capacity - out_content->size, file);
        out_content->size += count;
    }
    if (count == 0 && !ferror(file))
        return true;
    cli_error("no memory for what the program writes, or it cannot be read");
    return false;
}

// The file of that name; without one, NULL.
static bool content_load(const char *path, struct content *out_content)
{
    *out_content = (struct content){NULL, 0};
    char message[512];
    uint64_t size;
    int descriptor;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return true;
    if (!weir_file_open(path, &descriptor, &size, message, sizeof message)) {
        cli_error("%s", message);
        return false;
    }
    FILE *file = fdopen(descriptor, "rb");
    const bool ok = file && content_read(file, out_content);
    if (file)
        fclose(file);
    else
        close(descriptor);
    return ok;
}

uint64_t content_line(const struct content *a, const struct content *b)
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

bool result_differs(const struct settings *settings, const struct result *a, const struct result *b)
{
    bool differs = a->end.code != b->end.code || a->end.late != b->end.late;
    if (settings->compare)
        differs = differs || content_line(&a->output, &b->output);
    for (size_t i = 0; i < settings->files.count; i++)
        differs = differs || content_line(&a->files[i], &b->files[i]);
    return differs;
}

// One run. The program reads nothing, since no two runs could read the same, and writes into
// files that have no name.

struct streams {
    struct cli_folder folder;
    FILE *input;
    FILE *output;
    FILE *messages;
    char report[CLI_FOLDER_PATH_SIZE];
};

static void close_streams(struct streams *streams)
{
    if (streams->input)
        fclose(streams->input);
    if (streams->output)
        fclose(streams->output);
    if (streams->messages)
        fclose(streams->messages);
    cli_folder_remove(&streams->folder);
}

static bool open_input(struct streams *streams)
{
    streams->input = fopen("/dev/null", "re");
    if (!streams->input)
        cli_error("/dev/null cannot be read: %s", strerror(errno));
    return streams->input;
}

static bool open_streams(struct streams *streams)
{
    *streams = (struct streams){.input = NULL};
    if (!cli_folder_create(&streams->folder, "perturb"))
        return false;
    cli_folder_place(&streams->folder, "report", streams->report);
    if (open_input(streams) && (streams->output = cli_folder_open(&streams->folder)) &&
        (streams->messages = cli_folder_open(&streams->folder)))
        return true;
    close_streams(streams);
    return false;
}

static uint64_t number_of(const json_t *line, const char *name)
{
    const json_int_t number = json_integer_value(json_object_get(line, name));
    return number > 0 ? (uint64_t)number : 0;
}

// Each runtime that the program closed has appended a line.
static void read_report(const char *path, struct counts *out_counts)
{
    char text[1024];
    FILE *file = fopen(path, "re");
    while (file && fgets(text, sizeof text, file)) {
        json_t *line = weir_json_load(text, strlen(text), 0, NULL);
        out_counts->any = out_counts->any || line;
        out_counts->operations += number_of(line, "operations");
        out_counts->choices += number_of(line, "choices");
        out_counts->idle += number_of(line, "idle");
        out_counts->stalled += number_of(line, "stalled");
        out_counts->reversed += number_of(line, "reversed");
        json_decref(line);
    }
    if (file)
        fclose(file);
}

static bool start(const struct settings *settings, const uint64_t *seed, uint64_t limit_ms,
                  const struct streams *streams, struct cli_program_end *out_end)
{
    char number[32] = "";
    char plugins[sizeof settings->plugins + 16];
    if (seed)
        snprintf(number, sizeof number, "%" PRIu64, *seed);
    // The innermost, so that the other plugins see what the program submits as it does.
    snprintf(plugins, sizeof plugins, "%s%s%s", settings->plugins,
             seed && settings->plugins[0] ? ", " : "", seed ? "perturb" : "");
    const struct cli_program_variable variables[] = {
        {"WEIR_PLUGINS", plugins},
        {"WEIR_PERTURB_SEED", number},
        {"WEIR_PERTURB_MODE", settings->mode},
        {"WEIR_PERTURB_PAIR", settings->pair},
        {"WEIR_PERTURB_REPORT", streams->report},
    };
    const struct cli_program program = {
        .command = settings->command,
        .variables = variables,
        .variable_count = sizeof variables / sizeof *variables,
        .input = fileno(streams->input),
        .output = fileno(streams->output),
        .messages = fileno(streams->messages),
        .limit_ms = limit_ms,
    };
    return cli_program_run(&program, out_end);
}

// What an earlier run left must not be taken for this one's.
static bool clear_files(const struct settings *settings)
{
    for (size_t i = 0; i < settings->files.count; i++) {
        const char *path = settings->files.items[i];
        if (unlink(path) == 0 || errno == ENOENT)
            continue;
        cli_error("%s cannot be removed before a run: %s", path, strerror(errno));
        return false;
    }
    return true;
}

static bool collect(const struct settings *settings, const struct streams *streams,
                    struct result *result)
{
    rewind(streams->output);
    rewind(streams->messages);
    bool ok = content_read(streams->output, &result->output) &&
              content_read(streams->messages, &result->messages);
    for (size_t i = 0; i < settings->files.count; i++)
        ok = ok && content_load(settings->files.items[i], &result->files[i]);
    read_report(streams->report, &result->counts);
    return ok;
}

bool run_once(const struct settings *settings, const uint64_t *seed, uint64_t limit_ms,
              struct result *out_result)
{
    struct streams streams;
    *out_result = (struct result){.took_ns = 0};
    if (!clear_files(settings) || !open_streams(&streams))
        return false;
    const uint64_t began_ns = cli_now_ns();
    const bool ok = start(settings, seed, limit_ms, &streams, &out_result->end) &&
                    collect(settings, &streams, out_result);
    out_result->took_ns = cli_now_ns() - began_ns;
    close_streams(&streams);
    if (!ok)
        result_finish(out_result);
    return ok;
}
