// weir kernels ptx, sass and resources: what was made for one GPU.
#include <ctype.h>
#include <unistd.h>

#include "base/file.h"
#include "base/program.h"
#include "cli/common/folder.h"
#include "cli/common/output.h"
#include "cli/common/own.h"
#include "cli/kernels/kernels.h"

enum {
    LOWEST = 75, // that libdevice and the code around the kernels are made for
    HIGHEST = 999,
    ARCHITECTURES_MOST = 16
};

void kernels_architectures_add(struct weir_words *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], name) == 0)
            return;
    list->items = cli_grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = name;
}

// How many characters: "90", and with a letter "90a". 0: it is none.
static size_t architecture(const char *text, bool letters)
{
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *text == '0' || number < LOWEST || number > HIGHEST)
        return 0;
    if (letters && islower((unsigned char)*end))
        end++;
    return *end == ',' || *end == '\0' ? (size_t)(end - text) : 0;
}

void kernels_architectures_parse(const char *option, const char *text, bool letters,
                                 struct weir_words *out)
{
    *out = (struct weir_words){NULL, 0, 0};
    if (strcmp(text, "none") == 0)
        return;
    for (const char *at = text; at; at = *at ? at + 1 : NULL) {
        const size_t length = architecture(at, letters);
        if (length == 0)
            cli_fail(CLI_USAGE,
                     "--%s takes architectures from %d on, separated by commas, such as 80,90; "
                     "not '%s'",
                     option, LOWEST, text);
        if (out->count == ARCHITECTURES_MOST)
            cli_fail(CLI_USAGE, "--%s takes %d architectures at most", option, ARCHITECTURES_MOST);
        kernels_architectures_add(out, cli_text("%.*s", (int)length, at));
        at += length;
    }
}

void kernels_architecture_parse(const char *text, bool letters, struct weir_words *out)
{
    kernels_architectures_parse("arch", text ? text : "90", letters, out);
    if (out->count != 1)
        cli_fail(CLI_USAGE, "--arch takes one architecture, such as 90, not '%s'", text);
}

// The help of ptxas has a list of them: 'sm_89','sm_90','sm_90a'.
void kernels_architectures_keep_known(const struct kc_tools *tools, struct weir_words *list)
{
    struct kc_job job = {.output_too = true};
    size_t kept = 0;
    KC_ADD(&job, tools->ptxas, "--help");
    kc_run(&job, 1);
    const bool told = job.status == 0 && job.errors && strstr(job.errors, "'sm_");
    for (size_t i = 0; told && i < list->count; i++) {
        if (strstr(job.errors, cli_text("'sm_%s'", list->items[i])))
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
    kc_jobs_finish(&job, 1);
    if (!told)
        cli_fail(CLI_SETUP,
                 "%s --help does not list GPUs: mend the CUDA toolkit, or leave it out with "
                 "CUDA_HOME=none",
                 tools->ptxas);
}

void kernels_architectures_check(const struct kc_tools *tools, const struct weir_words *list)
{
    struct weir_words known = {NULL, 0, 0};
    size_t i = 0;
    for (size_t k = 0; k < list->count; k++)
        kernels_architectures_add(&known, list->items[k]);
    kernels_architectures_keep_known(tools, &known);
    while (i < known.count && strcmp(known.items[i], list->items[i]) == 0)
        i++;
    if (i < list->count)
        cli_fail(CLI_SETUP,
                 "%s makes no cubins for %s: install a CUDA toolkit that does, or name another "
                 "architecture",
                 tools->ptxas, list->items[i]);
}

void kernels_need(const char *lack)
{
    if (lack)
        cli_fail(CLI_SETUP, "%s", lack);
}

// PTX is text. Machine code is shown by nvdisasm or cuobjdump, which a toolkit may have or not.

static const char ptx_about[] = "Prints the PTX that a bundle has for an architecture.";
static const char sass_about[] = "Prints the machine code that a cubin has for an architecture, by "
                                 "nvdisasm or cuobjdump of the\n"
                                 "CUDA toolkit.";

struct request {
    struct kc_build build;
    struct weir_words architecture;
};

// Of a command that prints text, or JSON too.
static void parse(struct request *request, const char *command, const char *about, bool *as_json,
                  int argc, char **argv)
{
    const char *architecture = NULL;
    const struct cli_option options[] = {
        {"arch", "A", "the architecture; without it, 90", CLI_TEXT, &architecture, 0, 0},
        {"json", NULL, "print the figures as JSON", CLI_FLAG, as_json, 0, 0},
    };
    struct cli_usage usage = CLI_FORM_PLAIN(command, about, options);
    usage.option_count -= !as_json;
    kernels_parse(&request->build, usage, argc, argv);
    kernels_architecture_parse(architecture, false, &request->architecture);
}

int cli_kernels_ptx(int argc, char **argv)
{
    struct request request;
    parse(&request, "weir kernels ptx", ptx_about, NULL, argc, argv);
    kernels_need(kc_tools_lack(&request.build.tools, false));
    request.build.ptx = request.architecture;
    const struct weir_image *ptx = &kernels_compile(&request.build, false)->images.items[1];
    fwrite(ptx->data, 1, ptx->size, stdout);
    return CLI_OK;
}

static bool find_in(const char *folder, size_t length, char *out, size_t size)
{
    static const char *const names[] = {"nvdisasm", "cuobjdump"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(out, size, "%.*s/%s", (int)length, folder, names[i]);
        if (access(out, X_OK) == 0)
            return true;
    }
    return false;
}

static void finish_job(void *object)
{
    kc_jobs_finish(object, 1);
}

// Runs the job with a file that has the image's data as its last argument. Returns what it said.
static const char *run_on(const struct weir_image *image, struct kc_job *job)
{
    char message[512];
    cli_own(finish_job, job);
    const char *path = cli_text("%s/kernels", cli_folder_create("kernels"));
    kc_job_add(job, "%s", path);
    if (!weir_file_write(path, image->data, image->size, message, sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
    kc_run(job, 1);
    const char *said = job->errors ? job->errors : "";
    if (job->status != 0)
        cli_fail(CLI_FAILED, "%s fails: %.*s", job->arguments[0], (int)strcspn(said, "\n"), said);
    return said;
}

int cli_kernels_sass(int argc, char **argv)
{
    static struct kc_job job = {.output_too = true};
    struct request request;
    char disassembler[1024];
    parse(&request, "weir kernels sass", sass_about, NULL, argc, argv);
    const struct kc_tools *tools = &request.build.tools;
    kernels_need(kc_tools_lack(tools, true));
    kernels_architectures_check(tools, &request.architecture);
    // Beside ptxas, and then in the folders of PATH.
    const char *slash = strrchr(tools->ptxas, '/');
    if (!(slash && find_in(tools->ptxas, (size_t)(slash - tools->ptxas), disassembler,
                           sizeof disassembler)) &&
        !weir_program_find("nvdisasm", disassembler, sizeof disassembler) &&
        !weir_program_find("cuobjdump", disassembler, sizeof disassembler))
        kernels_need(
            "neither nvdisasm nor cuobjdump is found, and machine code needs one to be "
            "shown; they are parts of the CUDA toolkit and of the package nvidia-cuda-toolkit");
    request.build.cubins = request.architecture;
    const struct kc_result *result = kernels_compile(&request.build, false);
    KC_ADD(&job, disassembler);
    if (strcmp(strrchr(disassembler, '/'), "/cuobjdump") == 0)
        kc_job_add(&job, "-sass");
    fputs(run_on(&result->images.items[1], &job), stdout);
    return CLI_OK;
}

// What `ptxas -v` tells, in lines such as
//   ptxas info    : Compiling entry function 'tone' for 'sm_90'
//       16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
//   ptxas info    : Used 56 registers, used 1 barriers, 256 bytes smem

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
    REPORTED, // by ptxas; the others are counted in the PTX
    INSTRUCTIONS = REPORTED,
    FUSED,
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
    [INSTRUCTIONS] = {NULL, "PTX instructions", "ptx_instructions"},
    [FUSED] = {NULL, "a*b+c in one", "fused"},
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

// Those of the kernel's body, and the ones among them that are fma.
static void count_instructions(const char *ptx, const char *kernel, struct usage *usage)
{
    const char *line = strstr(ptx, cli_text(".entry %s(", kernel));
    const char *stop = line ? strstr(line, "\n}") : NULL;
    usage->told[INSTRUCTIONS] = usage->told[FUSED] = stop != NULL;
    while (stop && (line = strchr(line, '\n')) && line < stop) {
        line++;
        const char *start = line + strspn(line, " \t");
        if (start[strcspn(start, ";:\n")] != ';' || *start == '.')
            continue;
        usage->numbers[INSTRUCTIONS]++;
        usage->numbers[FUSED] += strncmp(start, "fma.rn", 6) == 0;
    }
}

// The lines from that of the kernel to that of the next one.
static struct usage read_usage(const char *report, const char *ptx, const char *kernel)
{
    static const char entry[] = "Compiling entry function '";
    struct usage usage = {0};
    const char *head = cli_text("%s%s'", entry, kernel);
    const char *line = strstr(report, head);
    const char *stop = line ? strstr(line + strlen(head), entry) : NULL;
    for (; line && (!stop || line < stop);
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        for (int i = 0; i < REPORTED; i++)
            if (number_before(line, line + strcspn(line, "\n"), figures[i].words,
                              &usage.numbers[i]))
                usage.told[i] = true;
    // Left out of the line when it is none.
    usage.told[SHARED] = usage.told[REGISTERS];
    count_instructions(ptx, kernel, &usage);
    return usage;
}

static void print_table(const struct kc_kernels *kernels, const char *report, const char *ptx)
{
    struct weir_table table = {.alignment = "lrrrrrrr"};
    weir_table_add(&table, "kernel");
    for (int i = 0; i < FIGURES; i++)
        weir_table_add(&table, "%s", figures[i].head);
    for (size_t k = 0; k < kernels->count; k++) {
        const struct usage usage = read_usage(report, ptx, kernels->items[k].name);
        weir_table_add(&table, "%s", kernels->items[k].name);
        for (int i = 0; i < FIGURES; i++)
            if (!usage.told[i])
                weir_table_add(&table, "-");
            else
                weir_table_add(&table, i == REGISTERS || i >= REPORTED ? "%lu" : "%lu B",
                               usage.numbers[i]);
    }
    cli_table_print(&table, stdout, 0);
}

static int print_json(const struct kc_kernels *kernels, const char *report, const char *ptx,
                      const char *architecture)
{
    json_t *root = json_object();
    json_t *list = json_array();
    for (size_t k = 0; k < kernels->count; k++) {
        const struct usage usage = read_usage(report, ptx, kernels->items[k].name);
        json_t *entry = json_object();
        cli_json_set(entry, "name", cli_json_string(kernels->items[k].name));
        for (int i = 0; i < FIGURES; i++)
            cli_json_set(entry, figures[i].key,
                         usage.told[i] ? weir_json_count(usage.numbers[i]) : json_null());
        cli_json_append(list, entry);
    }
    cli_json_set(root, "architecture", json_string(architecture));
    cli_json_set(root, "kernels", list);
    return cli_json_print(root, CLI_OK);
}

int cli_kernels_resources(int argc, char **argv)
{
    static struct kc_job job;
    struct request request;
    bool as_json = false;
    parse(&request, "weir kernels resources", about, &as_json, argc, argv);
    const char *architecture = request.architecture.items[0];
    const struct kc_tools *tools = &request.build.tools;
    kernels_need(kc_tools_lack(tools, true));
    kernels_architectures_check(tools, &request.architecture);
    request.build.ptx = request.architecture;
    const struct kc_result *result = kernels_compile(&request.build, false);
    KC_ADD(&job, tools->ptxas, "-v");
    kc_job_add(&job, "-arch=sm_%s", architecture);
    KC_ADD(&job, "-o", "/dev/null");
    const char *report = run_on(&result->images.items[1], &job);
    const char *ptx = result->images.items[1].data;
    if (as_json)
        return print_json(&result->kernels, report, ptx, architecture);
    print_table(&result->kernels, report, ptx);
    return CLI_OK;
}
