"""The kernels of the table, a program for each type."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//tools/bazel:kernels.bzl", "weir_kernels")

def builtins_programs(name, types):
    """A library with `programs`, the list that table.h declares.

    Args:
      name: the target.
      types: those of the table that have a program.
    """
    for type in types:
        native.genrule(
            name = type + "_text",
            outs = [type + ".cl"],
            cmd = "$(location :generate) %s >$@" % type,
            tools = [":generate"],
        )
        weir_kernels(
            name = type,
            srcs = [type + ".cl"],
            cubins = ["90"],
            ptx = [],
            symbol = "builtins_" + type,
        )
    native.genrule(
        name = name + "_list",
        outs = [name + "_list.c"],
        cmd = "$(location :generate) --list %s >$@" % " ".join(types),
        tools = [":generate"],
    )
    cc_library(
        name = name,
        srcs = [name + "_list.c"],
        deps = ["//api", ":table"] + types,
    )
