// weir_kernels: what the rule of //tools/bazel:kernels.bzl runs. People call `weir kernels build`.
#include <getopt.h>

#include "kernels/compiler/compiler.h"

static struct kc_bundle bundle;
static struct kc_build build = {.language.standard = "CL1.2", .bundle = &bundle};

// Where an option goes: it sets a flag, or its value becomes a text or an item of a list.
static const struct {
    const char *name;
    bool *flag;
    const char **text;
    struct weir_words *list;
} rows[] = {
    {"symbol", .text = &bundle.symbol},
    {"label", .text = &bundle.label},
    {"out", .text = &bundle.out},
    {"ptx", .list = &build.ptx},
    {"cubin", .list = &build.cubins},
    {"std", .text = &build.language.standard},
    {"fast", .flag = &build.language.fast},
    {"exact", .flag = &build.language.exact},
    {"restrict", .flag = &build.language.restricted},
    {"skip", .flag = &build.skip},
    {"cuda", .text = &build.twin.source},
    {"nvcc-option", .list = &build.twin.options},
    {"cuda-image", .list = &build.twin.images},
};

enum {
    ROWS = sizeof rows / sizeof *rows,
    FIRST_ROW = 256 // after letters
};

// The lists stay until the process ends.
static void add(struct weir_words *list, const char *item)
{
    const char **items = weir_grow(list->items, list->count, &list->capacity, sizeof *items);
    if (!items) {
        fprintf(stderr, "error: no memory for the command line\n");
        exit(1);
    }
    list->items = items;
    items[list->count++] = item;
}

static bool read_arguments(int argc, char **argv)
{
    struct option options[ROWS + 1] = {{NULL, 0, NULL, 0}};
    bool fine = true;
    int option;
    for (int i = 0; i < ROWS; i++)
        options[i] = (struct option){rows[i].name, rows[i].flag ? no_argument : required_argument,
                                     NULL, FIRST_ROW + i};
    while ((option = getopt_long(argc, argv, "I:D:", options, NULL)) != -1) {
        const int row = option - FIRST_ROW;
        if (option == 'I' || option == 'D')
            add(option == 'I' ? &build.sources.folders : &build.sources.definitions, optarg);
        else if (row < 0)
            fine = false;
        else if (rows[row].list)
            add(rows[row].list, optarg);
        else if (rows[row].text)
            *rows[row].text = optarg;
        else
            *rows[row].flag = true;
    }
    for (int i = optind; i < argc; i++)
        add(&build.sources.files, argv[i]);
    return fine && optind < argc && bundle.symbol && bundle.label && bundle.out;
}

// Says that the CUDA C++ is in no image.
static void note_lack(void)
{
    const char *lack = kc_tools_lack_nvcc(&build.tools);
    if (build.twin.source && build.ptx.count + build.cubins.count == 0)
        fprintf(stderr, "note: %s is not compiled, and CUDA devices will refuse %s: %s\n",
                build.twin.source, bundle.label, lack ? lack : "no GPU is named for it");
}

int main(int argc, char **argv)
{
    struct kc_result result = {0};
    struct weir_long_text report = {0};
    if (!read_arguments(argc, argv)) {
        fprintf(
            stderr,
            "usage: weir_kernels --symbol NAME --label LABEL --out PREFIX\n"
            "       [--ptx ARCH]... [--cubin ARCH]... [--std CL1.2] [--fast | --exact] [--skip]\n"
            "       [--restrict] [-I DIR]...\n"
            "       [-D NAME=VALUE]... [--cuda FILE.cu [--nvcc-option OPTION]...]\n"
            "       [--cuda-image FILE]... FILE...\n");
        return 2;
    }
    kc_tools_find(&build.tools);
    const bool fine = kc_build(&build, &result, &report);
    if (report.text)
        fputs(report.text, stderr);
    if (fine)
        note_lack();
    free(report.text);
    kc_result_finish(&result);
    return fine ? 0 : 1;
}
