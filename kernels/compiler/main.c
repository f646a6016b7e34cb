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

static void add(struct items *list, const char *item)
{
    if (list->count < ITEMS_MOST)
        list->items[list->count++] = item;
}

static struct kc_list list_of(const struct items *items)
{
    return (struct kc_list){items->items, items->count};
}

int main(int argc, char **argv)
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
        {NULL, 0, NULL, 0},
    };
    static struct items sources, folders, definitions, ptx, cubins;
    struct kc_bundle bundle = {0};
    struct kc_language language = {.standard = "CL1.2"};
    int option;
    while ((option = getopt_long(argc, argv, "I:D:", options, NULL)) != -1) {
        switch (option) {
        case 's':
            bundle.symbol = optarg;
            break;
        case 'l':
            bundle.label = optarg;
            break;
        case 'h':
            bundle.header = optarg;
            break;
        case 'o':
            bundle.out = optarg;
            break;
        case 'p':
            add(&ptx, optarg);
            break;
        case 'c':
            add(&cubins, optarg);
            break;
        case 't':
            language.standard = optarg;
            break;
        case 'f':
            language.fast = true;
            break;
        case 'I':
            add(&folders, optarg);
            break;
        case 'D':
            add(&definitions, optarg);
            break;
        default:
            return 2;
        }
    }
    for (int i = optind; i < argc; i++)
        add(&sources, argv[i]);
    if (sources.count == 0 || !bundle.symbol || !bundle.label || !bundle.header || !bundle.out) {
        fprintf(stderr,
                "usage: weir_kernels --symbol NAME --label LABEL --header PATH --out PREFIX "
                "[--ptx ARCH]... [--cubin ARCH]... [--std CL1.2] [--fast] [-I DIR]... "
                "[-D NAME=VALUE]... FILE...\n");
        return 2;
    }
    const struct kc_build build = {
        .sources = list_of(&sources),
        .folders = list_of(&folders),
        .definitions = list_of(&definitions),
        .ptx = list_of(&ptx),
        .cubins = list_of(&cubins),
        .language = language,
        .bundle = &bundle,
    };
    struct kc_result result = {0};
    struct weir_long_text report = {0};
    const bool fine = kc_build(&build, &result, &report);
    if (report.text)
        fputs(report.text, stderr);
    free(report.text);
    kc_result_finish(&result);
    return !fine;
}
