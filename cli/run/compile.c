// Kernels that PoCL has not compiled yet: whether there are any, and processes that compile them side by side. PoCL
// compiles a kernel when it is launched first, one at a time in a process, and keeps it on disk for every process. So
// where it had to build the program, several processes of this command, `weir run arr-coc --compile NAME,NAME`, have
// a share of the kernels each.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "base/workers.h"
#include "cli/common/own.h"
#include "cli/common/progress.h"
#include "cli/common/signals.h"
#include "cli/run/run.h"

enum {
    ARGUMENTS_MOST = 12,
    DIGITS = 16,
    NAMES_SIZE = 64 * WEIR_ARR_COC_KERNELS
};

// PoCL takes less processor time for a program that it has on disk, and more than half a second for
// one that it has not.
#define COLD_NS UINT64_C(300000000)

// The processes.

// As PoCL reads its variable.
static bool keeps_kernels(void)
{
    const char *text = getenv("POCL_KERNEL_CACHE");
    return !text || text[0] == '1';
}

static bool is_cold(const struct run_device *device)
{
    return cli_is_pocl(&device->info) && keeps_kernels() &&
           cli_processor_time_ns() - device->processor_ns > COLD_NS;
}

// The index that --devices has for it; false: the one that the configuration names.
static bool index_of(const struct run_device *device, char out_digits[DIGITS])
{
    const struct run *run = device->run;
    const uint32_t place = (uint32_t)(device - run->devices);
    snprintf(out_digits, DIGITS, "%u",
             (unsigned)(run->wanted.all ? place : run->wanted.indices[place]));
    return run->wanted.all || run->wanted.count > 0;
}

// Starts the process for the kernels `first`, `first` + `step` and so on. It gets neither the input nor the output of
// this process.
static int start(const struct run_device *device, uint32_t first, uint32_t step, pid_t *out_process)
{
    const struct run *run = device->run;
    char digits[DIGITS], names[NAMES_SIZE] = "";
    size_t used = 0, count = 6;
    const char *arguments[ARGUMENTS_MOST] = {"weir",      "run", "arr-coc",
                                             "--compile", names, "--quiet"};
    for (uint32_t i = first; i < run->kernels.count; i += step)
        weir_text_append(names, sizeof names, &used, "%s%s", i > first ? "," : "",
                         run->kernels.names[i]);
    if (run->config) {
        arguments[count++] = "--config";
        arguments[count++] = run->config;
    }
    if (index_of(device, digits)) {
        arguments[count++] = "--devices";
        arguments[count++] = digits;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    const int error = cli_spawn("/proc/self/exe", arguments, &actions, false, out_process);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static bool has_succeeded(pid_t process)
{
    int status;
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == CLI_OK;
}

static void compile_side_by_side(const struct run_device *device, uint32_t count)
{
    pid_t processes[WEIR_ARR_COC_KERNELS];
    uint32_t started = 0, failed = 0;
    int error = 0;
    cli_note("the driver has not compiled these kernels yet: %u processes do so now, side by side, "
             "and it keeps them for later runs",
             (unsigned)count);
    while (started < count && (error = start(device, started, count, &processes[started])) == 0)
        started++;
    for (uint32_t i = 0; i < started; i++)
        failed += !has_succeeded(processes[i]);
    if (error != 0)
        cli_warning("a process that compiles kernels cannot be started: %s", strerror(error));
    if (failed > 0 && !cli_signal())
        cli_warning("%u of %u processes that compile kernels failed; the first frame waits for "
                    "what they have not compiled",
                    (unsigned)failed, (unsigned)started);
}

uint32_t run_processors(uint32_t most)
{
    const unsigned count = weir_workers_processors();
    return count < most ? (uint32_t)count : most;
}

// Called when the program is built.
static void compile_if_cold(void *user)
{
    const struct run_device *device = user;
    const struct run *run = device->run;
    const uint32_t processors = run_processors(run->kernels.count);
    // Ranks begin together, and would each start as many.
    if (processors > 1 && !run->by_ranks && is_cold(device))
        compile_side_by_side(device, processors);
}

static void add_all(struct run_kernels *kernels)
{
    const char *known;
    for (size_t i = 0; (known = weir_arr_coc_kernel_name(i)); i++)
        kernels->names[kernels->count++] = known;
}

// Processes have kernels of their own, and start no others.
void run_compile_watch(struct run_device *device, struct weir_arr_coc_params *params)
{
    struct run_kernels *kernels = &device->run->kernels;
    if (kernels->count == 0)
        add_all(kernels);
    params->device = device->device;
    params->user = device;
    params->built = kernels->count == WEIR_ARR_COC_KERNELS ? compile_if_cold : NULL;
    device->processor_ns = cli_processor_time_ns();
}

// --compile.

static _Noreturn void refuse_kernel(const char *name, size_t length)
{
    char text[1024] = "";
    size_t used = 0;
    const char *known;
    for (size_t i = 0; (known = weir_arr_coc_kernel_name(i)); i++)
        weir_text_append(text, sizeof text, &used, "%s%s", i > 0 ? ", " : "", known);
    cli_fail(CLI_USAGE,
             "--compile takes all, - for names from standard input, or kernels of ARR-COC (%s); "
             "not '%.*s'",
             text, (int)length, name);
}

// A kernel that is named twice is compiled once.
static void add_kernel(struct run_kernels *kernels, const char *name, size_t length)
{
    const char *known;
    for (size_t i = 0; (known = weir_arr_coc_kernel_name(i)); i++)
        if (strlen(known) == length && strncmp(known, name, length) == 0)
            break;
    if (!known)
        refuse_kernel(name, length);
    for (uint32_t i = 0; i < kernels->count; i++)
        if (kernels->names[i] == known)
            return;
    kernels->names[kernels->count++] = known;
}

// One name on each line.
static void add_input(struct run_kernels *kernels)
{
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) >= 0)
        if (line[0] != '\n')
            add_kernel(kernels, line, strcspn(line, "\n"));
    free(line);
    if (ferror(stdin))
        cli_fail(CLI_FAILED, "standard input cannot be read");
}

static void list_kernels(struct run *run)
{
    if (strcmp(run->compile, "-") == 0) {
        add_input(&run->kernels);
        return;
    }
    if (strcmp(run->compile, "all") == 0) {
        add_all(&run->kernels);
        return;
    }
    for (const char *name = run->compile; name;) {
        const size_t length = strcspn(name, ",");
        add_kernel(&run->kernels, name, length);
        name = name[length] == ',' ? name + length + 1 : NULL;
    }
}

// Lists the kernels, and refuses what --compile cannot take.
static void check(struct run *run, char **operands)
{
    const struct {
        bool given;
        const char *name;
    } others[] = {
        {run->query_path, "--query"},  {run->weights_path, "--weights"},
        {run->by_ranks, "--ranks"},    {run->live, "--live"},
        {run->overlay, "--overlay"},   {run->frame_limit, "--frames"},
        {run->output, "--output"},     {run->repeat > 1, "--repeat"},
        {run->decoders, "--decoders"}, {run->stops, "--stop"},
        {run->json, "--json"},
    };
    if (run->image_count > 0)
        cli_fail(CLI_USAGE, "--compile runs no image; leave '%s' out, or --compile", operands[0]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].given)
            cli_fail(CLI_USAGE, "--compile runs no image; leave %s out", others[i].name);
    list_kernels(run);
}

int run_compile(struct run *run, char **operands)
{
    struct weir_arr_coc_params params = {.struct_size = sizeof params};
    check(run, operands);
    run_open_devices(run);
    cli_fine(weir_arr_coc_params_from_settings(run->runtime, &params));
    for (uint32_t i = 0; i < run->device_count && run->kernels.count > 0; i++) {
        struct run_device *device = &run->devices[i];
        run_compile_watch(device, &params);
        cli_fine(weir_arr_coc_compile(&params, run->kernels.names, run->kernels.count));
        cli_note("kernels compiled for %s: %u", device->info.name, (unsigned)run->kernels.count);
    }
    return CLI_OK;
}
