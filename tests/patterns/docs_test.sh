#!/bin/bash
# docs_test.sh PAGE PROGRAM: the program that the page shows in full is the one that is built and
# run.
. tests/support/shell.sh

sed -n '/^```c whole$/,/^```$/{/^```/d;p}' "$1" >"$TEST_TMPDIR/page.c"
expect_status 0 diff "$TEST_TMPDIR/page.c" "$2"
