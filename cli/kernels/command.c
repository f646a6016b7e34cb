// weir kernels: its commands; check and list.
#include <stdio.h>
#include <stdlib.h>

#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/kernels/kernels.h"

static const char check_about[] =
    "Holds the files, as one program, against OpenCL C and against what CUDA has, and writes\n"
    "nothing. Errors and warnings go to standard error, as FILE:LINE:COLUMN: error: TEXT. No GPU\n"
    "and no CUDA toolkit is needed.";

static int check_as_json(const struct kc_build *build, struct kc_result *result)
{
    struct weir_long_text report = {0};
    const bool fine = kc_build(build, result, &report);
    bool ok = !report.failed;
    json_t *root = json_object();
    weir_json_set(root, "sound", json_boolean(fine), &ok);
    weir_json_set(root, "diagnostics", kernels_diagnostics(report.text ? report.text : "", &ok),
                  &ok);
    free(report.text);
    return cli_json_print(root, ok, fine ? CLI_OK : CLI_FAILED);
}

static int check_main(int argc, char **argv)
{
    struct kernels_source source;
    struct kc_result result = {0};
    bool as_json = false;
    const struct cli_option options[] = {
        {"json", NULL, "print what was found as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage =
        CLI_FORM_PLAIN("weir kernels check", check_about, "weir-kernels(1)", options);
    int code;
    if (!kernels_parse(&source, usage, argc, argv, &code))
        return code;
    if (source.build.tools.libclc[0] == '\0')
        cli_note("functions that CUDA lacks are not looked for: libclc is not installed; install "
                 "the package libclc of clang's version, such as libclc-22");
    code =
        as_json ? check_as_json(&source.build, &result) : kernels_compile(&source.build, &result);
    kc_result_finish(&result);
    return code;
}

static const char about[] =
    "Prints the kernels of the files with their parameters, and the block that a kernel requires.";

static const char *const kind_names[] = {
    [KC_BUFFER] = "buffer",
    [KC_VALUE] = "value",
    [KC_LOCAL] = "local",
};

static void add_row(struct weir_table *table, const struct kc_parameter *parameter)
{
    weir_table_add(table, "%s", parameter->name);
    weir_table_add(table, "%s", parameter->type);
    if (parameter->kind == KC_VALUE)
        weir_table_add(table, "value, %u byte%s", parameter->size, parameter->size == 1 ? "" : "s");
    else if (parameter->kind == KC_BUFFER)
        weir_table_add(table, "buffer, %s", parameter->writable ? "read and written" : "read");
    else
        weir_table_add(table, "local memory");
}

static void print_kernel(const struct kc_kernel *kernel)
{
    struct weir_table table = {.alignment = "lll"};
    printf("%s", kernel->name);
    if (kernel->block[0] > 0)
        printf(", blocks of %u x %u x %u", kernel->block[0], kernel->block[1], kernel->block[2]);
    putchar('\n');
    for (size_t i = 0; i < kernel->parameter_count; i++)
        add_row(&table, &kernel->parameters[i]);
    cli_table_print(&table, stdout, 2);
}

static json_t *parameters_of(const struct kc_kernel *kernel, bool *ok)
{
    json_t *list = json_array();
    for (size_t i = 0; i < kernel->parameter_count; i++) {
        const struct kc_parameter *parameter = &kernel->parameters[i];
        json_t *entry = json_object();
        weir_json_set(entry, "name", cli_json_string(parameter->name), ok);
        weir_json_set(entry, "type", cli_json_string(parameter->type), ok);
        weir_json_set(entry, "kind", json_string(kind_names[parameter->kind]), ok);
        weir_json_set(entry, "writable", json_boolean(parameter->writable), ok);
        if (parameter->kind == KC_VALUE)
            weir_json_set(entry, "size", weir_json_count(parameter->size), ok);
        weir_json_append(list, entry, ok);
    }
    return list;
}

static json_t *block_of(const struct kc_kernel *kernel, bool *ok)
{
    if (kernel->block[0] == 0)
        return json_null();
    json_t *block = json_array();
    for (int i = 0; i < 3; i++)
        weir_json_append(block, weir_json_count(kernel->block[i]), ok);
    return block;
}

static int print_json(const struct kc_kernels *kernels)
{
    bool ok = true;
    json_t *root = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < kernels->count; i++) {
        json_t *entry = json_object();
        weir_json_set(entry, "name", cli_json_string(kernels->items[i].name), &ok);
        weir_json_set(entry, "required_block", block_of(&kernels->items[i], &ok), &ok);
        weir_json_set(entry, "parameters", parameters_of(&kernels->items[i], &ok), &ok);
        weir_json_append(list, entry, &ok);
    }
    weir_json_set(root, "kernels", list, &ok);
    return cli_json_print(root, ok, CLI_OK);
}

static int list_main(int argc, char **argv)
{
    struct kernels_source source;
    struct kc_result result = {0};
    bool as_json = false;
    const struct cli_option options[] = {
        {"json", NULL, "print them as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage =
        CLI_FORM_PLAIN("weir kernels list", about, "weir-kernels(1)", options);
    int code;
    if (!kernels_parse(&source, usage, argc, argv, &code))
        return code;
    code = kernels_compile(&source.build, &result);
    if (code == CLI_OK && as_json)
        code = print_json(&result.kernels);
    else if (code == CLI_OK)
        for (size_t i = 0; i < result.kernels.count; i++)
            print_kernel(&result.kernels.items[i]);
    kc_result_finish(&result);
    return code;
}

static int kernels_main(int argc, char **argv)
{
    const struct cli_command members[] = {
        {.name = "build", .summary = "make a bundle, as C", .main = kernels_build_main},
        {.name = "check", .summary = "report what does not compile", .main = check_main},
        {.name = "compare",
         .summary = "run CUDA C++ against the OpenCL C beside it",
         .main = kernels_compare_main},
        {.name = "list", .summary = "the kernels and their parameters", .main = list_main},
        {.name = "ptx", .summary = "print PTX of one architecture", .main = kernels_ptx_main},
        {.name = "sass", .summary = "print machine code of one GPU", .main = kernels_sass_main},
        {.name = "resources",
         .summary = "registers and memory of each kernel",
         .main = kernels_resources_main},
    };
    const struct cli_command group = {.what = "COMMAND",
                                      .summary = "Compiles OpenCL C for every device.",
                                      .members = members,
                                      .member_count = sizeof members / sizeof *members};
    return cli_dispatch(&group, "weir kernels", "weir-kernels(1)", argc, argv);
}

const struct cli_command cli_kernels = {
    .name = "kernels",
    .summary = "compile kernels to bundles, and look at them",
    .main = kernels_main,
};
