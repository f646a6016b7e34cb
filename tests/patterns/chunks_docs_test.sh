#!/bin/bash
# The program in docs/chunks.md is the one that is built and run.
. tests/support/shell.sh

sed -n '/^```c whole$/,/^```$/{/^```/d;p}' docs/chunks.md >"$TEST_TMPDIR/page.c"
expect_status 0 diff "$TEST_TMPDIR/page.c" tests/patterns/chunks_example.c
