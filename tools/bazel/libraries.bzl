"""Libraries of installed Debian packages, as repositories.

Static archives, so that what is built here runs where the packages are not
installed. A missing package is an error only for targets that need it, and the
error names the package.
"""

# The folders in which Debian puts a header or an archive, the most specific first.
_INCLUDE_DIRS = [
    "/usr/include",
    "/usr/include/x86_64-linux-gnu",
    "/usr/include/aarch64-linux-gnu",
    "/usr/include/libpng16",
]

_LIBRARY_DIRS = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib",
]

# The name that a repository was declared with: as a part of a module it has the module's before it.
def _declared(repository_ctx):
    return repository_ctx.name.split("~")[-1].split("+")[-1]

def _find(repository_ctx, dirs, name):
    for directory in dirs:
        path = repository_ctx.path(directory + "/" + name)
        if path.exists:
            return path
    fail("@%s needs %s of the Debian package %s, and it is not in %s. Run tools/setup.sh." % (
        _declared(repository_ctx),
        name,
        repository_ctx.attr.package,
        ", ".join(dirs),
    ))

def _debian_library_impl(repository_ctx):
    for header in repository_ctx.attr.headers:
        repository_ctx.symlink(_find(repository_ctx, _INCLUDE_DIRS, header), "include/" + header)
    archives = [repository_ctx.attr.archive] if repository_ctx.attr.archive else []
    for archive in archives:
        repository_ctx.symlink(_find(repository_ctx, _LIBRARY_DIRS, archive), archive)
    repository_ctx.file("BUILD", """
load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "{name}",
    srcs = {archives},
    hdrs = {headers},
    includes = ["include"],
    linkopts = {linkopts},
    linkstatic = True,
    visibility = ["//visibility:public"],
    deps = {deps},
)
""".format(
        name = repository_ctx.attr.target or _declared(repository_ctx),
        archives = repr(archives),
        headers = repr(["include/" + header for header in repository_ctx.attr.headers]),
        # No module that links the archive exports its symbols.
        linkopts = repr(repository_ctx.attr.linkopts + ["-Wl,--exclude-libs," + name for name in archives]),
        deps = repr(repository_ctx.attr.needs),
    ))

_debian_library = repository_rule(
    implementation = _debian_library_impl,
    attrs = {
        "archive": attr.string(doc = "empty: there are headers only"),
        "headers": attr.string_list(mandatory = True),
        "linkopts": attr.string_list(),
        "needs": attr.string_list(doc = "labels, as strings: they are written into the BUILD file"),
        "package": attr.string(mandatory = True),
        "target": attr.string(doc = "the cc_library's name, when it is not the repository's"),
    },
    local = True,
)

def _googletest_impl(repository_ctx):
    # Built from source, so that GoogleTest has the same sanitizer as the tested code.
    root = repository_ctx.path("/usr/src/googletest/googletest")
    if not root.exists:
        fail("@googletest needs /usr/src/googletest of the Debian package googletest. Run tools/setup.sh --tests.")
    repository_ctx.symlink("/usr/src/googletest/googletest/include", "include")
    repository_ctx.symlink("/usr/src/googletest/googletest/src", "src")
    repository_ctx.file("BUILD", """
load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "gtest",
    testonly = True,
    srcs = ["src/gtest-all.cc"],
    hdrs = glob(["include/**/*.h"]),
    includes = [
        ".",
        "include",
    ],
    linkopts = ["-pthread"],
    linkstatic = True,
    textual_hdrs = glob(["src/*.cc", "src/*.h"], exclude = ["src/gtest-all.cc", "src/gtest_main.cc"]),
    visibility = ["//visibility:public"],
)
""")

_googletest = repository_rule(implementation = _googletest_impl, local = True)

def weir_libraries():
    """Declares @inih, @zlib, @libpng, @libjpeg, @jansson, @sodium, @dlpack and @googletest."""
    _debian_library(
        name = "inih",
        package = "libinih-dev",
        headers = ["ini.h"],
        archive = "libinih.a",
    )
    _debian_library(
        name = "zlib",
        package = "zlib1g-dev",
        headers = ["zlib.h", "zconf.h"],
        archive = "libz.a",
    )
    _debian_library(
        name = "libpng",
        target = "png",
        package = "libpng-dev",
        headers = ["png.h", "pngconf.h", "pnglibconf.h"],
        archive = "libpng16.a",
        linkopts = ["-lm"],
        needs = ["@zlib//:zlib"],
    )
    _debian_library(
        name = "libjpeg",
        target = "jpeg",
        package = "libjpeg-dev",
        headers = ["jpeglib.h", "jconfig.h", "jmorecfg.h", "jerror.h"],
        archive = "libjpeg.a",
    )
    _debian_library(
        name = "jansson",
        package = "libjansson-dev",
        headers = ["jansson.h", "jansson_config.h"],
        archive = "libjansson.a",
    )
    _debian_library(
        name = "sodium",
        package = "libsodium-dev",
        headers = ["sodium/%s.h" % name for name in [
            "core",
            "crypto_auth_hmacsha512",
            "crypto_auth_hmacsha512256",
            "crypto_generichash",
            "crypto_generichash_blake2b",
            "crypto_hash_sha512",
            "export",
            "randombytes",
            "utils",
        ]],
        archive = "libsodium.a",
    )
    _debian_library(
        name = "dlpack",
        package = "libdlpack-dev",
        headers = ["dlpack/dlpack.h"],
    )
    _googletest(name = "googletest")
