// `weir sim learn`: what kernels cost, from traces.
#include <ctype.h>
#include <string.h>

#include <weir/device.h>

#include "base/file.h"
#include "cli/common/output.h"
#include "cli/sim/fit.h"
#include "cli/sim/sim.h"

static const char about[] =
    "Finds what each kernel of the traces takes, as a sum of a fixed time and of times in\n"
    "proportion to its work-items, blocks, bytes of buffers and scalar arguments, and writes a\n"
    "section [kernel NAME] for each, for the model of the GPU that the traces are from, and "
    "[learnt] with\n"
    "the device, since costs of a processor are none of a GPU. Launches\n"
    "beside another kernel, and those whose start the trace does not have, are left out.\n"
    "\n"
    "  weir trace --output run.json ./program\n"
    "  weir sim learn --output kernels.ini run.json";

// A line of an INI file, without its end.
enum {
    LINE_LIMIT = 199,
};

// The key of a kernel's term, and what its factor is multiplied by, in a table.
static void name_term(const struct sim_kernel *kernel, int term, const char **out_key,
                      const char **out_times)
{
    static const char *const names[] = {"fixed", "per_item", "per_block", "per_byte"};
    static const char *const of[] = {"", " * items", " * blocks", " * bytes"};
    const bool items = term >= SIM_TERM_ITEM_ARGUMENT;
    if (term < SIM_TERM_ARGUMENT) {
        *out_key = cli_text("%s_ns", names[term]);
        *out_times = of[term];
        return;
    }
    const unsigned argument =
        kernel->arguments[term - (items ? SIM_TERM_ITEM_ARGUMENT : SIM_TERM_ARGUMENT)];
    *out_key = cli_text("per_%sargument_%u_ns", items ? "item_" : "", argument);
    *out_times = cli_text("%s * argument %u", items ? " * items" : "", argument);
}

// Of what the traces are.
struct learnt {
    char device[128];
    const char *kind; // NULL: unknown
};

// Costs of two kinds of device have no sum.
static void learn_device(struct learnt *learnt, const struct weir_trace_device *device,
                         const char *path)
{
    // As `kind` of [gpu] has it. NULL: the trace is another program's, or the driver does not tell.
    const char *kind = device->kind == WEIR_DEVICE_OTHER ? NULL
                       : device->kind == WEIR_DEVICE_CPU ? "cpu"
                                                         : "gpu";
    if (kind && learnt->kind && strcmp(kind, learnt->kind) != 0)
        cli_fail(CLI_FAILED,
                 "%s has kernels of '%s', a %s, and those before ran on '%s', a %s: learn from "
                 "each kind on its own",
                 path, device->name, kind, learnt->device, learnt->kind);
    if (*learnt->device && strcmp(device->name, learnt->device) != 0)
        cli_warning("%s has kernels of '%s', and those before ran on '%s'", path, device->name,
                    learnt->device);
    snprintf(learnt->device, sizeof learnt->device, "%s", device->name);
    learnt->kind = kind ? kind : learnt->kind;
}

static void learn_devices(struct learnt *learnt, const struct weir_trace *trace, const char *path)
{
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        const size_t device = trace->queues[operation->queue_index].device_index;
        if (!operation->timed || operation->engine != WEIR_ENGINE_KERNELS || device == last)
            continue;
        learn_device(learnt, &trace->devices[device], path);
        last = device;
    }
}

static void write_learnt(struct weir_long_text *ini, const struct learnt *learnt)
{
    const bool named =
        *learnt->device && weir_text_is_clean(learnt->device, "") && !strpbrk(learnt->device, ";#");
    if (!named && !learnt->kind)
        return;
    weir_long_text_add(ini, "\n[learnt]\n");
    if (named)
        weir_long_text_add(ini, "device = %s\n", learnt->device);
    if (learnt->kind)
        weir_long_text_add(ini, "kind = %s\n", learnt->kind);
}

static void destroy_trace(void *object)
{
    struct weir_trace *trace = object;
    weir_trace_destroy(&trace);
}

static void add_trace(struct sim_kernels *kernels, struct learnt *learnt, const char *path)
{
    struct weir_trace *trace = NULL;
    char message[512];
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
    cli_own(destroy_trace, trace);
    for (size_t i = 0; i < trace->note_count; i++)
        cli_warning("%s: %s", path, trace->notes[i]);
    const size_t launches = sim_kernels_add(kernels, trace);
    learn_devices(learnt, trace, path);
    if (launches == 0)
        cli_fail(CLI_FAILED,
                 "%s holds no kernel with times; trace a program that launches kernels, with "
                 "`weir trace COMMAND` on the GPU",
                 path);
}

// Why a kernel gets no section; NULL: it gets one.
static const char *refusal(const struct sim_kernel *kernel)
{
    const size_t length = strlen(kernel->name);
    if (kernel->count == 0 && kernel->beside > 0)
        return "all of its launches ran beside another kernel; trace a run on one queue";
    if (kernel->count == 0)
        return "the traces have no start of its launches; trace a run that submits ahead, or with "
               "CUPTI";
    if (length == 0)
        return "it has no name";
    if (length > LINE_LIMIT - strlen("[kernel ]") || strchr(kernel->name, ']') ||
        !weir_text_is_clean(kernel->name, "") || isspace((unsigned char)kernel->name[0]) ||
        isspace((unsigned char)kernel->name[length - 1]))
        return "its name cannot be that of a section";
    return NULL;
}

// Writes the section, and adds a row with the sum.
static void tell_kernel(struct weir_long_text *ini, struct weir_table *table,
                        const struct sim_kernel *kernel, const struct sim_fit *fit)
{
    struct weir_long_text sum = {0};
    weir_long_text_add(ini, "\n[kernel %s]\n", kernel->name);
    weir_long_text_add(ini, "; %zu %s of %zu %s; error: median %.2f %%, worst %.2f %%\n",
                       kernel->count, kernel->count == 1 ? "launch" : "launches", fit->sizes,
                       fit->sizes == 1 ? "size, so nothing is known of others" : "sizes",
                       100 * fit->median, 100 * fit->worst);
    if (kernel->beside > 0)
        weir_long_text_add(ini, "; left out: %zu beside another kernel\n", kernel->beside);
    if (kernel->inexact > 0)
        weir_long_text_add(ini, "; left out: %zu without a start\n", kernel->inexact);
    for (int term = 0; term < SIM_TERM_COUNT; term++) {
        const char *key, *times;
        if (fit->factors[term] == 0)
            continue;
        name_term(kernel, term, &key, &times);
        weir_long_text_add(ini, "%s = %.9g\n", key, fit->factors[term]);
        weir_long_text_add(&sum, "%s%.6g%s", sum.used ? " + " : "", fit->factors[term], times);
    }
    weir_table_add(table, "%s", kernel->name);
    weir_table_add(table, "%zu\t%zu\t%.2f %%\t%.2f %%\t%s", kernel->count, fit->sizes,
                   100 * fit->median, 100 * fit->worst, sum.text ? sum.text : "");
    free(sum.text);
}

// Fits every kernel that can be fitted, and counts them.
static size_t fit_all(const struct sim_kernels *kernels, struct weir_long_text *ini,
                      struct weir_table *table)
{
    size_t count = 0;
    weir_table_add(table, "kernel\tlaunches\tsizes\tmedian error\tworst\tnanoseconds");
    for (size_t i = 0; i < kernels->count; i++) {
        struct sim_kernel *kernel = &kernels->items[i];
        const char *why = refusal(kernel);
        struct sim_fit fit;
        if (why) {
            cli_warning("the kernel '%s' is left out: %s", kernel->name, why);
            continue;
        }
        sim_fit(kernel, &fit);
        tell_kernel(ini, table, kernel, &fit);
        count++;
    }
    return count;
}

static int learn(const struct sim_kernels *kernels, const struct learnt *learnt, const char *path)
{
    struct weir_long_text ini = {0};
    struct weir_table table = {.alignment = "lrrrrl"};
    char message[512];
    weir_long_text_add(&ini, "; What kernels cost, in nanoseconds. Found by weir sim learn.\n");
    write_learnt(&ini, learnt);
    const size_t count = fit_all(kernels, &ini, &table), size = ini.used;
    const char *text = cli_take_text(&ini);
    if (count == 0)
        cli_fail(CLI_FAILED, "no kernel's cost can be found in these traces");
    if (path && !weir_file_write(path, text, size, message, sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
    if (path)
        cli_table_print(&table, stdout, 0);
    else
        fputs(text, stdout);
    weir_table_finish(&table);
    return CLI_OK;
}

int cli_sim_learn(int argc, char **argv)
{
    const char *path = NULL;
    const struct cli_option options[] = {
        {"output", "FILE", "write the sections to FILE, and print how well they fit", CLI_FILE,
         &path, 0, 0},
    };
    const struct cli_usage usage =
        CLI_FORM("weir sim learn", "TRACE...", "a trace", 1, SIZE_MAX, about, options);
    struct sim_kernels kernels = {0};
    struct learnt learnt = {0};
    const size_t operands = cli_parse(&usage, argc, argv);
    cli_need_writable(path);
    for (size_t i = 0; i < operands; i++)
        add_trace(&kernels, &learnt, argv[i]);
    return learn(&kernels, &learnt, path);
}
