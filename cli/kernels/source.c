#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/kernels/kernels.h"

enum {
    OPTIONS_MOST = 16,
    FILES_MOST = 4096
};

size_t kernels_identifier(const char *text)
{
    size_t length = 0;
    while (isalpha((unsigned char)text[length]) || text[length] == '_' ||
           (length > 0 && isdigit((unsigned char)text[length])))
        length++;
    return length;
}

bool kernels_is_plain(const char *name)
{
    for (; *name; name++)
        if (*name == '"' || *name == '\\' || iscntrl((unsigned char)*name))
            return false;
    return true;
}

static bool check_files(const struct kc_list *files)
{
    for (size_t i = 0; i < files->count; i++)
        if (!kernels_is_plain(files->items[i])) {
            cli_error("%s: a name with quotes, backslashes or control characters cannot stand in "
                      "messages of compilers; rename the file",
                      files->items[i]);
            return false;
        }
    return true;
}

// NAME, NAME=VALUE or NAME(PARAMETERS)=VALUE.
static bool check_definitions(const struct cli_list *definitions)
{
    for (size_t i = 0; i < definitions->count; i++) {
        const char *text = definitions->items[i];
        const size_t length = kernels_identifier(text);
        if (length == 0 || !strchr("=(", text[length]) || strchr(text, '\n')) {
            cli_error("-D takes NAME or NAME=VALUE, in one line, not '%s'", text);
            return false;
        }
    }
    return true;
}

static bool check_standard(const char *standard)
{
    static const char *const known[] = {"CL1.2", "CL2.0", "CL3.0"};
    const size_t count = sizeof known / sizeof *known;
    for (size_t i = 0; i < count; i++)
        if (strcmp(standard, known[i]) == 0)
            return true;
    cli_error("--std takes CL1.2, CL2.0 or CL3.0, not '%s'", standard);
    return false;
}

static struct kc_list list_of(const struct cli_list *list)
{
    return (struct kc_list){list->items, list->count};
}

static bool find_tools(struct kernels_source *source, int *out_exit)
{
    kc_tools_find(&source->build.tools);
    if (source->build.tools.clang[0] != '\0')
        return true;
    cli_error("clang is not installed, which compiles kernels; install clang and libclc of one "
              "version, such as clang-22 and libclc-22");
    *out_exit = CLI_SETUP;
    return false;
}

bool kernels_parse(struct kernels_source *source, struct cli_usage usage, int argc, char **argv,
                   int *out_exit)
{
    struct cli_option options[OPTIONS_MOST];
    const struct cli_option common[] = {
        {"std", "S", "the language: CL1.2, which it is without this,\nCL2.0 or CL3.0", CLI_TEXT,
         &source->standard, 0, 0},
        {"D", "NAME[=VALUE]", "a macro, 1 without a value; may be repeated", CLI_LIST,
         &source->definitions, 0, 0},
        {"I", "DIR", "a folder in which #include looks after that of\nthe file; may be repeated",
         CLI_FOLDERS, &source->folders, 0, 0},
        {"fast", NULL, "faster and less exact arithmetic, on every device:\n-cl-fast-relaxed-math",
         CLI_FLAG, &source->fast, 0, 0},
    };
    size_t count = 0;
    *source = (struct kernels_source){.standard = "CL1.2"};
    for (size_t i = 0; i < usage.option_count; i++)
        options[count++] = usage.options[i];
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        options[count++] = common[i];
    usage.options = options;
    usage.option_count = count;
    usage.operands = "FILE...";
    usage.operand = "a file in OpenCL C";
    usage.manual = "weir-kernels(1)";
    usage.operand_minimum = 1;
    usage.operand_maximum = FILES_MOST;
    size_t files;
    if (!cli_parse(&usage, argc, argv, &files, out_exit))
        return false;
    source->build.sources = (struct kc_list){(const char *const *)argv, files};
    source->build.definitions = list_of(&source->definitions);
    source->build.folders = list_of(&source->folders);
    source->build.language = (struct kc_language){source->standard, source->fast};
    *out_exit = CLI_USAGE;
    return check_standard(source->standard) && check_definitions(&source->definitions) &&
           check_files(&source->build.sources) && find_tools(source, out_exit);
}

// Not through cli_error(): editors look for FILE:LINE:COLUMN at the start of a line.
void kernels_print_report(struct weir_long_text *report)
{
    char *text = report->text ? weir_text_escaped(report->text, "\n\t") : NULL;
    if (text)
        fputs(text, stderr);
    else if (report->text || report->failed)
        cli_error("no memory for what the compilers say");
    free(text);
    free(report->text);
    *report = (struct weir_long_text){0};
}

int kernels_compile(const struct kc_build *build, struct kc_result *result)
{
    struct weir_long_text report = {0};
    const bool fine = kc_build(build, result, &report);
    kernels_print_report(&report);
    return fine ? CLI_OK : CLI_FAILED;
}
