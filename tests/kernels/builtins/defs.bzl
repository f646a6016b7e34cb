"""The kernels of the table, a program for each group of functions and type."""

load("//tools/bazel:kernels.bzl", "weir_kernels")

def builtins_programs(name, groups):
    """A library with `programs`, the list that programs.h declares.

    Args:
      name: the target.
      groups: the types of each group of functions.
    """
    programs = ["%s_%s" % (group, type) for group in groups for type in groups[group]]
    for program in programs:
        native.genrule(
            name = program + "_text",
            outs = [program + ".cl"],
            cmd = "$(location :generate) %s >$@" % program.replace("_", " "),
            exec_tools = [":generate"],
        )
        weir_kernels(
            name = program,
            srcs = [program + ".cl"],
            cubins = ["90"],
            ptx = [],
            symbol = "builtins_" + program,
        )
    native.genrule(
        name = name + "_list",
        outs = [name + "_list.c"],
        cmd = "$(location :generate) >$@",
        exec_tools = [":generate"],
    )
    native.cc_library(
        name = name,
        srcs = [name + "_list.c"],
        hdrs = ["programs.h"],
        deps = ["//api", ":table"] + programs,
    )
