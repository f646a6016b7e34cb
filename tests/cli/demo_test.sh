#!/bin/bash
# bazel run //:demo, as Bazel would start it.
root="$PWD"
. tests/cli/cli.sh

mkdir called from
(cd "$root" && BUILD_WORKING_DIRECTORY="$TEST_TMPDIR/called" ./demo >"$TEST_TMPDIR/table" 2>"$TEST_TMPDIR/notes")
expect_files called/out/demo coffee
expect_files called/out/demo chelsea
expect_contains "$(cat table)" "2 of 2 written to out/demo"
# Files have the names that a user knows, and no folder of the build's.
! grep -F -e "$root" -e .runfiles -e /bin/cli "$TEST_TMPDIR/table" "$TEST_TMPDIR/notes" || fail "a path of the build"
expect_contains "$(cat table)" "first    1 frame in "
expect_contains "$(cat table)" "warm     9 frames in "
