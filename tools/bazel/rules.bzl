"""Rules that Debian's packages install as folders, as repositories of WORKSPACE."""

def _debian_rules_impl(repository_ctx):
    root = repository_ctx.path("/usr/share/bazel/tools/" + repository_ctx.attr.folder)
    if not root.exists:
        fail("@%s needs %s of the Debian package %s. Run tools/setup.sh." %
             (repository_ctx.name, root, repository_ctx.attr.package))
    for entry in root.readdir():
        if entry.basename != "WORKSPACE":
            repository_ctx.symlink(entry, entry.basename)

debian_rules = repository_rule(
    implementation = _debian_rules_impl,
    attrs = {
        "folder": attr.string(mandatory = True),
        "package": attr.string(mandatory = True),
    },
    local = True,
)
