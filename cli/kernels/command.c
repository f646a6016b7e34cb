#include "cli/common/options.h"
#include "cli/kernels/kernels.h"

static int kernels_main(int argc, char **argv)
{
    const struct cli_command members[] = {
        {.name = "build", .summary = "make a bundle, as C", .main = kernels_build_main},
        {.name = "check", .summary = "report what does not compile", .main = kernels_check_main},
        {.name = "compare",
         .summary = "run CUDA C++ against the OpenCL C beside it",
         .main = kernels_compare_main},
        {.name = "list", .summary = "the kernels and their parameters", .main = kernels_list_main},
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
