"""weir_kernels: device code of one OpenCL C source for every backend.

docs/kernels.md says what a kernel may use and what the rule makes.
"""

load("@cuda//:defs.bzl", "CUDA_ARCHS", "HAVE_CUDA", "NVCC")

# Real architectures get cubins; the first and the newest get PTX too, which the driver compiles for
# architectures in between and later ones.
_CUBINS = ["75", "80", "86", "89", "90", "100", "120"]
_CUBINS_FEW = ["80", "90"]
_PTX = ["75", "120"]

_TOOL = "//kernels/build:weir_kernels.py"
_TOOL_PARTS = [
    "//kernels/build:dialect.py",
    "//kernels/build:signatures.py",
]
_DIALECT = [
    "//kernels/dialect:check.h",
    "//kernels/dialect:cuda.h",
    "//kernels/dialect:opencl.h",
]

# No product of a*b + c is fused, on either side, so that results agree.
_NVCC_FLAGS = "-x cu -std=c++17 --fmad=false -Werror all-warnings"

def _cuda_image(name, source, kind, arch):
    out = "%s.sm_%s.%s" % (name, arch, kind)
    what = {"cubin": "-cubin -arch=sm_", "ptx": "-ptx -arch=compute_"}[kind] + arch
    native.genrule(
        name = out.replace(".", "_"),
        srcs = [source],
        outs = [out],
        # nvcc names its temporary files by its process number, which in a sandbox is always the same:
        # two at once would share them.
        cmd = "export TMPDIR=$$(mktemp -d) && trap 'rm -rf $$TMPDIR' EXIT && " +
              "%s %s %s $< -o $@" % (NVCC, _NVCC_FLAGS, what),
        message = "Compiling CUDA kernels for sm_%s (%s)" % (arch, kind),
        visibility = ["//visibility:private"],
    )
    return out

def _cuda_images(name, source):
    """[(kind, arch, file)] for all architectures, and for the few of a quick build."""
    everything = []
    few = []
    for kind, archs in [("cubin", _CUBINS), ("ptx", _PTX)]:
        for arch in archs:
            if not HAVE_CUDA or arch not in CUDA_ARCHS:
                continue
            image = (kind, arch, _cuda_image(name, source, kind, arch))
            everything.append(image)
            if kind == "ptx" or arch in _CUBINS_FEW:
                few.append(image)
    return everything, few

def _embed_command(symbol, label, header, name, images):
    listed = ["opencl:0:$(location %s.opencl.cl)" % name]
    listed += ["%s:%s:$(location %s)" % image for image in images]
    return ("python3 $(location %s) embed --name %s --label %s --header %s --out $(@D)/%s " +
            "--ir $(location %s.ll) %s") % (_TOOL, symbol, label, header, name, name, " ".join(listed))

def weir_kernels(name, srcs, symbol = None, visibility = None, **kwargs):
    """A cc_library with one `const struct weir_bundle` that holds `srcs` compiled every way.

    #include "<package>/<name>.h" declares it.

    Args:
      name: the target and the bundle's name.
      srcs: .cl files, which are joined into one program, and the .cl.h files they include.
      symbol: the C name of the bundle; <name>_kernels by custom and default.
      visibility: as usual.
      **kwargs: anything else that cc_library takes.
    """
    symbol = symbol or name + "_kernels"
    label = "//%s:%s" % (native.package_name(), name)
    if native.package_name().split("/")[-1] == name:
        label = "//" + native.package_name()
    header = "%s/%s.h" % (native.package_name(), name)

    native.genrule(
        name = name + "_check",
        srcs = srcs + _DIALECT,
        outs = [name + suffix for suffix in [".opencl.cl", ".cu", ".ll"]],
        cmd = ("python3 $(location %s) check --dialect kernels/dialect --out $(@D)/%s " % (_TOOL, name) +
               " ".join(["$(locations %s)" % source for source in srcs])),
        exec_tools = [_TOOL] + _TOOL_PARTS,
        message = "Checking kernels",
        visibility = ["//visibility:private"],
    )

    everything, few = _cuda_images(name, name + ".cu")
    sources = [name + ".opencl.cl", name + ".ll"]
    native.genrule(
        name = name + "_embed",
        srcs = sources + select({
            "//kernels/build:cuda_few": [image[2] for image in few],
            "//conditions:default": [image[2] for image in everything],
        }),
        outs = [name + ".c", name + ".h"],
        cmd = select({
            "//kernels/build:cuda_few": _embed_command(symbol, label, header, name, few),
            "//conditions:default": _embed_command(symbol, label, header, name, everything),
        }),
        exec_tools = [_TOOL] + _TOOL_PARTS,
        message = "Embedding kernels",
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

def weir_text(name, src, symbol, visibility = None):
    """A cc_library with `extern const char *const <symbol>`, the text of `src`."""
    header = "%s/%s.h" % (native.package_name(), name)
    native.genrule(
        name = name + "_text",
        srcs = [src],
        outs = [name + ".c", name + ".h"],
        cmd = "python3 $(location %s) text --name %s --header %s --out $(@D)/%s $(location %s)" % (
            _TOOL,
            symbol,
            header,
            name,
            src,
        ),
        exec_tools = [_TOOL] + _TOOL_PARTS,
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = [name + ".c"],
        hdrs = [name + ".h"],
        visibility = visibility,
    )
