// weir_kernels: what the rule of //tools/bazel:kernels.bzl runs. People call `weir kernels build`.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/compiler/compiler.h"

enum {
    ITEMS_MOST = 256
};

struct items {
    const char *items[ITEMS_MOST];
    size_t count;
};

static struct items sources, folders, definitions, ptx, cubins, nvcc_options, cuda_images;
static struct kc_bundle bundle;
static struct kc_language language = {.standard = "CL1.2"};
static const char *cuda_source;
static bool skip;

static bool add(struct items *list, const char *item)
{
    if (list->count == ITEMS_MOST)
        return false;
    list->items[list->count++] = item;
    return true;
}

static struct kc_list list_of(const struct items *items)
{
    return (struct kc_list){items->items, items->count};
}

// Where an option goes: it sets a flag, or its value becomes a text or an item of a list.
static const struct {
    const char *name;
    bool *flag;
    const char **text;
    struct items *list;
} rows[] = {
    {"symbol", .text = &bundle.symbol},
    {"label", .text = &bundle.label},
    {"header", .text = &bundle.header},
    {"out", .text = &bundle.out},
    {"ptx", .list = &ptx},
    {"cubin", .list = &cubins},
    {"std", .text = &language.standard},
    {"fast", .flag = &language.fast},
    {"exact", .flag = &language.exact},
    {"restrict", .flag = &language.restricted},
    {"skip", .flag = &skip},
    {"cuda", .text = &cuda_source},
    {"nvcc-option", .list = &nvcc_options},
    {"cuda-image", .list = &cuda_images},
};

enum {
    ROWS = sizeof rows / sizeof *rows,
    FIRST_ROW = 256 // after letters
};

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
            fine = add(option == 'I' ? &folders : &definitions, optarg) && fine;
        else if (row < 0)
            fine = false;
        else if (rows[row].list)
            fine = add(rows[row].list, optarg) && fine;
        else if (rows[row].text)
            *rows[row].text = optarg;
        else
            *rows[row].flag = true;
    }
    for (int i = optind; i < argc; i++)
        fine = add(&sources, argv[i]) && fine;
    return fine && sources.count > 0 && bundle.symbol && bundle.label && bundle.header &&
           bundle.out;
}

// Nothing runs in place of a twin that was not compiled, so the build tells of it.
static void note_lack(const struct kc_build *build)
{
    struct kc_tools tools = build->tools;
    kc_tools_find(&tools);
    const char *lack = kc_tools_lack_nvcc(&tools);
    if (build->twin.source && build->ptx.count + build->cubins.count == 0)
        fprintf(stderr, "note: %s is not compiled, and CUDA devices will refuse %s: %s\n",
                build->twin.source, build->bundle->label, lack ? lack : "no GPU is named for it");
}

static bool build_bundle(void)
{
    const struct kc_build build = {
        .sources = {list_of(&sources), list_of(&folders), list_of(&definitions)},
        .ptx = list_of(&ptx),
        .cubins = list_of(&cubins),
        .language = language,
        .skip = skip,
        .twin = {cuda_source, list_of(&nvcc_options), list_of(&cuda_images)},
        .bundle = &bundle,
    };
    struct kc_result result = {0};
    struct weir_long_text report = {0};
    const bool fine = kc_build(&build, &result, &report);
    if (report.text)
        fputs(report.text, stderr);
    if (fine)
        note_lack(&build);
    free(report.text);
    kc_result_finish(&result);
    return fine;
}

int main(int argc, char **argv)
{
    if (read_arguments(argc, argv))
        return build_bundle() ? 0 : 1;
    fprintf(stderr,
            "usage: weir_kernels --symbol NAME --label LABEL --header PATH --out PREFIX\n"
            "       [--ptx ARCH]... [--cubin ARCH]... [--std CL1.2] [--fast | --exact] [--skip]\n"
            "       [--restrict] [-I DIR]...\n"
            "       [-D NAME=VALUE]... [--cuda FILE.cu [--nvcc-option OPTION]...]\n"
            "       [--cuda-image FILE]... FILE...       (at most %d of each)\n",
            ITEMS_MOST);
    return 2;
}
