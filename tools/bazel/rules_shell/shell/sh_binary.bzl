"""The rule that is native up to Bazel 7, under the name that later ones load."""

sh_binary = native.sh_binary
