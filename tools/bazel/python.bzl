"""Finds the headers of Debian's Python, of the package python3-dev.

@python//:defs.bzl then holds

    HAVE_PYTHON   True where they were found
    PYTHON        the interpreter that they belong to

and @python//:headers their folder, empty without them. Without them everything that is not in
python/ builds as usual, and of its tests the one that says so is left.
"""

_PYTHON = "/usr/bin/python3"

def _python_headers_impl(repository_ctx):
    folder = ""
    if repository_ctx.path(_PYTHON).exists:
        result = repository_ctx.execute([_PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('include'))"])
        if not result.return_code:
            folder = result.stdout.strip()
    found = folder and repository_ctx.path(folder + "/Python.h").exists
    if found:
        repository_ctx.symlink(folder, "include")
    repository_ctx.file("defs.bzl", "HAVE_PYTHON = %r\nPYTHON = %r\n" % (bool(found), _PYTHON))
    repository_ctx.file("BUILD", """
load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"], allow_empty = True),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
""")

python_headers = repository_rule(implementation = _python_headers_impl, local = True)
