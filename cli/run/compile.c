// Kernels that PoCL has not compiled yet: whether there are any, and processes that compile them side by side.
#define _GNU_SOURCE // pipe2
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/workers.h"
#include "cli/common/own.h"
#include "cli/common/progress.h"
#include "cli/common/signals.h"
#include "cli/run/run.h"

// Kernels that are compiled before the first frame. PoCL compiles a kernel when it is launched first,
// one at a time in a process, and keeps it on disk for every process. So where it had to build the
// program, several processes of this command compile the kernels side by side: `weir run arr-coc
// --compile -`, each of which reads the name of its next kernel from one pipe.

enum {
    ARGUMENTS_MOST = 12,
    DIGITS = 16,
    NAME_SIZE = 64 // of a kernel, with its line's end
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

// They get neither the input nor the output of this process.
static int start(const struct run_device *device, int names, pid_t *out_process)
{
    char digits[DIGITS];
    const char *arguments[ARGUMENTS_MOST] = {"weir", "run", "arr-coc", "--compile", "-", "--quiet"};
    size_t count = 6;
    if (device->run->config) {
        arguments[count++] = "--config";
        arguments[count++] = device->run->config;
    }
    if (index_of(device, digits)) {
        arguments[count++] = "--devices";
        arguments[count++] = digits;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, names, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    const int error = cli_spawn("/proc/self/exe", arguments, &actions, false, out_process);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static bool write_name(int to, const char *name)
{
    char line[NAME_SIZE];
    const int length = snprintf(line, sizeof line, "%s\n", name);
    return write(to, line, (size_t)length) == length;
}

// Makes a pipe of packets, of which each read gets one name. Returns 0 or an errno. Writing does not
// wait, since no process reads yet: the system's limit on the pages of a user's pipes may leave too
// little room in this one.
static int open_names(const struct run_kernels *kernels, int *out_names)
{
    int ends[2];
    int error = 0;
    if (pipe2(ends, O_CLOEXEC | O_DIRECT) != 0)
        return errno;
    fcntl(ends[1], F_SETFL, O_DIRECT | O_NONBLOCK);
    for (uint32_t i = 0; i < kernels->count && error == 0; i++)
        error = write_name(ends[1], kernels->names[i]) ? 0 : errno;
    close(ends[1]);
    if (error != 0)
        close(ends[0]);
    *out_names = ends[0];
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
    const struct run *run = device->run;
    pid_t processes[WEIR_ARR_COC_KERNELS];
    uint32_t started = 0;
    uint32_t failed = 0;
    int names = -1;
    int error = open_names(&run->kernels, &names);
    if (error != 0) {
        cli_warning("no pipe for processes that compile kernels: %s; the first frame waits for "
                    "each kernel in turn",
                    strerror(error));
        return;
    }
    cli_note("the driver has not compiled these kernels yet: %u processes do so now, side by side, "
             "and it keeps them for later runs",
             (unsigned)count);
    while (started < count && (error = start(device, names, &processes[started])) == 0)
        started++;
    close(names);
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

void run_compile_watch(struct run_device *device, struct weir_arr_coc_params *params)
{
    struct run_kernels *kernels = &device->run->kernels;
    if (kernels->count == 0)
        add_all(kernels);
    params->device = device->device;
    params->user = device;
    params->built = compile_if_cold;
    device->processor_ns = cli_processor_time_ns();
}

// --compile.

static const char *find_kernel(const char *name, size_t length)
{
    const char *known;
    for (size_t i = 0; (known = weir_arr_coc_kernel_name(i)); i++)
        if (strlen(known) == length && strncmp(known, name, length) == 0)
            return known;
    return NULL;
}

static _Noreturn void refuse_kernel(const char *name, size_t length)
{
    char text[1024];
    size_t used = 0;
    const char *known;
    for (size_t i = 0; (known = weir_arr_coc_kernel_name(i)) && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? ", " : "", known);
    cli_fail(CLI_USAGE,
             "--compile takes all, - for names from standard input, or kernels of ARR-COC (%s); "
             "not '%.*s'",
             text, (int)length, name);
}

static void add_kernel(struct run_kernels *kernels, const char *name, size_t length)
{
    const char *known = find_kernel(name, length);
    if (!known)
        refuse_kernel(name, length);
    for (uint32_t i = 0; i < kernels->count; i++)
        if (kernels->names[i] == known)
            return;
    kernels->names[kernels->count++] = known;
}

static bool is_from_input(const struct run *run)
{
    return run->compile && strcmp(run->compile, "-") == 0;
}

static void list_kernels(struct run *run)
{
    const char *text = run->compile;
    if (is_from_input(run))
        return;
    if (strcmp(text, "all") == 0) {
        add_all(&run->kernels);
        return;
    }
    for (const char *name = text; name;) {
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

// The names of one compilation. A read of standard input takes what there is and no more, so several
// processes can read from one pipe of packets.
struct names {
    const struct run *run;
    uint32_t count; // so far
    bool refused;   // the line names no kernel, which is told when the compilation has ended
    char *line;     // of standard input
    size_t line_size;
};

static const char *next_from_input(struct names *names)
{
    while (getline(&names->line, &names->line_size, stdin) >= 0) {
        const size_t length = strcspn(names->line, "\n");
        if (length == 0)
            continue;
        const char *known = find_kernel(names->line, length);
        names->refused = !known;
        names->count += !names->refused;
        return known;
    }
    return NULL;
}

static const char *next_name(void *user)
{
    struct names *names = user;
    const struct run_kernels *kernels = &names->run->kernels;
    if (is_from_input(names->run))
        return next_from_input(names);
    return names->count < kernels->count ? kernels->names[names->count++] : NULL;
}

static void compile_on(struct run_device *device, struct weir_arr_coc_params *params)
{
    struct names names = {.run = device->run};
    run_compile_watch(device, params);
    if (is_from_input(device->run))
        params->built = NULL;
    cli_fine(weir_arr_coc_compile(params, next_name, &names));
    if (names.refused)
        refuse_kernel(names.line, strcspn(names.line, "\n"));
    free(names.line);
    if (ferror(stdin))
        cli_fail(CLI_FAILED, "standard input cannot be read");
    cli_note("kernels compiled for %s: %u", device->info.name, (unsigned)names.count);
}

int run_compile(struct run *run, char **operands)
{
    struct weir_arr_coc_params params = {.struct_size = sizeof params};
    check(run, operands);
    run_open_devices(run);
    cli_fine(weir_arr_coc_params_from_settings(run->runtime, &params));
    if (is_from_input(run) && run->device_count > 1)
        cli_fail(CLI_USAGE, "--compile - is for one device; the names are gone after the first");
    for (uint32_t i = 0; i < run->device_count; i++)
        compile_on(&run->devices[i], &params);
    return CLI_OK;
}
