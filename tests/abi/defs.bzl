"""Other headers in place of //api's: newer ones, or those that were frozen."""

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
    return "weir/" + path.replace("/arr_coc/", "/")

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

def layout_table(name, headers, include, patterns = "weir/patterns"):
    """NAME.layout: what headers declare, with sizes, offsets and values.

    Headers that have come since are not among the frozen ones.

    Args:
      name: the target.
      headers: the headers.
      include: the folder that holds `weir/`.
      patterns: the folder of the patterns' headers, there or in the tree.
    """
    includes = ["weir/module/error.h", "weir/report.h"] + ["%s/%s.h" % (patterns, each) for each in PATTERNS]
    native.genrule(
        name = name,
        testonly = True,
        srcs = headers,
        outs = [name + ".layout"],
        cmd = """
            probe=$(@D)/%s
            for header in %s; do
                printf '#if __has_include(<%%s>)\\n#include <%%s>\\n#endif\\n' $$header $$header
            done >$$probe.unit.c
            $(CC) -std=c11 -E -I%s -I. $$probe.unit.c >$$probe.i
            python3 $(location layout.py) probe $$probe.i $$probe.unit.c >$$probe.c
            $(CC) -std=c11 -I%s -I. $$probe.c -o $$probe.program
            $$probe.program >$@
        """ % (name, " ".join(includes), include, include),
        exec_tools = ["layout.py"],
        message = "Writing down the layout of headers",
        toolchains = ["@bazel_tools//tools/cpp:current_cc_toolchain"],
    )

def modules(tree, headers, sources, copts = []):
    """TREE/weir_NAME.so of each module.

    Args:
      tree: the name of the headers.
      headers: the library of the headers.
      sources: name of the module -> its sources.
      copts: further options of the compiler.
    """
    for module, srcs in sources.items():
        native.cc_binary(
            name = "%s/weir_%s.so" % (tree, module),
            testonly = True,
            srcs = srcs,
            copts = copts,
            linkopts = ["-lpthread"],
            linkshared = True,
            deps = [headers],
        )

def _copied(tree, module):
    """The sources that `freeze.sh MODULE COMMIT` left."""
    return native.glob(["%s/%s/**/*.%s" % (tree, module, kind) for kind in ["c", "h"]])

def shipped_modules(tree, headers):
    """TREE/weir_NAME.so of the modules that are shipped, of a copy of their sources or the present ones.

    Args:
      tree: the name of the headers.
      headers: the libraries of the headers, the kit's among them.
    """
    for backend in ["cuda", "opencl"]:
        native.cc_binary(
            name = "%s/weir_%s.so" % (tree, backend),
            testonly = True,
            srcs = _copied(tree, backend) or [
                "//backends/clc:code",
                "//backends/kit:code",
                "//backends/%s:code" % backend,
            ],
            linkopts = [
                "-ldl",
                "-lpthread",
            ],
            linkshared = True,
            deps = headers + [":%s_parts" % backend],
        )

    native.cc_binary(
        name = tree + "/weir_trace.so",
        testonly = True,
        srcs = _copied(tree, "trace") or ["//plugins/trace:code"],
        additional_linker_inputs = ["//plugins/trace:exports.lds"],
        linkopts = [
            "-lpthread",
            "-Wl,--version-script,$(location //plugins/trace:exports.lds)",
            "-Wl,--defsym=stdin=trace_no_stdin",
        ],
        linkshared = True,
        deps = headers + [":trace_parts"],
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
    # A backend that is older than the barrier has none for source at run time.
    older = chain[-1] in ["frozen/opencl", "frozen/cuda"]
    weir_c_test(
        name = name,
        size = "medium",
        srcs = [],
        args = ["--gtest_filter=-Cooperative.SourceAtRunTime"] if older else [],
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
    native.cc_library(
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
