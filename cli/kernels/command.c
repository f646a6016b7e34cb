// weir kernels: its commands; build, check, list and compare.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for strsep()
#define _DEFAULT_SOURCE
#include <ctype.h>
#include <limits.h>
#include <unistd.h>

#include <weir/weir.h>

#include "base/file.h"
#include "cli/common/output.h"
#include "cli/common/own.h"
#include "cli/kernels/kernels.h"
#include "cli/runtime/open.h"
#include "kernels/compare/compare.h"

// Both forms are compiled here, to bundles in memory, and run on the device that the configuration
// names.

static const char compare_about[] =
    "Runs the kernels twice, as OpenCL C and as CUDA C++ or the images "
    "named, on the CUDA device that\n"
    "the configuration names, with the arguments of the cases in a JSON "
    "file, and compares what they\n"
    "write. On another device it says so, and only runs the OpenCL C.";

struct comparison {
    struct kc_build build;
    const char *cases;
    const char *architecture;
    struct weir_words architectures; // one
};

static void parse_compare(struct comparison *comparison, int argc, char **argv)
{
    const struct cli_option options[] = {
        {"cases", "FILE", "the cases, as JSON; weir-kernels(1) has their form", CLI_FILE,
         &comparison->cases, 0, 0},
        {"arch", "A", "the architecture of the device; without it, 90", CLI_TEXT,
         &comparison->architecture, 0, 0},
        KERNELS_TWIN_OPTIONS(&comparison->build.twin),
    };
    const struct cli_usage usage = CLI_FORM_PLAIN("weir kernels compare", compare_about, options);
    kernels_parse(&comparison->build, usage, argc, argv);
    if (!comparison->cases)
        cli_fail(CLI_USAGE, "weir kernels compare needs --cases FILE, the launches to compare");
    if (!kc_twin_is_there(&comparison->build.twin))
        cli_fail(CLI_USAGE,
                 "weir kernels compare needs --cuda FILE.cu or --cuda-image FILE, the other form");
    kernels_twin_check(&comparison->build.twin, false);
    kernels_architecture_parse(comparison->architecture, comparison->build.twin.source != NULL,
                               &comparison->architectures);
}

int cli_kernels_compare(int argc, char **argv)
{
    struct comparison comparison = {0};
    parse_compare(&comparison, argc, argv);
    weir_runtime *runtime = cli_open(NULL);
    const bool cuda = strcmp(weir_runtime_backend(runtime), "cuda") == 0;
    struct kc_build twin = comparison.build, own = comparison.build;
    own.twin = (struct kc_twin){0};
    if (cuda) { // PTX too, which drivers of later GPUs take
        kernels_need(kc_tools_lack(&own.tools, true));
        own.cubins = own.ptx = comparison.architectures;
    }
    if (cuda && twin.twin.source) {
        kernels_need(kc_tools_lack_nvcc(&twin.tools));
        twin.cubins = twin.ptx = comparison.architectures;
    }
    const struct kc_result *own_result = kernels_compile(&own, false);
    const struct compare_params params = {.twin = &kernels_compile(&twin, true)->bundle,
                                          .opencl = &own_result->bundle,
                                          .cases = comparison.cases,
                                          .runtime = runtime};
    return compare_kernels(&params) == 0 ? CLI_OK : CLI_FAILED;
}

static const char build_about[] =
    "Compiles the files, as one program, to a bundle: OUT.c has the OpenCL C and images for CUDA,\n"
    "OUT.h declares it. Without --cubin and --ptx the images are those that the CUDA toolkit of\n"
    "this machine can make, which may be none; with them what they name, or an error.\n"
    "With --cuda the images come from CUDA C++, and with --cuda-image they are there already. The\n"
    "kernels have the same names and parameters as in the OpenCL C, which other devices run.";

static const char *const usual_cubins[] = {"75", "80", "86", "89", "90", "100", "120"};
static const char *const usual_ptx[] = {"75", "120"};

struct request {
    struct kc_build build;
    const char *out;
    const char *symbol;
    const char *cubin_text;
    const char *ptx_text;
    const char *depfile;
    struct kc_bundle bundle; // follows from `out`: "dir/tone.c"
};

static void name_files(struct request *request)
{
    const char *out = request->out;
    const size_t length = strlen(out);
    const char *slash = strrchr(out, '/');
    const char *file = slash ? slash + 1 : out;
    const int stem = (int)(out + length - 2 - file);
    if (length < 2 || strcmp(out + length - 2, ".c") != 0 || stem < 1 || !kernels_is_plain(file))
        cli_fail(CLI_USAGE, "-o takes the name of a C file, such as kernels.c, not '%s'", out);
    char *name = cli_text("%s%.*s_kernels", isdigit((unsigned char)*file) ? "_" : "", stem, file);
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at))
            *at = '_';
    request->bundle = (struct kc_bundle){.symbol = request->symbol ? request->symbol : name,
                                         .label = cli_text("%.*s", stem, file),
                                         .out = cli_text("%.*s", (int)length - 2, out)};
}

static void check_request(struct request *request)
{
    const char *symbol = request->symbol;
    const bool letters = request->build.twin.source != NULL;
    if (!request->out)
        cli_fail(CLI_USAGE, "weir kernels build needs --output OUT.c, the file to write");
    name_files(request);
    if (symbol && (!kc_is_definition(symbol) || strpbrk(symbol, "=(")))
        cli_fail(CLI_USAGE, "--symbol takes a name of C, letters, digits and '_', not '%s'",
                 symbol);
    kernels_twin_check(&request->build.twin, request->cubin_text || request->ptx_text);
    if (request->cubin_text)
        kernels_architectures_parse("cubin", request->cubin_text, letters, &request->build.cubins);
    if (request->ptx_text)
        kernels_architectures_parse("ptx", request->ptx_text, letters, &request->build.ptx);
}

static void parse(struct request *request, int argc, char **argv)
{
    const struct cli_option options[] = {
        {"output", "OUT.c", "the file to write; the header is OUT.h", CLI_FILE, &request->out, 0,
         0},
        {"symbol", "NAME", "the name of the bundle in C; without it,\nOUT_kernels", CLI_TEXT,
         &request->symbol, 0, 0},
        {"cubin", "LIST", "make cubins for these architectures, such as\n80,90; or none", CLI_TEXT,
         &request->cubin_text, 0, 0},
        {"ptx", "LIST", "make PTX for these, which drivers compile for\nlater GPUs; or none",
         CLI_TEXT, &request->ptx_text, 0, 0},
        {"depfile", "FILE", "write which files OUT.c depends on to FILE, as\na rule of make's",
         CLI_FILE, &request->depfile, 0, 0},
        KERNELS_TWIN_OPTIONS(&request->build.twin),
    };
    const struct cli_usage usage = CLI_FORM_PLAIN("weir kernels build", build_about, options);
    kernels_parse(&request->build, usage, argc, argv);
    check_request(request);
}

// What was asked for is made, or the command fails.
static void check_named(struct request *request)
{
    const struct kc_tools *tools = &request->build.tools;
    if (request->build.cubins.count + request->build.ptx.count == 0)
        return;
    kernels_need(request->build.twin.source
                     ? kc_tools_lack_nvcc(tools)
                     : kc_tools_lack(tools, request->build.cubins.count > 0));
    if (request->build.cubins.count > 0)
        kernels_architectures_check(tools, &request->build.cubins);
}

// What the tools of this machine make.
static void choose_usual(struct request *request)
{
    struct kc_build *build = &request->build;
    const char *source = build->twin.source;
    const char *lack =
        source ? kc_tools_lack_nvcc(&build->tools) : kc_tools_lack(&build->tools, false);
    const char *no_cubins = source ? lack : kc_tools_lack(&build->tools, true);
    if (lack && source)
        cli_note("%s is not compiled, and CUDA devices will refuse the bundle: %s", source, lack);
    else if (lack)
        cli_note("the bundle has no CUDA images: %s", lack);
    else if (no_cubins)
        cli_note("the bundle has PTX and no cubins: %s", no_cubins);
    for (size_t i = 0; i < sizeof usual_ptx / sizeof *usual_ptx && !lack; i++)
        kernels_architectures_add(&build->ptx, usual_ptx[i]);
    for (size_t i = 0; i < sizeof usual_cubins / sizeof *usual_cubins && !no_cubins; i++)
        kernels_architectures_add(&build->cubins, usual_cubins[i]);
    if (!no_cubins)
        kernels_architectures_keep_known(&build->tools, &build->cubins);
}

static void choose(struct request *request)
{
    if (request->build.twin.images.count > 0)
        return;
    if (request->cubin_text || request->ptx_text)
        check_named(request);
    else
        choose_usual(request);
}

// A header of the same name as the kernels may be one that they include.
static void check_ours(const char *prefix, char suffix)
{
    static const char mark[] = "// Generated by weir kernels.";
    const char *path = cli_text("%s.%c", prefix, suffix);
    char message[512];
    void *bytes;
    size_t size;
    if (access(path, F_OK) != 0)
        return;
    if (!weir_file_read(path, SIZE_MAX / 2, &bytes, &size, message, sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
    cli_own(free, bytes);
    if (size > 0 && (size < sizeof mark - 1 || memcmp(bytes, mark, sizeof mark - 1) != 0))
        cli_fail(CLI_FAILED,
                 "%s exists and was not made by this command; remove it, or name another file "
                 "with -o",
                 path);
}

// As make reads it.
static void add_path(struct weir_long_text *out, const char *path)
{
    for (; *path; path++) {
        if (*path == '$')
            weir_long_text_add(out, "$");
        else if (*path == ' ' || *path == '#')
            weir_long_text_add(out, "\\");
        weir_long_text_add(out, "%c", *path);
    }
}

// Writes a rule of make's: the target depends on the files that were read, and on ready images. Paths are absolute,
// since CMake takes others to be below its own folder.
static void write_depfile(const char *depfile, const char *target, const struct kc_build *build,
                          const struct kc_result *result)
{
    struct weir_long_text out = {0}, words = {0}, here = {0};
    char folder[PATH_MAX], message[512];
    add_path(&here, getcwd(folder, sizeof folder) ? folder : ".");
    weir_long_text_add(&words, "%s", result->depends.text ? result->depends.text : "");
    if (build->twin.source) { // also where no nvcc has read it
        weir_long_text_add(&words, " ");
        add_path(&words, build->twin.source);
    }
    for (size_t i = 0; i < build->twin.images.count; i++) {
        weir_long_text_add(&words, " ");
        add_path(&words, build->twin.images.items[i]);
    }
    add_path(&out, target);
    weir_long_text_add(&out, ":");
    for (const char *at = words.text; at && *(at += strspn(at, " \\\n"));) {
        size_t length = 0;
        while (at[length] && !isspace((unsigned char)at[length]))
            length += at[length] == '\\' && at[length + 1] ? 2 : 1;
        weir_long_text_add(&out, " \\\n  %s%s%.*s", *at == '/' ? "" : here.text,
                           *at == '/' ? "" : "/", (int)length, at);
        at += length;
    }
    weir_long_text_add(&out, "\n");
    out.failed = out.failed || words.failed || here.failed;
    free(words.text);
    free(here.text);
    const size_t size = out.used;
    if (!weir_file_write(depfile, cli_take_text(&out), size, message, sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
}

int cli_kernels_build(int argc, char **argv)
{
    struct request request = {0};
    parse(&request, argc, argv);
    check_ours(request.bundle.out, 'c');
    check_ours(request.bundle.out, 'h');
    choose(&request);
    request.build.bundle = &request.bundle;
    const struct kc_result *result = kernels_compile(&request.build, false);
    if (request.depfile)
        write_depfile(request.depfile, request.out, &request.build, result);
    return CLI_OK;
}

// A diagnostic of clang's begins with "FILE:LINE:COLUMN: SEVERITY: "; sentences of the kernel
// compiler begin with "SEVERITY: ", or "FILE: SEVERITY: " where a file is at fault. The lines that
// show the source begin with blanks.

// The first place in the line where a severity stands; NULL: there is none.
static char *find_severity(char *line, const char **out_severity)
{
    static const char *const severities[] = {"fatal error", "error", "warning", "note"};
    for (char *colon, *at = line;; at = colon + 2) {
        for (size_t i = 0; i < sizeof severities / sizeof *severities; i++) {
            const size_t size = strlen(severities[i]);
            *out_severity = severities[i];
            if (strncmp(at, severities[i], size) == 0 && strncmp(at + size, ": ", 2) == 0)
                return at;
        }
        if (!(colon = strstr(at, ": ")))
            return NULL;
    }
}

// Takes ":NUMBER" off the end of the place. NULL: there is none.
static json_t *take_number(char *place)
{
    char *colon = strrchr(place, ':');
    if (!colon || colon == place || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
        return NULL;
    *colon = '\0';
    return weir_json_count(strtoul(colon + 1, NULL, 10));
}

static void add_diagnostic(json_t *list, char *line)
{
    const char *severity;
    char *at = find_severity(line, &severity);
    if (!at)
        return;
    at[at - line >= 2 ? -2 : 0] = '\0'; // the place ends
    json_t *column = take_number(line), *number = column ? take_number(line) : NULL;
    if (!number) { // there is one number at most
        number = column;
        column = NULL;
    }
    json_t *entry = json_object();
    cli_json_set(entry, "file", *line ? cli_json_string(line) : json_null());
    cli_json_set(entry, "line", number ? number : json_null());
    cli_json_set(entry, "column", column ? column : json_null());
    cli_json_set(entry, "severity", json_string(severity));
    cli_json_set(entry, "message", cli_json_string(at + strlen(severity) + 2));
    cli_json_append(list, entry);
}

// An array of {file, line, column, severity, message} of the lines of a report that begin a diagnostic; file, line and
// column are null where there is none. The text is cut.
static json_t *diagnostics_of(char *report)
{
    json_t *list = json_array();
    for (char *line; (line = strsep(&report, "\n"));)
        if (!isblank((unsigned char)*line))
            add_diagnostic(list, line);
    return list;
}

static const char check_about[] =
    "Holds the files, as one program, against OpenCL C and against what CUDA has, and writes\n"
    "nothing. Errors and warnings go to standard error, as FILE:LINE:COLUMN: error: TEXT. No GPU\n"
    "and no CUDA toolkit is needed.";

static int check_as_json(const struct kc_build *build)
{
    struct kc_result result = {0};
    struct weir_long_text report = {0};
    const bool fine = kc_build(build, &result, &report);
    kc_result_finish(&result);
    json_t *root = json_object();
    cli_json_set(root, "sound", json_boolean(fine));
    cli_json_set(root, "diagnostics", report.failed ? NULL : diagnostics_of(report.text));
    free(report.text);
    return cli_json_print(root, fine ? CLI_OK : CLI_FAILED);
}

int cli_kernels_check(int argc, char **argv)
{
    struct kc_build build;
    bool as_json = false;
    const struct cli_option options[] = {
        {"json", NULL, "print what was found as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = CLI_FORM_PLAIN("weir kernels check", check_about, options);
    kernels_parse(&build, usage, argc, argv);
    if (build.tools.libclc[0] == '\0')
        cli_note("functions that CUDA lacks are not looked for: libclc is not installed; install "
                 "the package libclc of clang's version, such as libclc-22");
    if (as_json)
        return check_as_json(&build);
    kernels_compile(&build, false);
    return CLI_OK;
}

static const char about[] =
    "Prints the kernels of the files with their parameters, and the block that a kernel requires.";

// A row of the kernel's table, and a member of its list.
static void add_parameter(struct weir_table *table, json_t *list,
                          const struct weir_parameter *parameter)
{
    json_t *entry = json_object();
    const char *kind = "local", *words = "local memory";
    if (parameter->kind == WEIR_PARAMETER_BUFFER) {
        kind = "buffer";
        words = parameter->writable ? "buffer, read and written" : "buffer, read";
    } else if (parameter->kind == WEIR_PARAMETER_VALUE) {
        kind = "value";
        words = cli_text("value, %u byte%s", parameter->size, parameter->size == 1 ? "" : "s");
    }
    weir_table_add(table, "%s", parameter->name);
    weir_table_add(table, "%s", parameter->type_name);
    weir_table_add(table, "%s", words);
    cli_json_set(entry, "name", cli_json_string(parameter->name));
    cli_json_set(entry, "type", cli_json_string(parameter->type_name));
    cli_json_set(entry, "kind", json_string(kind));
    cli_json_set(entry, "writable", json_boolean(parameter->writable));
    if (parameter->kind == WEIR_PARAMETER_VALUE)
        cli_json_set(entry, "size", weir_json_count(parameter->size));
    cli_json_append(list, entry);
}

// Adds the kernel to the list, and unless `as_json` prints it.
static void show_kernel(const struct kc_kernel *kernel, json_t *list, bool as_json)
{
    const json_int_t x = kernel->block.x, y = kernel->block.y, z = kernel->block.z;
    struct weir_table table = {.alignment = "lll"};
    json_t *entry = json_object(), *parameters = json_array();
    for (size_t i = 0; i < kernel->parameter_count; i++)
        add_parameter(&table, parameters, &kernel->parameters[i]);
    cli_json_set(entry, "name", cli_json_string(kernel->name));
    cli_json_set(entry, "required_block", x ? json_pack("[I, I, I]", x, y, z) : json_null());
    cli_json_set(entry, "parameters", parameters);
    cli_json_append(list, entry);
    if (!as_json) {
        printf("%s%s\n", kernel->name,
               x ? cli_text(", blocks of %lld x %lld x %lld", x, y, z) : "");
        cli_table_print(&table, stdout, 2);
    }
    weir_table_finish(&table);
}

int cli_kernels_list(int argc, char **argv)
{
    struct kc_build build;
    bool as_json = false;
    const struct cli_option options[] = {
        {"json", NULL, "print them as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = CLI_FORM_PLAIN("weir kernels list", about, options);
    kernels_parse(&build, usage, argc, argv);
    const struct kc_kernels *kernels = &kernels_compile(&build, false)->kernels;
    json_t *root = json_object(), *list = json_array();
    for (size_t i = 0; i < kernels->count; i++)
        show_kernel(&kernels->items[i], list, as_json);
    cli_json_set(root, "kernels", list);
    if (as_json)
        return cli_json_print(root, CLI_OK);
    json_decref(root);
    return CLI_OK;
}
