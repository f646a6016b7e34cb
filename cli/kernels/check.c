#include <stdlib.h>

#include "cli/common/json.h"
#include "cli/kernels/kernels.h"

static const char about[] =
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

int kernels_check_main(int argc, char **argv)
{
    struct kernels_source source;
    struct kc_result result = {0};
    bool as_json = false;
    const struct cli_option options[] = {
        {"json", NULL, "print what was found as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = {
        .command = "weir kernels check",
        .about = about,
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
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
