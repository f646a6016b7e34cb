"""weir_text: a file as a C string."""

load("@rules_cc//cc:defs.bzl", "cc_library")

_TOOL = str(Label("//tools/bazel:embed_text.py"))

def weir_text(name, src, symbol, visibility = None):
    """A cc_library with `extern const char *const <symbol>`, the text of `src`."""
    header = "%s/%s.h" % (native.package_name(), name)
    native.genrule(
        name = name + "_text",
        srcs = [src],
        outs = [name + ".c", name + ".h"],
        cmd = "python3 $(location %s) --name %s --header %s --out $(@D)/%s $(location %s)" % (
            _TOOL,
            symbol,
            header,
            name,
            src,
        ),
        tools = [_TOOL],
        visibility = ["//visibility:private"],
    )
    cc_library(
        name = name,
        srcs = [name + ".c"],
        hdrs = [name + ".h"],
        visibility = visibility,
    )
