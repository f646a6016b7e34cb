// weir conform: runs the conformance suite over the configured chain. The chain is opened
// here first, so that a chain that cannot be used is reported once and not as a failure of
// every test.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/options.h"
#include "cli/common/share.h"
#include "cli/common/signals.h"
#include "cli/conform/conform.h"
#include "cli/runtime/open.h"

enum {
    LIMIT_SECONDS = 300,
    MOST_SECONDS = 86400
};

static const char about[] =
    "Proves a machine: runs the conformance suite over the backend and the plugins that the\n"
    "environment, the configuration or these options name. A test is skipped where a limit of\n"
    "the device rules it out, and unsupported where the suite's list says so for good; both\n"
    "are listed with the reason. One that crashes or hangs has failed, and the rest still runs.";

struct options {
    const char *backend;
    const char *plugins;
    const char *filter;
    const char *xml;
    uint64_t limit_seconds;
    bool list;
    bool json;
};

static bool parse(struct options *out, int argc, char **argv, int *out_exit)
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
    const struct cli_usage usage =
        CLI_FORM_PLAIN("weir conform", about, "weir-conform(1)", options);
    size_t operands;
    return cli_parse(&usage, argc, argv, &operands, out_exit);
}

// The suite of an installation, or of a build tree, where it does not find the modules
// without WEIR_MODULE_PATH.
static bool find_suite(char *path, size_t size)
{
    char directory[PATH_MAX];
    char modules[PATH_MAX + 32];
    if (!cli_program_directory(directory, sizeof directory)) {
        cli_error("/proc/self/exe cannot be read, so the folder of the program is not known; mount "
                  "/proc");
        return false;
    }
    snprintf(path, size, "%s/../libexec/weir/conformance", directory);
    if (access(path, X_OK) == 0)
        return true;
    snprintf(path, size, "%s/../tests/conformance/conformance", directory);
    if (access(path, X_OK) == 0) {
        snprintf(modules, sizeof modules, "%s/../lib/weir", directory);
        setenv("WEIR_MODULE_PATH", modules, 0);
        return true;
    }
    cli_error("the suite is missing: there is neither %s/../libexec/weir/conformance nor %s; "
              "unpack the whole archive, or build //tests/conformance",
              directory, path);
    return false;
}

// Opens the chain and stores its names for the report.
static bool look_at_chain(struct conform *conform)
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    const char *plugins = getenv("WEIR_PLUGINS");
    const bool fine = cli_open(NULL, NULL, &runtime) == WEIR_OK &&
                      weir_device_open_at(runtime, NULL, &device, NULL, 0) == WEIR_OK;
    if (fine) {
        const struct weir_device_info *info = weir_device_get_info(device);
        snprintf(conform->module, sizeof conform->module, "%s", weir_runtime_backend(runtime));
        snprintf(conform->plugins, sizeof conform->plugins, "%s", plugins ? plugins : "");
        snprintf(conform->device, sizeof conform->device, "%s", info->name);
        snprintf(conform->platform, sizeof conform->platform, "%s", info->platform);
        snprintf(conform->driver, sizeof conform->driver, "%s", info->driver);
    } else {
        cli_weir_error();
    }
    return cli_close(&device, &runtime, CLI_OK) == CLI_OK && fine;
}

static int list_tests(const struct conform *conform)
{
    for (size_t i = 0; i < conform->count; i++)
        printf("%s\n", conform->results[i].name);
    return CLI_OK;
}

static int tell_interrupt(const struct conform *conform)
{
    const size_t left = conform_count(conform, CONFORM_NOT_RUN);
    cli_error("interrupted: %zu of %zu tests have run, and %zu of them failed; there is no report",
              conform->count - left, conform->count, conform_count(conform, CONFORM_FAILED));
    return CLI_SIGNALLED + cli_signal();
}

static bool run_suite(struct conform *conform)
{
    if (!cli_signals_start())
        return false;
    cli_signals_defer(NULL, NULL);
    const bool fine = conform_run(conform);
    cli_signals_resume();
    cli_signals_end();
    return fine;
}

static int run_tests(struct conform *conform, const struct options *options)
{
    if (!cli_can_write(options->xml))
        return CLI_FAILED;
    if (!look_at_chain(conform) || !run_suite(conform))
        return CLI_SETUP;
    if (cli_signal())
        return tell_interrupt(conform);
    int code =
        conform_count(conform, CONFORM_FAILED) > 0 || conform->exit_text ? CLI_FAILED : CLI_OK;
    if (options->xml && !conform_write_xml(conform, options->xml))
        code = CLI_FAILED;
    if (options->json)
        return conform_print_json(conform, code);
    conform_print_text(conform);
    return code;
}

static int conform_main(int argc, char **argv)
{
    struct options options = {.filter = "*", .limit_seconds = LIMIT_SECONDS};
    struct conform conform = {0};
    char path[PATH_MAX + 64];
    int code = CLI_USAGE;
    if (!parse(&options, argc, argv, &code))
        return code;
    cli_log_to_stderr();
    if (options.backend)
        setenv("WEIR_BACKEND", options.backend, 1);
    if (options.plugins)
        setenv("WEIR_PLUGINS", options.plugins, 1);
    if (!find_suite(path, sizeof path))
        return CLI_SETUP;
    conform.program = path;
    conform.test_limit_seconds = options.limit_seconds;
    if (!conform_list(&conform, options.filter)) {
        code = CLI_SETUP;
    } else if (conform.count == 0) {
        cli_error("no test matches '%s'; `weir conform --list` prints their names", options.filter);
        code = CLI_USAGE;
    } else {
        code = options.list ? list_tests(&conform) : run_tests(&conform, &options);
    }
    conform_finish(&conform);
    return code;
}

const struct cli_command cli_conform = {
    .name = "conform",
    .summary = "run the conformance suite",
    .main = conform_main,
};
