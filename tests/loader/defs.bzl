"""The fake modules: tests/loader/fake.c, compiled once for each."""

load("@rules_cc//cc:defs.bzl", "cc_binary")

def fake_module(name, defines = []):
    """One fake, weir_NAME.so.

    Args:
      name: the module's name.
      defines: what is wrong with it; see fake.c.
    """
    cc_binary(
        name = "weir_%s.so" % name,
        testonly = True,
        srcs = ["fake.c"],
        copts = ["-DFAKE_NAME='\"%s\"'" % name] + ["-D" + define for define in defines],
        linkshared = True,
        deps = ["//api:module"],
    )
    return ":weir_%s.so" % name
