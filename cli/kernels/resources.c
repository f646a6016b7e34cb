// What `ptxas -v` tells, in lines such as
//
//   ptxas info    : Compiling entry function 'tone' for 'sm_90'
//       16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
//   ptxas info    : Used 56 registers, used 1 barriers, 256 bytes smem
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/json.h"
#include "cli/common/table.h"
#include "cli/kernels/kernels.h"

static const char about[] =
    "Prints what each kernel needs on an architecture, as ptxas reports it: registers of a\n"
    "work-item, its local memory and what is spilled to it, and the block's shared memory without\n"
    "that of __local parameters. A '-' is what ptxas does not tell.";

enum {
    REGISTERS,
    STACK,
    SPILL_STORES,
    SPILL_LOADS,
    SHARED,
    FIGURES
};

static const struct {
    const char *words; // after the number in a line
    const char *head;  // of the column
    const char *key;   // in JSON
} figures[FIGURES] = {
    [REGISTERS] = {" registers", "registers", "registers"},
    [STACK] = {" bytes stack frame", "local", "local_bytes"},
    [SPILL_STORES] = {" bytes spill stores", "spill stores", "spill_store_bytes"},
    [SPILL_LOADS] = {" bytes spill loads", "spill loads", "spill_load_bytes"},
    [SHARED] = {" bytes smem", "shared", "shared_bytes"},
};

struct usage {
    bool told[FIGURES];
    unsigned long numbers[FIGURES];
};

// The number before the words in one line, which ends at `end`.
static bool number_before(const char *line, const char *end, const char *words, unsigned long *out)
{
    const char *at = strstr(line, words);
    if (!at || at >= end)
        return false;
    while (at > line && isdigit((unsigned char)at[-1]))
        at--;
    *out = strtoul(at, NULL, 10);
    return isdigit((unsigned char)*at);
}

// The lines from that of the kernel to that of the next one.
static struct usage read_usage(const char *report, const char *kernel)
{
    static const char entry[] = "Compiling entry function '";
    char head[512];
    struct usage usage = {0};
    snprintf(head, sizeof head, "%s%s'", entry, kernel);
    const char *line = strstr(report, head);
    const char *stop = line ? strstr(line + strlen(head), entry) : NULL;
    for (; line && (!stop || line < stop);
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        for (int i = 0; i < FIGURES; i++)
            if (number_before(line, line + strcspn(line, "\n"), figures[i].words,
                              &usage.numbers[i]))
                usage.told[i] = true;
    // Left out of the line when it is none.
    usage.told[SHARED] = usage.told[REGISTERS];
    return usage;
}

static void print_table(const struct kc_kernels *kernels, const char *report)
{
    struct weir_table table = {.alignment = "lrrrrr"};
    weir_table_add(&table, "kernel");
    for (int i = 0; i < FIGURES; i++)
        weir_table_add(&table, "%s", figures[i].head);
    for (size_t k = 0; k < kernels->count; k++) {
        const struct usage usage = read_usage(report, kernels->items[k].name);
        weir_table_add(&table, "%s", kernels->items[k].name);
        for (int i = 0; i < FIGURES; i++)
            if (!usage.told[i])
                weir_table_add(&table, "-");
            else
                weir_table_add(&table, i == REGISTERS ? "%lu" : "%lu B", usage.numbers[i]);
    }
    cli_table_print(&table, stdout, 0);
}

static int print_json(const struct kc_kernels *kernels, const char *report,
                      const char *architecture)
{
    bool ok = true;
    json_t *root = json_object();
    json_t *list = json_array();
    for (size_t k = 0; k < kernels->count; k++) {
        const struct usage usage = read_usage(report, kernels->items[k].name);
        json_t *entry = json_object();
        cli_json_set(entry, "name", cli_json_string(kernels->items[k].name), &ok);
        for (int i = 0; i < FIGURES; i++)
            cli_json_set(entry, figures[i].key,
                         usage.told[i] ? cli_json_count(usage.numbers[i]) : json_null(), &ok);
        cli_json_append(list, entry, &ok);
    }
    cli_json_set(root, "architecture", json_string(architecture), &ok);
    cli_json_set(root, "kernels", list, &ok);
    return cli_json_print(root, ok, CLI_OK);
}

static int measure(const struct kernels_source *source, const struct kc_result *result,
                   const char *architecture, bool as_json)
{
    char option[32];
    struct kc_job job = {0};
    int code = CLI_FAILED;
    snprintf(option, sizeof option, "-arch=sm_%s", architecture);
    const char *const arguments[] = {source->build.tools.ptxas, "-v", option, "-o", "/dev/null"};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        kc_job_add(&job, arguments[i]);
    if (kernels_run_on(&result->images.items[0], &job)) {
        const char *report = job.errors ? job.errors : "";
        code = CLI_OK;
        if (as_json)
            code = print_json(&result->kernels, report, architecture);
        else
            print_table(&result->kernels, report);
    }
    kc_jobs_finish(&job, 1);
    return code;
}

int kernels_resources_main(int argc, char **argv)
{
    struct kernels_source source;
    struct kernels_architectures architecture;
    struct kc_result result = {0};
    const char *text = NULL;
    bool as_json = false;
    const struct cli_option options[] = {
        {"arch", "A", "the architecture; without it, 90", CLI_TEXT, &text, 0, 0},
        {"json", NULL, "print the figures as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = {
        .command = "weir kernels resources",
        .about = about,
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    int code;
    if (!kernels_parse(&source, usage, argc, argv, &code))
        return code;
    if (!kernels_architecture_parse(text, &architecture))
        return CLI_USAGE;
    if (!kernels_can_make(&source, true, &code))
        return code;
    if (!kernels_architectures_are_known(&source.build.tools, &architecture))
        return CLI_SETUP;
    source.build.ptx = kernels_architectures_list(&architecture);
    code = kernels_compile(&source.build, &result);
    if (code == CLI_OK)
        code = measure(&source, &result, architecture.names[0], as_json);
    kc_result_finish(&result);
    return code;
}
