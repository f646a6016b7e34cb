// Runs of the program in other orders, and whether what they print is the same.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

uint64_t content_line(const struct cli_content *a, const struct cli_content *b)
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

// One run. The program reads nothing, since no two runs could read the same.

static bool start(const struct settings *settings, const uint64_t *seed, uint64_t limit_ms,
                  const struct cli_folder *folder, struct result *result)
{
    char report[CLI_FOLDER_PATH_SIZE];
    char number[32] = "";
    char plugins[sizeof settings->plugins + 16];
    cli_folder_place(folder, "report", report);
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
        {"WEIR_PERTURB_REPORT", report},
    };
    const struct cli_program program = {
        .command = settings->command,
        .variables = variables,
        .variable_count = sizeof variables / sizeof *variables,
        .limit_ms = limit_ms,
    };
    const bool ok =
        cli_program_capture(&program, folder, &result->end, &result->output, &result->messages);
    cli_perturb_read(report, &result->counts);
    return ok;
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

bool run_once(const struct settings *settings, const uint64_t *seed, uint64_t limit_ms,
              struct result *out_result)
{
    struct cli_folder folder;
    *out_result = (struct result){.took_ns = 0};
    if (!clear_files(settings) || !cli_folder_create(&folder, "perturb"))
        return false;
    const uint64_t began_ns = cli_now_ns();
    bool ok = start(settings, seed, limit_ms, &folder, out_result);
    for (size_t i = 0; i < settings->files.count; i++)
        ok = ok && cli_content_read(settings->files.items[i], &out_result->files[i]);
    out_result->took_ns = cli_now_ns() - began_ns;
    cli_folder_remove(&folder);
    if (!ok)
        result_finish(out_result);
    return ok;
}
