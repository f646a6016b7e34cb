"""The fake modules: tests/loader/fake.c, compiled once for each."""

load("@rules_cc//cc:defs.bzl", "cc_binary")

def fake_module(file, name = None, defines = []):
    """One fake, weir_FILE.so.

    Args:
      file: the module's name as its file says it.
      name: the name that it says itself, where that differs.
      defines: what is wrong with it; see fake.c.
    """
    cc_binary(
        name = "weir_%s.so" % file,
        testonly = True,
        srcs = ["fake.c"],
        copts = ["-DFAKE_NAME='\"%s\"'" % (name or file)] + ["-D" + define for define in defines],
        linkshared = True,
        deps = ["//api:module"],
    )
    return ":weir_%s.so" % file
