"""Newer headers in place of //api's."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load("//tests/support:defs.bzl", "weir_c_test")

# The public headers of patterns.
PATTERNS = [
    "buckets",
    "chunks",
    "loader",
    "pipeline",
    "queue_pool",
]

# The include paths of //api, which no target that has other headers may see.
_API = "bin/api/_virtual_includes/"

def _installed(path):
    """Where programs outside the tree find a header."""
    if path.startswith("api/"):
        return path[len("api/"):]
    return "weir/" + path

def _newer_headers_impl(ctx):
    pairs = [
        (header, ctx.actions.declare_file("%s/%s" % (ctx.label.name, _installed(header.short_path))))
        for header in ctx.files.srcs
    ]
    ctx.actions.run_shell(
        inputs = ctx.files.srcs + [ctx.file._tool],
        outputs = [newer for _, newer in pairs],
        command = 'exec python3 "$@"',
        arguments = [ctx.file._tool.path] + [file.path for pair in pairs for file in pair],
        mnemonic = "NewerHeaders",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([newer for _, newer in pairs]))]

# Headers with something appended wherever they may grow.
newer_headers = rule(
    implementation = _newer_headers_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".h"]),
        "_tool": attr.label(default = "//tests/abi:newer.py", allow_single_file = True),
    },
)

def _others(paths):
    return depset([path for path in paths.to_list() if _API not in path])

def _without_api_impl(ctx):
    infos = [dep[CcInfo] for dep in ctx.attr.deps]
    merged = cc_common.merge_cc_infos(cc_infos = infos)
    context = merged.compilation_context
    return [CcInfo(
        compilation_context = cc_common.create_compilation_context(
            headers = context.headers,
            includes = _others(context.includes),
            quote_includes = context.quote_includes,
            system_includes = _others(context.system_includes),
        ),
        linking_context = merged.linking_context,
    )]

# Libraries that were compiled with //api, for one that is compiled with other headers.
without_api = rule(
    implementation = _without_api_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)

def layout_table(name, headers):
    """present.layout: what the headers of the tree declare, with sizes, offsets and values.

    Args:
      name: the target.
      headers: the headers.
    """
    includes = ["weir/module/error.h", "weir/inspect.h", "weir/report.h"] + ["patterns/%s.h" % each for each in PATTERNS]
    native.genrule(
        name = name,
        testonly = True,
        srcs = headers,
        outs = ["present.layout"],
        cmd = """
            probe=$(@D)/probe
            printf '#include <%%s>\\n' %s >$$probe.unit.c
            $(CC) -std=c11 -E -Iapi -I. $$probe.unit.c >$$probe.i
            python3 $(location layout.py) $$probe.i $$probe.unit.c >$$probe.c
            $(CC) -std=c11 -Iapi -I. $$probe.c -o $$probe.program
            $$probe.program >$@
        """ % " ".join(includes),
        tools = ["layout.py"],
        message = "Writing down the layout of headers",
        toolchains = ["@bazel_tools//tools/cpp:current_cc_toolchain"],
    )

def present_modules(modules):
    """present/weir_NAME.so: the modules as they are built.

    Args:
      modules: name of the module -> its target.
    """
    for module, target in modules.items():
        native.genrule(
            name = "present_" + module,
            testonly = True,
            srcs = [target],
            outs = ["present/weir_%s.so" % module],
            cmd = "cp $< $@",
        )

def newer_modules(headers):
    """newer/weir_NAME.so of the same modules.

    Args:
      headers: the library of the newer headers.
    """
    for module, srcs in {
        "count": ["//tests/plugins/count:count.c"],
        "tails": ["tails.c"],
    }.items():
        cc_binary(
            name = "newer/weir_%s.so" % module,
            testonly = True,
            srcs = srcs,
            copts = ["-DNEWER"],
            linkopts = ["-lpthread"],
            linkshared = True,
            deps = [headers],
        )

    for backend, srcs in {
        "cuda": ["//backends/clc:code"],
        "null": [],
        "opencl": ["//backends/clc:code"],
    }.items():
        cc_binary(
            name = "newer/weir_%s.so" % backend,
            testonly = True,
            srcs = srcs + [
                "//backends/kit:code",
                "//backends/%s:code" % backend,
            ],
            linkopts = [
                "-ldl",
                "-lpthread",
            ],
            linkshared = True,
            deps = [headers, ":%s_parts" % backend],
        )

    cc_binary(
        name = "newer/weir_trace.so",
        testonly = True,
        srcs = ["//plugins/trace:code"],
        additional_linker_inputs = ["//plugins/trace:exports.lds"],
        linkopts = [
            "-lpthread",
            "-Wl,--version-script,$(location //plugins/trace:exports.lds)",
            "-Wl,--defsym=stdin=trace_no_stdin",
        ],
        linkshared = True,
        deps = [headers, ":trace_parts"],
    )

def conformance_run(name, program, library, chain):
    """The conformance suite over a chain.

    Args:
      name: the test.
      program: the headers of the suite.
      library: those of the library.
      chain: its modules with their headers ("newer/count"), the backend last.
    """
    names = [module.split("/")[1] for module in chain]
    trees = {module.split("/")[0]: None for module in chain}
    env = {
        "WEIR_BACKEND": names[-1],
        "WEIR_PLUGINS": ",".join(names[:-1]),
        "WEIR_MODULE_PATH": ":".join(["tests/abi/" + tree for tree in trees]),
        "WEIR_TRACE_FILE": "/dev/null",
        "POCL_DEVICES": "pthread",
    }
    data = [":%s/weir_%s.so" % tuple(module.split("/")) for module in {each: None for each in chain}]
    if names[-1] == "cuda":
        data.append("//tests/support/libcuda:libcuda.so.1")
        env["LD_LIBRARY_PATH"] = "tests/support/libcuda"
        env["WEIR_TEST_CUDA_DEVICES"] = "2"
    weir_c_test(
        name = name,
        size = "medium",
        srcs = [],
        # PoCL takes seconds to compile each of these, in which nothing grows.
        args = ["--gtest_filter=-Program.*Source*:Cooperative.*:Occupancy.*:Arguments.Bools:ArgumentsRefused.Vectors"] if names[-1] == "opencl" else [],
        data = data,
        env = env,
        deps = [
            ":%s_core" % library,
            ":%s_suite" % program,
        ],
    )

def suite(name, headers, libraries, sources):
    """The conformance suite, compiled with other headers.

    Args:
      name: the library.
      headers: the library of the headers.
      libraries: what else it is linked with, none of which may show //api.
      sources: the tests that need nothing which the headers lack, and their kernels.
    """
    cc_library(
        name = name,
        testonly = True,
        srcs = [
            "//kernels/conformance:conformance.c",
            "//kernels/conformance:conformance.h",
            "//kernels/conformance:print.c",
            "//kernels/conformance:print.h",
        ] + sources,
        linkopts = ["-ldl"],
        deps = [headers] + libraries,
        alwayslink = True,
    )
