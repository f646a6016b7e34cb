"""weir_kernels: device code of one OpenCL C source for every backend.

docs/kernels.md says what the rule makes.
"""

load("@cuda//:defs.bzl", "CUDA_ARCHS", "CUDA_HOME", "HAVE_CUDA")
load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")

# Real architectures get cubins; the first and the newest get PTX too, which the driver compiles for
# architectures in between and later ones.
_CUBINS = ["75", "80", "86", "89", "90", "100", "120"]
_CUBINS_FEW = ["80", "90"]
_PTX = ["75", "120"]

# Labels of this repository, whichever one calls the rule.
_TOOL = str(Label("//kernels/compiler:weir_kernels"))
_CUDA_FEW = str(Label("//kernels/compiler:cuda_few"))
_API = str(Label("//api"))
_CORE = str(Label("//core"))
_COMPARE = str(Label("//kernels/compare"))
_COMPARE_MAIN = str(Label("//kernels/compare:main.c"))
_MODULES = str(Label("//:modules"))

# Of "90a" the number.
def _number(arch):
    return arch.rstrip("abcdefghijklmnopqrstuvwxyz")

def _known(archs):
    return [arch for arch in archs if HAVE_CUDA and _number(arch) in CUDA_ARCHS]

def _label(name):
    package = native.package_name()
    return "//" + package if package.split("/")[-1] == name else "//%s:%s" % (package, name)

# The command line of the kernel compiler. `usual` are the architectures of the bundle's cubins where `cubins` is None.
def _command(usual, name, symbol, srcs, options, cubins = None, ptx = None, cuda = None, cuda_copts = [], cuda_images = []):
    words = ["CUDA_HOME=%s" % (CUDA_HOME or "none"), "$(location %s)" % _TOOL]
    words += ["--symbol", symbol, "--label", _label(name), "--out", "$(@D)/" + name]
    if cuda_images:
        words += ["--cuda-image $(location %s)" % image for image in cuda_images]
    else:
        words += ["--ptx " + arch for arch in _known(_PTX if ptx == None else ptx)]
        words += ["--cubin " + arch for arch in _known(usual if cubins == None else cubins)]
    if cuda:
        words += ["--cuda $(location %s)" % cuda]
        words += ["'--nvcc-option=%s'" % option for option in cuda_copts]
    words += ["-I."] + options
    words += ["$(locations %s)" % source for source in srcs if not source.endswith(".h")]
    return " ".join(words)

# `more` are files that the command reads besides, `library` is of the cc_library, and `inputs` are the command's.
def _make(name, more, visibility, tags, library, **inputs):
    native.genrule(
        name = name + "_bundle",
        srcs = inputs["srcs"] + [source for source in more if source not in inputs["srcs"]],
        outs = [name + ".c", name + ".h"],
        cmd = select({
            _CUDA_FEW: _command(_CUBINS_FEW, name, **inputs),
            "//conditions:default": _command(_CUBINS, name, **inputs),
        }),
        tools = [_TOOL],
        message = "Compiling kernels",
        tags = tags,
        visibility = visibility,
    )
    cc_library(
        name = name,
        srcs = [name + ".c"],
        hdrs = [name + ".h"],
        deps = [_API],
        tags = tags,
        visibility = visibility,
        **library
    )

# The one file in CUDA C++; the others are for it to include.
def _cuda_source(name, cuda_srcs, cuda_images, archs):
    sources = [source for source in cuda_srcs if source.endswith(".cu")]
    if len(sources) != 1:
        fail("%s: cuda_srcs has %d .cu files; it takes one, which includes what else it needs" %
             (_label(name), len(sources)))
    if cuda_images:
        fail("%s: cuda_srcs and cuda_images both name what CUDA runs; leave one out" % _label(name))
    for arch in archs:
        if not _number(arch).isdigit():
            fail("%s: '%s' is no architecture; it is a number, and a letter or none: 90, 90a" %
                 (_label(name), arch))
    if HAVE_CUDA and archs and not _known(archs):
        fail("%s: the CUDA toolkit in %s makes code for none of %s; install a newer one" %
             (_label(name), CUDA_HOME, archs))
    return sources[0]

def weir_kernels(
        name,
        srcs,
        symbol = None,
        standard = "CL1.2",
        fast = False,
        exact = False,
        restrict = False,
        defines = [],
        includes = [],
        cubins = None,
        ptx = None,
        cuda_srcs = [],
        cuda_copts = [],
        cuda_images = [],
        visibility = None,
        tags = [],
        **kwargs):
    """A cc_library with one `const struct weir_bundle` that holds `srcs` compiled every way.

    #include "<package>/<name>.h" declares it.

    With cuda_srcs or cuda_images CUDA devices run these in place of the OpenCL C, and never the
    OpenCL C: without nvcc the bundle has no image for them. The OpenCL C alone, for comparisons, is
    the target <name>_opencl with the bundle <symbol>_opencl. docs/kernels.md has more.

    Args:
      name: the target and the bundle's name.
      srcs: .cl files, which are joined into one program, and the .h files they include.
      symbol: the C name of the bundle; <name>_kernels by custom and default.
      standard: the version of OpenCL C: CL1.2, CL2.0 or CL3.0.
      fast: faster and less exact arithmetic on every device, as -cl-fast-relaxed-math has it.
      exact: `a * b + c` rounds twice, so that devices give the same bits.
      restrict: the kernels' pointers to global memory are `restrict`.
      defines: macros, "NAME" or "NAME=VALUE".
      includes: folders, from the repository's root, in which #include looks too.
      cubins: the architectures of cubins, in place of the usual ones: ["90"]; of CUDA C++ also
        ["90a"].
      ptx: the architectures of PTX, likewise.
      cuda_srcs: one .cu file with the same kernels in CUDA C++, and the headers that it includes.
      cuda_copts: options of nvcc for it.
      cuda_images: cubins and PTX that are there already.
      visibility: as usual.
      tags: as usual.
      **kwargs: anything else that cc_library takes.
    """
    symbol = symbol or name + "_kernels"
    options = ["--std", standard] + (["--fast"] if fast else []) + (["--exact"] if exact else [])
    options += ["--restrict"] if restrict else []
    options += ["-I" + folder for folder in includes]
    options += ["'-D%s'" % define for define in defines]
    archs = (cubins or []) + (ptx or [])
    twin = cuda_srcs + cuda_images
    _make(
        name,
        twin,
        visibility,
        tags,
        kwargs,
        symbol = symbol,
        srcs = srcs,
        options = options,
        cubins = cubins,
        ptx = ptx,
        cuda = _cuda_source(name, cuda_srcs, cuda_images, archs) if cuda_srcs else None,
        cuda_copts = cuda_copts,
        cuda_images = cuda_images,
    )
    if twin:
        _make(
            name + "_opencl",
            [],
            visibility,
            tags + ["manual"],
            kwargs,
            symbol = symbol + "_opencl",
            srcs = srcs,
            options = options,
        )

# "//kernels/matmul:matmul_tensor" of ":matmul_tensor", "//kernels/matmul" and the like.
def _absolute(label):
    if label.startswith(":"):
        return "//" + native.package_name() + label
    return label if ":" in label else "%s:%s" % (label, label.split("/")[-1])

def weir_kernels_test(name, kernels, cases, symbol = None, data = [], env = {}, **kwargs):
    """Runs kernels in CUDA C++ and the OpenCL C beside them on one GPU, and compares the results.

    Without a CUDA device it says that this is skipped, and runs the OpenCL C twice on the device that
    there is, which has to write the same.

    Args:
      name: the target.
      kernels: a weir_kernels with cuda_srcs or cuda_images.
      cases: a JSON file, as in docs/kernels.md: launches, and the difference that is allowed.
      symbol: the one of the weir_kernels, if it has one.
      data: as usual.
      env: as usual.
      **kwargs: anything else that cc_test takes.
    """
    package, target = _absolute(kernels)[2:].split(":")
    symbol = symbol or target + "_kernels"
    cc_test(
        name = name,
        srcs = [_COMPARE_MAIN],
        args = ["$(location %s)" % cases],
        copts = [
            "-DWEIR_TWIN=" + symbol,
            "-DWEIR_TWIN_HEADER='\"%s/%s.h\"'" % (package, target),
            "-DWEIR_OPENCL=%s_opencl" % symbol,
            "-DWEIR_OPENCL_HEADER='\"%s/%s_opencl.h\"'" % (package, target),
        ],
        data = data + [cases, _MODULES],
        env = dict({"WEIR_MODULE_PATH": "lib/weir"}, **env),
        linkstatic = True,
        deps = [
            _CORE,
            _COMPARE,
            "//%s:%s" % (package, target),
            "//%s:%s_opencl" % (package, target),
        ],
        **kwargs
    )
