// The files that the commands of weir kernels compile: their options, what depends on them, and what the compilers say.
#include <ctype.h>

#include "cli/common/own.h"
#include "cli/kernels/kernels.h"

void kernels_twin_check(const struct kc_twin *twin, bool architectures_are_named)
{
    if (twin->source && twin->images.count > 0)
        cli_fail(CLI_USAGE, "--cuda and --cuda-image both name what CUDA runs; leave one out");
    if (architectures_are_named && twin->images.count > 0)
        cli_fail(CLI_USAGE,
                 "--cuda-image names images that are there; leave --cubin and --ptx out");
    if (twin->options.count > 0 && !twin->source)
        cli_fail(CLI_USAGE, "--nvcc-option is for the file of --cuda, and there is none");
}

enum {
    FILES_MOST = 4096
};

bool kernels_is_plain(const char *name)
{
    for (; *name; name++)
        if (*name == '"' || *name == '\\' || iscntrl((unsigned char)*name))
            return false;
    return true;
}

static void check(const struct kc_build *build)
{
    static const char *const standards[] = {"CL1.0", "CL1.1", "CL1.2", "CL2.0", "CL3.0", NULL};
    const struct kc_language *language = &build->language;
    const struct weir_words *definitions = &build->sources.definitions,
                            *files = &build->sources.files;
    if (language->fast && language->exact)
        cli_fail(CLI_USAGE, "--fast and --exact contradict each other; leave one out");
    cli_choose("std", language->standard, standards);
    for (size_t i = 0; i < definitions->count; i++)
        if (!kc_is_definition(definitions->items[i]))
            cli_fail(CLI_USAGE, KC_DEFINITIONS ", not '%s'", definitions->items[i]);
    for (size_t i = 0; i < files->count; i++)
        if (!kernels_is_plain(files->items[i]))
            cli_fail(CLI_USAGE,
                     "%s: a name with quotes, backslashes or control characters cannot stand in "
                     "messages of compilers; rename the file",
                     files->items[i]);
}

// Options of OpenCL's own compilers, which have other names here; and clang's -Werror.
static void check_spelling(int argc, char **argv)
{
    static char strict[] = "--werror";
    static const char *const names[][2] = {
        {"-cl-std=", "--std "},
        {"-cl-fast-relaxed-math", "--fast"},
        {"-cl-unsafe-math-optimizations", "--fast"},
        {"-cl-finite-math-only", "--fast"},
        {"-cl-denorms-are-zero", "--fast"},
        {"-cl-mad-enable", "leave it out: a * b + c is contracted anyway"},
        {"-cl-opt-disable", "leave it out"},
        {"-cl-kernel-arg-info", "leave it out: it is always on"},
        {"-cl-no-signed-zeros", "leave it out"},
        {"-cl-fp32-correctly-rounded-divide-sqrt", "leave it out: it is so without --fast"},
    };
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "-Werror") == 0)
            argv[i] = strict;
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            const size_t length = strlen(names[n][0]);
            if (strncmp(argv[i], names[n][0], length) != 0)
                continue;
            const bool has_value = names[n][0][length - 1] == '=';
            cli_fail(CLI_USAGE, "%s is an option of OpenCL's compilers; here: %s%s", argv[i],
                     names[n][1], has_value ? argv[i] + length : "");
        }
    }
}

void kernels_parse(struct kc_build *build, struct cli_usage usage, int argc, char **argv)
{
    struct kc_language *language = &build->language;
    const struct cli_option common[] = {
        {"std", "S", "the language: CL1.2, which it is without this,\nCL1.0, CL1.1, CL2.0 or CL3.0",
         CLI_TEXT, &language->standard, 0, 0},
        {"D", "NAME[=VALUE]", "a macro, 1 without a value; may be repeated", CLI_LIST,
         &build->sources.definitions, 0, 0},
        {"I", "DIR", "a folder in which #include looks after that of\nthe file; may be repeated",
         CLI_FOLDERS, &build->sources.folders, 0, 0},
        {"fast", NULL, "faster and less exact arithmetic, on every device:\n-cl-fast-relaxed-math",
         CLI_FLAG, &language->fast, 0, 0},
        {"skip", NULL,
         "leave out kernels that CUDA cannot have, such as\nthose that use pipes, with a warning",
         CLI_FLAG, &build->skip, 0, 0},
        {"w", NULL, "no warnings", CLI_FLAG, &language->quiet, 0, 0},
        {"werror", NULL, "warnings are errors, also as -Werror", CLI_FLAG, &language->strict, 0, 0},
        {"exact", NULL, "a * b + c rounds twice, so that devices give the\nsame bits", CLI_FLAG,
         &language->exact, 0, 0},
        {"restrict", NULL,
         "pointers to global memory are restrict: what one\npoints to is written through no other",
         CLI_FLAG, &language->restricted, 0, 0},
    };
    const size_t own = usage.option_count;
    struct cli_option *options = cli_allocate(1, own * sizeof *options + sizeof common);
    *build = (struct kc_build){.language.standard = "CL1.2"};
    if (own > 0)
        memcpy(options, usage.options, own * sizeof *options);
    memcpy(options + own, common, sizeof common);
    usage.options = options;
    usage.option_count = own + sizeof common / sizeof *common;
    usage.operands = "FILE...";
    usage.operand = "a file in OpenCL C";
    usage.operand_minimum = 1;
    usage.operand_maximum = FILES_MOST;
    check_spelling(argc, argv);
    const size_t files = cli_parse(&usage, argc, argv);
    build->sources.files = (struct weir_words){(const char **)argv, files, files};
    check(build);
    kc_tools_find(&build->tools);
    if (build->tools.clang[0] == '\0')
        cli_fail(CLI_SETUP, "clang is not installed, which compiles kernels; install clang and "
                            "libclc of one version, such as clang-22 and libclc-22");
}

// Not through cli_error(): editors look for FILE:LINE:COLUMN at the start of a line.
static void print_report(const struct weir_long_text *report)
{
    char *text = report->text ? weir_text_escaped(report->text, "\n\t") : NULL;
    if (text)
        fputs(text, stderr);
    else if (report->text || report->failed)
        cli_error("no memory for what the compilers say");
    free(text);
}

CLI_DESTROYER(finish_result, kc_result_finish)

const struct kc_result *kernels_compile(const struct kc_build *build, bool is_told)
{
    struct kc_result *result = cli_allocate(1, sizeof *result);
    struct weir_long_text report = {0};
    const bool fine = kc_build(build, result, &report);
    cli_own(finish_result, result);
    if (!fine || !is_told)
        print_report(&report);
    free(report.text);
    if (!fine)
        cli_end(CLI_FAILED);
    return result;
}
