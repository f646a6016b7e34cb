"""weir_kernels: device code of one OpenCL C source for every backend.

docs/kernels.md says what the rule makes.
"""

load("@cuda//:defs.bzl", "CUDA_ARCHS", "CUDA_HOME", "HAVE_CUDA")

# Real architectures get cubins; the first and the newest get PTX too, which the driver compiles for
# architectures in between and later ones.
_CUBINS = ["75", "80", "86", "89", "90", "100", "120"]
_CUBINS_FEW = ["80", "90"]
_PTX = ["75", "120"]

_TOOL = "//kernels/compiler:weir_kernels"

def _known(archs):
    return [arch for arch in archs if HAVE_CUDA and arch in CUDA_ARCHS]

def _command(symbol, label, header, name, srcs, options, cubins, ptx):
    words = ["CUDA_HOME=%s" % (CUDA_HOME or "none"), "$(location %s)" % _TOOL]
    words += ["--symbol", symbol, "--label", label, "--header", header, "--out", "$(@D)/" + name]
    words += ["--ptx " + arch for arch in _known(ptx)]
    words += ["--cubin " + arch for arch in _known(cubins)]
    words += ["-I."] + options
    words += ["$(locations %s)" % source for source in srcs if not source.endswith(".h")]
    return " ".join(words)

def weir_kernels(
        name,
        srcs,
        symbol = None,
        standard = "CL1.2",
        fast = False,
        defines = [],
        includes = [],
        cubins = None,
        ptx = None,
        visibility = None,
        **kwargs):
    """A cc_library with one `const struct weir_bundle` that holds `srcs` compiled every way.

    #include "<package>/<name>.h" declares it.

    Args:
      name: the target and the bundle's name.
      srcs: .cl files, which are joined into one program, and the .h files they include.
      symbol: the C name of the bundle; <name>_kernels by custom and default.
      standard: the version of OpenCL C: CL1.2, CL2.0 or CL3.0.
      fast: faster and less exact arithmetic on every device, as -cl-fast-relaxed-math has it.
      defines: macros, "NAME" or "NAME=VALUE".
      includes: folders, from the repository's root, in which #include looks too.
      cubins: the architectures of cubins, in place of the usual ones: ["90"].
      ptx: the architectures of PTX, likewise.
      visibility: as usual.
      **kwargs: anything else that cc_library takes.
    """
    symbol = symbol or name + "_kernels"
    label = "//%s:%s" % (native.package_name(), name)
    if native.package_name().split("/")[-1] == name:
        label = "//" + native.package_name()
    header = "%s/%s.h" % (native.package_name(), name)
    options = ["--std", standard] + (["--fast"] if fast else [])
    options += ["-I" + folder for folder in includes]
    options += ["'-D%s'" % define for define in defines]

    few, all = [
        _command(symbol, label, header, name, srcs, options, cubins or usual, ptx or _PTX)
        for usual in [_CUBINS_FEW, _CUBINS]
    ]
    native.genrule(
        name = name + "_bundle",
        srcs = srcs,
        outs = [name + ".c", name + ".h"],
        cmd = select({
            "//kernels/compiler:cuda_few": few,
            "//conditions:default": all,
        }),
        exec_tools = [_TOOL],
        message = "Compiling kernels",
        visibility = visibility,
    )

    native.cc_library(
        name = name,
        srcs = [name + ".c"],
        hdrs = [name + ".h"],
        deps = ["//api"],
        visibility = visibility,
        **kwargs
    )
