"""The rule that writes the package's wheel."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _wheel_impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    pairs = []
    for target, name in ctx.attr.files.items():
        for file in target.files.to_list():
            pairs.append("%s=%s" % (name + (file.basename if name.endswith("/") else ""), file.path))
    toolchain = find_cpp_toolchain(ctx)
    ctx.actions.run_shell(
        outputs = [folder],
        inputs = ctx.files.files + ctx.files._script,
        tools = toolchain.all_files,
        command = 'python3 "$@"',
        arguments = [ctx.file._script.path, folder.path, ctx.attr.version, toolchain.strip_executable] + pairs,
        use_default_shell_env = True,
        progress_message = "Writing the wheel",
    )
    return [DefaultInfo(files = depset([folder]), runfiles = ctx.runfiles([folder]))]

# A folder with one file, whose name ends in the tag that its libraries ask for.
weir_wheel = rule(
    implementation = _wheel_impl,
    attrs = {
        "files": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "Files -> their place in the wheel; of a folder, \"weir/\", the names are kept.",
        ),
        "version": attr.string(mandatory = True),
        "_script": attr.label(allow_single_file = True, default = "wheel.py"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
