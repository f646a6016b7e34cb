#!/bin/bash
# Sizes, offsets, values and types of the public headers are those of layout.txt: no change of a
# layout goes unseen.

. tests/support/shell.sh

diff -u tests/abi/layout.txt tests/abi/present.layout || fail "the layout of public headers has changed.
If it is meant to, run: bazel build //tests/abi:layout_table && cp -f bazel-bin/tests/abi/present.layout tests/abi/layout.txt"
