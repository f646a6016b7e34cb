"""Tests that a folder depends on nothing but what the map allows."""

load("@rules_shell//shell:sh_test.bzl", "sh_test")

# The compiler, and what Bazel itself adds.
_TOOLCHAIN = ["bazel_tools", "local_config_cc", "local_config_platform", "platforms", "bazel_skylib", "rules_cc"]

# A module's repository: @@module~name with Bazel 7, @@module+name later, @name before.
_REPOSITORY = "^@@?([^/]*[~+])?(%s)[~+]?//"

def weir_layer_test(name, folder, targets, uses, links = [], expect = ""):
    """Tests that everything `targets` depend on is in `folder`, `uses` or `links`.

    All that is not allowed is forbidden: the other folders, //tests among them,
    and libraries of other packages.

    Args:
      name: the test.
      folder: the folder of the targets.
      targets: labels, absolute.
      uses: folders that it may use, with what is below them.
      links: external repositories that it may use.
      expect: a label that must be found forbidden; for the test of this macro.
    """
    allowed = "|".join([folder] + uses)
    repositories = "|".join(_TOOLCHAIN + links)
    everything = "deps(set(%s))" % " ".join(targets)
    native.genquery(
        name = name + "_query",
        testonly = True,
        expression = "%s except filter('^//(%s)[/:]', %s) except filter('%s', %s)" % (
            everything,
            allowed,
            everything,
            _REPOSITORY % repositories,
            everything,
        ),
        opts = [
            "--noimplicit_deps",
            "--notool_deps",
        ],
        scope = targets,
    )
    sh_test(
        name = name,
        size = "small",
        srcs = ["layer_test.sh"],
        args = [
            "$(location %s_query)" % name,
            folder,
            "'%s'" % (" ".join(uses + links) or "nothing"),
            expect,
        ],
        data = [name + "_query"],
    )

def weir_map_tests(uses, links, targets):
    """One weir_layer_test for each folder in `uses`, named <folder>_map_test.

    Also declares `mapped`, which reaches all that the tests look at.

    Args:
      uses: folder -> folders that it may use; map.bzl's USES.
      links: folder -> external repositories that it may use; LINKS.
      targets: folder -> labels, where they are not the folder's own; TARGETS.
    """
    for folder in targets:
        if folder not in uses:
            fail("%s is in TARGETS but not in USES" % folder)
    reached = {folder: targets.get(folder, ["//" + folder]) for folder in uses}
    for folder, labels in reached.items():
        # A folder that may be used brings its own external libraries along.
        linked = [link for each in [folder] + uses[folder] for link in links.get(each, [])]
        weir_layer_test(
            name = folder.replace("/", "_") + "_map_test",
            folder = folder,
            links = linked,
            targets = labels,
            uses = uses[folder],
        )
    native.filegroup(
        name = "mapped",
        testonly = True,
        srcs = [label for labels in reached.values() for label in labels],
        tags = ["manual"],
    )
