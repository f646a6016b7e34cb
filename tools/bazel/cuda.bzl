"""Finds a CUDA toolkit: $CUDA_HOME, else /usr/local/cuda. CUDA_HOME=none wants none.

@cuda//:defs.bzl then holds

    HAVE_CUDA   True where a toolkit was found
    CUDA_HOME   its folder, or ""
    NVCC        the compiler's path, or ""
    CUDA_ARCHS  what nvcc --list-gpu-arch names, as numbers: ["75", "80", ...]

and @cuda//:headers its include folder, empty without a toolkit. Without one
everything that does not need nvcc builds as usual.
"""

def _home(repository_ctx):
    asked = repository_ctx.os.environ.get("CUDA_HOME", "")
    if asked == "none":
        return ""
    if asked:
        if not repository_ctx.path(asked + "/bin/nvcc").exists:
            fail(("CUDA_HOME is %s, but there is no bin/nvcc in it. Set it to a CUDA toolkit, " +
                  "or to none to build without CUDA.") % asked)
        return asked
    if repository_ctx.path("/usr/local/cuda/bin/nvcc").exists:
        return "/usr/local/cuda"
    return ""

def _archs(repository_ctx, nvcc):
    result = repository_ctx.execute([nvcc, "--list-gpu-arch"])
    if result.return_code:
        fail("%s --list-gpu-arch failed: %s" % (nvcc, result.stderr))
    return [line[len("compute_"):] for line in result.stdout.split("\n") if line.startswith("compute_")]

def _cuda_toolkit_impl(repository_ctx):
    home = _home(repository_ctx)
    nvcc = home + "/bin/nvcc" if home else ""
    if home and repository_ctx.path(home + "/include/cuda.h").exists:
        repository_ctx.symlink(home + "/include", "include")
    repository_ctx.file("defs.bzl", "\n".join([
        "HAVE_CUDA = " + repr(bool(home)),
        "CUDA_HOME = " + repr(home),
        "NVCC = " + repr(nvcc),
        "CUDA_ARCHS = " + repr(_archs(repository_ctx, nvcc) if home else []),
        "",
    ]))
    repository_ctx.file("BUILD", """
load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "headers",
    hdrs = glob(["include/*.h"], allow_empty = True),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
""")

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
