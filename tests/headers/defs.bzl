"""Public headers compile alone, as C11 and as C++17."""

load("@bazel_skylib//rules:build_test.bzl", "build_test")
load("@rules_cc//cc:defs.bzl", "cc_library")

_WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]

def _header_units_impl(ctx):
    units = []
    for dep in ctx.attr.deps:
        # strip_include_prefix lists each header a second time, as a link.
        headers = [
            header
            for header in dep[CcInfo].compilation_context.direct_public_headers
            if "/_virtual_includes/" not in header.short_path
        ]
        if not headers:
            fail("%s has no public headers" % dep.label)
        for header in headers:
            # From the root, as a user's own header would be found: in a folder
            # given with -isystem the compiler is silent.
            unit = ctx.actions.declare_file("%s/%s.%s" % (
                ctx.label.name,
                header.short_path.replace("/", "_"),
                ctx.attr.extension,
            ))
            include = '#include "%s"\n' % header.short_path
            ctx.actions.write(unit, include + include + "typedef int weir_unit_is_not_empty;\n")
            units.append(unit)
    return [DefaultInfo(files = depset(units))]

_header_units = rule(
    implementation = _header_units_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "extension": attr.string(values = ["c", "cc"]),
    },
)

def weir_header_test(name, deps):
    """Compiles each public header of `deps` by itself, twice over, in both languages.

    The headers come from the libraries' own `hdrs`, so none can be forgotten.
    POSIX is not asked for: a user's strict C11 must do.

    Args:
      name: the target, by custom `<what>_headers_test`.
      deps: cc_library targets, whose own headers are tested.
    """
    languages = {
        "c": ["-std=c11", "-U_POSIX_C_SOURCE", "-Wmissing-prototypes", "-Wstrict-prototypes"],
        "cc": ["-std=c++17"],
    }
    for extension, copts in languages.items():
        units = "%s_%s_units" % (name, extension)
        _header_units(
            name = units,
            testonly = True,
            extension = extension,
            deps = deps,
        )
        cc_library(
            name = "%s_%s" % (name, extension),
            testonly = True,
            srcs = [units],
            copts = _WARNINGS + copts,
            deps = deps,
        )
    build_test(
        name = name,
        targets = ["%s_%s" % (name, extension) for extension in languages],
    )
