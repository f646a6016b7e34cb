#!/bin/bash
# The program in docs/loader.md is the one that is built and run.
. tests/support/shell.sh

sed -n '/^```c whole$/,/^```$/{/^```/d;p}' docs/loader.md >"$TEST_TMPDIR/page.c"
expect_status 0 diff "$TEST_TMPDIR/page.c" tests/patterns/loader_example.c
