"""The rule of the Python package's tests."""

load("@python//:defs.bzl", "HAVE_PYTHON", "PYTHON")
load("@rules_shell//shell:sh_test.bzl", "sh_test")

def weir_pytest(name, srcs, data = [], env = {}, size = "small", args = [], **kwargs):
    """A test by pytest on the package as it is built. Without Python's headers there is none.

    Args:
      name: the target, by custom `<what>_test`.
      srcs: the files of tests.
      data: further files.
      env: further variables of the environment.
      size: Bazel's.
      args: further arguments of pytest.
      **kwargs: anything else that sh_test takes.
    """
    if not HAVE_PYTHON:
        return
    sh_test(
        name = name,
        srcs = ["//python/tests:run.sh"],
        args = [PYTHON] + ["$(location %s)" % file for file in srcs] + args,
        data = srcs + data + [
            "//python:package",
            "//python/tests:conftest.py",
            "//tests/support:shell.sh",
        ],
        env = env,
        size = size,
        **kwargs
    )
