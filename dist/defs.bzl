"""Rules of the delivered archives."""

def _archive_impl(ctx):
    lines = []
    inputs = []
    for target, place in ctx.attr.files.items():
        for file in target.files.to_list():
            path = _place(target.label.package, file, place)
            if path in ctx.attr.exclude:
                continue
            lines.append("file %s %s" % (file.path, path))
            inputs.append(file)
    for target, place in ctx.attr.headers.items():
        for file in target[CcInfo].compilation_context.direct_public_headers:
            lines.append("file %s %s" % (file.path, _place(target.label.package, file, place)))
            inputs.append(file)
    for place, target in ctx.attr.links.items():
        lines.append("link %s %s" % (target, place))

    manifest = ctx.actions.declare_file(ctx.label.name + ".manifest")
    ctx.actions.write(manifest, "\n".join(sorted(lines)) + "\n")
    ctx.actions.run_shell(
        inputs = inputs + [manifest, ctx.file._tool],
        outputs = [ctx.outputs.out],
        command = 'exec bash "$@"',
        arguments = [ctx.file._tool.path, ctx.outputs.out.path, ctx.attr.folder, manifest.path],
        mnemonic = "Archive",
        progress_message = "Packing " + ctx.outputs.out.basename,
        use_default_shell_env = True,
    )
    return [DefaultInfo(
        files = depset([ctx.outputs.out]),
        runfiles = ctx.runfiles(files = [ctx.outputs.out]),
    )]

def _place(package, file, place):
    if place.endswith("/*"):
        return place[:-1] + file.basename
    if place.endswith("/"):
        return place + file.short_path[len(package) + 1:]
    return place

# A .tar.gz that depends only on its files' contents; see archive.sh.
archive = rule(
    implementation = _archive_impl,
    attrs = {
        "exclude": attr.string_list(doc = "places that are left out"),
        "files": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "label -> its place; 'dir/' keeps the path below the package, 'dir/*' does not",
        ),
        "folder": attr.string(doc = "what the archive unpacks to; without it, the working directory"),
        "headers": attr.label_keyed_string_dict(
            doc = "libraries, whose public headers go to places as in `files`",
            providers = [CcInfo],
        ),
        "links": attr.string_dict(doc = "place -> target of a symbolic link"),
        "out": attr.output(mandatory = True),
        "_tool": attr.label(allow_single_file = True, default = "//dist:archive.sh"),
    },
)

# What `deps` link: the archives, and the options of `system` for those of its repositories.
def _linked_by(deps, system = {}):
    archives = []
    flags = []
    for dep in deps:
        for linker_input in dep[CcInfo].linking_context.linker_inputs.to_list():
            for library in linker_input.libraries:
                archive = library.pic_static_library or library.static_library
                repository = archive.owner.workspace_name.replace("+", "~").split("~")[-1] if archive else ""
                if repository in system:
                    flags.append(system[repository])
                elif archive and archive not in archives:
                    archives.append(archive)
    return archives, flags

def _static_library_impl(ctx):
    archives, _ = _linked_by(ctx.attr.deps)
    ctx.actions.run_shell(
        inputs = archives,
        outputs = [ctx.outputs.out],
        command = """
set -eu
out="$1" exported="$2" renamed="$3" visibility="$4"
shift 4
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
printf '%s' "$renamed" >"$work/renamed"
ld -r -o "$work/named.o" --whole-archive "$@"
objcopy --redefine-syms="$work/renamed" "$work/named.o"
# A second pass: symbols that now have the same name become one.
ld -r -o "$work/all.o" "$work/named.o"
readelf -sW "$work/all.o" | awk -v exported="$exported" -v visibility="$visibility" '
    $5 == "GLOBAL" && $6 == visibility && $7 != "UND" && $8 ~ exported { print $8 }' >"$work/exported"
objcopy --keep-global-symbols="$work/exported" "$work/all.o"
ar rcsD "$out" "$work/all.o"
""",
        arguments = [
            ctx.outputs.out.path,
            ctx.attr.exported,
            "".join(["%s %s\n" % pair for pair in ctx.attr.renamed.items()]),
            "HIDDEN" if ctx.attr.hidden else "DEFAULT",
        ] + [file.path for file in archives],
        mnemonic = "StaticLibrary",
        progress_message = "Merging " + ctx.outputs.out.basename,
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

# Everything that `deps` link, in one object of one archive. Symbols that are visible and match
# `exported` are global. The others are local, so that a program may link the same third-party
# libraries, or use the same names, itself.
static_library = rule(
    implementation = _static_library_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "hidden": attr.bool(doc = "the symbols are hidden: what links the archive does not export them"),
        "exported": attr.string(mandatory = True, doc = "a regular expression of awk's"),
        "out": attr.output(mandatory = True),
        "renamed": attr.string_dict(doc = "symbols of third-party archives -> what takes their place"),
    },
)

def _linked_impl(ctx):
    archives, flags = _linked_by(ctx.attr.deps, ctx.attr.system)
    arguments = ["-shared"] if ctx.attr.shared else ["-pie"]
    arguments += ["-o", ctx.outputs.out.path, "-Wl,-z,relro,-z,now,-z,defs,--as-needed,--build-id"]
    arguments += [ctx.expand_location(option, ctx.attr.inputs) for option in ctx.attr.linkopts]
    arguments += ["-Wl,--whole-archive"] + [archive.path for archive in archives] + ["-Wl,--no-whole-archive"]
    arguments += flags + ["-ldl", "-lpthread", "-lm"]
    ctx.actions.run_shell(
        inputs = archives + ctx.files.inputs,
        outputs = [ctx.outputs.out],
        command = 'exec gcc "$@"',
        arguments = arguments,
        mnemonic = "SystemLink",
        progress_message = "Linking %{output} with the system's libraries",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

# All that `deps` link, as a program or a shared library that takes other people's libraries from
# the system: for a distribution, which mends them in one place.
linked = rule(
    implementation = _linked_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "inputs": attr.label_list(allow_files = True),
        "linkopts": attr.string_list(),
        "out": attr.output(mandatory = True),
        "shared": attr.bool(),
        "system": attr.string_dict(doc = "repository -> the option of the linker that takes its place"),
    },
)
