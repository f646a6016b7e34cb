"""weir_text: a file as a C string."""

load("@rules_cc//cc:defs.bzl", "cc_library")

_TOOL = str(Label("//tools/bazel:embed_text.py"))

def weir_text(name, src, symbol, before = [], visibility = None):
    """A cc_library with `extern const char *const <symbol>`, the text of `src` after those of `before`."""
    files = before + [src]
    header = "%s/%s.h" % (native.package_name(), name)
    native.genrule(
        name = name + "_text",
        srcs = files,
        outs = [name + ".c", name + ".h"],
        cmd = "python3 $(location %s) --name %s --header %s --out $(@D)/%s %s" % (
            _TOOL,
            symbol,
            header,
            name,
            " ".join(["$(location %s)" % file for file in files]),
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
