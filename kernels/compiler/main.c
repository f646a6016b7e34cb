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

// Where the value of an option goes: into a text, or into a list.
static bool take(int option, const char *value)
{
    switch (option) {
    case 's':
        bundle.symbol = value;
        return true;
    case 'l':
        bundle.label = value;
        return true;
    case 'h':
        bundle.header = value;
        return true;
    case 'o':
        bundle.out = value;
        return true;
    case 't':
        language.standard = value;
        return true;
    case 'f':
        language.fast = true;
        return true;
    case 'k':
        skip = true;
        return true;
    case 'e':
        language.exact = true;
        return true;
    case 'r':
        language.restricted = true;
        return true;
    case 'u':
        cuda_source = value;
        return true;
    case 'n':
        return add(&nvcc_options, value);
    case 'i':
        return add(&cuda_images, value);
    case 'p':
        return add(&ptx, value);
    case 'c':
        return add(&cubins, value);
    case 'I':
        return add(&folders, value);
    case 'D':
        return add(&definitions, value);
    default:
        return false;
    }
}

static bool read_arguments(int argc, char **argv)
{
    static const struct option options[] = {
        {"symbol", required_argument, NULL, 's'},
        {"label", required_argument, NULL, 'l'},
        {"header", required_argument, NULL, 'h'},
        {"out", required_argument, NULL, 'o'},
        {"ptx", required_argument, NULL, 'p'},
        {"cubin", required_argument, NULL, 'c'},
        {"std", required_argument, NULL, 't'},
        {"fast", no_argument, NULL, 'f'},
        {"skip", no_argument, NULL, 'k'},
        {"cuda", required_argument, NULL, 'u'},
        {"nvcc-option", required_argument, NULL, 'n'},
        {"cuda-image", required_argument, NULL, 'i'},
        {"exact", no_argument, NULL, 'e'},
        {"restrict", no_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    bool fine = true;
    int option;
    while ((option = getopt_long(argc, argv, "I:D:", options, NULL)) != -1)
        fine = take(option, optarg) && fine;
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
