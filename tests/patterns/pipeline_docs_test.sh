#!/bin/bash
# The program in docs/pipeline.md is the one that is built and run.
. tests/support/shell.sh

sed -n '/^```c whole$/,/^```$/{/^```/d;p}' docs/pipeline.md >"$TEST_TMPDIR/page.c"
expect_status 0 diff "$TEST_TMPDIR/page.c" tests/patterns/pipeline_example.c
