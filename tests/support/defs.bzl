"""Test rules: C tests on GoogleTest, and shell tests."""

load("@rules_cc//cc:defs.bzl", "cc_test")
load("@rules_shell//shell:sh_test.bzl", "sh_test")

# Read by the sanitizer configurations of .bazelrc, from the test's folder.
_SUPPRESSIONS = ["//tests/support:lsan.supp"]

def weir_c_test(name, srcs, deps = [], data = [], copts = [], size = "small", **kwargs):
    """A test program in C, with main() and the assertions of tests/support/test.h.

    Args:
      name: the target, by custom `<what>_test`.
      srcs: C files with WEIR_TEST bodies, and private headers.
      deps: what is under test.
      data: files that weir_test_runfile() finds, and modules to load.
      copts: further options of the C compiler.
      size: Bazel's; small means at most one minute.
      **kwargs: anything else that cc_test takes.
    """
    # Of a test on both of PoCL's devices a sanitizer sees the same code twice.
    tags = kwargs.pop("tags", []) + (["no-sanitizer"] if "_basic" in name else [])
    cc_test(
        name = name,
        srcs = srcs,
        copts = copts,
        data = data + _SUPPRESSIONS,
        linkstatic = True,
        tags = tags,
        size = size,
        deps = deps + ["//tests/support"],
        **kwargs
    )

def weir_backend_test(name, backend, data = [], env = {}, **kwargs):
    """A C test on the chain of one backend, cuda being that of the tests' libcuda.

    Args:
      name: as in weir_c_test.
      backend: what WEIR_BACKEND says. All modules are at hand.
      data: as in weir_c_test.
      env: further variables of the environment.
      **kwargs: anything else that weir_c_test takes.
    """
    more = {}
    if backend == "cuda":
        data = data + ["//tests/support/libcuda:libcuda.so.1"]
        more = {"LD_LIBRARY_PATH": "tests/support/libcuda"}
    weir_c_test(
        name = name,
        data = data + ["//:modules"],
        env = dict(env, WEIR_BACKEND = backend, WEIR_MODULE_PATH = "lib/weir", **more),
        **kwargs
    )

def weir_sh_test(name, srcs, data = [], size = "small", **kwargs):
    """A shell test. It may source tests/support/shell.sh for its environment and assertions.

    Args:
      name: the target, by custom `<what>_test`.
      srcs: the script.
      data: programs and files that it uses.
      size: as in weir_c_test.
      **kwargs: anything else that sh_test takes.
    """
    sh_test(
        name = name,
        srcs = srcs,
        data = data + _SUPPRESSIONS + ["//tests/support:shell.sh"],
        size = size,
        **kwargs
    )
