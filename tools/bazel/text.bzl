"""weir_text: files as C strings."""

load("@rules_cc//cc:defs.bzl", "cc_library")

def weir_text(name, texts, before = [], visibility = None):
    """A cc_library with `extern const char *const SYMBOL` for each {SYMBOL: file}: its text after those of `before`."""
    commands = ["exec >$(location %s.h)" % name]
    commands += ["echo 'extern const char *const %s;'" % symbol for symbol in texts]
    commands += ["exec >$(location %s.c)" % name]
    for symbol, src in texts.items():
        files = " ".join(["$(location %s)" % file for file in before + [src]])
        commands += [
            "echo 'static const unsigned char text_%s[] = {'" % symbol,
            "cat %s | od -An -v -tu1 | sed -E 's/[0-9]+/&,/g'" % files,
            "echo '0};'",
            "echo 'const char *const %s = (const char *)text_%s;'" % (symbol, symbol),
        ]
    native.genrule(
        name = name + "_text",
        srcs = before + texts.values(),
        outs = [name + ".c", name + ".h"],
        cmd = "; ".join(commands),
        visibility = ["//visibility:private"],
    )
    cc_library(
        name = name,
        srcs = [name + ".c"],
        hdrs = [name + ".h"],
        visibility = visibility,
    )
