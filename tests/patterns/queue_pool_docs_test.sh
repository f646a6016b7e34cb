#!/bin/bash
# The program in docs/queue-pool.md is the one that is built and run.
. tests/support/shell.sh

sed -n '/^```c whole$/,/^```$/{/^```/d;p}' docs/queue-pool.md >"$TEST_TMPDIR/page.c"
expect_status 0 diff "$TEST_TMPDIR/page.c" tests/patterns/queue_pool_example.c
